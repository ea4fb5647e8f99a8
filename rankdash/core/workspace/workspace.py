"""The workspace: data sets and runs in one folder, SQLite for rows and Parquet for tables.

    rankdash.sqlite            the database: one row for each data set, run, job, note …
    datasets/<id>-<token>/     queries, documents, qrels, candidates; a copy of the row
    runs/<id>-<token>/         the queries and the ranking of a run, token counts and measurements,
                               documents that the data set lacks; a copy of the row
    jobs/<id>/                 results of an unfinished job, one file per batch
    fetches/                   answers of search engines for data sets that are not stored yet
    backups/                   copies of the database
    trash/                     folders and files that were swept or replaced in the last 30 days
    scores.sqlite              scores of pairs, for later runs; may be deleted

Tables are written first, then the row that names their folder, then the copy of the row next to
them; a delete removes them in the opposite order. A crash in between leaves a folder with a mark
that no row names it, which a later `Workspace.open` moves to the trash.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pandas as pd
import platformdirs

from rankdash.core.base.errors import Phrase, StoreError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import Run
from rankdash.core.workspace import checksums, folders
from rankdash.core.workspace.database import (
    Database,
    DatasetRow,
    Record,
    RunRow,
    dataset_values,
    delete,
    files_of,
    find,
    from_row,
    insert,
    named_folders,
    or_nan,
    read_json,
    refuse_run,
    run_row,
    run_values,
)
from rankdash.core.workspace.failures import damaged, in_words, is_full
from rankdash.core.workspace.repair import Repaired, examine, rebuild, repair
from rankdash.core.workspace.score_cache import ScoreCache
from rankdash.core.workspace.tables import (
    DOCUMENTS,
    as_stored,
    read_dataset,
    read_frame,
    read_measured,
    read_run,
    refuse_changed_folder,
    write_dataset,
    write_run,
)

HOME_VARIABLE = "RANKDASH_HOME"
READ_ONLY_VARIABLE = "RANKDASH_READ_ONLY"
_log = logging.getLogger(__name__)
_NO = ("", "0", "no", "false", "off")
# Kind → a query for the folders of a data set or run, and of its jobs.
_FOLDERS = {
    "datasets": "SELECT folder FROM datasets WHERE id = :id "
    "UNION ALL SELECT folder FROM runs WHERE dataset_id = :id "
    "UNION ALL SELECT 'jobs/' || id FROM jobs WHERE dataset_id = :id",
    "runs": "SELECT folder FROM runs WHERE id = :id UNION ALL SELECT 'jobs/' || :id",
}


class Workspace:
    """A workspace folder. Several threads and processes may use the same folder concurrently.

    Every method raises StoreError if the workspace cannot be read or written, or if the requested
    item is not in it.

    read_only: for viewing only. Nothing in the folder is changed, and every change raises
        StoreError; so does opening a folder without a workspace, or a workspace of an older
        version.

    If the database is not reliable, the workspace is read-only too, and lists the content
    that a repair would restore.

    trouble: the problem of the database, as an error; None if there is none.
    found: the result that a repair would have; None if there is nothing to repair.
    may_repair: whether a repair would be allowed.
    """

    def __init__(self, root: Path, *, read_only: bool = False) -> None:
        self.root = root
        self._sound: set[Path] = set()
        self._with_documents: dict[str, bool] = {}
        if not read_only:
            with in_words(root):
                root.mkdir(parents=True, exist_ok=True)
        self.trouble = examine(root, read_only=read_only)
        self.found: Repaired | None = None
        self.may_repair = self.trouble is not None and not read_only
        self.read_only = read_only or self.trouble is not None
        if self.trouble is not None:
            self.database = self._stand_in(self.trouble)
            return
        self.database = Database(
            root / folders.DATABASE, read_only=read_only, each_day=self._back_up
        )
        if not read_only:
            self.database.begin_day()
            self.keep_records()
            self._sweep()
            folders.empty_trash(root)
            folders.keep_reserve(root)

    @classmethod
    def open(cls, path: Path | None = None) -> Workspace:
        """Open the workspace in `path`; create it if it does not exist.

        Without a path, it is the folder in the environment variable RANKDASH_HOME, or one in the
        user's data directory. It is read-only if RANKDASH_READ_ONLY is set to 1, or on a disk that
        is mounted read-only.
        """
        if path is None:
            home = os.environ.get(HOME_VARIABLE, "")
            path = Path(home) if home else Path(platformdirs.user_data_dir("rankdash", False))
        path = path.expanduser().absolute()
        read_only = os.environ.get(READ_ONLY_VARIABLE, "").strip().casefold() not in _NO
        return cls(path, read_only=read_only or folders.on_read_only_disk(path))

    def repair(self) -> Repaired | None:
        """Rebuild the database from the remaining files; return None if another process already
        did. This object does not change: open the workspace again.

        Raises StoreError if the workspace is read-only, or cannot be written.
        """
        if not self.may_repair:
            self.database.refuse_read_only()
        return repair(self.root)

    def save_dataset(
        self, dataset: Dataset, source: str = "upload", report_json: str = "{}"
    ) -> str:
        """Store a data set and its check report; return its id.

        The same content is stored once: saving it again changes nothing, not even the name, unless
            its files are damaged; damaged files are moved to the trash.
        source: the origin, such as "sample" or "upload".
        """
        with self.database.reading() as db:
            existing = db.execute(
                "SELECT folder FROM datasets WHERE id = ?", (dataset.id,)
            ).fetchone()
        if existing and self.damage("datasets", dataset.id) is None:
            return dataset.id
        with self._new_folder("datasets", dataset.id) as named:
            write_dataset(self.root / named, dataset)
            values = dataset_values(dataset, source, report_json)
            with self.database.writing(durable=True) as db:
                added = insert(db, "datasets", values | {"folder": named})
                if not added and existing:
                    moved = (named, dataset.id, existing["folder"])
                    change = "UPDATE datasets SET folder = ? WHERE id = ? AND folder = ?"
                    added = db.execute(change, moved).rowcount > 0
        if not added:
            # Another process stored the same content first.
            folders.remove(self.root, [named])
        elif existing:
            folders.sweep(self.root, [existing["folder"]], ())
        self.keep_records()
        return dataset.id

    def datasets(self) -> list[DatasetRow]:
        """Return all data sets, oldest first."""
        rows = self.database.rows("datasets", "created, rowid")
        return [from_row(DatasetRow, row) for row in rows]

    def dataset(self, dataset_id: str) -> Dataset:
        """Return the stored data set, equal to the saved one, with the documents of its runs."""
        dataset = self.saved_dataset(dataset_id)
        documents = self.documents_of(self.runs_with_documents(dataset_id))
        return dataset if documents is None else dataset.with_documents(documents)

    def runs_with_documents(self, dataset_id: str) -> tuple[str, ...]:
        """Return the ids of the runs with documents that the data set lacks, oldest first."""
        query = "SELECT id, folder FROM runs WHERE dataset_id = ? ORDER BY created, rowid"
        with self.database.reading() as db:
            rows = db.execute(query, (dataset_id,)).fetchall()
        known = self._with_documents
        for folder in {row["folder"] for row in rows} - known.keys():
            known[folder] = (self.root / folder / DOCUMENTS).exists()
        return tuple(row["id"] for row in rows if known[row["folder"]])

    def documents_of(self, run_ids: Iterable[str]) -> pd.DataFrame | None:
        """Return the documents of runs, except those in damaged files; None without any."""
        frames = []
        for run_id in run_ids:
            # Damage is reported with the run, and the data set stays readable.
            with suppress(StoreError):
                frames.append(
                    read_frame(self.root / self._row("runs", run_id)["folder"] / DOCUMENTS)
                )
        return pd.concat(frames, ignore_index=True) if frames else None

    def saved_dataset(self, dataset_id: str) -> Dataset:
        """Return the stored data set without the documents of its runs."""
        row = self._row("datasets", dataset_id)
        folder = self.root / row["folder"]
        dataset = read_dataset(folder, row)
        if dataset.id != dataset_id:
            raise damaged(folder, Phrase("its content has changed since it was saved."))
        return dataset

    def damage(self, kind: str, key: str) -> StoreError | None:
        """Return the problem of the files of a data set or run, or of the row of a run; None if
        there is none. Intact files are read only once. kind: "datasets" or "runs"."""
        return self._damage(kind, self._row(kind, key))

    def damaged_runs(self, dataset_id: str) -> dict[str, StoreError]:
        """Return id → the problem of its files or its row, for each damaged run of a data set."""
        rows = self.database.rows("runs", dataset_id=dataset_id)
        problems = {row["id"]: self._damage("runs", row) for row in rows}
        return {key: error for key, error in problems.items() if error is not None}

    def _damage(self, kind: str, row: sqlite3.Row) -> StoreError | None:
        folder = self.root / row["folder"]
        try:
            if kind == "runs":
                refuse_run(row)
            if folder not in self._sound:
                refuse_changed_folder(folder, kind, seal=not self.read_only)
        except StoreError as error:
            return error
        self._sound.add(folder)
        return None

    def name(self, kind: str, key: str) -> str:
        """Return the current name of a data set or run. kind: "datasets" or "runs"."""
        return str(self._row(kind, key, "name")["name"])

    def check_report(self, dataset_id: str) -> str:
        """Return the JSON of the check report that was saved with a data set."""
        return str(self._row("datasets", dataset_id)["report"])

    def rename_dataset(self, dataset_id: str, name: str) -> None:
        self._rename("datasets", dataset_id, name)

    def delete_dataset(self, dataset_id: str) -> None:
        """Delete a data set with its runs and jobs; running jobs are cancelled."""
        self._delete("datasets", dataset_id)

    def save_run(self, run: Run) -> str:
        """Store a run of a stored data set; return its id. A run with the same id is replaced."""
        self._row("datasets", run.dataset_id)
        with self._new_folder("runs", run.id) as named:
            write_run(self.root / named, run)
            with self.database.writing(durable=True) as db:
                find(db, "datasets", run.dataset_id)
                replaced = db.execute("SELECT folder FROM runs WHERE id = ?", (run.id,)).fetchone()
                if replaced:
                    folders.withdraw_record(self.root / replaced["folder"])
                insert(db, "runs", run_values(run) | {"folder": named}, "OR REPLACE")
        if replaced:
            folders.remove(self.root, [replaced["folder"]])
        self.keep_records()
        return run.id

    def runs(self, dataset_id: str | None = None) -> list[RunRow]:
        """Return the runs of a data set, or all runs, oldest first."""
        rows = self.database.rows("runs", "created, rowid", dataset_id=dataset_id)
        return [run_row(row) for row in rows]

    def run(self, run_id: str) -> Run:
        """Return the stored run, equal to the saved one."""
        row = self._row("runs", run_id)
        folder = self.root / row["folder"]
        with as_stored(folder):
            return from_row(
                Run,
                row,
                settings=read_json(row, "settings", Record),
                machine=read_json(row, "machine", Record),
                load_ms=or_nan(row["load_ms"]),
                **read_run(folder),
            )

    def recorded(self, run_id: str) -> tuple[Mapping[str, object], Measured | None]:
        """Return the machine of a stored run and its measurements, without its tables: for a
        list."""
        row = self._row("runs", run_id)
        return read_json(row, "machine", Record), read_measured(self.root / row["folder"])

    def rename_run(self, run_id: str, name: str) -> None:
        self._rename("runs", run_id, name)

    def delete_run(self, run_id: str) -> None:
        """Delete a run and the record of the job that made it."""
        self._delete("runs", run_id)

    def setting(self, key: str) -> str | None:
        """Return a value stored with `set_setting`; None if the key is not set."""
        row = self.database.row("settings", key=key)
        return None if row is None else str(row["value"])

    def set_setting(self, key: str, value: str) -> None:
        with self.database.writing() as db:
            insert(db, "settings", {"key": key, "value": value}, "OR REPLACE")

    @property
    def score_cache(self) -> ScoreCache:
        """The cached scores for later runs; created if the file does not exist."""
        self.database.refuse_read_only()
        return ScoreCache(self.root / "scores.sqlite")

    @contextmanager
    def _new_folder(self, kind: str, name: str) -> Iterator[str]:
        """Yield the name of an empty folder, as a row stores it; the folder is deleted if the block
        raises."""
        self.database.refuse_read_only()
        named = folders.relative(self.root, folders.new_folder(self.root, kind, name))
        try:
            yield named
        except BaseException:
            folders.remove(self.root, [named])
            raise

    def _row(self, table: str, key: str, columns: str = "*") -> sqlite3.Row:
        with self.database.reading() as db:
            return find(db, table, key, columns)

    def _delete(self, kind: str, key: str) -> None:
        try:
            removed = self._delete_rows(kind, key)
        except StoreError as error:
            if not is_full(error):
                raise
            folders.release_reserve(self.root)
            removed = self._delete_rows(kind, key)
        folders.remove(self.root, removed)

    def _delete_rows(self, kind: str, key: str) -> list[str]:
        """Delete the rows of a data set or run; return the folders that they named."""
        with self.database.writing() as db:
            find(db, kind, key, "id")
            removed = [row["folder"] for row in db.execute(_FOLDERS[kind], {"id": key})]
            for named in removed:
                if not named.startswith("jobs/"):
                    folders.withdraw_record(self.root / named)
            delete(db, kind, id=key)
            if kind == "runs":
                delete(db, "jobs", id=key, state="done")
        return removed

    def _rename(self, table: str, key: str, name: str) -> None:
        with self.database.writing() as db:
            find(db, table, key)
            db.execute(
                f"UPDATE {table} SET name = ? WHERE id = ?",  # noqa: S608 - the table is named by us
                (name, key),
            )
        self.keep_records([(table, key)])

    def keep_records(self, stale: Iterable[tuple[str, str]] = ()) -> None:
        """Write the records that folders lack, and the records of `stale` (kind, id) again.

        A record that cannot be written is retried when the workspace is opened.
        """
        with self.database.reading() as db:
            lacking = [
                (kind, row["id"])
                for kind in folders.STORED
                for row in db.execute(f"SELECT id, folder FROM {kind}")  # noqa: S608
                if not folders.has_record(self.root / row["folder"])
                and (self.root / row["folder"]).is_dir()
            ]
        for kind, key in (*lacking, *stale):
            try:
                # With the lock: another process may delete or rename it.
                with self.database.writing() as db:
                    row = find(db, kind, key)
                    folders.write_record(self.root / row["folder"], kind, row)
            except StoreError as error:
                _log.warning("No record of %s %s: %s", kind, key, error)

    def _stand_in(self, trouble: StoreError) -> Database:
        """Return a read-only database rebuilt from the remaining files, in a temporary folder that
        lasts as long as this object."""
        place = Path(tempfile.mkdtemp(prefix="rankdash-"))
        weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)
        self.found = rebuild(self.root, place / folders.DATABASE)
        return Database(place / folders.DATABASE, read_only=True, refusal=trouble)

    def _back_up(self) -> bool:
        """Back up the database if that was not done today. Return whether there was anything to
        back up."""
        try:
            if not self._has_rows():
                return False
            if checksums.backup_is_due(self.root):
                with self.database.writing() as db:
                    db.execute(
                        "INSERT INTO settings (key, value) VALUES (?, '1') "
                        "ON CONFLICT (key) DO UPDATE SET value = value + 1",
                        (checksums.BACKUPS_MADE,),
                    )
                # With the lock: only one of several processes copies.
                with self.database.writing():
                    if checksums.backup_is_due(self.root):
                        checksums.make_backup(self.database.file)
        except StoreError as error:
            _log.warning("The database was not copied: %s", error)
        return True

    def _has_rows(self) -> bool:
        with self.database.reading() as db:
            return db.execute("SELECT 1 FROM datasets LIMIT 1").fetchone() is not None

    def _sweep(self) -> None:
        # The folders are listed before the rows: a folder that gets its row in between is then
        # named.
        stale = folders.abandoned(self.root)
        if not stale or not self._has_rows():
            return
        with self.database.reading() as db:
            named = named_folders(db)
        folders.sweep(self.root, stale, named)


# The names of everything in a workspace, and whether they may have changed.

Names = dict[str, tuple[tuple[str, str, str, str], ...]]
"""Data set id → (data set id, table, id, name) of the data set, then of its judges, pin and runs.
"""

# A file that was written this recently may be written again within the same tick of its clock.
_LATELY_NS = 100_000_000
_NAMES_QUERY = """
    SELECT id, 'datasets', id, name FROM datasets
    UNION ALL SELECT dataset_id, 'runs', id, name FROM runs
    UNION ALL SELECT dataset_id, 'judges', id, name FROM judges
    UNION ALL SELECT dataset_id, 'pins', run_id, '' FROM pins
    ORDER BY 1, 2, 3
"""


def names_of(workspace: Workspace) -> Names:
    """Return the names of a workspace. Raises StoreError if it cannot be read."""
    with workspace.database.reading() as db:
        rows = [tuple(row) for row in db.execute(_NAMES_QUERY)]
    return {dataset_id: tuple(group) for dataset_id, group in groupby(rows, itemgetter(0))}


class NamesWatch:
    """The names of a workspace, read again only if its files were written to."""

    def __init__(self) -> None:
        self._stamp: object = None
        self._names: Names = {}

    def names(self, workspace: Workspace) -> Names:
        """Return the names as `names_of` does; only two stat calls if nothing was written."""
        stamp = _stamp(workspace)
        if stamp is None or stamp != self._stamp:
            self._names = names_of(workspace)
            self._stamp = stamp
        return self._names


def _stamp(workspace: Workspace) -> object:
    """Return a value that changes whenever the database changes; None if a change could be
    missed."""
    stamps = []
    file, log, _index = files_of(workspace.database.file)
    for each in (file, log):
        try:
            stat = each.stat()
        except OSError:
            continue
        # Readers create and remove an empty log.
        if stat.st_size:
            stamps.append((each.name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    newest = max((each[-1] for each in stamps), default=0)
    return tuple(stamps) if newest < time.time_ns() - _LATELY_NS else None
