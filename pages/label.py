"""Page Label: documents to label, one at a time, until the comparison is conclusive."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.features.label import page as label_page
from rankdash.features.label import page_plan
from rankdash.kit.widgets import narrow, view
from rankdash.kit.widgets.labels import plan, unjudged
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.stored import read_only

st.title(_p("page", "Label"))
dataset_id = view.dataset("label")
labelling = plan.current(dataset_id)
if labelling is None:
    st.caption(
        _(
            "rankdash picks the documents whose labels best show which ranking is better, and "
            "reports when the result is conclusive."
        )
    )
    page_plan.ended(dataset_id)
    page_plan.draw(dataset_id, None)
    st.stop()
page_plan.replaced()
work, beside = st.container(key=narrow.ASIDE).columns([3, 1], gap="large")
with work:
    if not label_page.rater_name() and not read_only():
        label_page.ask_rater()
    label_page.draw(dataset_id, labelling.kept.id, label_page.rater_name())
with beside:
    if label_page.rater_name():
        label_page.change_rater()
    page_plan.draw_plan_notes(labelling)
fold(
    _p("heading", "Files"),
    "label.files",
    ":material/download:",
    lambda: unjudged.draw_files(dataset_id),
)
if not read_only():
    fold(
        _("Start a new labelling plan"),
        # Another plan needs another key, so that its expander starts closed.
        f"label.another.{labelling.kept.id}",
        ":material/restart_alt:",
        lambda: page_plan.draw(dataset_id, labelling),
    )
