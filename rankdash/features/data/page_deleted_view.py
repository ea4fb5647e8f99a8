"""What another window deleted: a data set, in place of the page, or runs that were compared."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.i18n import enumerated, ngettext, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.features.data import page_samples
from rankdash.kit.widgets import address, deleted, stored
from rankdash.kit.widgets.server import workspace
from rankdash.kit.widgets.text import markdown_safe

_OTHER = "deleted.other"


def dataset(name: str) -> bool:
    """Say that the data set is gone and offer the others; whether the page has to wait for it."""
    rows = {row.id: row for row in workspace().datasets()}
    text = _("{name} was deleted in another window.", name=markdown_safe(name, 80))
    st.warning(text, icon=":material/delete:")
    if not rows:
        address.choose("data", None)
        return False
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            _("Other data sets"),
            list(rows),
            format_func=lambda each: page_samples.called(rows[each]),
            key=_OTHER,
        )
        st.button(
            _("Open"),
            type="primary",
            icon=":material/database:",
            on_click=_open,
            key="deleted.open",
        )
    return True


def runs() -> None:
    """Say which runs are gone, and what is compared now, until it is dismissed."""
    names, dataset_id = deleted.runs(), address.one("data")
    if not names or dataset_id is None:
        return
    systems = stored.systems(dataset_id)
    compared = [systems[each].name for each in address.several("system") if each in systems]
    gone = ngettext(
        "{names} was deleted in another window.",
        "{names} were deleted in another window.",
        len(names),
        names=enumerated(markdown_safe(each, 80) for each in names),
    )
    now = _(
        "Baseline now: {baseline}. Systems to compare: {systems}.",
        baseline=markdown_safe(systems[address.one("base") or ""].name, 80),
        systems=enumerated(markdown_safe(each, 80) for each in compared) or _("none"),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning(paragraph([gone, now]), icon=":material/delete:")
        st.button(_("Dismiss"), on_click=deleted.dismiss, key="deleted.dismiss")


def _open() -> None:
    address.choose("data", st.session_state[_OTHER])
    for name in address.OF_A_DATA_SET:
        address.choose(name, None)
