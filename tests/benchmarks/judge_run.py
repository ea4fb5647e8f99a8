"""A judge of many pairs through a chat endpoint that fails, with a worker that is killed.

    python -m tests.benchmarks.judge_run [PAIRS] [KILLS]

One in twenty of the pairs always fails, in one of five ways: 429, 500, a timeout, an answer without
a grade, an answer in another language. Prints the outcomes, and compares the bill in the workspace
with the server's count.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.runs.jobs import WorkerProcess
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.judges import MOST_UNKEPT, JudgeRow, StoredJudges
from rankdash.features.judge.asking import JudgeRequest, submit
from tests.rerankers.loopback import Server, running

# Far longer than an answer takes on a busy machine.
READ_S = 4.0
# The time of an answer, so that a worker is killed long before the judge is done.
SLOW = {"slow": 0.03}
A_QUERY = 20
SCORES = list(range(A_QUERY, 0, -1))
FAILS = {
    "rate_limit": {"status": 429, "headers": {"retry-after-ms": "5"}},
    "server_error": {"status": 500},
    "time_out": {"hang": READ_S + 1, "cut": True},
    "unreadable": "I cannot judge that.",
    "language": "文档回答了查询。\n评分：2",
}
ONE_IN = 100


@dataclass(frozen=True)
class Outcome:
    """The result of a trial. row, failures, grades: of the workspace. expected: kind of failure →
    pairs. answered: number of answers of the server per prompt. tokens: of each prompt, by the
    server."""

    row: JudgeRow
    failures: dict[str, int]
    grades: pd.DataFrame
    expected: Counter[str]
    answered: Counter[str]
    tokens: dict[str, int]
    seconds: float

    @property
    def billed(self) -> float:
        return self.row.usage["billed"]["prompt_tokens"]

    @property
    def answered_tokens(self) -> int:
        """Tokens by the server's count."""
        return sum(self.tokens[prompt] * times for prompt, times in self.answered.items())

    @property
    def lost(self) -> int:
        """Number of answers that a worker had not stored when it was killed."""
        usage = self.row.usage
        return self.answered.total() - (usage["calls"] - usage["estimated"] - usage["failed"])


def fate(prompt: str) -> str:
    """Return the kind of failure of a prompt; "" for nearly all."""
    place = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4], "big")
    return dict(enumerate(FAILS)).get(place % ONE_IN, "")


def trial(home: Path, pairs: int, kills: int) -> Outcome:
    """Judge `pairs` pairs with a worker that is killed `kills` times."""
    workspace = Workspace.open(home)
    dataset = _dataset(pairs // A_QUERY)
    workspace.save_dataset(dataset)
    rows = StoredJudges(workspace)
    with running() as server:
        answered, tokens, asked = _misbehave(server)
        settings = {
            "model": "tiny", "base_url": server.url, "key_variable": "none", "retries": 1,
            "read_s": READ_S, "concurrency": 16,
        }  # fmt: skip
        every = [
            (query, doc)
            for query in dataset.queries["query_id"]
            for doc in dataset.candidates.documents_of(query)[0]
        ]
        started = time.monotonic()
        judge_id = submit(
            workspace, JudgeRequest(dataset.id, settings, ["first stage"], A_QUERY, every)
        )
        for turn in range(kills):
            worker = WorkerProcess(workspace)
            worker.ensure()
            _wait(rows, judge_id, (turn + 1) * pairs // (kills + 3))
            os.kill(worker.pid, signal.SIGKILL)
            worker.stop()
            rows.resume(judge_id)
        worker = WorkerProcess(workspace)
        worker.ensure()
        _wait(rows, judge_id, pairs)
        worker.stop()
        return Outcome(
            rows.row(judge_id),
            rows.failures(judge_id),
            rows.grades(judge_id),
            Counter(kind for kind in map(fate, asked) if kind),
            answered,
            tokens,
            time.monotonic() - started,
        )


def _misbehave(server: Server) -> tuple[Counter[str], dict[str, int], set[str]]:
    """Return the server's answers, the tokens of each prompt, and all prompts it received."""
    answered: Counter[str] = Counter()
    tokens: dict[str, int] = {}
    asked: set[str] = set()
    lock = threading.Lock()

    def fault_of(body):
        prompt = body["messages"][-1]["content"]
        asked.add(prompt)
        found = FAILS.get(fate(prompt), {})
        return found if isinstance(found, dict) and found else SLOW

    def reply(body):
        prompt = body["messages"][-1]["content"]
        with lock:
            answered[prompt] += 1
            tokens[prompt] = sum(len(message["content"]) for message in body["messages"]) // 4
        said = FAILS.get(fate(prompt))
        return (said if isinstance(said, str) else f"So.\nGrade: {len(prompt) % 4}"), {}

    server.fault_of, server.reply = fault_of, reply
    return answered, tokens, asked


def _wait(rows: StoredJudges, judge_id: str, pairs: int) -> None:
    """Wait until `pairs` pairs are judged, or the judge has ended."""
    while (row := rows.row(judge_id)).live and row.graded + row.failed < pairs:
        time.sleep(0.02)
    while pairs >= row.total and rows.row(judge_id).live:
        time.sleep(0.02)


def _dataset(queries: int) -> Dataset:
    documents = [f"d{n}" for n in range(queries * 4)]
    random = np.random.default_rng(3)
    lists = [
        (
            f"q{n}",
            list(random.choice(documents, A_QUERY, replace=False)),
            list(range(A_QUERY, 0, -1)),
        )
        for n in range(queries)
    ]
    ids = [query for query, _, _ in lists]
    return Dataset(
        "many",
        pd.DataFrame({"query_id": ids, "text": [f"question {query}" for query in ids]}),
        pd.DataFrame(
            {"doc_id": documents, "title": "", "text": [f"text {doc} " * 40 for doc in documents]}
        ),
        pd.DataFrame({"query_id": ids, "doc_id": "d0", "label": 1.0}),
        Ranking.from_lists(lists),
    )


def check(found: Outcome, pairs: int, kills: int) -> None:
    """Raise AssertionError if a failure is not counted or is a zero, or if the bill is wrong."""
    expected = Counter(found.expected)
    expected["unreadable"] += expected.pop("language", 0)
    assert found.row.state == "done", found.row
    assert found.failures == dict(expected), (found.failures, expected)
    assert found.row.graded == pairs - sum(expected.values())
    lost = found.grades["error"] != ""
    assert found.grades.loc[lost, "grade"].isna().all()
    assert found.grades.loc[~lost, "grade"].isin(range(4)).all()
    assert (found.grades["kind"] != "").sum() == lost.sum() == sum(expected.values())
    # The calls of a worker when it was killed are in the bill, estimated; some had no answer.
    assert 0 <= found.lost <= found.row.unsettled <= kills * MOST_UNKEPT
    assert found.row.usage["estimated"] == found.row.unsettled
    more, most = found.answered_tokens - found.billed, max(found.tokens.values())
    unanswered = found.row.unsettled - found.lost
    assert abs(more) <= most * (unanswered + 0.1 * found.row.unsettled)


def main() -> None:
    pairs, kills = (int(each) for each in (*sys.argv[1:], *("10000", "2")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        found = trial(Path(folder), pairs, kills)
    print(f"{pairs:,} pairs in {found.seconds:.0f} s, worker killed {kills} times")
    print(f"graded {found.row.graded:,}; without a grade: {found.failures}")
    print(f"expected by the server: {dict(found.expected)}")
    print(
        f"prompt tokens: {found.billed:,.0f} billed, {found.answered_tokens:,} by the server's "
        f"count: {found.lost} answers were lost with the worker (at most {found.row.unsettled} "
        "pairs are told)"
    )
    check(found, pairs, kills)
    print("all counted, none a zero")


if __name__ == "__main__":
    main()
