"""All systems of a data set on one metric, over time.

A data set may have many large runs: only the join of each run with the labels is cached, which is
small, and never the run itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.ranking import Run
from rankdash.core.metrics import Evaluation, Judged, Measure, evaluate, judge, parse_measure
from rankdash.core.runs.combining import tuned
from rankdash.core.statistics.alignment import align
from rankdash.core.statistics.comparison import compare
from rankdash.core.study import latency
from rankdash.core.study.cache import part
from rankdash.core.study.study import Study


@dataclass(frozen=True, eq=False)
class _Joined:
    """A run joined with the labels. excluded: query id → "failed" or "skipped". tuned, stopped: as
    in `Evaluation`."""

    judged: Judged
    excluded: Mapping[str, str]
    tuned: bool
    stopped: bool


def evaluation(study: Study, system: str) -> Evaluation:
    """Return the values per query of the study's metric, for any system of the data set."""
    load = study.systems[system].load
    if load is None or system in study.chosen:
        return study.evaluate(system, (study.spec,))

    def join() -> _Joined:
        run = load()
        judged = judge(run.ranking, study.dataset.qrels, study.conventions)
        record = tuned(run, lambda part: _loaded(study, part))
        return _Joined(judged, run.excluded, record is not None, run.stopped is not None)

    def make() -> Evaluation:
        joined = study.shared(
            ("joined", study.dataset_id, system, *study.conventions.joining), join
        )
        values = evaluate(joined.judged, [study.spec], study.conventions, joined.excluded)
        return replace(values, tuned=joined.tuned, stopped=joined.stopped)

    return study.shared(("history", study.dataset_id, system, study.spec, study.conventions), make)


def _loaded(study: Study, system: str) -> Run | None:
    load = study.systems[system].load if system in study.systems else None
    return None if load is None else load()


def quantiles_ms(study: Study, system: str) -> tuple[float, float]:
    """Return p50 and p95 of a system's latencies in milliseconds, for a fused run of the sums over
    its parts; NaN if unknown."""

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
    """Compare systems with the study's baseline. To show progress, call `evaluation` for each
    system first. every: as for `trend_of_points`."""
    values = {system: evaluation(study, system) for system in systems}
    return trend_of_points(values, study.baseline, study.spec, study.statistics, every=every)


# Runs over time on one data set: which systems share a line, and the correction for many looks.
#
# Means over different queries are not comparable, so the line uses the queries for which all of its
# systems have a value, as in a paired comparison. One run over few queries would reduce this list
# for all: systems with a value for far fewer queries than the most complete one are excluded from
# the line and have their own number of queries, unless the caller requests all systems.

COVERED = 0.9
"""The smallest share of the queries of the most complete system that a system on the line has."""

APART = "apart"

_COMPARED = (
    *("mean", "mean_low", "mean_high", "missing"),
    *("delta", "delta_low", "delta_high", "p", "p_corrected"),
    *("helped", "same", "hurt", "verdict"),
)


@dataclass(frozen=True, eq=False)
class Trend:
    """Comparison of several systems with a baseline by one metric.

    frame: one row for each system, in the order of the argument.

    - system; answered: the number of queries with a value; on_line: whether it is compared over the
    queries of the line.
    - For systems on the line, over the same `queries` queries: mean with mean_low…mean_high;
      missing, the queries without returned documents, which count as 0; delta from the baseline
      with delta_low…delta_high, p and p_corrected (over `comparisons`); helped, same, hurt;
      verdict, as in `statistics.Comparison`. A run that was stopped by its result has the same over
      the queries that it scored. The others have a mean over their own queries, NaN for
      the rest, and the verdict `APART`.

    queries: the number of queries on the line. fullest: the number of queries with a value of the
    most complete system. comparisons: the number of systems compared with the baseline.
    """

    baseline: str
    queries: int
    fullest: int
    comparisons: int
    frame: pd.DataFrame

    @property
    def apart(self) -> int:
        """The number of systems not compared, because they have values for too few queries."""
        return int((self.frame["verdict"] == APART).sum())

    @property
    def tested(self) -> int:
        """The number of comparisons with a p, for which the p values are corrected."""
        return int(self.frame["p"].notna().sum())

    @property
    def stopped(self) -> int:
        """The number of systems with runs that were stopped by their result."""
        return len(self.frame) - self.apart - int(self.frame["on_line"].sum())


def trend_of_points(
    evaluations: Mapping[str, Evaluation],
    baseline: str,
    spec: str | Measure,
    settings: StatisticsSettings | None = None,
    *,
    every: bool = False,
) -> Trend:
    """Compare systems with the baseline over the queries for which all compared systems have a
    value. A system with values for too few queries (`COVERED`) is not compared.

    evaluations: system → its evaluation; they are joined by query id. every: whether systems with
    few answered queries are compared too. The baseline always is, and a system without any value
    never.

    Raises the same errors as `statistics.compare`.
    """
    measure = parse_measure(spec) if isinstance(spec, str) else spec
    aligned = align(evaluations, baseline, [measure])
    has_value = dict(zip(aligned.systems, aligned.known[:, :, 0], strict=True))
    answered = {system: int(row.sum()) for system, row in has_value.items()}
    fullest = max(answered.values())
    least = 1 if every else max(COVERED * fullest, 1)
    # A stopped run has no interval per search, so it is not compared.
    able = aligned.weights is None
    stopped = [name for name in evaluations if evaluations[name].stopped and answered[name]]
    line = [
        name
        for name in evaluations
        if name == baseline or (answered[name] >= least and name not in stopped)
    ]
    common = np.logical_and.reduce([has_value[name] for name in line])
    chosen = {
        name: _only(evaluations[name], aligned.query_ids[common], measure)
        for name in evaluations
        if name in (*line, *(stopped if able else ()))
    }
    compared = compare(chosen, baseline, settings)
    rows = []
    for name, evaluation in evaluations.items():
        row: dict[str, object] = dict.fromkeys(_COMPARED, math.nan)
        if name in chosen:
            figures = compared.row(name, measure)
            row |= {column: figures[column] for column in _COMPARED}
        else:
            row |= {"mean": evaluation.mean(measure), "verdict": APART}
        rows.append({"system": name, "answered": answered[name], "on_line": name in line, **row})
    return Trend(
        baseline=baseline,
        queries=int(common.sum()),
        fullest=fullest,
        comparisons=len(chosen) - 1,
        frame=pd.DataFrame(rows, columns=["system", "answered", "on_line", *_COMPARED]),
    )


def _only(
    evaluation: Evaluation, query_ids: npt.NDArray[np.object_], measure: Measure
) -> Evaluation:
    """Return one measure of an evaluation for some of its queries."""
    rows = pd.Index(evaluation.query_ids, dtype=object).get_indexer(pd.Index(query_ids))
    place = evaluation.measures.index(measure)
    return replace(
        evaluation,
        query_ids=query_ids,
        values=evaluation.values[rows, place, None],
        states=evaluation.states[rows],
        cell_states=evaluation.cell_states[rows, place, None],
        measures=(measure,),
        weights=None if evaluation.weights is None else evaluation.weights.taken(rows),
    )


def p_of_any_pair(p: float, systems: int) -> float:
    """Return the p of a pair chosen among `systems` systems, corrected for all possible pairs
    (Bonferroni); NaN if p is not finite."""
    return min(p * math.comb(systems, 2), 1.0) if math.isfinite(p) else math.nan


def differing(
    before: Mapping[str, object], after: Mapping[str, object]
) -> list[tuple[str, object, object]]:
    """Return (name, before, after) of the values that differ, in the order of the first mapping,
    then the second; None for a missing name."""
    names: Sequence[str] = list(dict.fromkeys([*before, *after]))
    pairs = ((name, before.get(name), after.get(name)) for name in names)
    return [(name, one, other) for name, one, other in pairs if one != other]
