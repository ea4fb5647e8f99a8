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
import pandas as pd

# Below this many, fewer than ten queries lie beyond the 99th percentile.
P99_NEEDS = 1000

_NAMED = ("numpy", "torch", "sentence-transformers", "onnxruntime", "bm25s")


@dataclass(frozen=True)
class LatencySummary:
    """Quantiles of the n measured latencies in milliseconds, NaN where n is 0.

    p99: None under 1,000 latencies, where it would rest on a handful of them.
    pairs_per_second: over the measured time, index work left out; NaN where n is 0.
    """

    n: int
    p50: float
    p90: float
    p95: float
    p99: float | None
    pairs_per_second: float


def summarize(queries: pd.DataFrame) -> LatencySummary:
    """Sum up the latencies in the table of a `Run`; queries without one are left out.

    Quantiles interpolate linearly (Hyndman & Fan 1996, type 7).
    """
    measured = queries[queries["latency_ms"].notna()]
    values = measured["latency_ms"].to_numpy(dtype=np.float64)
    if not len(values):
        return LatencySummary(0, math.nan, math.nan, math.nan, None, math.nan)
    p50, p90, p95, p99 = (float(value) for value in np.quantile(values, [0.5, 0.9, 0.95, 0.99]))
    seconds = float(values.sum()) / 1000.0
    return LatencySummary(
        n=len(values),
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99 if len(values) >= P99_NEEDS else None,
        pairs_per_second=float(measured["pairs"].sum()) / seconds if seconds else math.nan,
    )


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
