"""`judge run` against a chat endpoint on 127.0.0.1; what it refuses, and agreement, are in
`approved/cli/judge.txt`."""

import csv
import itertools
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rankdash.cli.judge import run as run_judge
from tests.full_disk import room_for
from tests.rerankers.loopback import running

ROOT = Path(__file__).parents[2]
DOCUMENTS = {"d1": "how to return it", "d2": "return", "d3": "delivery", "d4": '=HYPERLINK("x")'}
ROWS = "query_id,query,doc_id,document,label,score\n" + "".join(
    f'q{q},how to return it,{doc},"{text.replace(chr(34), chr(34) * 2)}",{int(doc == "d1")},{n}\n'
    for q in range(3)
    for n, (doc, text) in enumerate(DOCUMENTS.items())
)
GRADES = {"d1": 3.0, "d2": 1.0, "d3": 0.0, "d4": 0.0}


@pytest.fixture
def data(tmp_path):
    file = tmp_path / "shop.csv"
    file.write_text(ROWS)
    return file


@pytest.fixture
def server():
    with running() as made:
        yield made


@pytest.fixture
def judge(run, data, server, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)

    def command(*arguments, yes=("--yes",)):
        return run(
            "judge", "run", "--data", data, "--set", f"base_url={server.url}", "--set",
            "key_variable=none", "--set", "model=tiny", "--set", "retries=0", *yes, *arguments,
        )  # fmt: skip

    return command


def ranked(folder, **orders):
    """--run with a file of each order of the documents of all queries."""
    for name, docs in orders.items():
        rows = (f"q{q} Q0 {doc} {n} {9 - n} x\n" for q in range(3)
                for n, doc in enumerate(docs.split()))  # fmt: skip
        (folder / f"{name}.trec").write_text("".join(rows))
    return ["--run", *(folder / f"{name}.trec" for name in orders)]


def rows_of(path):
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def prompts_of(server):
    """The tokens of all prompts that were sent, as the server counts them."""
    return sum(
        len("".join(message["content"] for message in body["messages"])) // 4
        for _, _, body in server.seen
    )


def billed_in(path):
    billed = [row["billed"] for row in rows_of(path)]
    return [json.loads(each) if isinstance(each, str) else each for each in billed]


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_grades_reasons_and_the_bill_are_written(judge, server, tmp_path, ending):
    out = tmp_path / f"grades{ending}"
    done = judge("--out", out, "--name", "Mine", "--set", "price_in=1", "--set", "price_out=1")
    assert done.code == 0, done.err
    rows = rows_of(out)
    pairs = [(f"q{q}", doc) for q in range(3) for doc in sorted(DOCUMENTS)]
    assert sorted((row["query_id"], row["doc_id"]) for row in rows) == pairs
    assert {(row["doc_id"], float(row["grade"])) for row in rows} == set(GRADES.items())
    first = rows[0]
    assert (first["judge"], first["model"], str(first["top"])) == ("Mine", "tiny", "3")
    assert first["reason"].startswith("Shared words")
    assert "12 pairs of query and document from 1 ranking.\n" in done.err
    assert f"About 12 calls to {server.url[7:]}" in done.err
    assert "about $0." in done.err
    assert "Calls: 12. Billed: " in done.err
    tokens = [each["billed"]["prompt_tokens"] for each in billed_in(out)]
    assert sum(tokens) == prompts_of(server)
    assert "12 graded, 0 without a grade. Written: " in done.err


def test_the_pool_is_that_of_the_rankings_within_the_depth(judge, server, tmp_path):
    out, runs = tmp_path / "grades.jsonl", ranked(tmp_path, a="d1 d2 d3", b="d3 d1 d2")
    assert judge(*runs, "--depth", 1, "--out", out).code == 0
    assert {row["doc_id"] for row in rows_of(out)} == {"d1", "d3"}
    assert len(server.seen) == 6
    # A deeper pool asks for what is new.
    assert judge(*runs, "--depth", 2, "--out", out).code == 0
    assert len(server.seen) == 9
    assert len(rows_of(out)) == 9
    sampled = tmp_path / "sample.jsonl"
    assert judge(*runs, "--sample", 2, "--out", sampled).code == 0
    assert len({row["query_id"] for row in rows_of(sampled)}) == 2
    assert len(rows_of(sampled)) == 6


def test_a_sample_takes_queries_with_labels_first(run, server, tmp_path):
    """A judge is corrected on queries that both looked at."""
    file = tmp_path / "part.csv"
    labelled = ("q7", "q31", "q38")
    file.write_text(
        "query_id,query,doc_id,document,label,score\n"
        + "".join(
            f"q{q},how to {q},d{n},document {n},{1 if f'q{q}' in labelled else ''},{n}\n"
            for q in range(40)
            for n in range(3)
        )
    )
    out = tmp_path / "grades.jsonl"
    server_settings = ("--set", f"base_url={server.url}", "--set", "key_variable=none")
    options = ("--data", file, *server_settings, "--sample", 5, "--yes", "--out", out)
    done = run("judge", "run", *options)
    assert done.code == 0, done.err
    asked = {row["query_id"] for row in rows_of(out)}
    assert len(asked) == 5
    assert asked > {*labelled}


def test_tokens_are_whole_and_an_end_that_is_near_has_no_seconds(
    judge, server, tmp_path, monkeypatch
):
    ticks = itertools.count(step=10.0)
    monkeypatch.setattr(run_judge, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    done = judge("--out", tmp_path / "grades.csv")
    assert re.search(r", [0-9,]+ tokens read and [0-9,]+ written, ", done.err), done.err
    assert "12 of 12 pairs, 0 without a grade, almost done\n" in done.err
    assert " s left" not in done.err


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_what_fails_has_no_grade_and_is_asked_again(judge, server, tmp_path, ending):
    out = tmp_path / f"grades{ending}"
    server.fail({}, {"status": 500}, {"status": 429}, {"html": True})
    done = judge("--out", out, "--set", "concurrency=1")
    assert done.code == 1
    assert "9 graded, 3 without a grade (" in done.err
    for kind in ("rate_limit 1", "server_error 1", "unreadable 1"):
        assert kind in done.err
    lost = [row for row in rows_of(out) if row["grade"] in ("", None)]
    assert len(lost) == 3
    assert all(row["error"] for row in lost)
    # What a program that died left unfinished.
    with out.open("a") as stream:
        stream.write('q0,d1,"half' if ending == ".csv" else '{"query_id": "q0", "gra')
    again = judge("--out", out)
    assert again.code == 0, again.err
    assert "12 pairs of query and document from 1 ranking, 9 of them asked before." in again.err
    assert "Calls: 15, 3 without an answer." in again.err
    assert len(server.seen) == 15
    rows = rows_of(out)
    assert {(row["doc_id"], float(row["grade"])) for row in rows} == set(GRADES.items())
    assert len(rows) == 12
    whole = judge("--out", out, yes=())
    assert whole.code == 0, "nothing is left to ask, so that nothing is to be agreed to"
    assert len(server.seen) == 15


def test_repeats_are_kept(judge, server, tmp_path):
    grades = iter("0123" * 9)
    server.reply = lambda body: (f"So.\nGrade: {next(grades)}", {})
    out = tmp_path / "grades.jsonl"
    chosen = ("--set", "concurrency=1", "--set", "combine=majority")
    assert judge("--out", out, "--repeats", 3, *chosen).code == 0
    rows = rows_of(out)
    assert len(server.seen) == 36
    assert [row["grades"] for row in rows][:2] == [[0.0, 1.0, 2.0], [3.0, 0.0, 1.0]]
    assert [row["grade"] for row in rows][:2] == [0.0, 0.0]
    assert [row["calls"] for row in rows] == [3] * 12


def test_grades_from_fewer_answers_than_asked_are_counted(judge, server, tmp_path):
    out = tmp_path / "grades.jsonl"
    # One answer of the first pair fails, and two of the second.
    server.fail({"html": True}, {}, {}, {"status": 500}, {"html": True})
    done = judge("--out", out, "--repeats", 3, "--set", "concurrency=1")
    assert "11 graded, 1 without a grade (" in done.err
    assert "1 of them graded from fewer answers than asked: others failed or could" in done.err
    again = judge("--out", out, "--repeats", 3)
    assert "12 graded, 0 without a grade." in again.err
    assert "1 of them graded from fewer answers than asked" in again.err


def test_templates_and_guidelines(judge, server, tmp_path):
    own, guide = tmp_path / "own.txt", tmp_path / "guide.md"
    own.write_text("Q: {query}\nD: {document}\n{guidelines}\nReason, then Grade: N")
    guide.write_text("Only refunds.")
    server.reply = lambda body: ("So.\nGrade: 1", {})
    for name in ("binary", own):
        out = tmp_path / f"{len(server.seen)}.jsonl"
        done = judge("--out", out, "--template", name, "--guidelines", guide)
        assert done.code == 0, done.err
    binary, mine = (server.seen[n][2]["messages"][1]["content"] for n in (0, 12))
    assert "1: relevant." in binary
    assert mine.startswith("Q: <query>")
    assert all("<guidelines>\nOnly refunds.\n</guidelines>" in each for each in (binary, mine))
    assert {row["top"] for row in rows_of(tmp_path / "0.jsonl")} == {1}


@pytest.mark.parametrize("change", [("--set", "model=other"), ("--template", "binary")])
def test_a_file_has_the_grades_of_one_judge(judge, server, tmp_path, change):
    out = tmp_path / "grades.csv"
    assert judge("--out", out).code == 0
    before = out.read_bytes()
    done = judge("--out", out, *change)
    assert done.code == 2
    assert "grades.csv, line 2" in done.err
    assert "grades of another judge: model tiny" in done.err
    assert out.read_bytes() == before


def test_a_judge_without_one_grade_is_refused_and_its_file_goes_on(judge, server, tmp_path):
    server.reply = lambda body: ("评分：2", {})
    out = tmp_path / "grades.csv"
    done = judge("--out", out)
    assert done.code == 2
    assert "No pair was graded. The first reason: the last line holds no grade" in done.err
    server.reply = None
    assert judge("--out", out).code == 0


def test_an_endpoint_that_goes_away_loses_no_grade(judge, server, tmp_path):
    def reply(body):
        if len(server.seen) >= 5:
            server.key = "sk-new"
        return "So.\nGrade: 1", {}

    server.reply = reply
    out = tmp_path / "grades.csv"
    done = judge("--out", out, "--set", "concurrency=1")
    assert done.code == 2
    assert "refused the request (401)" in done.err
    assert len(rows_of(out)) == 5
    server.key, server.reply = "", None
    assert judge("--out", out).code == 0
    assert len(server.seen) == 5 + 1 + 7


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_answers_without_a_count_of_tokens_cost_at_least_what_their_texts_do(
    judge, server, tmp_path, ending
):
    server.counts_tokens = False
    out = tmp_path / f"grades{ending}"
    done = judge("--out", out, "--set", "price_in=1", "--set", "price_out=1")
    assert done.code == 0, done.err
    assert "Calls: 12. Billed: at least " in done.err
    assert "Calls whose tokens are estimated" in done.err and "before the answer: 12\n" in done.err
    kept = billed_in(out)
    told = sum(each["billed"]["prompt_tokens"] for each in kept)
    assert told == pytest.approx(prompts_of(server), rel=0.1)
    assert [each["estimated"] for each in kept] == [1] * 12
    assert all(each["billed"]["completion_tokens"] > 0 < each["billed"]["dollars"] for each in kept)
    server.counts_tokens = True
    assert "at least" not in judge("--out", tmp_path / f"other{ending}").err.partition("Calls")[2]


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_what_was_asked_when_the_command_was_killed_stays_in_its_cost(
    judge, server, data, tmp_path, ending
):
    out, whole = tmp_path / f"grades{ending}", 0
    for answered in (2, 3):
        whole += answered
        server.fail(*[{}] * answered, *[{"hang": 600.0}] * 3)
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "rankdash", "judge", "run", "--data", data, "--out", out),
                *("--set", f"base_url={server.url}", "--set", "key_variable=none", "--yes"),
                *("--set", "model=tiny", "--set", "concurrency=3"),
            ],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
        )
        asked, kept = len(server.seen) + answered + 3, 0
        while len(server.seen) < asked or kept < whole:
            time.sleep(0.02)
            assert process.poll() is None
            content = out.read_text() if out.exists() else ""
            kept = len(set(re.findall(r"q\d.{1,20}?d\d(?=.*Shared words)", content)))
        process.kill()
        process.wait()
        server.faults.clear()
    done = judge("--out", out)
    assert done.code == 0, done.err
    billed = billed_in(out)
    total = sum(each["billed"]["prompt_tokens"] for each in billed)
    assert total == pytest.approx(prompts_of(server), rel=0.1)
    assert sum(each["calls"] for each in billed) == len(server.seen)
    assert sum(each["estimated"] for each in billed) == 6
    assert f"Calls: {len(server.seen)}. Billed: at least " in done.err
    assert "12 graded, 0 without a grade" in done.err
    # The same from the file, without another call.
    again = judge("--out", out)
    assert f"Calls: {len(server.seen)}. Billed: at least " in again.err


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
@pytest.mark.parametrize("room", [1_000, 1_500, 2_500])
def test_of_grades_that_fill_the_disk_none_is_half_or_reported(
    judge, server, tmp_path, ending, room
):
    out = tmp_path / f"grades{ending}"
    with room_for(room):
        done = judge("--out", out, "--set", "concurrency=1")
    assert done.code == 2
    assert f"error: {out}: There is no room left on the disk to write it" in done.err
    assert "graded" not in done.err
    kept = [row for row in rows_of(out) if row["kind"] != "begun"]
    assert all(float(row["grade"]) == GRADES[row["doc_id"]] for row in kept)
    assert len(kept) < 12
    asked = len(server.seen)
    done = judge("--out", out)
    assert done.code == 0, done.err
    assert "12 graded, 0 without a grade" in done.err
    # Grades that are in the file are not paid for again.
    assert len(server.seen) == asked + 12 - len(kept)
    assert len(rows_of(out)) == 12


def test_the_file_reads_as_a_judge_for_label_status(judge, run, tmp_path, server):
    plan, out = tmp_path / "plan.jsonl", tmp_path / "grades.csv"
    runs = ranked(tmp_path, a="d1 d2 d3", b="d3 d2 d1")
    server.fail({}, {"status": 500})
    assert judge(*runs, "--out", out, "--set", "concurrency=1").code == 1
    assert run("label", "plan", *runs, "--top", 3, "--out", plan).code == 0
    done = run("label", "status", plan, "--judge", out, "--json")
    assert done.code == 0, done.err


def test_agreement_reads_the_scale_of_a_judge_run(judge, run, tmp_path, data):
    out = tmp_path / "grades.csv"
    assert judge("--out", out).code == 0
    (tmp_path / "people.csv").write_text("query_id,doc_id,label\nq0,d1,1\nq0,d2,0\nq1,d1,1\n")
    done = run("judge", "agreement", "--qrels", tmp_path / "people.csv", "--judge", out, "--json")
    (found,) = done.json
    # People's labels are 0 and 1, the judge's scale goes to 3.
    assert found["binary"] is True
    assert (found["overall"]["pairs"], found["overall"]["over"]) == (3, 0.0)
    # Half of the way from 0 to 1 is half of the way from 0 to 3.
    assert (found["threshold"], found["grade_threshold"]) == (1.0, 2)
    assert (found["overall"]["kappa"], found["overall"]["kappa_low"]) == (None, None)
    text = run("judge", "agreement", "--qrels", tmp_path / "people.csv", "--judge", out).out
    assert "\nkappa: not of fewer than 10 pairs\n" in text
    other = tmp_path / "other.csv"
    other.write_text("query_id,doc_id,label\nq0,d9,1\n")
    done = run("judge", "agreement", "--qrels", other, "--judge", out)
    assert done.code == 2
    assert "graded none of the 1 labelled pairs" in done.err
