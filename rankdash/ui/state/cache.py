"""Where the server keeps what studies worked out, for all sessions: Streamlit's cache, by part.

Everything in it is an immutable value under a key of content ids, so nothing is ever stale; a
deleted run is just never asked for again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from rankdash.study.cache import Key, Made

_SYSTEMS = 24


# A function each, because Streamlit has one limit a function. Arguments with a leading underscore
# are not part of the key.
@st.cache_resource(max_entries=6, show_spinner=False)
def _of_data_sets(key: Key, _make: Callable[[], Made]) -> Made:
    return _make()


@st.cache_resource(max_entries=_SYSTEMS, show_spinner=False)
def _of_runs(key: Key, _make: Callable[[], Made]) -> Made:
    return _make()


@st.cache_resource(max_entries=2 * _SYSTEMS, show_spinner=False)
def _of_joins(key: Key, _make: Callable[[], Made]) -> Made:
    return _make()


@st.cache_resource(max_entries=8 * _SYSTEMS, show_spinner=False)
def _of_numbers(key: Key, _make: Callable[[], Made]) -> Made:
    return _make()


_LARGE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("dataset", "label rows", "uploaded rows", "moves", "pairing"), _of_data_sets),
    **dict.fromkeys(("run", "judged"), _of_runs),
    "joined": _of_joins,
}


def cache(key: Key, make: Callable[[], Made]) -> Made:
    """What `make` makes, made once for a key; of each part so many as memory allows."""
    # Streamlit takes a dataclass of settings apart, field by field, each time one is in a key.
    plain = tuple(part if isinstance(part, str) else repr(part) for part in key)
    kept: Made = _LARGE.get(plain[0], _of_numbers)(plain, make)
    return kept


def forget_all() -> None:
    """Start anew, where what was read came from a workspace that is another one now."""
    st.cache_resource.clear()
