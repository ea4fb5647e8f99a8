"""The answer, and the options side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from rankdash.ui import cost_export, cost_options, cost_prices, cost_words
from rankdash.ui.cost_options import Choice
from rankdash.ui.frame import View
from rankdash.ui.i18n import gettext as _
from rankdash.ui.i18n import number, percent
from rankdash.ui.text import markdown_safe
from rankdash.value.assumptions import Assumptions

_IN_A_ROW = 4


def answer(view: View, choice: Choice, scenario: Assumptions) -> None:
    """Does the looked-at system pay: the first thing on the page."""
    kind = cost_words.answer(choice, view.statistics.level)
    word, icon, colour = cost_words.badge(kind)
    with st.container(border=True):
        st.badge(word, icon=icon, color=colour)
        st.markdown(cost_words.headline(view, choice, scenario))
        facts = [cost_words.passages(choice, scenario), _over_target(choice, scenario)]
        st.caption(" ".join(fact for fact in facts if fact))


def draw(view: View, choices: Sequence[Choice], scenario: Assumptions) -> None:
    for start in range(0, len(choices), _IN_A_ROW):
        row = choices[start : start + _IN_A_ROW]
        for column, choice in zip(st.columns(max(len(row), 2)), row, strict=False):
            with column.container(border=True, height="stretch"):
                _card(view, choice, scenario)


def _card(view: View, choice: Choice, scenario: Assumptions) -> None:
    st.markdown(f"**{markdown_safe(choice.name, 60)}**")
    came = choice.came
    lines = [(_("1,000 searches"), cost_words.figure(came.cost_per_thousand))]
    if choice.foreign:
        lines = [(_("1,000 searches"), _("priced in another currency"))]
    system = cost_options.system_of(view, choice)
    if system is not None:
        mean, low, high = cost_options.quality(view, system)
        lines.insert(0, (view.title(view.spec), _with_ends(mean, low, high)))
    if not choice.option.free:
        lines.append((_("cost a month"), cost_words.figure(came.cost_per_month)))
        if choice.option.gain is not None:
            value = cost_words.worth(
                came.value_per_month, choice.option.gain, view.statistics.level
            )
            lines += [
                (_("value a month"), value),
                (_("net a month"), cost_words.figure(came.net_per_month)),
                (_("return on the cost"), cost_words.figure(came.roi, "percent")),
            ]
            if scenario.setup_cost:
                lines.append(
                    (_("months to pay back"), cost_words.figure(came.payback_months, "months"))
                )
    p95 = choice.waiting.p95
    if choice.system:
        lines.append((_("p95 added"), _("not measured") if p95 is None else _milliseconds(p95)))
    for title, said in lines:
        value, _at, interval = said.partition(" (")
        ends = f"  \n:small[{markdown_safe(interval.rstrip(')'), 60)}]" if interval else ""
        st.markdown(f"{title}  \n**{markdown_safe(value, 80)}**{ends}")
    notes = _notes(choice)
    if notes:
        st.caption(_("What this rests on"), help=markdown_safe(" · ".join(notes), 500))


def _with_ends(mean: float, low: float, high: float) -> str:
    if not (math.isfinite(low) and math.isfinite(high)):
        return number(mean)
    return _("{value} ({low} … {high})", value=number(mean), low=number(low), high=number(high))


def _milliseconds(value: float) -> str:
    """Whole ones, and never 0 for what is only small."""
    return _("{ms} ms", ms="< 1" if 0 < value < 1 else number(value, 0))


def _notes(choice: Choice) -> list[str]:
    if choice.price is None:
        return []
    load = choice.load.load
    said = [
        _(
            "{n} documents of {tokens} tokens, query of {query}",
            n=number(float(load.documents), 0),
            tokens=number(float(load.document_tokens), 0),
            query=number(float(load.query_tokens), 0),
        )
    ]
    if choice.load.estimated:
        said.append(_("tokens estimated: this run counted none"))
    return [*said, *cost_prices.notes(choice.price, choice.rate_measured)]


def _over_target(choice: Choice, scenario: Assumptions) -> str:
    p95 = choice.waiting.p95
    if p95 is None:
        return _("Its latency was not measured.") if choice.system else ""
    if p95 <= scenario.latency_target_ms:
        return ""
    return _(
        "▼ Its p95 of {ms} ms misses the target of {target} ms.",
        ms=number(p95, 0),
        target=number(scenario.latency_target_ms, 0),
    )


def assumptions_table(view: View, scenario: Assumptions, choices: Sequence[Choice]) -> None:
    """Everything that the numbers rest on, as on every export."""
    rows = cost_export.assumption_rows(view, scenario, choices)
    st.dataframe(
        {
            _("assumption"): [row[0] for row in rows],
            _("value"): [row[1] for row in rows],
            _("what it means"): [row[2] for row in rows],
        },
        hide_index=True,
        alt=_("Everything that the numbers rest on"),
    )
    st.caption(
        _(
            "Intervals ({level}) come from resampling the queries; prices and assumptions are held "
            "fixed, so they say how sure the measurement is, not how good the assumptions are.",
            level=percent(view.statistics.level),
        )
    )
