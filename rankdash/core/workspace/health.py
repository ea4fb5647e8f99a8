"""Whether the database of a workspace can be relied on: is there, whole, and lists the folders.

Where it is not, nothing in the workspace is deleted or written before it was repaired.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from rankdash.core.base.errors import Phrase, StoreError
from rankdash.core.workspace import backups, checksums, folders, records, wal
from rankdash.core.workspace.database import access_to, open_for_reading
from rankdash.core.workspace.failures import UNREADABLE, first_sentence, in_words, is_damage
from rankdash.core.workspace.migrations import MIGRATIONS, version_of

_REMEDY = (
    "Nothing in it is deleted, and it is open for reading only. To repair it, close other programs "
    "that use it and run: rankdash workspace repair"
)


def examine(root: Path, *, read_only: bool) -> StoreError | None:
    """What is wrong with the database, in words; None where nothing is, or where there is no
    workspace yet.

    Raises StoreError where the database cannot be read for another reason, such as permissions, and
    where the folder holds something that is no workspace.
    """
    # The folders first: a process that makes a workspace writes folders after the database.
    file = root / folders.DATABASE
    with in_words(file):
        found = records.kept(root)
        ours = any(any(folders.stored(root, kind)) for kind in folders.STORED)
        ours = ours or bool(backups.listed(root))
        size = file.stat().st_size if file.exists() else None
    if not size:
        if ours:
            return _missing(root) if size is None else _empty(root)
        if size is None and not read_only:
            folders.refuse_foreign(root)
        return None
    return _looked_into(root, found, ours=ours, read_only=read_only)


def _looked_into(
    root: Path, found: Mapping[str, list[Path]], *, ours: bool, read_only: bool
) -> StoreError | None:
    file = root / folders.DATABASE
    access = access_to(file) if read_only else "mode=rw"
    with in_words(file):
        # Before SQLite reads it: closed again, SQLite deletes the log.
        if wal.is_damaged(file):
            return _damaged(root, _unread(file))
        try:
            with closing(open_for_reading(file, access)) as db:
                if not backups.pages_fit(db):
                    return _damaged(root, Phrase("its pages do not fit together."))
                version = version_of(db)
                if version > len(MIGRATIONS):
                    # It is refused when it is opened.
                    return None
                if not version:
                    return _empty(root) if ours else None
                if not checksums.schema_fits(db):
                    return _damaged(root, Phrase("its tables are not as they were made."))
                if changed := checksums.changed(db):
                    return _damaged(root, _changed(changed))
                listed = {
                    kind: {row[0] for row in db.execute(f"SELECT id FROM {kind}")}  # noqa: S608
                    for kind in folders.STORED
                }
        except UNREADABLE as error:
            if is_damage(error):
                return _damaged(root, first_sentence(str(error)))
            raise
    unknown = {
        kind: [each for each in found[kind] if folders.id_of(each) not in listed[kind]]
        for kind in folders.STORED
    }
    # A folder whose row was deleted meanwhile has no record any more.
    lacking = records.rows_of(root, unknown, listed["datasets"])
    return _older(root, len(lacking)) if lacking else None


def _changed(rows: Mapping[str, int]) -> Phrase:
    return Phrase(
        "rows that have changed since they were written: {n} (in {tables}). They are set apart.",
        n=sum(rows.values()),
        tables=", ".join(rows),
    )


def _unread(file: Path) -> Phrase:
    return Phrase("changes in its log {file} cannot be read.", file=f"{file.name}-wal")


def _missing(root: Path) -> StoreError:
    return StoreError(
        "The database of the workspace {folder} is missing.", remedy=_REMEDY, folder=str(root)
    )


def _empty(root: Path) -> StoreError:
    return StoreError(
        "The database of the workspace {folder} is empty.", remedy=_REMEDY, folder=str(root)
    )


def _damaged(root: Path, reason: str) -> StoreError:
    return StoreError(
        "The database of the workspace {folder} is damaged: {reason}",
        remedy=_REMEDY,
        folder=str(root),
        reason=reason,
    )


def _older(root: Path, lacking: int) -> StoreError:
    return StoreError(
        "The database of the workspace {folder} is older than its folders, or of another "
        "workspace: data sets and runs that it does not list: {n}.",
        remedy=_REMEDY,
        folder=str(root),
        n=lacking,
    )
