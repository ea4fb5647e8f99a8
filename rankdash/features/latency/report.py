"""Section of the report on latency: measured times and their conditions."""

from __future__ import annotations

import math

from rankdash.core.base.i18n import (
    brief,
    duration,
    level_percent,
    number,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.measured import FEWEST_TIMED
from rankdash.core.data.ranking import Run
from rankdash.core.study import latency
from rankdash.core.study.latency import P99_NEEDS, LatencySummary, apart
from rankdash.core.study.study import Study
from rankdash.core.words.latency import busy_notes, excluded_from_times, where_measured
from rankdash.features.latency import charts
from rankdash.kit.html.html_page import DASH, Draft, PageTable, filled, listed, prose, table


def draw(draft: Draft) -> str:
    study = draft.study
    timed = [(system, times.run, times.summary) for system, times in charts.timed(study).items()]
    sentences = [text for system, run, _summary in timed for text in _sentences(study, system, run)]
    for system in study.chosen:
        name = study.name(system)
        if study.timed_run(system) is None:
            sentences.append(_("**{system}** reranks nothing, so it adds no latency.", system=name))
        elif latency.summary(study, system) is None:
            sentences.append(_("**{system}**: no latency was measured.", system=name))
    sentences += busy_notes(study)
    if not timed:
        return listed(sentences)
    notes = _(
        "Times are in milliseconds for one query and its documents, without other queries, after "
        "a warm-up. In brackets: the {level} interval, without an upper end if too few queries "
        "were timed. p90 and p95 need at least {fewest} queries, p99 needs {n}.",
        level=level_percent(study.statistics.level),
        fewest=number(FEWEST_TIMED, 0),
        n=number(P99_NEEDS, 0),
    )
    return (
        draft.chart(charts.latency(study)) + listed(sentences) + _quantiles(study)
        + prose(notes, "muted") + _throughput(draft, timed) + _machines(draft, timed)
    )  # fmt: skip


def _sentences(study: Study, system: str, run: Run) -> list[str]:
    """Return sentences on where a system's latencies were measured and which times they exclude."""
    name, sentences = study.name(system), []
    if where := where_measured(run):
        sentences.append(_("The latencies of {system} are {where}.", system=name, where=where))
    if parts := excluded_from_times(apart(run), run.measured):
        sentences.append(
            _("The latency of {system} does not include: {parts}.", system=name, parts=parts)
        )
    return sentences


def _quantiles(study: Study) -> str:
    rows, target = [], charts.latency_target(study)
    for row, times in zip(charts.rows(study, target), charts.timed(study).values(), strict=True):
        summary, load_ms = row.summary, times.run.load_ms
        rows.append(
            (
                row.name,
                number(summary.n, 0),
                row.answer,
                DASH if row.met is None else number(row.met.within, 0),
                brief(summary.mean),
                brief(summary.deviation),
                _with_ends(summary.p50, summary.p50_interval),
                DASH if summary.p90 is None else brief(summary.p90),
                DASH if summary.p95 is None else _with_ends(summary.p95, summary.p95_interval),
                DASH if summary.p99 is None else brief(summary.p99),
                duration(load_ms / 1e3) if math.isfinite(load_ms) else DASH,
            )
        )
    head = (
        *(
            _p("column", "system"),
            _("queries timed"),
            _p("column", "target"),
            _("within {ms} ms", ms=brief(target)),
        ),
        *(
            _p("column", "mean"),
            _("standard deviation"),
            "p50",
            "p90",
            "p95",
            "p99",
            _("cold start"),
        ),
    )
    return table(PageTable(head, rows, frozenset({1, *range(3, 11)})))


def _with_ends(value: float, ends: tuple[float, float]) -> str:
    """Return a quantile and its interval as text. The interval of few timed queries has no upper
    end."""
    low, high = ends
    if math.isfinite(low) and math.isfinite(high):
        return f"{brief(value)} ({brief(low)} … {brief(high)})"
    if math.isfinite(low):
        return _("{value} (at least {low})", value=brief(value), low=brief(low))
    return brief(value)


def _throughput(draft: Draft, timed: list[tuple[str, Run, LatencySummary]]) -> str:
    rows = [
        (
            draft.study.name(system),
            number(level.in_flight, 0),
            number(level.queries_per_second, 1),
            brief(level.p50_ms),
            brief(level.p95_ms),
            number(level.failed, 0),
        )
        for system, run, _summary in timed
        if run.measured is not None
        for level in run.measured.throughput
    ]
    if not rows:
        return ""
    head = (
        *(
            _p("column", "system"),
            _("concurrent clients"),
            _p("column", "queries/s"),
            _("p50 ms"),
            _("p95 ms"),
        ),
        _p("column", "failed"),
    )
    text = _(
        "Throughput, measured with the listed numbers of concurrent clients (not derived from "
        "latency):"
    )
    return prose(text) + table(PageTable(head, rows, frozenset(range(1, 6))))


def _machines(draft: Draft, timed: list[tuple[str, Run, LatencySummary]]) -> str:
    """Return an HTML table of the machine on which each run was measured; "" if no machine was
    recorded."""
    rows = []
    for system, run, _summary in timed:
        measured = run.measured
        loads = () if measured is None else (measured.load_start, measured.load_end)
        rows.append(
            (
                draft.study.name(system),
                str(run.machine.get("cpu", "")),
                "" if measured is None else number(measured.threads, 0),
                " → ".join(number(load, 1) for load in loads if math.isfinite(load)),
                str(run.machine.get("os", "")),
            )
        )
    head = (
        *(_("measured on"), _p("column", "processor"), _("threads in use")),
        *(_("load average, start → end"), _("operating system")),
    )
    content = filled(head, rows)
    # A run from a file has no record of its machine.
    return table(content) if len(content.columns) > 1 else ""
