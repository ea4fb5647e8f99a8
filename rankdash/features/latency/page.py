"""Latency by documents and tokens, throughput under load, and text lengths."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import brief, enumerated, level_percent, number, percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.runs.concurrency import within_target
from rankdash.core.study import latency
from rankdash.core.study.latency import FEWEST_FITTED, Against
from rankdash.core.study.study import Study
from rankdash.features.latency import charts_load
from rankdash.kit.drawing import style
from rankdash.kit.widgets import pickers, view
from rankdash.kit.widgets.charts import draw
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.text import name_rows, signed_cells
from rankdash.kit.widgets.view import pick_system, safe_name


def load(study: Study, target_ms: float) -> None:
    """Draw the throughput next to the text lengths."""
    throughput, lengths = st.columns(2, gap="medium")
    with throughput:
        draw_throughput(study, target_ms)
    with lengths:
        draw_tokens(study)


def growth(study: Study) -> None:
    """Draw latency by documents or tokens, with a line if the points justify one."""
    timings = latency.timed(study)
    st.header(_("Latency by tokens or documents per query"), anchor=False)
    varied = any(times.documents[0] != times.documents[1] for times in timings.values())
    tokens = any(len(latency.cloud(study, system, "tokens")[0]) for system in timings)
    drawn, beside = st.columns([7, 5], gap="medium")
    with beside:
        chosen = pickers.pick_one(
            "against",
            ["documents", "tokens"] if tokens else ["documents"],
            st.segmented_control,
            default="documents" if varied or not tokens else "tokens",
            label=_("X axis"),
            format_func={
                "documents": _p("choice", "Documents"),
                "tokens": _p("choice", "Tokens"),
            }.__getitem__,
            required=True,
        )
        against: Against = "tokens" if chosen == "tokens" else "documents"
        rules = against == "documents" and bool(
            pickers.pick_free(
                "rules",
                st.toggle,
                read=lambda value: value != "hidden",
                write=lambda value: None if value else "hidden",
                label=_("Rules of thumb from tutorials"),
            )
        )
    clouds = []
    for system in timings:
        points, line = latency.cloud(study, system, against)
        if len(points):
            clouds.append(charts_load.Cloud(system, study.name(system), points, line))
    with drawn:
        draw(
            charts_load.latency_fit_chart(
                clouds, style.marks(study.places, study.baseline), against, rules=rules
            ),
            key=f"latency.growth.{against}",
        )
    with beside:
        for cloud in clouds:
            st.markdown(growth_sentence(study, cloud, against))
        if sum(len(cloud.points) for cloud in clouds) > charts_load.MOST_MARKS:
            st.caption(
                _(
                    "The chart shows a random sample of about {n} queries; the table contains all.",
                    n=number(charts_load.MOST_MARKS, 0),
                )
            )
    fold(
        _("Tables of lines and points"),
        "latency.lines",
        ":material/table:",
        lambda: _growth_tables(clouds, against),
    )


def growth_sentence(study: Study, cloud: charts_load.Cloud, against: Against) -> str:
    """Return how a system's latency grows, or why no line is drawn."""
    name, line = safe_name(study, cloud.system), cloud.fit
    if line is None:
        if len(cloud.points) < FEWEST_FITTED:
            return _(
                "**{system}**: a line needs at least {n} queries.",
                system=name,
                n=number(FEWEST_FITTED, 0),
            )
        return _(
            "**{system}**: no line, because all queries have the same value on the X axis.",
            system=name,
        )
    # Per thousand tokens: the slope per token is too small to read.
    unit = 1 if against == "documents" else 1000
    slope, low, high = (_significant(unit * each) for each in (line.slope, line.low, line.high))
    each = _("ms per document") if against == "documents" else _("ms per 1,000 tokens")
    n = number(line.n, 0)
    if line.low <= 0 <= line.high:
        return _(
            "**{system}**: no proven growth with {n} queries ({low} … {high} {each}).",
            system=name,
            n=n,
            low=low,
            high=high,
            each=each,
        )
    return _(
        "**{system}**: {slope} {each} ({level}: {low} … {high}), from {n} queries.",
        system=name,
        level=level_percent(study.statistics.level),
        slope=slope,
        each=each,
        low=low,
        high=high,
        n=n,
    )


def _significant(value: float) -> str:
    """Return the number with two significant digits, as text."""
    if value == 0:
        return number(0, 0)
    size = math.floor(math.log10(abs(value)))
    return number(value, min(max(1 - size, 0), 6))


def _growth_tables(clouds: list[charts_load.Cloud], against: Against) -> None:
    unit = _p("axis", "documents") if against == "documents" else _p("axis", "tokens")
    lines = [
        {
            _p("column", "system"): cloud.name,
            _p("column", "queries"): cloud.fit.n,
            _("ms per unit"): cloud.fit.slope,
            _p("column", "low"): cloud.fit.low,
            _p("column", "high"): cloud.fit.high,
            _("ms at 0"): cloud.fit.intercept,
        }
        for cloud in clouds
        if cloud.fit is not None
    ]
    if lines:
        st.dataframe(
            pd.DataFrame(lines),
            hide_index=True,
            row_height=name_rows(cloud.name for cloud in clouds),
            alt=_("Fitted line of each system"),
        )
        st.caption(
            _(
                "Theil–Sen estimator: the median slope over all pairs of queries (of up to 600 "
                "queries). Outliers have little effect."
            )
        )
    points = pd.concat([cloud.points.assign(system=cloud.name) for cloud in clouds])
    points = points[["system", "x", "ms"]].set_axis(
        [_p("column", "system"), unit, _p("column", "ms")], axis="columns"
    )
    st.dataframe(points, hide_index=True, height=280, alt=_("Every timed query"))
    if against == "documents":
        rules = charts_load.RULES_OF_THUMB.rename(columns={"documents": unit})
        st.dataframe(rules, hide_index=True, alt=_("Rules of thumb from tutorials, ms"))
        st.caption(
            _(
                "Rules of thumb from tutorials, in milliseconds. The tutorials name neither a "
                "machine nor a model. They are not measurements."
            )
        )


# Throughput: queries per second with several concurrent queries.


def draw_throughput(study: Study, target_ms: float) -> None:
    """Draw the throughput of the systems for which it was measured."""
    st.header(_("Throughput, concurrency"), anchor=False)
    measured, without = [], []
    for system in study.chosen:
        run = study.run(system)
        if run is None:
            continue
        if run.measured is not None and run.measured.throughput:
            levels = run.measured.throughput
            measured.append(charts_load.Measurement(system, study.name(system), levels))
        elif run.measured is not None:
            without.append(safe_name(study, system))
    if measured:
        st.markdown("  \n".join(_best_in_words(study, each, target_ms) for each in measured))
        draw(
            charts_load.throughput_chart(
                measured, style.marks(study.places, study.baseline), target_ms=target_ms
            ),
            key="latency.throughput",
        )
        fold(
            _("Table of all concurrency levels"),
            "latency.levels",
            ":material/table:",
            lambda: _levels_table(measured),
        )
    if without:
        st.caption(
            _(
                "Not measured: {names}. Throughput cannot be derived from latency because "
                "concurrent queries share the machine. To measure it, open “What is measured” "
                "before you start a run.",
                names=enumerated(without),
            )
        )
        view.link("run", _("Measure it in a run"), ":material/arrow_forward:")


def _best_in_words(study: Study, each: charts_load.Measurement, target_ms: float) -> str:
    best = within_target(each.levels, target_ms)
    name = safe_name(study, each.system)
    if best is None:
        return _(
            "**{system}**: p95 is above {target} ms at every measured concurrency.",
            system=name,
            target=brief(target_ms),
        )
    return _(
        "**{system}** serves **{rate} queries/s** within {target} ms (concurrency {n}, p95 {p95} "
        "ms).",
        system=name,
        rate=brief(best.queries_per_second),
        target=brief(target_ms),
        n=number(best.in_flight, 0),
        p95=brief(best.p95_ms, target_ms),
    )


def _levels_table(measured: list[charts_load.Measurement]) -> None:
    rows = [
        {
            _p("column", "system"): each.name,
            _p("column", "concurrent"): level.in_flight,
            _p("column", "queries/s"): level.queries_per_second,
            _p("column", "pairs/s"): level.pairs_per_second,
            "p50": level.p50_ms,
            "p95": level.p95_ms,
            _p("column", "answered"): level.queries,
            _p("column", "failed"): level.failed,
            _p("column", "seconds"): level.seconds,
        }
        for each in measured
        for level in each.levels
    ]
    decimal = st.column_config.NumberColumn(format="%.1f")
    st.dataframe(
        signed_cells(pd.DataFrame(rows), {}, times=("p50", "p95")),
        hide_index=True,
        placeholder="–",
        column_config=dict.fromkeys(
            (_p("column", "queries/s"), _p("column", "pairs/s"), _p("column", "seconds")), decimal
        ),
        row_height=name_rows(each.name for each in measured),
        alt=_("Throughput by concurrency"),
    )


# Lengths of query and document together, and the part that the model does not read.


def draw_tokens(study: Study) -> None:
    """Draw the lengths of one system's pairs, and how many are truncated."""
    readers = [
        system for system in study.chosen if latency.token_lengths(study, system) is not None
    ]
    st.header(_("Text length and truncation"), anchor=False)
    system = readers[0] if readers else None
    if len(readers) > 1:
        label = _p("field", "System")
        system = pick_system(study, "reader", readers, label, label_visibility="collapsed")
    lengths = latency.token_lengths(study, system) if system is not None else None
    if system is None or lengths is None:
        st.caption(_("None of these systems counts tokens."))
        return
    if lengths.cut:
        st.markdown(
            _(
                "**{share} of the pairs are truncated**: the model never sees {unread} of all "
                "tokens. Half of the pairs have up to {p50} tokens, 95% up to {p95}.",
                share=_share(lengths.cut / lengths.pairs),
                unread=_share(lengths.unread),
                p50=number(lengths.p50, 0),
                p95=number(lengths.p95, 0),
            )
        )
    else:
        st.markdown(
            _(
                "No pair is truncated. Half of the pairs have up to {p50} tokens, 95% up to {p95}.",
                p50=number(lengths.p50, 0),
                p95=number(lengths.p95, 0),
            )
        )
    draw(charts_load.token_lengths_chart(lengths, name=study.name(system)), key="latency.lengths")
    fold(
        _("Table of lengths"),
        "latency.length_table",
        ":material/table:",
        lambda: _length_table(lengths.table),
    )


def _share(value: float) -> str:
    return percent(value, 1 if 0 < value < 0.095 else 0)


def _length_table(table: pd.DataFrame) -> None:
    shown = table.assign(stop=table["stop"].where(table["stop"] < math.inf) - 1)
    titles = [_("from (tokens)"), _p("range", "to"), _("read completely"), _p("token", "truncated")]
    st.dataframe(
        shown.set_axis(titles, axis="columns"),
        hide_index=True,
        placeholder="–",
        height=280,
        alt=_("Pairs by their length in tokens"),
    )
