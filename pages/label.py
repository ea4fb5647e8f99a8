"""Label: which documents to label, one at a time, until it is settled which ranking is better."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.features.label import (
    page_label_files,
    page_labelling_view,
    page_plan_form,
    page_plan_notes,
    page_rater,
)
from rankdash.kit.widgets import label_plan, narrow, view
from rankdash.kit.widgets.lazy_expander import fold
from rankdash.kit.widgets.server import read_only

st.title(_("Label"))
dataset_id = view.dataset("label")
labelling = label_plan.current(dataset_id)
if labelling is None:
    st.write(
        _(
            "rankdash picks the documents whose labels say most about which ranking is better, "
            "and says when it is settled."
        )
    )
    page_plan_notes.ended(dataset_id)
    page_plan_form.draw(dataset_id, None)
    st.stop()
page_plan_notes.replaced()
work, beside = st.container(key=narrow.ASIDE).columns([3, 1], gap="large")
with work:
    if not page_rater.name() and not read_only():
        page_rater.ask()
    page_labelling_view.draw(dataset_id, labelling.kept.id, page_rater.name())
with beside:
    if page_rater.name():
        page_rater.change()
    page_plan_notes.draw(labelling)
fold(_("Files"), "label.files", ":material/download:", lambda: page_label_files.draw(dataset_id))
if not read_only():
    fold(
        _("Start a new labelling plan"),
        # Of another plan it is another one, which is closed.
        f"label.another.{labelling.kept.id}",
        ":material/restart_alt:",
        lambda: page_plan_form.draw(dataset_id, labelling),
    )
