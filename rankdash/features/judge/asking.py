"""Ask a judge about pairs of query and document: several at once, handed on in small batches."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeGuard

from rankdash.core.data.dataset import Dataset
from rankdash.core.rerankers.base import Call
from rankdash.core.runs.runner import Cancelled
from rankdash.core.runs.usage import Usage
from rankdash.core.workspace.jobs.judges import MOST_UNKEPT
from rankdash.features.judge.answers import Answer, unanswered
from rankdash.features.judge.judge import Judge, no_text

if TYPE_CHECKING:
    from rankdash.core.rerankers.remote.client import GoneError

Pair = tuple[str, str]

_BATCH_SECONDS = 1.0
_LOOK_SECONDS = 0.2
_SERVER_ERROR = 500


@dataclass(frozen=True)
class Question:
    """A pair with its texts; a text that there is not is "". again: whether an answer to it could
    not be read before."""

    query_id: str
    doc_id: str
    query: str
    document: str
    again: bool = False


@dataclass(frozen=True)
class JudgedPair:
    """What came of a pair.

    answer: the grade and its reason, or why there is none. answers: each repeat. calls: the
    requests that were made for it now.
    """

    query_id: str
    doc_id: str
    answer: Answer
    answers: tuple[Answer, ...] = ()
    calls: tuple[Call, ...] = ()


class AnswerStore(Protocol):
    """Where answers are kept for later judges, such as `core.workspace.score_cache.ScoreCache`."""

    def read_answers(
        self, fingerprint: str, asked: Sequence[tuple[str, str]], *, use: bool = True
    ) -> list[str]: ...

    def write_answers(self, fingerprint: str, given: Sequence[tuple[str, str, str]]) -> None: ...


def questions(
    dataset: Dataset,
    pairs: Sequence[tuple[str, str]],
    unread: Collection[tuple[str, str]] = (),
) -> list[Question]:
    """Return (query id, document id) pairs with the texts that the data set has of them. unread:
    the pairs with an answer that could not be read."""
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
    """(query text, document text) → the answers that are kept, of those pairs that have any. use:
    whether this counts as use."""
    texts = [(pair.query, pair.document) for pair in pairs]
    kept = cache.read_answers(fingerprint, texts, use=use)
    return {
        text: tuple(Answer(**each) for each in json.loads(answers))
        for text, answers in zip(texts, kept, strict=True)
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
    """Ask about every pair, as many at once as the judge's settings say.

    on_batch: called about once a second with what has come, in the order in which it came; at no
        time have more than `MOST_UNKEPT` pairs been begun that it has not been given.
    on_begin: called before pairs are asked that cost something, with (query id, document id) →
        what that is at least.
    cache: where answers are kept; those that were read are, failures never.
    cancelled: asked a few times a second. clock: seconds, monotonic.

    Whatever ends it, the pairs that were asked by then are handed on first. An endpoint that
    answers one request after the other with an error of its own has gone, unless at most
    `MOST_UNKEPT` pairs are left: those may each fail whenever they are asked.

    Raises UnavailableError where the endpoint refuses every request alike, and Cancelled.
    """
    judge.prepare()
    work = _Asking(judge, cache, on_batch, on_begin)
    todo = iter(work.known(pairs))
    pool = ThreadPoolExecutor(judge.concurrency, thread_name_prefix="judge")
    flushed, stop = clock(), False
    try:
        while True:
            stop = stop or cancelled() or work.problem is not None
            if not stop:
                work.begin(todo, pool)
            elif work.ready:
                # What is under way may take a while, and a worker that has to end is not patient.
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
    """What is under way, and what came and was not handed on yet."""

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

    def known(self, pairs: Sequence[Question]) -> Sequence[Question]:
        """The pairs, once what is cached of them is looked up."""
        self._left = len(pairs)
        if self._cache is not None:
            self._cached = cached_answers(self._cache, self._fingerprint, pairs)
        return pairs

    @property
    def full(self) -> bool:
        return len(self.ready) + len(self.under_way) >= MOST_UNKEPT

    def begin(self, todo: Iterator[Question], pool: ThreadPoolExecutor) -> None:
        """Keep as many pairs under way as are allowed at once."""
        room = MOST_UNKEPT - len(self.ready) - len(self.under_way)
        free = min(self._judge.concurrency - len(self.under_way), room)
        begun = list(islice(todo, max(free, 0)))
        costs = {(pair.query_id, pair.doc_id): self._least(pair) for pair in begun}
        if charged := {pair: usage for pair, usage in costs.items() if usage.calls}:
            self._on_begin(charged)
        for pair in begun:
            self.under_way[pool.submit(self._ask, pair)] = pair

    def _least(self, pair: Question) -> Usage:
        """What asking about a pair costs at least: the tokens of the prompt."""
        cached = self._cached.get((pair.query, pair.document), ())[: self._judge.repeats]
        calls = self._judge.repeats - len(cached)
        if not calls or no_text(pair.query, pair.document):
            return Usage()
        billed = self._judge.least(pair.query, pair.document)
        every = {unit: amount * calls for unit, amount in billed.items()}
        return Usage(calls, billed=every, estimated=calls)

    def collect(self, seconds: float) -> None:
        """Wait for the next answer, at most so long, and take all that have come."""
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
        # Loads the HTTP client, which a worker that asks no service needs no time for.
        from rankdash.core.rerankers.remote.client import GoneError

        answered = isinstance(problem, GoneError) and problem.call.status >= _SERVER_ERROR
        return answered and self._left <= MOST_UNKEPT

    def flush(self) -> None:
        """Hand on what has come."""
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
        found = no_text(pair.query, pair.document) or self._judge.grade(
            pair.query, pair.document, cached, again=pair.again
        )
        return JudgedPair(pair.query_id, pair.doc_id, found.answer, found.answers, found.calls)
