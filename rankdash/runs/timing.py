"""What was measured, summed up, and the machine it was measured on."""

from __future__ import annotations

import math
import os
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.rerankers import Capabilities, Reranker

# Below this many, fewer than ten queries lie beyond the 99th percentile.
P99_NEEDS = 1000

_NAMED = ("numpy", "torch", "sentence-transformers", "onnxruntime", "openvino", "bm25s")


@dataclass(frozen=True)
class LatencySummary:
    """Quantiles of the n measured latencies in milliseconds, NaN where n is 0.

    p99: None under 1,000 latencies, where it would rest on a handful of them.
    p50_interval, p95_interval: the latencies between which the quantile lies with at least 95 %
        confidence, whatever the distribution; NaN for a side on which n is too small to tell.
    """

    n: int
    p50: float
    p90: float
    p95: float
    p99: float | None
    p50_interval: tuple[float, float]
    p95_interval: tuple[float, float]


def summarize(queries: pd.DataFrame) -> LatencySummary:
    """Sum up the latencies in the table of a `Run`; queries without one are left out, failed ones
    among them, and so are those whose scores came from the cache.

    Quantiles interpolate linearly (Hyndman & Fan 1996, type 7). The throughput is another number,
    measured by itself: `Run.measured`.
    """
    values = queries["latency_ms"].to_numpy(dtype=np.float64)
    values = np.sort(values[np.isfinite(values)])
    if not len(values):
        none = (math.nan, math.nan)
        return LatencySummary(0, math.nan, math.nan, math.nan, None, none, none)
    p50, p90, p95, p99 = (float(value) for value in np.quantile(values, [0.5, 0.9, 0.95, 0.99]))
    return LatencySummary(
        n=len(values),
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99 if len(values) >= P99_NEEDS else None,
        p50_interval=_interval(values, 0.5),
        p95_interval=_interval(values, 0.95),
    )


def _interval(ordered: npt.NDArray[np.float64], quantile: float) -> tuple[float, float]:
    """Order statistics around a quantile (David & Nagaraja, Order Statistics, 2003, section 7.1):
    how many of n values lie below it is binomial."""
    from scipy.stats import binom

    n = len(ordered)
    below, above = binom.ppf([0.025, 0.975], n, quantile)
    low, high = int(below) - 1, int(above)
    return (
        float(ordered[low]) if low >= 0 else math.nan,
        float(ordered[high]) if high < n else math.nan,
    )


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
    told = getattr(reranker, "threads", None)
    if isinstance(told, int):
        return told
    torch = sys.modules.get("torch")
    on_card = torch is not None and torch.cuda.is_initialized()
    if capabilities.needs_network or on_card:
        return 0
    return _threads() if capabilities.across_queries else 1


def machine() -> dict[str, object]:
    """Where this process runs: cpu, logical_cpus, threads, os, python and package versions.

    threads: how many a model may use here. Imports nothing that is not loaded yet.
    """
    versions: dict[str, object] = {}
    for package in _NAMED:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "cpu": _cpu_model(),
        "logical_cpus": os.cpu_count() or 1,
        "threads": _threads(),
        "os": platform.platform(),
        "python": platform.python_version(),
        **versions,
    }


def _threads() -> int:
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_model() -> str:
    # platform.processor() names only the architecture on Linux.
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
