"""The database schema as a list of steps. A released step is never edited: a change is a new step.

`PRAGMA user_version` is the number of steps that a workspace has taken.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from rankdash.core.base.errors import StoreError
from rankdash.core.base.text import MARK, redact
from rankdash.core.workspace import checksums
from rankdash.core.workspace.failures import in_words
from rankdash.core.workspace.tables import read_table, write_table

# Removing credentials from answers of services that earlier versions stored.
#
# They truncated an answer before they searched it for the key, so the start of a key that crossed
# the end was stored. The key is no longer known: everything that looks like one is hidden.

_CUT_AT = 300
_CUT = re.compile(
    r"((?:answered [0-9]{3}|is not JSON|refused the request \([0-9]{3}\)): )"
    rf"(.{{{_CUT_AT}}})(?=[.\s]|\Z)"
)
# The last word of a truncated answer: it may be the start of a key.
_HEAD = re.compile(r"(?<![\w.~+/=%-])[\w.~+/=%-]+\Z", re.ASCII)


def clean(text: str) -> str:
    """Return a stored text without anything that looks like a credential, or like the start of one
    at the end of a truncated answer."""
    return redact(_CUT.sub(lambda match: match[1] + _HEAD.sub(MARK, match[2]), text))


def clean_workspace(db: sqlite3.Connection) -> None:
    """Clean the rows of a workspace and the files in its folder.

    A table is replaced as a whole or not at all, and cleaning twice has no further effect: an
    interrupted cleaning is repeated. A file that cannot be read is left unchanged.

    Raises StoreError if a file cannot be written.
    """
    clean_rows(db)
    root = Path(db.execute("PRAGMA database_list").fetchone()[2]).parent
    for copy in checksums.backups(root):
        _clean_copy(copy)
    _clean_tables(root.glob("runs/*/queries.parquet"), reason=clean)
    _clean_tables(root.glob("runs/*/calls.parquet"), error=clean)
    _clean_tables(root.glob("jobs/*/*.parquet"), reason=clean, calls=_in_json)
    for name in ("worker.log", "worker.log.1"):
        _clean_log(root / name)


def clean_rows(db: sqlite3.Connection) -> None:
    """Clean only the rows."""
    # The old content of a row is overwritten on the disk, not only released.
    db.execute("PRAGMA secure_delete = ON")
    for table in ("jobs", "explanations"):
        query = f"SELECT id, problem FROM {table} WHERE problem IS NOT NULL"  # noqa: S608 - ours
        for row_id, problem in db.execute(query).fetchall():
            cleaned = _in_json(problem)
            if cleaned != problem:
                change = f"UPDATE {table} SET problem = ? WHERE id = ?"  # noqa: S608 - ours
                db.execute(change, (cleaned, row_id))


def _clean_copy(file: Path) -> None:
    """Clean the rows of a backup; do not change a backup that cannot be read."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(file, isolation_level=None)) as copy:
        checksums.teach(copy)
        copy.execute("BEGIN IMMEDIATE")
        clean_rows(copy)
        copy.execute("COMMIT")


def _clean_tables(files: Iterable[Path], **cleaners: Callable[[str], str]) -> None:
    """Clean columns of tables. cleaners: by column."""
    for file in files:
        try:
            table = read_table(file)
        except StoreError:
            continue
        changed = False
        for name in cleaners.keys() & set(table.column_names):
            texts = table[name].to_pylist()
            cleaned = [text and cleaners[name](text) for text in texts]
            if cleaned != texts:
                place = table.column_names.index(name)
                column = pa.array(cleaned, type=table[name].type)
                table = table.set_column(place, table.schema.field(place), column)
                changed = True
        if changed:
            write_table(file, table)


def _clean_log(file: Path) -> None:
    """Clean a log in place: a running worker may have it open."""
    if not file.exists():
        return
    with in_words(file), file.open("r+", encoding="utf-8", errors="surrogateescape") as log:
        text = log.read()
        cleaned = clean(text)
        if cleaned != text:
            log.seek(0)
            log.truncate()
            log.write(cleaned)


def _in_json(text: str) -> str:
    """Return the same JSON with every text in it cleaned; text that is not JSON is cleaned as a
    whole."""
    try:
        value = json.loads(text)
    except ValueError:
        return clean(text)
    cleaned = _within(value)
    return text if cleaned == value else json.dumps(cleaned)


def _within(value: Any) -> Any:
    if isinstance(value, dict):
        cleaned = {name: _within(each) for name, each in value.items()}
        message = value.get("said")
        # The answer of the service, without a prefix.
        if isinstance(message, str) and len(message) == _CUT_AT:
            cleaned["said"] = redact(_HEAD.sub(MARK, message))
        return cleaned
    if isinstance(value, list):
        return [_within(each) for each in value]
    return clean(value) if isinstance(value, str) else value


# The steps.

Migration = Callable[[sqlite3.Connection], None]
MIGRATIONS: list[Migration] = []


def migration(step: Migration) -> Migration:
    MIGRATIONS.append(step)
    return step


@migration
def datasets_runs_and_settings(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    db.execute(
        """
        CREATE TABLE datasets (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            created TEXT NOT NULL,
            source TEXT NOT NULL,
            first_stage TEXT NOT NULL,
            queries INTEGER NOT NULL,
            documents INTEGER NOT NULL,
            labels INTEGER NOT NULL,
            report TEXT NOT NULL,
            folder TEXT NOT NULL
        )
        """
    )
    db.execute(
        """
        CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            dataset_id TEXT NOT NULL REFERENCES datasets (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            reranker TEXT NOT NULL,
            settings TEXT NOT NULL,
            machine TEXT NOT NULL,
            depth INTEGER,
            created TEXT NOT NULL,
            queries_done INTEGER NOT NULL,
            queries_failed INTEGER NOT NULL,
            queries_skipped INTEGER NOT NULL,
            load_ms REAL,
            p50_ms REAL,
            p95_ms REAL,
            pairs_per_second REAL,
            folder TEXT NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX runs_by_dataset ON runs (dataset_id, created)")


@migration
def job_queue(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE jobs (
            id TEXT PRIMARY KEY,
            dataset_id TEXT NOT NULL REFERENCES datasets (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            reranker TEXT NOT NULL,
            settings TEXT NOT NULL,
            depth INTEGER,
            sample INTEGER,
            seed INTEGER NOT NULL,
            state TEXT NOT NULL DEFAULT 'queued',
            stage TEXT NOT NULL DEFAULT 'waiting',
            cancel INTEGER NOT NULL DEFAULT 0,
            worker TEXT,
            host TEXT,
            pid INTEGER,
            heartbeat REAL,
            done INTEGER NOT NULL DEFAULT 0,
            failed INTEGER NOT NULL DEFAULT 0,
            total INTEGER NOT NULL DEFAULT 0,
            pairs_done INTEGER NOT NULL DEFAULT 0,
            pairs_total INTEGER NOT NULL DEFAULT 0,
            rate_pairs_s REAL,
            seconds_left REAL,
            load_ms REAL,
            problem TEXT,
            created TEXT NOT NULL,
            queued TEXT NOT NULL,
            started TEXT,
            finished TEXT
        )
        """
    )
    db.execute("CREATE INDEX jobs_by_state ON jobs (state, queued)")


@migration
def notes_and_corrections(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE notes (
            dataset_id TEXT NOT NULL REFERENCES datasets (id) ON DELETE CASCADE,
            query_id TEXT NOT NULL,
            tags TEXT NOT NULL,
            note TEXT NOT NULL,
            changed TEXT NOT NULL,
            PRIMARY KEY (dataset_id, query_id)
        )
        """
    )
    # A log: the labels of any revision can be restored, and AUTOINCREMENT never uses a revision
    # twice, not even after its data set was deleted.
    db.execute(
        """
        CREATE TABLE corrections (
            revision INTEGER PRIMARY KEY AUTOINCREMENT,
            dataset_id TEXT NOT NULL REFERENCES datasets (id) ON DELETE CASCADE,
            query_id TEXT NOT NULL,
            doc_id TEXT NOT NULL,
            withdrawn INTEGER NOT NULL,
            label REAL,
            who TEXT NOT NULL,
            made TEXT NOT NULL
        )
        """
    )
    db.execute(
        "CREATE INDEX corrections_by_pair "
        "ON corrections (dataset_id, query_id, doc_id, revision, withdrawn)"
    )


@migration
def what_a_job_measures(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE jobs ADD COLUMN timing TEXT NOT NULL DEFAULT '{}'")


@migration
def explanations(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE explanations (
            id TEXT PRIMARY KEY,
            run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            query_id TEXT NOT NULL,
            doc_id TEXT NOT NULL,
            level TEXT NOT NULL,
            state TEXT NOT NULL DEFAULT 'queued',
            cancel INTEGER NOT NULL DEFAULT 0,
            worker TEXT,
            host TEXT,
            pid INTEGER,
            heartbeat REAL,
            done INTEGER NOT NULL DEFAULT 0,
            total INTEGER NOT NULL DEFAULT 0,
            result TEXT,
            problem TEXT,
            queued TEXT NOT NULL,
            finished TEXT
        )
        """
    )
    db.execute("CREATE INDEX explanations_by_state ON explanations (state, queued)")
    db.execute("CREATE INDEX explanations_by_run ON explanations (run_id)")


@migration
def notes_on_runs_and_pinned_baselines(db: sqlite3.Connection) -> None:
    # Connected to runs by triggers instead of references: storing a run again replaces its row,
    # which would delete referring rows, but fires no trigger.
    db.execute(
        """
        CREATE TABLE run_notes (
            run_id TEXT PRIMARY KEY,
            dataset_id TEXT NOT NULL REFERENCES datasets (id) ON DELETE CASCADE,
            note TEXT NOT NULL,
            changed TEXT NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX run_notes_by_dataset ON run_notes (dataset_id)")
    db.execute(
        """
        CREATE TABLE pins (
            dataset_id TEXT PRIMARY KEY REFERENCES datasets (id) ON DELETE CASCADE,
            run_id TEXT NOT NULL,
            pinned TEXT NOT NULL
        )
        """
    )
    db.execute(
        "CREATE TRIGGER deleted_run_has_no_note AFTER DELETE ON runs "
        "BEGIN DELETE FROM run_notes WHERE run_id = old.id; END"
    )
    db.execute(
        "CREATE TRIGGER deleted_run_is_unpinned AFTER DELETE ON runs "
        "BEGIN DELETE FROM pins WHERE run_id = old.id; END"
    )


@migration
def jobs_that_belong_together(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE jobs ADD COLUMN grid TEXT")


@migration
def answers_without_credentials(db: sqlite3.Connection) -> None:
    clean_workspace(db)


@migration
def services_that_were_asked_without_a_key(db: sqlite3.Connection) -> None:
    # Self-hosted servers did not need a key variable; now "none" must be set explicitly.
    for table in ("runs", "jobs"):
        query = f"SELECT id, settings FROM {table} WHERE reranker = 'endpoint'"  # noqa: S608 - ours
        for row_id, text in db.execute(query).fetchall():
            settings = json.loads(text)
            self_hosted = settings.get("dialect") in ("tei", "vllm", "infinity", "nim")
            if self_hosted and not settings.get("key_variable"):
                change = f"UPDATE {table} SET settings = ? WHERE id = ?"  # noqa: S608 - ours
                db.execute(change, (json.dumps(settings | {"key_variable": "none"}), row_id))


@migration
def who_wrote_a_note(db: sqlite3.Connection) -> None:
    for table in ("notes", "run_notes"):
        db.execute(f"ALTER TABLE {table} ADD COLUMN who TEXT NOT NULL DEFAULT ''")


@migration
def candidates_without_a_text(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE jobs ADD COLUMN without_text TEXT NOT NULL DEFAULT 'exclude'")


@migration
def plans_of_labelling(db: sqlite3.Connection) -> None:
    # Labels are in the log of corrections; a plan counts those after its revision.
    db.execute(
        """
        CREATE TABLE label_plans (
            id TEXT PRIMARY KEY,
            dataset_id TEXT NOT NULL REFERENCES datasets (id) ON DELETE CASCADE,
            settings TEXT NOT NULL,
            revision INTEGER NOT NULL,
            guidelines TEXT NOT NULL,
            created TEXT NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX label_plans_by_dataset ON label_plans (dataset_id, created)")
    # The pair that an annotator looks at, so that no other annotator gets it.
    db.execute(
        """
        CREATE TABLE label_cards (
            plan_id TEXT NOT NULL REFERENCES label_plans (id) ON DELETE CASCADE,
            query_id TEXT NOT NULL,
            doc_id TEXT NOT NULL,
            owner TEXT NOT NULL,
            until REAL NOT NULL,
            PRIMARY KEY (plan_id, query_id, doc_id)
        )
        """
    )


@migration
def notes_and_pauses_of_labelling(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE label_notes (
            dataset_id TEXT NOT NULL REFERENCES datasets (id) ON DELETE CASCADE,
            query_id TEXT NOT NULL,
            doc_id TEXT NOT NULL,
            who TEXT NOT NULL,
            note TEXT NOT NULL,
            PRIMARY KEY (dataset_id, query_id, doc_id, who)
        )
        """
    )
    # When a person resumed after a pause.
    db.execute(
        """
        CREATE TABLE label_pauses (
            plan_id TEXT NOT NULL REFERENCES label_plans (id) ON DELETE CASCADE,
            who TEXT NOT NULL,
            ended TEXT NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX label_pauses_by_plan ON label_pauses (plan_id)")


@migration
def judges(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE judges (
            id TEXT PRIMARY KEY,
            dataset_id TEXT NOT NULL REFERENCES datasets (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            model TEXT NOT NULL,
            template TEXT NOT NULL,
            settings TEXT NOT NULL,
            top INTEGER NOT NULL,
            systems TEXT NOT NULL,
            depth INTEGER NOT NULL,
            total INTEGER NOT NULL,
            state TEXT NOT NULL DEFAULT 'queued',
            cancel INTEGER NOT NULL DEFAULT 0,
            worker TEXT,
            host TEXT,
            pid INTEGER,
            heartbeat REAL,
            rate_pairs_s REAL,
            seconds_left REAL,
            usage TEXT NOT NULL DEFAULT '{}',
            at_risk INTEGER NOT NULL DEFAULT 0,
            unsettled INTEGER NOT NULL DEFAULT 0,
            problem TEXT,
            created TEXT NOT NULL,
            queued TEXT NOT NULL,
            started TEXT,
            finished TEXT
        )
        """
    )
    db.execute("CREATE INDEX judges_by_state ON judges (state, queued)")
    db.execute("CREATE INDEX judges_by_dataset ON judges (dataset_id, created)")
    # Separate from the corrections, which are human labels. A pair that is not graded yet has
    # neither a grade nor an error.
    db.execute(
        """
        CREATE TABLE judged_pairs (
            judge_id TEXT NOT NULL REFERENCES judges (id) ON DELETE CASCADE,
            query_id TEXT NOT NULL,
            doc_id TEXT NOT NULL,
            grade REAL,
            reason TEXT,
            error TEXT,
            kind TEXT,
            answers TEXT,
            PRIMARY KEY (judge_id, query_id, doc_id)
        )
        """
    )


@migration
def jobs_on_a_cluster(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE jobs ADD COLUMN actors TEXT")


@migration
def names_of_first_stages(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE datasets ADD COLUMN candidates_name TEXT NOT NULL DEFAULT ''")


@migration
def requests_of_jobs(db: sqlite3.Connection) -> None:
    for name in ("requests", "refused"):
        db.execute(f"ALTER TABLE jobs ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0")


@migration
def rows_with_checksums(db: sqlite3.Connection) -> None:
    # Except `label_cards`, which last only minutes.
    for table in (
        *("settings", "datasets", "runs", "jobs", "notes", "corrections", "explanations"),
        *("run_notes", "pins", "label_plans", "label_notes", "label_pauses", "judges"),
        "judged_pairs",
    ):
        checksums.seal(db, table)


@migration
def what_a_judge_that_dies_was_asking(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE judges ADD COLUMN at_risk_usage TEXT NOT NULL DEFAULT '{}'")
    checksums.seal(db, "judges")


@migration
def jobs_with_a_fused_run(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE jobs ADD COLUMN fused TEXT")
    checksums.seal(db, "jobs")


@migration
def jobs_that_stop_by_their_result(db: sqlite3.Connection) -> None:
    for name in ("stop", "look"):
        db.execute(f"ALTER TABLE jobs ADD COLUMN {name} TEXT")
    checksums.seal(db, "jobs")
