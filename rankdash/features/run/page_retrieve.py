"""Run: retrieval from all documents into a run that can be compared and reranked."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import free
from rankdash.core.data.ranking import RETRIEVAL
from rankdash.core.rerankers.neural.model_files import lacking_packages
from rankdash.core.runs import jobs
from rankdash.core.runs.retrieving import RETRIEVAL_SETTINGS, Retrieval
from rankdash.core.study.systems import FIRST_STAGE, first_stage_name
from rankdash.features.run import page_jobs
from rankdash.kit.widgets import dialogs, pickers, stored
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.settings_form import choice_titles
from rankdash.kit.widgets.stored import worker, workspace
from rankdash.kit.widgets.text import markdown_safe


def draw(dataset_id: str) -> None:
    """Draw the form; it is folded until a user opens it."""
    fold(_p("heading", "Retrieve"), "retrieve", ":material/search:", lambda: form(dataset_id))


def form(dataset_id: str) -> None:
    """Draw the methods and the depth, and the button that starts a job for each method."""
    data = stored.dataset(stored.stored(dataset_id))
    if not data.has_texts:
        st.info(
            _("Retrieval needs texts. Upload the data set with the texts of its documents."),
            icon=":material/info:",
        )
        return
    size = len(data.documents)
    st.caption(
        ngettext(
            "Retrieves from {n} document for each query. The result is a ranking beside the first "
            "stage: choose it as the baseline, or rerank its candidates.",
            "Retrieves from all {n} documents for each query. The result is a ranking beside the "
            "first stage: choose it as the baseline, or rerank its candidates.",
            size,
        )
    )
    of_how, of_depth = RETRIEVAL_SETTINGS
    lacking = lacking_packages()
    left, right = st.columns(2)
    methods = left.pills(
        _p("setting", of_how.title),
        list(of_how.choices),
        selection_mode="multi",
        default=[of_how.default] if lacking else list(of_how.choices),
        format_func=choice_titles(of_how).__getitem__,
        key=pickers.in_words("retrieve.how"),
        persist_state="session",
        help=_(of_how.help),
    )
    depth = right.number_input(
        _p("setting", of_depth.title),
        1,
        size,
        min(int(of_depth.default), size),
        key=f"retrieve.depth.{dataset_id}",
        persist_state="session",
        help=_(of_depth.help),
    )
    if lacking and {*methods} - {of_how.default}:
        st.warning(markdown_safe(error_text(lacking), 500), icon=":material/extension_off:")
    if st.button(
        _p("button", "Retrieve"),
        icon=":material/search:",
        key="retrieve.start",
        disabled=not methods,
    ):
        _start(dataset_id, [Retrieval(how, int(depth)) for how in methods])


def _start(dataset_id: str, wanted: Sequence[Retrieval]) -> None:
    titles = choice_titles(RETRIEVAL_SETTINGS[0])
    for how in wanted:
        names = {row.name for row in workspace().runs(dataset_id)}
        names |= {row.name for row in jobs.list(workspace(), dataset_id)}
        name = free(" · ".join([titles[how.how], _("top {n}", n=how.depth)]), names)
        try:
            page_jobs.watch(jobs.submit_retrieval(workspace(), dataset_id, how, name))
        except RankdashError as error:
            dialogs.show_error(error_text(error))
            return
        worker().ensure()
    st.rerun()


def choose_source(dataset_id: str) -> str | None:
    """Draw the choice of the candidates to rerank, if there is a retrieval. Return the id of its
    run; None for the first stage."""
    base = stored.stored(dataset_id)
    rows = {row.id: row.name for row in stored.rows(base).values() if row.reranker == RETRIEVAL}
    if not rows:
        return None
    names = {FIRST_STAGE: first_stage_name(stored.dataset(base)), **rows}
    chosen: str = st.selectbox(
        _("Candidates of"),
        list(names),
        format_func=names.__getitem__,
        key=f"run.source.{dataset_id}",
        persist_state="session",
        help=_("The ranking whose documents are reranked."),
    )
    return None if chosen == FIRST_STAGE else chosen
