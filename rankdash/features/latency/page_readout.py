"""Systems that meet the latency target: chart, details, and tables of measurements."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import (
    brief,
    enumerated,
    level_percent,
    ngettext,
    number,
    paragraph,
    percent,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.measured import FEWEST_TIMED
from rankdash.core.data.ranking import RETRIEVAL, SHIPPED_WITH
from rankdash.core.runs.combining import KIND as FUSION
from rankdash.core.study import latency
from rankdash.core.study.latency import (
    LatencySummary,
    Ratio,
    Times,
    call_parts,
    on_target,
)
from rankdash.core.study.study import Study
from rankdash.core.words.latency import (
    busy_notes,
    excluded_from_times,
    milliseconds,
    where_measured,
)
from rankdash.features.latency import charts
from rankdash.kit.widgets import address, pickers, view
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.text import markdown_safe, name_rows, signed_cells
from rankdash.kit.widgets.view import safe_name

REAL_TIME, BATCH = "500", "2000"
_LONGEST_MS = 600_000
PERCENTILES, DISTRIBUTION = "percentiles", "distribution"
_MOST_NAMES = 2


def target() -> float:
    """Draw the choice of the target for p95; return it in milliseconds."""
    usual = {REAL_TIME: _("Target: 500 ms, real time"), BATCH: _("Target: 2,000 ms, batch")}
    chosen = whole_ms(address.one("target"))
    return float(
        pickers.pick_free(
            "target",
            st.selectbox,
            read=whole_ms,
            write=whole_ms,
            label=_("Target: 95% of queries within"),
            label_visibility="collapsed",
            options=list(dict.fromkeys([*usual, chosen])),
            format_func=lambda value: usual.get(
                value, _("Target: {ms}", ms=milliseconds(float(value)))
            ),
            accept_new_options=True,
            placeholder=_("Choose a target or enter milliseconds."),
            width=230,
        )
    )


def whole_ms(value: str | None) -> str:
    """Return whole milliseconds from an entered text or the address; by default 500."""
    digits = (value or "").removesuffix("ms").replace(",", "").strip()
    fits = digits.isascii() and digits.isdigit() and 0 < int(digits[:9]) <= _LONGEST_MS
    return str(int(digits)) if fits else REAL_TIME


def draw(study: Study, timings: dict[str, Times]) -> float:
    """Draw which systems meet the target, with the chart. Return the target in milliseconds."""
    line = st.empty()
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        shown = pickers.pick_one(
            "latency",
            [PERCENTILES, DISTRIBUTION],
            st.segmented_control,
            label=_p("field", "Chart"),
            label_visibility="collapsed",
            format_func={
                PERCENTILES: _p("choice", "Percentiles"),
                DISTRIBUTION: _p("choice", "Distribution"),
            }.__getitem__,
            required=True,
        )
        target_ms = target()
    line.markdown(answer(study, target_ms))
    shown = shown or PERCENTILES
    if (drawn := shared(_chart, study, target_ms, shown)) is not None:
        figure, alt = drawn
        key = f"latency.{shown}"
        widgets_charts.show(figure, alt=alt, key=key, on_select=lambda: _choose_row(key))
    if (row := address.one("row")) in timings:
        _one(safe_name(study, row), timings[row], target_ms, study.statistics.level)
    else:
        address.lose("row", row)
        st.caption(_("Click a system to see its measurement details."))
    not_timed(study, timings)
    if notes := busy_notes(study):
        with st.container(horizontal=True, vertical_alignment="center"):
            text = "  \n".join(f":material/speed: {markdown_safe(each, 400)}" for each in notes)
            st.caption(text, width="content")
            view.link("run", _("Measure again"), ":material/arrow_forward:")
    return target_ms


def _chart(study: Study, target_ms: float, shown: str) -> tuple[Any, str] | None:
    draw_chart = charts.distribution if shown == DISTRIBUTION else charts.latency
    drawing = draw_chart(study, target_ms)
    return None if drawing is None else widgets_charts.drawn(drawing)


def _choose_row(key: str) -> None:
    """Show the details of the clicked system; a second click hides them."""
    clicked = [point["customdata"] for point in st.session_state[key]["selection"]["points"]]
    address.choose("row", clicked[0] if clicked else None)
    address.publish()


def answer(study: Study, target_ms: float) -> str:
    """Return which systems meet the target, probably meet or miss it, or miss it."""
    rows, ms = charts.rows(study, target_ms), brief(target_ms)
    titles = {
        "meets": _("**Within {ms} ms for 95% of queries**", ms=ms),
        "likely": _("**p95 below {ms} ms, but too few queries to confirm it**", ms=ms),
        "unlikely": _("**p95 above {ms} ms, but too few queries to confirm it**", ms=ms),
        "misses": _("**p95 above {ms} ms**", ms=ms),
        "": _("**Too few queries for p95**"),
    }
    sentences = []
    for kind, title in titles.items():
        names = [
            safe_name(study, row.system)
            for row in rows
            if kind == ("" if row.met is None else row.met.kind)
        ]
        if not names:
            continue
        systems = enumerated(names)
        if len(names) > _MOST_NAMES:
            systems = _("{n} of {all} systems", n=len(names), all=len(rows))
            if len(names) == len(rows):
                systems = _("all {n} systems", n=len(names))
        sentences.append(_("{title}: {systems}.", title=title, systems=systems))
    return paragraph(sentences)


def not_timed(study: Study, timings: dict[str, Times]) -> None:
    """List the chosen systems without a latency, and those measured on another machine."""
    without = [
        _("{system} ({why})", system=safe_name(study, system), why=_why_not(study, system))
        for system in study.chosen
        if system not in timings
    ]
    if without:
        st.caption(_("No latency: {systems}.", systems=enumerated(without)))
    elsewhere = [safe_name(study, each) for each, times in timings.items() if times.run.shipped]
    if elsewhere:
        st.caption(
            _(
                "From the sample data, not measured on this machine: {systems}.",
                systems=enumerated(elsewhere),
            )
        )


def _why_not(study: Study, system: str) -> str:
    times = latency.times(study, system)
    if times is None:
        return _("ranking without reranking; adds no latency")
    if times.run.reranker == FUSION:
        return _("fused from systems, at least one without a latency")
    if times.run.reranker == RETRIEVAL:
        return _("a retrieval; its latency is not measured")
    if times.run.measured is None:
        return _("imported from a file, or run by an older version of rankdash")
    if times.apart.cached_pairs:
        return _(
            "all scores came from the cache; to measure latency, run it again with “always: score "
            "again”"
        )
    if not times.apart.untimed:
        return _("all queries failed")
    return _("scored in batches; run it again and measure the latency")


def details(study: Study, timings: dict[str, Times], target_ms: float) -> None:
    """Draw the measurements of each system as text, and a comparison with the fastest."""
    for system, times in timings.items():
        _one(safe_name(study, system), times, target_ms, study.statistics.level)
        if latency.of_whole_search(study, system):
            st.caption(_("These are times of whole searches, not of reranking."))
    _compared(study, timings)


def _one(name: str, times: Times, target_ms: float, level: float) -> None:
    measured, late = times.run.measured, times.apart.timed_out
    met = on_target(times.ordered, target_ms, timed_out=late, level=level)
    st.markdown(_answers(name, times, target_ms, level))
    facts = []
    if met is not None:
        facts.append(
            _(
                "{within} of {n} queries within the target",
                within=number(met.within, 0),
                n=number(met.n, 0),
            )
        )
    facts += _of_calls(times)
    lines = [" · ".join(facts)] if facts else []
    if where := where_measured(times.run):
        lines.append(_("These latencies are {where}.", where=markdown_safe(where, 300)))
    if measured is not None and measured.contended:
        lines.append(
            ngettext(
                "The machine was busy: scoring had {share} of its {n} thread. On an idle machine "
                "these times may be shorter.",
                "The machine was busy: scoring had {share} of its {n} threads. On an idle machine "
                "these times may be shorter.",
                measured.threads,
                share=percent(measured.cpu_per_wall / measured.threads),
            )
        )
    if parts := excluded_from_times(times.apart, measured):
        lines.append(_("Not included: {parts}.", parts=parts))
    if lines:
        st.caption("  \n".join(lines))


def _compared(study: Study, timings: dict[str, Times]) -> None:
    """Draw the latency ratio of each system to the fastest, on the queries timed in both. Times of
    whole searches are not compared with times of reranking."""
    alike: dict[bool, list[str]] = {}
    for system in timings:
        alike.setdefault(latency.of_whole_search(study, system), []).append(system)
    sentences = []
    for systems in alike.values():
        first = min(systems, key=lambda system: timings[system].summary.p50)
        for system in systems:
            ratio = None if system == first else latency.ratio(study, first, system)
            if ratio is not None:
                sentences.append(_ratio_in_words(study, first, system, ratio))
    if not sentences:
        return
    st.markdown("  \n".join(sentences))
    st.caption(
        _(
            "Geometric mean of the ratios per query. The runs were measured one after another, so "
            "a change in the machine's load also appears as a difference."
        )
    )


def _ratio_in_words(study: Study, first: str, system: str, ratio: Ratio) -> str:
    names = {"system": safe_name(study, system), "other": safe_name(study, first)}
    queries = ngettext("the same {n} query", "the same {n} queries", ratio.n)
    if math.isfinite(ratio.low):
        queries = _(
            "{queries} ({level}: {low} … {high})",
            queries=queries,
            level=level_percent(study.statistics.level),
            low=brief(ratio.low),
            high=brief(ratio.high),
        )
    text = _(
        "**{system}** takes **{times} times** as long as {other}, on {queries}.",
        times=brief(ratio.ratio),
        queries=queries,
        **names,
    )
    if ratio.unlike:
        text += " " + ngettext(
            "{n} of them had a different number of documents.",
            "{n} of them had a different number of documents.",
            ratio.unlike,
        )
    return text


def _answers(name: str, times: Times, target_ms: float, level: float) -> str:
    summary, documents = times.summary, _documents(times.documents)
    if summary.p95 is None:
        return _(
            "**{system}** answers half of {queries} within {p50} ms, {documents}. p95 needs at "
            "least {fewest}.",
            system=name,
            queries=ngettext("{n} query", "{n} queries", summary.n),
            p50=brief(summary.p50),
            documents=documents,
            fewest=number(FEWEST_TIMED, 0),
        )
    return _(
        "**{system}** answers 95% of queries within **{p95} ms** ({interval}), {documents}. "
        "Half are answered within {p50} ms.",
        system=name,
        p95=brief(summary.p95, target_ms),
        interval=_interval(summary, level),
        documents=documents,
        p50=brief(summary.p50),
    )


def _interval(summary: LatencySummary, level: float) -> str:
    low, high = summary.p95_interval
    queries = ngettext("{n} query", "{n} queries", summary.n)
    params = {"queries": queries, "level": level_percent(level), "low": brief(low)}
    if math.isfinite(low) and math.isfinite(high):
        return _("{queries}, {level} interval {low} … {high}", high=brief(high), **params)
    if math.isfinite(low):
        return _("{queries}, {level} interval at least {low}", **params)
    return _("{queries}, too few for an interval", queries=queries)


def _documents(span: tuple[int, int]) -> str:
    fewest, most = span
    if fewest == most:
        return ngettext("{n} document each", "{n} documents each", most)
    return _("{fewest} to {most} documents each", fewest=number(fewest, 0), most=number(most, 0))


def _of_calls(times: Times) -> list[str]:
    """Return texts on the parts of a service call's time: model, network and queue, if reported."""
    parts = call_parts(times.run)
    if parts is None or not math.isfinite(parts.server):
        return []
    text = _(
        "per call: {server} ms in the model and {rest} ms on the network",
        server=brief(parts.server),
        rest=brief(parts.rest),
    )
    if math.isfinite(parts.queue):
        return [text, _("{queue} ms in the service's queue", queue=brief(parts.queue))]
    return [text]


def numbers(study: Study, timings: dict[str, Times]) -> None:
    """Draw a table of all measurements, one row for each system."""
    columns: dict[str, Any] = {
        _p("column", "system"): st.column_config.TextColumn(width="medium"),
        **dict.fromkeys(
            [_("cold start, s"), _p("column", "pairs/s"), _p("column", "tokens/s")], _format("%.1f")
        ),
        _p("column", "repeats"): _format("%.0f"),
    }
    rows = pd.DataFrame([_row(study.name(system), times) for system, times in timings.items()])
    timed = (
        *("p50", "p90", "p95", "p99", _("first call")),
        *(_("p50, low"), _("p50, high"), _("p95, low"), _("p95, high")),
        *(_p("column", "mean"), _("standard deviation"), _("standard deviation of repeats")),
    )
    st.dataframe(
        signed_cells(rows, {}, times=[each for each in timed if each in rows]),
        hide_index=True,
        placeholder="–",
        column_config=columns,
        row_height=name_rows(study.names.values()),
        alt=_("Latency and throughput of each system"),
    )
    st.caption(
        _(
            "Times are in milliseconds, measured one query at a time after a warm-up. Low and "
            "high are the ends of the {level} interval. A pair is a query and one document.",
            level=level_percent(study.statistics.level),
        )
    )


def _format(pattern: str) -> Any:
    return st.column_config.NumberColumn(format=pattern)


def _row(name: str, times: Times) -> dict[str, object]:
    summary, apart, measured = times.summary, times.apart, times.run.measured
    row = {
        _p("column", "system"): name,
        "p50": summary.p50,
        "p95": _or_nan(summary.p95),
        _("p95, low"): summary.p95_interval[0],
        _("p95, high"): summary.p95_interval[1],
        _("p50, low"): summary.p50_interval[0],
        _("p50, high"): summary.p50_interval[1],
        "p90": _or_nan(summary.p90),
        "p99": _or_nan(summary.p99),
        _p("column", "mean"): summary.mean,
        _("standard deviation"): summary.deviation,
        _("queries timed"): summary.n,
        _("cold start, s"): times.run.load_ms / 1e3,
    }
    if measured is not None:
        row |= {
            _("first call"): measured.first_call_ms,
            _p("column", "repeats"): measured.repeats,
            _("standard deviation of repeats"): times.repeats_deviation,
            _p("column", "pairs/s"): measured.pairs_per_second,
            _p("column", "tokens/s"): measured.tokens_per_second,
        }
    return row | {
        _p("column", "failed"): apart.failed,
        _("timed out"): apart.timed_out,
        _p("column", "retried"): apart.retried,
        _("not timed"): apart.untimed,
    }


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def machines(study: Study, timings: dict[str, Times]) -> None:
    """Draw a table of machine, threads, load and versions, one column for each system."""
    titles = {study.name(system): _conditions(times) for system, times in timings.items()}
    table = pd.DataFrame(titles).fillna("")
    table.index.name = _("measured on")
    st.dataframe(table, alt=_("Machine of each run"))


def _conditions(times: Times) -> dict[str, str]:
    measured = times.run.measured
    titles: dict[str, str] = {}
    if measured is not None:
        titles[_("threads in use")] = number(measured.threads, 0)
        titles[_("CPU seconds per second")] = number(measured.cpu_per_wall, 2)
        titles[_("load average, start → end")] = (
            f"{number(measured.load_start, 1)} → {number(measured.load_end, 1)}"
        )
    names = {
        "cpu": _p("machine", "processor"),
        "logical_cpus": _("logical processors"),
        "threads": _("threads allowed"),
        "os": _("operating system"),
        "device": _p("machine", "device"),
        "runtime": _p("column", "runtime"),
        "tokens_in_a_batch": _("tokens per batch"),
        "calibration": _("benchmark of runtimes"),
        "model_package": _("model package"),
        "model_sha256": _("model SHA-256"),
        "model_origin": _("model origin"),
        "model_licence": _("model licence"),
        "activation": _p("machine", "activation"),
        SHIPPED_WITH: _("shipped with"),
    }
    machine = dict(times.run.machine)
    if machine.get(SHIPPED_WITH) == "sample":
        machine[SHIPPED_WITH] = _p("machine", "sample")
    return titles | {names.get(name, name): str(value) for name, value in machine.items()}
