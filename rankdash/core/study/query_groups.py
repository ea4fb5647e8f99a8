"""The change of each kind of queries, as caveats and decisions name it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from rankdash.core.base.rules import FEWEST_QUERIES
from rankdash.core.statistics.verdict import is_proven
from rankdash.core.study.derived_groups import SMALL, UNKNOWN, grouped, mean_changes
from rankdash.core.study.study import Study

# Made out of values and labels: no kinds that a searcher or a router could tell apart, and queries
# that the baseline did badly on gain by chance alone.
_NO_KINDS = frozenset({"difficulty", "relevant_documents"})
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Group:
    """A kind of queries: column and value. n: its queries that were compared. delta: their mean
    change. proven: whether that is, among the kinds of its column."""

    column: str
    value: str
    n: int
    delta: float
    proven: bool


def groups(study: Study, challenger: str) -> list[Group]:
    """Every kind with enough queries for an interval, of columns with at least two kinds. Queries
    without a value are no kind."""
    return _groups(study, challenger, _columns(study))


def turned(study: Study, challenger: str, change: float) -> list[Group]:
    """Those of `groups` with enough queries that change by more than the tie band in the direction
    opposite to `change`."""
    other_side, band = -math.copysign(1, change), study.statistics.tie_band

    def may(column: str) -> bool:
        means = mean_changes(study.pairs(challenger), _grouped(study, challenger, column))
        beyond = other_side * means["delta"] > band - _ROUNDING
        return bool((beyond & (means["n"] >= SMALL)).any())

    # Intervals and tests, which take long, are made only of columns where it can be.
    columns = [each for each in _columns(study) if may(each)]
    return [
        each
        for each in _groups(study, challenger, columns)
        if each.n >= SMALL and other_side * each.delta > band
    ]


def _grouped(study: Study, challenger: str, column: str) -> pd.Categorical:
    """The kind of each query of the pairs, which do not follow from labels or values."""
    # Unless queries that a system did not rank are left out, every pair has the same.
    both = study.conventions.queries == "both"
    pair = (study.baseline, challenger)
    key = ("grouped", study.dataset_id, column, *(pair if both else ()))
    return study.once(key, lambda: grouped(study.pairs(challenger), study.grouping(column)))


def _columns(study: Study) -> list[str]:
    made = _NO_KINDS - set(study.dataset.segments)
    return [each for each in study.segments if each not in made]


def _groups(study: Study, challenger: str, columns: Iterable[str]) -> list[Group]:
    found = []
    for column in columns:
        table = study.segment(challenger, column)
        if (table["n"] > 0).sum() < 2:
            continue
        known = table[(table["n"] >= FEWEST_QUERIES) & (table["segment"] != UNKNOWN)]
        for row in known.to_dict("records"):
            proven = is_proven(row["low"], row["high"], row["p_corrected"], study.statistics.level)
            size = int(row["n"]), float(row["delta"])
            found.append(Group(column, str(row["segment"]), *size, proven))
    return found
