"""What a run measured of itself: two numbers that are never mixed, latency and throughput."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

# From this share of unknown tokens on, what a model says of texts is not about them.
TOO_MANY_UNKNOWN = 0.1
# A computation that keeps its threads busy gets at least this share of them; below it, other
# programs took the processor away, and the times are longer than the machine needs.
_CONTENDED_SHARE = 0.7
# In less time than this, starting threads and the clock's own steps weigh as much.
_CONTENDED_SECONDS = 1.0

WithoutText = Literal["exclude", "empty"]
"""Candidates without a text: not scored, below those that are, or scored as empty texts."""

FEWEST_TIMED = 5
"""Of fewer latencies p90 and p95 would be the slowest one."""

# Sums of times differ from what they should be by less than this share.
_ROUNDING = 1e-9


def meets(taken: float, limit: float) -> bool:
    """Whether a latency or a cost is within its limit; one of exactly the limit is."""
    return taken <= limit * (1 + _ROUNDING)


@dataclass(frozen=True)
class Level:
    """The throughput measured with `in_flight` queries under way at once, for a bounded time.

    Each of `in_flight` clients sends a query with its own documents, waits for the answer and sends
    the next. For a local model they share its weights and the processor's cores.

    queries, failed: answered with scores, and not. seconds: from the first sent to the last
        answered.
    p50_ms, p95_ms: of the latencies of the answered ones, without index work; NaN where none was,
        and p95_ms where fewer than `FEWEST_TIMED` were.
    queries_per_second, pairs_per_second: answered, over `seconds`: measured, not derived.
    cpu_per_wall: CPU seconds of this process per second; as many as cores where all were busy.
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
class Measured:
    """How a run was timed. Cached scores are in none of the times.

    A run that was broken off and resumed has the times of its last attempt, and the counts of all.

    Throughput, of the calls whose only purpose was to score:
    pairs: scored in them. computed_tokens: read by a model in them, a text that was encoded before
        not again; NaN where the reranker tells none, and for runs of an older version.
    seconds, cpu_seconds: wall and CPU time of them. index_seconds: how much of it was work that a
        search system does beforehand, such as embedding documents.
    together: how many queries a call had at most; 1 = one after the other.

    Latency, in the table of the run:
    serial_queries: how many queries were timed, alone and warm. repeats: how often each; its
        latency is the median. repeated_ms: query id → the latency of each of its repeats, in order;
        none where each was timed once.
    serial_seconds, serial_cpu_seconds: wall and CPU time of that.

    first_call_ms: the first call after loading, which is in no latency; NaN where there was none.
    scored_pairs, cached_pairs: pairs that the reranker scored, and that had their score already.
    threads: how many a local model keeps busy; 0 where the work is done elsewhere.
    load_start, load_end: the machine's load average over a minute; NaN where it tells none.
    throughput: measured at chosen concurrencies; empty where not asked for.
    unknown_tokens: of the tokens of queries and documents, the share in [0, 1] that the model does
        not know; NaN where it reads no tokens, and for runs of an older version.
    textless_pairs: pairs whose document has no text. without_text: what was done with them.
    requests: sent to other machines, each attempt counted. refused: those that were refused because
        of a rate limit (status 429).
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

    @property
    def refused_share(self) -> float:
        """The share of requests that were refused because of a rate limit; 0 without requests."""
        return self.refused / self.requests if self.requests else 0.0

    @property
    def pairs_per_second(self) -> float:
        """Index work included; NaN where not measured."""
        return self.pairs / self.seconds if self.seconds > 0 and self.pairs else math.nan

    @property
    def tokens_per_second(self) -> float:
        return self.computed_tokens / self.seconds if self.seconds > 0 else math.nan

    @property
    def cpu_per_wall(self) -> float:
        """CPU seconds per second of scoring, latencies included; NaN where nothing was scored."""
        wall = self.seconds + self.serial_seconds
        return (self.cpu_seconds + self.serial_cpu_seconds) / wall if wall > 0 else math.nan

    @property
    def illiterate(self) -> bool:
        """Whether the model knows so little of the texts that its scores say nothing of them."""
        return self.unknown_tokens > TOO_MANY_UNKNOWN

    @property
    def contended(self) -> bool:
        """Whether other programs held the processor, so that the times are too long; never said of
        less than a second."""
        return (
            self.seconds + self.serial_seconds >= _CONTENDED_SECONDS
            and self.cpu_per_wall < _CONTENDED_SHARE * self.threads
        )
