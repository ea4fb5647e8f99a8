"""Processes killed at random moments: stored data is intact, each operation is complete or absent,
and repeating it ends as without a kill.

    python -m tests.benchmarks.kills [KILLS] [SEED] [KIND …]

Killed in turn: a run, an import, an upload, a migration, a backup, the commands `label add` and
`judge run`, `rerank` with data that it downloads, and `serve --processes 2` with a worker on a
run. Prints how many were killed during their work. Lost data raises AssertionError, and so do a
call of the judge that its file does not count and a process that outlives the killed one.
"""

from __future__ import annotations

import csv
import io
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence, Sized
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from rankdash.app.command import main as command
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.intake.reading import store_loaded
from rankdash.core.readers import Source
from rankdash.core.readers.checks.check import check
from rankdash.core.readers.loading import load
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.runs import jobs, runner, worker
from rankdash.core.runs.jobs import JobRequest, Timing
from rankdash.core.workspace import Workspace, checksums, migrations
from rankdash.core.workspace.jobs.leases import Owner
from rankdash.core.workspace.jobs.queue import Queue
from rankdash.core.workspace.notes import Corrections, Notes
from rankdash.core.workspace.workspace import HOME_VARIABLE
from rankdash.core.workspace.workspace_file import archive, import_workspace
from rankdash.features.label.trail import read_plan
from tests.loopback import hub
from tests.rerankers.loopback import running

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])
_QUERIES, _DEPTH = 400, 20
_ROWS = 6_000
_WORDS = ["return", "parcel", "refund", "size", "colour", "late", "broken", "card", "invoice"]
# A backup that is done immediately is never killed.
_BALLAST = "x" * 20_000_000
_LONGEST_SECONDS = 300.0
_PLAN, _GRADES, _RANKED, _URL, _HUB = "plan.jsonl", "grades.csv", "ranked.trec", "url", "hub"
_JUDGED = 120


def _made(name: str) -> Dataset:
    chance = np.random.default_rng(len(name))

    def text(words: int) -> str:
        return " ".join(chance.choice(_WORDS, words))

    ids, docs = [f"q{n}" for n in range(_QUERIES)], [f"d{n}" for n in range(200)]
    lists = [
        (
            query,
            [docs[place] for place in chance.permutation(len(docs))[:_DEPTH]],
            [*range(_DEPTH)][::-1],
        )
        for query in ids
    ]
    return Dataset(
        name,
        pd.DataFrame({"query_id": ids, "text": [text(5) for _ in ids]}),
        pd.DataFrame({"doc_id": docs, "title": "", "text": [text(40) for _ in docs]}),
        pd.DataFrame({"query_id": ids, "doc_id": "d0", "label": 1.0}),
        Ranking.from_lists(lists),
    )


def _upload(root: Path, _files: Path) -> None:
    rows = "".join(f"q{n // 10},d{n},text {n} of {n % 7},{n % 3 == 0:d}\n" for n in range(_ROWS))
    run = "".join(f"q{n // 10} Q0 d{n} {n % 10 + 1} {-n}.5 sys\n" for n in range(_ROWS))
    files = [
        Source("labels.csv", f"query_id,doc_id,document,label\n{rows}".encode()),
        Source("sys.run", run.encode()),
    ]
    store_loaded(Workspace.open(root), load(files, name="uploaded"))


def _import(root: Path, files: Path) -> None:
    import_workspace.bring_in(Workspace.open(root), files / "other.zip", "other.zip")


def _queued(workspace: Workspace) -> Queue:
    """Return the queue of a workspace with one job that waits or is done."""
    queue = Queue(workspace)
    (row,) = queue.rows()
    if row.state not in ("queued", "done"):
        jobs.resume(workspace, row.id)
    return queue


def _run(root: Path, _files: Path) -> None:
    workspace, owner = Workspace.open(root), Owner()
    job = _queued(workspace).claim(owner)
    if job is not None:
        worker.Attempt(workspace, owner, job, threading.Event()).run()


def _command(*arguments: str) -> None:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
        assert command(arguments) == 0, out.getvalue()


def _label(root: Path, files: Path) -> None:
    _command("label", "add", str(root / _PLAN), str(files / "labels.csv"))


def _judge(root: Path, files: Path) -> None:
    url = (files.parents[1] / _URL).read_text()
    options = (f"base_url={url}", "key_variable=none", "model=tiny", "concurrency=4")
    settings = [part for each in options for part in ("--set", each)]
    out = ["--out", str(root / _GRADES), "--yes"]
    _command("judge", "run", "--data", str(files / "pairs.csv"), *out, *settings)


def _rerank(root: Path, files: Path) -> None:
    os.environ["HF_ENDPOINT"] = (files.parents[1] / _HUB).read_text()
    os.environ["HF_HOME"] = str(root / "hub")
    out = ["--out", str(root / _RANKED)]
    _command("rerank", "--data", "hf:shop/small", "--reranker", "bm25", *out)


def _serve(root: Path, _files: Path) -> None:
    """Serve until the worker has done the job."""
    os.environ[HOME_VARIABLE] = str(root)
    queue = _queued(Workspace.open(root))
    threading.Thread(target=_end_when_done, args=(queue,), daemon=True).start()
    _command("serve", "--processes", "2", "--port", "0", "--no-browser")


def _end_when_done(queue: Queue) -> None:
    # A signal before the command handles it would be a different kind of kill.
    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL or {
        row.state for row in queue.rows()
    } != {"done"}:
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGTERM)


def _open(root: Path, _files: Path) -> None:
    Workspace.open(root)


DOES: dict[str, Callable[[Path, Path], None]] = {
    "run": _run,
    "import": _import,
    "upload": _upload,
    "migration": _open,
    "backup": _open,
    "label add": _label,
    "judge run": _judge,
    "rerank hf:": _rerank,
    "serve": _serve,
}


def _prepare(what: str, root: Path, files: Path) -> None:
    """Prepare a workspace with data, right before the operation that is killed."""
    steps = migrations.MIGRATIONS
    try:
        if what == "migration":
            migrations.MIGRATIONS = steps[: len(steps) // 2]
        workspace = Workspace.open(root)
        dataset = _made("kept")
        workspace.save_dataset(dataset)
        run = _stored_run(dataset)
        workspace.save_run(run)
    finally:
        migrations.MIGRATIONS = steps
    with closing(sqlite3.connect(root / "rankdash.sqlite")) as db, db:
        checksums.teach(db)
        db.execute("INSERT INTO settings (key, value) VALUES ('ballast', ?)", (_BALLAST,))
    for copy in checksums.backups(root):
        copy.unlink()
    if what == "migration":
        return
    workspace = Workspace.open(root)
    for copy in checksums.backups(root):
        copy.unlink()
    Notes(workspace).store(dataset.id, "q1", ["odd"], "look")
    Corrections(workspace).correct(dataset.id, ("q1", "d1"), 2.0, "me")
    if what in ("run", "serve"):
        jobs.submit(workspace, JobRequest(dataset.id, "bm25", timing=Timing(latency="never")))
    if what == "import":
        other = Workspace.open(files / "other")
        added = _made("imported")
        other.save_dataset(added, report_json=check(added, (), {}).to_json())
        other.save_run(_stored_run(added))
        with (files / "other.zip").open("wb") as target:
            archive.export(other, target, "1")
    if what == "label add":
        _prepare_labels(root, files)
    if what == "judge run":
        rows = [f"q{n // 10},question {n // 10},d{n},text {n},{n % 2},{-n}" for n in range(_JUDGED)]
        head = "query_id,query,doc_id,document,label,score"
        (files / "pairs.csv").write_text("\n".join([head, *rows]) + "\n")
    for copy in checksums.backups(root) if what == "backup" else ():
        copy.unlink()


def _prepare_labels(root: Path, files: Path) -> None:
    for name, step in (("old", 1), ("new", -1)):
        lines = [
            f"q{query} Q0 d{doc} {rank} {100 - rank} {name}\n"
            for query in range(_QUERIES)
            for rank, doc in enumerate(list(range(10))[::step], 1)
        ]
        (files / f"{name}.trec").write_text("".join(lines))
    runs = [str(files / "old.trec"), str(files / "new.trec")]
    _command("label", "plan", "--top", "1", "--out", str(root / _PLAN), "--run", *runs)
    pairs = [f"q{query},d{doc},1" for query in range(_QUERIES) for doc in range(10)]
    (files / "labels.csv").write_text("\n".join(["query_id,doc_id,label", *pairs]) + "\n")


def _downloaded() -> dict[str, bytes]:
    """Return the files of a data set of the hub."""
    ids = [
        f'{{"_id": "{kind}{n}", "text": "{" ".join(_WORDS[n % 9 :])} {n}"}}\n'
        for kind in "qd"
        for n in range(_JUDGED)
    ]
    labels = [f"q{n}\td{n}\t1\n" for n in range(_JUDGED)]
    return {
        "queries.jsonl": "".join(ids[:_JUDGED]).encode(),
        "corpus.jsonl": "".join(ids[_JUDGED:]).encode(),
        "qrels/test.tsv": "".join(["query-id\tcorpus-id\tscore\n", *labels]).encode(),
    }


def _stored_run(dataset: Dataset) -> Run:
    """Return a run without a reranker: the candidates in reverse order."""
    candidates = dataset.candidates
    lists = [
        (
            query,
            candidates.documents_of(query)[0][::-1],
            list(range(_DEPTH, 0, -1)),
        )
        for query in candidates.query_ids
    ]
    ranking = Ranking.from_lists(lists)
    return run_from_ranking(f"run of {dataset.name}", dataset.id, ranking, "x")


def _all_of(root: Path) -> dict[str, Any]:
    """Return everything that a workspace lists; damaged data raises StoreError."""
    workspace = Workspace.open(root)
    assert workspace.trouble is None, workspace.trouble
    found: dict[str, Any] = {"ballast": len(workspace.setting("ballast") or "")}
    for row in workspace.datasets():
        assert workspace.damage("datasets", row.id) is None
        data = workspace.dataset(row.id)
        found[row.id] = row.name
        found[f"notes {row.id}"] = Notes(workspace).all(row.id)
        found[f"labels {row.id}"] = [
            (each.pair, each.label) for each in Corrections(workspace).all(row.id)
        ]
        for run in workspace.runs(row.id):
            assert workspace.damage("runs", run.id) is None
            whole = workspace.run(run.id)
            frame = whole.ranking.frame()
            found[f"run {run.id}"] = (run.name, frame.to_csv(), whole.queries["state"].tolist())
        assert data.id == row.id
    if (root / _PLAN).exists():
        _, answers = read_plan((root / _PLAN).read_bytes(), _PLAN)
        for query, doc, label in zip(
            *map(answers.get, ("query_id", "doc_id", "label")), strict=True
        ):
            found[f"label {query} {doc}"] = label
    if (root / _RANKED).exists():
        found["ranked"] = (root / _RANKED).read_text()
    for row in _grades(root):
        found[f"grade {row['query_id']} {row['doc_id']}"] = float(row["grade"])
    for copy in checksums.backups(root):
        with closing(sqlite3.connect(copy)) as db:
            assert checksums.is_sound(db)
            (size,) = db.execute(
                "SELECT length(value) FROM settings WHERE key = 'ballast'"
            ).fetchone()
            assert size == len(_BALLAST)
    return found


def _grades(root: Path, graded: bool = True) -> list[dict[str, str]]:
    """Return the rows of a judge's file with a grade, or all; an unfinished row is not read."""
    if not (root / _GRADES).exists():
        return []
    text = (root / _GRADES).read_text()
    rows = list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))
    return [row for row in rows if row["grade"] or not graded]


def _child(what: str, root: Path, files: Path, pipe: Any) -> None:
    os.environ.pop("RANKDASH_READ_ONLY", None)
    runner.BATCH_SECONDS = 0.05
    pipe.send("begins")
    DOES[what](root, files)
    pipe.send("done")


def _begin(what: str, root: Path, files: Path) -> tuple[Any, Any]:
    here, there = _FORKS.Pipe(duplex=False)
    process = _FORKS.Process(target=_child, args=(what, root, files, there))
    # A new process runs the __main__ of its parent, which is the app after a test of pages.
    own = {} if __name__ == "__main__" else {"__main__": ModuleType("__main__")}
    with mock.patch.dict(sys.modules, own):
        process.start()
    there.close()
    assert here.poll(_LONGEST_SECONDS)
    here.recv()
    return process, here


def _do(what: str, root: Path, files: Path) -> float:
    """Do all of the work. Return the seconds that it took."""
    process, pipe = _begin(what, root, files)
    started = time.monotonic()
    assert pipe.poll(_LONGEST_SECONDS)
    assert pipe.recv() == "done"
    process.join()
    return time.monotonic() - started


def _wait_for_children(root: Path) -> None:
    """Wait until all processes that were started for a workspace have ended."""
    latest = time.monotonic() + _LONGEST_SECONDS
    while left := [
        each.parent.name
        for each in Path("/proc").glob("[0-9]*/environ")
        if str(root).encode() in _content(each)
    ]:
        assert time.monotonic() < latest, left
        time.sleep(0.05)


def _content(file: Path) -> bytes:
    with suppress(OSError):
        return file.read_bytes()
    return b""


@dataclass(frozen=True)
class Case:
    """One kind of work, prepared once. whole: content of a workspace after it, without a kill."""

    what: str
    home: Path
    files: Path
    before: dict[str, Any]
    whole: dict[str, Any]
    seconds: float

    @classmethod
    def prepare(cls, what: str, place: Path) -> Case:
        home, files = place / what / "home", place / what / "files"
        files.mkdir(parents=True)
        _prepare(what, home, files)
        once = place / what / "once"
        shutil.copytree(home, once)
        before = _all_of(shutil.copytree(home, place / what / "looked"))
        seconds = _do(what, once, files)
        return cls(what, home, files, before, _all_of(once), seconds)

    def kill(self, root: Path, share: float, asked: Sized = ()) -> str:
        """Do the work in a copy at `root` and kill it after `share` of its time; check the copy, do
        the work again and check it again. Return "killed", or "done" if the work ended before."""
        shutil.copytree(self.home, root)
        before = len(asked)
        process, pipe = _begin(self.what, root, self.files)
        ended = pipe.poll(share * self.seconds)
        process.kill()
        process.join()
        _wait_for_children(root)
        try:
            ended = ended or (pipe.poll(0) and pipe.recv() == "done")
        except EOFError:
            ended = False
        # A copy is read, so that the killed workspace itself is not opened yet.
        left = _all_of(shutil.copytree(root, root.with_name(f"{root.name}-seen")))
        assert self.before.items() <= left.items()
        assert left.get("ranked", "") in ("", self.whole.get("ranked"))
        assert left.keys() <= self.whole.keys()
        # Operations that were reported as done are complete.
        assert not ended or left == self.whole
        _do(self.what, root, self.files)
        again = _all_of(root)
        assert again == self.whole
        counted = [json.loads(row["billed"])["calls"] for row in _grades(root, graded=False)]
        assert sum(counted) >= len(asked) - before
        shutil.rmtree(root)
        shutil.rmtree(root.with_name(f"{root.name}-seen"))
        return "done" if ended else "killed"


def trial(
    place: Path, kills: int, seed: int, names: Sequence[str] = tuple(DOES)
) -> dict[str, Counter[str]]:
    """Kill `kills` times, in turn over the kinds of work. Return for each how many were killed at
    work, and how many were done before. Raise AssertionError if data is lost."""
    chance = random.Random(seed)
    with running() as server, hub({"shop/small": _downloaded()}, seconds=0.1) as (address, _):
        server.fault_of = lambda _body: {"slow": 0.02}
        (place / _URL).write_text(server.url)
        (place / _HUB).write_text(address)
        cases = [Case.prepare(what, place) for what in names]
        found: dict[str, Counter[str]] = {case.what: Counter() for case in cases}
        for turn in range(kills):
            case = cases[turn % len(cases)]
            ended = case.kill(place / f"kill-{turn}", chance.random(), server.seen)
            found[case.what][ended] += 1
    return found


def main() -> None:
    asked = sys.argv[1:]
    kills, seed = (int(each) for each in (*asked[:2], *("100", "21")[len(asked) :]))
    with tempfile.TemporaryDirectory() as place:
        started = time.monotonic()
        found = trial(Path(place), kills, seed, asked[2:] or tuple(DOES))
    for what, how in found.items():
        print(f"{what:10} killed at work {how['killed']}, done before {how['done']}")
    print(f"{kills} kills in {time.monotonic() - started:.0f} s: nothing lost")


if __name__ == "__main__":
    main()
