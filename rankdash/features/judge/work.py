"""Judges as a worker runs them: one after the other, each batch kept before the next."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict

from rankdash.core.base.errors import RerankerError
from rankdash.core.rerankers.remote import keys
from rankdash.core.runs.claimed import Claimed
from rankdash.core.runs.key_pipe import Handover
from rankdash.core.runs.optional_cache import OptionalCache
from rankdash.core.runs.pace import Pace
from rankdash.core.runs.runner import Cancelled
from rankdash.core.runs.usage import Usage
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.judges import JudgeRow, StoredJudges, grade_or_none
from rankdash.core.workspace.jobs.leases import Owner
from rankdash.features.judge.asking import JudgedPair, Pair, ask, questions
from rankdash.features.judge.judge import Judge


class Judging:
    """Runs judges for a worker. Used by one thread."""

    def __init__(
        self,
        workspace: Workspace,
        owner: Owner,
        stopping: threading.Event,
        handover: Handover | None = None,
    ) -> None:
        self._workspace = workspace
        self._owner = owner
        self._stopping = stopping
        self._handover = handover or Handover()
        self._rows = StoredJudges(workspace)

    def serve(self, between: Callable[[], object] = lambda: None) -> bool:
        """Run the judge that has waited longest; False where none waits. Errors end the judge, not
        the worker. between: called after each batch."""
        row = self._rows.claim(self._owner)
        if row is None:
            return False
        claimed = Claimed(self._rows, row.id, self._owner, self._stopping)
        claimed.carry_out(lambda: self._judge(row, claimed, between))
        return True

    def _judge(
        self, row: JudgeRow, claimed: Claimed, between: Callable[[], object]
    ) -> dict[str, str]:
        judge = Judge(row.settings)
        with keys.given(self._handover.take_for(row.id, judge.place)):
            data = self._workspace.dataset(row.dataset_id)
            pairs = questions(data, self._rows.pending(row.id), self._rows.unread(row.id))
            keeper = _Keeper(self._rows, row, self._owner, len(pairs), between)
            ask(
                judge,
                pairs,
                on_batch=keeper.keep,
                on_begin=keeper.begin,
                cache=OptionalCache(self._workspace),
                cancelled=claimed.has_to_stop,
            )
        if claimed.lost:
            raise Cancelled
        _refuse_all_failed(self._rows, row.id)
        return {}


class _Keeper:
    """Keeps batches, with what they cost and how fast they come."""

    def __init__(
        self,
        rows: StoredJudges,
        row: JudgeRow,
        owner: Owner,
        left: int,
        between: Callable[[], object],
    ) -> None:
        self._rows, self._row, self._owner, self._between = rows, row, owner, between
        self._left, self._done = left, 0
        self._usage = Usage(**row.usage)
        self._at_risk: dict[Pair, Usage] = {}
        self._pace = Pace()
        self._pace.mark(time.monotonic(), 0)

    def begin(self, begun: Mapping[Pair, Usage]) -> None:
        self._at_risk.update(begun)
        usage = asdict(self._usage)
        self._rows.begin(self._row.id, self._owner, usage, *self._left_at_risk())

    def _left_at_risk(self) -> tuple[int, dict[str, object]]:
        return len(self._at_risk), asdict(sum(self._at_risk.values(), Usage()))

    def keep(self, batch: list[JudgedPair]) -> None:
        for pair in batch:
            self._at_risk.pop((pair.query_id, pair.doc_id), None)
        self._done += len(batch)
        self._usage += Usage.of(call for pair in batch for call in pair.calls)
        self._pace.mark(time.monotonic(), self._done)
        self._rows.keep(
            self._row.id,
            self._owner,
            [_row(pair) for pair in batch],
            asdict(self._usage),
            self._pace.rate,
            self._pace.seconds_left(self._left - self._done),
            *self._left_at_risk(),
        )
        self._between()


def _row(pair: JudgedPair) -> dict[str, object]:
    answers = [{**asdict(each), "grade": grade_or_none(each.grade)} for each in pair.answers]
    return {
        **asdict(pair.answer),
        "grade": grade_or_none(pair.answer.grade),
        "query_id": pair.query_id,
        "doc_id": pair.doc_id,
        "answers": json.dumps(answers),
    }


def _refuse_all_failed(rows: StoredJudges, judge_id: str) -> None:
    """A judge without one grade has failed."""
    found = rows.row(judge_id)
    if found.graded or not found.total:
        return
    errors = rows.grades(judge_id)["error"]
    raise RerankerError(
        "Pairs that the judge graded: none of {count}. The first failed because: {reason}.",
        remedy="Resume retries them.",
        count=found.total,
        reason=str(errors.iloc[0]).rstrip("."),
    )
