"""What is chosen in the sidebar, as the subject of a report and of every export."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from rankdash.analysis.labels.check import CheckReport
from rankdash.store.notes.notes import Note, Notes
from rankdash.study.study import Subject
from rankdash.study.systems import Money, System
from rankdash.ui.cost import cost_inputs, cost_prices
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.state import address, services
from rankdash.ui.state.server import workspace
from rankdash.value.assumptions import ASSUMPTIONS


def subject(view: View) -> Subject:
    """The comparison in force, with the scenario of the Cost page as it is set in this session.

    One subject is kept for as long as nothing of it changes: what the page previews, the report
    and the exports rest on one computation.
    """
    money, notes = _money(view), Notes(workspace()).all(view.stored_id)
    names = tuple(view.name(system) for system in view.chosen)
    told = tuple(map(repr, (view.conventions, view.statistics, money, notes, view.corrections)))
    chosen = (view.dataset_id, view.chosen, view.spec)
    return _subject(view, money, notes, (*chosen, names, *told))


@st.cache_resource(max_entries=4, show_spinner=False)
def _subject(
    _view: View, _money: Money, _notes: Sequence[Note], key: tuple[object, ...]
) -> Subject:
    # Streamlit leaves arguments with a leading underscore out of the key, which says what counts.
    view = _view
    runs = {
        system: None if system == services.FIRST_STAGE else services.run(system)
        for system in view.chosen
    }
    check = workspace().check_report(view.stored_id)
    return Subject(
        dataset=services.dataset(view.dataset_id),
        systems={system: System(system, view.name(system), run) for system, run in runs.items()},
        baseline=view.baseline,
        challengers=view.challengers,
        metric=view.metric,
        cutoff=view.cutoff,
        conventions=view.conventions,
        statistics=view.statistics,
        check=CheckReport.from_json(check) if check not in ("", "{}") else None,
        money=_money,
        notes={note.query_id: note for note in _notes},
        corrections=view.corrections if view.corrected else 0,
    )


def _money(view: View) -> Money:
    """The assumptions and prices of the Cost page; the defaults where nobody went there."""
    prices = cost_prices.listed()
    set_there = any(
        address.one(each.name) not in (None, address.FIELDS[each.name]) for each in ASSUMPTIONS
    )
    return Money(
        assumptions=cost_inputs.assumptions(),
        prices={
            system: prices[cost_prices.chosen(view, system, prices)] for system in view.challengers
        },
        chosen=set_there,
        currency=cost_inputs.currency(),
    )
