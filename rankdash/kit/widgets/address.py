"""The user's choices, stored in the session and written into the address, so that a view is a link.

Widgets can bind themselves to the address, but then it contains the label of an option instead of
its id, and omits today's default: tomorrow the same link would show something else. So the choices
are stored here as ids, and `pickers` draws widgets from them.
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

# Name in the address → its default, which is omitted from the address and must never depend on the
# data.
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
    "section": "policy",
    "policy_depth": "all",
    "policy_skip": None,
    "deadline": None,
    "floor_alpha": None,
    "fused": None,
    "weights": None,
    "across": "searches_per_day",
    "upward": "elasticity",
    "trade": None,
    "margin": "first",
    "loss": f"{TOLERANCE:g}",
    "cell": None,
    "row": None,
    **{each.name: f"{each.default:g}" for each in ASSUMPTIONS},
    **{each.name: key_of(each.default) for each in (*CONVENTION_SETTINGS, *STATISTICS_SETTINGS)},
    "lang": None,
}
# Ids and names within a data set, which mean nothing without it.
OF_A_DATA_SET = (
    *("base", "system", "vs", "left", "right", "runs", "q", "doc", "follow", "reader", "row"),
    *("judge", "judge_shown", "segment", "tag", "values", "against", "price", "thousand"),
    *("fused", "weights"),
)
# Fields that are set before a page is drawn, and that are in its address even without a user's
# choice.
_OF_EVERY_PAGE = ("data", "base", "system", "metric", "k", "vs", "lang")
# The value in the address for an emptied choice of several.
_NONE = [""]
# Filters of the list of queries.
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
# Every address of this session, including addresses that were only in links of a page.
_KNOWN = "address.known"
# Fields of a link that nothing has read yet, and requested values that are unavailable.
_GIVEN = "address.given"
_LOST = "address.lost"
# The fields that the user chose, by a widget or a link, not by a default.
_BY_HAND = "address.by_hand"
_MOST_FIELDS = 100


def one(name: str) -> str | None:
    """Return the chosen value of a field, or None."""
    values = _choices().get(name)
    return values[0] if values else None


def several(name: str) -> list[str]:
    return list(_choices().get(name, []))


def is_set(name: str) -> bool:
    """Return whether a choice was made, even an empty one."""
    return name in _choices()


def choose(name: str, value: str | Iterable[str] | None) -> None:
    """Set a field to the user's choice (None clears it)."""
    st.session_state.get(_LOST, {}).pop(name, None)
    _chosen_by_hand().add(name)
    # The choice replaces the value of a link, even if nothing has read it yet.
    st.session_state.get(_GIVEN, set()).discard(name)
    set_default(name, value)


def by_hand(name: str) -> bool:
    """Return whether the user chose the field, in this session or by a link, rather than a
    default."""
    return name in _chosen_by_hand()


def set_default(name: str, value: str | Iterable[str] | None) -> None:
    """Set a field to a default, which replaces a choice."""
    if value is None:
        _choices().pop(name, None)
    else:
        _choices()[name] = [value] if isinstance(value, str) else list(value)


def came_by_link(name: str) -> bool:
    """Return whether a link set a field that nothing has read yet."""
    return name in st.session_state.get(_GIVEN, set())


def lose(name: str, value: str | None) -> None:
    """Record that a value requested by a link is unavailable; None means available."""
    requested: set[str] = st.session_state.get(_GIVEN, set())
    if name in requested:
        requested.discard(name)
        if value is not None:
            st.session_state[_LOST][name] = value


def lost() -> Mapping[str, str]:
    """Return field → value, of values requested by a link that are unavailable, until the user
    chooses again."""
    unavailable: dict[str, str] = st.session_state.get(_LOST, {})
    return unavailable


def forget_lost() -> None:
    """Clear the unavailable values after they were shown."""
    st.session_state.pop(_LOST, None)


def publish() -> None:
    """Write the choices into the address, with one step of the browser's history per click.

    Defaults that a page sets while it is drawn do not change the address: that would be a separate
    step, and going back would lead to the page again. A page sets the same defaults for the same
    address; when the address is written for another reason, it contains all of them.
    """
    current, choices = given(), whole()
    least = {
        name: values for name, values in choices.items() if name in _OF_EVERY_PAGE or by_hand(name)
    }
    if not least.items() <= current.items() <= choices.items():
        st.query_params.from_dict(carried())
    else:
        st.session_state[_WRITTEN] = current


def carried() -> dict[str, list[str]]:
    """Return the choices as the address will contain them."""
    choices = offered()
    st.session_state[_WRITTEN] = choices
    return choices


def offered() -> dict[str, list[str]]:
    """Return the choices for links to the other pages."""
    choices = whole()
    _known_addresses().add(_key(choices))
    return choices


def whole() -> dict[str, list[str]]:
    """Return everything that changes the view: the choices and the defaults of the pages."""
    return {
        name: values or _NONE
        for name, values in _choices().items()
        if name in FIELDS and values != [FIELDS[name]]
    }


def written() -> Mapping[str, Sequence[str]]:
    """Return the last written address, field by field."""
    fields: dict[str, list[str]] = st.session_state.get(_WRITTEN, {})
    return fields


def given() -> dict[str, list[str]]:
    """Return the address at the time of the click, until it is written again."""
    return {name: st.query_params.get_all(name) for name in list(st.query_params)[:_MOST_FIELDS]}


def is_known(address: Mapping[str, Sequence[str]]) -> bool:
    """Return whether this session has been at an address, or has shown a link to it."""
    return _key(address) in _known_addresses()


def take_over(address: dict[str, list[str]]) -> None:
    """Replace all choices by the choices in an address."""
    st.session_state[_CHOICES] = {
        name: [] if values == _NONE else values for name, values in address.items()
    }
    st.session_state[_WRITTEN] = address
    _known_addresses().add(_key(address))
    st.session_state[_BY_HAND] = set(address)
    st.session_state[_GIVEN] = set(address)
    st.session_state[_LOST] = {}


def _chosen_by_hand() -> set[str]:
    chosen: set[str] = st.session_state.setdefault(_BY_HAND, set())
    return chosen


def _known_addresses() -> set[str]:
    addresses: set[str] = st.session_state.setdefault(_KNOWN, set())
    return addresses


def _key(address: Mapping[str, Sequence[str]]) -> str:
    return urlencode(sorted(address.items()), doseq=True)


def _choices() -> dict[str, list[str]]:
    choices: dict[str, list[str]] = st.session_state.setdefault(_CHOICES, {})
    return choices
