"""`label`: from rankings to a verdict through files."""

import json
from itertools import pairwise

import pandas as pd
import pytest

from tests.full_disk import room_for
from tests.sets import SAMPLE

QUERIES = 40


@pytest.fixture
def files(tmp_path):
    """Two rankings of 40 queries of the sample; the second has the first ten in reverse."""
    lines = (SAMPLE / "initial.trec").read_text().splitlines()
    lists = {}
    for line in lines:
        query, _, doc, *_ = line.split()
        lists.setdefault(query, []).append(doc)
    full = {query: docs for query, docs in lists.items() if len(docs) >= 10}
    lists = dict(list(full.items())[:QUERIES])
    for name, step in (("old", 1), ("new", -1)):
        rows = (
            f"{query} Q0 {doc} {rank} {100 - rank} {name}\n"
            for query, docs in lists.items()
            for rank, doc in enumerate(docs[:10][::step], 1)
        )
        (tmp_path / f"{name}.trec").write_text("".join(rows))
    return tmp_path


@pytest.fixture
def plan(run, files):
    file = files / "plan.jsonl"
    done = run(
        "label", "plan", "--run", files / "old.trec", files / "new.trec", "--top", 3,
        "--out", file, "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["to_label"] == done.json["pairs"] == 10 * QUERIES
    assert (done.json["queries"], done.json["excluded_queries"]) == (QUERIES, [])
    return file


def grades():
    table = pd.read_csv(SAMPLE / "qrels.tsv", sep="\t")
    return {(str(q), str(d)): s for q, d, s in table.itertuples(index=False)}


def test_a_robot_labels_to_a_verdict_that_evaluate_confirms(run, plan, files) -> None:
    truth = grades()
    labelled = 0
    while True:
        cards = run("label", "next", plan, "--count", 60, "--json", "--rater", "robot").json
        # Nothing that tells a system, a rank or a score.
        assert all(set(card) == {"query_id", "doc_id"} for card in cards)
        file = files / "answers.csv"
        rows = [
            f"{card['query_id']},{card['doc_id']},"
            f"{truth.get((card['query_id'], card['doc_id']), 0)}"
            for card in cards
        ]
        file.write_text("\n".join(["query_id,doc_id,label", *rows]) + "\n")
        done = run("label", "add", plan, file, "--rater", "robot", "--json")
        assert done.code == 0, done.err
        labelled += len(cards)
        (found,) = done.json["estimates"]
        assert (done.json["added"], found["labels"]) == (len(cards), labelled)
        if done.json["settled"]:
            break
    assert labelled < 10 * QUERIES
    assert found["high"] < 0
    assert (found["baseline"], found["challenger"], found["metric"]) == ("old", "new", "dcg@10")
    told = run("label", "status", plan)
    assert "new is worse than old" in told.out
    assert f"estimated from {labelled} of 400 labels; conclusive after" in told.out
    assert "No more labels are needed." in told.out
    out = files / "labels.csv"
    assert run("label", "status", plan, "--out", out).code == 0
    table = pd.read_csv(out)
    assert len(table) == labelled
    assert sorted(table["draw"]) == list(range(1, labelled + 1))
    assert table["probability"].between(0, 1).all()
    assert set(table["rater"]) == {"robot"}
    scored = run("evaluate", out, files / "old.trec", files / "new.trec", "--json", "-m", "dcg@10")
    assert scored.code == 0, scored.err


def test_one_label_at_a_time_and_those_that_cannot_be_told(run, plan) -> None:
    first, second = run("label", "next", plan, "--count", 2, "--json").json
    for card, said in ((first, ("--label", 2)), (second, ("--cannot-tell",))):
        ids = ("--query", card["query_id"], "--doc", card["doc_id"])
        assert run("label", "add", plan, *ids, *said, "--rater", "ann").code == 0
    found = run("label", "status", plan, "--json").json
    assert (found["cannot_tell"], found["estimates"][0]["labels"]) == (1, 2)
    (ann,) = found["raters"]
    # Known once two answers fall into different seconds: tests of `status` give the times.
    pace = ann.pop("seconds_per_label")
    assert pace is None or pace >= 1
    assert ann == {"rater": "ann", "answers": 2, "labels": {"2": 1}, "cannot_tell": 1}
    third = run("label", "next", plan, "--json").json[0]
    assert third not in (first, second)
    ids = ("--query", first["query_id"], "--doc", first["doc_id"])
    assert run("label", "next", plan, "--rater", "ben", "--double", 1, "--json").json == [first]
    run("label", "add", plan, *ids, "--label", 0, "--rater", "ben")
    told = run("label", "status", plan).out
    assert "too early to say, with 2 of 400 labels" in told
    assert "ann: 2 answers, 1 of them cannot tell" in told


def test_texts_come_with_the_pairs_where_there_are_files_of_them(run, plan) -> None:
    (card,) = run("label", "next", plan, "--json", "--data", SAMPLE).json
    assert list(card) == ["query_id", "query", "doc_id", "title", "document"]
    assert card["query"] and card["document"]
    bare = run("label", "next", plan, "--data", SAMPLE).out
    assert bare.count("\n") == 1
    assert bare.split("\t")[:2] == [card["query_id"], card["query"]]


@pytest.mark.parametrize("order", ["draws", "effect"])
def test_a_list_to_fill_in_goes_out_and_comes_back(run, plan, files, order) -> None:
    out = files / "list.csv"
    done = run(
        "label", "next", plan, "--count", 80, "--data", SAMPLE, "--order", order, "--out", out
    )
    assert done.code == 0, done.err
    assert done.out == f"Pairs to label: 80. Written: {out}\n"
    assert ("is biased" in done.err) == (order == "effect")
    table = pd.read_csv(out, dtype={"query_id": str, "doc_id": str})
    assert list(table) == [
        "query_id", "query", "doc_id", "document", "label", "rank", "draw", "probability",
    ]  # fmt: skip
    assert table["label"].isna().all()
    assert table["document"].str.len().gt(0).all() and table["query"].str.len().gt(0).all()
    assert (table["draw"].tolist() == list(range(1, 81))) == (order == "draws")
    truth = grades()
    pairs = zip(table["query_id"], table["doc_id"], strict=True)
    table["label"] = [truth.get(pair, 0) for pair in pairs]
    # The last ten stay empty.
    table.loc[70:, "label"] = None
    table.to_csv(out, index=False)
    added = run("label", "add", plan, out, "--rater", "ann", "--json")
    assert added.code == 0, added.err
    (found,) = added.json["estimates"]
    assert (added.json["added"], found["labels"] + found["waiting"]) == (70, 70)
    assert (found["labels"] == 70) == (order == "draws")


def test_ids_that_a_spreadsheet_would_run_come_back_as_they_were(run, tmp_path) -> None:
    for name, docs in (("a", ["=x", "+y", "-z", "@w"]), ("b", ["@w", "-z", "+y", "=x"])):
        rows = (f"=q{n} Q0 {doc} {r} {9 - r} s\n" for n in range(3) for r, doc in enumerate(docs))
        (tmp_path / f"{name}.trec").write_text("".join(rows))
    file, out = tmp_path / "plan.jsonl", tmp_path / "list.csv"
    run("label", "plan", "--run", tmp_path / "a.trec", tmp_path / "b.trec", "--top", 1,
        "--out", file)  # fmt: skip
    assert run("label", "next", file, "--count", 12, "--out", out).code == 0
    table = pd.read_csv(out, dtype=str).assign(label="1")
    assert table["query_id"].str.startswith("'=q").all()
    table.to_csv(out, index=False)
    assert run("label", "add", file, out, "--json").json["added"] == 12


def test_labels_that_are_there_are_not_asked_for_again(run, files) -> None:
    file, half = files / "known.jsonl", files / "half.tsv"
    head, *rows = (SAMPLE / "qrels.tsv").read_text().splitlines()
    half.write_text("\n".join([head, *rows[::2]]) + "\n")
    done = run(
        "label", "plan", "--run", files / "old.trec", files / "new.trec",
        "--qrels", half, "--out", file, "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["known"] + done.json["to_label"] == 400
    assert 100 < done.json["known"] < 300
    (found,) = run("label", "status", file, "--json").json["estimates"]
    assert (found["known"], found["labels"]) == (done.json["known"], 0)


def test_a_judge_lowers_the_effort_and_is_no_label(run, plan, files) -> None:
    judge = files / "judge.csv"
    cards = run("label", "next", plan, "--count", 400, "--json").json
    truth = grades()
    rows = [(c["query_id"], c["doc_id"], truth.get((c["query_id"], c["doc_id"]), 0)) for c in cards]
    pd.DataFrame(rows, columns=["query_id", "doc_id", "label"]).to_csv(judge, index=False)
    first = files / "first.csv"
    pd.DataFrame(rows[:150], columns=["query_id", "doc_id", "label"]).to_csv(first, index=False)
    assert run("label", "add", plan, first).code == 0
    alone = run("label", "status", plan, "--json").json["estimates"][0]
    helped = run("label", "status", plan, "--json", "--judge", judge).json["estimates"][0]
    assert helped["labels"] == alone["labels"] == 150
    assert helped["high"] - helped["low"] < alone["high"] - alone["low"]
    assert alone["saved"] is None
    # Both settle it at the first look.
    assert helped["saved"] == 0
    strict = files / "strict.jsonl"
    run(
        "label", "plan", "--run", files / "old.trec", files / "new.trec", "--top", 3,
        "--confidence", 0.999_999_999, "--out", strict,
    )  # fmt: skip
    assert run("label", "add", strict, first).code == 0
    (found,) = run("label", "status", strict, "--json", "--judge", judge).json["estimates"]
    assert found["saved"] > 0
    said = run("label", "status", strict, "--judge", judge).out
    assert f"With the judge, about {found['saved']:,} labels fewer than without it" in said


def test_every_ranking_with_every_other(run, files) -> None:
    third = files / "third.trec"
    third.write_text((files / "old.trec").read_text().replace(" 99 ", " 0 "))
    runs = ("--run", files / "old.trec", files / "new.trec", third)
    for options, count in (((), 2), (("--all-pairs",), 3)):
        file = files / f"{count}.jsonl"
        run("label", "plan", *runs, "--top", 3, *options, "--out", file)
        found = run("label", "status", file, "--json").json["estimates"]
        assert len(found) == count
        assert len({(each["baseline"], each["challenger"]) for each in found}) == count


@pytest.mark.parametrize("mode", ["random", "query"])
def test_other_ways_to_draw_by_command(run, files, mode) -> None:
    file = files / f"{mode}.jsonl"
    done = run(
        "label", "plan", "--run", files / "old.trec", files / "new.trec", "--top", 3,
        "--mode", mode, "--out", file, "--json",
    )  # fmt: skip
    assert (done.code, done.json["mode"]) == (0, mode)
    cards = run("label", "next", file, "--count", 10 * QUERIES, "--json").json
    queries = [card["query_id"] for card in cards]
    changes = sum(one != other for one, other in pairwise(queries))
    if mode == "query":
        assert changes == QUERIES - 1
    else:
        assert changes > 2 * QUERIES
    truth = grades()
    rows = [(c["query_id"], c["doc_id"], truth.get((c["query_id"], c["doc_id"]), 0)) for c in cards]
    labels = files / "some.csv"
    for count in (19 * 10 + 3, 35 * 10):
        table = pd.DataFrame(rows[:count], columns=["query_id", "doc_id", "label"])
        table.to_csv(labels, index=False)
        found = run("label", "add", file, labels, "--json").json
        assert found["mode"] == mode
        (each,) = found["estimates"]
        if mode == "query":
            assert (each["labels"], each["waiting"]) == (count // 10 * 10, count % 10)
            assert (each["state"] == "too_early") == (count < 200)
        else:
            assert (each["labels"], each["waiting"]) == (count, 0)
    assert each["high"] < 0


def test_too_few_whole_queries_are_said_in_words(run, files) -> None:
    file = files / "query.jsonl"
    run(
        "label", "plan", "--run", files / "old.trec", files / "new.trec", "--top", 3,
        "--mode", "query", "--out", file,
    )  # fmt: skip
    told = run("label", "status", file).out
    assert "once 20 queries are labelled in full, 10 of them with a difference" in told


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--top", 0), "highest label of the scale"),
        ((), "Give --top"),
        (("--top", 3, "--metric", "ndcg@10"), "cannot be estimated from some of the labels"),
        (("--top", 3, "--confidence", 95), "between 0 and 1"),
        (("--top", 3, "--metric", "precision@500"), "makes a difference"),
    ],
)
def test_a_plan_that_cannot_be_is_one_line_and_no_file(run, files, options, reason) -> None:
    file = files / "refused.jsonl"
    done = run("label", "plan", "--run", files / "old.trec", files / "new.trec", *options,
               "--out", file)  # fmt: skip
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert reason in done.err
    assert not file.exists()


def test_one_ranking_and_rankings_of_other_queries_are_refused(run, files) -> None:
    other = files / "other.trec"
    other.write_text("elsewhere Q0 d1 1 1 x\n")
    for runs, reason in (
        ([files / "old.trec"], "given: 1"),
        ([files / "old.trec", other], "no query in common"),
    ):
        done = run("label", "plan", "--run", *runs, "--top", 3, "--out", files / "no.jsonl")
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert reason in done.err


def test_a_plan_is_never_written_over(run, plan, files) -> None:
    before = plan.read_bytes()
    done = run("label", "plan", "--run", files / "old.trec", files / "new.trec", "--top", 3,
               "--out", plan)  # fmt: skip
    assert done.code == 2
    assert "plan holds labels" in done.err
    assert plan.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("query_id,doc_id,label\nQ,D,9\n", "above the top of the scale"),
        ("query_id,doc_id,label\nx,y,1\n", "None of the 1 labels"),
    ],
)
def test_labels_that_do_not_fit_add_nothing(run, plan, files, content, reason) -> None:
    card = run("label", "next", plan, "--json").json[0]
    file = files / "bad.csv"
    file.write_text(content.replace("Q", card["query_id"]).replace("D", card["doc_id"]))
    before = plan.read_bytes()
    done = run("label", "add", plan, file)
    assert done.code == 2
    assert reason in done.err
    assert plan.read_bytes() == before


@pytest.mark.parametrize(
    "options",
    [(), ("--query", "q"), ("--query", "q", "--doc", "d"), ("x.csv", "--label", 1),
     ("--query", "q", "--doc", "d", "--label", 1, "--cannot-tell")],
)  # fmt: skip
def test_half_a_label_is_refused(run, plan, options) -> None:
    done = run("label", "add", plan, *options)
    assert done.code == 2
    assert "takes a file of labels, or --query and --doc" in done.err


def test_a_label_that_was_cut_off_costs_no_other(run, plan) -> None:
    """What was writing died in the middle of a line."""
    cards = run("label", "next", plan, "--count", 2, "--json").json

    def add(card, label):
        ids = ("--query", card["query_id"], "--doc", card["doc_id"])
        return run("label", "add", plan, *ids, "--label", label)

    assert add(cards[0], 1).code == 0
    plan.write_bytes(plan.read_bytes() + b'{"row": "answer", "que')
    assert run("label", "status", plan, "--json").json["estimates"][0]["labels"] == 1
    assert add(cards[1], 2).code == 0
    assert run("label", "status", plan, "--json").json["estimates"][0]["labels"] == 2


def test_labels_that_a_full_disk_has_no_room_for_are_not_reported(run, plan, files) -> None:
    cards = run("label", "next", plan, "--count", 60, "--json").json
    answers = files / "answers.csv"
    rows = [f"{card['query_id']},{card['doc_id']},1" for card in cards]
    answers.write_text("\n".join(["query_id,doc_id,label", *rows]) + "\n")
    before = plan.read_bytes()
    with room_for(len(before) + 3_000):
        done = run("label", "add", plan, answers, "--rater", "ann")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {plan}: There is no room left on the disk to write it")
    assert plan.read_bytes() == before
    assert run("label", "status", plan, "--json").json["raters"] == []
    assert run("label", "add", plan, answers, "--rater", "ann", "--json").json["added"] == 60


def test_a_plan_that_a_full_disk_has_no_room_for_is_not_there(run, files) -> None:
    rankings = ("--run", files / "old.trec", files / "new.trec")
    with room_for(1_000):
        done = run("label", "plan", *rankings, "--top", 3, "--out", files / "plan.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "There is no room left on the disk to write it" in done.err
    assert not (files / "plan.jsonl").exists()


def test_what_is_no_plan_is_refused(run, files) -> None:
    done = run("label", "status", files / "old.trec")
    assert done.code == 2
    assert "old.trec, line 1: The file is not a label plan." in done.err
    assert run("label", "status", files / "missing.jsonl").code == 2


def test_numbers_are_json_without_nan(run, plan) -> None:
    told = run("label", "status", plan, "--json").out
    assert "NaN" not in told
    assert json.loads(told)["estimates"][0]["difference"] is None


def test_a_file_may_say_who_labelled_and_when(run, plan, files) -> None:
    cards = run("label", "next", plan, "--count", 3, "--json").json
    rows = [
        (cards[0], "2", "Ann", "2026-11-01T10:00:00+01:00"),
        (cards[0], "1", "Ben", ""),
        (cards[1], "cannot tell", "Ann", "2026-11-01T10:00:30+01:00"),
        (cards[2], "", "Ann", ""),
    ]
    file = files / "export.csv"
    lines = [f"{c['query_id']},{c['doc_id']},{label},{who},{at}" for c, label, who, at in rows]
    file.write_text("\n".join(["query_id,doc_id,label,Annotator,created_at", *lines]) + "\n")
    found = run("label", "add", plan, file, "--json").json
    assert (found["added"], found["cannot_tell"], found["seconds_per_label"]) == (3, 1, 30.0)
    assert [(each["rater"], each["labels"]) for each in found["raters"]] == [
        ("Ann", {"2": 1}),
        ("Ben", {"1": 1}),
    ]
    assert found["agreements"][0]["pairs"] == 1
    assert run("label", "next", plan, "--json").json == cards[2:]


def test_a_name_that_is_typed_goes_before_the_file(run, plan, files) -> None:
    (card,) = run("label", "next", plan, "--json").json
    file = files / "export.csv"
    file.write_text(f"query_id,doc_id,label,rater\n{card['query_id']},{card['doc_id']},2,Ben\n")
    found = run("label", "add", plan, file, "--rater", "Ann", "--json").json
    assert [each["rater"] for each in found["raters"]] == ["Ann"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{query},{doc},perhaps,Ann", "A label is not a number: 'perhaps'"),
        (",{doc},1,Ann", "A label has no query_id"),
    ],
)
def test_a_bad_row_of_a_raters_file_is_named_by_its_line(run, plan, files, row, reason) -> None:
    (card,) = run("label", "next", plan, "--json").json
    ids = {"query": card["query_id"], "doc": card["doc_id"]}
    lines = ["query_id,doc_id,label,rater", "{query},{doc},1,Ann".format(**ids), row.format(**ids)]
    file = files / "export.csv"
    file.write_text("\n".join(lines) + "\n")
    before = plan.read_bytes()
    done = run("label", "add", plan, file)
    assert done.code == 2
    assert "export.csv, line 3" in done.err
    assert reason in done.err
    assert plan.read_bytes() == before


@pytest.mark.parametrize("label", ["nan", "inf", "-inf", "4"])
def test_a_label_that_is_on_no_scale_adds_nothing(run, plan, label) -> None:
    card = run("label", "next", plan, "--json").json[0]
    before = plan.read_bytes()
    done = run(
        "label", "add", plan, "--query", card["query_id"], "--doc", card["doc_id"],
        f"--label={label}",
    )  # fmt: skip
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert ("top of the scale, which is 3" in done.err) == (label == "4")
    assert plan.read_bytes() == before


def test_another_scale_midway_is_another_plan_that_knows_the_labels_so_far(run, plan, files):
    """Nothing is lost: what was labelled counts as known there."""
    truth = grades()
    cards = run("label", "next", plan, "--count", 60, "--json").json
    rows = [(c["query_id"], c["doc_id"], truth.get((c["query_id"], c["doc_id"]), 0)) for c in cards]
    given = files / "given.csv"
    pd.DataFrame(rows, columns=["query_id", "doc_id", "label"]).to_csv(given, index=False)
    run("label", "add", plan, given, "--rater", "ann")
    out, wider = files / "labels.csv", files / "wider.jsonl"
    assert run("label", "status", plan, "--out", out).code == 0
    made = run(
        "label", "plan", "--run", files / "old.trec", files / "new.trec", "--top", 4,
        "--qrels", out, "--out", wider, "--json",
    )  # fmt: skip
    assert (made.json["known"], made.json["to_label"]) == (60, 340)
    card = run("label", "next", wider, "--json").json[0]
    ids = ("--query", card["query_id"], "--doc", card["doc_id"])
    assert run("label", "add", wider, *ids, "--label", 4).code == 0
    # Its file has those that were known too, and goes back in as it came out.
    assert run("label", "status", wider, "--out", out).code == 0
    before = run("label", "status", wider, "--json").json
    assert run("label", "add", wider, out, "--json").json["ignored"] == 60
    assert run("label", "status", wider, "--json").json["estimates"] == before["estimates"]


def test_a_name_with_markup_is_a_name(run, plan) -> None:
    cards = run("label", "next", plan, "--count", 2, "--json").json
    name = "<b>Ann</b> [x](http://e) \x1b[31m\n=1+1"
    for card in cards:
        ids = ("--query", card["query_id"], "--doc", card["doc_id"])
        assert run("label", "add", plan, *ids, "--label", 1, "--rater", name).code == 0
    found = run("label", "status", plan, "--json").json["raters"]
    assert [(each["rater"], each["answers"]) for each in found] == [(name, 2)]
    told = run("label", "status", plan).out
    assert "\x1b" not in told
    assert "<b>Ann</b> [x](http://e)" in told.splitlines()[-1]


def test_texts_that_are_missing_are_counted(run, plan, files) -> None:
    cards = run("label", "next", plan, "--count", 3, "--json").json
    known = cards[:2]
    data = files / "queries.jsonl", files / "corpus.jsonl"
    for file, key in zip(data, ("query_id", "doc_id"), strict=True):
        rows = (json.dumps({"_id": card[key], "text": "words"}) for card in known)
        file.write_text("\n".join(dict.fromkeys(rows)) + "\n")
    missing = {card["doc_id"] for card in cards} - {card["doc_id"] for card in known}
    for out in ((), ("--out", files / "list.csv")):
        done = run("label", "next", plan, "--count", 3, "--data", *data, "--json", *out)
        assert done.code == 0
        said = f"Documents without a text in these files: {len(missing)} of 3."
        assert (said in done.err) == bool(missing)


def test_two_who_gave_one_and_the_same_label_have_no_kappa(run, plan) -> None:
    card = run("label", "next", plan, "--json").json[0]
    for name in ("ann", "ben"):
        ids = ("--query", card["query_id"], "--doc", card["doc_id"])
        run("label", "add", plan, *ids, "--label", 1, "--rater", name)
    told = run("label", "status", plan).out
    assert "ann and ben: no kappa, since both gave one label only on 1 pair, the same" in told


def test_a_plan_is_no_file_of_labels_and_says_how_to_get_one(run, plan, files) -> None:
    for arguments in (("evaluate", plan, files / "old.trec"), ("check", plan, files / "old.trec")):
        done = run(*arguments)
        assert done.code in (1, 2)
        assert "rankdash label status PLAN --out labels.csv" in done.err
