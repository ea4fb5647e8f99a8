"""The charts of latency: the curve, the boxes, and what it grows with."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import brief, ngettext, number, percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.measured import FEWEST_TIMED
from rankdash.core.study import study_latency
from rankdash.core.study.latency import FEWEST_FITTED, Ratio
from rankdash.core.study.study import Study
from rankdash.core.study.study_latency import Against, Times
from rankdash.features.latency import charts, charts_latency_fit, charts_latency_spread
from rankdash.kit.drawing import style
from rankdash.kit.widgets import pickers
from rankdash.kit.widgets.lazy_expander import fold
from rankdash.kit.widgets.plotly_chart import draw, ink, show
from rankdash.kit.widgets.text import name_rows
from rankdash.kit.widgets.view import safe_name


def spread(study: Study, found: dict[str, Times], target_ms: float) -> None:
    """The share of queries answered within a time, and the boxes second."""
    left, right = st.columns([7, 5], gap="medium")
    with left:
        st.subheader(_("Latency distribution (CDF)"), anchor=False)
        if (curves := charts.latency(study, target_ms)) is not None:
            draw(curves, key="latency.ecdf")
        if any(times.summary.p99 is None for times in found.values()):
            st.caption(
                _(
                    "Marks: p50 and p95, with the interval as a pale bar. p99 needs at least "
                    "1,000 queries."
                )
            )
    with right:
        st.subheader(_("Latency spread"), anchor=False)
        spreads = [
            charts_latency_spread.Spread(system, study.name(system), times.ordered)
            for system, times in found.items()
            if times.summary.p95 is not None
        ]
        if spreads:
            show(
                charts_latency_spread.figure(
                    spreads, style.marks(study.places, study.baseline), ink(), target_ms=target_ms
                ),
                alt=charts_latency_spread.alt(spreads),
                key="latency.spread",
            )
            st.caption(
                _(
                    "Box: half of the queries. Whiskers: 5% to 95%. Circles: the fastest and the "
                    "slowest. Dashed: the target."
                )
            )
        if len(spreads) < len(found):
            st.caption(_("A system needs {n} timed queries for a box.", n=number(FEWEST_TIMED, 0)))
        compared(study, found)


def compared(study: Study, found: dict[str, Times]) -> None:
    """The others against the fastest, on the queries timed in both."""
    first = min(found, key=lambda system: found[system].summary.p50)
    sentences = []
    for system in found:
        ratio = None if system == first else study_latency.ratio(study, first, system)
        if ratio is not None:
            sentences.append(_ratio_in_words(study, first, system, ratio))
    if not sentences:
        return
    st.markdown("  \n".join(sentences))
    st.caption(
        _(
            "Query by query, in the geometric mean. The runs were measured one after the other, so "
            "a change in the machine's load shows as a difference too."
        )
    )


def _ratio_in_words(study: Study, first: str, system: str, ratio: Ratio) -> str:
    names = {"system": safe_name(study, system), "other": safe_name(study, first)}
    queries = ngettext("the same {n} query", "the same {n} queries", ratio.n)
    if math.isfinite(ratio.low):
        queries = _(
            "{queries} ({level}: {low} … {high})",
            queries=queries,
            level=percent(study.statistics.level),
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
            "{n} of them had another number of documents.",
            "{n} of them had another number of documents.",
            ratio.unlike,
        )
    return text


def growth(study: Study, found: dict[str, Times]) -> None:
    """Latency against documents or tokens, with a line where the points carry one."""
    st.subheader(_("Latency by length and number of documents"), anchor=False)
    varied = any(times.documents[0] != times.documents[1] for times in found.values())
    tokens = any(len(study_latency.cloud(study, system, "tokens")[0]) for system in found)
    drawn, beside = st.columns([7, 5], gap="medium")
    with beside:
        chosen = pickers.pick_one(
            "against",
            ["documents", "tokens"] if tokens else ["documents"],
            st.segmented_control,
            default="documents" if varied or not tokens else "tokens",
            label=_("X axis"),
            format_func={"documents": _("Documents"), "tokens": _("Tokens")}.__getitem__,
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
    for system in found:
        points, line = study_latency.cloud(study, system, against)
        if len(points):
            clouds.append(charts_latency_fit.Cloud(system, study.name(system), points, line))
    with drawn:
        show(
            charts_latency_fit.figure(
                clouds, style.marks(study.places, study.baseline), against, ink(), rules=rules
            ),
            alt=charts_latency_fit.alt(clouds, against),
            key=f"latency.growth.{against}",
        )
    with beside:
        for cloud in clouds:
            st.markdown(growth_sentence(study, cloud, against))
        if sum(len(cloud.points) for cloud in clouds) > charts_latency_fit.MOST_MARKS:
            st.caption(
                _(
                    "About {n} queries are drawn at random; the rest are in the table.",
                    n=number(charts_latency_fit.MOST_MARKS, 0),
                )
            )
    fold(
        _("Lines and points as tables"),
        "latency.lines",
        ":material/table:",
        lambda: _growth_tables(clouds, against),
    )


def growth_sentence(study: Study, cloud: charts_latency_fit.Cloud, against: Against) -> str:
    """Return what a system's latency grows with, or why no line is drawn."""
    name, line = safe_name(study, cloud.system), cloud.fit
    if line is None:
        if len(cloud.points) < FEWEST_FITTED:
            return _(
                "**{system}**: no line is drawn for fewer than {n} queries.",
                system=name,
                n=number(FEWEST_FITTED, 0),
            )
        return _(
            "**{system}**: no line is drawn, because the queries do not differ in it.", system=name
        )
    # A thousand tokens: one alone costs next to nothing.
    unit = 1 if against == "documents" else 1000
    slope, low, high = (_significant(unit * each) for each in (line.slope, line.low, line.high))
    each = _("ms a document") if against == "documents" else _("ms a thousand tokens")
    n = number(line.n, 0)
    if line.low <= 0 <= line.high:
        return _(
            "**{system}**: {n} queries show no proven growth ({low} … {high} {each}).",
            system=name,
            n=n,
            low=low,
            high=high,
            each=each,
        )
    return _(
        "**{system}**: {slope} {each} ({level}: {low} … {high}), by {n} queries.",
        system=name,
        level=percent(study.statistics.level),
        slope=slope,
        each=each,
        low=low,
        high=high,
        n=n,
    )


def _significant(value: float) -> str:
    """Two digits that say something, whatever the size."""
    if value == 0:
        return number(0, 0)
    size = math.floor(math.log10(abs(value)))
    return number(value, min(max(1 - size, 0), 6))


def _growth_tables(clouds: list[charts_latency_fit.Cloud], against: Against) -> None:
    unit = _("documents") if against == "documents" else _("tokens")
    lines = [
        {
            _("system"): cloud.name,
            _("queries"): cloud.fit.n,
            _("ms each"): cloud.fit.slope,
            _("low"): cloud.fit.low,
            _("high"): cloud.fit.high,
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
            alt=_("The line of each system"),
        )
        st.caption(
            _(
                "Theil–Sen: the median of the slopes of every two queries (of at most 600), which "
                "outliers hardly move."
            )
        )
    points = pd.concat([cloud.points.assign(system=cloud.name) for cloud in clouds])
    points = points[["system", "x", "ms"]].set_axis([_("system"), unit, _("ms")], axis="columns")
    st.dataframe(points, hide_index=True, height=280, alt=_("Every timed query"))
    if against == "documents":
        rules = charts_latency_fit.RULES_OF_THUMB.rename(columns={"documents": unit})
        st.dataframe(rules, hide_index=True, alt=_("Rules of thumb from tutorials, ms"))
        st.caption(
            _(
                "Rules of thumb from tutorials, in milliseconds: copied without naming a machine "
                "or a model. They are no measurement."
            )
        )
