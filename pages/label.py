"""Label: which documents to label, one at a time, until it is settled which ranking is better."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.labelling import label_files, labelling_view, plan_form, plan_notes, rater
from rankdash.ui.sidebar import view
from rankdash.ui.state import label_plan
from rankdash.ui.state.server import read_only
from rankdash.ui.widgets import narrow
from rankdash.ui.widgets.lazy_expander import fold

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
    plan_notes.ended(dataset_id)
    plan_form.draw(dataset_id, None)
    st.stop()
plan_notes.replaced()
work, beside = st.container(key=narrow.ASIDE).columns([3, 1], gap="large")
with work:
    if not rater.name() and not read_only():
        rater.ask()
    labelling_view.draw(dataset_id, labelling.kept.id, rater.name())
with beside:
    if rater.name():
        rater.change()
    plan_notes.draw(labelling)
fold(_("Files"), "label.files", ":material/download:", lambda: label_files.draw(dataset_id))
if not read_only():
    fold(
        _("Start a new labelling plan"),
        # Of another plan it is another one, which is closed.
        f"label.another.{labelling.kept.id}",
        ":material/restart_alt:",
        lambda: plan_form.draw(dataset_id, labelling),
    )
