"""A workspace, or some of its data sets, as one file: written, checked, taken in.

    datasets/<id>/about.json    name, source, check report; notes, tags, corrected labels; the plan
                                of what to label; judges with their grades
    datasets/<id>/….parquet     its tables, as the workspace keeps them
    runs/<id>/about.json        name, settings, machine; note, pin, explanations
    runs/<id>/….parquet         its tables
    settings.json               scenarios, prices and targets

Excluded: keys (which no workspace holds), cached scores, jobs that have not ended, and paths on
this machine. What is taken in was checked: hashes, tables, rows, and that the content of a data set
is what its id says. All of it is added in one transaction, or nothing. What is here already stays
as it is; where the file says otherwise, that is reported.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO

from rankdash.core.base.errors import Finding, StoreError
from rankdash.core.workspace.failures import in_words
from rankdash.core.workspace.jobs.judges import answers_of, json_of
from rankdash.core.workspace.notes.notes import tags_of
from rankdash.core.workspace.rows import Record, now, read_json
from rankdash.core.workspace.tables import PARTS
from rankdash.core.workspace.workspace import Workspace
from rankdash.core.workspace.workspace_file.workspace_zip import Packer

FORMAT, VERSION = "rankdash workspace", 1
SETTINGS = "settings.json"
DAMAGED_DATASET, DAMAGED_RUN = "archive.damaged_dataset", "archive.damaged_run"
DAMAGED_JUDGE = "archive.damaged_judge"
MEASURED_PARTS = ("reading", "measured", "calls")
"""The tables that a run has only where it measured what they hold."""

_PASSWORD = re.compile(r"//[^/@\s]+@")

Progress = Callable[[int, int], None]
"""Is told how much is done, and of how much."""


def pack(
    workspace: Workspace,
    target: BinaryIO,
    dataset_ids: Collection[str] | None,
    shared: Sequence[str],
    version: str,
    progress: Progress = lambda _done, _total: None,
) -> list[Finding]:
    """Write the data sets (None: all) with all that belongs to them; what is damaged and excluded,
    which the file says too: runs, and data sets with their runs.

    shared: the settings that go with them. version: of rankdash. progress: is told how many
    data sets and runs are written. Raises StoreError for a data set that is not here, and where all
    are damaged.
    """
    rows = workspace.datasets()
    chosen = [row for row in rows if dataset_ids is None or row.id in dataset_ids]
    for lacking in set(dataset_ids or ()) - {row.id for row in rows}:
        workspace.dataset(lacking)
    runs = {row.id: workspace.runs(row.id) for row in chosen}
    total = len(chosen) + sum(map(len, runs.values()))
    done = 0
    contents: dict[str, list[str]] = {}
    excluded: dict[str, tuple[str, StoreError]] = {}
    packer = Packer(target)
    for row in chosen:
        # Read to see whether it is whole; what was kept is copied.
        try:
            workspace.dataset(row.id)
        except StoreError as error:
            excluded[row.name] = DAMAGED_DATASET, error
            progress(done := done + 1 + len(runs[row.id]), total)
            continue
        for name, why in _pack_dataset(workspace, packer, row.id).items():
            excluded[f"{row.name}: {name}"] = DAMAGED_JUDGE, why
        contents[row.id] = []
        progress(done := done + 1, total)
        for run in runs[row.id]:
            try:
                workspace.run(run.id)
            except StoreError as error:
                excluded[f"{row.name}: {run.name}"] = DAMAGED_RUN, error
            else:
                _pack_run(workspace, packer, run.id)
                contents[row.id].append(run.id)
            progress(done := done + 1, total)
    if excluded and not contents:
        packer.abandon()
        raise next(iter(excluded.values()))[1]
    settings = {name: value for name in shared if (value := workspace.setting(name))}
    packer.add_json(SETTINGS, {"settings": settings})
    packer.close(
        {
            "format": FORMAT,
            "version": VERSION,
            "rankdash": version,
            "created": now(),
            "datasets": contents,
            **({"excluded": list(excluded)} if excluded else {}),
        }
    )
    return [
        Finding(
            "warning",
            code,
            "{name} is damaged and was not exported.",
            {"name": name},
            "To see what is wrong with it, run: rankdash workspace check",
        )
        for name, (code, _error) in excluded.items()
    ]


def without_paths(value: Any) -> Any:
    """The same with the last step of every path on this machine only, and without what an address
    says before "@"."""
    if isinstance(value, dict):
        return {name: without_paths(each) for name, each in value.items()}
    if isinstance(value, list):
        return [without_paths(each) for each in value]
    if not isinstance(value, str):
        return value
    for kind in (PurePosixPath, PureWindowsPath):
        path = kind(value)
        if path.is_absolute() or value.startswith("~"):
            return path.name
    return _PASSWORD.sub("//", value)


def _pack_dataset(workspace: Workspace, packer: Packer, dataset_id: str) -> dict[str, StoreError]:
    """Write a data set; name → why a judge of it is excluded."""
    with workspace.database.reading() as db:
        row = _one(db, "SELECT * FROM datasets WHERE id = ?", dataset_id)
        notes = _all(db, "notes", ("query_id", "tags", "note", "changed", "who"), dataset_id)
        corrections = _all(
            db,
            "corrections",
            ("query_id", "doc_id", "withdrawn", "label", "who", "made"),
            dataset_id,
            "revision",
        )
        remarks = _all(db, "label_notes", ("query_id", "doc_id", "who", "note"), dataset_id)
        plan = _plan(db, dataset_id)
        judges, unread = _judges(db, dataset_id)
    about: dict[str, Any] = {
        name: row[name] for name in ("name", "source", "first_stage", "candidates_name", "report")
    }
    for note in notes:
        note["tags"] = tags_of(note)[0]
    # Tags that cannot be read may be all there was.
    notes = [note for note in notes if note["tags"] or note["note"]]
    about |= {"notes": notes, "corrections": corrections, "label_notes": remarks, "plan": plan}
    about |= {"judges": judges}
    packer.add_json(f"datasets/{dataset_id}/about.json", about)
    for name in PARTS["datasets"]:
        _copy(workspace.root / row["folder"], name, packer, f"datasets/{dataset_id}")
    return unread


def _plan(db: sqlite3.Connection, dataset_id: str) -> dict[str, Any] | None:
    """The plan that was begun last. before: how many corrections there were when it began."""
    row = db.execute(
        "SELECT * FROM label_plans WHERE dataset_id = ? ORDER BY rowid DESC LIMIT 1", (dataset_id,)
    ).fetchone()
    if row is None:
        return None
    try:
        settings = read_json(row, "settings", dict[str, Any])
    except StoreError:
        return None
    (before,) = db.execute(
        "SELECT count(*) FROM corrections WHERE dataset_id = ? AND revision <= ?",
        (dataset_id, row["revision"]),
    ).fetchone()
    pauses = db.execute("SELECT * FROM label_pauses WHERE plan_id = ? ORDER BY rowid", (row["id"],))
    return {
        "id": row["id"],
        "settings": settings,
        "before": before,
        "guidelines": row["guidelines"],
        "created": row["created"],
        "pauses": [{name: each[name] for name in ("who", "ended")} for each in pauses],
    }


def _judges(
    db: sqlite3.Connection, dataset_id: str
) -> tuple[list[dict[str, Any]], dict[str, StoreError]]:
    """Those that neither wait nor run, with what they said; name → why one is not among them."""
    columns = (
        *("id", "name", "model", "template", "top", "depth", "state", "created", "started"),
        "finished",
    )
    pair = ("query_id", "doc_id", "grade", "reason", "error", "kind")
    found, excluded = [], {}
    for row in db.execute(
        "SELECT * FROM judges WHERE dataset_id = ? AND state NOT IN ('queued', 'running') "
        "ORDER BY created, rowid",
        (dataset_id,),
    ).fetchall():
        pairs = [
            {name: each[name] for name in pair} | {"answers": answers_of(each)}
            for each in db.execute(
                "SELECT * FROM judged_pairs WHERE judge_id = ? ORDER BY rowid", (row["id"],)
            )
        ]
        about = {name: row[name] for name in columns} | {"pairs": pairs}
        about["unsettled"] = row["unsettled"] + row["at_risk"]
        try:
            about |= json_of(row)
        except StoreError as error:
            excluded[row["name"]] = error
        else:
            found.append({**about, "settings": without_paths(about["settings"])})
    return found, excluded


def _pack_run(workspace: Workspace, packer: Packer, run_id: str) -> None:
    with workspace.database.reading() as db:
        row = _one(db, "SELECT * FROM runs WHERE id = ?", run_id)
        note = db.execute("SELECT * FROM run_notes WHERE run_id = ?", (run_id,)).fetchone()
        pin = db.execute("SELECT pinned FROM pins WHERE run_id = ?", (run_id,)).fetchone()
        explained = db.execute(
            "SELECT * FROM explanations "
            "WHERE run_id = ? AND state = 'done' AND result IS NOT NULL ORDER BY id",
            (run_id,),
        ).fetchall()
    about: dict[str, Any] = {
        name: row[name] for name in ("name", "reranker", "depth", "load_ms", "created")
    }
    about |= {name: without_paths(read_json(row, name, Record)) for name in ("settings", "machine")}
    signed = ("note", "changed", "who")
    about["note"] = None if note is None else {each: note[each] for each in signed}
    about["pinned"] = None if pin is None else pin["pinned"]
    told = ("query_id", "doc_id", "level", "result", "finished")
    about["explanations"] = [{name: each[name] for name in told} for each in explained]
    packer.add_json(f"runs/{run_id}/about.json", about)
    folder = workspace.root / row["folder"]
    for name in PARTS["runs"]:
        _copy(folder, name, packer, f"runs/{run_id}")
    for name in MEASURED_PARTS:
        if (folder / f"{name}.parquet").exists():
            _copy(folder, name, packer, f"runs/{run_id}")


def _copy(folder: Path, name: str, packer: Packer, place: str) -> None:
    file = folder / f"{name}.parquet"
    with in_words(file):
        content = file.read_bytes()
    packer.add(f"{place}/{file.name}", content)


def _one(db: sqlite3.Connection, question: str, key: str) -> sqlite3.Row:
    row: sqlite3.Row | None = db.execute(question, (key,)).fetchone()
    if row is None:
        raise StoreError(
            "The workspace was changed while it was exported.", remedy="Export it again."
        )
    return row


def _all(
    db: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    dataset_id: str,
    order: str = "query_id",
) -> list[dict[str, Any]]:
    rows = db.execute(
        f"SELECT * FROM {table} WHERE dataset_id = ? ORDER BY {order}",  # noqa: S608
        (dataset_id,),
    )
    return [{name: row[name] for name in columns} for row in rows]
