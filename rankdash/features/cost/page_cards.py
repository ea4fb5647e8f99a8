"""Answer to "does it pay off?", with its certainty, caveats and assumptions."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import (
    level_percent,
)
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.study.costs import Choice
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.words import costs as cost_words
from rankdash.core.words import methods, prices
from rankdash.core.words.costs import Answer
from rankdash.core.words.latency import busy_notes
from rankdash.features.cost import words as cost_words_module
from rankdash.features.cost.page_inputs import assumption_rows, context
from rankdash.kit.widgets.charts import _UNKNOWN, Look
from rankdash.kit.widgets.text import markdown_safe

_LONGEST_NOTE = 400
_ANSWERS: dict[Answer, Look] = {
    "yes": (":material/check_circle:", "blue"),
    "maybe": (":material/trending_up:", "blue"),
    "open": (":material/price_change:", "gray"),
    "unproven": (":material/help:", "gray"),
    "doubtful": (":material/trending_down:", "orange"),
    "no": (":material/cancel:", "orange"),
    "unknown": _UNKNOWN,
}


def answer(study: Study, choice: Choice, scenario: Assumptions) -> None:
    """Draw in one line whether the system in focus pays off; its grounds are one click away."""
    marks = [badge(cost_words.answer(choice))]
    if choice.demonstrated:
        marks.append(f":orange-badge[:material/science: {_('Example values')}]")
    line = cost_words.in_short(context(study), choice, scenario)
    beside, details = st.columns([9, 1], vertical_alignment="center")
    beside.markdown(" ".join([*marks, line]))
    with details.popover(_p("button", "Details"), type="tertiary"):
        st.markdown(cost_words.headline(context(study), choice, scenario))
        grounds(study, choice, scenario)


def grounds(study: Study, choice: Choice, scenario: Assumptions) -> None:
    """Draw the grounds of the answer: certainty, caveats, and assumptions at their defaults."""
    caveats = cost_words_module.caveats(choice, scenario.latency_target_ms)
    facts = [
        cost_words.sureness(context(study), choice),
        _("Caveats: {cautions}.", cautions=caveats) if caveats else "",
        cost_words_module.passages(choice, scenario),
        prices.defaults(study.money or Money()),
        *(markdown_safe(each, _LONGEST_NOTE) for each in busy_notes(study)),
    ]
    st.caption("  \n".join(fact for fact in facts if fact))


def assumptions_table(study: Study, scenario: Assumptions, choices: Sequence[Choice]) -> None:
    """Draw the table of all assumptions and prices, the same as in every export."""
    rows = assumption_rows(study, scenario, choices)
    st.dataframe(
        {
            _p("column", "assumption"): [row[0] for row in rows],
            _p("column", "value"): [row[1] for row in rows],
            _p("column", "meaning"): [row[2] for row in rows],
        },
        hide_index=True,
        alt=_("All sources, definitions and settings"),
    )
    if any(choice.option.gain is not None for choice in choices[1:]):
        st.caption(
            _(
                "Intervals ({level}) follow from the verdict's interval. Prices and assumptions "
                "are fixed, so the intervals show the uncertainty of the measurement, not of the "
                "assumptions.",
                level=level_percent(study.statistics.level),
            )
        )
    st.caption(methods.cost())


def badge(kind: Answer) -> str:
    """Return the answer as a Markdown badge."""
    words: dict[Answer, str] = {
        "yes": _("pays off"),
        "maybe": _("probably pays off"),
        "open": _("break-even only"),
        "unproven": _("not proven"),
        "doubtful": _("probably does not pay off"),
        "no": _("does not pay off"),
        "unknown": _("no answer"),
    }
    icon, colour = _ANSWERS[kind]
    return f":{colour}-badge[{icon} {words[kind]}]"
