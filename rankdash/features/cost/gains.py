"""What a system gains, as the verdict has it: what its value is worked out from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from rankdash.core.metrics import parse_measure
from rankdash.core.statistics.comparison import Comparison, compare
from rankdash.core.statistics.inference import relative_interval
from rankdash.core.statistics.verdict import Kind, relative_change
from rankdash.core.study.drawn import estimate_of, only_estimates
from rankdash.core.study.study import Study
from rankdash.features.cost.payoff import Gain, MeasuredChange, Proof
from rankdash.features.judge.judging import JudgedVerdict, headline

_PROOFS: Mapping[str, Proof] = {
    "better": "proven",
    "small": "proven",
    "worse": "proven",
    "identical": "same",
    "unproven": "unproven",
}
"""Kind of verdict → what it proves. Any other kind, such as too few queries, leaves no change that
money could be worked out from."""


def verdict_kind(study: Study, challenger: str) -> Kind:
    """The kind of the verdict that counts: the corrected one if there is one, else the kind by
    people's labels."""
    found = headline(study, challenger)
    by_people: Kind = study.comparison.row(challenger, study.spec)["verdict"]
    return by_people if found is None else found.kind


def is_known(study: Study, system: str) -> bool:
    """Whether the measured change can be put to a value, as `gain` has it."""
    if only_estimates(study):
        return _estimated(study, system) is not None
    found = headline(study, system)
    if found is not None:
        return _corrected(found) is not None
    row = study.comparison.row(system, study.spec)
    return row["verdict"] in _PROOFS and not np.isnan(row["relative_delta"])


def gain(study: Study, system: str) -> Gain | None:
    """The change of the study's metric as a share of the baseline's mean, and the change of hit@k.

    Interval and proof are those of the verdict. That of the relative change is of the same draws
    (`inference.relative_interval`), so that both have one sign, and both exclude 0 or neither does.

    If the labels were sampled, the change is the estimate, and that of hit@k is not known. If the
    study has a judge that labels correct, both changes are the corrected ones.

    None where the baseline's mean is 0 or next to nothing, too few queries can be compared or the
    metric is not one of quality.
    """
    if only_estimates(study):
        return _estimated(study, system)
    found = headline(study, system)
    if found is not None:
        return _judged(study, found)
    if not is_known(study, system):
        return None
    row = study.comparison.row(system, study.spec)
    hit = hits(study, system)
    relative = _measured(row, row["relative_delta"], _relative_interval(study, system))
    return Gain(
        relative,
        _measured(hit, hit["delta"], (hit["delta_low"], hit["delta_high"])),
        int(row["paired"]),
    )


def _estimated(study: Study, system: str) -> Gain | None:
    found = estimate_of(study, system)
    if found is None or not np.isfinite(found.relative):
        return None
    proof: Proof = "proven" if found.settled else "unproven"
    change = MeasuredChange(found.relative, found.relative_low, found.relative_high, proof)
    labels = found.labels + found.known
    return Gain(change, MeasuredChange(0.0), found.queries, labels=labels)


def _judged(study: Study, found: JudgedVerdict) -> Gain | None:
    relative = _corrected(found)
    if relative is None:
        return None
    measure = parse_measure(hit_spec(study.cutoff))
    hit = headline(replace(study, metric=measure.metric.name, cutoff=measure.k), found.challenger)
    change = MeasuredChange(0.0) if hit is None else _changed(hit, 1.0)
    return Gain(relative, change, found.three.corrected.n, found.judge)


def _corrected(found: JudgedVerdict) -> MeasuredChange | None:
    """The change of a corrected verdict as a share of the baseline's mean; None without one."""
    known = np.isfinite(relative_change(found.three.corrected.mean, found.before))
    return _changed(found, found.before) if known else None


def _changed(found: JudgedVerdict, unit: float) -> MeasuredChange:
    change = found.three.corrected
    ends = change.low / unit, change.high / unit
    return MeasuredChange(change.mean / unit, *ends, _PROOFS[found.kind])


def _relative_interval(study: Study, system: str) -> tuple[float, float]:
    pairs = study.pairs(system)
    before, change = (pairs[each].to_numpy(dtype=np.float64) for each in ("before", "delta"))
    both = ~np.isnan(before) & ~np.isnan(change)
    return study.once(
        (
            *("relative", study.dataset_id, study.baseline, system, study.spec),
            *(study.conventions, study.statistics),
        ),
        lambda: relative_interval(before[both], change[both], study.statistics),
    )


def _measured(row: pd.Series, value: float, interval: tuple[float, float]) -> MeasuredChange:
    """A change with the proof that a row of a comparison has."""
    if row["verdict"] not in _PROOFS:
        return MeasuredChange(0.0)
    low, high = map(float, interval)
    proof = _PROOFS[row["verdict"]]
    known = np.isfinite(low) and np.isfinite(high)
    return (
        MeasuredChange(float(value), low, high, proof)
        if known
        else MeasuredChange(float(value), proof=proof)
    )


def hits(study: Study, system: str) -> pd.Series:
    """The row of a comparison that has the change of the hit rate."""
    return _hits(study).row(system, hit_spec(study.cutoff))


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
