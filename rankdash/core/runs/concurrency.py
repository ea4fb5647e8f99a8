"""Throughput with several clients at once, measured for a bounded time and never derived.

One over the mean latency is not a throughput: clients share the cores, the weights and the locks of
a local model, and the machines of a service.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rankdash.core.base.errors import UnavailableError
from rankdash.core.data.measured import FEWEST_TIMED, Level, meets
from rankdash.core.rerankers import Request, Reranker

# Enough different queries that no client meets the same one twice in a row.
_LARGEST_SAMPLE = 200


def measure(
    reranker: Reranker,
    requests: Sequence[Request],
    clients: Iterable[int],
    seconds: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[Level, ...]:
    """One level for each number of clients, in order, each for about `seconds`.

    Every client is a thread that sends one request, waits for the answer and takes the next from
    the common list, over and over; what it has begun in time it finishes. The reranker has to be
    prepared and warm. Empty without requests; cut short where `cancelled`.

    Raises UnavailableError where the reranker is gone.
    """
    sample = requests[:_LARGEST_SAMPLE]
    if not sample:
        return ()
    _index(reranker, sample)
    levels = []
    for count in clients:
        if cancelled():
            break
        levels.append(_level(reranker, sample, count, seconds, cancelled))
    return tuple(levels)


def _index(reranker: Reranker, sample: Sequence[Request]) -> None:
    """Have the documents embedded beforehand where the reranker does that, as a search system."""
    try:
        for request in (sample[0], sample[-1]):
            # Those of the first may be embedded already, by the warm-up.
            if any(answer.index_seconds for answer in reranker.score([request])):
                reranker.score(sample)
                return
    except UnavailableError:
        raise
    except Exception:  # noqa: BLE001 - what is wrong shows in the level as a failed query
        return


@dataclass
class _Tally:
    """What the clients of a level have done so far."""

    next: int = 0
    latencies: list[float] = field(default_factory=list)
    pairs: int = 0
    failed: int = 0
    last: float = 0.0
    gone: UnavailableError | None = None


def _level(
    reranker: Reranker,
    sample: Sequence[Request],
    count: int,
    seconds: float,
    cancelled: Callable[[], bool],
) -> Level:
    tally, lock = _Tally(), threading.Lock()
    started, cpu_started = time.perf_counter(), time.process_time()

    def client() -> None:
        while tally.gone is None and not cancelled():
            with lock:
                request = sample[tally.next % len(sample)]
                tally.next += 1
            sent = time.perf_counter()
            if sent - started >= seconds:
                return
            good, index_seconds = False, 0.0
            try:
                answer = reranker.score([request])[0]
                good = not answer.error and bool(np.isfinite(answer.scores).all())
                index_seconds = answer.index_seconds
            except UnavailableError as error:
                tally.gone = error
            except Exception:  # noqa: BLE001, S110 - a reranker may be anyone's code
                pass
            ended = time.perf_counter()
            with lock:
                tally.last = max(tally.last, ended)
                if good:
                    tally.latencies.append(max(0.0, ended - sent - index_seconds) * 1e3)
                    tally.pairs += len(request.doc_ids)
                else:
                    tally.failed += 1

    threads = [threading.Thread(target=client, name=f"client-{n}") for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if tally.gone is not None:
        raise tally.gone
    spent = max(tally.last - started, 1e-9)
    done = len(tally.latencies)
    p50, p95 = np.quantile(tally.latencies, [0.5, 0.95]) if done else (math.nan, math.nan)
    return Level(
        in_flight=count,
        seconds=spent,
        queries=done,
        failed=tally.failed,
        p50_ms=float(p50),
        p95_ms=float(p95) if done >= FEWEST_TIMED else math.nan,
        queries_per_second=done / spent,
        pairs_per_second=tally.pairs / spent,
        cpu_per_wall=(time.process_time() - cpu_started) / spent,
    )


def within_target(levels: Iterable[Level], target_ms: float) -> Level | None:
    """The level with the most queries a second of those without a failure whose 95th percentile
    meets the target; None where none does."""
    fit = [level for level in levels if not level.failed and meets(level.p95_ms, target_ms)]
    return max(fit, key=lambda level: level.queries_per_second, default=None)
