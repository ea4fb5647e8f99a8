"""`judge run`: killed, or with a full disk; other cases are in `approved/cli/judge*.txt`."""

import csv
import itertools
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.full_disk import room_for

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
def judge(run, data, server, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)

    def command(*arguments, yes=("--yes",)):
        return run(
            "judge", "run", "--data", data, "--set", f"base_url={server.url}", "--set",
            "key_variable=none", "--set", "model=tiny", "--set", "retries=0", *yes, *arguments,
        )  # fmt: skip

    return command


def rows_of(path):
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_an_end_that_is_near_has_no_seconds(judge, tmp_path, monkeypatch):
    ticks, real = itertools.count(step=10.0), time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + next(ticks))
    done = judge("--out", tmp_path / "grades.csv")
    assert "12 of 12 pairs, 0 without a grade, almost done\n" in done.err


@pytest.mark.parametrize("ending", [".csv", pytest.param(".jsonl", marks=pytest.mark.thorough)])
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
    rows = [row["billed"] for row in rows_of(out)]
    billed = [json.loads(each) if isinstance(each, str) else each for each in rows]
    total = sum(each["billed"]["prompt_tokens"] for each in billed)
    # The server counts four characters as a token.
    sent = [body["messages"] for _, _, body in server.seen]
    prompts = ["".join(message["content"] for message in messages) for messages in sent]
    assert total == pytest.approx(sum(len(each) // 4 for each in prompts), rel=0.1)
    assert sum(each["calls"] for each in billed) == len(server.seen)
    assert sum(each["estimated"] for each in billed) == 6
    assert f"Calls: {len(server.seen)}. Billed: at least " in done.err
    assert "12 graded, 0 without a grade" in done.err


@pytest.mark.parametrize(("ending", "room"), [(".csv", 1_000), (".jsonl", 2_500)])
def test_of_grades_that_fill_the_disk_none_is_half_or_reported(
    judge, server, tmp_path, ending, room
):
    out = tmp_path / f"grades{ending}"
    with room_for(room):
        done = judge("--out", out, "--set", "concurrency=1")
    assert done.code == 2
    assert f"error: {out}: Not enough disk space to write the file" in done.err
    assert "graded" not in done.err
    kept = [row for row in rows_of(out) if row["kind"] != "begun"]
    assert all(float(row["grade"]) == GRADES[row["doc_id"]] for row in kept)
    assert len(kept) < 12
    asked = len(server.seen)
    done = judge("--out", out)
    assert done.code == 0, done.err
    assert "12 graded, 0 without a grade" in done.err
    # Grades in the file are not requested again.
    assert len(server.seen) == asked + 12 - len(kept)
    assert len(rows_of(out)) == 12
