"""Sampled labels, in Python; the output of commands is in `approved/cli/drawn.txt`."""

import json

import pytest

import rankdash as rd
from tests.cli.drawn import answers, next_pairs, plan, rankings, status
from tests.sets import SAMPLE

QUERIES, DONE = 40, 160
SAID = "estimated from 160 of 400 labels"


@pytest.fixture
def files(tmp_path, run):
    """Write labels of some of the pairs of two rankings, and return the folder."""
    rankings(tmp_path, QUERIES)
    plan(run, tmp_path)
    file = tmp_path / "plan.jsonl"
    assert run("label", "add", file, answers(tmp_path, next_pairs(run, file, DONE))).code == 0
    assert run("label", "status", file, "--out", tmp_path / "labels.csv").code == 0
    return tmp_path


def test_in_python_the_estimate_is_a_part_of_the_study(run, files):
    (wanted,) = status(run, files / "plan.jsonl")["estimates"]
    with pytest.warns(UserWarning) as warned:
        data = rd.read(files / "labels.csv", files / "old.trec")
    assert any("Labels sampled with known probabilities" in str(each.message) for each in warned)
    challenger = rd.read_run(files / "new.trec", data)
    study = rd.study_of(data, challenger, metric="dcg@10", drawn=files / "labels.csv")
    (found,) = study.labelling.estimates
    assert found.difference == pytest.approx(wanted["difference"])
    assert (found.low, found.high) == pytest.approx((wanted["low"], wanted["high"]))
    assert json.dumps(study.labelling.numbers())
    assert rd.study_of(data, challenger, metric="dcg@10").labelling is None
    target = rd.report(data, challenger, files / "r.html", drawn=files / "labels.csv")
    assert SAID in target.read_text()
    with pytest.raises(rd.RankdashError, match="lacks the sampling probability"):
        rd.study_of(data, (), drawn=SAMPLE / "qrels.tsv")
