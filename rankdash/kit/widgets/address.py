"""What is chosen, kept in the session and written into the address, so that a view is a link.

Widgets can bind themselves to the address, but then it holds the label of an option instead of its
id, and leaves out whatever equals today's default: tomorrow the same link shows something else. So
the choices are kept here as ids, always written out in full, and `pickers` draws widgets from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlencode

import streamlit as st

from rankdash.core.base.rules import STATISTICS_SETTINGS
from rankdash.core.metrics import CONVENTION_SETTINGS
from rankdash.core.study.labelling import TOLERANCE
from rankdash.core.study.systems import MACHINES
from rankdash.core.value.assumptions import ASSUMPTIONS
from rankdash.core.words.methods import key_of

# Name in the address → the value that goes without saying; it must never depend on the data.
FIELDS: Mapping[str, str | None] = {
    "data": None,
    "base": None,
    "system": None,
    "metric": None,
    "k": None,
    "q": None,
    "vs": None,
    "sort": "hurt",
    "outcome": None,
    "reason": None,
    "fault": None,
    "segment": None,
    "state": None,
    "tag": None,
    "text": None,
    "delta": None,
    "before": None,
    "after": None,
    "values": None,
    "share": None,
    "docs": "telling",
    "follow": None,
    "left": None,
    "right": None,
    "doc": None,
    "leave": "term",
    "documents": "relevant",
    "target": "500",
    "latency": "percentiles",
    "against": None,
    "rules": None,
    "reader": None,
    "labels": "corrected",
    "judge": None,
    "judge_shown": None,
    "runs": None,
    "line": "like",
    "profile": None,
    "price": None,
    "also": None,
    "currency": "USD",
    "into": None,
    "rate": None,
    "thousand": None,
    "machines": MACHINES[0],
    "example": None,
    "quality_before": None,
    "quality_after": None,
    "per": "month",
    "part": "swings",
    "across": "searches_per_day",
    "upward": "elasticity",
    "trade": None,
    "margin": "first",
    "loss": f"{TOLERANCE:g}",
    "cell": None,
    "row": None,
    "paid": None,
    **{each.name: f"{each.default:g}" for each in ASSUMPTIONS},
    **{each.name: key_of(each.default) for each in (*CONVENTION_SETTINGS, *STATISTICS_SETTINGS)},
    "lang": None,
}
# Without the data set these say nothing: they are ids and names within it.
OF_A_DATA_SET = (
    *("base", "system", "vs", "left", "right", "runs", "q", "doc", "follow", "reader", "row"),
    *("judge", "judge_shown", "segment", "tag", "values", "against", "price", "thousand"),
)
# What is settled before a page is drawn, and its address says though nobody chose it.
_OF_EVERY_PAGE = ("data", "base", "system", "metric", "k", "vs", "lang")
# In the address for a choice of several that was emptied.
_NONE = [""]
# Which queries are listed.
QUERY_FILTERS = (
    "outcome",
    "reason",
    "fault",
    "segment",
    "text",
    "state",
    "tag",
    "delta",
    "before",
    "after",
    "values",
    "share",
)
_CHOICES = "address.choices"
_WRITTEN = "address.written"
# Every address of this session so far, those that only the links of a page carry included.
_KNOWN = "address.known"
# What a link named and nothing has looked at yet, and what of it was not to be had.
_GIVEN = "address.given"
_LOST = "address.lost"
# The fields that a person chose, by a widget or a link, and that were not only settled.
_BY_HAND = "address.by_hand"
_MOST_FIELDS = 100


def one(name: str) -> str | None:
    """The chosen value of a field, or None."""
    values = _choices().get(name)
    return values[0] if values else None


def several(name: str) -> list[str]:
    return list(_choices().get(name, []))


def is_set(name: str) -> bool:
    """Whether a choice was made, if only that of nothing."""
    return name in _choices()


def choose(name: str, value: str | Iterable[str] | None) -> None:
    """Set a field to what was chosen (None clears it)."""
    st.session_state.get(_LOST, {}).pop(name, None)
    _chosen_by_hand().add(name)
    # What a link named gives way, also where nothing has looked at it yet.
    st.session_state.get(_GIVEN, set()).discard(name)
    settle(name, value)


def by_hand(name: str) -> bool:
    """Whether a person chose it, in this session or by a link, and not a default."""
    return name in _chosen_by_hand()


def settle(name: str, value: str | Iterable[str] | None) -> None:
    """Set a field to what stands in for a choice that nobody made."""
    if value is None:
        _choices().pop(name, None)
    else:
        _choices()[name] = [value] if isinstance(value, str) else list(value)


def came_by_link(name: str) -> bool:
    """Whether a link named a field that nothing has looked at yet."""
    return name in st.session_state.get(_GIVEN, set())


def lose(name: str, value: str | None) -> None:
    """Note that a value cannot be had, where a link asked for it; None where nothing is wrong."""
    requested: set[str] = st.session_state.get(_GIVEN, set())
    if name in requested:
        requested.discard(name)
        if value is not None:
            st.session_state[_LOST][name] = value


def lost() -> Mapping[str, str]:
    """Field → value, of what a link asked for in vain; until it is chosen anew."""
    unavailable: dict[str, str] = st.session_state.get(_LOST, {})
    return unavailable


def forget_lost() -> None:
    """What the link lacked was said."""
    st.session_state.pop(_LOST, None)


def publish() -> None:
    """Write the choices into the address, in one step of the browser's history for each click.

    What a page settles while it is drawn is no reason to write it: it would be a step of its own,
    and going back would lead to the page again. A page settles the same from the same address; as
    soon as the address is written for another reason, it contains all of it.
    """
    here, choices = given(), whole()
    least = {
        name: values for name, values in choices.items() if name in _OF_EVERY_PAGE or by_hand(name)
    }
    if not least.items() <= here.items() <= choices.items():
        st.query_params.from_dict(carried())
    else:
        st.session_state[_WRITTEN] = here


def carried() -> dict[str, list[str]]:
    """The choices as the address contains them, from now on."""
    choices = offered()
    st.session_state[_WRITTEN] = choices
    return choices


def offered() -> dict[str, list[str]]:
    """The choices as the links to the other pages carry them."""
    choices = whole()
    _known().add(_key(choices))
    return choices


def whole() -> dict[str, list[str]]:
    """Return everything that changes what is seen: the choices, and what the pages settled."""
    return {
        name: values or _NONE
        for name, values in _choices().items()
        if name in FIELDS and values != [FIELDS[name]]
    }


def written() -> Mapping[str, Sequence[str]]:
    """What the address says, field by field."""
    fields: dict[str, list[str]] = st.session_state.get(_WRITTEN, {})
    return fields


def given() -> dict[str, list[str]]:
    """What the address said when the click was made, until it is written anew."""
    return {name: st.query_params.get_all(name) for name in list(st.query_params)[:_MOST_FIELDS]}


def is_known(address: Mapping[str, Sequence[str]]) -> bool:
    """Whether this session has been at an address, or offered a link to it."""
    return _key(address) in _known()


def take_over(address: dict[str, list[str]]) -> None:
    """Choose what an address says, and nothing else."""
    st.session_state[_CHOICES] = {
        name: [] if values == _NONE else values for name, values in address.items()
    }
    st.session_state[_WRITTEN] = address
    _known().add(_key(address))
    st.session_state[_BY_HAND] = set(address)
    st.session_state[_GIVEN] = set(address)
    st.session_state[_LOST] = {}


def _chosen_by_hand() -> set[str]:
    chosen: set[str] = st.session_state.setdefault(_BY_HAND, set())
    return chosen


def _known() -> set[str]:
    known: set[str] = st.session_state.setdefault(_KNOWN, set())
    return known


def _key(address: Mapping[str, Sequence[str]]) -> str:
    return urlencode(sorted(address.items()), doseq=True)


def _choices() -> dict[str, list[str]]:
    choices: dict[str, list[str]] = st.session_state.setdefault(_CHOICES, {})
    return choices
