"""The queries that failed in a run, scored again without the others."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base import names
from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.rerankers import get
from rankdash.core.runs import jobs
from rankdash.features.run import page_job_list
from rankdash.kit.widgets import key_field
from rankdash.kit.widgets.server import read_only, worker, workspace
from rankdash.kit.widgets.text import markdown_safe


def draw(run_id: str) -> None:
    """Draw a button that retries them, with a field for the key if the service asks for one.
    Nothing is drawn for a run that was not made here."""
    row = None if read_only() else jobs.retryable(workspace(), run_id)
    if row is None:
        return
    try:
        kind = get(row.reranker)
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 500), icon=":material/extension_off:")
        return
    found = key_field.draw(kind, row.settings, f"retry.{run_id}", fixed=True)
    label = ngettext("Retry the {n} failed query", "Retry the {n} failed queries", row.failed)
    pressed = st.button(
        label,
        icon=":material/refresh:",
        key=f"retry.{run_id}",
        help=_("The result becomes a run of its own beside this one."),
    )
    if not pressed:
        return
    if found.missing:
        st.error(found.missing, icon=":material/key_off:")
        return
    job_id = jobs.new_id()
    taken = {each.name for each in workspace().runs(row.dataset_id)}
    taken |= {each.name for each in jobs.list(workspace(), row.dataset_id)}
    if found.keys:
        worker().hand_over(job_id, found.keys)
    jobs.retry(workspace(), run_id, names.free(row.name, taken), job_id)
    page_job_list.watch(job_id)
    worker().ensure()
    st.rerun()
