"""Labels with the lowest grade as the best, as in Cranfield: detected, reversed on request."""

import json
import math
from xml.etree import ElementTree

import pytest

import rankdash as rd
from rankdash.app.command import main
from rankdash.core.base.errors import DataError
from rankdash.core.readers import Source
from rankdash.core.readers.loading import load

# query, document, grade: 1 is the best, 4 of minimum interest, -1 (or 5) not relevant. Each query's
# documents are in the order of the first stage.
GRADES = {"184": 1, "29": 1, "31": 2, "12": 3, "486": -1, "51": 4}
CRANQREL = "".join(f"{q} {doc} {grade}\n" for q in range(1, 7) for doc, grade in GRADES.items())
FOUND = "".join(
    f"{q} Q0 {doc} {rank} {9 - rank} bm25\n"
    for q in range(1, 7)
    for rank, doc in enumerate(GRADES, 1)
)
RIGHT = {"184": 4, "29": 4, "31": 3, "12": 2, "486": -1, "51": 1}
NDCG = sum(gain / math.log2(rank + 1) for rank, gain in enumerate((4, 4, 3, 2, 0, 1), 1)) / sum(
    gain / math.log2(rank + 1) for rank, gain in enumerate((4, 4, 3, 2, 1), 1)
)
NOTE = (
    "The labels are reversed: each is 5 minus the label in the files, where the lowest grade is "
    "the best. Labels below 0 are unchanged."
)


def sources(labels: str = CRANQREL) -> list[Source]:
    return [Source("cranqrel", labels.encode()), Source("bm25.run", FOUND.encode())]


def codes(report) -> dict[str, str]:
    return {finding.code: finding.text for finding in report.findings}


def test_the_best_grade_is_found_beside_labels_below_0_and_reversed_labels_are_right():
    found = load(sources())
    assert codes(found.report)["label_direction"].endswith("1 seems to be the best grade.")
    assert (found.report.suspected_best, found.report.reversed_at) == ("1", None)

    put_right = load(sources(), worst_label=5)
    assert codes(put_right.report)["labels_reversed"] == NOTE
    assert (put_right.report.suspected_best, put_right.report.reversed_at) == ("", 5)
    assert type(put_right.report).from_json(put_right.report.to_json()).reversed_at == 5
    own = put_right.dataset.qrels.query("query_id == '1'").set_index("doc_id")["label"]
    assert own.to_dict() == RIGHT
    # Also a 5 for documents that are not relevant; of several labels of a pair the best is used.
    odd = load(sources(CRANQREL.replace(" -1\n", " 5\n") + "1 184 3\n"), worst_label=5)
    own = odd.dataset.qrels.query("query_id == '1'").set_index("doc_id")["label"]
    assert own.to_dict() == {**RIGHT, "486": 0}
    from_0 = load(sources(CRANQREL.replace(" 1\n", " 0\n")), worst_label=4).dataset.qrels
    own = from_0.query("query_id == '1'").set_index("doc_id")["label"]
    assert own.to_dict() == {"184": 4, "29": 4, "31": 2, "12": 1, "486": -1, "51": 0}
    assert rd.evaluate(put_right.dataset, None, "ndcg@10").mean("ndcg@10") == pytest.approx(NDCG)


@pytest.mark.parametrize("worst", [3, math.nan])
def test_a_label_above_the_grade_that_means_not_relevant_is_refused(worst):
    with pytest.raises(DataError, match=r"cannot be reversed at .*: the highest is 4"):
        load(sources(), worst_label=worst)


def test_python_and_each_command_that_reads_labels_reverse_them(capsys, tmp_path):
    for source in sources():
        (tmp_path / source.name).write_bytes(source.data)
    qrels, run = str(tmp_path / "cranqrel"), str(tmp_path / "bm25.run")
    with pytest.warns(UserWarning, match="1 seems to be the best grade"):
        rd.read(qrels, run)
    assert rd.read(qrels, run, worst_label=5).id == load(sources(), worst_label=5).dataset.id
    other, page = tmp_path / "other.run", tmp_path / "report.html"
    other.write_text(FOUND.replace("bm25", "other"))
    asked = ("--reverse-labels", "5")
    pair = ("--qrels", qrels, "--baseline", run, "--challenger", str(other))
    evaluated, compared = ("evaluate", qrels, run, *asked), ("compare", *pair, *asked)
    gated = ("gate", *pair, *asked, "--min", f"ndcg@10={NDCG - 0.001}")

    def said(*arguments: str) -> str:
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    assert "--reverse-labels N" in said("check", qrels, run)
    assert "reverse-labels" not in said("check", qrels, run, *asked)
    shown = [("check", qrels, run, *asked), evaluated, compared, gated]
    for command in (*shown, *((*each, "--format", "markdown") for each in shown[2:])):
        assert NOTE in said(*command), command
    assert f"% {NOTE}" in said(*compared, "--format", "latex")
    found = json.loads(said(*evaluated, "--metric", "ndcg@10", "--json"))
    assert found["systems"]["bm25"]["mean"]["ndcg@10"] == pytest.approx(NDCG)
    outcome = json.loads(said(*gated, "--json"))
    assert NOTE in outcome["notes"]
    for each in (found, outcome, json.loads(said(*compared, "--json"))):
        assert each["settings"]["worst_label"] == 5
    notes = ElementTree.fromstring(said(*gated, "--format", "junit")).find("testsuite/system-out")
    assert NOTE in notes.text.splitlines()
    unchanged = json.loads(said("gate", *pair, "--min", "0.1", "--json"))
    assert unchanged["settings"]["worst_label"] is None
    assert not any("reversed" in note for note in unchanged["notes"])
    assert main(["evaluate", qrels, run, "--reverse-labels", "3"]) == 2
    assert "the highest is 4" in capsys.readouterr().err
    said("report", "--data", qrels, run, str(other), "--out", str(page), *asked)
    assert "5 minus the label in the files" in page.read_text()
