"""What this session had open and another window deleted: named, never replaced in silence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import streamlit as st

from rankdash.kit.widgets import address

# Id → name of every data set and run that was offered here.
_SEEN = "deleted.seen"
# The data set, and the names of its runs that were compared and are gone, until they are dismissed.
_RUNS = "deleted.runs"


def dataset(names: Mapping[str, str]) -> str | None:
    """The name of the chosen data set where it is gone. names: id → name of those there are."""
    chosen = address.one("data")
    gone = _seen().get(chosen or "") if chosen not in names else None
    _seen().update(names)
    return gone


def note_runs(dataset_id: str, names: Mapping[str, str]) -> None:
    """Note which of the systems that are compared are gone. names: id → name of those there are."""
    before, gone = st.session_state.get(_RUNS, (dataset_id, []))
    if before != dataset_id:
        gone = []
    chosen = (address.one("base") or "", *address.several("system"))
    found = [_seen()[each] for each in chosen if each in _seen() and each not in names]
    st.session_state[_RUNS] = (dataset_id, list(dict.fromkeys([*gone, *found])))
    _seen().update(names)


def runs() -> list[str]:
    """The names of the runs that were compared and are gone."""
    names: list[str] = st.session_state.get(_RUNS, ("", []))[1]
    return names


def dismiss() -> None:
    """It was read which runs are gone."""
    st.session_state.pop(_RUNS, None)


def by_this_session(ids: Iterable[str]) -> None:
    """Who deleted them here needs no telling."""
    for each in ids:
        _seen().pop(each, None)


def _seen() -> dict[str, str]:
    seen: dict[str, str] = st.session_state.setdefault(_SEEN, {})
    return seen
