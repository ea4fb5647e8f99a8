"""What services charged for their answers, and what was put right in these, from their calls."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rankdash.ranking.ranking import Run
from rankdash.rerankers import Call


@dataclass(frozen=True)
class Usage:
    """calls: requests, retried ones once. failed: those that never got an answer.

    billed: unit, by the service's own name, → how much of it; "dollars" at the prices in the
        settings. noted: answers in which something was put right or could not be read.
    """

    calls: int = 0
    failed: int = 0
    billed: Mapping[str, float] = field(default_factory=dict)
    noted: int = 0

    @classmethod
    def of(cls, calls: Iterable[Call]) -> Usage:
        """The sum over calls."""
        every = list(calls)
        return _summed(
            (call.billed for call in every),
            (call.error for call in every),
            (call.note for call in every),
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.failed + other.failed,
            _sum((self.billed, other.billed)),
            self.noted + other.noted,
        )


def usage(run: Run) -> Usage | None:
    """None where the run asked no other machine. Scores from the cache cost nothing and are not
    in it."""
    if run.calls is None:
        return None
    return _summed(map(json.loads, run.calls["billed"]), run.calls["error"], run.calls["note"])


def _summed(
    billed: Iterable[Mapping[str, float]], errors: Iterable[str], notes: Iterable[str]
) -> Usage:
    failed = [error != "" for error in errors]
    return Usage(len(failed), sum(failed), _sum(billed), sum(note != "" for note in notes))


def _sum(billed: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in billed:
        for unit, amount in each.items():
            if math.isfinite(amount):
                found[unit] = found.get(unit, 0.0) + amount
    return found
