"""What the tests of the store share: work to be done, folders to be looked at, harm to be done."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rankdash.store import Workspace
from rankdash.store.folders import DATABASE, SWEEP_AFTER_SECONDS
from rankdash.store.jobs.judges import StoredJudges
from rankdash.store.jobs.queue import Queue

HEAD = """
import os, sys
from pathlib import Path
from rankdash.store import Workspace
root = Path(sys.argv[1])
workspace = Workspace.open(root)
"""
"""What the code of another process begins with; its first argument is the folder."""
KILLED = -9
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
    """What a judge said of a pair."""
    own = {"grade": value, "reason": "看" * (value is not None), "error": error, "kind": ""}
    return {"query_id": pair[0], "doc_id": pair[1], **own, "answers": "[]"}


def content_of(root: Path) -> dict[Path, bytes]:
    return {file.relative_to(root): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def make_old(*folders: Path) -> None:
    """As if nobody had touched them for as long as a save may take."""
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
    """The rows that a question finds in a database; of one column its values."""
    with closing(sqlite3.connect(file)) as db, db:
        rows = db.execute(question, given).fetchall()
    return [row[0] for row in rows] if rows and len(rows[0]) == 1 else rows


def version(root: Path) -> int:
    return int(ask(root / DATABASE, "PRAGMA user_version")[0])


def flip(file: Path, at: int, bit: int = 2) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 1 << bit
    file.write_bytes(content)


def parquet_files(root: Path) -> list[Path]:
    return sorted(root.rglob("*.parquet"))


def without_hash(file: Path, table: Any, of: str = "") -> None:
    """As a version wrote tables that wrote no hash."""
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)


@contextmanager
def clock_moved(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[None]:
    with monkeypatch.context() as later:
        real = time.time
        later.setattr(time, "time", lambda: real() + seconds)
        yield
