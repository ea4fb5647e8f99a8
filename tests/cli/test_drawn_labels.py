"""Labels that came by draws, as `label status --out` wrote them, on every surface of files."""

import json
import re

import pandas as pd
import pytest

import rankdash as rd
from tests.sets import SAMPLE

QUERIES, DOCS, DONE = 40, 10, 160


@pytest.fixture(scope="module")
def truth():
    table = pd.read_csv(SAMPLE / "qrels.tsv", sep="\t", dtype=str)
    return {(q, d): s for q, d, s in table.itertuples(index=False)}


@pytest.fixture
def files(tmp_path, run, truth):
    """Two rankings of 40 queries, a plan, and the file of its labels after 160 answers, one of them
    "cannot tell"."""
    lists = {}
    for line in (SAMPLE / "initial.trec").read_text().splitlines():
        query, _, doc, *_ = line.split()
        lists.setdefault(query, []).append(doc)
    lists = dict([each for each in lists.items() if len(each[1]) >= DOCS][:QUERIES])
    for name, step in (("old", 1), ("new", -1)):
        rows = (
            f"{query} Q0 {doc} {rank} {100 - rank} {name}\n"
            for query, docs in lists.items()
            for rank, doc in enumerate(docs[:DOCS][::step], 1)
        )
        (tmp_path / f"{name}.trec").write_text("".join(rows))
    plan(run, tmp_path)
    label(run, tmp_path, truth, DONE)
    return tmp_path


def plan(run, folder, *options) -> None:
    made = run(
        "label", "plan", "--run", folder / "old.trec", folder / "new.trec", "--top", 3,
        "--out", folder / "plan.jsonl", *options,
    )  # fmt: skip
    assert made.code == 0, made.err


def label(run, folder, truth, count) -> None:
    cards = run("label", "next", folder / "plan.jsonl", "--count", count, "--json").json
    rows = [
        (c["query_id"], c["doc_id"], truth.get((c["query_id"], c["doc_id"]), "0")) for c in cards
    ]
    rows[3] = (*rows[3][:2], "cannot tell")
    table = pd.DataFrame(rows, columns=["query_id", "doc_id", "label"]).assign(rater="ann")
    table.to_csv(folder / "answers.csv", index=False)
    assert run("label", "add", folder / "plan.jsonl", folder / "answers.csv").code == 0
    done = run("label", "status", folder / "plan.jsonl", "--out", folder / "labels.csv")
    assert done.code == 0, done.err


def status(run, folder):
    return run("label", "status", folder / "plan.jsonl", "--json").json


def test_evaluate_and_compare_say_the_estimate_of_the_plan(run, files) -> None:
    (wanted,) = status(run, files)["estimates"]
    evaluated = run(
        "evaluate", files / "labels.csv", files / "old.trec", files / "new.trec", "--json"
    )
    compared = run(
        "compare", "--qrels", files / "labels.csv", "--baseline", files / "old.trec",
        "--challenger", files / "new.trec", "--json",
    )  # fmt: skip
    for done in (evaluated, compared):
        assert done.code == 0, done.err
        assert "Labels that came by draws with a known probability: 160." in done.err
        (found,) = done.json["labelling"]["estimates"]
        assert found == {
            name: pytest.approx(value) if isinstance(value, float) else value
            for name, value in wanted.items()
        }
        assert (found["labels"], found["pairs"]) == (DONE, QUERIES * DOCS)


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv", "json"])
@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_sampled_labels_give_the_estimate_and_no_mean_count_or_verdict(
    run, files, command, form
) -> None:
    """As the gate has it: a mean over them counts documents that were not drawn as not relevant."""
    ranked = (files / "old.trec", files / "new.trec")
    arguments = {
        "evaluate": (files / "labels.csv", *ranked, "--metrics", "ndcg@10,hit@10"),
        "compare": ("--qrels", files / "labels.csv", "--baseline", ranked[0],
                    "--challenger", ranked[1], "--metrics", "ndcg@10,hit@10"),
    }[command]  # fmt: skip
    done = run(command, *arguments, "--format", form)
    assert done.code == 0, done.err
    if form != "json":
        for word in ("NDCG", "ndcg", "helped", "hurt", "detectable"):
            assert word not in done.out
    if form == "json":
        assert done.json.get("comparisons", []) == []
        assert done.json.get("systems", {}) == {}
        assert done.json.get("leaderboard", []) == []
        if command == "compare":
            assert done.json["headline"]["new"]["by"] == "estimate"
            assert done.json["headline"]["new"]["kind"] == "worse"
    elif form == "csv":
        head, row = done.out.splitlines()
        cells = dict(zip(head.split(","), row.split(","), strict=True))
        (wanted,) = status(run, files)["estimates"]
        assert cells["state"] == "settled"
        for name in ("difference", "low", "high", "relative_low", "relative_high"):
            assert float(cells[name]) == pytest.approx(wanted[name])
        assert int(cells["conclusive_at"]) == wanted["conclusive_at"] <= DONE
    else:
        assert "estimated from 160 of 400 labels; conclusive after" in done.out
        assert "Relative to old: " in done.out
        assert "means, counts of queries and rank shifts" in done.out


def test_labels_that_did_not_come_by_draws_say_nothing_of_them(run, files) -> None:
    plain = files / "plain.csv"
    table = pd.read_csv(files / "labels.csv").drop(columns=["draw", "probability"])
    table[table["label"] != "cannot tell"].to_csv(plain, index=False)
    done = run("evaluate", plain, files / "old.trec", files / "new.trec", "--json")
    assert done.json["labelling"] is None
    assert "draws" not in done.err


def gate(run, files, *conditions, swapped=False):
    sides = ("new", "old") if swapped else ("old", "new")
    return run(
        "gate", "--qrels", files / "labels.csv", "--baseline", files / f"{sides[0]}.trec",
        "--challenger", files / f"{sides[1]}.trec", *conditions, "--json",
    )  # fmt: skip


def test_the_gate_goes_by_the_limit_that_holds_at_every_look(run, files) -> None:
    (wanted,) = status(run, files)["estimates"]
    done = gate(run, files, "--min-gain", "dcg@10=0", swapped=True)
    assert done.code == 0, done.err
    (found,) = done.json["conditions"]
    assert (found["passed"], found["estimated"]) == (True, True)
    assert found["value"] == pytest.approx(-wanted["difference"])
    # One-sided at 95 %, so narrower than the interval of status.
    assert -wanted["difference"] > found["low"] > -wanted["high"] > 0
    (estimate,) = done.json["labelling"]["estimates"]
    assert (estimate["labels"], estimate["pairs"]) == (DONE, 400)
    limit = (found["low"] + found["value"]) / 2
    unproven = gate(run, files, "--min-gain", f"dcg@10={limit}", swapped=True)
    assert unproven.code == 1
    assert unproven.json["conditions"][0]["reason"] == "unproven"
    assert "More labels would tell." in unproven.json["conditions"][0]["message"]
    missed = gate(run, files, "--min-gain", "dcg@10=0")
    assert (missed.code, missed.json["conditions"][0]["reason"]) == (1, "missed")
    assert any("hold at every look" in note for note in done.json["notes"])
    assert any("estimated from 160 of 400 labels" in note for note in done.json["notes"])


def test_the_gate_counts_no_queries_by_sampled_labels(run, files) -> None:
    """Of some queries the documents that were drawn are not relevant."""
    done = gate(run, files, "--min-gain", "dcg@10=-9", "--min", "dcg@10=0")
    assert done.json["labelling"]["estimates"]
    assert not any("Excluded" in note for note in done.json["notes"])


@pytest.mark.parametrize(
    "conditions",
    [("--min", "dcg@10=0"), ("--max-hurt", "dcg@10=1"), ("--min-gain", "ndcg@10=-1"),
     ("--min-gain", "precision@10=-1")],
)  # fmt: skip
def test_what_these_labels_do_not_say_lets_nothing_through(run, files, conditions) -> None:
    done = gate(run, files, *conditions)
    assert done.code == 1
    (found,) = done.json["conditions"]
    assert (found["reason"], found["value"], found["passed"]) == ("drawn", None, False)
    assert "Label all documents" in found["message"]


def test_rankings_that_the_labels_were_not_drawn_for_are_not_let_through(run, files) -> None:
    old = (files / "old.trec").read_text()
    (files / "new.trec").write_text(re.sub(r" 10 90 old", " 10 99.5 old", old))
    done = gate(run, files, "--min-gain", "dcg@10=-9")
    assert (done.code, done.json["conditions"][0]["reason"]) == (1, "drawn")
    assert done.json["labelling"]["estimates"] == []
    assert any("for other rankings or another metric" in note for note in done.json["notes"])


def test_too_few_labels_let_nothing_through(run, files, truth) -> None:
    (files / "plan.jsonl").unlink()
    plan(run, files)
    label(run, files, truth, 30)
    done = gate(run, files, "--min-gain", "dcg@10=-9")
    assert (done.code, done.json["conditions"][0]["reason"]) == (1, "too_early")
    assert done.json["conditions"][0]["message"].startswith("There are too few labels")


def test_with_every_label_the_gate_decides_as_always(run, files, truth) -> None:
    (files / "plan.jsonl").unlink()
    plan(run, files)
    label(run, files, truth, 400)
    table = pd.read_csv(files / "labels.csv")
    table["label"] = table["label"].replace("cannot tell", "0")
    table.to_csv(files / "labels.csv", index=False)
    done = gate(run, files, "--min-gain", "ndcg@10=-1", "--max-hurt", "ndcg@10=1")
    assert done.code == 0, done.err
    assert done.json["labelling"] is None
    assert "no estimate" not in done.err
    assert not any(each["estimated"] for each in done.json["conditions"])


def test_with_every_label_compare_and_status_have_one_number_by_one_convention(
    run, files, truth
) -> None:
    (files / "plan.jsonl").unlink()
    plan(run, files)
    label(run, files, truth, 400)
    (exact,) = status(run, files)["estimates"]
    assert exact["state"] == "complete"
    told = pd.read_csv(files / "labels.csv")
    told["label"] = told["label"].replace("cannot tell", "0")
    told.to_csv(files / "labels.csv", index=False)
    told = run("label", "status", files / "plan.jsonl").out
    assert f"exact for these {QUERIES} queries. One without a relevant document counts as 0" in told
    done = run(
        "compare", "--qrels", files / "labels.csv", "--baseline", files / "old.trec",
        "--challenger", files / "new.trec", "-m", "dcg@10", "--no-relevant", "count", "--json",
    )  # fmt: skip
    [_base, new] = done.json["comparisons"]
    assert new["delta"] == pytest.approx(exact["difference"])
    assert new["paired"] == QUERIES
    assert "While documents lack a label" in done.err


def test_every_form_of_the_gate_says_it(run, files) -> None:
    for form in ("text", "markdown", "junit"):
        told = run(
            "gate", "--qrels", files / "labels.csv", "--baseline", files / "new.trec",
            "--challenger", files / "old.trec", "--min-gain", "dcg@10=0", "--format", form,
        )  # fmt: skip
        assert told.code == 0
        assert "estimated from 160 of 400 labels" in told.out


def test_the_report_says_it_above_all(run, files) -> None:
    out = files / "report.html"
    done = run(
        "report", "--qrels", files / "labels.csv", "--baseline", files / "old.trec",
        "--challenger", files / "new.trec", "--out", out, "--preset", "decision",
    )  # fmt: skip
    assert done.code == 0, done.err
    head = out.read_text().partition("</header>")[2][:600]
    assert "estimated from 160 of 400 labels; conclusive after" in head
    assert "means, counts of queries and rank shifts" in head


def test_the_report_of_sampled_labels_is_the_estimate_with_its_break_even(run, files) -> None:
    """No count of queries, no mean, no reason: they would come from a sample of documents."""
    out = files / "report.html"
    done = run(
        "report", "--qrels", files / "labels.csv", "--baseline", files / "new.trec",
        "--challenger", files / "old.trec", "--out", out,
    )  # fmt: skip
    assert done.code == 0, done.err
    text = out.read_text().partition("</header>")[2]
    assert "Relative to new: +" in text
    assert "old is better than new: DCG@10 +" in text
    assert "Next step" in text
    assert "pays off" in text or "Break-even only" in text
    for word in ("NDCG", "queries have a relevant document", "Queries helped and hurt", "helped"):
        assert word not in text
    assert [part.partition('"')[0] for part in text.split('<section id="')[1:]] == [
        "decision", "latency", "cost", "data", "origin",
    ]  # fmt: skip


def test_in_python_the_estimate_is_a_part_of_the_study(run, files) -> None:
    (wanted,) = status(run, files)["estimates"]
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
    assert "estimated from 160 of 400 labels" in target.read_text()


def test_a_file_without_draws_is_refused_in_python(files) -> None:
    with pytest.warns(UserWarning):
        data = rd.read(SAMPLE / "qrels.tsv", SAMPLE / "initial.trec")
    with pytest.raises(rd.RankdashError, match="does not say in which draw"):
        rd.study_of(data, (), drawn=SAMPLE / "qrels.tsv")


def test_the_file_goes_back_into_a_plan_with_raters_and_what_cannot_be_told(run, files) -> None:
    before = status(run, files)
    (files / "plan.jsonl").unlink()
    plan(run, files)
    added = run("label", "add", files / "plan.jsonl", files / "labels.csv", "--json")
    assert added.code == 0, added.err
    after = status(run, files)
    for name in ("estimates", "raters", "cannot_tell"):
        assert after[name] == before[name]
    # A file of labels beside the rankings says what is known.
    known = files / "known.jsonl"
    made = run(
        "label", "plan", "--run", files / "old.trec", files / "new.trec", "--qrels",
        files / "labels.csv", "--out", known, "--json",
    )  # fmt: skip
    assert made.json["known"] == DONE - 1


def test_labels_go_out_as_qrels_of_trec_without_what_cannot_be_told(run, files) -> None:
    out = files / "labels.qrels"
    assert run("label", "status", files / "plan.jsonl", "--out", out).code == 0
    rows = [line.split() for line in out.read_text().splitlines()]
    table = pd.read_csv(files / "labels.csv", dtype=str)
    told = table[table["label"] != "cannot tell"]
    assert len(rows) == len(told) == DONE - 1
    assert {(q, d): float(g) for q, _, d, g in rows} == {
        (q, d): float(g)
        for q, d, g in told[["query_id", "doc_id", "label"]].itertuples(index=False)
    }
    # They say nothing of draws, so nothing is estimated, and the word for it is missing labels.
    done = run("evaluate", out, files / "old.trec", files / "new.trec", "--json")
    assert (done.code, done.json["labelling"]) == (0, None)
    assert 0 < done.json["systems"]["old"]["mean"]["judged@10"] < 1


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_a_judges_grades_are_the_guess_for_labels_that_were_drawn(run, files, truth, share) -> None:
    """As `label status` has it, whether or not the judge graded all of them."""
    lists = [line.split()[::2] for line in (files / "old.trec").read_text().splitlines()]
    pairs = [(query, doc) for query, doc, *_ in lists]
    grades = [min(int(truth.get(pair, "0")) + (n % 5 == 0), 3) for n, pair in enumerate(pairs)]
    table = pd.DataFrame(pairs, columns=["query_id", "doc_id"]).assign(grade=grades)
    table = table.sample(frac=share, random_state=1)
    table.to_csv(files / "grades.csv", index=False)
    own = run("label", "status", files / "plan.jsonl", "--judge", files / "grades.csv", "--json")
    (wanted,) = own.json["estimates"]
    options = [
        "--qrels", files / "labels.csv", "--baseline", files / "old.trec",
        "--challenger", files / "new.trec",
    ]  # fmt: skip
    with_judge, without = (
        run("compare", *options, *judge, "--json").json["labelling"]
        for judge in (["--judge", files / "grades.csv"], [])
    )
    (found,), (plain,) = with_judge["estimates"], without["estimates"]
    for name in ("difference", "low", "high", "needed", "saved"):
        assert found[name] == pytest.approx(wanted[name], abs=1e-12)
    assert found["low"] != plain["low"]
    assert plain["saved"] is None
    assert found["saved"] is not None
    text = run("compare", *options, "--judge", files / "grades.csv").out
    assert ("the result rests on people's labels." in text) == bool(found["saved"])
    # The gate decides by it too, and not by a judge that these labels cannot correct.
    done = run("gate", *options, "--judge", files / "grades.csv", "--min-gain", "dcg@10=-1",
        "--confidence", 0.975, "--format", "json")  # fmt: skip
    (condition,) = done.json["conditions"]
    assert condition["estimated"]
    assert condition["low"] == pytest.approx(found["low"], abs=1e-12)
