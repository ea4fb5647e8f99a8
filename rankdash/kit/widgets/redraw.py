"""What others changed shows in every open tab: a session is drawn again where it shows a name that
is another now.

One task of the server looks once a second and asks the sessions, so that a tab that nobody touches
costs nothing. It asks only those whose script is at rest, and none where something stands on the
page that the next run would take away: a dialog, or why a click was refused.
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
"""Sessions that are drawn again at the same time."""

_LOOK_SECONDS = 1.0
_TURN_SECONDS = 0.05
_NAMES = "redraw.names"
# Session → its data set, and the names that it shows.
_shown: dict[str, tuple[str | None, Hashable]] = {}


def renamed(names: Names) -> bool:
    """Whether something has another name than when this session was last drawn."""
    now = {row[:3]: row[3] for rows in names.values() for row in rows}
    before = st.session_state.get(_NAMES, now)
    st.session_state[_NAMES] = now
    return any(before.get(each, name) != name for each, name in now.items())


def shows(dataset_id: str | None, names: Names) -> None:
    """This session shows these names, which were read before anything was drawn."""
    context = get_script_run_ctx()
    if context is not None:
        _shown[context.session_id] = dataset_id, _of(dataset_id, names)


def hold() -> None:
    """Leave this session as it is until its script runs again, whatever others change."""
    context = get_script_run_ctx()
    if context is not None:
        _shown.pop(context.session_id, None)


async def watch(workspace: Callable[[], Workspace]) -> None:
    """Have sessions drawn again, for as long as the server runs."""
    seen, pending = NamesWatch(), set[str]()
    while True:
        await asyncio.sleep(_TURN_SECONDS if pending else _LOOK_SECONDS)
        # A workspace that cannot be read now may be read the next time.
        with suppress(RankdashError):
            pending = draw_again(await asyncio.to_thread(lambda: seen.names(workspace())), pending)


def draw_again(names: Names, pending: Set[str]) -> set[str]:
    """Ask sessions for another run; a few at a time, as all would wait for each other and keep who
    clicks waiting. pending: those that were asked before. Returns those whose run has not ended."""
    under_way = {each for each in pending if _runs(each)}
    for session_id, (dataset_id, before) in list(_shown.items()):
        session = runtime.get_instance().get_app_session(session_id)
        now = _of(dataset_id, names)
        if session is None:
            # It has no tab, and is drawn anew when that is back.
            del _shown[session_id]
        elif now != before and not _runs(session_id) and len(under_way) < AT_ONCE:
            _shown[session_id] = dataset_id, now
            session.request_rerun(session._client_state)
            under_way.add(session_id)
    return under_way


def _runs(session_id: str) -> bool:
    """Whether its script does: it has a runner from when a run is asked for to its end."""
    session = runtime.get_instance().get_app_session(session_id)
    return session is not None and session._scriptrunner is not None


def _of(dataset_id: str | None, names: Names) -> Hashable:
    """What a session shows: every data set, and what belongs to its own."""
    titles = tuple(next(iter(rows)) for rows in names.values())
    return titles, names.get(dataset_id or "")


# How often a page looks what became of work that a worker does.

_LIVE_SECONDS = 1.0
# A worker that fell silent is taken for dead; on a busy machine it may be heard of again.
_SILENT_SECONDS = 5.0


def seconds(row: ExplanationRow | JudgeRow | None) -> float | None:
    """Between two looks; None where nothing more happens by itself."""
    if row is None:
        return None
    if row.live:
        return _LIVE_SECONDS
    return _SILENT_SECONDS if row.state == "interrupted" and row.error is None else None


# A part of a page that is worked out only while it is open.


def fold(title: str, key: str, icon: str, draw: Callable[[], None]) -> None:
    """An expander; `draw` runs when a person has opened it, not on every rerun of the page."""
    with st.expander(title, icon=icon, key=key, on_change="rerun") as part:
        if part.open:
            draw()
