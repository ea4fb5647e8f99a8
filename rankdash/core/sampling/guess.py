"""A guess of each gain before it is labelled: it lowers how many labels are needed and never
changes what they say, whatever the guess is worth.

Pairs are in groups, such as one for each grade of a judge. The guess for a group is the mean gain
of the labels drawn from it so far, with two pseudo-labels at the value that the group starts from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rankdash.core.data.ragged import Floats, Integers
from rankdash.core.sampling.label_pool import LabelPool

PSEUDO_LABELS = 2.0
_RANK_BANDS = (1.0, 3.0, 10.0)


@dataclass(frozen=True, eq=False)
class Guess:
    """groups: (N,) the group of each pair of the pool, from 0. start: (G,) the gain, from 0 to 1,
    that each group starts from."""

    groups: Integers
    start: Floats

    @classmethod
    def from_ranks(cls, pool: LabelPool) -> Self:
        """Groups by the best rank in any system; all start from 0."""
        best = pool.ranks.min(axis=0)
        return cls(
            np.searchsorted(np.array(_RANK_BANDS), best).astype(np.int64),
            np.zeros(len(_RANK_BANDS) + 1),
        )

    @classmethod
    def from_gains(cls, gains: Floats) -> Self:
        """A group for each gain that a judge's grades stand for, and one for what it did not grade.

        gains: (N,) from 0 to 1; NaN where the judge has no grade.
        """
        values, groups = np.unique(np.where(np.isnan(gains), -1.0, gains), return_inverse=True)
        return cls(groups.astype(np.int64), np.maximum(values, 0.0))
