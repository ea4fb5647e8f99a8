"""Run: fetching a ranking from a search engine."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import free
from rankdash.core.runs import jobs
from rankdash.core.runs.fetch_job import MOST_REPEATS, Fetch
from rankdash.features.run import page_jobs
from rankdash.kit.widgets import dialogs, redraw, search_form, stored
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.search_form import Entered
from rankdash.kit.widgets.stored import worker, workspace

_PLACE = "run"
_FOLD = "fetch"
# Session: whether a fetch was started, so that its progress is in view.
_STARTED = "fetch.started"


def draw(dataset_id: str) -> None:
    """Draw the form; it is folded until a user opens it, and after a start."""
    if st.session_state.pop(_STARTED, False):
        st.session_state[_FOLD] = False
    fold(
        _("Fetch from a search engine"),
        _FOLD,
        ":material/travel_explore:",
        lambda: form(dataset_id),
    )


def form(dataset_id: str) -> None:
    """Draw the request, its test, and the button that starts a job."""
    data = stored.dataset(stored.stored(dataset_id))
    queries = [text for text in data.query_text() if text.strip()]
    if not queries:
        st.info(
            _("A search engine needs the texts of the queries. Upload the data set with them."),
            icon=":material/info:",
        )
        return
    st.caption(
        _(
            "Sends each query to a search engine. The result is a ranking beside the first stage: "
            "choose it as the baseline, or rerank its candidates. Texts of documents that this "
            "data set lacks are stored with it."
        )
    )
    report = stored.check_report(dataset_id)
    entered = search_form.draw(_PLACE, queries[0], (report and report.fetched_depth) or 100)
    if entered is None:
        return
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    repeats = left.number_input(
        _("Requests per query"),
        1,
        MOST_REPEATS,
        1,
        key="fetch.repeats",
        persist_state="session",
        help=_(
            "From the second request, rankdash measures the churn: how much the top 10 changes "
            "from one request to the next. The ranking has the first answers."
        ),
    )
    if right.button(
        _p("button", "Fetch"), icon=":material/download:", type="primary", key="fetch.start"
    ):
        if entered.keys.missing:
            redraw.pause()
            st.error(entered.keys.missing, icon=":material/key_off:")
        else:
            _start(dataset_id, entered, int(repeats))
    if entered.tried is not None:
        search_form.show(entered.tried)


def _start(dataset_id: str, entered: Entered, repeats: int) -> None:
    names = {row.name for row in workspace().runs(dataset_id)}
    names |= {row.name for row in jobs.list(workspace(), dataset_id)}
    first = stored.dataset(stored.stored(dataset_id)).candidates_name
    title = search_form.distinct_title(entered.endpoint, first)
    name = free(f"{title} · {_('top {n}', n=entered.depth)}", names)
    request = Fetch(entered.endpoint, entered.depth, repeats, entered.policy)
    job_id = jobs.new_id()
    try:
        search_form.remember(entered.endpoint)
        if entered.keys.keys:
            worker().hand_over(job_id, entered.keys.keys)
            search_form.lend(entered.endpoint, _PLACE, job_id)
        jobs.submit_fetch(workspace(), dataset_id, request, name, job_id)
    except RankdashError as error:
        dialogs.show_error(error_text(error))
        return
    page_jobs.watch(job_id)
    st.session_state[_STARTED] = True
    worker().ensure()
    st.rerun()
