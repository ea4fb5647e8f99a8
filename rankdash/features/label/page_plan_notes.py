"""What holds for every document of a plan: guidelines, keys, and what does not count."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import moment, ngettext, plain
from rankdash.core.workspace.notes.label_plans import LabelPlans
from rankdash.features.label.page_label_keys import REPLACED
from rankdash.kit.widgets.label_plan import Labelling
from rankdash.kit.widgets.server import workspace
from rankdash.kit.widgets.text import paragraphs_safe


def replaced() -> None:
    """Say once that the plan is another one than a moment ago, which somebody else began."""
    if st.session_state.pop(REPLACED, False):
        st.warning(
            _(
                "A new labelling plan was started meanwhile. Labels given before are stored; the "
                "last key may not have counted."
            ),
            icon=":material/restart_alt:",
        )


def ended(dataset_id: str) -> None:
    """Say that there was a plan, where there is none that can go on."""
    if LabelPlans(workspace()).newest(dataset_id) is not None:
        st.info(
            _(
                "The last labelling plan has ended: one of its rankings is gone, or another "
                "version of rankdash wrote it. Its labels are stored and count in the next one."
            ),
            icon=":material/info:",
        )


def draw(labelling: Labelling) -> None:
    settings, kept = labelling.settings, labelling.kept
    if kept.guidelines:
        with st.container(border=True):
            st.markdown(f"**{_('Guidelines')}**\n\n{paragraphs_safe(kept.guidelines)}")
    st.caption(
        _(
            "Keys: a digit for the grade, U for cannot tell, B for back, P for a pause. A key "
            "counts once the document has been there for half a second."
        )
    )
    if excluded := labelling.plan.pool.excluded:
        st.caption(
            ngettext(
                "{n} query is not in every ranking and is excluded.",
                "{n} queries are not in every ranking and are excluded.",
                len(excluded),
            )
        )
    if settings.before is not None:
        changed = {
            "before": plain(settings.before),
            "top": plain(settings.top),
            "when": moment(kept.created),
        }
        if settings.keep:
            st.caption(
                _(
                    "The scale changed from 0–{before} to 0–{top} on {when}. Labels that are on "
                    "the new scale count unchanged.",
                    **changed,
                )
            )
        else:
            st.caption(
                _(
                    "The scale changed from 0–{before} to 0–{top} on {when}. Labels given before "
                    "do not count.",
                    **changed,
                )
            )
    if labelling.off_scale:
        st.caption(
            ngettext(
                "{n} label is above the highest grade and does not count here.",
                "{n} labels are above the highest grade and do not count here.",
                labelling.off_scale,
            )
        )
