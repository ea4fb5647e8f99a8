"""Throughput with several clients at once, measured for a bounded time and never derived.

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


# The machine that a run is measured on: its processor, threads, load and packages.

_NAMED = ("numpy", "torch", "sentence-transformers", "onnxruntime", "openvino", "bm25s")


def load_average() -> float:
    """Processes that wanted to run, over the last minute; NaN where the system does not tell."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return math.nan


def threads_of(reranker: Reranker, capabilities: Capabilities) -> int:
    """How many threads of this machine's processor scoring keeps busy.

    A reranker that knows says so by an attribute `threads` (0: the work is done elsewhere, as on a
    graphics card). Else a model that scores across queries uses all it may, and others one.
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
    """Where this process runs: cpu, logical_cpus, threads, os, python and package versions.

    threads: how many a model may use here. Imports nothing that is not loaded yet.
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
    # platform.processor() names only the architecture on Linux.
    named = [line.partition(":")[2].strip() for line in runtimes.cpu_lines("model name")]
    return named[0] if named else platform.processor() or platform.machine()
