"""Judges of a data set: what each was asked, how far it is, and its grades.

A judge is claimed, beats and ends as a job does (`rankdash.core.workspace.jobs.leases`), and has
tables of its own: a grade is not a label and never becomes one.
"""

from __future__ import annotations

import json
import math
import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, TypedDict, cast

import pandas as pd
from msgspec import convert

from rankdash.core.base.errors import DataError, RankdashError
from rankdash.core.workspace.database import (
    Settings,
    find,
    from_row,
    insert,
    now,
    read_json,
)
from rankdash.core.workspace.jobs.leases import Leases, Owner, State, state_of

MOST_UNKEPT = 100
"""So many pairs may have been asked about whose answers are not in the workspace yet: what a worker
that dies loses at most."""

LONGEST_JUDGE_NAME = 100
LONGEST_REASON = 5_000
NOT_ASKED = "not asked yet"

# Faster than `json.loads`, which looks for blanks around.
_decode = json.JSONDecoder().raw_decode
_COLUMNS = ("query_id", "doc_id", "grade", "reason", "error", "kind", "answers")


class _Repeat(TypedDict):
    grade: float | None
    reason: str
    error: str
    kind: str


class JudgeUsage(TypedDict, total=False):
    """What the calls of a judge came to, as its worker wrote it."""

    calls: int
    failed: int
    billed: dict[str, float]
    noted: int
    estimated: int


@dataclass(frozen=True)
class JudgeRow:
    """A judge. Times are ISO 8601 in UTC, None where not reached.

    name: as people call it. model, template: which model, and the hash of what it is told.
    settings: all of them; empty where the grades came from a file. top: the highest grade.
    systems: the names of the rankings whose first `depth` documents it was asked about.
    graded, failed, total: pairs. rate_pairs_s, seconds_left: None where not known.
    usage: what its calls came to, as its workers wrote it, with what was being asked when one died,
    estimated. unsettled: about how many pairs that was; their answers are lost.
    error: why it failed or stopped; None where nothing went wrong.
    """

    id: str
    dataset_id: str
    name: str
    model: str
    template: str
    settings: Mapping[str, str | int | float | bool]
    top: int
    systems: tuple[str, ...]
    depth: int
    state: State
    cancelling: bool
    graded: int
    failed: int
    total: int
    rate_pairs_s: float | None
    seconds_left: float | None
    usage: Mapping[str, Any]
    unsettled: int
    error: RankdashError | None
    created: str
    started: str | None
    finished: str | None

    @property
    def live(self) -> bool:
        return self.state in ("queued", "running")

    @property
    def open(self) -> int:
        """Pairs that it was not asked about yet."""
        return self.total - self.graded - self.failed

    @property
    def calls_per_second(self) -> float | None:
        """Of a judge that was done in one go; None for others, and where it made no call."""
        calls = self.usage.get("calls", 0)
        if self.state != "done" or not (calls and self.started and self.finished):
            return None
        took = datetime.fromisoformat(self.finished) - datetime.fromisoformat(self.started)
        seconds = took.total_seconds()
        return float(calls) / seconds if seconds > 0 and not self.unsettled else None

    @property
    def can_resume(self) -> bool:
        """Whether there is something left to ask: pairs that were not asked, or have no grade."""
        return not self.live and self.graded < self.total and bool(self.settings)


class StoredJudges(Leases["JudgeRow"]):
    """The judges of a workspace with their grades; each goes with its data set."""

    table = "judges"
    # What a worker that died before was asking about.
    on_claim = ", started = coalesce(started, :now), unsettled = unsettled + at_risk, at_risk = 0"
    on_stop = ", rate_pairs_s = NULL, seconds_left = NULL"
    # All that was asked is stored then.
    on_end = ", at_risk = 0"
    missing = "There is no judge {id!r} in this workspace."

    def submit(
        self,
        *,
        dataset_id: str,
        name: str,
        model: str,
        template: str,
        settings: Mapping[str, str | int | float | bool],
        top: int,
        systems: Sequence[str],
        depth: int,
        pairs: Sequence[tuple[str, str]],
        judge_id: str | None = None,
    ) -> str:
        """Queue a judge for (query id, document id) pairs; return its id.

        Raises DataError where there is no pair, or the name is empty.
        """
        about = {
            "id": judge_id or uuid.uuid4().hex[:16],
            "dataset_id": dataset_id,
            "name": _tidy(name),
            "model": model,
            "template": template,
            "settings": json.dumps(dict(settings)),
            "top": top,
            "systems": json.dumps(list(systems)),
            "depth": depth,
        }
        return self._insert(about, [{"query_id": query, "doc_id": doc} for query, doc in pairs])

    def add(self, dataset_id: str, name: str, model: str, top: int, grades: pd.DataFrame) -> str:
        """Add a judge that graded elsewhere; return its id.

        grades: query_id, doc_id, grade (NaN for none) and error ("" where there is a grade).

        Raises what `submit` raises.
        """
        identity = {"id": uuid.uuid4().hex[:16], "dataset_id": dataset_id, "name": _tidy(name)}
        about = {"template": "", "settings": "{}", "top": top, "systems": "[]", "depth": 0}
        pairs = [
            {
                **{name: row[name] for name in ("query_id", "doc_id", "error")},
                "grade": grade_or_none(float(row["grade"])),
                "reason": "",
                "kind": "elsewhere" if row["error"] else "",
                "answers": "[]",
            }
            for row in grades.to_dict("records")
        ]
        return self._insert({**identity, **about, "model": model, "state": "done"}, pairs)

    def _insert(self, about: Mapping[str, object], pairs: Sequence[Mapping[str, object]]) -> str:
        """Add a judge's row and those of its pairs; return its id. Raises DataError where there is
        no pair."""
        if not pairs:
            raise DataError(
                "There is no pair of query and document to judge.",
                remedy="Choose at least one system, and a depth of at least 1.",
            )
        with self._database.writing() as db:
            find(db, "datasets", str(about["dataset_id"]), "id")
            moment = now()
            judge = {**about, "total": len(pairs), "created": moment, "queued": moment}
            insert(db, self.table, judge)
            for pair in pairs:
                insert(db, "judged_pairs", {**pair, "judge_id": about["id"]})
        return str(about["id"])

    def pending(self, judge_id: str) -> list[tuple[str, str]]:
        """The (query id, document id) pairs to ask about, in their order: those that were not asked
        about yet, or, where all were, those without a grade."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT query_id, doc_id, error FROM judged_pairs WHERE judge_id = ? "
                "AND grade IS NULL ORDER BY rowid",
                (judge_id,),
            ).fetchall()
        # Not those that failed among them: so many failures in a row would look like an outage.
        never = [row for row in rows if row["error"] is None]
        return [(row["query_id"], row["doc_id"]) for row in never or rows]

    def unread(self, judge_id: str) -> set[tuple[str, str]]:
        """Return the (query id, document id) pairs without a grade that had an answer which could
        not be read."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT query_id, doc_id FROM judged_pairs WHERE judge_id = ? AND grade IS NULL "
                "AND EXISTS (SELECT 1 FROM json_each(answers) "
                "WHERE json_extract(value, '$.kind') = 'unreadable')",
                (judge_id,),
            ).fetchall()
        return {(row["query_id"], row["doc_id"]) for row in rows}

    def begin(
        self,
        judge_id: str,
        owner: Owner,
        usage: Mapping[str, object],
        at_risk: int,
        at_risk_usage: Mapping[str, object],
    ) -> bool:
        """Keep what the owner asks about now, in case it dies, and what all calls before came to;
        False, and without effect, when the judge is no longer the owner's.

        at_risk: how many pairs were begun that `keep` was not called for. at_risk_usage: what they
        come to.
        """
        lost = json.dumps(at_risk_usage)
        known = {"usage": json.dumps(usage), "at_risk": at_risk, "at_risk_usage": lost}
        return self._own(judge_id, owner, **known)

    def keep(
        self,
        judge_id: str,
        owner: Owner,
        pairs: Iterable[Mapping[str, object]],
        usage: Mapping[str, object],
        rate_pairs_s: float | None = None,
        seconds_left: float | None = None,
        at_risk: int = 0,
        at_risk_usage: Mapping[str, object] | None = None,
    ) -> bool:
        """Keep what came of pairs, and what all calls came to so far, in one transaction; False,
        and without effect, when the judge is no longer the owner's.

        pairs: query_id, doc_id, grade (None for none), reason, error, kind and answers (JSON) of
        each. at_risk, at_risk_usage: as for `begin`, without these pairs.
        """
        with self._database.writing() as db:
            counted = db.execute(
                "UPDATE judges SET usage = ?, at_risk = ?, at_risk_usage = ?, rate_pairs_s = ?, "
                "seconds_left = ? WHERE id = ? AND worker = ?",
                (
                    *(json.dumps(dict(usage)), at_risk, json.dumps(at_risk_usage or {})),
                    *(rate_pairs_s, seconds_left, judge_id, owner.token),
                ),
            )
            if not counted.rowcount:
                return False
            db.executemany(
                "UPDATE judged_pairs SET grade = :grade, reason = :reason, error = :error, "
                "kind = :kind, answers = :answers WHERE judge_id = :judge_id "
                "AND query_id = :query_id AND doc_id = :doc_id",
                [{**pair, "judge_id": judge_id} for pair in pairs],
            )
        return True

    def grades(self, judge_id: str) -> pd.DataFrame:
        """One row for each pair, in the order of the pool: query_id, doc_id, grade (float64, NaN
        for none), reason, error ("" where there is a grade), kind (of the error; "not_asked"
        where there was no call yet) and answers (a list of dicts, one for each repeat)."""
        rows = self._database.rows("judged_pairs", judge_id=judge_id)
        table = pd.DataFrame(map(itemgetter(*_COLUMNS), rows), columns=list(_COLUMNS))
        answers: list[Any] = [answers_of(each) for each in rows]
        return table.assign(
            grade=table["grade"].astype("float64"),
            error=table["error"].fillna(NOT_ASKED),
            reason=table["reason"].fillna(""),
            kind=table["kind"].fillna("not_asked"),
            answers=pd.Series(answers, index=table.index, dtype=object),
        )

    def failures(self, judge_id: str) -> dict[str, int]:
        """Kind of failure → how many pairs have no grade for it; the most frequent first."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT kind, count(*) AS pairs FROM judged_pairs WHERE judge_id = ? "
                "AND grade IS NULL AND error IS NOT NULL GROUP BY kind ORDER BY pairs DESC, kind",
                (judge_id,),
            )
            return {row["kind"]: row["pairs"] for row in rows}

    def resume(self, judge_id: str, only: Iterable[tuple[str, str]] = ()) -> None:
        """Queue a judge again for its `pending` pairs; without effect while it is queued or runs,
        and where there is none left. only: (query id, document id) pairs that failed; where they
        are given, the other ones that failed stay as they are."""
        with self._database.writing() as db:
            # As if they had never been asked: such pairs come before all that failed.
            db.executemany(
                "UPDATE judged_pairs SET error = NULL, kind = NULL WHERE judge_id = ? AND "
                "query_id = ? AND doc_id = ? AND grade IS NULL AND NOT EXISTS (SELECT 1 FROM "
                "judges WHERE id = judge_id AND state IN ('queued', 'running'))",
                [(judge_id, *pair) for pair in only],
            )
        self._set(
            "state = 'queued', queued = :now, cancel = 0, worker = NULL, problem = NULL, "
            "finished = NULL",
            "id = :id AND state NOT IN ('queued', 'running') AND settings != '{}' AND EXISTS "
            "(SELECT 1 FROM judged_pairs WHERE judge_id = :id AND grade IS NULL)",
            id=judge_id,
        )

    def rename(self, judge_id: str, name: str) -> None:
        """Raises DataError for an empty name."""
        self._set("name = :name", "id = :id", id=judge_id, name=_tidy(name))

    def _made(self, row: sqlite3.Row) -> JudgeRow:
        with self._database.reading() as db:
            graded, failed = db.execute(
                "SELECT count(grade), count(error) - count(grade) FROM judged_pairs "
                "WHERE judge_id = ?",
                (row["id"],),
            ).fetchone()
        # What the last worker put at risk is settled by nobody.
        lost = row["at_risk"] if row["state"] != "running" else 0
        counted = {"graded": graded, "failed": failed, "unsettled": row["unsettled"] + lost}
        return from_row(JudgeRow, row, **json_of(row), **state_of(row), **counted)


def _usage_of(row: sqlite3.Row) -> dict[str, Any]:
    """What the calls of a judge came to; row: all columns of `judges`. Raises StoreError if it
    cannot be read."""
    usage: dict[str, Any] = read_json(row, "usage", JudgeUsage)
    lost: dict[str, Any] = read_json(row, "at_risk_usage", JudgeUsage)
    # What a live worker asks about is not lost.
    if not lost or (row["state"] == "running" and row["at_risk"]):
        return usage
    total = {**lost, **usage, "billed": Counter(usage.get("billed", {}))}
    for name in lost.keys() & usage.keys() - {"billed"}:
        total[name] = usage[name] + lost[name]
    total["billed"].update(lost.get("billed", {}))
    return {**total, "billed": dict(total["billed"])}


def json_of(row: sqlite3.Row) -> dict[str, Any]:
    """The settings, systems and usage of a judge. Raises StoreError if one cannot be read."""
    return {
        "settings": read_json(row, "settings", Settings),
        "systems": read_json(row, "systems", tuple[str, ...]),
        "usage": _usage_of(row),
    }


def answers_of(row: sqlite3.Row) -> list[dict[str, Any]]:
    """The repeats of a pair; none where they cannot be read: its grade counts all the same."""
    try:
        return cast(
            list[dict[str, Any]], convert(_decode(row["answers"] or "[]")[0], list[_Repeat])
        )
    except (ValueError, TypeError, RecursionError):
        return []


def grade_or_none(grade: float) -> float | None:
    """A grade as a row keeps it."""
    return None if math.isnan(grade) else grade


def _tidy(name: str) -> str:
    cleaned = " ".join(name.split())[:LONGEST_JUDGE_NAME]
    if not cleaned:
        raise DataError("A judge needs a name.", remedy="Give it one, such as that of its model.")
    return cleaned
