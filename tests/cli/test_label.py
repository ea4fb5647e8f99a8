"""`label`: lists completed in a spreadsheet, and a full disk; other cases are in `approved/cli`."""

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
    # The last ten remain without a label.
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


def test_a_full_disk_takes_no_plan_and_no_label_that_is_not_whole(run, planned, files):
    made = ("--run", files / "old.trec", files / "new.trec", "--top", 3)
    with room_for(1_000):
        done = run("label", "plan", *made, "--out", files / "no.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "Not enough disk space to write the file" in done.err
    assert not (files / "no.jsonl").exists()
    added = ("label", "add", planned, answers(files, next_pairs(run, planned, 60)), "--json")
    before = planned.read_bytes()
    with room_for(len(before) + 3_000):
        done = run(*added)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {planned}: Not enough disk space to write the file")
    assert planned.read_bytes() == before
    assert status(run, planned)["raters"] == []
    assert run(*added).json["added"] == 60
