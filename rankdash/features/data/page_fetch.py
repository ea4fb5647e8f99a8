"""Data: a new data set from queries and a search engine, without labels."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import duration, error_text, ngettext, number, reason_text
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.intake.from_search import Fetching, queries_of_file, unfinished
from rankdash.core.intake.reading import StoreOutcome
from rankdash.core.readers.queries import queries_of
from rankdash.features.data import page_upload
from rankdash.kit.widgets import dialogs, redraw, search_form, settings_form
from rankdash.kit.widgets.search_form import Entered
from rankdash.kit.widgets.stored import workspace
from rankdash.kit.widgets.text import markdown_safe
from rankdash.kit.widgets.uploader import uploader

_PLACE = "data"
_FETCHING = "data.fetching"
_REFRESH_SECONDS = 1.0
_LINES = 140
_LONGEST = 1_000_000
_MOST_UNFINISHED = 3
_FILES = ["csv", "tsv", "jsonl", "json", "txt", "xlsx", "parquet"]


def draw() -> None:
    """Draw the fetch in progress, its result, or the form, which is folded until a user opens
    it."""
    fetching: Fetching | None = st.session_state.get(_FETCHING)
    if fetching is None:
        redraw.fold(_("Start from a search URL"), "data.fetch", ":material/travel_explore:", _form)
    elif fetching.running:
        _progress(fetching)
    else:
        _ended(fetching)


def _form() -> None:
    st.caption(
        _(
            "Sends your queries to your search engine. Its results become a new data set with this "
            "engine as the first stage. Labels are not needed: you add them later, on page Label."
        )
    )
    _unfinished()
    queries = _queries()
    entered = search_form.draw(_PLACE, "" if queries is None else str(queries["text"].iloc[0]))
    if entered is None:
        return
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    title = search_form.title(entered.endpoint)
    name = left.text_input(
        _("Name of the data set"), placeholder=title, max_chars=80, key="data.fetch.name"
    )
    count = 0 if queries is None else len(queries)
    label = ngettext("Fetch {n} query", "Fetch {n} queries", count)
    if right.button(label, icon=":material/download:", type="primary", key="data.fetch.start"):
        if queries is None:
            redraw.pause()
            st.error(_("Enter queries first: paste them, or add a file."), icon=":material/edit:")
        elif entered.keys.missing:
            redraw.pause()
            st.error(entered.keys.missing, icon=":material/key_off:")
        else:
            _start(entered, queries, name.strip() or title)
    if entered.tried is not None:
        search_form.show(entered.tried)


def _unfinished() -> None:
    """Draw the latest fetches of this workspace that made no data set yet."""
    found = [each for each in unfinished(workspace()) if each.running or each.done]
    for place, fetching in enumerate(found[:_MOST_UNFINISHED]):
        text = ngettext(
            "Fetch without a data set: {name}, {host} ({done} of {n} query answered).",
            "Fetch without a data set: {name}, {host} ({done} of {n} queries answered).",
            fetching.total,
            name=markdown_safe(fetching.name, 80),
            host=markdown_safe(fetching.endpoint.address, 120),
            done=number(fetching.done, 0),
        )
        row = st.container(horizontal=True, vertical_alignment="center")
        row.markdown(text)
        if row.button(
            _p("button", "Continue"), icon=":material/resume:", key=f"data.fetch.continue.{place}"
        ):
            st.session_state[_FETCHING] = fetching
            st.rerun()
        if not fetching.running and row.button(
            _p("button", "Discard"), icon=":material/delete:", key=f"data.fetch.discard.{place}"
        ):
            try:
                fetching.discard()
            except RankdashError as error:
                dialogs.show_error(error_text(error))
            else:
                st.rerun()


def _queries() -> pd.DataFrame | None:
    """Draw the fields for queries; return the queries, or None without any."""
    left, right = st.columns(2)
    lines = left.text_area(
        _("Queries, one per line"),
        height=_LINES,
        max_chars=_LONGEST,
        key="data.fetch.queries",
        persist_state="session",
    )
    with right:
        files = uploader(
            _("Or a file of queries"),
            "data.fetch.file",
            type=_FILES,
            help=_(
                "A table with a column query or text, and optionally query_id; or a .txt file "
                "with one query per line. Other columns become kinds of queries."
            ),
        )
    try:
        queries = queries_of_file(files[0]) if files else queries_of(lines)
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 500), icon=":material/error:")
        return None
    if queries.empty:
        return None
    if files:
        example = markdown_safe(str(queries["text"].iloc[0]), 80)
        count = ngettext("{n} query", "{n} queries", len(queries))
        right.caption(_("{queries}, such as “{example}”.", queries=count, example=example))
    return queries


def _start(entered: Entered, queries: pd.DataFrame, name: str) -> None:
    try:
        search_form.remember(entered.endpoint)
        search_form.lend(entered.endpoint, _PLACE, _FETCHING)
        st.session_state[_FETCHING] = Fetching(
            workspace(),
            entered.endpoint,
            queries,
            entered.depth,
            entered.policy,
            name,
            entered.keys.keys,
        )
    except RankdashError as error:
        dialogs.show_error(error_text(error))
        return
    st.rerun()


def _progress(fetching: Fetching) -> None:
    @st.fragment(run_every=_REFRESH_SECONDS)
    def panel() -> None:
        if not fetching.running:
            st.rerun(scope="app")
        with st.container(border=True):
            text, action = st.columns([5, 1], vertical_alignment="center")
            host = markdown_safe(fetching.endpoint.host, 80)
            text.markdown(f"**{_('Fetching from {host}', host=host)}**")
            ended = fetching.done + fetching.failed
            parts = [
                ngettext(
                    "{done} of {n} query",
                    "{done} of {n} queries",
                    fetching.total,
                    done=number(fetching.done, 0),
                ),
                _("{time} elapsed", time=duration(fetching.seconds)),
            ]
            if fetching.failed:
                failed = ngettext("{n} query failed", "{n} queries failed", fetching.failed)
                parts.insert(1, failed)
            text.progress(min(1.0, ended / fetching.total), text=" · ".join(parts))
            action.button(
                _p("button", "Cancel"),
                icon=":material/cancel:",
                key="data.fetch.cancel",
                on_click=fetching.cancel,
                disabled=fetching.cancelled,
            )

    panel()


def _ended(fetching: Fetching) -> None:
    """Open the data set if all queries were answered; else draw what failed, and the choices."""
    # A key is not needed any more.
    settings_form.clear(())
    failures = fetching.failures
    if fetching.outcome is not None:
        _open(fetching.outcome)
    with st.container(border=True):
        if fetching.error is not None:
            st.error(markdown_safe(error_text(fetching.error), 500), icon=":material/error:")
        elif not fetching.started:
            st.info(_("This fetch was not finished."), icon=":material/pending:")
        elif fetching.cancelled:
            st.info(_("The fetch was cancelled."), icon=":material/cancel:")
        else:
            st.warning(
                ngettext(
                    "{n} query failed. It is not counted as a query without results.",
                    "{n} queries failed. They are not counted as queries without results.",
                    len(failures),
                ),
                icon=":material/warning:",
            )
            _table(fetching)
        st.caption(
            ngettext(
                "{n} query is answered and is not sent again.",
                "{n} queries are answered and are not sent again.",
                fetching.done,
            )
        )
        _choices(fetching)


def _table(fetching: Fetching) -> None:
    texts = dict(zip(fetching.queries["query_id"], fetching.queries["text"], strict=True))
    st.dataframe(
        pd.DataFrame(
            {
                _p("column", "query"): [texts[each.query_id] for each in fetching.failures],
                _("reason for the failure"): [
                    reason_text(each.reason) for each in fetching.failures
                ],
            }
        ),
        hide_index=True,
        alt=_("The failed queries and the reasons"),
    )


def _choices(fetching: Fetching) -> None:
    again = search_form.draw_keys(fetching.endpoint, "data.again")
    row = st.container(horizontal=True)
    if row.button(
        _p("button", "Resume"), type="primary", icon=":material/resume:", key="data.fetch.resume"
    ):
        if again.missing:
            redraw.pause()
            st.error(again.missing, icon=":material/key_off:")
            return
        st.session_state[_FETCHING] = fetching.again(again.keys)
        st.rerun()
    complete = fetching.started and fetching.error is None and not fetching.cancelled
    if complete and fetching.done:
        label = ngettext(
            "Continue without {n} failed query",
            "Continue without {n} failed queries",
            len(fetching.failures),
        )
        if row.button(label, icon=":material/arrow_forward:", key="data.fetch.without"):
            _store(fetching)
    if row.button(_("Change the request"), icon=":material/edit:", key="data.fetch.change"):
        del st.session_state[_FETCHING]
        st.rerun()


def _store(fetching: Fetching) -> None:
    try:
        with st.spinner(_("Checking and storing"), show_time=True):
            outcome = fetching.store()
    except RankdashError as error:
        redraw.pause()
        st.error(markdown_safe(error_text(error), 500), icon=":material/error:")
    else:
        _open(outcome)


def _open(outcome: StoreOutcome) -> None:
    del st.session_state[_FETCHING]
    page_upload.open_stored(outcome)
