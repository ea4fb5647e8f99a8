"""A cache of scores and of a judge's answers, so that a model never scores the same pair twice.

It is a separate SQLite file that may be deleted at any time; a damaged one is replaced by an empty
one. A pair is identified by the fingerprint of the reranker, the text of the query and the text of
the document. When the file exceeds its limit, the least recently used entries are removed first.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import checksums, folders
from rankdash.core.workspace.database import Database, delete, files_of, insert
from rankdash.core.workspace.failures import in_words, is_damage

_DEFAULT_LIMIT_BYTES = 512 * 1024 * 1024

# Above the limit it shrinks to this share of the limit, so that not every write has to shrink it.
_ROOM_AFTER = 0.9
_SHRINK_STEPS = 50
_UNKNOWN = -1
# SQLite takes at least 999 values in a statement.
_KEYS_AT_ONCE = 900


@dataclass(frozen=True, eq=False)
class KeptScores:
    """The cached scores of a query's documents, aligned with the documents.

    scores: (n,) float64, NaN if not cached.
    read, full: (n,) int32, tokens read and tokens before truncation; -1 if unknown.
    """

    scores: npt.NDArray[np.float64]
    read: npt.NDArray[np.int32]
    full: npt.NDArray[np.int32]

    @classmethod
    def nothing(cls, size: int) -> KeptScores:
        unknown = np.full(size, _UNKNOWN, dtype=np.int32)
        return cls(np.full(size, math.nan), unknown, unknown.copy())


class ScoreCache:
    """The cached scores of a workspace. Several threads and processes may use it concurrently.

    Every method raises StoreError if the file cannot be read or written.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._database = Database(file, _prepare)
        except StoreError as error:
            if not is_damage(error.__cause__):
                raise
            with in_words(file):
                folders.to_trash(file.parent, files_of(file))
            self._database = Database(file, _prepare)

    def read(
        self, fingerprint: str, requests: Sequence[tuple[str, Sequence[str]]]
    ) -> list[KeptScores]:
        """Return the cached scores for each (query text, document texts), in order; counts as
        use."""
        entries, used = [], []
        with self._database.reading() as db:
            for query, documents in requests:
                # One query at a time: all of them may need more memory than there is.
                key = _query_key(fingerprint, query)
                rows = _cached(db, "pairs", "score, read, full", [key]).get(key, {})
                entries.append(_cached_scores(rows, documents))
                used += [query] if rows else []
        self._used(fingerprint, used)
        return entries

    def write(
        self, fingerprint: str, scored: Sequence[tuple[str, Sequence[str], KeptScores]]
    ) -> None:
        """Store the finite scores of each (query text, document texts, scores)."""
        if not self.limit:
            return
        with self._database.writing() as db:
            for query, documents, entry in scored:
                ask, key = _use(db, fingerprint, query), _query_key(fingerprint, query)
                numbers = (entry.scores.view(np.int64), entry.read, entry.full)
                columns = (map(_text_key, documents), *(each.tolist() for each in numbers))
                rows = compress(zip(*columns, strict=True), np.isfinite(entry.scores))
                db.executemany(
                    "INSERT OR REPLACE INTO pairs (ask, document, score, read, full, checksum) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    [(ask, *row, checksums.of((key, *row))) for row in rows],
                )
        self._shrink(self.limit)

    def read_answers(
        self, fingerprint: str, pairs: Sequence[tuple[str, str]], *, use: bool = True
    ) -> list[str]:
        """Return the cached answers to each (query text, document text), in order, as they were
        written; "" if not cached. use: whether this counts as use."""
        queries = dict.fromkeys(query for query, _ in pairs)
        keys = {query: _query_key(fingerprint, query) for query in queries}
        with self._database.reading() as db:
            cached = _cached(db, "answers", "answers", list(keys.values()))
        rows = [cached.get(keys[query], {}).get(_text_key(document)) for query, document in pairs]
        if use:
            hits = (query for (query, _), row in zip(pairs, rows, strict=True) if row)
            self._used(fingerprint, dict.fromkeys(hits))
        return ["" if row is None else str(row["answers"]) for row in rows]

    def write_answers(self, fingerprint: str, entries: Sequence[tuple[str, str, str]]) -> None:
        """Store the answers, one text, to each (query text, document text, answers)."""
        if not self.limit:
            return
        with self._database.writing() as db:
            for query, document, answers in entries:
                row = (_text_key(document), answers)
                checksum = checksums.of((_query_key(fingerprint, query), *row))
                db.execute(
                    "INSERT OR REPLACE INTO answers (ask, document, answers, checksum) "
                    "VALUES (?, ?, ?, ?)",
                    (_use(db, fingerprint, query), *row, checksum),
                )
        self._shrink(self.limit)

    @property
    def size_bytes(self) -> int:
        """The disk space that the cached scores take."""
        with self._database.reading() as db:
            return _size(db)

    @property
    def pairs(self) -> int:
        """The number of pairs with a cached score or answer."""
        count = "SELECT (SELECT count(*) FROM pairs) + (SELECT count(*) FROM answers)"
        with self._database.reading() as db:
            return int(db.execute(count).fetchone()[0])

    @property
    def limit(self) -> int:
        """The maximum size in bytes; 0 = nothing is cached."""
        row = self._database.row("size_limit")
        return _DEFAULT_LIMIT_BYTES if row is None else int(row["bytes"])

    @limit.setter
    def limit(self, size_bytes: int) -> None:
        """Set the limit, and remove the entries above it."""
        if size_bytes < 0:
            raise StoreError(
                "{size} bytes is not a limit for the score cache.",
                remedy="Enter 0 to cache nothing, or a larger number.",
                size=size_bytes,
            )
        with self._database.writing() as db:
            delete(db, "size_limit")
            insert(db, "size_limit", {"bytes": size_bytes})
        self._shrink(size_bytes)

    def clear(self) -> None:
        """Delete every cached score and free the disk space; the limit stays."""
        with self._database.writing() as db:
            for table in ("pairs", "answers", "asks"):
                delete(db, table)
        self._release_space()

    def _used(self, fingerprint: str, queries: Collection[str]) -> None:
        if queries:
            with self._database.writing() as db:
                for query in queries:
                    _use(db, fingerprint, query)

    def _shrink(self, limit: int) -> None:
        with self._database.reading() as db:
            if _size(db) <= limit:
                return
        with self._database.writing() as db:
            asks = [row["id"] for row in db.execute("SELECT id FROM asks ORDER BY used, id")]
            step = max(1, len(asks) // _SHRINK_STEPS)
            for start in range(0, len(asks), step):
                for ask in asks[start : start + step]:
                    delete(db, "pairs", ask=ask)
                    delete(db, "answers", ask=ask)
                    delete(db, "asks", id=ask)
                if _size(db) <= limit * _ROOM_AFTER:
                    break
        self._release_space()

    def _release_space(self) -> None:
        with self._database.reading() as db:
            # As a script, because `execute` stops after the first page.
            db.executescript("PRAGMA incremental_vacuum")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _prepare(db: sqlite3.Connection, file: Path) -> None:
    if db.execute("PRAGMA auto_vacuum").fetchone()[0] != _INCREMENTAL:
        db.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
        db.execute("VACUUM")
    db.execute("BEGIN IMMEDIATE")
    db.execute(
        "CREATE TABLE IF NOT EXISTS asks (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, "
        "used REAL NOT NULL)"
    )
    db.execute("CREATE INDEX IF NOT EXISTS asks_by_use ON asks (used, id)")
    # Scores are stored as the bits of their float64, because SQLite stores -0.0 as an integer. A
    # table without row ids is in the order of its key, so the documents of a query are next to each
    # other.
    db.execute(
        "CREATE TABLE IF NOT EXISTS pairs (ask INTEGER NOT NULL, document BLOB NOT NULL, "
        "score INTEGER NOT NULL, read INTEGER NOT NULL, full INTEGER NOT NULL, "
        "PRIMARY KEY (ask, document)) WITHOUT ROWID"
    )
    db.execute(
        "CREATE TABLE IF NOT EXISTS answers (ask INTEGER NOT NULL, document BLOB NOT NULL, "
        "answers TEXT NOT NULL, PRIMARY KEY (ask, document)) WITHOUT ROWID"
    )
    for table in ("pairs", "answers"):
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        if checksums.COLUMN not in columns:
            # Entries of an earlier version have no checksum.
            db.execute(f"ALTER TABLE {table} ADD COLUMN {checksums.COLUMN} INTEGER")
    db.execute("CREATE TABLE IF NOT EXISTS size_limit (bytes INTEGER NOT NULL)")
    db.execute("COMMIT")


_INCREMENTAL = 2


def _cached_scores(rows: Mapping[bytes, sqlite3.Row], documents: Sequence[str]) -> KeptScores:
    entry = KeptScores.nothing(len(documents))
    bits, read, full = entry.scores.view(np.int64), entry.read, entry.full
    for place, text in enumerate(documents if rows else ()):
        if (row := rows.get(_text_key(text))) is not None:
            bits[place], read[place], full[place] = row[2:5]
    return entry


def _cached(
    db: sqlite3.Connection, table: str, columns: str, keys: Sequence[bytes]
) -> dict[bytes, dict[bytes, sqlite3.Row]]:
    """Return key → document → row, for the keys of `asks` that have entries, without rows that
    changed on the disk."""
    cached: dict[bytes, dict[bytes, sqlite3.Row]] = {}
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        some = keys[start : start + _KEYS_AT_ONCE]
        marks = ", ".join("?" * len(some))
        for row in db.execute(
            f"SELECT key, document, {columns}, checksum AS own FROM asks "  # noqa: S608
            f"JOIN {table} ON ask = id WHERE key IN ({marks})",
            some,
        ):
            if row[-1] in (None, checksums.of(row[:-1])):
                cached.setdefault(row[0], {})[row[1]] = row
    return cached


def _use(db: sqlite3.Connection, fingerprint: str, query: str) -> int:
    """Return the id of the row of a query, and mark it as used now."""
    row = db.execute(
        "INSERT INTO asks (key, used) VALUES (?, ?) "
        "ON CONFLICT (key) DO UPDATE SET used = excluded.used RETURNING id",
        (_query_key(fingerprint, query), time.time()),
    ).fetchone()
    return int(row["id"])


def _query_key(fingerprint: str, query: str) -> bytes:
    prefix = fingerprint.encode("utf-8", "surrogatepass")
    text = query.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(
        len(prefix).to_bytes(8, "little") + prefix + text, digest_size=16
    ).digest()


def _text_key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _size(db: sqlite3.Connection) -> int:
    pages, free, size = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size
