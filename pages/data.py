"""Data: open the sample, upload, read the check report, list, rename and delete."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.data import check_view, dataset_list, open_by_name, sharing_files, uploads
from rankdash.ui.labels import new_labels
from rankdash.ui.sidebar import empty_page
from rankdash.ui.state import address
from rankdash.ui.state.server import read_only, workspace
from rankdash.ui.state.stored import damage
from rankdash.ui.widgets.lazy_expander import fold

st.title(_("Data"))
stored = workspace().datasets()
if not stored and read_only():
    st.info(_("This workspace holds no data set."), icon=":material/info:")
elif not stored:
    st.write(
        _(
            "Start with the sample, or drop your own files: queries, documents and labels; a "
            "first-stage ranking if you have one."
        )
    )
    empty_page.preview("data")
    uploads.sample_buttons((), primary=True)
blocked = None if read_only() else uploads.upload_panel()
if not read_only() and not uploads.asking():
    fold(
        _("Load from Hugging Face or ir_datasets"),
        "data.by_name",
        ":material/cloud_download:",
        open_by_name.draw,
    )
if stored:
    chosen = address.one("data")
    if chosen and damage(chosen) is None:
        check_view.draw(chosen, blocking_said=chosen == blocked)
    if chosen and damage(chosen) is None and not read_only():
        fold(
            _("Add labels"), "data.labels", ":material/new_label:", lambda: new_labels.draw(chosen)
        )
    dataset_list.draw(stored)
    if not read_only():
        uploads.sample_buttons({row.id for row in stored}, primary=False)
if stored or not read_only():
    fold(
        _("Export the workspace") if read_only() else _("Export or import the workspace"),
        "data.share",
        ":material/folder_zip:",
        lambda: sharing_files.draw(stored),
    )
