"""Label: which documents to label, one at a time, until it is settled which ranking is better."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext
from rankdash.ui.labelling import label_card, label_files, people, plan_form
from rankdash.ui.labels import label_plan
from rankdash.ui.sidebar import view
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
    plan_form.draw(dataset_id, again=False)
    st.stop()
work, beside = st.columns([3, 1], gap="large")
with beside:
    who = label_card.name()
    if labelling.kept.guidelines:
        st.markdown(f"**{_('Guidelines')}**")
        st.text(labelling.kept.guidelines)
    if excluded := labelling.plan.pool.excluded:
        st.caption(
            ngettext(
                "{n} query is not in every ranking and is excluded.",
                "{n} queries are not in every ranking and are excluded.",
                len(excluded),
            )
        )
    st.caption(
        _(
            "Keys: a digit for the grade, U for cannot tell, B for back. A key counts once the "
            "document has been there for half a second."
        )
    )
with work:
    label_card.draw(dataset_id, who)
fold(_("People"), "label.people", ":material/group:", lambda: people.draw(labelling))
fold(_("Files"), "label.files", ":material/download:", lambda: label_files.draw(dataset_id))
fold(
    _("Start a new labelling plan"),
    "label.another",
    ":material/restart_alt:",
    lambda: plan_form.draw(dataset_id, again=True),
)
