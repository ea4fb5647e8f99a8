"""Streamlit's cache of computed results of studies, for all sessions, by part.

Everything in it is an immutable value under a key of content ids, so nothing is ever stale; results
of a deleted run are simply not requested again.
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


# Separate functions, because Streamlit has one limit per function. Arguments with a leading
# underscore are not part of the key.
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
    **dict.fromkeys(("listed queries", "doubtful labels"), _of_lists),
}


def cache(key: Key, make: Callable[[], Made]) -> Made:
    """Return the result of `make`, computed once for a key; each part has a limit of entries."""
    # Streamlit hashes a dataclass in a key field by field each time.
    plain = tuple(part if isinstance(part, str) else repr(part) for part in key)
    # And a tuple part by part: a single text is hashed faster.
    cached: Made = _LARGE.get(plain[0], _of_numbers)(repr(plain), make)
    return cached


def shared(
    part: Callable[Concatenate[Study, On], Made], study: Study, *on: On.args, **named: On.kwargs
) -> Made:
    """Return the result of a part of a page, computed once for all sessions with the same view of a
    study; its drawn elements are replayed. It must not contain widgets, and must depend only on its
    arguments."""
    key = (
        *("part of a page", f"{part.__module__}.{part.__qualname__}"),
        content(study),
        *(i18n.language(), str(st.context.theme.type)),
        # The age of prices changes daily.
        datetime.now(UTC).date().isoformat(),
        repr((on, named)),
    )
    return cache(key, lambda: part(study, *on, **named))


def content(study: Study) -> str:
    """Return an id of all visible content of a study."""
    return study.once(("content",), lambda: _content(study), alone=True)


def _content(study: Study) -> str:
    """Return an id of all visible content of a study; its data set and its runs have ids."""
    systems = [(each.id, each.name, each.place) for each in study.systems.values()]
    rules = (study.metric, study.cutoff, study.others, study.conventions, study.statistics)
    seen = (
        *(study.dataset_id, study.dataset.added, study.dataset.name, systems),
        *(study.baseline, study.challengers, rules),
        *(study.money, study.notes, study.goals, study.corrections),
        None if study.judge is None else study.judge.id,
        None if study.labelling is None else (study.labelling.mode, study.labelling.estimates),
    )
    return blake2b(repr(seen).encode(), digest_size=16).hexdigest()


def forget_all() -> None:
    """Clear the cache, because the workspace was replaced."""
    st.cache_resource.clear()
