"""Measurements of a run: latency and throughput, which are never derived from each other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

# The share of unknown tokens above which the scores of a model are meaningless.
TOO_MANY_UNKNOWN = 0.1
# The smallest share of its threads' CPU time that an undisturbed computation gets. A smaller share
# means that other programs used the CPU, so that the measured times are too long.
_CONTENDED_SHARE = 0.7
# The shortest time for this test: in less, thread starts and the clock's resolution matter too.
_CONTENDED_SECONDS = 1.0

WithoutText = Literal["exclude", "empty"]
"""Treatment of candidates without a text: ranked last unscored, or scored as empty texts."""

STOPPED = "not scored: the result was conclusive"
"""The reason of the skipped queries of a run that was stopped by its result."""

FEWEST_TIMED = 5
"""The fewest latencies for p90 and p95; with fewer, both would be the slowest one."""

# An upper bound of the relative rounding error of sums of times.
_ROUNDING = 1e-9


def meets(value: float, limit: float) -> bool:
    """Return whether a latency or a cost is at most its limit."""
    return value <= limit * (1 + _ROUNDING)


@dataclass(frozen=True)
class Level:
    """The throughput measured with `in_flight` concurrent queries for a limited time.

    Each of `in_flight` clients sends a query with its own documents, waits for the response and
    sends the next. With a local model they share its weights and the CPU cores.

    queries, failed: numbers of successful and failed queries. seconds: from the first request to
        the last response.
    p50_ms, p95_ms: latencies of successful queries, without index work; NaN if there were none,
        and p95_ms also with fewer than `FEWEST_TIMED`.
    queries_per_second, pairs_per_second: successful ones divided by `seconds`; measured, not
        derived from latencies.
    cpu_per_wall: CPU seconds of this process per second; the number of cores if all were busy.
    """

    in_flight: int
    seconds: float
    queries: int
    failed: int
    p50_ms: float
    p95_ms: float
    queries_per_second: float
    pairs_per_second: float
    cpu_per_wall: float


@dataclass(frozen=True)
class Stopped:
    """Record of a run that was stopped by its result: the change of the metric against the
    first stage was conclusive.

    scored, planned: numbers of queries. seed: of the random order in which they were scored.
    metric, conventions, level: by which the change was conclusive. Empty, and NaN, if the ranking
        is from a file.
    """

    scored: int
    planned: int
    seed: int = 0
    metric: str = ""
    conventions: dict[str, bool | int | float | str | None] = field(default_factory=dict)
    level: float = math.nan


@dataclass(frozen=True)
class Measured:
    """Times and counts of a run. Cached scores are not included in the times.

    An interrupted and resumed run has the times of its last attempt, and the counts of all.

    Throughput, from calls that score without timing single queries:
    pairs: pairs scored in them. computed_tokens: tokens that the model computed in them, without
        texts that were already encoded; NaN if the reranker does not report it, and for runs of an
        older version.
    seconds, cpu_seconds: their wall and CPU time. index_seconds: the part of it for work that a
        search system does beforehand, such as embedding documents.
    together: the largest number of queries per call; 1 = one query at a time.

    Latency, in the table of the run:
    serial_queries: number of queries timed individually and warm. repeats: repeats of each; its
        latency is the median. repeated_ms: query id → the latencies of its repeats, in order;
        empty if each was timed once.
    serial_seconds, serial_cpu_seconds: wall and CPU time of these queries.

    first_call_ms: the first call after loading, not included in latencies; NaN if there was none.
    scored_pairs, cached_pairs: pairs that the reranker scored, and pairs with a cached score.
    threads: number of threads of a local model; 0 if the work is done elsewhere.
    load_start, load_end: the machine's load average over a minute; NaN if not available.
    throughput: one result per requested concurrency.
    unknown_tokens: the share in [0, 1] of tokens of queries and documents that the model does not
        know; NaN if it reads no tokens, and for runs of an older version.
    textless_pairs: pairs whose document has no text. without_text: how they were treated.
    requests: requests to other machines, counting each attempt. refused: requests refused because
        of a rate limit (status 429).
    stopped: None if all planned queries were scored.
    """

    pairs: int = 0
    computed_tokens: float = math.nan
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    index_seconds: float = 0.0
    together: int = 0
    serial_queries: int = 0
    repeats: int = 1
    repeated_ms: dict[str, tuple[float, ...]] = field(default_factory=dict)
    serial_seconds: float = 0.0
    serial_cpu_seconds: float = 0.0
    first_call_ms: float = math.nan
    scored_pairs: int = 0
    cached_pairs: int = 0
    threads: int = 0
    load_start: float = math.nan
    load_end: float = math.nan
    throughput: tuple[Level, ...] = ()
    unknown_tokens: float = math.nan
    textless_pairs: int = 0
    without_text: WithoutText = "exclude"
    requests: int = 0
    refused: int = 0
    stopped: Stopped | None = None

    @property
    def refused_share(self) -> float:
        """The share of requests that were refused because of a rate limit; 0 without requests."""
        return self.refused / self.requests if self.requests else 0.0

    @property
    def pairs_per_second(self) -> float:
        """Pairs scored per second, index work included; NaN if not measured."""
        return self.pairs / self.seconds if self.seconds > 0 and self.pairs else math.nan

    @property
    def tokens_per_second(self) -> float:
        return self.computed_tokens / self.seconds if self.seconds > 0 else math.nan

    @property
    def cpu_per_wall(self) -> float:
        """CPU seconds per second of scoring, latencies included; NaN if nothing was scored."""
        wall = self.seconds + self.serial_seconds
        return (self.cpu_seconds + self.serial_cpu_seconds) / wall if wall > 0 else math.nan

    @property
    def illiterate(self) -> bool:
        """True if too many tokens are unknown to the model for its scores to be meaningful."""
        return self.unknown_tokens > TOO_MANY_UNKNOWN

    @property
    def contended(self) -> bool:
        """True if other programs used the CPU, so that the times are too long; always False for
        less than a second."""
        return (
            self.seconds + self.serial_seconds >= _CONTENDED_SECONDS
            and self.cpu_per_wall < _CONTENDED_SHARE * self.threads
        )
