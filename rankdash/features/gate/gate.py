"""Conditions on a change, and whether a challenger meets them.

Mean and gain are about queries in general, so the lower limit of a one-sided interval decides and
not the observed value: a gain that may be chance does not pass. Their one-sided p is for a true
value below the limit; it is at most 1 - confidence exactly if the lower limit meets the condition.
The share of queries hurt and the latencies are about the queries at hand, so the observed value
decides; the interval shows the range for similar queries.

If labels were sampled, the gain is an estimate for these queries, and the lower limit of its
anytime-valid interval decides; a condition on a mean or a share is not met.

With a judge, the gain is the judge's, corrected with human labels. A judge without enough human
labels never passes, unless it is trusted by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np
import pandas as pd

from rankdash.core.base.errors import SpecError
from rankdash.core.base.i18n import plain
from rankdash.core.base.rules import FEWEST_QUERIES
from rankdash.core.data.arrays import Floats
from rankdash.core.data.measured import meets
from rankdash.core.metrics import Measure, parse_measure, parse_metrics
from rankdash.core.sampling.bias_corrected import Corrected
from rankdash.core.sampling.estimate import Estimate
from rankdash.core.statistics.comparison import Comparison, StatisticsSettings
from rankdash.core.statistics.inference import p_below
from rankdash.core.statistics.weighted import is_few_effective
from rankdash.core.study.latency import binomial_quantiles, latencies

Kind = Literal["min", "min-gain", "max-hurt", "max"]
Reason = Literal[
    "met",
    "missed",
    "unproven",
    "too_few",
    "no_values",
    "unreachable",
    "too_early",
    "drawn",
    "judge_alone",
]

LOWEST_CONFIDENCE, HIGHEST_CONFIDENCE = 0.75, 0.9999
QUANTILES: Mapping[str, float] = {"p50_ms": 0.5, "p90_ms": 0.9, "p95_ms": 0.95}
FAILED = "failed"
"""Limit of `max` besides the latency quantiles: the number of failed queries."""

# Kinds of conditions that an interval decides, in the order of `values` of `decide`.
_OF_INTERVAL = ("min", "min-gain")
# A rounding error in the last digit must not fail a value that equals the limit.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Condition:
    """One condition.

    kind: "min": the mean of a metric; "min-gain": the mean paired difference from the baseline;
        "max-hurt": the share of paired queries that got worse; "max": a latency or a count.
    subject: the metric's spec, or for "max" one of `QUANTILES` or `FAILED`.
    threshold: the lowest relevant label, if the spec was typed with it (`rel=2`).
    of_profile: a target of a profile, which does not count if no ranking can reach it.
    """

    kind: Kind
    subject: str
    limit: float
    threshold: float | None = None
    of_profile: bool = False


@dataclass(frozen=True)
class GateOutcome:
    """Outcome of a condition.

    value: observed mean, mean difference, share, milliseconds or count; NaN without one.
    low, high: limits of the value, each one-sided at the confidence; NaN for a count and for too
        few queries.
    n: number of queries.
    reason: "met"; "missed": the value misses the limit; "unproven": the value meets it, but its
        lower limit does not; "too_few": fewer than `FEWEST_QUERIES` queries, or such an effective
        number of weighted queries; "no_values": none;
        "unreachable": no order of the documents has a mean above `most`; "too_early": too few
        labels were sampled; "drawn": the labels were sampled for something else; "judge_alone": too
        few queries with human labels to correct the judge.
    p: one-sided, of a true mean or gain below the limit; NaN if no interval decides, for a judge,
        for an estimate, and without spread.
    most: highest possible mean for a target of a profile; NaN otherwise.
    estimated: an estimate from sampled labels, for these queries.
    judged: "corrected": the judge's gain corrected with human labels; "alone": the judge's own
        gain; "" without a judge.
    effective: effective number of the queries, for means per search; NaN otherwise.
    """

    condition: Condition
    value: float
    low: float
    high: float
    n: int
    reason: Reason
    p: float = math.nan
    most: float = math.nan
    estimated: bool = False
    judged: Literal["", "corrected", "alone"] = ""
    effective: float = math.nan

    @property
    def passed(self) -> bool:
        """True if the condition is met or cannot be reached."""
        return self.reason in ("met", "unreachable")


def parse_conditions(
    minima: Iterable[str] = (),
    gains: Iterable[str] = (),
    hurt: Iterable[str] = (),
    maxima: Iterable[str] = (),
    metrics: Iterable[str] = (),
    profile: Iterable[Condition] = (),
    margins: Iterable[str] = (),
) -> tuple[Condition, ...]:
    """Return conditions as typed, such as "ndcg@10=0.8", then the profile's targets that were not
    typed.

    A margin, such as "ndcg@10=0.02", is the condition "min-gain" of its negative: non-inferiority.
    A number without a metric applies to each of `metrics`; without these, to each metric in
    `minima` and `gains`; without these, to ndcg@10.

    Raises SpecError for a condition that cannot be parsed or is specified twice, or if there is
    none.
    """
    typed: list[tuple[Kind, str]] = [
        *(("min", text) for text in minima),
        *(("min-gain", text) for text in gains),
        *(("max-hurt", text) for text in hurt),
    ]
    stated = [(kind, *_stated(kind, text)) for kind, text in typed]
    stated += [("min-gain", subject, -limit) for subject, limit in map(_margin, margins)]
    subjects = [subject for kind, subject, _ in stated if subject and kind != "max-hurt"]
    named = parse_metrics(list(metrics) or subjects or ["ndcg@10"])
    conditions: list[Condition] = []
    for kind, subject, limit in stated:
        listed = parse_metrics(subject) if subject else named
        conditions += [Condition(kind, spec, limit, listed.threshold) for spec in listed.specs]
    conditions += [_of_quantity(text) for text in maxima]
    existing = {(each.kind, each.subject) for each in conditions}
    conditions += [each for each in profile if (each.kind, each.subject) not in existing]
    if not conditions:
        raise SpecError(
            "There is no condition to check.",
            remedy="Add at least one condition, such as --min ndcg@10=0.8.",
        )
    _refuse_odd(conditions)
    return tuple(conditions)


def measures_of(conditions: Sequence[Condition]) -> dict[str, Measure]:
    """Return spec → measure of the metrics to evaluate; ndcg@10 if the conditions name none."""
    specs = [each.subject for each in conditions if each.kind != "max"] or ["ndcg@10"]
    return {spec: parse_measure(spec) for spec in specs}


def settings_at(confidence: float, queries: int = 0, **changes: float | int) -> StatisticsSettings:
    """Return settings with which each end of an interval is a one-sided limit at `confidence`.

    queries: number of labelled queries. Raises SpecError if the confidence is out of range.
    """
    if not LOWEST_CONFIDENCE <= confidence <= HIGHEST_CONFIDENCE:
        raise SpecError(
            "The confidence must be between {low} and {high}, not {value!r}.",
            low=LOWEST_CONFIDENCE,
            high=HIGHEST_CONFIDENCE,
            value=confidence,
        )
    return StatisticsSettings.for_queries(queries, level=2 * confidence - 1, **changes)


def confidence_of(settings: StatisticsSettings) -> float:
    """Return the one-sided confidence of the settings: the inverse of `settings_at`."""
    return (1 + settings.level) / 2


def decide(
    conditions: Sequence[Condition],
    comparison: Comparison,
    challenger: str,
    timings: pd.DataFrame | None = None,
    most: Mapping[str, float] = MappingProxyType({}),
    sampled: Mapping[str, Estimate] | None = None,
    judged: Mapping[str, Corrected] | None = None,
    *,
    values: Callable[[str], tuple[Floats, Floats]] | None = None,
    trusted: bool = False,
) -> tuple[GateOutcome, ...]:
    """Return an outcome for each condition, in order.

    comparison: made with `settings_at`.
    timings: query_id, state and latency_ms, as the table of a `Run`.
    most: spec → highest mean that labels and candidates allow, for the targets of a profile.
    sampled: spec → the challenger's estimate from sampled labels; None if labels were not sampled.
    judged: spec of a gain → the challenger's change by a judge, corrected with human labels; None
        without a judge.
    values: spec → the challenger's values and its changes from the baseline, to compute p; None for
        no p.
    trusted: the judge counts without correction if too few queries have human labels.

    Raises SpecError if a condition needs timings and there are none.
    """
    outcomes = []
    for each in conditions:
        three = None if judged is None else judged.get(each.subject)
        estimated = sampled is not None and each.subject in sampled
        # If single documents were sampled, the judge's grades are the predictions of the estimate.
        if three is not None and (three.enough or trusted or not estimated):
            outcomes.append(_of_judge(each, three, trusted=trusted))
        elif sampled is not None and each.kind != "max":
            outcomes.append(_of_sampled(each, sampled.get(each.subject)))
        else:
            made = _outcome(each, comparison, challenger, timings)
            stopped = bool({comparison.baseline, challenger} & comparison.stopped)
            if stopped:
                # Limits of a share, and p, are for a fixed number of queries.
                if each.kind == "max-hurt":
                    made = replace(made, low=math.nan, high=math.nan)
            elif values is not None and not math.isnan(made.low) and each.kind in _OF_INTERVAL:
                observed = values(each.subject)[_OF_INTERVAL.index(each.kind)]
                made = replace(made, p=_p(observed, each, comparison))
            outcomes.append(_within_reach(made, most))
    return tuple(outcomes)


def _p(observed: Floats, condition: Condition, comparison: Comparison) -> float:
    """Return the p-value of the test that the true value is below the limit; 0 if no value can be
    below it."""
    measure = next(each for each in comparison.measures if each.spec == condition.subject)
    possible = measure.metric.range if condition.kind == "min" else measure.changes
    return 0.0 if condition.limit <= possible[0] else p_below(observed, condition.limit)


def _of_sampled(condition: Condition, estimate: Estimate | None) -> GateOutcome:
    if estimate is None or condition.kind != "min-gain":
        return GateOutcome(condition, math.nan, math.nan, math.nan, 0, "drawn")
    too_early: Reason | None = "too_early" if estimate.state == "too_early" else None
    reason = too_early or _proven(condition, estimate.difference, estimate.low)
    return GateOutcome(
        condition,
        estimate.difference,
        estimate.low,
        estimate.high,
        estimate.queries,
        reason,
        estimated=True,
    )


def _of_judge(condition: Condition, three: Corrected, *, trusted: bool) -> GateOutcome:
    if not three.enough and not trusted:
        nan = math.nan
        return GateOutcome(condition, nan, nan, nan, three.people.n, "judge_alone")
    estimate = three.corrected if three.enough else three.judge
    reason: Reason = _proven(condition, estimate.mean, estimate.low)
    if math.isnan(estimate.low):
        reason = "too_few" if estimate.n else "no_values"
    return GateOutcome(
        condition,
        estimate.mean,
        estimate.low,
        estimate.high,
        estimate.n,
        reason,
        judged="corrected" if three.enough else "alone",
    )


def _within_reach(outcome: GateOutcome, most: Mapping[str, float]) -> GateOutcome:
    condition = outcome.condition
    if not condition.of_profile or condition.subject not in most:
        return outcome
    top = most[condition.subject]
    reason: Reason = "unreachable" if top < condition.limit - _ROUNDING else outcome.reason
    return replace(outcome, most=top, reason=reason)


def _outcome(
    condition: Condition,
    comparison: Comparison,
    challenger: str,
    timings: pd.DataFrame | None,
) -> GateOutcome:
    confidence = confidence_of(comparison.settings)
    if condition.kind == "max":
        if timings is None:
            raise SpecError(
                "{subject} needs latencies, and none were provided.",
                remedy="Pass the file that `rerank --timings` wrote with --timings.",
                subject=condition.subject,
            )
        if condition.subject == FAILED:
            return _failures(condition, timings)
        return _quantile(condition, timings, confidence)
    row = comparison.row(challenger, condition.subject)
    if condition.kind == "max-hurt":
        return _hurt(condition, int(row["hurt"]), int(row["paired"]), confidence)
    seen, n = ("mean", "n") if condition.kind == "min" else ("delta", "paired")
    value, low, high = (float(row[name]) for name in (seen, f"{seen}_low", f"{seen}_high"))
    reason: Reason = _proven(condition, value, low)
    effective = float(row.get(f"{n}_effective", math.nan))
    if int(row[n]) < FEWEST_QUERIES or is_few_effective(effective):
        reason = "too_few" if row[n] else "no_values"
    return GateOutcome(condition, value, low, high, int(row[n]), reason, effective=effective)


def _proven(condition: Condition, value: float, low: float) -> Reason:
    """Return "met" if the value and its lower limit meet the condition, else "unproven" or
    "missed"."""
    if value < condition.limit - _ROUNDING:
        return "missed"
    return "met" if low >= condition.limit - _ROUNDING else "unproven"


def _hurt(condition: Condition, hurt: int, n: int, confidence: float) -> GateOutcome:
    """Return the outcome of the condition on the share of hurt queries, with the limits of Clopper
    & Pearson (1934)."""
    from scipy.special import betaincinv

    if n < FEWEST_QUERIES:
        share = hurt / n if n else math.nan
        reason: Reason = "too_few" if n else "no_values"
        return GateOutcome(condition, share, math.nan, math.nan, n, reason)
    low = float(betaincinv(hurt, n - hurt + 1, 1 - confidence)) if hurt else 0.0
    high = float(betaincinv(hurt + 1, n - hurt, confidence)) if hurt < n else 1.0
    return GateOutcome(condition, hurt / n, low, high, n, _seen(hurt / n, condition.limit))


def _failures(condition: Condition, timings: pd.DataFrame) -> GateOutcome:
    failed, n = int((timings["state"] == "failed").sum()), len(timings)
    reason = _seen(failed, condition.limit) if n else "no_values"
    return GateOutcome(condition, float(failed), math.nan, math.nan, n, reason)


def _quantile(condition: Condition, timings: pd.DataFrame, confidence: float) -> GateOutcome:
    """Return the outcome for a quantile of the latencies of finished queries.

    Quantiles interpolate linearly (Hyndman & Fan 1996, type 7); their limits are order statistics
    (David & Nagaraja 2003, section 7.1).
    """
    ordered: Floats = latencies(timings[timings["state"] == "done"])
    n = len(ordered)
    if n < FEWEST_QUERIES:
        reason: Reason = "too_few" if n else "no_values"
        return GateOutcome(condition, math.nan, math.nan, math.nan, n, reason)
    share = QUANTILES[condition.subject]
    value = float(np.quantile(ordered, share))
    below, above = binomial_quantiles([1 - confidence, confidence], n, share)
    low = float(ordered[below - 1]) if below else math.nan
    high = float(ordered[above]) if above < n else math.nan
    reason = "met" if meets(value, condition.limit) else "missed"
    return GateOutcome(condition, value, low, high, n, reason)


def _seen(value: float, limit: float) -> Reason:
    return "met" if value <= limit + _ROUNDING else "missed"


def _stated(kind: str, text: str) -> tuple[str, float]:
    """Return (subject, limit) of a condition such as "ndcg@10=0.8". The subject is "" if the text
    is only a number."""
    try:
        float(text)
    except ValueError:
        return _parts(kind, text)
    return "", _number(text, text)


def _margin(text: str) -> tuple[str, float]:
    subject, limit = _stated("as-good-as", text)
    if limit <= 0:
        raise SpecError(
            "A margin must be above 0, not {text!r}.",
            remedy="For example: --{kind} {example}",
            text=text,
            kind="as-good-as",
            example="ndcg@10=0.02",
        )
    return subject, limit


def _of_quantity(text: str) -> Condition:
    subject, limit = _parts("max", text)
    if subject not in (*QUANTILES, FAILED):
        raise SpecError(
            "--max does not accept {subject!r}.",
            remedy="Allowed: {allowed}.",
            subject=subject,
            allowed=", ".join((*QUANTILES, FAILED)),
        )
    return Condition("max", subject, limit)


def _parts(kind: str, text: str) -> tuple[str, float]:
    subject, equals, number = text.rpartition("=")
    if not equals or not subject.strip():
        raise SpecError(
            "A condition is written name=number, not {text!r}.",
            remedy="For example: --{kind} {example}",
            text=text,
            kind=kind,
            example="p95_ms=500" if kind == "max" else "ndcg@10=0.5",
        )
    return subject.strip(), _number(number, text)


def _number(number: str, text: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise SpecError(
            "{number!r} in {text!r} is not a number.",
            remedy="Write digits, with a decimal point if there are decimals.",
            number=number,
            text=text,
        )
    return value


def _refuse_odd(conditions: Sequence[Condition]) -> None:
    """Raise SpecError for conditions that are duplicated, or that every run or no run would
    meet."""
    stated = set()
    for each in conditions:
        if (each.kind, each.subject) in stated:
            raise SpecError(
                "--{kind} is specified twice for {subject}.",
                remedy="Specify it once.",
                kind=each.kind,
                subject=each.subject,
            )
        stated.add((each.kind, each.subject))
        if each.kind == "max-hurt" and not 0 <= each.limit <= 1:
            raise SpecError(
                "--max-hurt takes a share of the queries between 0 and 1, not {limit}.",
                remedy="For example: --max-hurt 0.2 for a fifth of them.",
                limit=plain(each.limit),
            )
