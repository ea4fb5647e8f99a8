"""Plans of what to label, who looks at which pair of query and document just now, and when people
went on after a pause.

What people answer is kept as corrections, so that it is in force everywhere at once; a plan names
the revision of the log that it began at.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rankdash.core.base.errors import DataError, StoreError
from rankdash.core.workspace.failures import refuse_unknown
from rankdash.core.workspace.notes.corrections import Pair, tidy_name
from rankdash.core.workspace.rows import now, read_json
from rankdash.core.workspace.workspace import Workspace

CARD_SECONDS = 600.0
"""How long a pair is kept for who looks at it, from when it was last shown."""

LONGEST_GUIDELINES = 10_000


@dataclass(frozen=True)
class StoredPlan:
    """settings: what the plan is made from, as the caller gave it; empty if they cannot be read.
    revision: of the corrections, when it began. created: ISO 8601 in UTC."""

    id: str
    dataset_id: str
    settings: Mapping[str, object]
    revision: int
    guidelines: str
    created: str


class LabelPlans:
    """The plans of a workspace; each goes with its data set. Every method raises StoreError where
    the workspace cannot be used."""

    def __init__(self, workspace: Workspace) -> None:
        self._database = workspace.database

    def newest(self, dataset_id: str) -> StoredPlan | None:
        """The plan that was begun last; None where there is none."""
        with self._database.reading() as db:
            row = db.execute(
                "SELECT * FROM label_plans WHERE dataset_id = ? ORDER BY rowid DESC LIMIT 1",
                (dataset_id,),
            ).fetchone()
        if row is None:
            return None
        kept = {name: row[name] for name in StoredPlan.__dataclass_fields__}
        try:
            settings = read_json(row, "settings", dict[str, Any])
        except StoreError:
            settings = {}
        return StoredPlan(**{**kept, "settings": settings})

    def begin(self, dataset_id: str, settings: Mapping[str, object], guidelines: str) -> str:
        """Begin a plan at the labels of now; returns its id.

        Raises DataError where the guidelines are longer than `LONGEST_GUIDELINES` characters.
        """
        if len(guidelines) > LONGEST_GUIDELINES:
            raise DataError(
                "The guidelines have {length} characters; {most} are kept.",
                remedy="Shorten them, or write where they are to be found.",
                length=len(guidelines),
                most=LONGEST_GUIDELINES,
            )
        plan_id = uuid.uuid4().hex[:16]
        with self._database.writing() as db:
            refuse_unknown(db, dataset_id)
            db.execute(
                "INSERT INTO label_plans (id, dataset_id, settings, revision, guidelines, created) "
                "SELECT ?, ?, ?, coalesce(max(revision), 0), ?, ? FROM corrections",
                (plan_id, dataset_id, json.dumps(settings), guidelines.strip(), now()),
            )
        return plan_id

    def take(
        self,
        plan_id: str,
        pairs: Iterable[Pair],
        owner: str,
        *,
        gone: Callable[[str], bool] = lambda _owner: False,
    ) -> Pair | None:
        """Keep the first of the pairs that nobody else looks at for `owner`, and let go of the one
        that they had before; None where others look at all of them.

        owner: whom no other window has the name of. gone: whether the window of another owner is
        closed; what it had is free again.
        """
        moment = time.time()
        with self._database.writing() as db:
            db.execute(
                # One that is kept for longer than any was kept before the clock was set back.
                "DELETE FROM label_cards WHERE plan_id = ? "
                "AND (owner = ? OR until NOT BETWEEN ? AND ?)",
                (plan_id, owner, moment, moment + CARD_SECONDS),
            )
            rows = db.execute(
                "SELECT query_id, doc_id, owner FROM label_cards WHERE plan_id = ?", (plan_id,)
            ).fetchall()
            closed = {row["owner"] for row in rows if gone(row["owner"])}
            db.executemany(
                "DELETE FROM label_cards WHERE plan_id = ? AND owner = ?",
                [(plan_id, each) for each in closed],
            )
            taken = {(row["query_id"], row["doc_id"]) for row in rows if row["owner"] not in closed}
            pair = next((pair for pair in pairs if pair not in taken), None)
            if pair is not None:
                db.execute(
                    "INSERT INTO label_cards (plan_id, query_id, doc_id, owner, until) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (plan_id, *pair, owner, moment + CARD_SECONDS),
                )
        return pair

    def resume(self, plan_id: str, who: str) -> None:
        """A person goes on after a pause now."""
        with self._database.writing() as db:
            db.execute(
                "INSERT INTO label_pauses (plan_id, who, ended) SELECT id, ?, ? FROM label_plans "
                "WHERE id = ?",
                (tidy_name(who), now(), plan_id),
            )

    def resumed(self, plan_id: str) -> dict[str, list[str]]:
        """Name → when this person went on after each pause, ISO 8601 in UTC."""
        found: dict[str, list[str]] = {}
        with self._database.reading() as db:
            for row in db.execute(
                "SELECT who, ended FROM label_pauses WHERE plan_id = ? ORDER BY rowid", (plan_id,)
            ):
                found.setdefault(row["who"], []).append(row["ended"])
        return found
