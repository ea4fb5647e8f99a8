"""One chosen run of the history: pin it as the baseline, and its note."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words.rankings import provenance
from rankdash.core.workspace.notes.pins import Pins
from rankdash.features.history.page_history_view import Past
from rankdash.kit.widgets import action_errors, address, run_note
from rankdash.kit.widgets.run_records import record
from rankdash.kit.widgets.server import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe, name_safe

_PLACE = "history"


def draw(history: Past, system_id: str) -> None:
    with st.container(border=True):
        title, action = st.columns([3, 1], vertical_alignment="center")
        title.markdown(f"**{name_safe(history.name(system_id))}**")
        if system_id != FIRST_STAGE and (weights := provenance(record(system_id).machine)):
            st.caption(markdown_safe(weights, 400))
        if read_only():
            if system_id != FIRST_STAGE:
                run_note.draw(system_id)
            return
        if system_id == FIRST_STAGE:
            title.caption(
                _(
                    "The first stage is the baseline if no run is pinned. Select a second system "
                    "to compare the two."
                )
            )
            return
        if system_id == history.pinned:
            title.caption(
                _(
                    "Pinned: everything is compared with this run, unless a link names another "
                    "baseline. Select a second run to compare the two."
                )
            )
            action.button(
                _("Unpin"),
                icon=":material/keep_off:",
                key="history.unpin",
                on_click=_unpin,
                args=(history.study.stored_id,),
                width="stretch",
            )
        elif not history.row(system_id)["answered"]:
            title.caption(_("All queries failed in this run, so it cannot be the baseline."))
        else:
            title.caption(
                _(
                    "Pin it to compare everything with it, in new sessions too. Select a second "
                    "run to compare the two."
                )
            )
            action.button(
                _("Pin as baseline"),
                icon=":material/keep:",
                key="history.pin",
                on_click=_pin,
                args=(system_id,),
                width="stretch",
            )
        action_errors.refused(_PLACE)
        run_note.draw(system_id)


def _pin(run_id: str) -> None:
    _then(lambda: Pins(workspace()).pin(run_id), run_id)


def _unpin(dataset_id: str) -> None:
    _then(lambda: Pins(workspace()).unpin(dataset_id), None)


def _then(change: Callable[[], None], baseline: str | None) -> None:
    """Change the pin and compare with what it says from now on."""
    if action_errors.attempt(_PLACE, change):
        address.choose("base", baseline)
        address.publish()
