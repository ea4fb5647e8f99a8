"""Results of `gate` as text, JSON, Markdown or JUnit XML."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Literal

from rankdash.core.base.i18n import brief, level_percent, number, percent, plain, signed
from rankdash.core.base.rules import FEWEST_QUERIES
from rankdash.core.metrics import parse_measure
from rankdash.core.readers import reversed_note
from rankdash.core.sampling.bias_corrected import FEWEST_PEOPLE
from rankdash.core.statistics.comparison import StatisticsSettings
from rankdash.core.statistics.inference import FEWEST_CHANGED
from rankdash.core.statistics.verdict import TITLES, Kind
from rankdash.core.study.judged import numbers as judged_numbers
from rankdash.core.study.judged import verdicts
from rankdash.core.study.labelling import only_estimates
from rankdash.core.words.columns import columns
from rankdash.core.words.judged import judged_facts
from rankdash.core.words.labelling import labelling_sentences
from rankdash.core.words.queries import excluded_line, missing_line, query_count
from rankdash.core.words.verdicts import p_value
from rankdash.features.gate.command import Checked
from rankdash.features.gate.gate import FAILED, Condition, GateOutcome, confidence_of
from rankdash.features.overview.caveats import GAINS
from rankdash.kit.commands.checks import Check, Checks, Formats, as_json
from rankdash.kit.commands.output import or_null

_HEAD = ("condition", "observed", "limits", "p", "queries")


def formats(checked: Checked) -> Formats:
    """Return format → a function that returns the result in it."""
    checks = Checks(
        "gate",
        _headline(checked),
        checked.sides,
        _HEAD,
        [_check(each, checked.comparison.settings) for each in checked.outcomes],
        list(_notes(checked)),
    )
    return {
        "text": checks.text,
        "json": lambda: _as_json(checked),
        "markdown": checks.markdown,
        "junit": checks.junit,
    }


def _check(outcome: GateOutcome, settings: StatisticsSettings) -> Check:
    result: Literal["pass", "FAIL", "skip"] = "pass" if outcome.passed else "FAIL"
    if outcome.reason == "unreachable":
        result = "skip"
    message = "" if outcome.reason == "met" else _reason(outcome, settings)
    title, *cells = _cells(outcome)
    return Check(title, result, cells, outcome.reason, message)


def _as_json(checked: Checked) -> str:
    """Return unrounded numbers, null if one does not exist."""
    comparison = checked.comparison
    conditions = [
        {
            **{
                name: or_null(value)
                for name, value in asdict(each).items()
                if name not in ("condition", "effective")
            },
            **({} if math.isnan(each.effective) else {"effective": each.effective}),
            "kind": each.condition.kind,
            "subject": each.condition.subject,
            "limit": each.condition.limit,
            "passed": each.passed,
            "compare": checked.compared.get(each.condition.subject)
            if each.condition.kind == "min-gain"
            else None,
            "message": "" if each.reason == "met" else _reason(each, comparison.settings),
        }
        for each in checked.outcomes
    ]
    baseline, challenger = checked.study.names.values()
    rules = {**comparison.settings.as_dict(), "confidence": confidence_of(comparison.settings)}
    used = ("confidence", "resamples", "seed", "tie_band")
    labelling = checked.study.labelling
    return as_json(
        {
            "passed": checked.passed,
            "baseline": baseline,
            "challenger": challenger,
            "conditions": conditions,
            "comparisons": [] if only_estimates(checked.study) else _compared(checked),
            "labelling": None if labelling is None else labelling.numbers(),
            "judge": judged_numbers(checked.study),
            "notes": list(_notes(checked)),
            "settings": {
                **comparison.conventions.as_dict(),
                **{name: rules[name] for name in used},
                "worst_label": checked.worst_label,
            },
        }
    )


def _compared(checked: Checked) -> list[dict[str, object]]:
    """Return the challenger's row of each metric, without the two-sided interval and verdict."""
    comparison = checked.comparison
    shown = columns("gate", comparison.settings.level, comparison.corrected)
    return [
        {
            "metric": row["metric"],
            **{each.name: or_null(each.value(row)) for each in shown},
        }
        for row in comparison.frame.to_dict("records")
        if row["system"] == checked.challenger
    ]


def _headline(checked: Checked) -> str:
    failed = sum(not each.passed for each in checked.outcomes)
    skipped = sum(each.reason == "unreachable" for each in checked.outcomes)
    counted = len(checked.outcomes) - skipped
    rest = f" Skipped: {skipped}." if skipped else ""
    if not counted:
        return f"Failed: {checked.sides}. No condition can be reached."
    if not failed:
        conditions = "The condition is met"
        if counted > 1:
            conditions = f"All {counted} conditions are met"
        return f"Passed: {checked.sides}. {conditions}.{rest}"
    return f"Failed: {checked.sides}. Not met: {failed} of {counted}.{rest}"


def _stated(condition: Condition) -> str:
    limit = condition.limit
    if condition.kind == "max":
        if condition.subject == FAILED:
            return f"failed queries, at most {plain(limit)}"
        return f"{condition.subject.partition('_')[0]} latency, at most {plain(limit)} ms"
    title = parse_measure(condition.subject).title
    if condition.kind == "min":
        return f"{title}, at least {plain(limit)}"
    if condition.kind == "min-gain":
        return f"{title} gain, at least {'+' if limit > 0 else ''}{plain(limit)}"
    return f"{title}, queries hurt, at most {plain(100 * limit)}%"


def _cells(outcome: GateOutcome) -> list[str]:
    """Return the row of a condition in the table: condition, observed value, limits, p, number of
    queries."""
    low, high = (_number(outcome.condition, each) for each in (outcome.low, outcome.high))
    limits = "–" if low == high == "–" else f"{low} … {high}"
    if math.isfinite(outcome.low) and outcome.low == outcome.high:
        limits = "no spread"
    seen = _number(outcome.condition, outcome.value)
    return [_stated(outcome.condition), seen, limits, p_value(outcome.p), number(outcome.n, 0)]


def _number(condition: Condition, value: float) -> str:
    if condition.kind == "max-hurt":
        return percent(value, 1)
    if condition.kind == "max" and condition.subject == FAILED:
        return number(value, 0)
    if condition.kind == "max":
        return "–" if math.isnan(value) else f"{brief(value, condition.limit)} ms"
    return signed(value, 4) if condition.kind == "min-gain" else number(value, 4)


def _reason(outcome: GateOutcome, settings: StatisticsSettings) -> str:
    """Return why a condition is not met."""
    confidence = level_percent(confidence_of(settings))
    condition = outcome.condition
    kind = "latency" if condition.kind == "max" else "value"
    if outcome.reason == "unreachable":
        return (
            f"The best order of these documents has {_number(condition, outcome.most)}, so the "
            "target cannot be reached and does not count."
        )
    if outcome.reason == "drawn":
        return (
            "The labels were sampled, so this condition would count every document without a label "
            "as not relevant. Label all documents, or check the gain in the metric and between the "
            "rankings for which they were sampled."
        )
    if outcome.reason == "judge_alone":
        return (
            f"Human labels give a value for {query_count(outcome.n)}, and at least {FEWEST_PEOPLE} "
            "are needed to correct the judge. An uncorrected judge never passes: label more "
            "queries, or trust the judge by name with --trust-judge."
        )
    if outcome.reason == "too_early":
        return "There are too few labels for an estimate. Label the next sampled documents."
    if outcome.reason == "no_values":
        return f"No query has a {kind}."
    if outcome.reason == "too_few" and outcome.n >= FEWEST_QUERIES:
        effective = plain(math.floor(10 * outcome.effective) / 10)
        return (
            f"The weights of the {outcome.n} queries with a {kind} are so uneven that their "
            f"effective number is {effective}, and at least {FEWEST_QUERIES} are needed. Add "
            'labelled queries, or use --weights "per query".'
        )
    if outcome.reason == "too_few":
        have = "query has" if outcome.n == 1 else "queries have"
        return (
            f"Only {outcome.n} {have} a {kind}, and at least {FEWEST_QUERIES} are needed. "
            "Add labelled queries."
        )
    seen = _exactly(condition, outcome.value, condition.limit)
    if outcome.reason == "unproven" and math.isnan(outcome.low):
        return (
            f"The observed value is {seen}, but a lower limit needs at least {FEWEST_CHANGED} of "
            f"the {query_count(outcome.n)} to "
            f"{'change' if condition.kind == 'min-gain' else 'be above 0'}. Add labelled queries."
        )
    if outcome.reason == "unproven":
        low = _exactly(condition, outcome.low, condition.limit)
        more = "labels" if outcome.estimated else "labelled queries"
        return (
            f"The observed value is {seen}, but the lower limit at {confidence} confidence is "
            f"{low}. Add {more}."
        )
    return f"The observed value is {seen}."


def _exactly(condition: Condition, value: float, limit: float) -> str:
    """Return the value as text, with more digits if it would look equal to the limit."""
    shown = _number(condition, value)
    return plain(value, 9) if shown == _number(condition, limit) else shown


def _differs(outcome: GateOutcome, kind: Kind) -> bool:
    """Return whether the verdict of `compare` on a gain contradicts its condition."""
    limit = outcome.condition.limit
    if not outcome.passed:
        return kind in GAINS and limit <= 0
    return kind == "worse" or (kind == "unproven" and limit >= 0)


def _notes(checked: Checked) -> Iterator[str]:
    """Yield notes on the judge, excluded queries, reversed labels, and the method of the limits."""
    comparison, settings = checked.comparison, checked.comparison.settings
    confidence = level_percent(confidence_of(settings))
    judge = checked.study.judge
    # Without the verdict, which may differ at the confidence of a comparison.
    for verdict in verdicts(checked.study, judge).values() if judge else ():
        yield from judged_facts(checked.study, verdict)
    if any(each.judged == "alone" for each in checked.outcomes):
        yield (
            "The gain is from the uncorrected judge, as requested by --trust-judge: its limits do "
            "not include the judge's errors."
        )
    if checked.study.labelling is not None:
        yield from labelling_sentences(checked.study.labelling)
    # Counts of queries are wrong if the labels are a sample of the documents.
    for measure in () if only_estimates(checked.study) else comparison.measures:
        counts = comparison.excluded(checked.challenger, measure)
        lines = [excluded_line(measure.title, counts)]
        for system, name in checked.study.names.items():
            missing = comparison.row(system, measure)["missing"]
            lines.append(missing_line(name, missing, measure.title))
        yield from filter(None, lines)
    if checked.untimed:
        have = "query has" if checked.untimed == 1 else "queries have"
        yield f"{checked.untimed:,} {have} no latency and are not in the quantiles."
    if checked.worst_label is not None:
        yield reversed_note(checked.worst_label).text
    for each in checked.outcomes:
        kind = checked.compared.get(each.condition.subject)
        if each.condition.kind == "min-gain" and kind is not None and _differs(each, kind):
            yield (
                f"{_stated(each.condition)}: for these two rankings, compare reports "
                f"“{TITLES[kind]}”. It is two-sided at {confidence} "
                "confidence, and corrected if there are several challengers; the gate is one-sided "
                "and not corrected."
            )
    if any(each.estimated for each in checked.outcomes):
        yield (
            f"The limits of an estimate are anytime-valid, each at {confidence} confidence, for "
            "these queries; the lower limit decides (asymptotic confidence sequence)."
        )
    if any(each.judged for each in checked.outcomes):
        yield "The limits of a judge's gain corrected with human labels use Student's t."
    yield (
        f"Each limit is one-sided at {confidence} confidence. For a mean or a gain, the lower "
        "limit decides (Student's t over queries, wider if skewed), and p is one-sided, for a true "
        "value below the limit. For latencies and queries hurt (beyond a change of "
        f"{plain(settings.tie_band)}), the observed value decides. "
        f"{comparison.conventions.summary}."
    )
