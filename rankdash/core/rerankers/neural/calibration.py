"""Which of the exact runtimes is fastest on this machine: measured once for each model, and kept.

They give the same ranking, so the choice is about time only. Which one wins depends on the
processor: it is measured, never assumed.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankdash.core.rerankers.neural import runtimes
from rankdash.core.rerankers.neural.batches import Batching, Ids, compute
from rankdash.core.rerankers.neural.runtimes import Runtime

SECONDS = 0.5
# All of that only where it is a near thing: every second of it is one of each processor's.
_FEWEST_ROUNDS, _ROUNDS = 3, 50
_NEAR = 1.05
# In tokens, those of a query and of a passage. A runtime that rounds lengths pads them as it pads
# texts on average, by half of what it rounds to.
_LENGTHS = (8, 120)
PREFERRED = "onnx"
# PyTorch takes seconds and some 600 MB to import: it has to be this much faster to be worth it.
_MARGINS = {"torch": 0.7, "openvino": 0.9}
_FILE = "calibration.json"


@dataclass(frozen=True)
class Calibration:
    """choice: the runtime to use. seconds: by runtime, the fastest time for a query and a
    passage."""

    choice: str
    seconds: Mapping[str, float]


def kept(folder: Path) -> Calibration | None:
    """What was measured here for the exported model in `folder`, with these versions."""
    try:
        told = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        if told["machine"] != _machine():
            return None
        return Calibration(str(told["choice"]), dict(told["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(folder: Path, measured: Calibration) -> None:
    """Pin the choice, for every later run; a folder that cannot be written costs a new measurement
    the next time."""
    told = {"choice": measured.choice, "seconds": measured.seconds, "machine": _machine()}
    made = folder / f"{uuid.uuid4().hex}.json"
    try:
        made.write_text(json.dumps(told), encoding="utf-8")
        made.replace(folder / _FILE)
    except OSError:
        made.unlink(missing_ok=True)


def calibrate(
    candidates: Mapping[str, Runtime],
    limit: int,
    *,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Calibration:
    """Time the candidates in turns, A B A B, and choose: three rounds, or where a candidate is near
    the time from which on it is chosen, for `seconds` in all or 50 rounds.

    limit: the longest row that the model reads.
    """
    if len(candidates) == 1:
        return Calibration(next(iter(candidates)), {})
    draw = np.random.default_rng(0)
    rows: list[Ids] = [draw.integers(5, 30, size=min(length, limit)) for length in _LENGTHS]

    def forward(runtime: Runtime) -> None:
        how = Batching(runtime.budget, 0, runtime.rounding, limit)
        for row in rows:
            compute([row], [np.zeros_like(row)], runtime.forward, how)

    best = dict.fromkeys(candidates, math.inf)
    for runtime in candidates.values():
        forward(runtime)
    started = clock()
    for done in range(1, _ROUNDS + 1):
        for name, runtime in candidates.items():
            before = clock()
            forward(runtime)
            best[name] = min(best[name], clock() - before)
        if clock() - started >= seconds or (done >= _FEWEST_ROUNDS and not _near(best)):
            break
    return Calibration(choose(best), best)


def choose(seconds: Mapping[str, float]) -> str:
    """The fastest, where it beats the preferred one by its margin."""
    limits = _limits(seconds)
    worthy = {name: taken for name, taken in seconds.items() if taken <= limits[name]}
    return min(worthy, key=lambda name: worthy[name])


def _limits(seconds: Mapping[str, float]) -> dict[str, float]:
    """Name → up to which time it is chosen."""
    base = seconds.get(PREFERRED, math.inf)
    return {name: base * _MARGINS.get(name, 1.0) for name in seconds}


def _near(seconds: Mapping[str, float]) -> bool:
    """Whether a little more or less time would change what is chosen."""
    return any(
        limit / _NEAR < seconds[name] < limit * _NEAR
        for name, limit in _limits(seconds).items()
        if name != PREFERRED
    )


def _machine() -> dict[str, object]:
    versions = runtimes.versions(sorted({kind.package for kind in runtimes.KINDS.values()}))
    node = platform.processor() or platform.machine()
    processor = hashlib.sha256(f"{node} {_model()}".encode()).hexdigest()[:16]
    return {"processor": processor, "threads": runtimes.threads(), **versions}


def _model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The flags tell apart processors that virtual machines give one name.
    wanted = ("model name", "flags")
    return " ".join(line for line in text.splitlines()[:40] if line.startswith(wanted))
