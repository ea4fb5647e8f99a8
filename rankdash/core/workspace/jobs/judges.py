"""The LLM judges of a data set: their settings, progress and grades.

A judge is claimed, sends heartbeats and ends as a job does (`rankdash.core.workspace.jobs.leases`),
and has separate tables: a grade is not a label and never becomes one.
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
"""The maximum number of pairs that were sent to a judge but are not stored in the workspace yet; a
worker that dies loses at most their answers."""

LONGEST_JUDGE_NAME = 100
LONGEST_REASON = 5_000
NOT_ASKED = "not graded yet"

# Faster than `json.loads`, which also skips blanks.
_decode = json.JSONDecoder().raw_decode
_COLUMNS = ("query_id", "doc_id", "grade", "reason", "error", "kind", "answers")


class _Repeat(TypedDict):
    grade: float | None
    reason: str
    error: str
    kind: str


class JudgeUsage(TypedDict, total=False):
    """The total usage of a judge's calls, as its worker wrote it."""

    calls: int
    failed: int
    billed: dict[str, float]
    noted: int
    estimated: int


@dataclass(frozen=True)
class JudgeRow:
    """A judge. Times are ISO 8601 in UTC, None if not reached.

    name: chosen by the user. model, template: the model, and the hash of its prompt.
    settings: all of them; empty if the grades came from a file. top: the highest grade.
    systems: the names of the rankings whose first `depth` documents it grades.
    graded, failed, total: pairs. rate_pairs_s, seconds_left: None if not known.
    usage: the usage of its calls, as its workers wrote it, including an estimate for calls that
        were open when a worker died.
    unsettled: about how many pairs those calls were for; their answers are lost.
    error: why it failed or stopped; None without an error.
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
        """The number of pairs that were not sent to the judge yet."""
        return self.total - self.graded - self.failed

    @property
    def calls_per_second(self) -> float | None:
        """The rate of calls of a judge that finished without interruption; None for others, and
        without calls."""
        calls = self.usage.get("calls", 0)
        if self.state != "done" or not (calls and self.started and self.finished):
            return None
        took = datetime.fromisoformat(self.finished) - datetime.fromisoformat(self.started)
        seconds = took.total_seconds()
        return float(calls) / seconds if seconds > 0 and not self.unsettled else None

    @property
    def can_resume(self) -> bool:
        """True if pairs remain to be graded: pairs without a call, or without a grade."""
        return not self.live and self.graded < self.total and bool(self.settings)


class StoredJudges(Leases["JudgeRow"]):
    """The judges of a workspace with their grades; each is deleted with its data set."""

    table = "judges"
    # Pairs that a previous worker was grading when it died.
    on_claim = ", started = coalesce(started, :now), unsettled = unsettled + at_risk, at_risk = 0"
    on_stop = ", rate_pairs_s = NULL, seconds_left = NULL"
    # All answers are stored by then.
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

        Raises DataError if there are no pairs, or the name is empty.
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
        """Add a judge whose grades were made elsewhere; return its id.

        grades: query_id, doc_id, grade (NaN for none) and error ("" with a grade).

        Raises the errors of `submit`.
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
        """Add a judge's row and the rows of its pairs; return its id. Raises DataError without
        pairs."""
        if not pairs:
            raise DataError(
                "There are no query–document pairs to grade.",
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
        """Return the (query id, document id) pairs to grade, in order: pairs without a call yet or,
        if there are none, pairs without a grade."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT query_id, doc_id, error FROM judged_pairs WHERE judge_id = ? "
                "AND grade IS NULL ORDER BY rowid",
                (judge_id,),
            ).fetchall()
        # Not mixed with pairs that failed: many failures in a row would look like an outage.
        never = [row for row in rows if row["error"] is None]
        return [(row["query_id"], row["doc_id"]) for row in never or rows]

    def unread(self, judge_id: str) -> set[tuple[str, str]]:
        """Return the (query id, document id) pairs without a grade that had an unreadable
        answer."""
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
        """Store the open pairs of the owner, in case it dies, and the usage of all earlier calls.
        Return False, without effect, if the owner no longer owns the judge.

        at_risk: the number of pairs that were begun and not yet stored by `store`. at_risk_usage:
            their estimated usage.
        """
        lost = json.dumps(at_risk_usage)
        columns = {"usage": json.dumps(usage), "at_risk": at_risk, "at_risk_usage": lost}
        return self._update_owned(judge_id, owner, **columns)

    def store(
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
        """Store the results of pairs, and the usage of all calls, in one transaction. Return False,
        without effect, if the owner no longer owns the judge.

        pairs: query_id, doc_id, grade (None for none), reason, error, kind and answers (JSON) of
            each.
        at_risk, at_risk_usage: as for `begin`, without these pairs.
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
        """Return one row for each pair, in the order of the pool: query_id, doc_id, grade (float64,
        NaN for none), reason, error ("" with a grade), kind (of the error; "not_asked" without a
        call) and answers (a list of dicts, one for each repeat)."""
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
        """Return kind of failure → the number of pairs without a grade because of it, the most
        frequent first."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT kind, count(*) AS pairs FROM judged_pairs WHERE judge_id = ? "
                "AND grade IS NULL AND error IS NOT NULL GROUP BY kind ORDER BY pairs DESC, kind",
                (judge_id,),
            )
            return {row["kind"]: row["pairs"] for row in rows}

    def resume(self, judge_id: str, only: Iterable[tuple[str, str]] = ()) -> None:
        """Queue a judge again for its `pending` pairs; do nothing while it is queued or runs, and
        if no pairs remain. only: (query id, document id) pairs that failed; if any are passed, the
        other failed pairs stay unchanged."""
        with self._database.writing() as db:
            # As if there had been no call: such pairs come before all that failed.
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
        """Rename a judge. Raises DataError for an empty name."""
        self._set("name = :name", "id = :id", id=judge_id, name=_tidy(name))

    def _parsed(self, row: sqlite3.Row) -> JudgeRow:
        with self._database.reading() as db:
            graded, failed = db.execute(
                "SELECT count(grade), count(error) - count(grade) FROM judged_pairs "
                "WHERE judge_id = ?",
                (row["id"],),
            ).fetchone()
        # The answers to open pairs of a worker that ended are lost.
        lost = row["at_risk"] if row["state"] != "running" else 0
        counted = {"graded": graded, "failed": failed, "unsettled": row["unsettled"] + lost}
        return from_row(JudgeRow, row, **json_of(row), **state_of(row), **counted)


def _usage_of(row: sqlite3.Row) -> dict[str, Any]:
    """Return the usage of the calls of a judge. row: all columns of `judges`. Raises StoreError if
    it cannot be read."""
    usage: dict[str, Any] = read_json(row, "usage", JudgeUsage)
    lost: dict[str, Any] = read_json(row, "at_risk_usage", JudgeUsage)
    # The open pairs of a live worker are not lost.
    if not lost or (row["state"] == "running" and row["at_risk"]):
        return usage
    total = {**lost, **usage, "billed": Counter(usage.get("billed", {}))}
    for name in lost.keys() & usage.keys() - {"billed"}:
        total[name] = usage[name] + lost[name]
    total["billed"].update(lost.get("billed", {}))
    return {**total, "billed": dict(total["billed"])}


def json_of(row: sqlite3.Row) -> dict[str, Any]:
    """Return the settings, systems and usage of a judge. Raises StoreError if one cannot be
    read."""
    return {
        "settings": read_json(row, "settings", Settings),
        "systems": read_json(row, "systems", tuple[str, ...]),
        "usage": _usage_of(row),
    }


def answers_of(row: sqlite3.Row) -> list[dict[str, Any]]:
    """Return the repeats of a pair; an empty list if they cannot be read, since its grade still
    counts."""
    try:
        return cast(
            list[dict[str, Any]], convert(_decode(row["answers"] or "[]")[0], list[_Repeat])
        )
    except (ValueError, TypeError, RecursionError):
        return []


def grade_or_none(grade: float) -> float | None:
    """Return a grade as a row stores it."""
    return None if math.isnan(grade) else grade


def _tidy(name: str) -> str:
    cleaned = " ".join(name.split())[:LONGEST_JUDGE_NAME]
    if not cleaned:
        raise DataError(
            "The name of the judge is empty.", remedy="Name it, for example after its model."
        )
    return cleaned
