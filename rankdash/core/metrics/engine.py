"""`Relevance`: the labels of a ranking in rank order, as the metrics read them.

Only positions with a positive label are kept, so every metric is a few weighted counts per query
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
# Of each ranking what the rules asked for last led to, other ones start anew: whatever label counts
# as relevant, and what depends on that.
_KEPT: WeakKeyDictionary[Judged, tuple[Hashable, _Parts]] = WeakKeyDictionary()
_KEPT_OF_THRESHOLD: WeakKeyDictionary[Judged, tuple[Hashable, _Parts]] = WeakKeyDictionary()


def _parts(
    cache: WeakKeyDictionary[Judged, tuple[Hashable, _Parts]], judged: Judged, rules: Hashable
) -> _Parts:
    known = cache.get(judged)
    if known is None or known[0] != rules:
        known = cache[judged] = rules, {}
    return known[1]


@dataclass(frozen=True, eq=False)
class Hits:
    """Ranked positions with a relevant document, by query, then rank. All of shape (H,).

    ordinal:     1 for the first relevant document of the query, 2 for the second …
    judged_rank: the rank among labelled documents.
    """

    query: Integers
    rank: Integers
    label: Floats
    ordinal: Integers
    judged_rank: Integers


class Relevance:
    """A `Judged` under one set of conventions. Q queries, J ranked positions with a label above 0.

    query, rank, label: (J,) the query's index, the rank from 1, the label; by query, then rank.
        Under `judged_only` ranks count labelled documents alone.
    lengths: (Q,) how many documents each list has; under `judged_only`, labelled ones.

    What metrics and cutoffs share is kept as long as the `Judged` is.
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

    def kept(self, name: Hashable, make: Callable[[], Made], *, of_threshold: bool = False) -> Made:
        """What `make` gives, worked out once: every cutoff of a metric sums up the same weights. It
        may follow from labels, ranks and `judged_only`, and nobody changes it. of_threshold:
        whether it depends on which labels count as relevant, too."""
        parts = self._kept_of_threshold if of_threshold else self._kept
        if name not in parts:
            made = make()
            if isinstance(made, np.ndarray):
                frozen(made)
            parts[name] = made
        return cast(Made, parts[name])

    def __len__(self) -> int:
        return len(self.judged.query_ids)

    def total(self, query: Integers, weights: npt.NDArray[np.generic] | None = None) -> Floats:
        """(Q,) the sum of weights, or the count, by query."""
        return np.bincount(query, weights, minlength=len(self)).astype(np.float64)

    @property
    def relevant(self) -> Flags:
        """(J,) whether the label reaches the threshold."""
        return self.kept(
            "relevant", lambda: self.label >= self.conventions.threshold, of_threshold=True
        )

    @property
    def hits(self) -> Hits:
        """The ranked positions whose document is relevant."""
        return self.kept("hits", self._hits, of_threshold=True)

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
        """(Q,) R: relevant documents in the labels of the query, ranked or not."""
        return self.kept(
            "relevant count",
            lambda: self.total(
                self.pool_query[self.judged.pool_label >= self.conventions.threshold]
            ),
            of_threshold=True,
        )

    @property
    def positive_count(self) -> Integers:
        """(Q,) documents with a label above 0, ranked or not."""
        return self.kept("positive count", lambda: np.diff(self.judged.pool_offsets))

    @property
    def pool_query(self) -> Integers:
        """(P,) the query of each label above 0."""
        return self.kept("pool query", lambda: arrays.owners(self.judged.pool_offsets))

    @property
    def pool_rank(self) -> Integers:
        """(P,) the rank of each label above 0 in the ideal order."""
        return self.kept("pool rank", lambda: arrays.places(self.judged.pool_offsets))

    @property
    def top_label(self) -> Floats:
        """(Q,) the highest label of each query; 0 where none is positive."""
        return self.kept("top label", self._top_label)

    def _top_label(self) -> Floats:
        top = np.zeros(len(self))
        filled = self.positive_count > 0
        top[filled] = self.judged.pool_label[self.judged.pool_offsets[:-1][filled]]
        return top

    @cached_property
    def scale_top(self) -> float:
        """The top of the scale: the highest label of the whole set, or the one in the conventions;
        0 where none is positive.

        Raises SpecError where a label is above the one in the conventions.
        """
        highest = self.judged.highest
        if highest is None:
            highest = float(self.judged.pool_label.max(initial=0.0))
        top = self.conventions.err_top_label or highest
        if highest > top:
            raise SpecError(
                "A label of {highest} is above the highest label in the conventions, {top}.",
                remedy="Raise the highest label there, or leave it empty.",
                highest=plain(highest),
                top=plain(top),
            )
        return top

    def depth(self, k: int | None) -> Floats:
        """(Q,) the divisor of precision: k, or for the whole list its length."""
        return self.lengths.astype(np.float64) if k is None else np.full(len(self), float(k))


def within(rank: Integers, k: int | None) -> Flags:
    """Whether each rank is inside the cutoff."""
    return np.ones(len(rank), dtype=bool) if k is None else rank <= k


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """numerator / denominator, 0 where the denominator is 0."""
    result = np.zeros(len(numerator))
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


# What a metric is: a `MetricDefinition`. A metric with its cutoff is a `Measure`.


@dataclass(frozen=True, eq=False)
class Terms:
    """A metric as a sum over ranked documents: what each adds at its rank, within any cutoff.

    So the change of a query splits into contributions of its documents without a remainder, to
    float rounding.

    weights: (H,) of each relevant position, or (J,) of each with a label above 0.
    divisor: (Q,) what the sum of each query is divided by; 1 if it is None.
    nothing: the value of a query of which no position counts.
    of_hits: whether the weights are those of relevant positions.
    """

    weights: Floats
    divisor: Floats | None = None
    nothing: float = 0.0
    of_hits: bool = True

    def sums(self, relevance: Relevance, k: int | None) -> Floats:
        """Return (Q,) the values of the queries."""
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
        """Return (J,) what each position adds to the value of its query."""
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
    """The number that a metric takes in brackets, as in `rbp(0.95)@10`; between low and high,
    both excluded."""

    name: str
    meaning: str
    default: float
    low: float
    high: float


@dataclass(frozen=True)
class MetricDefinition:
    """One metric of the registry, with all that a tooltip, a formula panel or the docs show.

    name:         the spec without its cutoff, such as "ndcg".
    title:        as printed before the cutoff, such as "NDCG".
    meaning:      one line in the user's terms.
    formula:      plain text; rel_i is the label at rank i, R the number of relevant documents in
                  the labels of the query, k the cutoff.
    latex:        the same in LaTeX, to be drawn. rel*_i is the label at rank i of the best order of
                  all labelled documents, g_i 1 where the document at rank i is relevant, else 0,
                  P_i the precision of the first i.
    terms:        (labels in rank order, cutoff or None for the whole list, parameter) → what each
                  document adds. Of a metric that does not measure quality: (Q,) values, NaN for a
                  query without a value.
    range:        lowest and highest value.
    needs_grades: whether it says more on graded than on 0/1 labels.
    binary:       whether the relevance threshold decides it.
    has_cutoff:   whether `@k` may follow the name.
    perfect_is_top: whether ranking all labelled documents best first, uncut, reaches the highest
                  value; where it does not, `note` says so.
    measures_quality: False for a metric that describes the labels rather than the ranking.
    skips_unlabelled: whether a document without a label changes nothing; else it counts as not
                  relevant.
    dcg:          what ir_measures calls this form of NDCG, as in `nDCG(dcg='exp-log2')`.
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
        """How it is written: "ndcg@k", "r_precision", "rbp(p)@k"."""
        bracket = f"({self.parameter.name})" if self.parameter else ""
        return f"{self.name}{bracket}{'@k' if self.has_cutoff else ''}"

    def compute(self, relevance: Relevance, k: int | None, parameter: float) -> Floats:
        """Return (Q,) values; NaN for a query without a value."""
        terms = self.terms(relevance, k, parameter)
        return terms.sums(relevance, k) if isinstance(terms, Terms) else terms

    def credits(self, relevance: Relevance, k: int | None, parameter: float) -> Floats:
        """Return (J,) what each position adds to the value of its query."""
        terms = self.terms(relevance, k, parameter)
        if not isinstance(terms, Terms):
            return np.zeros(len(relevance.rank))
        return terms.credits(relevance, k)


@dataclass(frozen=True)
class Measure:
    """A metric with its cutoff, such as NDCG at 10. Made by `parse_measure`.

    k: the cutoff; None for the whole list. parameter: NaN-free; 0 where the metric takes none.
    """

    metric: MetricDefinition
    k: int | None = None
    parameter: float = 0.0

    @property
    def spec(self) -> str:
        """The one spelling of this measure: "ndcg@10", "rbp(0.95)@10", "map"."""
        return self.metric.name + self._suffix

    @property
    def changes(self) -> tuple[float, float]:
        """The lowest and the highest change of a value."""
        lowest, highest = self.metric.range
        return lowest - highest, highest - lowest

    @property
    def title(self) -> str:
        """For headings: "NDCG@10"."""
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
