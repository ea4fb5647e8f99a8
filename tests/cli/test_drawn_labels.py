"""Labels that came by draws, as `label status --out` wrote them: one estimate on every surface.
What commands say of them is in `approved/cli/drawn.txt`."""

import json
from pathlib import Path

import pandas as pd
import pytest

import rankdash as rd
from tests.cli.drawn import DOCS, answers, lists, next_pairs, plan, rankings, status, truth
from tests.sets import SAMPLE

QUERIES, DONE = 40, 160
SAID = "estimated from 160 of 400 labels"


@pytest.fixture
def labelled(tmp_path, run):
    """Labels so many of the pairs of two rankings, one of them "cannot tell"; gives the folder."""

    def label(count: int = DONE) -> Path:
        rankings(tmp_path, QUERIES)
        (tmp_path / "plan.jsonl").unlink(missing_ok=True)
        plan(run, tmp_path)
        file = tmp_path / "plan.jsonl"
        filled = answers(tmp_path, next_pairs(run, file, count), cannot_tell=3)
        assert run("label", "add", file, filled).code == 0
        done = run("label", "status", file, "--out", tmp_path / "labels.csv")
        assert done.code == 0, done.err
        return tmp_path

    return label


@pytest.fixture
def files(labelled):
    return labelled()


def sides(files: Path, *, swapped: bool = False) -> list[object]:
    first, second = ("new", "old") if swapped else ("old", "new")
    return ["--qrels", files / "labels.csv", "--baseline", files / f"{first}.trec",
            "--challenger", files / f"{second}.trec"]  # fmt: skip


def told(files: Path) -> None:
    """The one that could not be told is not relevant after all."""
    table = pd.read_csv(files / "labels.csv")
    table["label"] = table["label"].replace("cannot tell", "0")
    table.to_csv(files / "labels.csv", index=False)


def test_evaluate_and_compare_say_the_estimate_of_the_plan(run, files):
    (wanted,) = status(run, files / "plan.jsonl")["estimates"]
    ranked = (files / "old.trec", files / "new.trec")
    for done in (
        run("evaluate", files / "labels.csv", *ranked, "--json"),
        run("compare", *sides(files), "--json"),
    ):
        assert done.code == 0, done.err
        assert "Labels that came by draws with a known probability: 160." in done.err
        (found,) = done.json["labelling"]["estimates"]
        assert found == {
            name: pytest.approx(value) if isinstance(value, float) else value
            for name, value in wanted.items()
        }
        assert (found["labels"], found["pairs"]) == (DONE, QUERIES * DOCS)


@pytest.fixture
def gate(run):
    def command(files, *conditions, swapped=False):
        return run("gate", *sides(files, swapped=swapped), *conditions, "--json")

    return command


def test_the_gate_goes_by_the_limit_that_holds_at_every_look(run, gate, files):
    (wanted,) = status(run, files / "plan.jsonl")["estimates"]
    done = gate(files, "--min-gain", "dcg@10=0", swapped=True)
    assert done.code == 0, done.err
    (found,) = done.json["conditions"]
    assert (found["passed"], found["estimated"]) == (True, True)
    assert found["value"] == pytest.approx(-wanted["difference"])
    # One-sided at 95 %, so narrower than the interval of status.
    assert -wanted["difference"] > found["low"] > -wanted["high"] > 0
    (estimate,) = done.json["labelling"]["estimates"]
    assert (estimate["labels"], estimate["pairs"]) == (DONE, 400)
    limit = (found["low"] + found["value"]) / 2
    unproven = gate(files, "--min-gain", f"dcg@10={limit}", swapped=True)
    assert unproven.code == 1
    assert unproven.json["conditions"][0]["reason"] == "unproven"
    assert "More labels would tell." in unproven.json["conditions"][0]["message"]


def test_with_every_label_compare_and_status_have_one_number_and_the_gate_decides_as_always(
    run, gate, labelled
):
    files = labelled(400)
    (exact,) = status(run, files / "plan.jsonl")["estimates"]
    assert exact["state"] == "complete"
    told(files)
    said = run("label", "status", files / "plan.jsonl").out
    assert f"exact for these {QUERIES} queries. One without a relevant document counts as 0" in said
    done = run("compare", *sides(files), "-m", "dcg@10", "--no-relevant", "count", "--json")
    [_base, new] = done.json["comparisons"]
    assert new["delta"] == pytest.approx(exact["difference"])
    assert new["paired"] == QUERIES
    assert "While documents lack a label" in done.err
    done = gate(files, "--min-gain", "ndcg@10=-1", "--max-hurt", "ndcg@10=1")
    assert done.code == 0, done.err
    assert done.json["labelling"] is None
    assert "no estimate" not in done.err
    assert not any(each["estimated"] for each in done.json["conditions"])


def test_in_python_the_estimate_is_a_part_of_the_study(run, files):
    (wanted,) = status(run, files / "plan.jsonl")["estimates"]
    with pytest.warns(UserWarning) as warned:
        data = rd.read(files / "labels.csv", files / "old.trec")
    assert any("Labels that came by draws" in str(each.message) for each in warned)
    challenger = rd.read_run(files / "new.trec", data)
    study = rd.study_of(data, challenger, metric="dcg@10", drawn=files / "labels.csv")
    (found,) = study.labelling.estimates
    assert found.difference == pytest.approx(wanted["difference"])
    assert (found.low, found.high) == pytest.approx((wanted["low"], wanted["high"]))
    assert json.dumps(study.labelling.numbers())
    assert rd.study_of(data, challenger, metric="dcg@10").labelling is None
    target = rd.report(data, challenger, files / "r.html", drawn=files / "labels.csv")
    assert SAID in target.read_text()
    with pytest.raises(rd.RankdashError, match="does not say in which draw"):
        rd.study_of(data, (), drawn=SAMPLE / "qrels.tsv")


def test_the_file_goes_back_into_a_plan_with_raters_and_what_cannot_be_told(run, files):
    file = files / "plan.jsonl"
    before = status(run, file)
    file.unlink()
    plan(run, files)
    assert run("label", "add", file, files / "labels.csv").code == 0
    after = status(run, file)
    for name in ("estimates", "raters", "cannot_tell"):
        assert after[name] == before[name]
    # A file of labels beside the rankings says what is known.
    known = plan(run, files, "--qrels", files / "labels.csv", name="known")
    assert known["known"] == DONE - 1


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_a_judges_grades_are_the_guess_for_labels_that_were_drawn(run, gate, files, share):
    """As `label status` has it, whether or not the judge graded all of them."""
    pairs = [(query, doc) for query, docs in lists().items() for doc in docs[:DOCS]]
    grades = [min(int(truth().get(pair, "0")) + (n % 5 == 0), 3) for n, pair in enumerate(pairs)]
    table = pd.DataFrame(pairs, columns=["query_id", "doc_id"]).assign(grade=grades)
    table.sample(frac=share, random_state=1).to_csv(files / "grades.csv", index=False)
    judge = ("--judge", files / "grades.csv")
    (wanted,) = status(run, files / "plan.jsonl", *judge)["estimates"]
    (found,), (plain,) = (
        run("compare", *sides(files), *options, "--json").json["labelling"]["estimates"]
        for options in (judge, ())
    )
    for name in ("difference", "low", "high", "needed", "saved"):
        assert found[name] == pytest.approx(wanted[name], abs=1e-12)
    assert found["low"] != plain["low"]
    assert plain["saved"] is None
    assert found["saved"] is not None
    text = run("compare", *sides(files), *judge).out
    assert ("the result rests on people's labels." in text) == bool(found["saved"])
    # The gate decides by it too, and not by a judge that these labels cannot correct.
    done = gate(files, *judge, "--min-gain", "dcg@10=-1", "--confidence", 0.975)
    (condition,) = done.json["conditions"]
    assert condition["estimated"]
    assert condition["low"] == pytest.approx(found["low"], abs=1e-12)
