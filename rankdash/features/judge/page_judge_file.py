"""A judge that graded elsewhere, as a file of its grades."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.errors import DataError, RankdashError
from rankdash.core.base.i18n import error_text, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.judgements import Judgements
from rankdash.core.intake.reading import tried
from rankdash.core.readers.loading import judgements_in
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.features.judge import page_judge_list
from rankdash.kit.widgets import stored
from rankdash.kit.widgets.lazy_expander import fold
from rankdash.kit.widgets.server import workspace
from rankdash.kit.widgets.text import markdown_safe
from rankdash.kit.widgets.uploaded import uploader

_HIGHEST = 100
_SAID, _GENERATION = "judge.file.said", "judge.file.generation"


def draw(dataset_id: str) -> None:
    if ignored := st.session_state.pop(_SAID, 0):
        st.info(
            ngettext(
                "{n} row of the file is of no query and document of this data set.",
                "{n} rows of the file are of no query and document of this data set.",
                ignored,
            ),
            icon=":material/info:",
        )
    fold(
        _("Add a judge from a file of its grades"),
        "judge.file",
        ":material/upload_file:",
        lambda: _upload(dataset_id),
    )


def _upload(dataset_id: str) -> None:
    files = uploader(
        _("CSV or JSON lines of query_id, doc_id and grade"),
        f"judge.file.{st.session_state.get(_GENERATION, 0)}",
        type=["csv", "tsv", "jsonl", "json"],
    )
    if not files:
        return
    [source] = files
    try:
        tried([source])
        judge, _noticed = judgements_in(source)
        known, top = _known(dataset_id, judge), _top(judge)
        judge_id = StoredJudges(workspace()).add(
            dataset_id, judge.name, judge.model, top, known.table
        )
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 500), icon=":material/error:")
        return
    st.session_state[_SAID] = len(judge) - len(known)
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    page_judge_list.show(judge_id)
    st.rerun()


def _known(dataset_id: str, judge: Judgements) -> Judgements:
    """The grades of the queries and documents of the data set. Raises DataError for none."""
    data, rows = stored.dataset(dataset_id), judge.table
    own = rows["query_id"].isin(data.queries["query_id"]) & rows["doc_id"].isin(
        data.documents["doc_id"]
    )
    if not own.any():
        raise DataError(
            "None of the {count} grades is of a query and document of this data set.",
            remedy="Check that query and document ids are those of the data set.",
            count=len(rows),
        )
    return Judgements(judge.name, judge.scale, rows[own].reset_index(drop=True), judge.model)


def _top(judge: Judgements) -> int:
    low, top = judge.scale
    if low or top % 1 or top > _HIGHEST:
        raise DataError(
            "The scale of a judge goes from 0 to a whole number up to {most}.",
            remedy="Give grades on such a scale, with its highest grade in a column named top.",
            most=_HIGHEST,
        )
    return int(top)
