"""What is set apart because its files changed since they were written: a data set, in place of the
page, or runs that are not compared."""

from __future__ import annotations

import streamlit as st

from rankdash.i18n import enumerated, error_text
from rankdash.i18n import gettext as _
from rankdash.ui.state import address, deleted, stored
from rankdash.ui.state.server import read_only, workspace
from rankdash.ui.widgets import dialogs
from rankdash.ui.widgets.text import markdown_safe


def dataset() -> bool:
    """Say what is wrong with the data set that is chosen; whether there is something wrong."""
    chosen = address.one("data")
    error = None if chosen is None else stored.damage(chosen)
    if error is not None:
        st.error(markdown_safe(error_text(error), 600), icon=":material/error:")
    return error is not None


def runs() -> None:
    """Say which runs of the data set are set apart and why, and offer to delete them."""
    chosen = address.one("data")
    found = {} if chosen is None else stored.damaged(chosen)
    if not found:
        return
    lines = [_("Set apart, and in no number here:")]
    lines += [
        f"- {markdown_safe(name, 80)}: {markdown_safe(error_text(error), 600)}"
        for name, error in found.values()
    ]
    st.error("\n".join(lines), icon=":material/error:")
    if not read_only() and st.button(
        _("Delete these runs"), icon=":material/delete:", key="damaged.delete"
    ):
        named = enumerated(markdown_safe(name, 80) for name, _error in found.values())
        dialogs.delete(
            _("Delete these runs?"),
            [_("{names} will be deleted permanently.", names=named)],
            lambda: _delete(list(found)),
        )


def _delete(runs: list[str]) -> None:
    deleted.by_this_session(runs)
    for each in runs:
        workspace().delete_run(each)
