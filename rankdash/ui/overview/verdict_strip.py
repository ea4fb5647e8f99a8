"""The verdict first: one box a challenger, in a sentence, with the numbers it rests on."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from rankdash.analysis.statistics.planning import POWER
from rankdash.charts.milliseconds import text as ms
from rankdash.i18n import gettext as _
from rankdash.i18n import number, percent, signed
from rankdash.metrics import parse_measure
from rankdash.study import latency
from rankdash.study.study import Study
from rankdash.ui.widgets import badges
from rankdash.ui.widgets.badges import Colour
from rankdash.ui.widgets.text import markdown_safe
from rankdash.words.costs import search_cost
from rankdash.words.headroom import documents
from rankdash.words.latency import where_measured
from rankdash.words.verdict_chips import change_facts, sentence

_CARDS = ("ndcg", "mrr", "map", "judged")


def draw(study: Study) -> None:
    found = study.comparison
    safe = {system: markdown_safe(study.name(system), 60) for system in study.chosen}
    for system in study.challengers:
        verdict = found.verdict(system, study.spec, safe)
        with st.container(border=True):
            badges.verdict(verdict.kind)
            st.markdown(sentence(verdict))
            facts = _facts(study, system, found.row(system, study.spec))
            st.caption(" · ".join(facts))


def _facts(study: Study, system: str, row: pd.Series) -> list[str]:
    facts = change_facts(row, study.statistics, "p_corrected")
    split = study.headroom(system)
    share = split.share_won if split is not None else None
    if share is not None and share >= 0:
        won = _("{share} of the potential gain realised", share=percent(share))
        pool = split is not None and split.pool
        facts.append(_("{fact} ({of})", fact=won, of=documents(pool)) if pool else won)
    waited = latency.summary(study, system)
    if waited is not None:
        p95 = _("p95 {ms} ms a query", ms=ms(waited.p95))
        run = study.run(system)
        where = where_measured(run) if run is not None else ""
        facts.append(_("{fact} ({of})", fact=p95, of=markdown_safe(where, 200)) if where else p95)
    if cost := search_cost(study, system):
        facts.append(markdown_safe(cost))
    if row["left_out"]:
        facts.append(_("{n} excluded", n=number(row["left_out"], 0)))
    if math.isfinite(row["smallest_detectable"]):
        facts.append(
            _(
                "minimum detectable change {n} ({power} power at {level})",
                n=number(row["smallest_detectable"]),
                power=percent(POWER),
                level=percent(row["planned_level"], 1),
            )
        )
    return facts


def cards(study: Study, system: str) -> None:
    """Four means of a system, with the change against the baseline where it is another."""
    found = study.comparison
    alone = system == study.baseline
    safe = markdown_safe(study.name(system), 60)
    st.markdown(
        _("Means of **{system}**", system=safe)
        if alone
        else _(
            "Means of **{system}**, and the change against {baseline}; grey where it is not proven",
            system=safe,
            baseline=markdown_safe(study.name(study.baseline), 60),
        )
    )
    chosen = tuple(dict.fromkeys([study.metric, *_CARDS]))
    shown = (*[name for name in chosen if name != "judged"][:3], "judged")
    for column, name in zip(st.columns(4), shown, strict=True):
        spec = study.spec_of(name)
        row = found.row(system, spec)
        share = name == "judged"
        proven = row["verdict"] in ("better", "small", "worse")
        gain: Colour = "blue" if row["delta"] > 0 else "orange"
        text = percent_change if share else signed
        change = text(row["delta"])
        column.metric(
            parse_measure(spec).title,
            percent(row["mean"]) if share else number(row["mean"]),
            # Without a comparison there is no arrow either.
            delta=change if not alone and math.isfinite(row["delta"]) else None,
            delta_color=gain if proven else "gray",
            delta_arrow="off" if change == text(0.0) else "auto",
            help=_(parse_measure(spec).metric.meaning),
            border=True,
        )


def percent_change(value: float) -> str:
    """A change of a share, with its sign, in percentage points."""
    return _("{n} pp", n=signed(100 * value, 0))
