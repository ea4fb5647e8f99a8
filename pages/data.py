"""Page Data: open the sample, upload, read the check report, list, rename and delete."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.features.data import page as data_page
from rankdash.features.data import page_fetch, page_list, page_upload
from rankdash.kit.widgets import address, view
from rankdash.kit.widgets.labels import corrections
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.stored import damage, read_only, workspace

st.title(_p("page", "Data"))
stored = workspace().datasets()
if not stored and read_only():
    st.info(_("This workspace contains no data sets."), icon=":material/info:")
elif not stored:
    st.write(
        _(
            "Start with the sample or a search URL, or drop your own files: queries, documents, "
            "labels, and a first-stage ranking if you have one."
        )
    )
    view.preview("data")
    page_upload.sample_buttons((), primary=True)
blocked, arriving = (None, False) if read_only() else page_upload.upload_panel()
if not read_only() and not page_upload.asking():
    page_fetch.draw()
    fold(
        _("Load from Hugging Face or ir_datasets"),
        "data.by_name",
        ":material/cloud_download:",
        page_list.draw_open_by_name,
    )
if stored:
    chosen = address.one("data")
    # During an upload, the old report could be mistaken for a report on the new files.
    if chosen and damage(chosen) is None and not arriving:
        data_page.draw(chosen, blocking_said=chosen == blocked)
    if chosen and damage(chosen) is None and not read_only():
        fold(
            _("Add labels"),
            "data.labels",
            ":material/new_label:",
            lambda: corrections.draw_new_labels(chosen),
        )
    page_list.draw(stored)
    if not read_only():
        page_upload.sample_buttons({row.id for row in stored}, primary=False)
if stored or not read_only():
    fold(
        _("Export the workspace") if read_only() else _("Export or import the workspace"),
        "data.share",
        ":material/folder_zip:",
        lambda: page_list.draw_sharing_files(stored),
    )
