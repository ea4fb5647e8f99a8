"""A judge's verdict, corrected by people: the mean change from people's queries and a judge's.

Every query has a change that the judge's grades let expect (`expected_changes`); some also have one
by people's labels. The judge's error is measured on those and taken off, so that a judge that errs,
evenly or in favour of one system, costs precision and moves nothing (prediction-powered inference).

Source: Angelopoulos, Duchi and Zrnic 2023, PPI++: Efficient Prediction-Powered Inference. What
differs: t intervals; two queries that are taken to be unseen (see `_UNSEEN`); and the judge is
weighed by how it varies on people's queries, which on real sets makes the interval narrower and
hold as often.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import special

from rankdash.core.base.rules import FEWEST_QUERIES
from rankdash.core.data.arrays import Flags, Floats, Integers
from rankdash.core.sampling.label_plan import LabelPool
from rankdash.core.sampling.rater_agreement import JudgeAgreement

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
    what people's other queries say that these grades let expect (`expected_changes`), which takes
    the judge's place in the corrected change; None: the judge's own. It is no help where it is NaN.
    labelled: (Q,) whether people labelled the whole query, so that one without a value has none
    (nothing is relevant); None: those with a value.

    People's queries are taken to be a random sample of all. The mean is that over the queries that
    have a value by people's labels.
    """
    known = ~np.isnan(people)
    annotated = known if labelled is None else labelled
    helper = judge if expected is None else expected
    sample = _Sample.of(people[annotated], helper[annotated], helper[~annotated])
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
        alone, remaining = self.people_error(count), self._left(count)
        if not (remaining >= 2 and self.squares and self.judge_squares):
            return 0.0, alone
        slope = self.products / self.judge_squares
        weight = float(np.clip(slope / (1 + count / self.share / remaining), 0.0, 1.0))
        rest = self.squares - 2 * weight * self.products + weight**2 * self.judge_squares
        # Two values are fitted: the mean and the weight.
        known, fitted = rest / (self.values - 2), count - 2
        residual = (fitted * known + _UNSEEN * self._variance) / (fitted + _UNSEEN)
        tail = weight**2 * self.others_variance / remaining / self.share**2
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


# What a judge's grades let expect of a change, learned from people's labels.
#
# People's labels say what a grade is worth on documents that the challenger ranks higher, that the
# baseline ranks higher, and that neither does. Each document of a query then gets a label sampled
# from what people said of such documents, several times, and the mean of the changes is what to
# expect. So a judge that grades too high, or in favour of one system, follows people's changes as
# well as its grades allow. A missing grade is one more grade: documents on which the judge fails
# may be relevant more or less often than others, and their query keeps what its other grades let
# expect.
#
# What people said of a query is never used for that query (each is left out in turn, as in
# cross-prediction-powered inference: Zrnic and Candès 2024). So the expected changes err on
# people's queries as they do on all others, and may be corrected as any other judge's (`correct`).

# Labels of a query, sampled so many times: with 64, real sets give the same to 1 %.
_DRAWS = 16
_ORDERS = 64
# A group of documents starts from what was said of the group that it is a part of.
_PSEUDO_LABELS = 2.0
# Neighbouring grades with fewer labelled documents than this are one.
_FEWEST_LABELS = 5
# More different labels than these are taken to the nearest of as many.
_MOST_LABELS = 16


def expected_changes(
    pool: LabelPool, grades: Floats, labels: Floats, changes: Callable[[Floats], Floats]
) -> Floats:
    """Return (Q,) the change to expect of each query; NaN if the judge graded nothing of it, and if
    no draw has a value.

    pool: N pairs of Q queries of the baseline and the challenger, in this order. grades: (N,) by
    the judge, NaN where there is none. labels: (N,) by people, NaN where there is none. changes:
    from (N,) labels to (Q,) changes by the metric, NaN where a query has no value.
    """
    labelled, graded = ~np.isnan(labels), ~np.isnan(grades)
    answered = np.bincount(pool.query, graded, len(pool.query_ids)) > 0
    known = labelled & answered[pool.query]
    if not known.any():
        return np.full(len(pool.query_ids), np.nan)
    values, label = _few_values(labels[known])
    before, after = pool.ranks
    cell = _levels(grades, known) * 3 + 1 + (after < before) - (after > before)
    # Pairs of the same kind share a row, of the same query where people labelled it.
    owner = np.where(np.isin(pool.query, pool.query[labelled]), pool.query, -1)
    first, row = _distinct(owner, cell)
    shares = _shares(owner[first], cell[first], row[known], label, len(values))
    bounds = np.cumsum(shares, axis=1)[:, :-1].T
    sampled = []
    for place in _places(pool):
        which = np.zeros(len(pool), dtype=np.int64)
        for bound in bounds:
            which += place > bound[row]
        sampled.append(changes(values[which]))
    count = np.where(answered, (~np.isnan(sampled)).sum(axis=0), 0)
    expected: Floats = np.full(len(count), np.nan)
    np.divide(np.nansum(sampled, axis=0), count, out=expected, where=count > 0)
    return expected


def _shares(owner: Integers, cell: Integers, row: Integers, label: Integers, size: int) -> Floats:
    """(R, L) how often people gave each label, of L, to pairs like those of each row, without those
    of its own query.

    owner, cell: (R,) the row's query, -1 for those that people did not label, and its kind. row,
    label: (K,) of each labelled pair.
    """
    shares = np.full((len(owner), size), 1 / size)
    for group in (np.zeros_like(cell), cell // 3, cell):
        counts = _counts(group[row], label, int(group.max()) + 1, size)[group]
        _, same = _distinct(owner, group)
        counts = counts - _counts(same[row], label, int(same.max()) + 1, size)[same]
        shares = (counts + _PSEUDO_LABELS * shares) / (
            counts.sum(axis=1, keepdims=True) + _PSEUDO_LABELS
        )
    return shares


def _distinct(owner: Integers, group: Integers) -> tuple[Integers, Integers]:
    """Where each combination of the two stands first, and (N,) which combination each has."""
    codes = (owner + 1) * (group.max() + 1) + group
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    return first, which


def _counts(group: Integers, label: Integers, groups: int, size: int) -> Floats:
    """(G, L) how often each label is in each group."""
    counts: Floats = np.bincount(group * size + label, minlength=groups * size).astype(np.float64)
    return counts.reshape(groups, size)


def _few_values(labels: Floats) -> tuple[Floats, Integers]:
    """At most `_MOST_LABELS` values, ascending, and (K,) which of them is nearest to each label."""
    values, label = np.unique(labels, return_inverse=True)
    if len(values) > _MOST_LABELS:
        values = np.unique(np.quantile(labels, np.linspace(0, 1, _MOST_LABELS)))
        label = np.searchsorted((values[1:] + values[:-1]) / 2, labels)
    return values, label.astype(np.int64)


def _levels(grades: Floats, known: Flags) -> Integers:
    """Return (N,) the judge's grades as numbers from 0: neighbours are taken together from the
    highest to the lowest until people labelled enough of each. A missing grade has the number after
    the last, however few are labelled: what is not known of it is what is known of all."""
    missing = np.isnan(grades)
    used, place = np.unique(-grades[~missing], return_inverse=True)
    labelled = np.bincount(place[known[~missing]], minlength=len(used))
    level = np.zeros(len(used), dtype=np.int64)
    current = count = 0
    for at, more in enumerate(labelled):
        level[at] = current
        count += int(more)
        if count >= _FEWEST_LABELS:
            current, count = current + 1, 0
    # What is left at the end is too little for a level of its own.
    level = np.minimum(level, max(current - 1, 0))
    numbers = np.full(len(grades), max(current, 1))
    numbers[~missing] = level[place]
    return numbers


def _places(pool: LabelPool) -> Iterator[Floats]:
    """For each draw (N,) numbers from 0 to 1: spread evenly over the draws of each pair, and in no
    step with those of other pairs. They depend on the ids of the pair alone, so that the order of
    systems and queries changes nothing."""
    orders = np.tile(np.arange(_DRAWS) / _DRAWS, (_ORDERS, 1))
    steps = np.random.default_rng(0).permuted(orders, axis=1).T
    query, doc = (
        pd.util.hash_array(ids, categorize=False) for ids in (pool.query_ids, pool.doc_ids)
    )
    codes = query[pool.query] + doc
    order, shift = codes % _ORDERS, codes / 2.0**64
    for step in steps:
        yield (step[order] + shift) % 1


# Several judges on the same people's queries: which of them saves most.

_COLUMNS = (
    *("judge", "pairs", "kappa", "kappa_low", "kappa_high"),
    *("quadratic", "quadratic_low", "quadratic_high", "over", "under"),
    *("people_queries", "others", "alone", "corrected", "low", "high"),
    *("people_error", "error", "worth", "saved"),
)


def ranked_judges(judges: Mapping[str, tuple[Corrected, JudgeAgreement]]) -> pd.DataFrame:
    """One row for each judge, that which makes the change most certain first.

    judges: name → its correction of one comparison and its agreement with people.

    Columns: judge; pairs that people graded too; kappa and quadratic with their 95 % intervals;
    over, under: the shares of pairs graded higher, or lower, than people do; people_queries: those
    with a value; others: queries that only the judge has; alone: the change by the judge alone;
    corrected, low, high; people_error and error: the standard errors without the judge and with it;
    worth, saved: as `Corrected` has them. NaN where there is no number.

    A judge with a higher kappa may save less: what counts is how well its changes follow people's.
    """
    rows = []
    for name, (correction, agreed) in judges.items():
        plain, squared, overall = agreed.unweighted, agreed.quadratic, agreed.overall
        rows.append(
            {
                "judge": name,
                "pairs": plain.pairs,
                "kappa": plain.kappa,
                "kappa_low": plain.low,
                "kappa_high": plain.high,
                "quadratic": squared.kappa,
                "quadratic_low": squared.low,
                "quadratic_high": squared.high,
                "over": overall["over"],
                "under": overall["under"],
                "people_queries": correction.people.n,
                "others": correction.others,
                "alone": correction.judge.mean,
                "corrected": correction.corrected.mean,
                "low": correction.corrected.low,
                "high": correction.corrected.high,
                "people_error": correction.people.error,
                "error": correction.corrected.error,
                "worth": correction.worth,
                "saved": correction.saved,
            }
        )
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    return table.sort_values("error", kind="stable", ignore_index=True)
