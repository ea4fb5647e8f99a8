"""Outcomes of searches in an online experiment, such as clicks, satisfaction or money."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankdash.core.data.arrays import ArrowText, Flags, Floats, Integers


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of N searches.

    name: of the outcome, such as "clicks". arms, units, queries: the distinct names. arm, unit,
    query: (N,) their codes; a query is -1 if unknown. value: (N,) the outcome; NaN if missing.
    time: (N,) seconds since 1970 in UTC; NaN if unknown. unit_name: the column of the units of
    randomisation, such as "session"; "" if each search is a unit. team: whether the arms are teams
    of interleaved rankings.
    """

    name: str
    arms: tuple[str, ...]
    units: ArrowText
    queries: ArrowText
    arm: Integers
    unit: Integers
    query: Integers
    value: Floats
    time: Floats
    unit_name: str
    team: bool = False

    def __len__(self) -> int:
        return len(self.value)

    def only(self, rows: Flags) -> Outcomes:
        """Return some of the searches. rows: (N,)."""
        chosen = {
            name: getattr(self, name)[rows] for name in ("arm", "unit", "query", "value", "time")
        }
        return replace(self, **chosen)

    def searches_by_unit(self) -> Integers:
        """Return the number of searches of each unit and arm, (U, A)."""
        places = self.unit.astype(np.int64) * len(self.arms) + self.arm
        counts = np.bincount(places, minlength=len(self.units) * len(self.arms))
        return counts.reshape(len(self.units), len(self.arms))

    def totals_by_unit(self) -> Floats:
        """Return the sum of the outcomes of each unit and arm, (U, A)."""
        places = self.unit.astype(np.int64) * len(self.arms) + self.arm
        totals = np.bincount(places, weights=self.value, minlength=len(self.units) * len(self.arms))
        table: Floats = totals.reshape(len(self.units), len(self.arms)).astype(np.float64)
        return table
