"""What is chosen, kept in the session and written into the address, so that a view is a link.

Widgets can bind themselves to the address, but then it holds the label of an option instead of its
id, and leaves out whatever equals today's default: tomorrow the same link shows something else. So
the choices are kept here as ids, always written out in full, and widgets are drawn from them.
"""

from __future__ import annotations

import functools
import inspect
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rankdash.value.assumptions import ASSUMPTIONS
from rankdash.words import names

# Name in the address → the value that goes without saying; it must never depend on the data.
# Who offers a choice adds its field; what a link carries must not hang on who was there before.
FIELDS: dict[str, str | None] = {
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
    "segment": None,
    "state": None,
    "tag": None,
    "text": None,
    "delta": None,
    "share": None,
    "docs": "telling",
    "follow": None,
    "cards": None,
    "doc": None,
    "leave": "term",
    "documents": "relevant",
    "target": "500",
    "against": None,
    "rules": None,
    "reader": None,
    "labels": "corrected",
    "runs": None,
    "line": "like",
    "profile": None,
    "price": None,
    "also": None,
    "currency": "USD",
    "per": "month",
    "part": "swings",
    "across": "searches_per_day",
    "upward": "elasticity",
    "margin": "first",
    "loss": "0.01",
    "cell": None,
    "paid": None,
    **{each.name: f"{each.default:g}" for each in ASSUMPTIONS},
    "lang": None,
}
# Without the data set these say nothing: they are ids and names within it.
OF_A_DATA_SET = (
    *("base", "system", "vs", "runs", "q", "doc", "follow", "reader"),
    *("segment", "tag", "against", "price"),
)
_CHOICES = "address.choices"
_WRITTEN = "address.written"
# Every address of this session so far, those that only the links of a page carry included.
_KNOWN = "address.known"
# Which page that was.
_PAGE = "address.page"
# What a link named and nothing has looked at yet, and what of it was not to be had.
_GIVEN = "address.given"
_LOST = "address.lost"
# The widgets that were put to a value in a run of the script that has not ended.
_UNSENT = "address.unsent"
# Widget → where it stood when it was put elsewhere, until the browser is known to have heard of it.
_SENT = "address.sent"
# When the person last went back or forward, and how long what is sent then may be under way.
_BACK = "address.back"
_UNDER_WAY_S = 2.0
_MOST_FIELDS = 100
# What a widget calls the value that it starts at.
_STARTS = ("index", "selection_default", "default", "value")

T = TypeVar("T")


def restore() -> None:
    """Take over what the address says when it was typed, followed, or reached by going back.

    The link of a page carries the choices, or nothing: then the session's choices stand. So they do
    where an address of before comes with a click: the browser had not heard yet of what was chosen
    a moment ago, or a fragment of the page changed a choice since its links were drawn.
    """
    # Also what no one has offered yet: a page adds its fields when it is first drawn.
    given = _given()
    page = urlsplit(st.context.url or "").path
    another_page = page != st.session_state.get(_PAGE)
    st.session_state[_PAGE] = page
    if another_page or not given:
        # What the link to the page before lacked was said.
        st.session_state.pop(_LOST, None)
    if not _behind():
        _sent().clear()
    if _gone_back():
        st.session_state[_BACK] = time.monotonic()
    if not given or given == st.session_state.get(_WRITTEN):
        return
    if _key(given) in _known() and not _gone_back():
        return
    st.session_state[_CHOICES] = given
    st.session_state[_WRITTEN] = given
    _known().add(_key(given))
    st.session_state[_GIVEN] = set(given)
    st.session_state[_LOST] = {}


def publish() -> None:
    """Write the choices into the address."""
    wanted = carried()
    if {name: st.query_params.get_all(name) for name in st.query_params} != wanted:
        st.query_params.from_dict(wanted)


def carried() -> dict[str, list[str]]:
    """The choices as the address says them, from now on."""
    wanted = offered()
    st.session_state[_WRITTEN] = wanted
    return wanted


def offered() -> dict[str, list[str]]:
    """The choices that do not go without saying: what the links to the other pages carry."""
    wanted = {
        name: values
        for name, values in _choices().items()
        if name in FIELDS and values and values != [FIELDS[name]]
    }
    _known().add(_key(wanted))
    return wanted


def written() -> Mapping[str, Sequence[str]]:
    """What the address says, field by field."""
    found: dict[str, list[str]] = st.session_state.get(_WRITTEN, {})
    return found


def lose(name: str, value: str | None) -> None:
    """Note that a value cannot be had, where a link asked for it; None where nothing is wrong."""
    given: set[str] = st.session_state.get(_GIVEN, set())
    if name in given:
        given.discard(name)
        if value is not None:
            st.session_state[_LOST][name] = value


def lost() -> Mapping[str, str]:
    """Field → value, of what a link asked for in vain; until it is chosen anew."""
    found: dict[str, str] = st.session_state.get(_LOST, {})
    return found


def one(name: str) -> str | None:
    """The chosen value of a field, or None."""
    values = _choices().get(name)
    return values[0] if values else None


def several(name: str) -> list[str]:
    return list(_choices().get(name, []))


def choose(name: str, value: str | Iterable[str] | None) -> None:
    """Set a field to what was chosen (None clears it)."""
    st.session_state.get(_LOST, {}).pop(name, None)
    # What a link named gives way, also where nothing has looked at it yet.
    st.session_state.get(_GIVEN, set()).discard(name)
    settle(name, value)


def settle(name: str, value: str | Iterable[str] | None) -> None:
    """Set a field to what stands in for a choice that nobody made."""
    if value is None:
        _choices().pop(name, None)
    else:
        _choices()[name] = [value] if isinstance(value, str) else list(value)


def pick_one(
    name: str,
    options: Sequence[str],
    draw: Callable[..., Any],
    default: str | None = None,
    format_func: Callable[[str], str] = str,
    clears: Sequence[str] = (),
    **settings: Any,
) -> str | None:
    """Draw a single-choice widget for a field; an unknown choice falls back to `default`.

    draw: `st.selectbox` or any widget that takes `options`, `key`, `on_change` and `format_func`.
    clears: the fields whose choices say nothing once another one is made here.
    """
    chosen = one(name)
    lose(name, chosen if chosen not in options else None)
    if not options:
        return None
    if chosen not in options:
        chosen = default if default in options else options[0]
    _bind(name, chosen, options, draw, format_func, settings, clears)
    return one(name)


def pick_several(
    name: str,
    options: Sequence[str],
    draw: Callable[..., Any],
    default: Sequence[str] = (),
    format_func: Callable[[str], str] = str,
    **settings: Any,
) -> list[str]:
    """Draw a several-choice widget for a field; unknown choices are dropped.

    The default stands in for a choice never made or no longer possible, not for one emptied.
    """
    chosen = [value for value in several(name) if value in options]
    unknown = [value for value in several(name) if value not in options]
    lose(name, ", ".join(unknown) if unknown else None)
    if not chosen and (several(name) or name not in _choices()):
        chosen = [value for value in default if value in options]
    _bind(name, chosen, options, draw, format_func, settings)
    return several(name)


def pick_free(
    name: str,
    draw: Callable[..., Any],
    read: Callable[[str | None], T],
    write: Callable[[T], str | None],
    **settings: Any,
) -> T:
    """Draw a widget whose value is no choice from a list: a text, a range.

    read: the address → the value; anything may stand there. write: the value → the address, None
    where it goes without saying.
    """
    key = f"address.{name}"
    given = one(name)
    value = read(given)
    written = write(value)
    usual = (None, FIELDS.get(name))
    # What was given and comes to the usual all the same could not be read.
    lose(name, given if given not in usual and written in usual else None)
    settle(name, written)

    def changed() -> None:
        choose(name, write(st.session_state[key]))

    show(draw, key, value, changed, settings.get("options", ()))(**settings)
    return value


def show(
    draw: Callable[..., Any],
    key: str,
    value: Any,
    changed: Callable[[], None],
    options: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Draw a widget of that key at a value; further settings are given to what is returned.

    The value is sent only where the widget does not stand there anyway: what is sent takes back
    what a person has changed since, such as the next press of an arrow key. Otherwise it is what
    the widget starts at, for one that has come to the browser and is not ready there yet: it never
    learns what the run before sent.
    """

    def heard() -> None:
        behind = _behind()
        if _gone_back() or (behind and st.session_state[key] in _sent().get(key, ())):
            # Nobody moved it: the browser had not heard yet of what it was put to.
            _unsent().add(key)
            return
        changed()
        if behind and key in _sent():
            # What it was put to is still under way, and would be shown.
            _unsent().add(key)
        else:
            # It is ready, then, and stands where the person put it.
            _unsent().discard(key)
        if not behind:
            _sent().clear()

    takes = inspect.signature(draw).parameters
    hears = {"on_select" if "on_select" in takes else "on_change": heard}
    if key in _unsent() or key not in st.session_state or st.session_state[key] != value:
        if key in st.session_state and st.session_state[key] != value:
            _sent().setdefault(key, []).append(st.session_state[key])
        st.session_state[key] = value
        _unsent().add(key)
        return functools.partial(draw, key=key, **hears)
    start = next(name for name in _STARTS if name in takes)
    begins = {start: options.index(value) if start == "index" else value}
    return functools.partial(draw, key=key, **hears, **begins)


def shown() -> None:
    """The script or a fragment ran to its end, so the browser has what it was sent. What was drawn
    before a rerun, or before a click cut the script short, may never have reached it."""
    _unsent().clear()


def _behind() -> bool:
    """Whether a click comes with an address of before: what was written since, and what was sent
    before that, had not reached the browser. Right after going back the address cannot tell."""
    given = _given()
    if time.monotonic() - st.session_state.get(_BACK, -math.inf) < _UNDER_WAY_S:
        return True
    return given != st.session_state.get(_WRITTEN) and _key(given) in _known()


def _given() -> dict[str, list[str]]:
    """What the address said when the click was made, until it is written anew."""
    return {name: st.query_params.get_all(name) for name in list(st.query_params)[:_MOST_FIELDS]}


def _sent() -> dict[str, list[Any]]:
    sent: dict[str, list[Any]] = st.session_state.setdefault(_SENT, {})
    return sent


def _unsent() -> set[str]:
    unsent: set[str] = st.session_state.setdefault(_UNSENT, set())
    return unsent


def _bind(
    name: str,
    chosen: str | list[str] | None,
    options: Sequence[str],
    draw: Callable[..., Any],
    format_func: Callable[[str], str],
    settings: dict[str, Any],
    clears: Sequence[str] = (),
) -> None:
    """Draw a widget that shows the choice and, when it is used, becomes the choice."""
    # Where there is nothing to choose from, nothing was chosen: not even none.
    settle(name, chosen if options else None)
    key = f"address.{name}"

    def changed() -> None:
        for each in clears:
            choose(each, None)
        choose(name, st.session_state[key])

    labels = names.distinct({option: format_func(option) for option in options})
    drawn = show(draw, key, chosen, changed, options)
    drawn(options=options, format_func=labels.__getitem__, **settings)


def _known() -> set[str]:
    known: set[str] = st.session_state.setdefault(_KNOWN, set())
    return known


def _key(address: Mapping[str, Sequence[str]]) -> str:
    return urlencode(sorted(address.items()), doseq=True)


def _gone_back() -> bool:
    """Whether the address was reached by going back, or forward again."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def _choices() -> dict[str, list[str]]:
    choices: dict[str, list[str]] = st.session_state.setdefault(_CHOICES, {})
    return choices
