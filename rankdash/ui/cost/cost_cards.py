"""The answer, and the options side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.i18n import number, percent
from rankdash.study.costs import Choice, system_of
from rankdash.study.study import Study
from rankdash.ui.cost import cost_export, cost_table, cost_terms
from rankdash.ui.cost.cost_period import period
from rankdash.ui.cost.cost_table import Cell
from rankdash.ui.widgets.text import shortened
from rankdash.value.assumptions import Assumptions
from rankdash.value.price_list import title
from rankdash.words import costs, prices

_LONGEST_NAME = 60
_NONE: Cell = ("–", "")


def answer(study: Study, choice: Choice, scenario: Assumptions) -> None:
    """Does the looked-at system pay: the first thing on the page."""
    word, icon, colour = cost_terms.badge(costs.answer(choice, study.statistics.level))
    with st.container(border=True):
        st.badge(word, icon=icon, color=colour)
        st.markdown(costs.headline(cost_terms.telling(study), choice, scenario))
        cautions = costs.cautions(choice, scenario.latency_target_ms)
        facts = [
            costs.sureness(cost_terms.telling(study), choice),
            _("Take with care: {cautions}.", cautions=prices.joined(cautions)) if cautions else "",
            costs.passages(choice, scenario),
        ]
        st.caption("  \n".join(fact for fact in facts if fact))


def draw(study: Study, choices: Sequence[Choice], scenario: Assumptions, looked_at: str) -> None:
    """One column an option, one row a figure; the column of the looked-at system is set off."""
    span = period()
    titles = {
        "quality": (study.measure.title, ""),
        "price": (_("price"), ""),
        "thousand": (_("1,000 searches"), ""),
        "cost": (span.cost, ""),
        "value": (span.value, ""),
        "net": (span.net, ""),
        "roi": (_("return on the cost"), ""),
        "payback": (_("months to pay back"), ""),
        "even": (_("break-even"), _("value for 1 % quality")),
        "p95": (_("p95 added"), ""),
        "care": (_("take with care"), ""),
    }
    columns = [_cells(study, choice, scenario) for choice in choices]
    st.html(
        cost_table.html(
            "",
            [shortened(_heading(choice), _LONGEST_NAME) for choice in choices],
            [
                (title, [cells.get(key, _NONE) for cells in columns])
                for key, title in titles.items()
                if any(key in cells for cells in columns)
            ],
            looked_at=next(
                (at for at, choice in enumerate(choices) if choice.system == looked_at), None
            ),
            strong=(span.net, span.cost, span.value),
        )
    )
    st.caption(
        _(
            "Small: {level} intervals. Where each price and count of tokens is from stands under "
            "Assumptions.",
            level=percent(study.statistics.level),
        )
    )


def _heading(choice: Choice) -> str:
    alone = choice.price is not None and not choice.system
    return title(choice.price) if alone and choice.price else choice.name


def _cells(study: Study, choice: Choice, scenario: Assumptions) -> dict[str, Cell]:
    """Row → what the option has there; rows that it has nothing for are left out."""
    came, span, level = choice.came, period(), study.statistics.level
    system = system_of(study, choice)
    cells: dict[str, Cell] = {"quality": (_("not measured"), "")}
    if system is not None:
        mean, low, high = study.mean(system)
        known = math.isfinite(low) and math.isfinite(high)
        cells["quality"] = (number(mean), f"{number(low)} … {number(high)}" if known else "")
    if choice.price is not None:
        below = title(choice.price) if choice.system else ""
        cells["price"] = (prices.rate(choice.price.price), shortened(below, _LONGEST_NAME))
    if choice.foreign:
        cells["thousand"] = (_("priced in another currency"), "")
    else:
        cells["thousand"] = cost_terms.cell(came.cost_per_thousand)
        cells["cost"] = cost_terms.cell(span.of(came.cost_per_month))
    if choice.option.gain is None and not choice.foreign:
        cells["value"] = cost_terms.cell(came.value_per_month)
    elif not choice.option.free and not choice.foreign:
        cells["value"] = cost_terms.worth(span.of(came.value_per_month), choice.option.gain, level)
        cells["net"] = cost_terms.cell(span.of(came.net_per_month))
        cells["roi"] = cost_terms.cell(came.roi, "percent")
        cells["even"] = (
            (_("pays without any"), "")
            if came.break_even_elasticity.reason == "always"
            else cost_terms.cell(came.break_even_elasticity, "elasticity")
        )
        if scenario.setup_cost:
            cells["payback"] = cost_terms.cell(came.payback_months, "months")
    p95 = choice.waiting.p95
    if choice.system:
        over = p95 is not None and p95 > scenario.latency_target_ms
        target = _("▼ over {ms} ms", ms=number(scenario.latency_target_ms, 0)) if over else ""
        cells["p95"] = (_("not measured") if p95 is None else _milliseconds(p95), target)
    if choice.price is not None:
        marks = prices.marks(choice.price, choice.load.estimated, choice.rate_measured)
        cells["care"] = ("", prices.joined(marks)) if marks else _NONE
    return cells


def _milliseconds(value: float) -> str:
    """Whole ones, and never 0 for what is only small."""
    return _("{ms} ms", ms="< 1" if 0 < value < 1 else number(value, 0))


def assumptions_table(study: Study, scenario: Assumptions, choices: Sequence[Choice]) -> None:
    """Everything that the numbers rest on, as on every export."""
    rows = cost_export.assumption_rows(study, scenario, choices)
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
            level=percent(study.statistics.level),
        )
    )
