"""Labels that an analyst corrected: a layer over a data set, which itself is never changed.

It is a log. What was said of a pair last is in force, unless it was withdrawn, and the number of
the last entry is the revision of the layer: the labels of any revision can be had again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from rankdash.core.workspace.failures import refuse_unknown
from rankdash.core.workspace.rows import now
from rankdash.core.workspace.workspace import Workspace

Pair = tuple[str, str]
LONGEST_NAME = 80


@dataclass(frozen=True)
class Correction:
    """label: None where the pair is to count as not judged. who: "" if unknown. made: ISO 8601 in
    UTC. withdrawn: whether it takes back what was said of the pair before; never of one that is in
    force."""

    query_id: str
    doc_id: str
    label: float | None
    who: str
    made: str
    withdrawn: bool = False

    @property
    def pair(self) -> Pair:
        return self.query_id, self.doc_id


@dataclass(frozen=True)
class Layer:
    """How many labels are corrected, and the revision they are at."""

    count: int
    revision: int


class Corrections:
    """The corrections of a workspace; they go with their data set. Every method raises StoreError
    where the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def layer(self, dataset_id: str) -> Layer:
        """How many corrections are in force, and the number of the last entry of the log."""
        with self._database.reading() as db:
            found = db.execute(
                """
                SELECT coalesce(sum(withdrawn = 0), 0) AS count,
                       coalesce(max(revision), 0) AS revision
                FROM corrections WHERE revision IN (
                    SELECT max(revision) FROM corrections WHERE dataset_id = ?
                    GROUP BY query_id, doc_id
                )
                """,
                (dataset_id,),
            ).fetchone()
        return Layer(int(found["count"]), int(found["revision"]))

    def revision(self, dataset_id: str) -> int:
        """The number of the last entry of the log; 0 where there is none."""
        with self._database.reading() as db:
            found = db.execute(
                "SELECT coalesce(max(revision), 0) FROM corrections WHERE dataset_id = ?",
                (dataset_id,),
            ).fetchone()
        return int(found[0])

    def all(self, dataset_id: str, revision: int | None = None) -> list[Correction]:
        """What is in force, the latest first; as of a revision where one is given."""
        with self._database.reading() as db:
            rows = db.execute(
                """
                SELECT * FROM corrections WHERE withdrawn = 0 AND revision IN (
                    SELECT max(revision) FROM corrections
                    WHERE dataset_id = :dataset AND (:last IS NULL OR revision <= :last)
                    GROUP BY query_id, doc_id
                ) ORDER BY revision DESC
                """,
                {"dataset": dataset_id, "last": revision},
            )
            return [_correction(row) for row in rows]

    def log(self, dataset_id: str, after: int = 0, until: int | None = None) -> list[Correction]:
        """Every entry after a revision, and up to another one, those that were replaced or
        withdrawn too, the first first."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT * FROM corrections WHERE dataset_id = :dataset AND revision > :after "
                "AND (:until IS NULL OR revision <= :until) ORDER BY revision",
                {"dataset": dataset_id, "after": after, "until": until},
            )
            return [_correction(row) for row in rows]

    def correct(self, dataset_id: str, pair: Pair, label: float | None, who: str) -> None:
        """Give a pair another label, or take its label away (None)."""
        self._add(dataset_id, [(pair, False, label)], who)

    def restore(self, dataset_id: str, corrections: Iterable[Correction]) -> None:
        """Put corrections in force again that were replaced or withdrawn."""
        for who, entries in _by_name(corrections).items():
            self._add(dataset_id, entries, who)

    def take_in(self, dataset_id: str, corrections: Iterable[Correction]) -> None:
        """Add what people said elsewhere, in this order and with their names. made: "" for now."""
        moment = now()
        with self._database.writing() as db:
            refuse_unknown(db, dataset_id)
            db.executemany(
                "INSERT INTO corrections (dataset_id, query_id, doc_id, withdrawn, label, who, "
                "made) VALUES (?, ?, ?, 0, ?, ?, ?)",
                [
                    (dataset_id, *each.pair, each.label, tidy_name(each.who), each.made or moment)
                    for each in corrections
                ],
            )

    def withdraw(self, dataset_id: str, pairs: Iterable[Pair]) -> None:
        """Let the pairs have the label again that came with the data."""
        self._add(dataset_id, [(pair, True, None) for pair in pairs], "")

    def _add(
        self, dataset_id: str, entries: list[tuple[Pair, bool, float | None]], who: str
    ) -> None:
        made, name = now(), tidy_name(who)
        with self._database.writing() as db:
            refuse_unknown(db, dataset_id)
            db.executemany(
                "INSERT INTO corrections (dataset_id, query_id, doc_id, withdrawn, label, who, "
                "made) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (dataset_id, *pair, int(withdrawn), label, name, made)
                    for pair, withdrawn, label in entries
                ],
            )


def _correction(row: sqlite3.Row) -> Correction:
    pair = row["query_id"], row["doc_id"]
    return Correction(*pair, row["label"], row["who"], row["made"], bool(row["withdrawn"]))


def tidy_name(who: str) -> str:
    """A person's name as it is kept."""
    return " ".join(who.split())[:LONGEST_NAME]


def _by_name(
    corrections: Iterable[Correction],
) -> dict[str, list[tuple[Pair, bool, float | None]]]:
    found: dict[str, list[tuple[Pair, bool, float | None]]] = {}
    for each in corrections:
        found.setdefault(each.who, []).append((each.pair, False, each.label))
    return found
