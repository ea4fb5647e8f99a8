"""Calls to a judge for many pairs: concurrent, with results in small batches."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeGuard

import numpy as np

from rankdash.core.base.errors import RerankerError, SettingError
from rankdash.core.base.rules import SettingValue
from rankdash.core.data.dataset import Dataset
from rankdash.core.rerankers.base import Call
from rankdash.core.rerankers.remote import connection
from rankdash.core.rerankers.remote.connection import Estimate
from rankdash.core.runs.jobs import Handover
from rankdash.core.runs.plan import random_order
from rankdash.core.runs.results import Usage
from rankdash.core.runs.runner import Cancelled
from rankdash.core.runs.scoring import OptionalCache
from rankdash.core.runs.worker import Claimed, Pace
from rankdash.core.sampling.label_plan import LabelPool
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.judges import MOST_UNKEPT, JudgeRow, StoredJudges, grade_or_none
from rankdash.core.workspace.jobs.leases import Owner
from rankdash.features.judge.judge import Answer, Judge, no_text, unanswered

if TYPE_CHECKING:
    from rankdash.core.rerankers.remote.client import GoneError

Pair = tuple[str, str]

_BATCH_SECONDS = 1.0
_LOOK_SECONDS = 0.2
_SERVER_ERROR = 500


@dataclass(frozen=True)
class Question:
    """Pair with its texts; a missing text is "". again: whether a previous answer could not be
    parsed."""

    query_id: str
    doc_id: str
    query: str
    document: str
    again: bool = False


@dataclass(frozen=True)
class JudgedPair:
    """Result for a pair.

    answer: the grade and its reason, or the reason for a missing grade. answers: each repeat.
    calls: the requests for this result.
    """

    query_id: str
    doc_id: str
    answer: Answer
    answers: tuple[Answer, ...] = ()
    calls: tuple[Call, ...] = ()


class AnswerStore(Protocol):
    """Cache of answers, such as `core.workspace.score_cache.ScoreCache`."""

    def read_answers(
        self, fingerprint: str, pairs: Sequence[tuple[str, str]], *, use: bool = True
    ) -> list[str]: ...

    def write_answers(self, fingerprint: str, entries: Sequence[tuple[str, str, str]]) -> None: ...


def questions(
    dataset: Dataset,
    pairs: Sequence[tuple[str, str]],
    unread: Collection[tuple[str, str]] = (),
) -> list[Question]:
    """Return (query id, document id) pairs with their texts in the data set. unread: pairs with an
    answer that could not be parsed."""
    queries, documents = dataset.query_text().to_dict(), dataset.document_text().to_dict()
    return [
        Question(
            *pair,
            str(queries.get(pair[0], "")),
            str(documents.get(pair[1], "")),
            again=pair in unread,
        )
        for pair in pairs
    ]


def cached_answers(
    cache: AnswerStore, fingerprint: str, pairs: Sequence[Question], *, use: bool = True
) -> dict[tuple[str, str], tuple[Answer, ...]]:
    """Return (query text, document text) → cached answers, for pairs that have any. use: whether to
    count this as a use of the cache."""
    texts = [(pair.query, pair.document) for pair in pairs]
    cached = cache.read_answers(fingerprint, texts, use=use)
    return {
        text: tuple(Answer(**each) for each in json.loads(answers))
        for text, answers in zip(texts, cached, strict=True)
        if answers
    }


def ask(
    judge: Judge,
    pairs: Sequence[Question],
    *,
    on_batch: Callable[[list[JudgedPair]], None],
    on_begin: Callable[[Mapping[Pair, Usage]], None] = lambda _begun: None,
    cache: AnswerStore | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Grade every pair, with the concurrency in the judge's settings.

    on_batch: called about once per second with new results, in order of arrival. At most
        `MOST_UNKEPT` started pairs are not yet passed to it.
    on_begin: called before pairs that cost something are started, with (query id, document id) →
        minimum cost.
    cache: for parsed answers; failures are not cached.
    cancelled: called a few times per second. clock: seconds, monotonic.

    Before this function ends or raises, it passes on all completed pairs. An endpoint that
    answers several requests in a row with server errors is treated as unavailable, unless at most
    `MOST_UNKEPT` pairs remain: these may fail individually on every attempt.

    Raises UnavailableError if the endpoint refuses every request, and Cancelled.
    """
    judge.prepare()
    work = _Asking(judge, cache, on_batch, on_begin)
    todo = iter(work.looked_up(pairs))
    pool = ThreadPoolExecutor(judge.concurrency, thread_name_prefix="judge")
    flushed, stop = clock(), False
    try:
        while True:
            stop = stop or cancelled() or work.problem is not None
            if not stop:
                work.begin(todo, pool)
            elif work.ready:
                # Running calls may take long, and a worker that must stop has little time.
                work.flush()
            if not work.under_way:
                break
            work.collect(_LOOK_SECONDS)
            if work.full or clock() - flushed >= _BATCH_SECONDS:
                work.flush()
                flushed = clock()
    finally:
        work.flush()
        pool.shutdown(wait=False, cancel_futures=True)
    if work.problem is not None:
        raise work.problem
    if stop:
        raise Cancelled


class _Asking:
    """Calls in progress, and results that are not passed on yet."""

    def __init__(
        self,
        judge: Judge,
        cache: AnswerStore | None,
        on_batch: Callable[[list[JudgedPair]], None],
        on_begin: Callable[[Mapping[Pair, Usage]], None],
    ) -> None:
        self._judge, self._cache = judge, cache
        self._on_batch, self._on_begin = on_batch, on_begin
        self._fingerprint = judge.fingerprint()
        self._cached: dict[tuple[str, str], tuple[Answer, ...]] = {}
        self._left = 0
        self.under_way: dict[Future[JudgedPair], Question] = {}
        self.ready: list[tuple[Question, JudgedPair]] = []
        self.problem: BaseException | None = None

    def looked_up(self, pairs: Sequence[Question]) -> Sequence[Question]:
        """Return the pairs after a lookup of their cached answers."""
        self._left = len(pairs)
        if self._cache is not None:
            self._cached = cached_answers(self._cache, self._fingerprint, pairs)
        return pairs

    @property
    def full(self) -> bool:
        return len(self.ready) + len(self.under_way) >= MOST_UNKEPT

    def begin(self, todo: Iterator[Question], pool: ThreadPoolExecutor) -> None:
        """Start calls up to the allowed concurrency."""
        room = MOST_UNKEPT - len(self.ready) - len(self.under_way)
        free = min(self._judge.concurrency - len(self.under_way), room)
        begun = list(islice(todo, max(free, 0)))
        costs = {(pair.query_id, pair.doc_id): self._least(pair) for pair in begun}
        if charged := {pair: usage for pair, usage in costs.items() if usage.calls}:
            self._on_begin(charged)
        for pair in begun:
            self.under_way[pool.submit(self._ask, pair)] = pair

    def _least(self, pair: Question) -> Usage:
        """Return the minimum cost of a pair: the tokens of its prompts."""
        cached = self._cached.get((pair.query, pair.document), ())[: self._judge.repeats]
        calls = self._judge.repeats - len(cached)
        if not calls or no_text(pair.query, pair.document):
            return Usage()
        billed = self._judge.least(pair.query, pair.document)
        every = {unit: amount * calls for unit, amount in billed.items()}
        return Usage(calls, billed=every, estimated=calls)

    def collect(self, seconds: float) -> None:
        """Wait up to `seconds` for the next answer, and take all that have arrived."""
        for future in wait(self.under_way, seconds, FIRST_COMPLETED).done:
            pair = self.under_way.pop(future)
            problem = future.exception()
            if problem is None:
                self.ready.append((pair, future.result()))
            elif self._may_be_its_own(problem):
                answer = unanswered(problem.call)
                judged = JudgedPair(pair.query_id, pair.doc_id, answer, (answer,), (problem.call,))
                self.ready.append((pair, judged))
            else:
                self.problem = self.problem or problem
            self._left -= 1

    def _may_be_its_own(self, problem: BaseException) -> TypeGuard[GoneError]:
        # This loads the HTTP client; workers that call no service start faster without it.
        from rankdash.core.rerankers.remote.client import GoneError

        answered = isinstance(problem, GoneError) and problem.call.status >= _SERVER_ERROR
        return answered and self._left <= MOST_UNKEPT

    def flush(self) -> None:
        """Pass on the results that have arrived."""
        batch, self.ready = self.ready, []
        if not batch:
            return
        self._on_batch([judged for _, judged in batch])
        fresh = [
            (pair.query, pair.document, json.dumps([asdict(each) for each in graded]))
            for pair, judged in batch
            if judged.calls and (graded := [each for each in judged.answers if each.graded])
        ]
        if self._cache is not None and fresh:
            self._cache.write_answers(self._fingerprint, fresh)

    def _ask(self, pair: Question) -> JudgedPair:
        cached = self._cached.get((pair.query, pair.document), ())
        graded = no_text(pair.query, pair.document) or self._judge.grade(
            pair.query, pair.document, cached, again=pair.again
        )
        return JudgedPair(pair.query_id, pair.doc_id, graded.answer, graded.answers, graded.calls)


# Judges on the server: cost estimate and queue.

# Number of pairs in the sample for a cost estimate.
_LOOKED_AT = 400
_SEED = 7


@dataclass(frozen=True)
class JudgeRequest:
    """Request for a judge.

    name: "" for the name of its model. systems: names of the rankings whose first `depth` documents
    are in the pairs. pairs: (query id, document id).
    """

    dataset_id: str
    settings: Mapping[str, SettingValue]
    systems: Sequence[str]
    depth: int
    pairs: Sequence[Pair] = field(repr=False)
    name: str = ""


def submit(workspace: Workspace, request: JudgeRequest, judge_id: str | None = None) -> str:
    """Queue a judge and return its id. This function makes no calls.

    judge_id: if the worker already received a key for it; None for a new one.

    Raises SettingError for invalid settings, DataError without pairs, and StoreError for an unknown
    data set.
    """
    judge = Judge(request.settings)
    return StoredJudges(workspace).submit(
        dataset_id=request.dataset_id,
        name=request.name.strip() or judge.model,
        model=judge.model,
        template=judge.template_hash,
        settings=judge.settings,
        top=judge.top,
        systems=request.systems,
        depth=request.depth,
        pairs=request.pairs,
        judge_id=judge_id,
    )


def pairs_of(
    pool: LabelPool,
    queries: int | None = None,
    seed: int = 0,
    labelled: Collection[str] = (),
) -> list[Pair]:
    """Return the (query id, document id) pairs of a pool, by query.

    queries: number of queries, each with all of its pairs: first those in `labelled` (queries with
    human labels), then others, each sampled at random with the seed. None for all.

    Raises SettingError if `queries` is below 1.
    """
    if queries is not None and queries < 1:
        raise SettingError(
            "A sample needs at least 1 query, not {size}.",
            remedy="Leave the sample empty to use all queries.",
            size=queries,
        )
    # Only queries with both grades and human labels can correct a judge.
    human = set(labelled)
    order = sorted(random_order(pool.query_ids, seed), key=lambda query: query not in human)
    sampled = set(order[:queries])
    chosen = np.array([query in sampled for query in pool.query_ids], dtype=bool)
    inside = chosen[pool.query]
    ids = pool.query_ids[pool.query[inside]]
    return [(str(query), str(doc)) for query, doc in zip(ids, pool.doc_ids[inside], strict=True)]


def estimate(
    judge: Judge, pairs: Sequence[Question], cache: AnswerStore | None = None
) -> tuple[Estimate, int]:
    """Estimate the cost of a judge from a sample of the pairs. Also return the number of cached
    pairs, which cost nothing."""
    cached = {} if cache is None else cached_answers(cache, judge.fingerprint(), pairs, use=False)
    # Remaining repeats of each pair.
    remaining = {
        pair: judge.repeats - len(cached.get((pair.query, pair.document), ())[: judge.repeats])
        for pair in pairs
        if no_text(pair.query, pair.document) is None
    }
    pending = [pair for pair, times in remaining.items() if times]
    answered = len(remaining) - len(pending)
    if not pending:
        return Estimate(0, 0.0), answered
    places = np.random.default_rng(_SEED).permutation(len(pending))[:_LOOKED_AT]
    sample = [(pending[place].query, pending[place].document) for place in places]
    calls = sum(remaining.values())
    expected = judge.estimate(sample).scaled(calls / (judge.repeats * len(sample)))
    return replace(expected, calls=calls), answered


@dataclass(frozen=True)
class Trial:
    """One call to a judge. seconds: until its answer, without waiting before retries."""

    seconds: float
    answer: Answer


def trial(judge: Judge, pairs: Sequence[Question], cache: AnswerStore) -> Trial | None:
    """Grade the first pair that needs a call; its answer is cached. None if there is no such pair.

    Raises UnavailableError if the endpoint refuses the request.
    """
    cached = cached_answers(cache, judge.fingerprint(), pairs, use=False)
    pending = (
        pair
        for pair in pairs
        if no_text(pair.query, pair.document) is None and (pair.query, pair.document) not in cached
    )
    found: list[JudgedPair] = []
    ask(judge, [*islice(pending, 1)], on_batch=found.extend, cache=cache)
    if not found:
        return None
    [judged] = found
    seconds = [call.end - call.start - call.retry_wait_s for call in judged.calls]
    return Trial(sum(seconds) / len(seconds), judged.answer)


def seconds_of(judge: Judge, calls: int, before: float | None = None) -> float:
    """Estimate the seconds of a number of calls; NaN if unknown.

    before: calls per second of an earlier judge with the same model; None without one.
    """
    limit = float(judge.settings["per_minute"]) / 60
    rates = [rate for rate in (limit, before or 0.0) if rate > 0]
    return calls / min(rates) if rates else float("nan")


# Judges in the worker: one at a time; each batch is stored before the next.


class Judging:
    """Runner of judges in a worker. Used by one thread."""

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
        """Run the judge that has waited longest; return False if none is waiting. Errors end the
        judge, not the worker. between: called after each batch."""
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
        with connection.given_keys(self._handover.take_for(row.id, judge.place)):
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
    """Writer of batches, with their cost and rate."""

    def __init__(
        self,
        rows: StoredJudges,
        row: JudgeRow,
        owner: Owner,
        remaining: int,
        between: Callable[[], object],
    ) -> None:
        self._rows, self._row, self._owner, self._between = rows, row, owner, between
        self._left, self._done = remaining, 0
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
        self._rows.store(
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
    """Raise RerankerError if a judge has no grade at all."""
    row = rows.row(judge_id)
    if row.graded or not row.total:
        return
    errors = rows.grades(judge_id)["error"]
    raise RerankerError(
        "The judge graded none of the {count} pairs. First error: {reason}.",
        remedy="Select Resume to retry them.",
        count=row.total,
        reason=str(errors.iloc[0]).rstrip("."),
    )
