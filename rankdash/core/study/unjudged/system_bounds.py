"""Bounds due to unjudged documents: for each system, and for the difference of two systems.

All other numbers count an unjudged document as not relevant. Here each may have any label from 0 to
the top grade. This applies to documents that a system (for a difference: either of the two) ranks
within the cutoff, or at any rank if the metric has no cutoff; lower documents count as not
relevant, as in pooling. The bounds are of the whole lists, even if the conventions use judged
documents only: with complete labels both are the same. They are means over the queries that have a
value now; `could_join` counts the queries without a relevant document that could get one and join
the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from rankdash.core.base.errors import SpecError
from rankdash.core.data.arrays import (
    Flags,
    Floats,
    Integers,
    arrow_integers,
    objects,
    offsets_from,
    places,
)
from rankdash.core.data.ranking import Ranking
from rankdash.core.data.weights import Weights
from rankdash.core.metrics import Conventions, Evaluation, Judged, Measure, evaluate, parse_measure
from rankdash.core.metrics.engine import Relevance
from rankdash.core.metrics.evaluation import mean_of_known
from rankdash.core.metrics.judged import all_labelled, each_labelled
from rankdash.core.study.unjudged.metric_bounds import BoundSide, Case, Kind, highest

# The number of variants of queries computed at once: each has the labels of its query.
_CHUNK = 200_000
_ZERO = 1e-12

Sign = Literal["above", "below", "open"]


@dataclass(frozen=True, eq=False)
class RankedLabels:
    """A ranking joined with the labels by `judge`. left_out: query id → "failed" or "skipped".
    weights: of the labelled queries, for means per search."""

    ranking: Ranking
    judged: Judged
    left_out: Mapping[str, str] = field(default_factory=dict)
    weights: Weights | None = None

    def mean(self, values: Floats, queries: Flags) -> float:
        """Return the mean of (Q,) values over some queries; NaN without any."""
        weights = None if self.weights is None else self.weights.taken(queries)
        return mean_of_known(values[queries], weights)


def bounds_table(
    systems: Mapping[str, RankedLabels],
    measures: tuple[Measure | str, ...] | list[Measure | str],
    conventions: Conventions | None = None,
) -> pd.DataFrame:
    """Return one row for each quality metric and system.

    Columns: metric, system, n (queries with a value); judged (mean share of labelled documents in
    the first k, or in the whole list if the metric has no cutoff); unjudged (documents of these
    queries without a label); value (the mean without `judged_only`: unjudged counts as not
    relevant); if_relevant (the mean if all of the system's unjudged documents had the top grade);
    lowest and highest (the bounds of the mean under all possible labels); kind, as `Kind`:
    "tight", "outer" or "range"; could_join.

    if_relevant may be below highest: more relevant documents also raise R and the ideal.
    Means are NaN only if n is 0.
    """
    rules = replace(conventions or Conventions(), judged_only=False)
    rows = []
    for measure in map(_parsed, measures):
        if not measure.metric.measures_quality:
            continue
        for name, system in systems.items():
            rows.append({"metric": measure.spec, "system": name, **_row(system, measure, rules)})
    return pd.DataFrame(rows, columns=_BOUNDS)


_BOUNDS = [
    "metric",
    "system",
    "n",
    "judged",
    "unjudged",
    "value",
    "if_relevant",
    "lowest",
    "highest",
    "kind",
    "could_join",
]


def _parsed(measure: Measure | str) -> Measure:
    return parse_measure(measure) if isinstance(measure, str) else measure


def _row(system: RankedLabels, measure: Measure, rules: Conventions) -> dict[str, object]:
    now = _values(system, measure, rules)
    scored = ~np.isnan(now.column(measure))
    unjudged = pool([system.ranking], [system.judged], rules, measure.k)
    case = _case(system.judged, unjudged, measure, rules)
    counted = _counted(rules)
    side = BoundSide(Relevance(system.judged, counted), unjudged.ranks[0])
    high, kind = highest(case, side, None)
    low, _ = highest(case, None, side)
    relevant = all_labelled(system.judged, unjudged.query, unjudged.ranks[0], case.top)
    filled = measure.metric.compute(Relevance(relevant, counted), measure.k, measure.parameter)
    labelled = _values(system, replace(parse_measure("judged"), k=measure.k), rules)
    return {
        "n": int(scored.sum()),
        "judged": system.mean(labelled.values[:, 0], scored),
        "unjudged": int(unjudged.counts()[scored].sum()),
        "value": system.mean(now.values[:, 0], scored),
        "if_relevant": system.mean(filled, scored),
        "lowest": system.mean(-low, scored),
        "highest": system.mean(high, scored),
        "kind": kind,
        "could_join": _could_join(now, unjudged.counts()),
    }


def _counted(rules: Conventions) -> Conventions:
    """Return the conventions, changed so that MRR is 0, not undefined, for a list without relevant
    documents."""
    return replace(rules, mrr_none="zero")


def _values(system: RankedLabels, measure: Measure, rules: Conventions) -> Evaluation:
    # A row for every labelled query, to align rows and labels; NaN for queries not evaluated.
    missing = "skip" if rules.queries == "both" else rules.missing
    rules = replace(rules, queries="qrels", missing=missing)
    return evaluate(system.judged, [measure], rules, system.left_out)


def _could_join(evaluation: Evaluation, unjudged: npt.NDArray[np.int64]) -> int:
    absent = np.isnan(evaluation.values[:, 0]) & (evaluation.states == "no_relevant")
    return int((absent & (unjudged > 0)).sum())


def _case(judged: Judged, unjudged: Pool, measure: Measure, rules: Conventions) -> Case:
    return Case(
        measure, rules, judged, unjudged.offsets, unjudged.query, top_label(judged, measure, rules)
    )


def top_label(judged: Judged, measure: Measure, conventions: Conventions) -> float:
    """Return the label of a fully relevant document: the top grade of the labels, at least the
    threshold for a binary metric; 1 if no label is above 0."""
    highest_label = float(judged.pool_label.max(initial=0.0)) or 1.0
    return max(highest_label, conventions.threshold) if measure.metric.binary else highest_label


@dataclass(frozen=True, eq=False)
class DeltaBounds:
    """The bounds of the change from a baseline to a challenger due to unjudged documents.

    queries: one row per paired query: query_id, delta, lowest, highest, unjudged (unjudged
        documents that either system ranks within the cutoff).
    delta, lowest, highest: means of challenger - baseline over them; NaN only if n is 0.
    kind: "tight", "outer" or "range", as in `bounds_table`.
    sign: "above" or "below" 0 under all possible labels, otherwise "open".
    unjudged: the number of labels that would close the bounds;
        `UnjudgedComparison.labels_to_settle` estimates how many are enough.
    could_join: the queries without a relevant document that have unjudged ones.
    """

    measure: Measure
    queries: pd.DataFrame
    n: int
    delta: float
    lowest: float
    highest: float
    kind: Kind
    sign: Sign
    unjudged: int
    could_join: int


class UnjudgedComparison:
    """A comparison of two systems by a metric, with the pool of both at its cutoff. Its results are
    cached.

    Raises SpecError for a metric that does not measure quality, or for systems joined with
    different labels.
    """

    def __init__(
        self,
        baseline: RankedLabels,
        challenger: RankedLabels,
        measure: Measure | str,
        conventions: Conventions | None = None,
    ) -> None:
        self.measure = _parsed(measure)
        if not self.measure.metric.measures_quality:
            raise SpecError(
                "{metric} does not measure ranking quality, so labels cannot change it.",
                remedy="Choose a metric such as ndcg@10.",
                metric=self.measure.title,
            )
        if not np.array_equal(baseline.judged.query_ids, challenger.judged.query_ids):
            raise SpecError(
                "The two systems were joined with different labels and cannot be compared.",
                remedy="Join both rankings with the same labels.",
            )
        self.baseline, self.challenger = baseline, challenger
        self.rules = replace(conventions or Conventions(), judged_only=False)
        evaluations = [_values(each, self.measure, self.rules) for each in (baseline, challenger)]
        self.query_ids = baseline.judged.query_ids
        before, after = (each.values[:, 0] for each in evaluations)
        self.delta: Floats = after - before
        self.paired: Flags = ~np.isnan(self.delta)
        unjudged = pool(
            [baseline.ranking, challenger.ranking],
            [baseline.judged, challenger.judged],
            self.rules,
            self.measure.k,
        )
        self.could_join = _could_join(evaluations[0], unjudged.counts())
        self.pool = unjudged.only(self.paired[unjudged.query])
        self.top = top_label(baseline.judged, self.measure, self.rules)

    @cached_property
    def bounds(self) -> DeltaBounds:
        """The bounds of every query and of the mean."""
        high, kind = self._highest(self.pool, 1)
        low, _ = self._highest(self.pool, -1)
        delta, lowest, highest_mean = (
            self.baseline.mean(each, self.paired) for each in (self.delta, -low, high)
        )
        counts = self.pool.counts()
        queries = pd.DataFrame(
            {
                "query_id": self.query_ids,
                "delta": self.delta,
                "lowest": -low,
                "highest": high,
                "unjudged": counts,
            }
        )
        return DeltaBounds(
            measure=self.measure,
            queries=queries[self.paired].reset_index(drop=True),
            n=int(self.paired.sum()),
            delta=delta,
            lowest=lowest,
            highest=highest_mean,
            kind=kind,
            sign=_sign(lowest, highest_mean),
            unjudged=len(self.pool),
            could_join=self.could_join,
        )

    def _highest(self, unjudged: Pool, sign: int) -> tuple[Floats, Kind]:
        """Return (Q,) the highest sign · (challenger - baseline) under any labels for the pool."""
        case = _case(self.baseline.judged, unjudged, self.measure, self.rules)
        rules = _counted(self.rules)
        before = BoundSide(Relevance(self.baseline.judged, rules), unjudged.ranks[0])
        after = BoundSide(Relevance(self.challenger.judged, rules), unjudged.ranks[1])
        return highest(case, after, before) if sign > 0 else highest(case, before, after)

    @cached_property
    def effects(self) -> Floats:
        """(U,) the change of the mean difference if one document of the pool had the top grade and
        the other unjudged ones were not relevant."""
        rules = _counted(self.rules)
        change = np.zeros(len(self.pool))
        n = max(int(self.paired.sum()), 1)
        weights = self.baseline.weights
        for start in range(0, len(self.pool), _CHUNK):
            rows = slice(start, start + _CHUNK)
            query = self.pool.query[rows]
            for system, sign, rank in (
                (self.baseline, -1.0, self.pool.ranks[0, rows]),
                (self.challenger, 1.0, self.pool.ranks[1, rows]),
            ):
                variants = each_labelled(system.judged, query, rank, self.top)
                change[rows] += sign * self._computed(variants, rules)
                change[rows] -= sign * self._computed(system.judged, rules)[query]
        if weights is not None:
            searches = weights.searches
            change *= searches[self.pool.query] / searches[self.paired].sum()
            return change
        return change / n

    def _computed(self, judged: Judged, rules: Conventions) -> Floats:
        return self.measure.metric.compute(
            Relevance(judged, rules), self.measure.k, self.measure.parameter
        )

    def order(self) -> npt.NDArray[np.int64]:
        """Return (U,) the documents of the pool by the size of their effect on the difference,
        descending; equal ones in the order of the labels."""
        return np.argsort(-np.round(np.abs(self.effects), 12), kind="stable")

    @cached_property
    def labels_to_settle(self) -> int | None:
        """The number of labels after which it is certain which system is ahead.

        Assumption: documents are labelled in the order of `order` and are not relevant, so that the
        difference does not change. The result is the smallest number after which no labels for the
        other documents could reverse its sign or make it 0: 0 if it is certain now. Labels that
        change the difference also change the result. None if the difference is 0, or without
        paired queries.
        """
        delta = self.baseline.mean(self.delta, self.paired)
        if not abs(delta) > _ZERO:
            return None
        place = np.empty(len(self.pool), dtype=np.int64)
        place[self.order()] = np.arange(len(self.pool))

        def suffices(labels: int) -> bool:
            against, _ = self._highest(self.pool.only(place >= labels), -1 if delta > 0 else 1)
            return self.baseline.mean(against, self.paired) < -_ZERO

        # The bounds only narrow as labels are added, so binary search is valid.
        enough, short = len(self.pool), -1
        while enough - short > 1:
            middle = (short + enough) // 2
            short, enough = (short, middle) if suffices(middle) else (middle, enough)
        return enough


def _sign(lowest: float, highest_mean: float) -> Sign:
    if lowest > _ZERO:
        return "above"
    return "below" if highest_mean < -_ZERO else "open"


# The unjudged documents, their ranks, and the effects of labels for them.
#
# The pool of some systems at a cutoff is every unjudged document that one of them ranks within the
# cutoff, as in TREC pooling. Once the pool is labelled, judged@k is 1 for all of them.


@dataclass(frozen=True, eq=False)
class Pool:
    """U unjudged documents of Q labelled queries, by query.

    offsets: (Q + 1,). query: (U,) index of the query. doc_ids: (U,) object array of str.
    ranks: (S, U) float64, the rank in each system from 1; inf outside the cutoff.
    """

    offsets: Integers
    query: Integers
    doc_ids: npt.NDArray[np.object_]
    ranks: Floats

    def __len__(self) -> int:
        return len(self.query)

    def counts(self) -> Integers:
        """Return (Q,) the number of unjudged documents of each query."""
        return np.diff(self.offsets)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Pool:
        """Return the pool with the documents for which (U,) `chosen` is true."""
        query = self.query[chosen]
        counts = np.bincount(query, minlength=len(self.offsets) - 1)
        return Pool(offsets_from(counts), query, self.doc_ids[chosen], self.ranks[:, chosen])


def pool(
    rankings: Sequence[Ranking],
    judged: Sequence[Judged],
    conventions: Conventions,
    k: int | None,
) -> Pool:
    """Return the pool of some systems within the first k of each list; None for the whole lists.

    judged: the join of each ranking with the same labels and conventions.
    """
    ordered = [
        ranking.with_ties(conventions.order_rule(ranking.ties), conventions.score_precision)
        for ranking in rankings
    ]
    unjudged = [_unjudged_rows(each, k) for each in judged]
    codes, documents = _numbered([each.documents for each in ordered])
    size = max(len(documents), 1)
    keys = [
        query * size + code[ranking.docs[rows]]
        for (query, rows, _), code, ranking in zip(unjudged, codes, ordered, strict=True)
    ]
    pairs, at = np.unique(np.concatenate(keys), return_inverse=True)
    ranks = np.full((len(ordered), len(pairs)), np.inf)
    start = 0
    for system, (_, _, rank) in enumerate(unjudged):
        ranks[system, at[start : start + len(rank)]] = rank
        start += len(rank)
    query = pairs // size
    named = documents.take(arrow_integers(pairs % size))
    counts = np.bincount(query, minlength=len(judged[0].query_ids))
    return Pool(offsets_from(counts), query, objects(named), ranks)


def _numbered(vocabularies: Sequence[Any]) -> tuple[list[npt.NDArray[Any]], Any]:
    """Merge vocabularies of texts. Return for each the codes of its texts in the merged vocabulary,
    and the merged vocabulary (Arrow text)."""
    if len(vocabularies) == 1:
        return [np.arange(len(vocabularies[0]))], vocabularies[0]
    encoded = pa.concat_arrays(vocabularies).dictionary_encode()
    borders = np.cumsum([len(each) for each in vocabularies])[:-1]
    return np.split(encoded.indices.to_numpy(), borders), encoded.dictionary


def _unjudged_rows(judged: Judged, k: int | None) -> tuple[Integers, Integers, Integers]:
    """Return query, row in the ranking and rank of each unlabelled document within k."""
    shown = judged.lengths if k is None else np.minimum(judged.lengths, k)
    # Most queries may have no unjudged document.
    some = np.flatnonzero(judged.judged_within(k) < shown)
    query = np.repeat(some, shown[some])
    rank = places(offsets_from(shown[some]))
    rows = judged.starts[query] + rank - 1
    unjudged = judged.judged_before[rows + 1] == judged.judged_before[rows]
    return query[unjudged], rows[unjudged], rank[unjudged]
