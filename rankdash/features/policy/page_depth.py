"""Depth: how many documents to rerank, computed from one deep run."""

from __future__ import annotations

import math

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import brief, error_text, ngettext, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import FEWEST_QUERIES
from rankdash.core.study import costs, pricing
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.value.depth import DepthCurve
from rankdash.core.words.prices import money
from rankdash.features.policy import charts
from rankdash.kit.widgets import address, pickers
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.scenario import currency
from rankdash.kit.widgets.text import markdown_safe
from rankdash.kit.widgets.view import safe_name

ALL = "all"


def chosen() -> int | None:
    """Return the depth that the user chose; None without a choice."""
    text = address.one("policy_depth") or ALL
    return int(text) if text.isascii() and text.isdecimal() and int(text[:9]) > 0 else None


def show(study: Study, challenger: str) -> None:
    """Draw the metric by depth, with the recommended and the chosen one."""
    try:
        by_depth = costs.depths(study, challenger)
    except RankdashError as error:
        st.info(markdown_safe(error_text(error), 300), icon=":material/info:")
        return
    if by_depth is None:
        return
    curve = by_depth.curve
    st.markdown(_recommended(study, challenger, curve))
    if costs.listwise(study, challenger):
        st.warning(
            _(
                "This reranker scores all documents of a query together. With fewer documents it "
                "may order them differently, so results at smaller depths are estimates."
            ),
            icon=":material/warning:",
        )
    chosen = _choice(curve)
    cost = _costs(study, challenger, curve)
    known = curve.queries >= FEWEST_QUERIES
    marks = {_p("chart", "best"): curve.best, _p("chart", "recommended"): curve.enough}
    if curve.most is not None:
        marks[_("90% of the gain")] = curve.most
    widgets_charts.draw(
        charts.quality(
            curve.table,
            study.measure.title,
            x="depth",
            title=_("documents reranked"),
            lines={study.name(FIRST_STAGE): float(curve.table["mean"].iloc[0])},
            marks={name: float(depth) for name, depth in marks.items()} if known else {},
            chosen=None if chosen == ALL else float(chosen),
            scale="even",
            written=_written,
            level=study.statistics.level,
            hover=[_more(*each) for each in zip(by_depth.p95, cost, strict=True)],
        ),
        key="policy.depth",
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
        table = curve.table.assign(p95=by_depth.p95, cost=cost).rename(columns=_titles())
        st.dataframe(
            table, hide_index=True, placeholder="–", alt=_("Quality, p95 and cost by depth")
        )


def _choice(curve: DepthCurve) -> str:
    """Draw the choice of the depth of the policy; `ALL` if none is chosen."""
    depths = [f"{depth}" for depth in curve.table["depth"][1:-1]]
    chosen = pickers.pick_one(
        "policy_depth",
        [ALL, *depths],
        st.segmented_control,
        default=ALL,
        label=_("Documents that the policy reranks"),
        format_func=lambda depth: _p("depth", "all") if depth == ALL else number(int(depth), 0),
        required=True,
    )
    return chosen or ALL


def _costs(study: Study, challenger: str, curve: DepthCurve) -> list[float]:
    """Return the cost of 1,000 searches at each depth; NaN without a price."""
    bill = pricing.bill(study, challenger)
    return [
        0.0 if at == 0 else math.nan if bill is None else bill.at(float(at))
        for at in curve.table["depth"]
    ]


def _written(depth: float) -> str:
    return _("not reranked") if depth == 0 else number(depth, 0)


def _more(p95: float, cost: float) -> str:
    """Return p95 and cost for the hover text of a depth, if known."""
    words = [_("p95 {ms} ms", ms=brief(p95))] if math.isfinite(p95) else []
    if math.isfinite(cost):
        words.append(_("{cost} per 1,000 searches", cost=money(cost, currency())))
    return " · ".join(words)


def _titles() -> dict[str, str]:
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


def _recommended(study: Study, challenger: str, curve: DepthCurve) -> str:
    name, metric = safe_name(study, challenger), study.measure.title
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
