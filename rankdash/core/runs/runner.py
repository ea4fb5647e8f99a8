"""Reranking of a data set: resumable, and a failed query is never scored 0.

Latency and throughput are measured separately. A latency is measured for a single query with its
own documents on a warm reranker, because that is the wait of a search user. The throughput is
measured with blocks of queries if the reranker is faster with many. Results are delivered in
batches of about a second.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import InitVar, dataclass, replace
from itertools import takewhile

import numpy as np

from rankdash.core.base.errors import SettingError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import Level, Measured, WithoutText
from rankdash.core.data.ranking import Run
from rankdash.core.rerankers import Capabilities, Reranker, base
from rankdash.core.rerankers.base import Literate
from rankdash.core.runs.concurrency import load_average, measure, threads_of
from rankdash.core.runs.plan import Plan, Timing, plan, random_order
from rankdash.core.runs.results import QueryResult, assemble, still_good
from rankdash.core.runs.scoring import OptionalCache, Requests, Scoring, Spread
from rankdash.core.runs.stopping import Watch

# Work lost by a kill: at most the results since the last batch.
BATCH_SECONDS = 1.0

# Size of the first block of queries, and of the largest (for cached and tiny ones).
FIRST_BLOCK = 10
LARGEST_BLOCK = 1024

# Maximum number of query texts, and of document texts, for the share of unknown tokens.
MOST_TEXTS = 2000


class Cancelled(BaseException):
    """Raised if the caller stopped the run. No handler of a reranker's errors catches it."""


def rerank(
    dataset: Dataset,
    reranker: Reranker,
    *,
    depth: int | None = None,
    query_ids: Collection[str] | None = None,
    without_text: WithoutText = "exclude",
    done: Iterable[QueryResult] = (),
    capabilities: Capabilities = Capabilities(),  # noqa: B008 - it is frozen
    timing: Timing = Timing(),  # noqa: B008 - it is frozen
    cache: OptionalCache | None = None,
    watch: Watch | None = None,
    on_step: Callable[[base.Step], object] = lambda step: None,
    on_prepared: Callable[[], object] = lambda: None,
    on_loaded: Callable[[float], None] = lambda load_ms: None,
    on_batch: Callable[[list[QueryResult]], None] = lambda results: None,
    on_timing: Callable[[], None] = lambda: None,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], int] = time.perf_counter_ns,
    cpu_clock: Callable[[], int] = time.process_time_ns,
) -> Run:
    """Rerank the first `depth` candidates (None: all) of `query_ids` (None: all queries).

    without_text: treatment of candidates without text, as in `plan`.
    done: results of an earlier attempt with the same arguments; failed queries are retried, and
        nothing is loaded if no query remains.
    capabilities: from the reranker's kind.
    timing: measurements besides the scores.
    cache: score cache across runs; used only if the capabilities and the reranker's fingerprint
        allow it.
    watch: of this plan and the seed of `timing`, for a run that may stop by its result;
        None for other runs.
    on_step: called when a step of the preparation begins.
    on_prepared: called when the reranker is prepared and before its first score.
    on_loaded: called with the cold start in milliseconds: loading and the first call, whose result
        is discarded unless it may cost money.
    on_batch: called about once a second with the results since the last call.
    on_timing: called before the measurement of throughput with concurrent clients, if any; all
        queries are scored by then.
    cancelled: called before every call of the reranker, between the batches of a model, and after
        loading.
    clock, cpu_clock: a monotonic clock, and one of the CPU time of this process, in nanoseconds.

    Every query of the data set has a row in the result: done, failed with its reason, or skipped
    because it has no candidates, was not requested, or the run stopped because of its result.

    Raises UnavailableError if the reranker is unavailable, SettingError for arguments that `plan`
    refuses and for concurrent clients of a cluster, and Cancelled.
    """
    if timing.concurrency and isinstance(reranker, Spread):
        raise SettingError(
            "The throughput with concurrent clients is measured on one machine, not on a cluster.",
            remedy="Remove --clients or --on.",
        )
    planned = plan(
        dataset,
        depth,
        query_ids,
        needs_text=capabilities.needs_text,
        without_text=without_text,
    )
    results = still_good(done, planned)
    order: Iterable[str] = planned.documents
    if watch is not None:
        order = watch.order
        watch.add(results.values())
    remaining = [query for query in order if query not in results]

    def stopped() -> bool:
        return bool(remaining) and watch is not None and watch.stopped

    def check() -> None:
        if cancelled():
            raise Cancelled

    load_ms, measured = math.nan, Measured()
    if (remaining or (timing.concurrency and planned.documents)) and not stopped():
        work = _Work(
            reranker,
            capabilities,
            timing,
            Requests(dataset, planned, capabilities.needs_text),
            planned,
            cache,
            lambda: cancelled() or stopped(),
            (clock, cpu_clock),
        )
        load_start = load_average()
        with base.telling(on_step), base.interruptible(check):
            load_ms = work.load(remaining, on_prepared)
        on_loaded(load_ms)
        with base.interruptible(check):
            for batch in work.batches():
                results |= {result.query_id: result for result in batch}
                if watch is not None:
                    watch.add(batch)
                on_batch(batch)
        complete = len(results) == len(planned.documents)
        if cancelled() or not (complete or stopped()):
            raise Cancelled
        if timing.concurrency and complete:
            on_timing()
        levels = work.throughput() if complete else ()
        measured = replace(
            work.measured(), throughput=levels, load_start=load_start, load_end=load_average()
        )
    if watch is not None and len(results) < len(planned.documents):
        planned, results = watch.scored(results)
        measured = replace(measured, stopped=watch.record())
    return assemble(dataset, reranker, depth, planned, results, load_ms, measured)


@dataclass
class _Work:
    """One attempt at the remaining queries."""

    reranker: Reranker
    capabilities: Capabilities
    timing: Timing
    requests: Requests
    asked: Plan
    store: InitVar[OptionalCache | None]
    cancelled: Callable[[], bool]
    clocks: InitVar[tuple[Callable[[], int], Callable[[], int]]]

    def __post_init__(
        self, store: OptionalCache | None, clocks: tuple[Callable[[], int], Callable[[], int]]
    ) -> None:
        self._cache = store if self.capabilities.cacheable else None
        self._clock = clocks[0]
        self._fingerprint = ""
        self._blocks = self.capabilities.across_queries or isinstance(self.reranker, Spread)
        # A block has enough queries for the allowed number of concurrent requests.
        self._least = 1
        if self.capabilities.needs_network:
            self._least = max(1, int(self.reranker.settings.get("concurrency", 1)))
        repeats = self.timing.repeats
        self._scoring = Scoring(self.reranker, self.requests, repeats, not self._blocks, *clocks)
        self._ready: list[QueryResult] = []
        # Queries to score individually and in blocks.
        self._alone: list[str] = []
        self._together: list[str] = []
        self._first_call_ms = math.nan

    def load(self, remaining: list[str], on_prepared: Callable[[], object]) -> float:
        """Load the reranker, read the cache, and make the first call; return the milliseconds of
        loading and that call."""
        self._stop_if_cancelled()
        started = self._clock()
        base.begin("loading")
        self.reranker.prepare(self.requests.corpus)
        load_ms = (self._clock() - started) / 1e6
        on_prepared()
        self._stop_if_cancelled()
        lacking = {query: self.requests.lacking(query) for query in remaining}
        self._ready = [
            QueryResult(query, "failed", reason) for query, reason in lacking.items() if reason
        ]
        self._look_up([query for query in remaining if not lacking[query]])
        if self.capabilities.needs_network:
            self._first_call_counts()
        else:
            self._warm_up()
        return load_ms + (0.0 if math.isnan(self._first_call_ms) else self._first_call_ms)

    def batches(self) -> Iterator[list[QueryResult]]:
        """Yield the results, in batches of about a second."""
        if self._ready:
            yield self._ready
        yield from self._one_by_one()
        if isinstance(self.reranker, Spread):
            yield from self._streamed(self.reranker)
        else:
            yield from self._in_blocks()

    def throughput(self) -> tuple[Level, ...]:
        """Measure the throughput at the requested numbers of clients; () without any."""
        if not self.timing.concurrency:
            return ()
        queries = random_order(self.asked.documents, self.timing.seed)
        levels = measure(
            self.reranker,
            [self.requests.of(query) for query in queries if not self.requests.lacking(query)],
            self.timing.concurrency,
            self.timing.seconds,
            self.cancelled,
        )
        self._stop_if_cancelled()
        return levels

    def measured(self) -> Measured:
        batched, serial = self._scoring.batched, self._scoring.serial
        return Measured(
            pairs=batched.pairs,
            computed_tokens=batched.computed_tokens if batched.pairs else math.nan,
            seconds=batched.seconds,
            cpu_seconds=batched.cpu_seconds,
            index_seconds=batched.index_seconds,
            together=batched.together,
            repeats=self.timing.repeats,
            serial_seconds=serial.seconds,
            serial_cpu_seconds=serial.cpu_seconds,
            first_call_ms=self._first_call_ms,
            threads=threads_of(self.reranker, self.capabilities),
            unknown_tokens=self._unknown_tokens(),
        )

    def _unknown_tokens(self) -> float:
        """Return the share of unknown tokens in the texts of the planned queries."""
        if not isinstance(self.reranker, Literate):
            return math.nan
        return self.reranker.unknown_share(self.requests.texts(MOST_TEXTS))

    def _look_up(self, remaining: list[str]) -> None:
        """Split queries into fully cached, timed individually, and batched."""
        timing = self.timing
        sample = random_order(self.asked.documents, timing.seed)
        if timing.latency != "every":
            sample = sample[: timing.sample]
            if self._blocks:
                sample = sample[: max(1, len(self.asked.documents) // 2)]
        again = set(sample) if timing.latency in ("always", "every") else set()
        self._read_cache(remaining, again)
        whole = {query for query in self._scoring.kept if not self._scoring.missing(query)}
        self._ready += [self._scoring.cached(query) for query in remaining if query in whole]
        scored = [query for query in remaining if query not in whole]
        if not self._blocks:
            self._alone = scored
            return
        alone = set(sample) - set(self._scoring.kept)
        if timing.latency == "never":
            alone = set()
        self._alone = [query for query in scored if query in alone]
        self._together = [query for query in scored if query not in alone]

    def _read_cache(self, remaining: list[str], again: set[str]) -> None:
        """Read the cached scores of the remaining queries, except for those to be scored again."""
        if self._cache is None:
            return
        self._fingerprint = self.reranker.fingerprint()
        if not self._fingerprint:
            return
        queries = [query for query in remaining if query not in again]
        requests = [self.requests.of(query) for query in queries]
        cached = self._cache.read(
            self._fingerprint, [(request.query, request.documents) for request in requests]
        )
        self._scoring.kept = {
            query: entry
            for query, entry in zip(queries, cached, strict=True)
            if bool(np.isfinite(entry.scores).any())
        }

    def _warm_up(self) -> None:
        """Score one warm-up query and discard it; skip if nothing is left to score or time."""
        waiting = [*self._alone, *self._together]
        if not waiting and self.timing.concurrency:
            every = self.asked.documents
            waiting = [query for query in every if not self.requests.lacking(query)]
        if waiting:
            base.begin("warming")
            self._first_call_ms = self._scoring.warm_up(waiting[0]) * 1e3

    def _first_call_counts(self) -> None:
        """Score the first query for its result, because a call may cost money; its time is not a
        latency."""
        queue = self._alone or self._together
        if queue:
            started = self._clock()
            result = self._scoring.cold(queue.pop(0))
            self._first_call_ms = (self._clock() - started) / 1e6
            self._ready += self._kept([result])

    def _one_by_one(self) -> Iterator[list[QueryResult]]:
        queries = takewhile(lambda _query: not self.cancelled(), self._alone)
        return self._by_the_second([self._scoring.alone(query)] for query in queries)

    def _by_the_second(self, chunks: Iterable[list[QueryResult]]) -> Iterator[list[QueryResult]]:
        """Join results into batches of about a second."""
        batch: list[QueryResult] = []
        started = self._clock()
        for results in chunks:
            batch += results
            if self._clock() - started >= BATCH_SECONDS * 1e9:
                yield self._kept(batch)
                batch, started = [], self._clock()
        if batch:
            yield self._kept(batch)

    def _in_blocks(self) -> Iterator[list[QueryResult]]:
        queries = self._together
        place, size = 0, FIRST_BLOCK
        rate = self._first_rate()
        while place < len(queries) and not self.cancelled():
            block, pairs = self._block(queries[place:], rate, size)
            started = self._clock()
            batch = self._scoring.together(block)
            seconds = (self._clock() - started) / 1e9
            place, size = place + len(block), min(2 * len(block), LARGEST_BLOCK)
            rate = pairs / seconds if seconds > 0 else math.inf
            yield self._kept(batch)

    def _streamed(self, spread: Spread) -> Iterator[list[QueryResult]]:
        """Yield batches for several processes, each of about a second of work; the last ones are
        smaller, so that all processes end together."""
        queries, rate = self._together, self._first_rate()
        remaining = sum(map(self._scoring.missing, queries))

        def blocks() -> Iterator[list[str]]:
            nonlocal remaining
            place, size = 0, FIRST_BLOCK
            while place < len(queries) and not self.cancelled():
                block, pairs = self._block(
                    queries[place : place + size],
                    min(rate, remaining / spread.at_once / BATCH_SECONDS),
                    size,
                )
                place, size = place + len(block), min(2 * len(block), LARGEST_BLOCK)
                remaining -= pairs
                yield block

        def streamed() -> Iterator[list[QueryResult]]:
            nonlocal rate
            for results, rate in self._scoring.stream(spread, blocks()):  # noqa: B007 - for blocks
                yield results

        return self._by_the_second(streamed())

    def _block(self, queries: list[str], rate: float, most: int) -> tuple[list[str], int]:
        """Return the first of `queries` that take about a second at `rate` pairs per second, and
        their pairs; at least enough for the allowed number of concurrent requests."""
        block: list[str] = []
        pairs = 0
        for query in queries[: max(most, self._least)]:
            more = pairs + self._scoring.missing(query)
            if len(block) >= self._least and more > rate * BATCH_SECONDS:
                break
            block.append(query)
            pairs = more
        return block, pairs

    def _first_rate(self) -> float:
        """Return the pairs per second of individual scoring; infinity if not measured."""
        serial = self._scoring.serial
        return serial.pairs / serial.seconds if serial.seconds > 0 and serial.pairs else math.inf

    def _kept(self, batch: list[QueryResult]) -> list[QueryResult]:
        """Write the batch's new scores to the cache; return the batch."""
        fresh, self._scoring.fresh = self._scoring.fresh, []
        if self._cache is not None and self._fingerprint and fresh:
            self._cache.write(self._fingerprint, fresh)
        return batch

    def _stop_if_cancelled(self) -> None:
        if self.cancelled():
            raise Cancelled
