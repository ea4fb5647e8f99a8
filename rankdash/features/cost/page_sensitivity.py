"""Sensitivity of the answer: tornado, break-even map, and reranking depth."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text, level_percent, ngettext, number, percent, quantity
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import FEWEST_QUERIES
from rankdash.core.study import costs
from rankdash.core.study.costs import BASELINE, Choice
from rankdash.core.study.study import Study
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumption, Assumptions
from rankdash.core.value.depth import DepthCurve
from rankdash.core.words import prices
from rankdash.features.cost import charts
from rankdash.features.cost.page_inputs import amount, period
from rankdash.features.cost.sensitivity import (
    GAIN,
    INPUTS,
    PRICE,
    input_value,
    net_per_month,
    usual_ranges,
)
from rankdash.features.cost.sensitivity import tornado as swings_of
from rankdash.kit.widgets import address, pickers
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.scenario import currency
from rankdash.kit.widgets.text import markdown_safe

_BY_NAME: dict[str, Assumption] = {each.name: each for each in ASSUMPTIONS}


def swings(study: Study, choice: Choice, scenario: Assumptions) -> None:
    """Draw the tornado: one assumption changes, the others stay; the widest swing comes first."""
    net = net_per_month(choice.option, scenario)
    if net is None or choice.option.gain is None or choice.lacks_value:
        _lacking()
        return
    span = period()
    gain = choice.option.gain.relative
    interval = None if gain.low is None or gain.high is None else (gain.low, gain.high)
    ranges = usual_ranges(choice.option, scenario, interval)
    rows = [
        charts.Row(
            charts.input_title(each.name),
            each.net_low * span.months,
            each.net_high * span.months,
            _in_words(each.name, each.low),
            _in_words(each.name, each.high),
        )
        for each in swings_of(choice.option, scenario, ranges)
    ]
    if not rows:
        st.info(_("No assumption changes the result."), icon=":material/info:")
        return
    widgets_charts.draw(
        charts.tornado_chart(rows, net * span.months, period=span.name, money=amount),
        key="cost.swings",
    )
    st.caption(
        _(
            "The gain varies over its {level} interval, every other number by ±50%.",
            level=level_percent(study.statistics.level),
        )
        if interval
        else _("Every number varies by ±50%.")
    )
    with st.expander(_("As a table")):
        st.dataframe(
            pd.DataFrame(
                {
                    _p("column", "assumption"): [row.name for row in rows],
                    _p("range", "from"): [row.low for row in rows],
                    _p("range", "to"): [row.high for row in rows],
                    _("{net} at the low value", net=span.net): [
                        amount(row.net_low) for row in rows
                    ],
                    _("{net} at the high value", net=span.net): [
                        amount(row.net_high) for row in rows
                    ],
                }
            ),
            hide_index=True,
            alt=_("Sensitivity (tornado)"),
        )


def _lacking() -> None:
    st.info(
        _(
            "Set a price and the value of a search, or use example values. A measured gain is "
            "also required."
        ),
        icon=":material/info:",
    )


def where_it_pays(choice: Choice, scenario: Assumptions) -> None:
    """Draw the net value over two assumptions that the user chooses."""
    offered = [name for name in INPUTS if input_value(choice.option, scenario, name) is not None]
    if PRICE not in offered or GAIN not in offered or choice.lacks_value:
        _lacking()
        return
    columns = st.columns(2)
    picked = [
        pickers.pick_one(
            field,
            offered,
            column.selectbox,
            default=str(address.FIELDS[field]),
            label=label,
            format_func=charts.input_title,
        )
        for field, label, column in zip(
            ("across", "upward"), (_("X axis"), _("Y axis")), columns, strict=True
        )
    ]
    across, upward = (name or offered[0] for name in picked)
    if across == upward:
        st.info(_("Choose two different assumptions."), icon=":material/info:")
        return
    span = period()
    grid = charts.net_map(choice, scenario, across, upward, currency(), span.months)
    if grid is None:
        return
    widgets_charts.draw(grid.drawing(span.name, currency()), key="cost.map")
    with st.expander(_("As a table")):
        st.dataframe(
            pd.DataFrame(
                grid.net,
                index=pd.Index(
                    [quantity(value, 6) for value in grid.upward.values], name=grid.upward.title
                ),
                columns=[quantity(value, 6) for value in grid.across.values],
            ).round(2),
            alt=_("Net value over two assumptions"),
        )


def _in_words(name: str, value: float) -> str:
    """Return the value of an input as formatted text."""
    if name == PRICE:
        return amount(value)
    if name == GAIN:
        return percent(value, 1)
    each = _BY_NAME[name]
    exact = each.unit in ("share", "money")
    return prices.value(each, value if exact else _rounded(value), currency())


def _rounded(value: float) -> float:
    """Return the value with three digits, or as a whole number if it is at least 1,000."""
    return float(f"{value:.3g}") if abs(value) < 1000 else float(round(value))


def depths(study: Study, choice: Choice) -> None:
    """Draw quality, latency and cost by reranking depth, computed from one deep run."""
    try:
        by_depth = None if choice.system in ("", BASELINE) else costs.depths(study, choice.system)
    except RankdashError as error:
        st.info(markdown_safe(error_text(error), 300), icon=":material/info:")
        return
    if by_depth is None:
        st.info(_("Only reranker runs can be evaluated at smaller depths."), icon=":material/info:")
        return
    curve = by_depth.curve
    metric = study.measure.title
    cost = [
        0.0 if at == 0 or choice.bill is None else choice.bill.at(float(at))
        for at in curve.table["depth"]
    ]
    few = curve.queries < FEWEST_QUERIES
    marks = {} if few else {"best": curve.best, "enough": curve.enough}
    if curve.most is not None and not few:
        marks["most"] = curve.most
    st.markdown(_recommended(study, choice, curve))
    if costs.listwise(study, choice.system):
        st.warning(
            _(
                "This reranker scores all documents of a query together. With fewer documents it "
                "may order them differently, so results at smaller depths are estimates."
            ),
            icon=":material/warning:",
        )
    widgets_charts.draw(
        charts.depth_chart(
            curve.table, metric, marks, latency=by_depth.p95, cost=cost, money=amount
        ),
        key="cost.depths",
    )
    st.caption(
        ngettext(
            "One run, evaluated at smaller depths; {n} query. Latency and hourly cost are "
            "estimates in proportion to the number of documents.",
            "One run, evaluated at smaller depths; {n} queries. Latency and hourly cost are "
            "estimates in proportion to the number of documents.",
            curve.queries,
        )
    )
    with st.expander(_("As a table")):
        table = curve.table.assign(p95=by_depth.p95, cost=cost).rename(columns=_depth_titles())
        st.dataframe(
            table, hide_index=True, placeholder="–", alt=_("Quality, p95 and cost by depth")
        )


def _depth_titles() -> dict[str, str]:
    return {
        "depth": _p("column", "depth"),
        "mean": _p("column", "mean"),
        "low": _p("column", "low"),
        "high": _p("column", "high"),
        "gain": _p("column", "gain"),
        "gain_low": _("gain, low"),
        "gain_high": _("gain, high"),
        "gain_proven": _("gain proven"),
        "behind": _("below the best depth"),
        "behind_low": _("below the best depth, low"),
        "behind_high": _("below the best depth, high"),
        "behind_proven": _("proven below the best depth"),
        "p95": _("p95, ms"),
        "cost": _("cost of 1,000 searches"),
    }


def _recommended(study: Study, choice: Choice, curve: DepthCurve) -> str:
    name, metric = markdown_safe(choice.name, 60), study.measure.title
    enough, best = curve.enough, curve.best
    if curve.queries < FEWEST_QUERIES:
        return ngettext(
            "**No recommended depth:** {n} query; at least {fewest} are needed.",
            "**No recommended depth:** {n} queries; at least {fewest} are needed.",
            curve.queries,
            fewest=number(FEWEST_QUERIES, 0),
        )
    if best == 0:
        return _(
            "**Reranking does not help here:** at every depth, {metric} of {name} is below "
            "{metric} without reranking.",
            metric=metric,
            name=name,
        )
    if enough == 0:
        return _(
            "**Not proven that reranking helps at any depth:** {metric} without {name} is within "
            "noise of {metric} at the best depth ({best}).",
            metric=metric,
            name=name,
            best=number(best, 0),
        )
    return _(
        "**Rerank the top {enough} documents:** {metric} of {name} is then proven to be higher "
        "than without reranking, and within noise of the best depth ({best}).",
        enough=number(enough, 0),
        metric=metric,
        name=name,
        best=number(best, 0),
    )
