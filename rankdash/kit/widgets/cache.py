"""Where the server keeps what studies worked out, for all sessions: Streamlit's cache, by part.

Everything in it is an immutable value under a key of content ids, so nothing is ever stale; a
deleted run is just never asked for again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Concatenate, ParamSpec

import streamlit as st

from rankdash.core.base import i18n
from rankdash.core.study.cache import Key, Made
from rankdash.core.study.study import Study

On = ParamSpec("On")

_SYSTEMS = 24


# A function each, because Streamlit has one limit a function. Arguments with a leading underscore
# are not part of the key.
@st.cache_resource(max_entries=6, show_spinner=False)
def _of_data_sets(key: str, _make: Callable[[], Made]) -> Made:
    return _make()


@st.cache_resource(max_entries=8, show_spinner=False)
def _of_pairs(key: str, _make: Callable[[], Made]) -> Made:
    return _make()


@st.cache_resource(max_entries=_SYSTEMS, show_spinner=False)
def _of_runs(key: str, _make: Callable[[], Made]) -> Made:
    return _make()


@st.cache_resource(max_entries=2 * _SYSTEMS, show_spinner=False)
def _of_joins(key: str, _make: Callable[[], Made]) -> Made:
    return _make()


@st.cache_resource(max_entries=8 * _SYSTEMS, show_spinner=False)
def _of_numbers(key: str, _make: Callable[[], Made]) -> Made:
    return _make()


@st.cache_resource(max_entries=16 * _SYSTEMS, show_spinner=False)
def _of_pages(key: str, _make: Callable[[], Made]) -> Made:
    return _make()


@st.cache_resource(max_entries=_SYSTEMS, show_spinner=False)
def _of_lists(key: str, _make: Callable[[], Made]) -> Made:
    return _make()


_LARGE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("dataset", "label rows", "uploaded rows"), _of_data_sets),
    "pairs": _of_pairs,
    **dict.fromkeys(("run", "judged"), _of_runs),
    "joined": _of_joins,
    "part of a page": _of_pages,
    "listed queries": _of_lists,
}


def cache(key: Key, make: Callable[[], Made]) -> Made:
    """What `make` makes, made once for a key; of each part so many as memory allows."""
    # Streamlit takes a dataclass of settings apart, field by field, each time one is in a key.
    plain = tuple(part if isinstance(part, str) else repr(part) for part in key)
    # And each part of a tuple apart: one text is one to hash.
    cached: Made = _LARGE.get(plain[0], _of_numbers)(repr(plain), make)
    return cached


def shared(
    part: Callable[Concatenate[Study, On], Made], study: Study, *on: On.args, **named: On.kwargs
) -> Made:
    """What a part of a page returns, once for all sessions that see the same study alike; what it
    drew is sent again as it was. It may hold no widget, and depend on nothing that is not given.
    """
    key = (
        *("part of a page", f"{part.__module__}.{part.__qualname__}"),
        content(study),
        *(i18n.language(), str(st.context.theme.type)),
        # Prices grow old.
        datetime.now(UTC).date().isoformat(),
        repr((on, named)),
    )
    return cache(key, lambda: part(study, *on, **named))


def content(study: Study) -> str:
    """Return an id of all that can be seen of a study."""
    return study.once(("content",), lambda: _content(study), alone=True)


def _content(study: Study) -> str:
    """An id of all that can be seen of a study; its data set and its runs have one."""
    systems = [(each.id, each.name, each.place) for each in study.systems.values()]
    rules = (study.metric, study.cutoff, study.others, study.conventions, study.statistics)
    seen = (
        *(study.dataset_id, study.dataset.name, systems, study.baseline, study.challengers, rules),
        *(study.money, study.notes, study.goals, study.corrections),
        None if study.judge is None else study.judge.id,
        None if study.labelling is None else (study.labelling.mode, study.labelling.estimates),
    )
    return blake2b(repr(seen).encode(), digest_size=16).hexdigest()


def forget_all() -> None:
    """Start anew, where what was read came from a workspace that is another one now."""
    st.cache_resource.clear()
