"""Comparisons of systems with a baseline: intervals, tests and verdicts in one pass over all
columns."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress

import numpy as np
import pandas as pd

from rankdash.core.base.errors import SpecError
from rankdash.core.base.rules import (
    FEWEST_QUERIES,
    LEAST_LEVEL,
    STATISTICS_SETTINGS,
    StatisticsSettings,
)
from rankdash.core.base.text import notebook_html
from rankdash.core.data.arrays import Flags, Floats, Integers
from rankdash.core.data.weights import Weights
from rankdash.core.metrics import STATES, Conventions, Evaluation, Measure, parse_measure
from rankdash.core.statistics.alignment import Aligned, align, direction, reason_counts
from rankdash.core.statistics.anytime import AnytimeSettings
from rankdash.core.statistics.inference import (
    ROUNDING,
    corrected_by_family,
    effect_size,
    intervals,
    p_values,
)
from rankdash.core.statistics.planning import QueryPlan, plan, smallest_detectable
from rankdash.core.statistics.verdict import (
    Facts,
    Margin,
    Verdict,
    decide,
    relative_change,
    title_of,
    verdict_on,
)
from rankdash.core.statistics.weighted import has_few_effective, pseudo_values

__all__ = [
    "STATISTICS_SETTINGS",
    "Comparison",
    "StatisticsSettings",
    "compare",
    "mean_intervals",
]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Challengers compared with a baseline on every metric.

    frame: one row per metric and system, metrics in input order, for each the baseline first and
        the challengers in input order. A number that does not exist is NaN.

    - metric (the spec), system.
    - mean with mean_low…mean_high and n: over all queries with a value of the system.
    - missing: how many of those n have no documents from the system and count 0.
    - paired: number of queries with a value of both it and the baseline; left_out: number of other
    queries (their reasons: `excluded`). before and after: means of baseline and system over the
    paired queries. delta = after - before, with delta_low…delta_high; relative_delta = delta /
    before, NaN if that is 0 or almost 0.
    - p of the chosen test, and p_corrected. Both NaN for metrics that only describe labels.
    - effect_size: Cohen's d_z, NaN if the differences do not vary.
    - helped, same, hurt: paired queries beyond the tie band, or within.
    - smallest_detectable: the change that this number of queries detects with 80 % power, NaN if
    the differences do not vary or the system cannot improve that much. more_queries, more_least,
    more_most: for an unproven change, the number of additional queries that would prove it
    (`planning.QueryPlan`), NaN if no number would or it is unknown. Both at planned_level, the
    level that a correction leaves to each comparison (Bonferroni's, the strictest).
    - verdict: its kind.

    If the run of the system or the baseline was stopped by its result, all intervals are
    anytime-valid, and p, smallest_detectable and more_queries are NaN.

    stopped: the systems with runs that were stopped by their result.

    If means are per search, means, changes, intervals, p and effect_size are weighted, and
    more_queries is NaN. With uneven weights, the columns n_effective and paired_effective are the
    effective numbers of queries behind n and paired (`Weights.effective`); below `FEWEST_QUERIES`,
    intervals and p are NaN.

    With fewer than `FEWEST_QUERIES` values, intervals are NaN, and with fewer pairs, the test and
    smallest_detectable. The baseline's own rows have delta 0 and the verdict "baseline".
    """

    baseline: str
    challengers: tuple[str, ...]
    measures: tuple[Measure, ...]
    conventions: Conventions
    settings: StatisticsSettings
    frame: pd.DataFrame
    verdicts: _Verdicts
    reasons: _Reasons
    stopped: frozenset[str] = frozenset()

    def row(self, system: str, spec: str | Measure) -> pd.Series:
        """Return the row of the frame. Raises SpecError for a system or metric that was not
        compared."""
        place = self._places[system, self._spec(system, spec)]
        if place not in self._rows:
            self._rows[place] = self.frame.iloc[place]
        return self._rows[place]

    def in_order(self, specs: Sequence[str]) -> Comparison:
        """Return the comparison with its metrics in the order of `specs`, which must be the same
        metrics.

        Raises SpecError for a metric that was not compared.
        """
        places = [self._spec(self.baseline, spec) for spec in specs]
        if places == [measure.spec for measure in self.measures]:
            return self
        metrics = self.frame["metric"].tolist()
        # Sorting is stable, so the order of systems does not change.
        order = sorted(range(len(self.frame)), key=lambda at: places.index(metrics[at]))
        pairs = sorted(self.reasons, key=lambda pair: places.index(pair[1]))
        return replace(
            self,
            measures=tuple(sorted(self.measures, key=lambda each: places.index(each.spec))),
            frame=self.frame.iloc[order].reset_index(drop=True),
            verdicts={pair: self.verdicts[pair] for pair in pairs if pair in self.verdicts},
            reasons={pair: self.reasons[pair] for pair in pairs},
        )

    def __str__(self) -> str:
        """Show the table and the sentences of the verdicts, for scripts."""
        table = self._shown.to_string(index=False, na_rep="–", float_format="{:.4f}".format)
        return "\n".join([table, *(verdict.sentence for verdict in self.verdicts.values())])

    def _repr_html_(self) -> str:
        """Show the table and the sentences of the verdicts in a notebook. Names are not rendered by
        MathJax and cannot change the writing direction."""
        table = self._shown.to_html(index=False, na_rep="–", float_format="{:.4f}".format)
        sentences = (html.escape(verdict.sentence) for verdict in self.verdicts.values())
        return notebook_html(table + "".join(f"<p>{sentence}</p>" for sentence in sentences))

    @property
    def corrected(self) -> bool:
        """True if any p is corrected for other comparisons."""
        return bool(self.frame["planned_level"].gt(self.settings.level).any())

    @property
    def _shown(self) -> pd.DataFrame:
        p = "p_corrected" if self.corrected else "p"
        columns = ["metric", "system", "mean", "delta", "delta_low", "delta_high", p]
        return self.frame[[*columns, "helped", "same", "hurt", "verdict"]]

    @cached_property
    def _rows(self) -> dict[int, pd.Series]:
        """Cache of `row`: pandas takes long to build a row."""
        return {}

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        """(system, spec) → the place of its row in the frame."""
        pairs = zip(self.frame["system"], self.frame["metric"], strict=True)
        return {pair: place for place, pair in enumerate(pairs)}

    def verdict(
        self, system: str, spec: str | Measure, names: Mapping[str, str] | None = None
    ) -> Verdict:
        """Return the verdict on a challenger. names: system → its name in the sentence.

        Raises SpecError for a challenger or metric that was not compared.
        """
        verdict = self.verdicts.get((system, self._spec(system, spec)))
        if verdict is None:
            raise SpecError("{baseline!r} is the baseline itself.", baseline=system)
        return verdict.named(names or {})

    def excluded(self, system: str, spec: str | Measure) -> Mapping[str, int]:
        """Return reason → number of queries excluded from the pairs, for the reasons that occur.

        Raises SpecError for a system or metric that was not compared.
        """
        return self.reasons[system, self._spec(system, spec)]

    def _spec(self, system: str, spec: str | Measure) -> str:
        threshold = self.conventions.threshold
        measure = parse_measure(spec, threshold) if isinstance(spec, str) else spec
        if measure not in self.measures:
            raise SpecError(
                "{spec!r} was not compared.",
                remedy="Compared: {specs}.",
                spec=measure.spec,
                specs=", ".join(each.spec for each in self.measures),
            )
        if system not in (self.baseline, *self.challengers):
            raise SpecError(
                "{system!r} was not compared.",
                remedy="Compared: {systems}.",
                system=system,
                systems=", ".join((self.baseline, *self.challengers)),
            )
        return measure.spec


def compare(
    evaluations: Mapping[str, Evaluation],
    baseline: str,
    settings: StatisticsSettings | None = None,
    *,
    measures: Sequence[Measure] | None = None,
    best: Evaluation | None = None,
    rivals: Sequence[str] = (),
) -> Comparison:
    """Compare every system with the baseline on `measures`, by default all measures of the
    baseline.

    evaluations: system → its evaluation; they are joined by query id. A query without a value of
        one system is excluded from both. best: the highest values that a system can have; None: the
        metric's range. rivals: metrics for later comparisons among the challengers: their slow part
        is computed in the same pass.

    Raises SpecError if the baseline is not among the systems, a system lacks a metric, or the
    systems were evaluated under different conventions.
    """
    settings = settings or StatisticsSettings()
    aligned = align(evaluations, baseline, measures)
    values = np.ascontiguousarray(aligned.values.transpose(0, 2, 1))
    systems, width, queries = values.shape
    differences = _differences(values[1:], values[:1])
    shape = (systems - 1, width)
    split, size = systems * width, (systems - 1) * width
    among = [
        _differences(values[one, at], values[other, at])
        for at, measure in enumerate(aligned.measures)
        if measure.spec in rivals
        for one in range(1, systems)
        for other in range(1, one)
    ]
    columns = np.vstack(
        [values.reshape(split, queries), differences.reshape(size, queries), *among]
    ).T
    means_in, changes_in = _possible(aligned.measures)
    limits = tuple(
        np.concatenate(
            [np.tile(mean, systems), np.tile(change, systems - 1), np.full(len(among), end)]
        )
        for mean, change, end in zip(means_in, changes_in, (-np.inf, np.inf), strict=True)
    )
    anytime = np.concatenate(
        [
            aligned.stopped.repeat(width),
            (aligned.stopped[1:] | aligned.stopped[0]).repeat(width),
            np.zeros(len(among), dtype=bool),
        ]
    )
    weights = aligned.weights
    bounds = _intervals(columns, anytime, settings, (limits[0], limits[1]), weights)
    low, high = (ends[: split + size] for ends in bounds)
    raw = p_values(columns[:, split:], settings, again=True, weights=weights)
    if anytime.any():
        chosen = np.flatnonzero(anytime[split:])
        raw[chosen] = p_values(columns[:, split + chosen], AnytimeSettings.of(settings))
    raw = raw[:size].reshape(shape)
    raw[:, [not each.metric.measures_quality for each in aligned.measures]] = np.nan
    after_correction, comparisons = corrected_by_family(raw, settings)
    deltas = _Deltas(
        values=differences,
        low=low[split:].reshape(shape),
        high=high[split:].reshape(shape),
        p=raw,
        corrected=after_correction,
        comparisons=comparisons,
        best=aligned.highest(best).T,
    )
    means = low[:split].reshape(systems, width), high[:split].reshape(systems, width)
    frame, verdicts, reasons = _comparison_rows(aligned, means, deltas, settings)
    return Comparison(
        baseline=aligned.systems[0],
        challengers=aligned.systems[1:],
        measures=aligned.measures,
        conventions=aligned.conventions,
        settings=settings,
        frame=frame,
        verdicts=verdicts,
        reasons=reasons,
        stopped=frozenset(compress(aligned.systems, aligned.stopped)),
    )


def mean_intervals(
    evaluations: Mapping[str, Evaluation],
    baseline: str,
    settings: StatisticsSettings | None = None,
) -> pd.DataFrame:
    """Return the means only, without comparisons, for example for a curve.

    Columns: system, metric (the spec), mean, low, high (its interval, NaN with fewer than
    `FEWEST_QUERIES` values), n: over the queries with a value of every system, so that the curves
    are comparable. Raises as `compare` does.
    """
    settings = settings or StatisticsSettings()
    aligned = align(evaluations, baseline)
    systems, queries, measures = aligned.values.shape
    common = np.where(np.isnan(aligned.values).any(axis=0), np.nan, aligned.values)
    columns = common.transpose(1, 0, 2).reshape(queries, systems * measures)
    possible = [np.tile(end, systems) for end in _possible(aligned.measures)[0]]
    # A stopped run decides which queries count, so the other means depend on its result too.
    anytime = np.full(columns.shape[1], aligned.stopped.any())
    weights = aligned.weights
    low, high = _intervals(columns, anytime, settings, (possible[0], possible[1]), weights)
    known = ~np.isnan(columns)
    n = known.sum(axis=0)
    with np.errstate(invalid="ignore"):
        means = (
            np.where(known, columns, 0.0).sum(axis=0) / n
            if weights is None or weights.equal
            else [weights.mean(column) for column in columns.T]
        )
    return pd.DataFrame(
        {
            "system": np.repeat(np.array(aligned.systems, dtype=object), measures),
            "metric": np.tile([measure.spec for measure in aligned.measures], systems),
            "mean": means,
            "low": low,
            "high": high,
            "n": n,
        }
    )


def _possible(measures: Sequence[Measure]) -> tuple[Floats, Floats]:
    """Return the lowest and the highest value of each measure, and of a change, (2, M) each."""
    return (
        np.array([each.metric.range for each in measures]).T,
        np.array([each.changes for each in measures]).T,
    )


def _intervals(
    columns: Floats,
    anytime: Flags,
    settings: StatisticsSettings,
    possible: tuple[Floats, Floats],
    weights: Weights | None,
) -> tuple[Floats, Floats]:
    """Return `intervals` of columns, anytime-valid ones if `anytime` (C,) is set."""
    if weights is not None and anytime.any():
        settings = AnytimeSettings.of(settings)
    low, high = intervals(columns, settings, again=True, possible=possible, weights=weights)
    if anytime.any():
        ends = possible[0][anytime], possible[1][anytime]
        low[anytime], high[anytime] = intervals(
            columns[:, anytime], AnytimeSettings.of(settings), possible=ends
        )
    return low, high


def _differences(after: Floats, before: Floats) -> Floats:
    difference: Floats = after - before
    difference[np.abs(difference) <= ROUNDING] = 0.0
    return difference


# Rows of a comparison: means, changes and verdicts.

_Verdicts = Mapping[tuple[str, str], Verdict]
"""(challenger, spec) → its verdict."""

_Reasons = Mapping[tuple[str, str], Mapping[str, int]]
"""(system, spec) → reason → number of queries excluded from the pairs."""

_MISSING = STATES.index("missing")


@dataclass(frozen=True, eq=False)
class _Deltas:
    """S - 1 challengers × M measures; values (S - 1, M, Q), best (M, Q): the highest possible."""

    values: Floats
    low: Floats
    high: Floats
    p: Floats
    corrected: Floats
    comparisons: Integers
    best: Floats


def _comparison_rows(
    aligned: Aligned,
    means: tuple[Floats, Floats],
    deltas: _Deltas,
    settings: StatisticsSettings,
) -> tuple[pd.DataFrame, _Verdicts, _Reasons]:
    """Return the frame of a `Comparison`, the verdict on each challenger, and the reasons of
    excluded queries for each system. means: the ends of the intervals of the means, each (S, M)."""
    reasons = _reason_counts(aligned)
    rows: list[dict[str, object]] = []
    verdicts: dict[tuple[str, str], Verdict] = {}
    missing = (aligned.known & (aligned.states == _MISSING)).sum(axis=1)
    sides = [_Side.of(aligned, s) for s in range(len(aligned.systems))]
    for m, measure in enumerate(aligned.measures):
        for s, system in enumerate(aligned.systems):
            values = sides[s].values[m][sides[s].known[m]]
            weights = aligned.weights_of(sides[s].known[m])
            mean = _mean(values, weights)
            row: dict[str, object] = {
                "metric": measure.spec,
                "system": system,
                "mean": mean,
                "mean_low": means[0][s, m],
                "mean_high": means[1][s, m],
                "n": len(values),
                "missing": int(missing[s, m]),
                "left_out": sum(reasons[system, measure.spec].values()),
            }
            if s == 0:
                row |= _baseline_row(mean, len(values), weights)
            else:
                change, facts = _change(aligned, (sides[0], sides[s]), deltas, s, m, settings)
                verdict = verdict_on(facts)
                verdicts[system, measure.spec] = verdict
                row |= {**change, "verdict": verdict.kind}
            if weights is not None:
                row["n_effective"] = weights.effective
            rows.append(row)
    weighted = aligned.weights is not None and not aligned.weights.equal
    names = (*_COLUMNS, *_EFFECTIVE) if weighted else _COLUMNS
    return pd.DataFrame(rows, columns=list(names)), verdicts, reasons


_COLUMNS = (
    *("metric", "system", "mean", "mean_low", "mean_high", "n", "missing", "paired", "left_out"),
    *("before", "after", "delta", "delta_low", "delta_high", "relative_delta"),
    *("p", "p_corrected", "effect_size", "helped", "same", "hurt"),
    *("smallest_detectable", "more_queries", "more_least", "more_most", "planned_level"),
    "verdict",
)
_EFFECTIVE = ("n_effective", "paired_effective")


def _baseline_row(mean: float, n: int, weights: Weights | None) -> dict[str, object]:
    change = 0.0 if n else np.nan
    return {
        **({} if weights is None else {"paired_effective": weights.effective}),
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
    """Arrays of one system from `Aligned`, shape (M, Q), each measure contiguous."""

    values: Floats
    known: Flags
    answered: Flags

    @classmethod
    def of(cls, aligned: Aligned, s: int) -> _Side:
        arrays = (aligned.values, aligned.known, aligned.answered)
        return cls(*(np.ascontiguousarray(each[s].T) for each in arrays))


def _change(
    aligned: Aligned,
    sides: tuple[_Side, _Side],
    deltas: _Deltas,
    s: int,
    m: int,
    settings: StatisticsSettings,
) -> tuple[dict[str, object], Facts]:
    """Return the columns that compare system `s` with the baseline on measure `m`, and the facts
    for its verdict."""
    place = s - 1, m
    stopped = bool(aligned.stopped[0] or aligned.stopped[s])
    if stopped:
        settings = AnytimeSettings.of(settings)
    both = sides[0].known[m] & sides[1].known[m]
    weights = aligned.weights_of(both)
    changes = deltas.values[s - 1, m][both]
    before, after = (_mean(side.values[m][both], weights) for side in sides)
    delta, n = _mean(changes, weights), int(both.sum())
    sign = direction(changes, settings.tie_band)
    spread = changes if weights is None else pseudo_values(changes[:, None], weights)[:, 0]
    comparisons = int(deltas.comparisons[place])
    strict = settings.corrects(comparisons)
    level = 1 - (1 - settings.level) / comparisons if strict else settings.level
    room = _mean(deltas.best[m][both], weights) - before
    few = n < FEWEST_QUERIES or has_few_effective(weights)
    detectable = np.nan if few else smallest_detectable(spread, level=level)
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
        "effect_size": effect_size(spread) if n else np.nan,
        "helped": int((sign > 0).sum()),
        "same": int((sign == 0).sum()),
        "hurt": int((sign < 0).sum()),
        "smallest_detectable": detectable if detectable <= room else np.nan,
        "planned_level": level,
    }
    if weights is not None:
        columns["paired_effective"] = weights.effective
    if stopped:
        # Values for a fixed number of queries.
        columns |= dict.fromkeys(("p", "p_corrected", "smallest_detectable"), np.nan)
    facts = Facts(
        baseline=aligned.systems[0],
        challenger=aligned.systems[s],
        metric=title_of(aligned.measures[m], aligned.conventions),
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
        margin=_margin(changes, settings, level, aligned.measures[m], weights),
        stopped=stopped,
        tuned=(bool(aligned.tuned[0]), bool(aligned.tuned[s])),
        effective=weights.effective if weights is not None and has_few_effective(weights) else None,
    )
    # The plan samples queries with equal probabilities.
    unplanned = stopped or any(facts.tuned) or (weights is not None and not weights.equal)
    if unplanned or decide(facts) != "unproven":
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


def _margin(
    changes: Floats,
    settings: StatisticsSettings,
    level: float,
    measure: Measure,
    weights: Weights | None,
) -> Margin | None:
    """Return the user's margin with the interval for it. level: of the verdict, corrected."""
    if settings.equal_margin is None:
        return None
    # With a confidence below 75 %, the interval is wider than it has to be.
    level = max(2 * level - 1, LEAST_LEVEL)
    wider, possible = replace(settings, level=level), measure.changes
    low, high = intervals(changes[:, None], wider, possible=possible, weights=weights)
    return Margin(settings.equal_margin, float(low[0]), float(high[0]), level)


def _planned(planned: QueryPlan | None) -> dict[str, object]:
    if planned is None:
        return {}
    numbers = (planned.likely, planned.least, planned.most)
    names = ("more_queries", "more_least", "more_most")
    return {name: number for name, number in zip(names, numbers, strict=True) if number}


def _reason_counts(aligned: Aligned) -> _Reasons:
    reasons = aligned.reasons()
    return {
        (system, measure.spec): reason_counts(reasons[s, :, m])
        for s, system in enumerate(aligned.systems)
        for m, measure in enumerate(aligned.measures)
    }


def _mean(values: Floats, weights: Weights | None = None) -> float:
    if weights is not None:
        return weights.mean(values)
    return float(values.mean()) if len(values) else float("nan")
