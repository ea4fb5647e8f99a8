"""A judge's verdict, corrected by people: the mean change from people's queries and a judge's.

Every query has a change that the judge's grades let expect (`recalibration.py`); some also have one
by people's labels. The judge's error is measured on those and taken off, so that a judge that errs,
evenly or in favour of one system, costs precision and moves nothing (prediction-powered inference).

Source: Angelopoulos, Duchi and Zrnic 2023, PPI++: Efficient Prediction-Powered Inference. What
differs: t intervals; two queries that are taken to be unseen (see `_UNSEEN`); and the judge is
weighed by how it varies on people's queries, which on real sets makes the interval narrower and
hold as often.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from rankdash.core.data.ragged import Flags, Floats
from rankdash.core.statistics.verdict import FEWEST_QUERIES

FEWEST_PEOPLE = 10
"""Below so many queries of people's there is no corrected number."""

# A judge that agrees on a handful of queries shows no spread in what it gets wrong: two queries are
# taken to be unseen on which it is no help. Without them coverage falls to 91 % at 20 queries.
_UNSEEN = 2.0
_STEPS = 12
_ROUNDING = 1e-12


@dataclass(frozen=True)
class MeanChange:
    """A mean change over n queries with its standard error, its t interval, and the two-sided p of
    no change; NaN where there is none: of fewer than `FEWEST_QUERIES`, beyond which an interval
    says nothing, there is a mean alone. Where all queries change by the same amount the error is 0,
    low and high are the mean, and there is no p."""

    mean: float
    error: float
    low: float
    high: float
    p: float
    n: int

    @classmethod
    def of(cls, mean: float, error: float, n: int, level: float) -> MeanChange:
        """For n - 1 degrees of freedom."""
        if n < FEWEST_QUERIES:
            return replace(cls.none(n), mean=mean)
        reach = _quantile(level, n) * error
        p = 2 * float(special.stdtr(n - 1, -abs(mean) / error)) if error > 0 else float("nan")
        return cls(mean, error, mean - reach, mean + reach, p, n)

    @classmethod
    def none(cls, n: int) -> MeanChange:
        nan = float("nan")
        return cls(nan, nan, nan, nan, nan, n)


@dataclass(frozen=True)
class Corrected:
    """The mean change, challenger minus baseline, in three ways.

    people: from people's queries alone. judge: from the judge's grades alone, over all queries that
    it has a value for; its interval knows nothing of the judge's errors. corrected: from both; of n
    of people's queries; without numbers for fewer than `FEWEST_PEOPLE` of them. weight: of the
    judge, from 0 (no help) to 1. others: queries that the judge alone has a value for.
    """

    people: MeanChange
    judge: MeanChange
    corrected: MeanChange
    weight: float
    others: int
    level: float
    _sample: _Sample

    @property
    def enough(self) -> bool:
        """Whether people labelled enough queries for a corrected number."""
        return self.people.n >= FEWEST_PEOPLE

    @property
    def worth(self) -> float:
        """How many times as many queries people would have to label, without the judge, to be as
        precise; NaN where there is no corrected number, or no spread."""
        if not self.corrected.error > 0:
            return float("nan")
        return (self.people.error / self.corrected.error) ** 2

    @property
    def saved(self) -> float:
        """How many more queries people would have to label, without the judge, to be as precise;
        NaN where `worth` is."""
        return self.people.n * (self.worth - 1)

    @property
    def more(self) -> int | None:
        """How many more queries people would have to label until the corrected interval leaves out
        0, if the mean stays and further queries vary as those so far; None where all of them would
        not do, or there is no corrected number."""
        if not self.enough:
            return None
        first = self.people.n
        counts = range(first, int(self._sample.share * (self._sample.n + self.others)) + 1)
        at = bisect_left(
            counts,
            True,
            key=lambda count: (
                _quantile(self.level, count) * self._sample.corrected(count)[1]
                < abs(self.corrected.mean)
            ),
        )
        return counts[at] - first if at < len(counts) else None

    def curve(self) -> list[tuple[int, float, float]]:
        """What labelling on would bring, if further queries vary as those so far: for more and more
        of people's queries, from those there are to all, (queries, half the width of the interval
        of people alone, half that of the corrected one). Empty without a corrected number."""
        if not self.enough:
            return []
        sample, first = self._sample, self.people.n
        last = max(first, int(sample.share * (sample.n + self.others)))
        counts = np.unique(np.geomspace(first, last, _STEPS).round().astype(int))
        return [
            (
                int(count),
                _quantile(self.level, count) * sample.people_error(count),
                _quantile(self.level, count) * sample.corrected(count)[1],
            )
            for count in counts
        ]


def correct(
    people: Floats,
    judge: Floats,
    *,
    expected: Floats | None = None,
    labelled: Flags | None = None,
    level: float,
) -> Corrected:
    """The mean change of Q queries in three ways.

    people: (Q,) the change by people's labels; NaN where there is none. judge: (Q,) by the judge's
    grades; NaN where it has no value, because it failed or finds nothing relevant. expected: (Q,)
    what people's other queries say that these grades let expect (`recalibration.py`), which takes
    the judge's place in the corrected change; None: the judge's own. It is no help where it is NaN.
    labelled: (Q,) whether people labelled the whole query, so that one without a value has none
    (nothing is relevant); None: those with a value.

    People's queries are taken to be a random sample of all. The mean is that over the queries that
    have a value by people's labels.
    """
    known = ~np.isnan(people)
    own = known if labelled is None else labelled
    helper = judge if expected is None else expected
    sample = _Sample.of(people[own], helper[own], helper[~own])
    n = sample.values
    alone = MeanChange.none(n)
    if n:
        alone = MeanChange.of(sample.mean, sample.people_error(n), n, level)
    weight, corrected = 0.0, MeanChange.none(n)
    if n >= FEWEST_PEOPLE:
        weight, error = sample.corrected(n)
        moved = weight * (sample.others_mean - sample.judge_mean) / sample.share
        corrected = MeanChange.of(sample.mean + moved, error, n, level) if weight else alone
    return Corrected(
        people=alone,
        judge=_plain(judge[~np.isnan(judge)], level),
        corrected=corrected,
        weight=weight,
        others=sample.others,
        level=level,
        _sample=sample,
    )


@dataclass(frozen=True)
class _Sample:
    """What the formulas need of n labelled queries, `values` of them with a value, and of the other
    ones. Values of people and judge are less their means, and 0 where there is none: such a query
    says nothing of the mean.

    squares, products, judge_squares: sums over the labelled queries about their means.
    """

    n: int
    values: int
    others: int
    mean: float
    judge_mean: float
    others_mean: float
    squares: float
    products: float
    judge_squares: float
    others_variance: float

    @classmethod
    def of(cls, people: Floats, judge: Floats, others: Floats) -> _Sample:
        known = people[~np.isnan(people)]
        # A query that neither people nor the judge have a value for is not a part of any sample.
        others = others[~np.isnan(others)]
        everyone = np.concatenate([judge, others])
        graded = everyone[~np.isnan(everyone)]
        centre = graded.mean() if len(graded) else 0.0
        mean = float(known.mean()) if len(known) else float("nan")
        change = np.nan_to_num(people - mean)
        judged, other = np.nan_to_num(judge - centre), others - centre
        spread = judged - (judged.mean() if len(judged) else 0.0)
        return cls(
            n=len(people),
            values=len(known),
            others=len(other),
            mean=mean,
            judge_mean=float(judged.mean()) if len(judged) else 0.0,
            others_mean=float(other.mean()) if len(other) else 0.0,
            squares=_without_rounding(change),
            products=float((change * spread).sum()),
            judge_squares=_without_rounding(spread),
            others_variance=float(other.var(ddof=1)) if len(other) > 1 else 0.0,
        )

    @property
    def share(self) -> float:
        """Of the labelled queries that have a value."""
        return self.values / self.n

    def people_error(self, count: float) -> float:
        """The standard error of people alone, of so many queries with a value."""
        return float(np.sqrt(self._variance / count)) if self.values > 1 else float("nan")

    def corrected(self, count: float) -> tuple[float, float]:
        """What the judge counts beside so many queries with a value, and the standard error then. A
        judge that would not lower it counts 0."""
        alone, left = self.people_error(count), self._left(count)
        if not (left >= 2 and self.squares and self.judge_squares):
            return 0.0, alone
        slope = self.products / self.judge_squares
        weight = float(np.clip(slope / (1 + count / self.share / left), 0.0, 1.0))
        rest = self.squares - 2 * weight * self.products + weight**2 * self.judge_squares
        # Two values are fitted: the mean and the weight.
        known, fitted = rest / (self.values - 2), count - 2
        residual = (fitted * known + _UNSEEN * self._variance) / (fitted + _UNSEEN)
        tail = weight**2 * self.others_variance / left / self.share**2
        error = float(np.sqrt(residual / count + tail))
        return (weight, error) if error < alone else (0.0, alone)

    def _left(self, count: float) -> float:
        """The queries that people have not labelled then."""
        return self.n + self.others - count / self.share

    @property
    def _variance(self) -> float:
        return self.squares / (self.values - 1)


def _without_rounding(values: Floats) -> float:
    """The sum of squares; 0 where only the last digits differ."""
    return float((values**2).sum()) if len(values) and np.ptp(values) > _ROUNDING else 0.0


def _plain(values: Floats, level: float) -> MeanChange:
    n = len(values)
    if not n:
        return MeanChange.none(0)
    mean = float(values.mean())
    error = float("nan")
    if n > 1:
        error = float(np.sqrt(_without_rounding(values - mean) / (n - 1) / n))
    return MeanChange.of(mean, error, n, level)


def _quantile(level: float, n: float) -> float:
    return float(special.stdtrit(n - 1, (1 + level) / 2)) if n > 1 else float("nan")
