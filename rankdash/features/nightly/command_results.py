"""Results of `nightly` as text, JSON, Markdown or JUnit XML."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from rankdash.core.base.i18n import brief, number, percent, plain, signed
from rankdash.core.metrics import parse_measure
from rankdash.core.words.queries import query_count
from rankdash.core.words.verdicts import p_value
from rankdash.features.nightly.command_night import Tonight
from rankdash.features.nightly.config import Config
from rankdash.features.nightly.nightly import TOP, changes, for_other_queries
from rankdash.features.nightly.state import MetricNight
from rankdash.kit.commands.checks import Check, Checks, Formats, as_json

_HEAD = ("check", "tonight", "limit", "noise", "p per year", "queries")
_LOSSES = 5
# A note recommends labels if the unlabelled share increases by more.
_UNLABELLED = 0.02


def formats(config: Config, tonight: Tonight) -> Formats:
    """Return format → a function that returns the result in it."""
    checks = Checks(
        "nightly",
        headline(config, tonight),
        f"{tonight.line.name} against {tonight.name or 'no pinned run'}",
        _HEAD,
        _checks(config, tonight),
        list(_notes(config, tonight)),
    )
    return {
        "text": checks.text,
        "json": lambda: _as_json(config, tonight, checks),
        "markdown": checks.markdown,
        "junit": checks.junit,
    }


def passed(config: Config, tonight: Tonight) -> bool:
    """Return whether no check failed."""
    return all(each.result != "FAIL" for each in _checks(config, tonight))


def headline(config: Config, tonight: Tonight) -> str:
    """Return the result in one line."""
    line = tonight.line
    night = f"{line.name} ({line.date})"
    if tonight.pinned is not None:
        night += f" against {tonight.name}"
    fallen = [spec for spec, each in line.metrics.items() if each.alarm is not None]
    if fallen:
        listed = ", ".join(
            f"{parse_measure(spec).title} {signed(line.metrics[spec].night.change, 4)}"
            for spec in fallen
        )
        return f"Alarm: {listed}, {night}."
    failed = [each.title for each in _checks(config, tonight) if each.result == "FAIL"]
    if failed:
        return f"Failed: {', '.join(failed)}, {night}."
    if tonight.pinned is None:
        return f"Night {line.night} ({line.date}) is the pinned run of later nights."
    return f"No alarm: {night}."


def _checks(config: Config, tonight: Tonight) -> list[Check]:
    line = tonight.line
    checks = [_drop(config, tonight, spec) for spec in config.metrics]
    most = int(config.max_failed * line.queries)
    title = f"failed queries, at most {most}"
    cells = (number(line.failed, 0), number(most, 0), "–", "–", number(line.queries, 0))
    if line.failed > most:
        result = "nothing was compared" if tonight.pinned else "a later night is the pinned run"
        message = f"{line.failed} of {query_count(line.queries)} failed, so {result}."
        checks.append(Check(title, "FAIL", cells, "failed", message))
    else:
        checks.append(Check(title, "pass", cells))
    if config.max_p95_ms is not None:
        checks.append(_latency(line.p95_ms, config.max_p95_ms, line.queries))
    return checks


def _drop(config: Config, tonight: Tonight, spec: str) -> Check:
    title = f"{parse_measure(spec).title}, no drop beyond {plain(config.rule.smallest)}"
    metric = tonight.line.metrics.get(spec)
    if metric is None:
        message = "Too many queries failed, so tonight was not compared."
        if tonight.pinned is None and tonight.line.reference:
            message = "Tonight is the pinned run of later nights."
        elif tonight.pinned is None:
            message = "No run is pinned yet, so nothing was compared."
        return Check(title, "skip", ("–",) * 5, "skipped", message)
    night = metric.night
    cells = (
        signed(night.change, 4),
        signed(-metric.margin, 4),
        number(metric.noise, 4),
        p_value(metric.p),
        number(night.queries, 0),
    )
    if metric.alarm is None:
        message = "The drop is gone, so the alarm ends." if metric.ended else ""
        return Check(title, "pass", cells, "", message)
    since = f" Alarm since night {metric.alarm}; later nights add no evidence."
    message = (
        f"The mean fell from {number(metric.pinned, 4)} to {number(metric.mean, 4)}."
        f"{since if metric.alarm != tonight.line.night else ''}"
        " Correct the cause, or accept the change with --accept."
    )
    return Check(title, "FAIL", cells, "drop", message)


def _latency(p95: float | None, limit: float, queries: int) -> Check:
    title = f"p95 latency, at most {plain(limit)} ms"
    if p95 is None:
        message = "The latency of no query is known."
        return Check(title, "skip", ("–",) * 5, "skipped", message)
    shown = f"{brief(p95, limit)} ms"
    cells = (shown, f"{plain(limit)} ms", "–", "–", number(queries, 0))
    if p95 <= limit:
        return Check(title, "pass", cells)
    return Check(title, "FAIL", cells, "latency", f"The observed value is {shown}.")


def _notes(config: Config, tonight: Tonight) -> Iterator[str]:
    line = tonight.line
    for spec, metric in line.metrics.items():
        if metric.alarm is not None:
            yield from _about_the_drop(spec, tonight)
    if line.churn is not None:
        yield f"Churn: {percent(line.churn, 1)} of the top {TOP} differ between two fetches."
    if line.unlabelled is not None:
        shares = f"{percent(line.unlabelled, 1)} tonight"
        if line.unlabelled_pinned is not None:
            shares += f", {percent(line.unlabelled_pinned, 1)} in the pinned run"
        yield f"Documents without a label in the top {TOP} of labelled queries: {shares}."
        if line.unlabelled - (line.unlabelled_pinned or 0.0) > _UNLABELLED:
            yield (
                "A document without a label counts as not relevant, so new documents lower the "
                "metrics: label them before you trust a drop."
            )
    if line.p95_ms is not None and config.max_p95_ms is None:
        yield f"p95 latency: {brief(line.p95_ms)} ms."
    yield from _targets(config, line.metrics)
    metrics = len(config.metrics)
    several = f", for the {metrics} metrics together" if metrics > 1 else ""
    yield (
        "All nights are one test. If no night's expected mean on these queries is more than "
        f"{plain(config.rule.smallest)} below the pinned run, the chance of any alarm in "
        f"{number(config.rule.per_year, 0)} nights is at most {percent(config.alpha, 1)}{several}."
    )


def _about_the_drop(spec: str, tonight: Tonight) -> Iterator[str]:
    """Yield the queries with the largest losses, and the drop for other queries."""
    if tonight.pinned is None:
        return
    change = changes(spec, tonight.pinned, tonight.values)
    title = parse_measure(spec).title
    lost = change[change < 0][:_LOSSES]
    listed = ", ".join(f"{query} {signed(each, 2)}" for query, each in lost.items())
    yield f"{title}, largest losses: {listed}."
    low, high = for_other_queries(change)
    if math.isnan(low):
        return
    meaning = "also proven" if high < 0 else "not proven"
    yield (
        f"For other queries like these, a drop of {title} is {meaning} (95% interval: "
        f"{signed(low, 4)} … {signed(high, 4)})."
    )


def _targets(config: Config, metrics: dict[str, MetricNight]) -> Iterator[str]:
    targets = () if config.goals is None else config.goals.profile.targets
    shown = [
        f"{each.metric} {number(metrics[each.metric].mean, 4)} (target {plain(each.required)})"
        for each in targets
        if each.metric in metrics
    ]
    if shown:
        yield f"Targets, which do not raise an alarm: {', '.join(shown)}."


def _as_json(config: Config, tonight: Tonight, checks: Checks) -> str:
    return as_json(
        {
            "passed": all(each.result != "FAIL" for each in checks.rows),
            "against": tonight.name,
            **msgspec.to_builtins(tonight.line),
            "failed": tonight.line.failed,
            "checks": [
                {"name": each.title, "result": each.result, "message": each.message}
                for each in checks.rows
            ],
            "notes": list(checks.notes),
            "settings": {
                "alpha": config.alpha,
                "smallest": config.rule.smallest,
                "nights_per_year": config.rule.per_year,
                "evidence_of_an_alarm": config.rule.threshold,
            },
        }
    )
