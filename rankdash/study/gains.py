"""What a system gains, as the verdict has it: what its value is worked out from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from rankdash.analysis.statistics.comparison import Comparison, compare
from rankdash.metrics import parse_measure
from rankdash.study.study import Study
from rankdash.value.payoff import Change, Gain, Proof

_PROOFS: Mapping[str, Proof] = {
    "better": "proven",
    "small": "proven",
    "worse": "proven",
    "identical": "same",
    "unproven": "unproven",
    "too_few": "too_few",
}
"""Kind of verdict → what it proves. Of any other kind there is no change to speak of."""

# A relative change beyond this is one of a baseline that is nothing but a rounding error.
_LARGEST = 1e12


def gain(study: Study, system: str) -> Gain | None:
    """The change of the study's metric as a share of the baseline's mean, and the change of hit@k.

    Interval and proof are those of the verdict. That of the relative change is the verdict's
    interval divided by the baseline's mean as measured, so that both have one sign, and both
    exclude 0 or neither does; how sure the baseline's own mean is, is not in it.

    None where the baseline's mean is 0, no query can be compared or the metric is not one of
    quality.
    """
    row = study.comparison.row(system, study.spec)
    before = float(row["before"])
    if row["verdict"] not in _PROOFS or not abs(row["delta"]) < _LARGEST * before:
        return None
    hits = _hits(study).row(system, hit_spec(study.cutoff))
    return Gain(_measured(row, before), _measured(hits, 1.0), int(row["paired"]))


def _measured(row: pd.Series, unit: float) -> Change:
    """The change in a row of a comparison, in so many units of the metric."""
    if row["verdict"] not in _PROOFS:
        return Change(0.0)
    value, low, high = (float(row[each]) / unit for each in ("delta", "delta_low", "delta_high"))
    proof = _PROOFS[row["verdict"]]
    known = np.isfinite(low) and np.isfinite(high)
    return Change(value, low, high, proof) if known else Change(value, proof=proof)


def _hits(study: Study) -> Comparison:
    """The comparison that has the hit rate: the study's own, else one of it alone."""
    spec = hit_spec(study.cutoff)
    if spec in study.specs:
        return study.comparison
    return study.once(
        (
            *("hits", study.dataset_id, study.chosen, spec),
            *(study.conventions, study.statistics),
        ),
        lambda: compare(
            {system: study.evaluate(system, (spec,)) for system in study.chosen},
            study.baseline,
            study.statistics,
        ),
    )


def hit_spec(cutoff: int | None) -> str:
    """The hit rate that tickets and working time hang on."""
    return f"hit@{cutoff or 10}"


def hit_title(study: Study) -> str:
    """What that hit rate is called."""
    return parse_measure(hit_spec(study.cutoff)).title
