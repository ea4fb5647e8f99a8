"""How much of a list is labelled: the number that says how far to trust the others."""

from __future__ import annotations

import numpy as np

from rankdash.metrics.definition import MetricDefinition
from rankdash.metrics.engine import Relevance
from rankdash.ranking.ragged import Floats


def _judged(relevance: Relevance, k: int | None, parameter: float) -> Floats:
    # The lists as ranked: under `judged_only` the condensed ones would all say 1.
    judged = relevance.judged
    shown = judged.lengths if k is None else np.minimum(judged.lengths, k)
    values = np.full(len(relevance), np.nan)
    np.divide(judged.judged_within(k), shown, out=values, where=shown > 0)
    return values


DEFINITIONS = (
    MetricDefinition(
        name="judged",
        title="Judged",
        meaning="The share of the first k documents that has a label, relevant or not.",
        formula="labelled documents within k, divided by k or by the length of a shorter list",
        reference="Judged@k in ir_measures",
        note="Says nothing of quality. Where it differs between systems, so does the trust that "
        "their other numbers deserve. An empty list has no value.",
        binary=False,
        measures_quality=False,
        compute=_judged,
        aliases=("judged_share",),
    ),
)
