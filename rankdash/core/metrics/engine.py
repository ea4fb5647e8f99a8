"""`Relevance`: the labels of a ranking in rank order, the input of the metrics.

Only positions with a positive label are stored, so every metric is a few weighted counts per query
over a small part of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import SpecError
from rankdash.core.base.i18n import plain
from rankdash.core.base.rules import Conventions
from rankdash.core.data import arrays
from rankdash.core.data.arrays import Flags, Floats, Integers
from rankdash.core.data.ranking import frozen
from rankdash.core.metrics.judged import Judged

Made = TypeVar("Made")
_Parts = dict[Hashable, object]
# Cached results per ranking, for the latest conventions only: independent of the relevance
# threshold, and dependent on it.
_KEPT: WeakKeyDictionary[Judged, tuple[Hashable, _Parts]] = WeakKeyDictionary()
_KEPT_OF_THRESHOLD: WeakKeyDictionary[Judged, tuple[Hashable, _Parts]] = WeakKeyDictionary()


def _parts(
    cache: WeakKeyDictionary[Judged, tuple[Hashable, _Parts]], judged: Judged, rules: Hashable
) -> _Parts:
    entry = cache.get(judged)
    if entry is None or entry[0] != rules:
        entry = cache[judged] = rules, {}
    return entry[1]


@dataclass(frozen=True, eq=False)
class Hits:
    """Ranked positions with a relevant document, by query, then rank. All of shape (H,).

    ordinal: 1 for the first relevant document of the query, 2 for the second …
    judged_rank: the rank among labelled documents.
    """

    query: Integers
    rank: Integers
    label: Floats
    ordinal: Integers
    judged_rank: Integers


class Relevance:
    """`Judged` with one set of conventions applied. Q queries, J ranked positions with a label
    above 0.

    query, rank, label: (J,) the query's index, the rank from 1, the label; by query, then rank.
        Under `judged_only`, ranks count labelled documents only.
    lengths: (Q,) number of documents in each list; under `judged_only`, of labelled ones.

    Results shared by metrics and cutoffs are cached as long as the `Judged` exists.
    """

    def __init__(self, judged: Judged, conventions: Conventions) -> None:
        self.judged = judged
        self.conventions = conventions
        condensed = conventions.judged_only
        self.query: Integers = judged.query
        self.rank: Integers = judged.judged_rank if condensed else judged.rank
        self.label: Floats = judged.label
        self.lengths: Integers = judged.judged_within(None) if condensed else judged.lengths
        self._kept = _parts(_KEPT, judged, condensed)
        rules = conventions.threshold, condensed
        self._kept_of_threshold = _parts(_KEPT_OF_THRESHOLD, judged, rules)

    def cached(
        self, name: Hashable, make: Callable[[], Made], *, of_threshold: bool = False
    ) -> Made:
        """Return the cached result of `make`, for example weights that all cutoffs share. The
        result may depend on labels, ranks and `judged_only`, and must not be modified.
        of_threshold: whether it also depends on the relevance threshold."""
        parts = self._kept_of_threshold if of_threshold else self._kept
        if name not in parts:
            result = make()
            if isinstance(result, np.ndarray):
                frozen(result)
            parts[name] = result
        return cast(Made, parts[name])

    def __len__(self) -> int:
        return len(self.judged.query_ids)

    def total(self, query: Integers, weights: npt.NDArray[np.generic] | None = None) -> Floats:
        """Return the sum of weights, or the count, by query, shape (Q,)."""
        return np.bincount(query, weights, minlength=len(self)).astype(np.float64)

    @property
    def relevant(self) -> Flags:
        """Flag of each label that reaches the threshold, shape (J,)."""
        return self.cached(
            "relevant", lambda: self.label >= self.conventions.threshold, of_threshold=True
        )

    @property
    def hits(self) -> Hits:
        """Ranked positions with a relevant document."""
        return self.cached("hits", self._hits, of_threshold=True)

    def _hits(self) -> Hits:
        chosen = self.relevant
        query = self.query[chosen]
        offsets = arrays.offsets_from(np.bincount(query, minlength=len(self)))
        return Hits(
            query=query,
            rank=self.rank[chosen],
            label=self.label[chosen],
            ordinal=arrays.places(offsets),
            judged_rank=self.judged.judged_rank[chosen],
        )

    @property
    def relevant_count(self) -> Floats:
        """R: number of relevant documents of each query, ranked or not, shape (Q,)."""
        return self.cached(
            "relevant count",
            lambda: self.total(
                self.pool_query[self.judged.pool_label >= self.conventions.threshold]
            ),
            of_threshold=True,
        )

    @property
    def positive_count(self) -> Integers:
        """Number of documents with a label above 0, ranked or not, shape (Q,)."""
        return self.cached("positive count", lambda: np.diff(self.judged.pool_offsets))

    @property
    def pool_query(self) -> Integers:
        """Query of each label above 0, shape (P,)."""
        return self.cached("pool query", lambda: arrays.owners(self.judged.pool_offsets))

    @property
    def pool_rank(self) -> Integers:
        """Rank of each label above 0 in the ideal order, shape (P,)."""
        return self.cached("pool rank", lambda: arrays.places(self.judged.pool_offsets))

    @property
    def top_label(self) -> Floats:
        """Highest label of each query; 0 without a positive one, shape (Q,)."""
        return self.cached("top label", self._top_label)

    def _top_label(self) -> Floats:
        top = np.zeros(len(self))
        filled = self.positive_count > 0
        top[filled] = self.judged.pool_label[self.judged.pool_offsets[:-1][filled]]
        return top

    @cached_property
    def scale_top(self) -> float:
        """Top of the scale: the highest label of the whole set, or the one in the conventions; 0
        without a positive label.

        Raises SpecError if a label is above the one in the conventions.
        """
        highest = self.judged.highest
        if highest is None:
            highest = float(self.judged.pool_label.max(initial=0.0))
        top = self.conventions.err_top_label or highest
        if highest > top:
            raise SpecError(
                "A label of {highest} is above the highest label in the conventions, {top}.",
                remedy="Raise the highest label in the conventions, or leave it empty.",
                highest=plain(highest),
                top=plain(top),
            )
        return top

    def depth(self, k: int | None) -> Floats:
        """Return the (Q,) divisor of precision: k, or the length of the list if k is None."""
        return self.lengths.astype(np.float64) if k is None else np.full(len(self), float(k))


def within(rank: Integers, k: int | None) -> Flags:
    """Return whether each rank is within the cutoff."""
    return np.ones(len(rank), dtype=bool) if k is None else rank <= k


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Return numerator / denominator, 0 if the denominator is 0."""
    result = np.zeros(len(numerator))
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


# `MetricDefinition`, and `Measure`: a metric with its cutoff.


@dataclass(frozen=True, eq=False)
class Terms:
    """Metric as a sum over ranked documents: what each adds at its rank, within any cutoff.

    The change of a query therefore splits exactly into contributions of its documents, to float
    rounding.

    weights: (H,) of each relevant position, or (J,) of each with a label above 0.
    divisor: (Q,) divisor of the sum of each query; 1 if it is None.
    nothing: the value of a query without a contributing position.
    of_hits: whether the weights belong to relevant positions.
    """

    weights: Floats
    divisor: Floats | None = None
    nothing: float = 0.0
    of_hits: bool = True

    def sums(self, relevance: Relevance, k: int | None) -> Floats:
        """Return the values of the queries, shape (Q,)."""
        places = relevance.hits if self.of_hits else relevance
        inside = within(places.rank, k)
        query, weights = places.query[inside], self.weights[inside]
        values = relevance.total(query, weights)
        if self.divisor is not None:
            values = ratio(values, self.divisor)
        if np.isnan(self.nothing):
            values[relevance.total(query[weights != 0]) == 0] = np.nan
        return values

    def credits(self, relevance: Relevance, k: int | None) -> Floats:
        """Return what each position adds to the value of its query, shape (J,)."""
        places = relevance.hits if self.of_hits else relevance
        shares = self.weights
        if self.divisor is not None:
            shares = ratio(shares, self.divisor[places.query])
        shares = np.where(within(places.rank, k), shares, 0.0)
        if not self.of_hits:
            return shares
        credit = np.zeros(len(relevance.rank))
        credit[relevance.relevant] = shares
        return credit


@dataclass(frozen=True)
class Parameter:
    """Number that a metric takes in brackets, as in `rbp(0.95)@10`; between low and high, both
    excluded."""

    name: str
    meaning: str
    default: float
    low: float
    high: float


@dataclass(frozen=True)
class MetricDefinition:
    """Metric of the registry, with the texts for tooltips, formula panels and docs.

    name: the spec without its cutoff, such as "ndcg".
    title: as printed before the cutoff, such as "NDCG".
    meaning: one line in the user's terms.
    formula: plain text; rel_i is the label at rank i, R the number of relevant documents in the
        labels of the query, k the cutoff.
    latex: the same in LaTeX. rel*_i is the label at rank i of the best order of all labelled
        documents, g_i is 1 if the document at rank i is relevant, else 0, P_i is the precision of
        the first i.
    terms: (labels in rank order, cutoff or None for the whole list, parameter) → what each document
        adds. For a metric that does not measure quality: (Q,) values, NaN for a query without a
        value.
    range: lowest and highest value.
    needs_grades: whether graded labels give more information than 0/1 labels.
    binary: whether it depends on the relevance threshold.
    has_cutoff: whether `@k` may follow the name.
    perfect_is_top: whether ranking all labelled documents best first, without a cutoff, reaches the
        highest value; if not, `note` gives the reason.
    measures_quality: False for a metric that describes the labels rather than the ranking.
    skips_unlabelled: whether unlabelled documents have no effect; else they count as not relevant.
    dcg: the name of this form of NDCG in ir_measures, as in `nDCG(dcg='exp-log2')`.
    """

    name: str
    title: str
    meaning: str
    formula: str
    latex: str
    reference: str
    terms: Callable[[Relevance, int | None, float], Terms | Floats]
    note: str = ""
    range: tuple[float, float] = (0.0, 1.0)
    needs_grades: bool = False
    binary: bool = True
    has_cutoff: bool = True
    perfect_is_top: bool = True
    measures_quality: bool = True
    skips_unlabelled: bool = False
    parameter: Parameter | None = None
    aliases: tuple[str, ...] = ()
    dcg: str = ""

    @property
    def spec(self) -> str:
        """Spec with placeholders: "ndcg@k", "r_precision", "rbp(p)@k"."""
        bracket = f"({self.parameter.name})" if self.parameter else ""
        return f"{self.name}{bracket}{'@k' if self.has_cutoff else ''}"

    def compute(self, relevance: Relevance, k: int | None, parameter: float) -> Floats:
        """Return the values of the queries; NaN for a query without a value, shape (Q,)."""
        terms = self.terms(relevance, k, parameter)
        return terms.sums(relevance, k) if isinstance(terms, Terms) else terms

    def credits(self, relevance: Relevance, k: int | None, parameter: float) -> Floats:
        """Return what each position adds to the value of its query, shape (J,)."""
        terms = self.terms(relevance, k, parameter)
        if not isinstance(terms, Terms):
            return np.zeros(len(relevance.rank))
        return terms.credits(relevance, k)


@dataclass(frozen=True)
class Measure:
    """Metric with its cutoff, such as NDCG at 10. Made by `parse_measure`.

    k: the cutoff; None for the whole list. parameter: never NaN; 0 if the metric has none.
    """

    metric: MetricDefinition
    k: int | None = None
    parameter: float = 0.0

    @property
    def spec(self) -> str:
        """Normalized spec of this measure: "ndcg@10", "rbp(0.95)@10", "map"."""
        return self.metric.name + self._suffix

    @property
    def changes(self) -> tuple[float, float]:
        """Lowest and highest possible change of a value."""
        lowest, highest = self.metric.range
        return lowest - highest, highest - lowest

    @property
    def title(self) -> str:
        """Title for headings: "NDCG@10"."""
        return self.metric.title + self._suffix

    @property
    def _suffix(self) -> str:
        custom = (
            self.metric.parameter is not None and self.parameter != self.metric.parameter.default
        )
        bracket = f"({plain(self.parameter)})" if custom else ""
        return bracket + (f"@{self.k}" if self.k is not None else "")

    def __str__(self) -> str:
        return self.spec
