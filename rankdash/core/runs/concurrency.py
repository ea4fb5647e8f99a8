"""Throughput with concurrent clients, measured for a limited time, never derived from latency.

One over the mean latency is not a throughput: clients share the cores, the weights and the locks of
a local model, and the machines of a service.
"""

from __future__ import annotations

import math
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rankdash.core.base.errors import UnavailableError
from rankdash.core.data.measured import FEWEST_TIMED, Level, meets
from rankdash.core.rerankers import Capabilities, Request, Reranker
from rankdash.core.rerankers.neural import runtimes

# Enough different queries that no client gets the same one twice in a row.
_LARGEST_SAMPLE = 200


def measure(
    reranker: Reranker,
    requests: Sequence[Request],
    clients: Iterable[int],
    seconds: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[Level, ...]:
    """Measure one level for each number of clients, in order, each for about `seconds`.

    Every client is a thread that sends one request, waits for the answer and takes the next request
    from the shared list, repeatedly; it finishes the requests that it started in time. The reranker
    must be prepared and warm. Return () without requests, and fewer levels if `cancelled`.

    Raises UnavailableError if the reranker becomes unavailable.
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
    """Let the reranker index the documents beforehand, as a search system does."""
    try:
        for request in (sample[0], sample[-1]):
            # The warm-up may have indexed the documents of the first request already.
            if any(answer.index_seconds for answer in reranker.score([request])):
                reranker.score(sample)
                return
    except UnavailableError:
        raise
    except Exception:  # noqa: BLE001 - the error is counted as a failed query
        return


@dataclass
class _Tally:
    """Running totals of the clients of a level."""

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
            except Exception:  # noqa: BLE001, S110 - a reranker may raise anything
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
    """Return the level with the highest throughput among those without a failure and with a 95th
    percentile within the target; None without one."""
    fit = [level for level in levels if not level.failed and meets(level.p95_ms, target_ms)]
    return max(fit, key=lambda level: level.queries_per_second, default=None)


# Description of the machine that a run is measured on: processor, threads, load and packages.

_NAMED = ("numpy", "torch", "sentence-transformers", "onnxruntime", "openvino", "bm25s")


def load_average() -> float:
    """Return the load average of the last minute; NaN if the system does not report it."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return math.nan


def threads_of(reranker: Reranker, capabilities: Capabilities) -> int:
    """Return the number of CPU threads of this machine that scoring uses.

    A reranker may declare it by an attribute `threads` (0: the work is done elsewhere, for example
    on a GPU). Otherwise, a model that scores across queries uses all available threads, and others
    use one.
    """
    declared = getattr(reranker, "threads", None)
    if isinstance(declared, int):
        return declared
    torch = sys.modules.get("torch")
    on_card = torch is not None and torch.cuda.is_initialized()
    if capabilities.needs_network or on_card:
        return 0
    return _threads() if capabilities.across_queries else 1


def machine() -> dict[str, object]:
    """Return a description of this machine: cpu, logical_cpus, threads, os, python and package
    versions.

    threads: the number that a model may use here. Imports no package that is not loaded yet.
    """
    return {
        "cpu": _cpu_model(),
        "logical_cpus": os.cpu_count() or 1,
        "threads": _threads(),
        "os": platform.platform(),
        "python": platform.python_version(),
        **runtimes.versions(_NAMED),
    }


def _threads() -> int:
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    return runtimes.threads()


def _cpu_model() -> str:
    # platform.processor() returns only the architecture on Linux.
    named = [line.partition(":")[2].strip() for line in runtimes.cpu_lines("model name")]
    return named[0] if named else platform.processor() or platform.machine()
