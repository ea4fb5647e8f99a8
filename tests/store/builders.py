"""Shared by the tests of the store: stored work, contents of folders, damage to files."""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from rankdash.core.base.errors import RankdashError
from rankdash.core.data.ranking import Ranking
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.folders import DATABASE, SWEEP_AFTER_SECONDS
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.jobs.leases import ExplanationRequest, Explanations, Owner
from rankdash.core.workspace.jobs.queue import Queue
from rankdash.core.workspace.notes import (
    Corrections,
    LabelNotes,
    LabelPlans,
    Notes,
    Pins,
    RunNotes,
)

HEAD = """
import os, sys
from pathlib import Path
from rankdash.core.workspace import Workspace
root = Path(sys.argv[1])
workspace = Workspace.open(root)
"""
"""First lines of another process's code; its first argument is the folder."""
OLD = Path(__file__).with_name("old") / "workspace.zip"
"""A workspace of a version before folders had records, made by commit c86af1b."""


def submit(workspace: Workspace, dataset_id: str, name: str = "job", **more: Any) -> str:
    asked = {"reranker": "bm25", "settings": {"k1": 1.2}, "depth": 5, "sample": None, "seed": 7}
    return Queue(workspace).submit(dataset_id=dataset_id, name=name, **(asked | more))


def submit_judge(workspace: Workspace, dataset_id: str, name: str, **more: Any) -> None:
    asked = {"model": "tiny", "template": "abc", "settings": {"top": 3}, "top": 3, "depth": 2}
    asked |= {"systems": ["a", "b"], "judge_id": name}
    StoredJudges(workspace).submit(dataset_id=dataset_id, name=name, **(asked | more))


def grade(pair: tuple[str, str], value: float | None = 2.0, error: str = "") -> dict[str, Any]:
    """Return a judge's answer for a pair."""
    own = {"grade": value, "reason": "看" * (value is not None), "error": error, "kind": ""}
    return {"query_id": pair[0], "doc_id": pair[1], **own, "answers": "[]"}


def judge(
    workspace: Workspace,
    dataset_id: str,
    name: str,
    answers: Sequence[dict[str, Any]] = (),
    usage: Mapping[str, object] | None = None,
    error: RankdashError | None = None,
    **more: Any,
) -> None:
    """Submit a judge that answers, and then is cancelled, or fails with an error."""
    submit_judge(workspace, dataset_id, name, **more)
    judges, owner = StoredJudges(workspace), Owner()
    judges.claim(owner)
    judges.store(name, owner, answers, usage or {})
    judges.finish(name, owner, "failed" if error else "cancelled", error)


def explain(workspace: Workspace, asked: ExplanationRequest, **how: Any) -> None:
    """Request an explanation and end the work on it. how: its `result`, or an `error`."""
    explanations, owner = Explanations(workspace), Owner()
    explanations.ask(asked)
    explanations.claim(owner)
    explanations.finish(asked.id, owner, "failed" if "error" in how else "done", **how)


def plain(value: object) -> object:
    """Return a ranking or a table in a comparable form; other values unchanged."""
    if isinstance(value, Ranking):
        return plain(value.frame()), value.ties, np.array(value.given).tolist()
    if isinstance(value, pd.DataFrame):
        return value.dtypes.astype(str).to_dict(), value.to_json(double_precision=15)
    return value


def plan_of(workspace: Workspace, dataset_id: str) -> object:
    """Return the plan with its pauses, and the corrections since its start."""
    plans = LabelPlans(workspace)
    if (plan := plans.newest(dataset_id)) is None:
        return None
    said = Corrections(workspace).log(dataset_id, plan.revision)
    return replace(plan, revision=0), plans.resumed(plan.id), said


def everything(workspace: Workspace, own: bool = True) -> dict[str, list[object]]:
    """Return all data of a workspace, comparable with ==. own: also data that an exported file does
    not contain: settings, the machine, the count of corrections."""
    found: dict[str, list[object]] = {"scenarios": [workspace.setting("scenarios")]}
    for row in workspace.datasets():
        data, judges = workspace.dataset(row.id), StoredJudges(workspace)
        stopped = [each for each in judges.rows(row.id) if not each.live]
        found[row.id] = [
            *map(plain, (data.name, data.queries, data.documents, data.qrels, data.candidates)),
            workspace.check_report(row.id),
            *(kind(workspace).all(row.id) for kind in (Notes, Corrections, LabelNotes, RunNotes)),
            *(Pins(workspace).of(row.id), plan_of(workspace, row.id)),
            *((replace(each, settings={}), plain(judges.grades(each.id))) for each in stopped),
        ]
        if own:
            found[row.id] += [row, Corrections(workspace).layer(row.id)]
    for each in workspace.runs():
        run = workspace.run(each.id)
        read = run.reading and (run.reading.read.tolist(), run.reading.full.tolist())
        found[each.id] = [
            *(each.name, each.created, repr((each.p50_ms, each.p95_ms, run.load_ms)), run.depth),
            *map(plain, (run.queries, run.ranking, run.calls)),
            *(read, repr(run.measured)),
        ]
        if own:
            found[each.id] += [str(each), dict(run.machine), workspace.recorded(each.id)[0]]
    return found


def content_of(root: Path) -> dict[Path, bytes]:
    return {file.relative_to(root): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def make_old(*folders: Path) -> None:
    """Make folders older than any save that is still running."""
    then = time.time() - SWEEP_AFTER_SECONDS - 1
    for folder in folders:
        os.utime(folder, (then, then))


def folders_of(root: Path, *kinds: str) -> list[Path]:
    kinds = kinds or ("datasets", "runs", "jobs")
    found = [
        folder for kind in kinds if (root / kind).is_dir() for folder in (root / kind).iterdir()
    ]
    return sorted(found)


def ask(file: Path, question: str, *given: object) -> list[Any]:
    """Return the rows of a query in a database; with a single column, its values."""
    with closing(sqlite3.connect(file)) as db, db:
        rows = db.execute(question, given).fetchall()
    return [row[0] for row in rows] if rows and len(rows[0]) == 1 else rows


def version(root: Path) -> int:
    return int(ask(root / DATABASE, "PRAGMA user_version")[0])


def flip(file: Path, at: int, bit: int = 2) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 1 << bit
    file.write_bytes(content)


def change(root: Path, before: bytes, after: bytes) -> None:
    """Change bytes of the database, after its log is written to it."""
    with closing(sqlite3.connect(root / DATABASE)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    content = (root / DATABASE).read_bytes()
    assert before in content
    (root / DATABASE).write_bytes(content.replace(before, after))


def parquet_files(root: Path) -> list[Path]:
    return sorted(root.rglob("*.parquet"))


def without_hash(file: Path, table: Any, of: str = "") -> None:
    """Write a table without a hash, as earlier versions did."""
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)


@contextmanager
def clock_moved(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[None]:
    with monkeypatch.context() as later:
        real = time.time
        later.setattr(time, "time", lambda: real() + seconds)
        yield
