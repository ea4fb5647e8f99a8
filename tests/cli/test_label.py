"""`label`: from rankings to a verdict through files; what it writes is in `approved/cli`."""

from itertools import pairwise

import pandas as pd
import pytest

from tests.cli.drawn import answers, next_pairs, plan, rankings, status, truth
from tests.full_disk import room_for
from tests.sets import SAMPLE

QUERIES = 40


@pytest.fixture
def files(tmp_path):
    rankings(tmp_path, QUERIES)
    return tmp_path


@pytest.fixture
def planned(run, files):
    made = plan(run, files)
    assert made["to_label"] == made["pairs"] == 10 * QUERIES
    assert (made["queries"], made["excluded_queries"]) == (QUERIES, [])
    return files / "plan.jsonl"


def test_a_robot_labels_to_a_verdict_that_evaluate_confirms(run, planned, files):
    labelled, done = 0, {"settled": False}
    while not done["settled"]:
        pairs = next_pairs(run, planned, 60)
        done = run(
            "label", "add", planned, answers(files, pairs), "--rater", "robot", "--json"
        ).json
        labelled += len(pairs)
        (found,) = done["estimates"]
        assert (done["added"], found["labels"]) == (len(pairs), labelled)
    assert labelled < 10 * QUERIES
    assert found["high"] < 0
    assert (found["baseline"], found["challenger"], found["metric"]) == ("old", "new", "dcg@10")
    told = run("label", "status", planned).out
    assert "new is worse than old" in told and "No more labels are needed." in told
    assert f"estimated from {labelled} of 400 labels; conclusive after" in told
    out = files / "labels.csv"
    assert run("label", "status", planned, "--out", out).code == 0
    table = pd.read_csv(out)
    assert sorted(table["draw"]) == list(range(1, labelled + 1))
    assert table["probability"].between(0, 1).all()
    assert set(table["rater"]) == {"robot"}
    scored = run("evaluate", out, files / "old.trec", files / "new.trec", "--json", "-m", "dcg@10")
    assert scored.code == 0, scored.err


@pytest.mark.parametrize("order", ["draws", "effect"])
def test_a_list_to_fill_in_goes_out_and_comes_back(run, planned, files, order):
    out = files / "list.csv"
    options = ("--data", SAMPLE, "--order", order, "--out", out)
    done = run("label", "next", planned, "--count", 80, *options)
    assert done.out == f"Pairs to label: 80. Written: {out}\n"
    assert ("is biased" in done.err) == (order == "effect")
    table = pd.read_csv(out, dtype={"query_id": str, "doc_id": str})
    assert list(table) == [
        "query_id", "query", "doc_id", "document", "label", "rank", "draw", "probability",
    ]  # fmt: skip
    assert table["label"].isna().all()
    assert table["document"].str.len().gt(0).all() and table["query"].str.len().gt(0).all()
    assert (table["draw"].tolist() == list(range(1, 81))) == (order == "draws")
    pairs = zip(table["query_id"], table["doc_id"], strict=True)
    table["label"] = [truth().get(pair, "0") for pair in pairs]
    # The last ten stay empty.
    table.loc[70:, "label"] = None
    table.to_csv(out, index=False)
    added = run("label", "add", planned, out, "--rater", "ann", "--json").json
    (found,) = added["estimates"]
    assert (added["added"], found["labels"] + found["waiting"]) == (70, 70)
    assert (found["labels"] == 70) == (order == "draws")


def test_ids_that_a_spreadsheet_would_run_come_back_as_they_were(run, tmp_path):
    for name, docs in (("old", ["=x", "+y", "-z", "@w"]), ("new", ["@w", "-z", "+y", "=x"])):
        rows = (f"=q{n} Q0 {doc} {r} {9 - r} s\n" for n in range(3) for r, doc in enumerate(docs))
        (tmp_path / f"{name}.trec").write_text("".join(rows))
    plan(run, tmp_path, top=1)
    file, out = tmp_path / "plan.jsonl", tmp_path / "list.csv"
    assert run("label", "next", file, "--count", 12, "--out", out).code == 0
    table = pd.read_csv(out, dtype=str).assign(label="1")
    assert table["query_id"].str.startswith("'=q").all()
    table.to_csv(out, index=False)
    assert run("label", "add", file, out, "--json").json["added"] == 12


def test_a_judge_lowers_the_effort_and_is_no_label(run, planned, files):
    pairs = next_pairs(run, planned, 400)
    judge, some = answers(files, pairs, "judge"), answers(files, pairs[:150])
    assert run("label", "add", planned, some).code == 0
    (alone,) = status(run, planned)["estimates"]
    (helped,) = status(run, planned, "--judge", judge)["estimates"]
    assert helped["labels"] == alone["labels"] == 150
    assert helped["high"] - helped["low"] < alone["high"] - alone["low"]
    # Both settle it at the first look.
    assert (alone["saved"], helped["saved"]) == (None, 0)
    plan(run, files, "--confidence", 0.999_999_999, name="strict")
    strict = files / "strict.jsonl"
    assert run("label", "add", strict, some).code == 0
    (found,) = status(run, strict, "--judge", judge)["estimates"]
    assert found["saved"] > 0
    said = run("label", "status", strict, "--judge", judge).out
    assert f"With the judge, about {found['saved']:,} labels fewer than without it" in said


@pytest.mark.parametrize("mode", ["random", "query"])
def test_other_ways_to_draw(run, files, mode):
    assert plan(run, files, "--mode", mode)["mode"] == mode
    file = files / "plan.jsonl"
    pairs = next_pairs(run, file, 10 * QUERIES)
    changes = sum(one != other for (one, _), (other, _) in pairwise(pairs))
    assert changes == QUERIES - 1 if mode == "query" else changes > 2 * QUERIES
    for count in (19 * 10 + 3, 35 * 10):
        found = run("label", "add", file, answers(files, pairs[:count]), "--json").json
        assert found["mode"] == mode
        (each,) = found["estimates"]
        if mode == "query":
            assert (each["labels"], each["waiting"]) == (count // 10 * 10, count % 10)
            assert (each["state"] == "too_early") == (count < 200)
        else:
            assert (each["labels"], each["waiting"]) == (count, 0)
    assert each["high"] < 0


def test_a_label_that_was_cut_off_costs_no_other(run, planned):
    """What was writing died in the middle of a line."""
    for count, (query, doc) in enumerate(next_pairs(run, planned, 2), start=1):
        ids = ("--query", query, "--doc", doc)
        assert run("label", "add", planned, *ids, "--label", count).code == 0
        planned.write_bytes(planned.read_bytes() + b'{"row": "answer", "que')
        assert status(run, planned)["estimates"][0]["labels"] == count


def test_a_full_disk_takes_no_plan_and_no_label_that_is_not_whole(run, planned, files):
    made = (
        "--run",
        files / "old.trec",
        files / "new.trec",
        "--top",
        3,
        "--out",
        files / "no.jsonl",
    )
    with room_for(1_000):
        done = run("label", "plan", *made)
    assert (done.code, done.out) == (2, "")
    assert "There is no room left on the disk to write it" in done.err
    assert not (files / "no.jsonl").exists()
    added = ("label", "add", planned, answers(files, next_pairs(run, planned, 60)), "--json")
    before = planned.read_bytes()
    with room_for(len(before) + 3_000):
        done = run(*added)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {planned}: There is no room left on the disk to write it")
    assert planned.read_bytes() == before
    assert status(run, planned)["raters"] == []
    assert run(*added).json["added"] == 60
