"""What a person labels on: the result so far, the next document with its keys, and the people."""

from __future__ import annotations

import uuid

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number
from rankdash.core.sampling.answers import next_pairs
from rankdash.core.workspace.notes.corrections import Pair
from rankdash.core.workspace.notes.label_plans import LabelPlans
from rankdash.features.label import (
    page_estimate_strip,
    page_label_card,
    page_label_keys,
    page_people,
)
from rankdash.features.label.page_label_keys import PAUSED, REPLACED
from rankdash.kit.widgets import label_plan, view
from rankdash.kit.widgets.label_plan import Labelling
from rankdash.kit.widgets.lazy_expander import fold
from rankdash.kit.widgets.server import read_only, workspace

# Of this process: others know nothing of its windows.
_SERVER = uuid.uuid4().hex
# Session: the plan whose conclusive result was seen.
_ON = "labelling.goes_on"
# More than can be in other people's hands.
_AHEAD = 200


@st.fragment
def draw(dataset_id: str, plan_id: str, who: str) -> None:
    """Each key draws only this anew. plan_id: of the plan that the rest of the page is about."""
    labelling = label_plan.current(dataset_id)
    if labelling is None:
        st.rerun()
    if labelling.kept.id != plan_id:
        st.session_state[REPLACED] = True
        st.rerun()
    # Who labels waits for the card, and not for the result above it.
    strip = st.container()
    if read_only():
        st.caption(_("This workspace is read-only: nothing can be added to it here."))
    elif not who:
        st.caption(_("Type your name to begin: it is stored with each label."))
    elif PAUSED in st.session_state:
        LabelPlans(workspace()).take(plan_id, [], _owner())
        page_label_keys.paused(labelling, who)
    else:
        _next_card(labelling, who)
    with strip:
        page_estimate_strip.draw(labelling)
        if labelling.status.settled and not labelling.complete:
            _conclusive(labelling)
    fold(_("People"), "label.people", ":material/group:", lambda: page_people.draw(labelling))


def _conclusive(labelling: Labelling) -> None:
    """What to do with a conclusive result; "Label on" folds it up."""
    if st.session_state.get(_ON) == labelling.kept.id:
        return
    with st.container(border=True):
        st.markdown(
            _("The result is conclusive, and more labels do not take it back. They narrow it.")
        )
        with st.container(horizontal=True):
            st.page_link(view.page("overview"), label=_("See the verdict"), icon=":material/gavel:")
            st.page_link(
                view.page("report"), label=_("Make the report"), icon=":material/description:"
            )
            st.button(
                _("Label on"),
                key="labelling.on",
                icon=":material/label:",
                on_click=st.session_state.__setitem__,
                args=(_ON, labelling.kept.id),
            )


def _next_card(labelling: Labelling, who: str) -> None:
    plans, again = LabelPlans(workspace()), page_label_keys.taken_back(labelling, who)
    pair: Pair | None
    if again is not None:
        pair, is_open = again[0], True
        plans.take(labelling.kept.id, [pair], _owner())
    else:
        places = next_pairs(
            labelling.plan, labelling.answered, who, _AHEAD, doubled=labelling.settings.double
        )
        offered = map(labelling.pair, places.tolist())
        pair = plans.take(labelling.kept.id, offered, _owner(), gone=_is_closed)
        is_open = len(places) > 0
    if pair is None:
        _nothing_left(labelling, who, is_open)
        return
    page_label_keys.appears(pair)
    page_label_card.draw(labelling, pair)
    page_label_keys.draw(labelling, pair, who)
    if labelling.settings.mode == "query":
        page_label_card.query_so_far(labelling, pair[0], who)


def _owner() -> str:
    """This window: a reload is another one."""
    context = get_script_run_ctx()
    return f"{_SERVER}.{context.session_id if context else ''}"


def _is_closed(owner: str) -> bool:
    server, _dot, session = owner.partition(".")
    own = server == _SERVER and runtime.exists()
    return own and not runtime.get_instance().is_active_session(session)


def _nothing_left(labelling: Labelling, who: str, is_open: bool) -> None:
    """is_open: whether others have the last documents before them."""
    if is_open:
        st.info(
            _(
                "The documents that are left are open in other windows. One that is not labelled "
                "there is free again after ten minutes."
            ),
            icon=":material/hourglass_empty:",
        )
        st.button(_("Look again"), key="labelling.again", icon=":material/refresh:")
        return
    mine = sum(each.answers for each in labelling.status.raters if each.name == who)
    st.success(
        _("No document is left for you. Labelled by you: {n}.", n=number(mine, 0)),
        icon=":material/done_all:",
    )
    st.page_link(view.page("overview"), label=_("Overview"), icon=":material/arrow_forward:")
