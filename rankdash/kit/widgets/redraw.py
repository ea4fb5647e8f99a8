"""Redrawing open tabs after changes by others: a session reruns if a name that it shows has
changed.

One task of the server checks once per second and requests reruns, so an idle tab costs nothing. It
skips sessions whose script is running, and sessions that show something which a rerun would remove:
a dialog, or the error of a click.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Set
from contextlib import suppress

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rankdash.core.base.errors import RankdashError
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.judges import JudgeRow
from rankdash.core.workspace.jobs.leases import ExplanationRow
from rankdash.core.workspace.workspace import Names, NamesWatch

AT_ONCE = 8
"""The maximum number of sessions that rerun at the same time."""

_LOOK_SECONDS = 1.0
_TURN_SECONDS = 0.05
_NAMES = "redraw.names"
# Session → its data set, and the names that it shows.
_shown: dict[str, tuple[str | None, Hashable]] = {}


def renamed(names: Names) -> bool:
    """Return whether a name has changed since this session was last drawn."""
    now = {row[:3]: row[3] for rows in names.values() for row in rows}
    before = st.session_state.get(_NAMES, now)
    st.session_state[_NAMES] = now
    return any(before.get(each, name) != name for each, name in now.items())


def shows(dataset_id: str | None, names: Names) -> None:
    """Register the names that this session shows, which were read before anything was drawn."""
    context = get_script_run_ctx()
    if context is not None:
        _shown[context.session_id] = dataset_id, _of(dataset_id, names)


def pause() -> None:
    """Exclude this session from reruns until its script runs again."""
    context = get_script_run_ctx()
    if context is not None:
        _shown.pop(context.session_id, None)


async def watch(workspace: Callable[[], Workspace]) -> None:
    """Request reruns of sessions, as long as the server runs."""
    seen, pending = NamesWatch(), set[str]()
    while True:
        await asyncio.sleep(_TURN_SECONDS if pending else _LOOK_SECONDS)
        # A workspace that cannot be read now may be readable next time.
        with suppress(RankdashError):
            pending = draw_again(await asyncio.to_thread(lambda: seen.names(workspace())), pending)


def draw_again(names: Names, pending: Set[str]) -> set[str]:
    """Request reruns of a few sessions, because many at the same time would delay other users.
    pending: sessions with an earlier request. Return the sessions whose run has not ended."""
    under_way = {each for each in pending if _runs(each)}
    for session_id, (dataset_id, before) in list(_shown.items()):
        session = runtime.get_instance().get_app_session(session_id)
        now = _of(dataset_id, names)
        if session is None:
            # It has no tab, and is redrawn when the tab is back.
            del _shown[session_id]
        elif now != before and not _runs(session_id) and len(under_way) < AT_ONCE:
            _shown[session_id] = dataset_id, now
            session.request_rerun(session._client_state)
            under_way.add(session_id)
    return under_way


def _runs(session_id: str) -> bool:
    """Return whether the session's script runs: it has a runner from the request to the end of a
    run."""
    session = runtime.get_instance().get_app_session(session_id)
    return session is not None and session._scriptrunner is not None


def _of(dataset_id: str | None, names: Names) -> Hashable:
    """Return the names that a session shows: every data set, and everything in its own data set."""
    titles = tuple(next(iter(rows)) for rows in names.values())
    return titles, names.get(dataset_id or "")


# How often a page checks the progress of a worker's work.

_LIVE_SECONDS = 1.0
# A silent worker is considered dead; on a busy machine it may resume.
_SILENT_SECONDS = 5.0


def seconds(row: ExplanationRow | JudgeRow | None) -> float | None:
    """Return the seconds between two checks; None if nothing more can change."""
    if row is None:
        return None
    if row.live:
        return _LIVE_SECONDS
    return _SILENT_SECONDS if row.state == "interrupted" and row.error is None else None


# A part of a page that is computed only while it is open.


def fold(title: str, key: str, icon: str, draw: Callable[[], None]) -> None:
    """Draw an expander; `draw` runs when a user has opened it, not on every rerun of the page."""
    with st.expander(title, icon=icon, key=key, on_change="rerun") as part:
        if part.open:
            draw()
