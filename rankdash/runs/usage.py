"""What services charged for a run, and what was put right in their answers, from its calls."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from rankdash.ranking.ranking import Run


@dataclass(frozen=True)
class Usage:
    """calls: requests, retried ones once. failed: those that never got an answer.

    billed: unit, by the service's own name, → how much of it; "dollars" at the prices in the
        settings. noted: answers in which something was put right or could not be read.
    """

    calls: int
    failed: int
    billed: Mapping[str, float]
    noted: int


def usage(run: Run) -> Usage | None:
    """None where the run asked no other machine. Scores from the cache cost nothing and are not
    in it."""
    if run.calls is None:
        return None
    billed: dict[str, float] = {}
    for text in run.calls["billed"]:
        for unit, amount in json.loads(text).items():
            if math.isfinite(amount):
                billed[unit] = billed.get(unit, 0.0) + amount
    return Usage(
        len(run.calls),
        int((run.calls["error"] != "").sum()),
        billed,
        int((run.calls["note"] != "").sum()),
    )
