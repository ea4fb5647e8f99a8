"""The verdict in a sentence with its caveats, and the means of one system as cards."""

from __future__ import annotations

import math

import streamlit as st

from rankdash.core.base.html import html_safe
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number, percent, signed
from rankdash.core.metrics import parse_measure
from rankdash.core.statistics.planning import POWER
from rankdash.core.study.study import Study
from rankdash.core.words.headroom import documents
from rankdash.core.words.queries import excluded, metric_title
from rankdash.core.words.verdict_chips import p_fact, sentence
from rankdash.features.overview import words_caveats
from rankdash.kit.widgets import badges
from rankdash.kit.widgets.badges import Colour
from rankdash.kit.widgets.text import name_safe

_STYLE = """<style>
.rd-caveats { font-size: 0.875rem; line-height: 1.4; margin: 0; padding-left: 1.2rem; }
.rd-caveats li { overflow-wrap: anywhere; }
</style>"""
_CARDS = ("ndcg", "mrr", "map", "judged")


def draw(study: Study, system: str) -> None:
    """The verdict on a challenger, how sure it is, and its caveats. What it changes, takes and
    costs stands in the leaderboard."""
    safe = {each: name_safe(study.name(each)) for each in study.chosen}
    verdict = study.comparison.verdict(system, study.spec, safe)
    notes = words_caveats.lines(study, system, html_safe)
    with st.container(border=True, gap="xsmall"):
        badges.verdict(verdict.kind)
        st.markdown(sentence(verdict))
        if notes:
            items = "".join(f"<li>{note}</li>" for note in notes)
            st.html(f"{_STYLE}<ul class='rd-caveats' aria-label='{_('Caveats')}'>{items}</ul>")
        facts = _facts(study, system)
        if facts:
            meanings = [f"- {meaning}" for _fact, meaning in facts if meaning]
            st.caption(
                " · ".join(fact for fact, _meaning in facts), help="\n".join(meanings) or None
            )


def _facts(study: Study, system: str) -> list[tuple[str, str]]:
    """(fact, what its term means), the second "" where the fact says it."""
    row = study.comparison.row(system, study.spec)
    facts = []
    if p := p_fact(row, study.statistics, "p_corrected"):
        meaning = _(
            "**p**: how often chance alone gives a change at least as large, up or down. The "
            "corrected p allows for the other comparisons as well."
        )
        facts.append((p, meaning))
    split = study.headroom(system)
    share = split.share_won if split is not None else None
    if share is not None and share >= 0:
        realised = _("{share} of the potential gain realised", share=percent(share))
        own = split is not None and split.own
        fact = _("{fact} ({of})", fact=realised, of=documents(own)) if own else realised
        meaning = _("**Potential gain**: from the baseline to the best possible order.")
        facts.append((fact, meaning))
    facts += [(fact, "") for fact in excluded(study.comparison.left_out(system, study.spec))]
    if math.isfinite(row["smallest_detectable"]):
        fact = _("minimum detectable change {n}", n=number(row["smallest_detectable"]))
        meaning = _(
            "**Minimum detectable change**: the true change that this many queries prove in "
            "{power} of all cases, at a level of {level}. Smaller ones are often missed.",
            power=percent(POWER),
            level=percent(row["planned_level"], 1),
        )
        facts.append((fact, meaning))
    return facts


def cards(study: Study, system: str) -> None:
    """Four means of a system, with the change against the baseline where it is another."""
    found = study.comparison
    alone = system == study.baseline
    safe = name_safe(study.name(system))
    st.markdown(
        _("Means of **{system}**", system=safe)
        if alone
        else _(
            "Means of **{system}**, and the change against {baseline}; grey where it is not proven",
            system=safe,
            baseline=name_safe(study.name(study.baseline)),
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
        # No arrow without a comparison.
        change = text(row["delta"]) if not alone and math.isfinite(row["delta"]) else None
        column.metric(
            metric_title(spec),
            percent(row["mean"]) if share else number(row["mean"]),
            delta=change,
            delta_color=gain if proven else "gray",
            delta_arrow="off" if change == text(0.0) else "auto",
            help=_(parse_measure(spec).metric.meaning),
            border=True,
        )


def percent_change(value: float) -> str:
    """A change of a share, with its sign, in percentage points."""
    points = round(100 * value)
    return ngettext(
        "{change} percentage point",
        "{change} percentage points",
        abs(points),
        change=signed(points, 0),
    )
