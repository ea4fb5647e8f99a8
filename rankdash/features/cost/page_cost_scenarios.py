"""Named scenarios: saved in the workspace, compared side by side, taken back into the sliders."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from rankdash.core.base.errors import DataError, RankdashError
from rankdash.core.base.i18n import error_text, number, percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.names import distinct
from rankdash.core.study.study import Study
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.value.scenarios import (
    LONGEST_SCENARIO_NAME,
    MOST_SCENARIOS,
    SCENARIOS,
    read_scenarios,
    write_scenarios,
)
from rankdash.features.cost import page_cost_cards, page_cost_inputs, page_cost_terms
from rankdash.features.cost.costs import Choice
from rankdash.features.cost.page_cost_cards import Cell
from rankdash.features.cost.page_cost_terms import period
from rankdash.features.cost.payoff import Outcome
from rankdash.kit.widgets import action_errors, dialogs
from rankdash.kit.widgets.server import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe


def draw(study: Study, choice: Choice, scenario: Assumptions) -> None:
    """Pessimistic, expected and optimistic of what is set now, and every saved scenario."""
    try:
        saved, unread = _load(), None
    except RankdashError as error:
        saved, unread = {}, error
    compared = _compared(choice, scenario, saved)
    span = period()
    titles = [
        span.cost,
        span.value,
        span.net,
        _("return on the cost"),
        _("months to pay back"),
        _("break-even"),
    ]
    rows = [((name, ""), _row(came)) for name, came in compared]
    if not any(each.setup_cost for each in (scenario, *saved.values())):
        titles.pop(4)
        for _name, cells in rows:
            cells.pop(4)
    st.html(page_cost_cards.side_by_side(_("scenario"), titles, rows))
    if len(compared) > 1 + len(saved):
        _meanings(study)
    if unread is not None:
        _say_unread(unread)
    elif not read_only():
        _offer_to_save(saved, scenario)
    if saved:
        _offer_saved(saved)


def _meanings(study: Study) -> None:
    """Of the rows that only an interval gives."""
    st.caption(
        _(
            "Pessimistic and optimistic: the sliders unchanged, with the gain at the lower and "
            "the upper end of its {level} interval.",
            level=percent(study.statistics.level),
        )
    )


def _offer_to_save(saved: dict[str, Assumptions], scenario: Assumptions) -> None:
    with st.form("cost.scenarios.save", border=False, clear_on_submit=True):
        columns = st.columns([3, 1], vertical_alignment="bottom")
        name = columns[0].text_input(
            _("Save these assumptions as"), max_chars=LONGEST_SCENARIO_NAME, placeholder=_("a name")
        )
        if columns[1].form_submit_button(_("Save"), icon=":material/save:", width="stretch"):
            _save(saved, name.strip(), scenario)


def _offer_saved(saved: dict[str, Assumptions]) -> None:
    columns = st.columns([3, 1, 1], vertical_alignment="bottom")
    picked = columns[0].selectbox(
        _("Saved scenario"),
        list(saved),
        format_func=distinct({name: name for name in saved}).__getitem__,
        key="cost.scenarios.pick",
    )
    columns[1].button(
        _("Use it"),
        icon=":material/tune:",
        width="stretch",
        on_click=page_cost_inputs.take_over,
        args=(saved[picked],),
    )
    if not read_only() and columns[2].button(
        _("Delete"), icon=":material/delete:", width="stretch"
    ):
        dialogs.delete(
            _("Delete the scenario?"),
            [_("{names} will be deleted permanently.", names=markdown_safe(picked, 80))],
            lambda: _keep({name: each for name, each in _load().items() if name != picked}),
        )


def _compared(
    choice: Choice, scenario: Assumptions, saved: Mapping[str, Assumptions]
) -> list[tuple[str, Outcome]]:
    rows = [(_("as set now (expected)"), choice.came)]
    gain = choice.option.gain
    low, high = (None, None) if gain is None else (gain.at("low"), gain.at("high"))
    if low is not None and high is not None:
        worst, best = (choice.under(scenario, each, valued=choice.valued) for each in (low, high))
        rows = [(_("pessimistic"), worst), *rows, (_("optimistic"), best)]
    for name, each in saved.items():
        rows.append((name, choice.under(each, gain, valued=True)))
    return rows


def _row(came: Outcome) -> list[Cell]:
    span = period()
    return [
        page_cost_terms.cell(span.of(came.cost_per_month)),
        page_cost_terms.cell(span.of(came.value_per_month)),
        page_cost_terms.cell(span.of(came.net_per_month)),
        page_cost_terms.cell(came.roi, "percent"),
        page_cost_terms.cell(came.payback_months, "months"),
        page_cost_terms.cell(came.break_even_elasticity, "elasticity"),
    ]


def _load() -> dict[str, Assumptions]:
    """The saved scenarios. Raises DataError if they cannot be read."""
    text = workspace().setting(SCENARIOS)
    return read_scenarios(text) if text else {}


def _say_unread(error: RankdashError) -> None:
    """Why no scenario is here, and a way to delete what is stored."""
    st.warning(markdown_safe(error_text(error), 300), icon=":material/warning:")
    if not read_only() and st.button(
        _("Delete the saved scenarios"), icon=":material/delete:", key="cost.scenarios.unread"
    ):
        dialogs.delete(
            _("Delete the saved scenarios?"),
            [_("The saved scenarios cannot be read, and will be deleted permanently.")],
            lambda: workspace().set_setting(SCENARIOS, ""),
        )


def _save(saved: dict[str, Assumptions], name: str, scenario: Assumptions) -> None:
    try:
        if not name:
            raise DataError("A scenario needs a name.")
        if name not in saved and len(saved) >= MOST_SCENARIOS:
            raise DataError(
                "{most} scenarios are saved already.",
                remedy="Delete one of them first.",
                most=number(MOST_SCENARIOS, 0),
            )
        _keep(saved | {name: scenario})
    except RankdashError as error:
        action_errors.say(error_text(error))
    else:
        st.rerun()


def _keep(scenarios: Mapping[str, Assumptions]) -> None:
    workspace().set_setting(SCENARIOS, write_scenarios(scenarios))
