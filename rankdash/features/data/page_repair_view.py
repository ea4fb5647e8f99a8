"""A workspace whose database cannot be relied on: what was found, and a button that repairs it."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.i18n import enumerated, error_text, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.workspace.repair import Repaired
from rankdash.kit.widgets.server import reopen, workspace
from rankdash.kit.widgets.text import markdown_safe

_SAID = "repair.said"
_MOST_NAMED = 10


def draw() -> None:
    """Over every page: what is wrong; after a repair, once, what came back."""
    done: Repaired | None = st.session_state.pop(_SAID, None)
    if done is not None:
        st.success(
            "\n".join([_("The workspace is repaired."), "", *came_back(done)]),
            icon=":material/check_circle:",
        )
    store = workspace()
    if store.trouble is None or store.found is None:
        return
    lines = [markdown_safe(error_text(store.trouble), 600), "", *came_back(store.found)]
    st.error("\n".join(lines), icon=":material/healing:")
    if store.may_repair and st.button(
        _("Repair workspace"), type="primary", icon=":material/build:", key="repair"
    ):
        with st.spinner(_("Repairing the workspace")):
            st.session_state[_SAID] = store.repair()
            reopen()
        st.rerun()


def came_back(found: Repaired) -> list[str]:
    rows = found.rows
    parts = [
        ngettext("{n} data set", "{n} data sets", rows["datasets"]),
        ngettext("{n} run", "{n} runs", rows["runs"]),
        ngettext("{n} note", "{n} notes", rows["notes"] + rows["run_notes"]),
        ngettext("{n} label correction", "{n} label corrections", rows["corrections"]),
    ]
    lines = [_("Found: {what}.", what=enumerated(parts))]
    if found.copy_of:
        lines.append(_("Also used: the copy of the database of {day}.", day=found.copy_of))
    if found.changed:
        lines.append(
            _("Set apart, because they changed since they were written: {n} rows", n=found.changed)
        )
    if found.unlisted:
        lines.append(
            _("Cannot be listed, stays where it is: {names}", names=_named(found.unlisted))
        )
    if found.gone:
        lines.append(_("Has no folder any more: {names}", names=_named(found.gone)))
    if found.trash is not None:
        lines.append(
            _(
                "The old database is in {folder} for 30 days.",
                folder=markdown_safe(str(found.trash), 300),
            )
        )
    return [f"- {line}" for line in lines]


def _named(names: list[str]) -> str:
    shown = [markdown_safe(name, 80) for name in names[:_MOST_NAMED]]
    more = len(names) - len(shown)
    return enumerated([*shown, *([ngettext("and {n} more", "and {n} more", more)] if more else [])])
