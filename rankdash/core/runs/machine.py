"""The machine that a run is measured on: its processor, threads, load and packages."""

from __future__ import annotations

import math
import os
import platform
import sys
from pathlib import Path

from rankdash.core.rerankers import Capabilities, Reranker
from rankdash.core.rerankers.neural import runtimes

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
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
