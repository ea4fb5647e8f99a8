"""All systems of a data set on one metric, over time.

Every run of the data set is looked at, which may be many large ones: what is kept of each is its
join with the labels, a small part of it, and never the run itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.metrics import Evaluation, Judged, Measure, evaluate, judge, parse_measure
from rankdash.core.statistics.alignment import align
from rankdash.core.statistics.comparison import compare
from rankdash.core.study import latency
from rankdash.core.study.cache import part
from rankdash.core.study.study import Study


@dataclass(frozen=True, eq=False)
class _Joined:
    """excluded: query id → "failed" or "skipped"."""

    judged: Judged
    excluded: Mapping[str, str]


def evaluation(study: Study, system: str) -> Evaluation:
    """Per-query values of the metric of the study for any system of the data set."""
    load = study.systems[system].load
    if load is None or system in study.chosen:
        return study.evaluate(system, (study.spec,))

    def join() -> _Joined:
        run = load()
        return _Joined(judge(run.ranking, study.dataset.qrels, study.conventions), run.left_out)

    def make() -> Evaluation:
        joined = study.shared(
            ("joined", study.dataset_id, system, *study.conventions.joining), join
        )
        return evaluate(joined.judged, [study.spec], study.conventions, joined.excluded)

    return study.shared(("history", study.dataset_id, system, study.spec, study.conventions), make)


def quantiles_ms(study: Study, system: str) -> tuple[float, float]:
    """p50 and p95 of a system's latencies in milliseconds, of a fused run those of the sums over
    its parts; NaN where there is none."""

    def make() -> tuple[float, float]:
        summary = latency.summary(study, system)
        if summary is None:
            return math.nan, math.nan
        return summary.p50, math.nan if summary.p95 is None else summary.p95

    return study.shared(
        ("history latency", study.dataset_id, latency.timed_by(study, system)), make
    )


@part("labels", "baseline", "metric", "conventions", "statistics")
def trend(study: Study, systems: tuple[str, ...], *, every: bool) -> Trend:
    """Every system against the baseline of the study; ask for each `evaluation` first where their
    progress is to be shown. every: as for `trend_of_points`."""
    values = {system: evaluation(study, system) for system in systems}
    return trend_of_points(values, study.baseline, study.spec, study.statistics, every=every)


# Runs over time on one data set: whose numbers may stand on one line, and what many looks cost.
#
# Means over different queries are not comparable, so the line rests on the queries that all of its
# systems have a value for, as a paired comparison does. One run over a few queries would shrink
# that list for everyone: systems with a value for far fewer queries than the fullest one stand
# apart, with their own number of queries, unless all are asked for.

COVERED = 0.9
"""A system that has a value for a smaller share of the queries of the fullest one stands apart."""

APART = "apart"

_COMPARED = (
    *("mean", "mean_low", "mean_high", "missing"),
    *("delta", "delta_low", "delta_high", "p", "p_corrected"),
    *("helped", "same", "hurt", "verdict"),
)


@dataclass(frozen=True, eq=False)
class Trend:
    """Systems on one metric, against a baseline.

    frame: one row for each system, in the order given.

    - system; answered: for how many queries it has a value; on_line: whether it is compared.
    - For those on the line, over the same `queries` queries: mean with mean_low…mean_high; missing,
      how many of these it returned no documents for, and which count 0; delta from the baseline
      with delta_low…delta_high, p and p_corrected (over `comparisons`); helped, same, hurt;
      verdict, as in `statistics.Comparison`. The others have their own mean, over the queries they
      answered, NaN for the rest, and the verdict `APART`.

    queries: on how many queries the line rests. fullest: for how many the fullest system has a
    value. comparisons: how many systems were compared with the baseline.
    """

    baseline: str
    queries: int
    fullest: int
    comparisons: int
    frame: pd.DataFrame

    @property
    def apart(self) -> int:
        """How many systems are not on the line."""
        return int((~self.frame["on_line"]).sum())


def trend_of_points(
    evaluations: Mapping[str, Evaluation],
    baseline: str,
    spec: str | Measure,
    settings: StatisticsSettings | None = None,
    *,
    every: bool = False,
) -> Trend:
    """Every system against the baseline over the queries that those on the line share.

    evaluations: system → its evaluation; they are joined by query id. every: whether systems that
    answered few queries belong on the line too. The baseline always does, and a system that has no
    value at all never.

    Raises as `statistics.compare` does.
    """
    measure = parse_measure(spec) if isinstance(spec, str) else spec
    aligned = align(evaluations, baseline, [measure])
    known = dict(zip(aligned.systems, aligned.known[:, :, 0], strict=True))
    answered = {system: int(row.sum()) for system, row in known.items()}
    fullest = max(answered.values())
    least = 1 if every else max(COVERED * fullest, 1)
    line = [name for name in evaluations if answered[name] >= least or name == baseline]
    common = np.logical_and.reduce([known[name] for name in line])
    chosen = {name: _only(evaluations[name], aligned.query_ids[common], measure) for name in line}
    compared = compare(chosen, baseline, settings)
    rows = []
    for name, evaluation in evaluations.items():
        row: dict[str, object] = dict.fromkeys(_COMPARED, math.nan)
        if name in chosen:
            figures = compared.row(name, measure)
            row |= {column: figures[column] for column in _COMPARED}
        else:
            row |= {"mean": evaluation.mean(measure), "verdict": APART}
        rows.append({"system": name, "answered": answered[name], "on_line": name in chosen, **row})
    return Trend(
        baseline=baseline,
        queries=int(common.sum()),
        fullest=fullest,
        comparisons=len(line) - 1,
        frame=pd.DataFrame(rows, columns=["system", "answered", "on_line", *_COMPARED]),
    )


def _only(
    evaluation: Evaluation, query_ids: npt.NDArray[np.object_], measure: Measure
) -> Evaluation:
    """One measure of an evaluation for these queries, all of which it holds."""
    rows = pd.Index(evaluation.query_ids, dtype=object).get_indexer(pd.Index(query_ids))
    place = evaluation.measures.index(measure)
    return replace(
        evaluation,
        query_ids=query_ids,
        values=evaluation.values[rows, place, None],
        states=evaluation.states[rows],
        cell_states=evaluation.cell_states[rows, place, None],
        measures=(measure,),
    )


def p_of_any_pair(p: float, systems: int) -> float:
    """The p of a pair that was picked among so many systems, corrected for all pairs that could
    have been picked (Bonferroni's bound); NaN where there is none."""
    return min(p * math.comb(systems, 2), 1.0) if math.isfinite(p) else math.nan


def differing(
    before: Mapping[str, object], after: Mapping[str, object]
) -> list[tuple[str, object, object]]:
    """(name, before, after) of what is not the same on both sides, in the order of the first and
    then the second; None stands for what a side does not tell."""
    names: Sequence[str] = list(dict.fromkeys([*before, *after]))
    pairs = ((name, before.get(name), after.get(name)) for name in names)
    return [(name, one, other) for name, one, other in pairs if one != other]
