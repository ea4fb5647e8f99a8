"""Metrics that are sums over documents, (weight of the rank) × (gain of the label): what can be
estimated from some of the labels.

NDCG, MAP and recall divide by what all labels of a query say, so they need complete labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.data.arrays import Floats
from rankdash.core.metrics import Measure, parse_measure
from rankdash.core.metrics.gain import EXPONENTIAL, LINEAR, GainForm, raw_gain

_FORMS = {"dcg": LINEAR, "dcg_exp": EXPONENTIAL}
ADDITIVE = (*_FORMS, "precision", "rbp")
"""The metrics of the registry that are such sums."""


@dataclass(frozen=True)
class Additive:
    """A metric with a cutoff that is a sum over documents, and the scale of its labels.

    top: the highest label of the scale. threshold: the lowest label that is relevant, for
    precision and RBP.
    """

    measure: Measure
    top: float
    threshold: float = 1.0

    @classmethod
    def of(cls, spec: str, *, top: float, threshold: float = 1.0) -> Self:
        """Raises SpecError for a metric that is no such sum or has no cutoff, and for a scale whose
        top is not above 0 or below the threshold."""
        measure = parse_measure(spec)
        if measure.metric.name not in ADDITIVE or measure.k is None:
            raise SpecError(
                "{spec} cannot be estimated from some of the labels.",
                remedy="Use a sum over documents with a cutoff: dcg@10, dcg_exp@10, precision@10 "
                "or rbp@10. The others need all labels of a query.",
                spec=spec,
            )
        if not (
            np.isfinite(top) and top > 0 and (measure.metric.name in _FORMS or top >= threshold)
        ):
            raise SpecError(
                "The highest label of the scale is {top}, but it must be above 0 and reach the "
                "relevance threshold.",
                remedy="For grades 0 to 3 it is 3; for relevant or not it is 1.",
                top=f"{top:g}",
            )
        return cls(measure, top, threshold)

    @property
    def k(self) -> int:
        """The cutoff."""
        return self.measure.k or 0

    @property
    def _form(self) -> GainForm | None:
        return _FORMS.get(self.measure.metric.name)

    def weights(self, ranks: Floats) -> Floats:
        """What a document with the gain 1 adds to its query's value, at (…) ranks from 1; 0 beyond
        the cutoff. In the units of the metric, so that sums are what `evaluate` gives."""
        inside = ranks <= self.k
        rank = np.where(inside, ranks, 1.0)
        if self._form is not None:
            worth = float(raw_gain(self._form, np.array([self.top]))[0])
            found = worth / self._form.discount(rank.astype(np.int64))
        elif self.measure.metric.name == "rbp":
            found = (1 - self.measure.parameter) * self.measure.parameter ** (rank - 1)
        else:
            found = np.full(rank.shape, 1 / self.k)
        return np.where(inside, found, 0.0)

    def gains(self, labels: Floats) -> Floats:
        """(n,) what labels are worth, from 0 to 1; NaN where there is none. A negative label is
        worth 0. Raises DataError for a label above the top of the scale."""
        over = labels > self.top
        if over.any():
            raise DataError(
                "A label is {label}, above the top of the scale, which is {top}.",
                remedy="Give labels on this scale, or start another plan with the scale that they "
                "have: the labels so far count there as known.",
                label=f"{labels[over].max():g}",
                top=f"{self.top:g}",
            )
        if self._form is None:
            return np.where(np.isnan(labels), np.nan, (labels >= self.threshold).astype(np.float64))
        worth = raw_gain(self._form, np.maximum(np.append(labels, self.top), 0.0))
        found: Floats = worth[:-1] / worth[-1]
        return found
