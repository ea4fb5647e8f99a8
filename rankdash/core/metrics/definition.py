"""What a metric is: a `MetricDefinition`. A metric with its cutoff is a `Measure`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rankdash.core.base.i18n import plain
from rankdash.core.data.ragged import Floats
from rankdash.core.metrics.engine import Relevance

Compute = Callable[[Relevance, int | None, float], Floats]
"""(labels in rank order, cutoff or None for the whole list, parameter) → (Q,) values. NaN where
the metric says nothing of a query."""


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
    compute: Compute
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
        own = self.metric.parameter is not None and self.parameter != self.metric.parameter.default
        bracket = f"({plain(self.parameter)})" if own else ""
        return bracket + (f"@{self.k}" if self.k is not None else "")

    def __str__(self) -> str:
        return self.spec
