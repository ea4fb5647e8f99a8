"""The verdict first: one box a challenger, in a sentence, with the numbers it rests on."""

from __future__ import annotations

import math
from typing import Literal

import pandas as pd
import streamlit as st

from rankdash.analysis.reasons.headroom import Headroom
from rankdash.charts.milliseconds import text as ms
from rankdash.i18n import gettext as _
from rankdash.i18n import number, percent, signed
from rankdash.metrics import parse_measure
from rankdash.ui.cost import cost_fact
from rankdash.ui.sidebar import comparison
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.state import services
from rankdash.ui.widgets.text import markdown_safe
from rankdash.words.verdicts import chip, sentence

Colour = Literal["blue", "orange", "gray"]

_CARDS = ("ndcg", "mrr", "map", "judged")


def draw(view: View) -> None:
    found = comparison.compared(view)
    safe = {system: markdown_safe(view.name(system), 60) for system in view.chosen}
    for system in view.challengers:
        verdict = found.verdict(system, view.spec, safe)
        word, icon, colour = badge(verdict.kind)
        with st.container(border=True):
            st.badge(word, icon=icon, color=colour)
            st.markdown(sentence(verdict))
            facts = _facts(view, system, found.row(system, view.spec))
            st.caption(" · ".join(facts))


def badge(kind: str) -> tuple[str, str, Colour]:
    """(word, icon, colour); the word and the icon say it without the colour."""
    looks: dict[str, tuple[str, Colour]] = {
        "better": (":material/trending_up:", "blue"),
        "small": (":material/north_east:", "blue"),
        "unproven": (":material/help:", "gray"),
        "worse": (":material/trending_down:", "orange"),
        "identical": (":material/drag_handle:", "gray"),
    }
    return (chip(kind), *looks.get(kind, (":material/block:", "gray")))


def _facts(view: View, system: str, row: pd.Series) -> list[str]:
    facts = []
    if math.isfinite(row["delta_low"]):
        facts.append(
            _(
                "change {delta} ({level} {low} … {high})",
                delta=signed(row["delta"]),
                level=percent(view.statistics.level),
                low=signed(row["delta_low"]),
                high=signed(row["delta_high"]),
            )
        )
    if math.isfinite(row["p_corrected"]):
        p = number(row["p_corrected"], 4)
        corrected = view.statistics.correction != "none"
        facts.append(_("corrected p {p}", p=p) if corrected else _("p {p}", p=p))
    facts.append(
        _(
            "{helped} helped, {same} same, {hurt} hurt",
            helped=number(row["helped"], 0),
            same=number(row["same"], 0),
            hurt=number(row["hurt"], 0),
        )
    )
    split = headroom(view, system)
    share = split.share_won if split is not None else None
    if share is not None and share >= 0:
        facts.append(_("{share} of the headroom won", share=percent(share)))
    run = view.systems[system].run
    if run is not None and math.isfinite(run.p95_ms):
        facts.append(_("p95 {ms} ms a query", ms=ms(run.p95_ms)))
    if costs := cost_fact.words(view, system):
        facts.append(markdown_safe(costs))
    if row["left_out"]:
        facts.append(_("{n} left out", n=number(row["left_out"], 0)))
    if math.isfinite(row["smallest_detectable"]):
        facts.append(
            _("smallest change these queries can prove: {n}", n=number(row["smallest_detectable"]))
        )
    return facts


def headroom(view: View, system: str) -> Headroom | None:
    """None for a metric that describes labels."""
    if not view.measures_quality:
        return None
    run = view.systems[system].run
    return services.headroom(
        view.dataset_id,
        (view.baseline, system),
        comparison.specs(view),
        view.spec,
        view.conventions,
        run.depth if run else None,
    )


def cards(view: View, system: str) -> None:
    """Four means of a system, with the change against the baseline where it is another."""
    found = comparison.compared(view)
    alone = system == view.baseline
    safe = markdown_safe(view.name(system), 60)
    st.markdown(
        _("Means of **{system}**", system=safe)
        if alone
        else _(
            "Means of **{system}**, and the change against {baseline}; grey where it is not proven",
            system=safe,
            baseline=markdown_safe(view.name(view.baseline), 60),
        )
    )
    chosen = tuple(dict.fromkeys([view.metric, *_CARDS]))
    shown = (*[name for name in chosen if name != "judged"][:3], "judged")
    for column, name in zip(st.columns(4), shown, strict=True):
        spec = view.spec_of(name)
        row = found.row(system, spec)
        share = name == "judged"
        proven = row["verdict"] in ("better", "small", "worse")
        gain: Colour = "blue" if row["delta"] > 0 else "orange"
        said = percent_change if share else signed
        change = said(row["delta"])
        column.metric(
            view.title(spec),
            percent(row["mean"]) if share else number(row["mean"]),
            # Without a comparison there is no arrow either.
            delta=change if not alone and math.isfinite(row["delta"]) else None,
            delta_color=gain if proven else "gray",
            delta_arrow="off" if change == said(0.0) else "auto",
            help=_(parse_measure(spec).metric.meaning),
            border=True,
        )


def percent_change(value: float) -> str:
    """A change of a share, with its sign, in percentage points."""
    return _("{n} pp", n=signed(100 * value, 0))
