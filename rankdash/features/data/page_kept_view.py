"""What became of uploaded files: a data set that is ready, that cannot be reranked, or was here."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.i18n import enumerated, finding_text, ngettext, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.intake.keeping import Kept
from rankdash.kit.widgets import address, stored
from rankdash.kit.widgets.server import workspace
from rankdash.kit.widgets.text import markdown_safe


def choose(dataset_id: str) -> None:
    """Open it; what was chosen within another one says nothing of it."""
    address.choose("data", dataset_id)
    for choice in ("base", "system", "q"):
        address.choose(choice, None)


def say(kept: Kept) -> str | None:
    """What became of the files, and first what blocks reranking: then the id of their data set."""
    row = next((row for row in workspace().datasets() if row.id == kept.dataset_id), None)
    if row is None:
        return None
    name = markdown_safe(row.name, 80)
    if kept.was_here:
        said = [_("These files equal {name}, which is in this workspace.", name=name)]
        if kept.added:
            systems = enumerated(markdown_safe(each, 60) for each in kept.added)
            said.append(_("New in it: {systems}.", systems=systems))
        else:
            said.append(_("Nothing was stored."))
        st.info(paragraph(said), icon=":material/content_copy:")
        if address.one("data") != kept.dataset_id:
            st.button(
                _("Open {name}", name=name),
                icon=":material/database:",
                key="data.open_equal",
                on_click=choose,
                args=(kept.dataset_id,),
            )
        return None
    size = {
        "queries": ngettext("{n} query", "{n} queries", row.queries),
        "documents": ngettext("{n} document", "{n} documents", row.documents),
    }
    report = stored.check_report(row.id)
    blocking = report.blocks_reranking if report else None
    wrong = report.implausible if report else ()
    if blocking is None and wrong:
        text = _(
            "{name} is stored, but something looks wrong: {queries} and {documents}.",
            name=name,
            **size,
        )
        st.warning(
            paragraph([text, markdown_safe(finding_text(wrong[0]), 400)]),
            icon=":material/warning:",
        )
        return None
    if blocking is None:
        text = _("{name} is ready: {queries} and {documents}.", name=name, **size)
        st.success(text, icon=":material/check_circle:")
        return None
    text = _("{name} is stored: {queries} and {documents}.", name=name, **size)
    why = [finding_text(blocking), _(blocking.remedy, **blocking.params)]
    st.warning(paragraph([*why, text]), icon=":material/block:")
    return row.id
