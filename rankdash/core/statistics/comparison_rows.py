"""The rows of a comparison: means, changes and verdicts, of what was drawn and tested for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.metrics import STATES
from rankdash.core.statistics.alignment import Aligned, reason_counts
from rankdash.core.statistics.pairs import direction
from rankdash.core.statistics.planning import QueryPlan, plan, smallest_detectable
from rankdash.core.statistics.settings import StatisticsSettings
from rankdash.core.statistics.significance import effect_size
from rankdash.core.statistics.verdict import (
    FEWEST_QUERIES,
    Facts,
    Verdict,
    decide,
    relative_change,
    verdict_on,
)

FloatArray = npt.NDArray[np.float64]

Verdicts = Mapping[tuple[str, str], Verdict]
"""(challenger, spec) → what may be said of it."""

Reasons = Mapping[tuple[str, str], Mapping[str, int]]
"""(system, spec) → reason → how many queries it kept out of the pairs."""

_MISSING = STATES.index("missing")


@dataclass(frozen=True, eq=False)
class Deltas:
    """S - 1 challengers × M measures; values (S - 1, M, Q), best (M, Q): the highest possible."""

    values: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray
    corrected: FloatArray
    comparisons: npt.NDArray[np.int64]
    best: FloatArray


def rows(
    aligned: Aligned,
    means: tuple[FloatArray, FloatArray],
    deltas: Deltas,
    settings: StatisticsSettings,
) -> tuple[pd.DataFrame, Verdicts, Reasons]:
    """The frame of a `Comparison`, the verdict on each challenger, and why each system lacks
    queries. means: the ends of the intervals of the means, each (S, M)."""
    reasons = _reason_counts(aligned)
    told: list[dict[str, object]] = []
    verdicts: dict[tuple[str, str], Verdict] = {}
    missing = (aligned.known & (aligned.states == _MISSING)).sum(axis=1)
    sides = [_Side.of(aligned, s) for s in range(len(aligned.systems))]
    for m, measure in enumerate(aligned.measures):
        for s, system in enumerate(aligned.systems):
            own = sides[s].values[m][sides[s].known[m]]
            row: dict[str, object] = {
                "metric": measure.spec,
                "system": system,
                "mean": _mean(own),
                "mean_low": means[0][s, m],
                "mean_high": means[1][s, m],
                "n": len(own),
                "missing": int(missing[s, m]),
                "left_out": sum(reasons[system, measure.spec].values()),
            }
            if s == 0:
                row |= _baseline_row(_mean(own), len(own))
            else:
                change, facts = _change(aligned, (sides[0], sides[s]), deltas, s, m, settings)
                verdict = verdict_on(facts)
                verdicts[system, measure.spec] = verdict
                row |= {**change, "verdict": verdict.kind}
            told.append(row)
    return pd.DataFrame(told, columns=list(_COLUMNS)), verdicts, reasons


_COLUMNS = (
    *("metric", "system", "mean", "mean_low", "mean_high", "n", "missing", "paired", "left_out"),
    *("before", "after", "delta", "delta_low", "delta_high", "relative_delta"),
    *("p", "p_corrected", "effect_size", "helped", "same", "hurt"),
    *("smallest_detectable", "more_queries", "more_least", "more_most", "planned_level"),
    "verdict",
)


def _baseline_row(mean: float, n: int) -> dict[str, object]:
    change = 0.0 if n else np.nan
    return {
        "paired": n,
        "before": mean,
        "after": mean,
        **dict.fromkeys(("delta", "delta_low", "delta_high", "relative_delta"), change),
        **dict.fromkeys(("helped", "hurt"), 0),
        "same": n,
        "verdict": "baseline",
    }


@dataclass(frozen=True, eq=False)
class _Side:
    """One system: (M, Q) as `Aligned` has them, each measure in one piece."""

    values: FloatArray
    known: npt.NDArray[np.bool_]
    answered: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, aligned: Aligned, s: int) -> _Side:
        found = (aligned.values, aligned.known, aligned.answered)
        return cls(*(np.ascontiguousarray(each[s].T) for each in found))


def _change(
    aligned: Aligned,
    sides: tuple[_Side, _Side],
    deltas: Deltas,
    s: int,
    m: int,
    settings: StatisticsSettings,
) -> tuple[dict[str, object], Facts]:
    """The columns that compare system `s` with the baseline by measure `m`, and what a verdict
    rests on."""
    place = s - 1, m
    both = sides[0].known[m] & sides[1].known[m]
    changes = deltas.values[s - 1, m][both]
    before, after = (_mean(side.values[m][both]) for side in sides)
    delta, n = _mean(changes), int(both.sum())
    sign = direction(changes, settings.tie_band)
    comparisons = int(deltas.comparisons[place])
    strict = settings.corrects(comparisons)
    level = 1 - (1 - settings.level) / comparisons if strict else settings.level
    room = _mean(deltas.best[m][both]) - before
    detectable = smallest_detectable(changes, level=level) if n >= FEWEST_QUERIES else np.nan
    columns: dict[str, object] = {
        "paired": n,
        "before": before,
        "after": after,
        "delta": delta,
        "delta_low": deltas.low[place],
        "delta_high": deltas.high[place],
        "relative_delta": relative_change(delta, before),
        "p": deltas.p[place],
        "p_corrected": deltas.corrected[place],
        "effect_size": effect_size(changes) if n else np.nan,
        "helped": int((sign > 0).sum()),
        "same": int((sign == 0).sum()),
        "hurt": int((sign < 0).sum()),
        "smallest_detectable": detectable if detectable <= room else np.nan,
        "planned_level": level,
    }
    facts = Facts(
        baseline=aligned.systems[0],
        challenger=aligned.systems[s],
        metric=aligned.measures[m].title,
        n=n,
        in_common=int((sides[0].answered[m] & sides[1].answered[m]).sum()),
        n_before=int(sides[0].known[m].sum()),
        n_after=int(sides[1].known[m].sum()),
        before=before,
        after=after,
        delta=delta,
        low=float(deltas.low[place]),
        high=float(deltas.high[place]),
        p=float(deltas.corrected[place]),
        identical=not sign.any(),
        exact=not changes.any(),
        comparisons=comparisons,
        corrected=strict,
        level=settings.level,
        tie_band=settings.tie_band,
        worthwhile=settings.worthwhile,
        quality=aligned.measures[m].metric.measures_quality,
        fewest=settings.fewest_queries(comparisons),
    )
    if decide(facts) != "unproven":
        return columns, facts
    planned = plan(
        changes,
        (facts.low, facts.high),
        test=settings.test,
        level=level,
        verdict_level=settings.level,
        seed=settings.seed,
    )
    return columns | _planned(planned), replace(facts, plan=planned)


def _planned(planned: QueryPlan | None) -> dict[str, object]:
    if planned is None:
        return {}
    numbers = (planned.likely, planned.least, planned.most)
    names = ("more_queries", "more_least", "more_most")
    return {name: number for name, number in zip(names, numbers, strict=True) if number}


def _reason_counts(aligned: Aligned) -> Reasons:
    reasons = aligned.reasons()
    return {
        (system, measure.spec): reason_counts(reasons[s, :, m])
        for s, system in enumerate(aligned.systems)
        for m, measure in enumerate(aligned.measures)
    }


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else float("nan")
