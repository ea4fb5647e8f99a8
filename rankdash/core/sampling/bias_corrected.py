"""A judge's verdict, corrected with human labels: the mean change from human-labelled queries and a
judge's grades.

Every query has a change predicted from the judge's grades (`expected_changes`); some also have a
change by human labels. The judge's error is measured on those and subtracted, so a judge that errs,
evenly or in favour of one system, reduces the precision but does not bias the result
(prediction-powered inference).

Source: Angelopoulos, Duchi and Zrnic 2023, PPI++: Efficient Prediction-Powered Inference.
    Differences: t intervals; two pseudo-queries on which the judge is uninformative (see
    `_UNSEEN`); and the weight of the judge uses its variance on the human-labelled queries, which
    makes the interval narrower on real sets with the same coverage.
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
"""The minimum number of human-labelled queries for a corrected number."""

# The errors of a judge that agrees on a few queries show no spread, so two pseudo-queries are added
# on which it is uninformative. Without them coverage falls to 91 % at 20 queries.
_UNSEEN = 2.0
_STEPS = 12
_ROUNDING = 1e-12


@dataclass(frozen=True)
class MeanChange:
    """A mean change over n queries with its standard error, t interval, and two-sided p value of no
    change; NaN if undefined.

    With fewer than `FEWEST_QUERIES` queries only the mean is defined. If all queries change by the
    same amount, the error is 0, low and high equal the mean, and p is NaN.
    """

    mean: float
    error: float
    low: float
    high: float
    p: float
    n: int

    @classmethod
    def of(cls, mean: float, error: float, n: int, level: float) -> MeanChange:
        """Return the interval and p for n - 1 degrees of freedom."""
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
    """The mean change, challenger minus baseline, computed in three ways.

    people: from human labels only. judge: from the judge's grades only, over all queries for which
        it has a value; its interval ignores the judge's errors. corrected: from both, with n
        human-labelled queries; NaN for fewer than `FEWEST_PEOPLE` of them.
    weight: of the judge, from 0 (uninformative) to 1. others: queries with a value from the judge
        only.
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
        """True if there are enough human-labelled queries for a corrected number."""
        return self.people.n >= FEWEST_PEOPLE

    @property
    def worth(self) -> float:
        """The factor by which more human-labelled queries are needed without the judge for the same
        precision; NaN without a corrected number, or without spread."""
        if not self.corrected.error > 0:
            return float("nan")
        return (self.people.error / self.corrected.error) ** 2

    @property
    def saved(self) -> float:
        """The number of additional human-labelled queries needed without the judge for the same
        precision; NaN if `worth` is NaN."""
        return self.people.n * (self.worth - 1)

    @property
    def more(self) -> int | None:
        """The number of additional human-labelled queries until the corrected interval excludes 0,
        if the mean stays and further queries vary like the present ones; None if all queries are
        not enough, or there is no corrected number."""
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
        """Return the effect of further labels, if further queries vary like the present ones.

        Each entry is (human-labelled queries, half the width of the interval from human labels,
        half the width of the corrected interval), from the present number of queries to all. Empty
        without a corrected number.
        """
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
    """Return the mean change of Q queries, computed in three ways.

    people: (Q,) the change by human labels; NaN without one.
    judge: (Q,) the change by the judge's grades; NaN without one, because it failed or grades
        nothing as relevant.
    expected: (Q,) the change predicted from the grades with the human labels of the other queries
        (`expected_changes`), used instead of `judge` in the corrected change; uninformative if NaN.
        None: `judge`.
    labelled: (Q,) whether the whole query has human labels, so that a query without a value has
        none (nothing is relevant); None: queries with a value.

    Human-labelled queries are assumed to be a random sample of all. The mean is over the queries
    with a value by human labels.
    """
    with_value = ~np.isnan(people)
    annotated = with_value if labelled is None else labelled
    helper = judge if expected is None else expected
    sample = _Sample.of(people[annotated], helper[annotated], helper[~annotated])
    n = sample.values
    human = MeanChange.none(n)
    if n:
        human = MeanChange.of(sample.mean, sample.people_error(n), n, level)
    weight, corrected = 0.0, MeanChange.none(n)
    if n >= FEWEST_PEOPLE:
        weight, error = sample.corrected(n)
        moved = weight * (sample.others_mean - sample.judge_mean) / sample.share
        corrected = MeanChange.of(sample.mean + moved, error, n, level) if weight else human
    return Corrected(
        people=human,
        judge=_plain(judge[~np.isnan(judge)], level),
        corrected=corrected,
        weight=weight,
        others=sample.others,
        level=level,
        _sample=sample,
    )


@dataclass(frozen=True)
class _Sample:
    """The statistics of n human-labelled queries and of the other queries. A query without a metric
    value counts as the mean; `values` queries have one.

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
        values = people[~np.isnan(people)]
        # A query without any value is not part of a sample.
        others = others[~np.isnan(others)]
        everyone = np.concatenate([judge, others])
        graded = everyone[~np.isnan(everyone)]
        centre = graded.mean() if len(graded) else 0.0
        mean = float(values.mean()) if len(values) else float("nan")
        change = np.nan_to_num(people - mean)
        judged, other = np.nan_to_num(judge - centre), others - centre
        spread = judged - (judged.mean() if len(judged) else 0.0)
        return cls(
            n=len(people),
            values=len(values),
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
        """The share of the labelled queries with a value."""
        return self.values / self.n

    def people_error(self, count: float) -> float:
        """Return the standard error from human labels only, for `count` queries with a value."""
        return float(np.sqrt(self._variance / count)) if self.values > 1 else float("nan")

    def corrected(self, count: float) -> tuple[float, float]:
        """Return the judge's weight for `count` human-labelled queries with a value, and the
        standard error. The weight is 0 if the judge would not reduce the error."""
        human, remaining = self.people_error(count), self._unlabelled(count)
        if not (remaining >= 2 and self.squares and self.judge_squares):
            return 0.0, human
        slope = self.products / self.judge_squares
        weight = float(np.clip(slope / (1 + count / self.share / remaining), 0.0, 1.0))
        rest = self.squares - 2 * weight * self.products + weight**2 * self.judge_squares
        # Two parameters are fitted: the mean and the weight.
        observed, fitted = rest / (self.values - 2), count - 2
        residual = (fitted * observed + _UNSEEN * self._variance) / (fitted + _UNSEEN)
        tail = weight**2 * self.others_variance / remaining / self.share**2
        error = float(np.sqrt(residual / count + tail))
        return (weight, error) if error < human else (0.0, human)

    def _unlabelled(self, count: float) -> float:
        """Return the number of queries without human labels at this count."""
        return self.n + self.others - count / self.share

    @property
    def _variance(self) -> float:
        return self.squares / (self.values - 1)


def _without_rounding(values: Floats) -> float:
    """Return the sum of squares; 0 if the values differ only by rounding."""
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


# Changes predicted from a judge's grades, learned from human labels.
#
# Human labels show the relevance behind a grade, separately for documents that the challenger ranks
# higher, that the baseline ranks higher, and that both rank the same. Each document of a query then
# gets labels sampled from the human labels of such documents, several times, and the mean of the
# resulting changes is the prediction. A judge that grades too high, or in favour of one system,
# thus predicts the changes as well as its grades allow. A missing grade is treated as one more
# grade: documents on which the judge fails may be relevant more or less often than others, and
# their query still uses its other grades.
#
# Human labels of a query are never used for its own prediction (leave-one-out, as in
# cross-prediction-powered inference: Zrnic and Candès 2024). The predictions therefore err on
# human-labelled queries as they do on all others, and can be corrected like any judge's changes
# (`correct`).

# The number of samples of a query's labels; 64 samples differ by only 1 % on real sets.
_DRAWS = 16
_ORDERS = 64
# The prior of a group is the distribution of its parent group, with this many pseudo-labels.
_PSEUDO_LABELS = 2.0
# Neighbouring grades with fewer labelled documents than this are merged.
_FEWEST_LABELS = 5
# More distinct labels than this are rounded to the nearest of this many values.
_MOST_LABELS = 16


def expected_changes(
    pool: LabelPool, grades: Floats, labels: Floats, changes: Callable[[Floats], Floats]
) -> Floats:
    """Return (Q,) the predicted change of each query; NaN if the judge graded none of its
    documents, or if no sample has a value.

    pool: N pairs of Q queries of the baseline and the challenger, in this order.
    grades: (N,) by the judge, NaN if missing. labels: (N,) human labels, NaN if missing.
    changes: a function from (N,) labels to (Q,) changes in the metric, NaN if a query has no value.
    """
    labelled, graded = ~np.isnan(labels), ~np.isnan(grades)
    answered = np.bincount(pool.query, graded, len(pool.query_ids)) > 0
    usable = labelled & answered[pool.query]
    if not usable.any():
        return np.full(len(pool.query_ids), np.nan)
    values, label = _few_values(labels[usable])
    before, after = pool.ranks
    cell = _levels(grades, usable) * 3 + 1 + (after < before) - (after > before)
    # Pairs of the same kind share a row; human-labelled queries have separate rows.
    owner = np.where(np.isin(pool.query, pool.query[labelled]), pool.query, -1)
    first, row = _distinct(owner, cell)
    shares = _shares(owner[first], cell[first], row[usable], label, len(values))
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
    """Return (R, L) the share of each of L labels among pairs similar to each row, without pairs of
    the row's query.

    owner, cell: (R,) the row's query, -1 for queries without human labels, and its kind.
    row, label: (K,) of each labelled pair.
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
    """Return the first index of each combination of the two, and (N,) the combination of each
    element."""
    codes = (owner + 1) * (group.max() + 1) + group
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    return first, which


def _counts(group: Integers, label: Integers, groups: int, size: int) -> Floats:
    """Return (G, L) how often each label occurs in each group."""
    counts: Floats = np.bincount(group * size + label, minlength=groups * size).astype(np.float64)
    return counts.reshape(groups, size)


def _few_values(labels: Floats) -> tuple[Floats, Integers]:
    """Return at most `_MOST_LABELS` values, ascending, and (K,) the index of the value nearest to
    each label."""
    values, label = np.unique(labels, return_inverse=True)
    if len(values) > _MOST_LABELS:
        values = np.unique(np.quantile(labels, np.linspace(0, 1, _MOST_LABELS)))
        label = np.searchsorted((values[1:] + values[:-1]) / 2, labels)
    return values, label.astype(np.int64)


def _levels(grades: Floats, labelled_pairs: Flags) -> Integers:
    """Return (N,) the judge's grades as numbers from 0: neighbouring grades are merged, from the
    highest to the lowest, until each level has enough human labels. A missing grade has the last
    number, however few are labelled, and then falls back to the distribution of all."""
    missing = np.isnan(grades)
    used, place = np.unique(-grades[~missing], return_inverse=True)
    labelled = np.bincount(place[labelled_pairs[~missing]], minlength=len(used))
    level = np.zeros(len(used), dtype=np.int64)
    current = count = 0
    for at, more in enumerate(labelled):
        level[at] = current
        count += int(more)
        if count >= _FEWEST_LABELS:
            current, count = current + 1, 0
    # The remaining grades are too few for a separate level.
    level = np.minimum(level, max(current - 1, 0))
    numbers = np.full(len(grades), max(current, 1))
    numbers[~missing] = level[place]
    return numbers


def _places(pool: LabelPool) -> Iterator[Floats]:
    """Yield random numbers from 0 to 1 for each sample, (N,). The numbers of a pair are spread
    evenly over the samples; pairs are independent. They depend only on the ids of the pair, so that
    the order of systems and queries does not matter."""
    orders = np.tile(np.arange(_DRAWS) / _DRAWS, (_ORDERS, 1))
    steps = np.random.default_rng(0).permuted(orders, axis=1).T
    query, doc = (
        pd.util.hash_array(ids, categorize=False) for ids in (pool.query_ids, pool.doc_ids)
    )
    codes = query[pool.query] + doc
    order, shift = codes % _ORDERS, codes / 2.0**64
    for step in steps:
        yield (step[order] + shift) % 1


# Several judges on the same human-labelled queries: which of them saves most.

_COLUMNS = (
    *("judge", "pairs", "kappa", "kappa_low", "kappa_high"),
    *("quadratic", "quadratic_low", "quadratic_high", "over", "under"),
    *("people_queries", "others", "alone", "corrected", "low", "high"),
    *("people_error", "error", "worth", "saved"),
)


def ranked_judges(judges: Mapping[str, tuple[Corrected, JudgeAgreement]]) -> pd.DataFrame:
    """Return one row for each judge, the one with the smallest standard error first.

    judges: name → its correction of one comparison and its agreement with human labels.

    Columns: judge; pairs that also have a human label; kappa and quadratic with their 95 %
        intervals; over, under: the shares of pairs graded higher, or lower, than the human label;
        people_queries: human-labelled queries with a value; others: queries with a value from the
        judge only; alone: the change by the judge only; corrected, low, high; people_error and
        error: the standard errors without the judge and with it; worth, saved: as in `Corrected`.
        NaN if undefined.

    A judge with a higher kappa may save less: what matters is how well its changes correlate with
    those from human labels.
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
