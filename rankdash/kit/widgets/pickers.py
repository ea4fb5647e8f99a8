"""Widgets that show and change the choices, also if the browser shows an earlier state.

A click arrives with the address and the widget values that the browser last received. It may not
have received the latest choices yet; and data that a run of the script sent is lost if a rerun or
another click interrupted that run.

The address that arrives with a run (`restore`):

=================================  =========  ====================================================
address                            state      action
=================================  =========  ====================================================
empty, or the last written one     in step    the choices stay; sent data has arrived
an earlier one, by a click         behind     the choices stay; sent data is still in transit
an earlier one, by going back      gone back  it is chosen; for 5 s the browser counts as behind
a new one                          followed   it is chosen
=================================  =========  ====================================================

A widget (`show`), which begins as unsent:

========  ================================  =====================================================
state     event                             action, and the next state
========  ================================  =====================================================
unsent    it is drawn                       its value is sent; unsent
any       the script ends (`mark_sent`)     sent
sent      it is drawn at its value          nothing is sent, it only starts there; sent
sent      it is drawn at another value      its value is sent, the old one noted; unsent, transit
any       it is drawn in other words        its value is sent: the browser shows old words; unsent
any       a user changes it, in step        the value is chosen; sent, nothing in transit
any       it reports a noted value, behind  nothing: the user did not change it; unsent
transit   a user changes it, behind         the value is chosen; unsent, as sent data will arrive
any       it reports, gone back             nothing: the address is newer; unsent
========  ================================  =====================================================

A click during the handling of an earlier one interrupts that run of the script, and is handled in
another thread at the same time. So changes are handled one at a time, the older first, and an
interrupted one is handled when the widget is next drawn.
"""

from __future__ import annotations

import functools
import inspect
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import streamlit as st
from streamlit.runtime.scriptrunner import RerunException, StopException, get_script_run_ctx

from rankdash.core.base import text
from rankdash.core.base.i18n import enumerated
from rankdash.kit.widgets import address, language

# The page of the previous run.
_PAGE = "address.page"
# The widgets that were set to a value in a run of the script that has not ended.
_UNSENT = "address.unsent"
# Widget → its previous values, until the browser is known to have received the new one.
_UNDER_WAY = "address.sent"
# The lock that handles changes one at a time.
_TURNS = "address.turns"
# When the result of going back or forward was last sent, and how long it may be in transit.
_BACK = "address.back"
_UNDER_WAY_S = 5.0
# The names of the parameter for a widget's initial value.
_STARTS = ("index", "selection_default", "default", "value")

T = TypeVar("T")


def restore() -> None:
    """Load the choices of an address that was typed, followed, or reached by going back.

    The link of a page contains the choices, or nothing: then the session's choices stay. They also
    stay if an earlier address arrives with a click: the browser had not received the latest choice
    yet, or a fragment of the page changed a choice since its links were drawn.
    """
    fields = address.given()
    page = urlsplit(st.context.url or "").path
    another_page = page != st.session_state.get(_PAGE)
    st.session_state[_PAGE] = page
    if another_page or not fields:
        address.forget_lost()
    if not behind():
        _under_way().clear()
    _note_going_back()
    if fields and fields != address.written() and (gone_back() or not address.is_known(fields)):
        address.take_over(fields)


def pick_one(
    name: str,
    options: Sequence[str],
    draw: Callable[..., Any],
    default: str | None = None,
    format_func: Callable[[str], str] = str,
    clears: Sequence[str] = (),
    **settings: Any,
) -> str | None:
    """Draw a single-choice widget for a field, whose value `settle_one` sets.

    draw: `st.selectbox` or any widget that takes `options`, `key`, `on_change` and `format_func`.
    clears: the fields whose choices become meaningless when another one is made here.
    """
    chosen = settle_one(name, options, default)
    if chosen is not None:
        _bind(name, chosen, options, draw, format_func, settings, clears)
    return address.one(name) if options else None


def settle_one(name: str, options: Sequence[str], default: str | None = None) -> str | None:
    """Return the chosen option, and write it into the address; an unknown choice falls back to
    `default`."""
    chosen = address.one(name)
    address.lose(name, chosen if chosen not in options else None)
    if not options:
        return None
    if chosen not in options:
        chosen = default if default in options else options[0]
    address.set_default(name, chosen)
    return chosen


def pick_several(
    name: str,
    options: Sequence[str],
    draw: Callable[..., Any],
    default: Sequence[str] = (),
    format_func: Callable[[str], str] = str,
    **settings: Any,
) -> list[str]:
    """Draw a several-choice widget for a field, whose value `settle_several` sets."""
    chosen = settle_several(name, options, default)
    # An empty choice matters only if there is a default.
    emptied: list[str] | None = [] if default else None
    _bind(name, chosen, options, draw, format_func, settings, emptied=emptied)
    return address.several(name)


def settle_several(name: str, options: Sequence[str], default: Sequence[str] = ()) -> list[str]:
    """Return the chosen ones of several options, and write them into the address; unknown choices
    are dropped.

    The default replaces a choice that was never made or is no longer possible, but not an emptied
    one.
    """
    chosen = [value for value in address.several(name) if value in options]
    unknown = [value for value in address.several(name) if value not in options]
    address.lose(name, enumerated(unknown) if unknown else None)
    if not chosen and (address.several(name) or not address.is_set(name)):
        chosen = [value for value in default if value in options]
    address.set_default(name, chosen or ([] if options and default else None))
    return chosen


def pick_free(
    name: str,
    draw: Callable[..., Any],
    read: Callable[[str | None], T],
    write: Callable[[T], str | None],
    **settings: Any,
) -> T:
    """Draw a widget for a free value, such as a text or a range.

    read: the address → the value; the address may contain anything. write: the value → the address,
        None for the default.
    """
    key = f"address.{name}"
    requested = address.one(name)
    value = read(requested)
    written = write(value)
    usual = (None, address.FIELDS.get(name))
    # A value in the address that resulted in the default could not be read.
    address.lose(name, requested if requested not in usual and written in usual else None)
    address.set_default(name, written)

    def changed() -> None:
        address.choose(name, write(st.session_state[key]))

    show(draw, key, value, changed, settings.get("options", ()))(**settings)
    return value


def show(
    draw: Callable[..., Any],
    key: str,
    value: Any,
    changed: Callable[[], None],
    options: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Return a function that draws a widget with this key and value, and takes its other arguments.

    The value is sent only if the widget does not already have it: sending would undo later changes
    by the user, such as the next press of an arrow key. Otherwise it is only the widget's initial
    value, for a widget that has reached the browser and is not ready there yet: it never receives
    the value of the previous run.
    """

    turns = _turns()

    def heard() -> None:
        with turns.lock:
            try:
                hear()
            except (RerunException, StopException):
                turns.cut_short.add(key)
                raise
            turns.cut_short.discard(key)

    def hear() -> None:
        late = behind()
        if gone_back() or (late and st.session_state[key] in _under_way().get(key, ())):
            # The user did not change it: the browser had not received the value that was sent.
            _unsent().add(key)
            return
        changed()
        if late and key in _under_way():
            # The sent value is still in transit, and would be shown.
            _unsent().add(key)
        else:
            # The widget is ready, and has the user's value.
            _unsent().discard(key)
        if not late:
            _under_way().clear()

    if key in turns.cut_short and key in st.session_state:
        heard()
        st.rerun()
    takes = inspect.signature(draw).parameters
    hears = {"on_select" if "on_select" in takes else "on_change": heard}
    again = language.changed() or key in _unsent()
    if again or key not in st.session_state or st.session_state[key] != value:
        if key in st.session_state and st.session_state[key] != value:
            _under_way().setdefault(key, []).append(st.session_state[key])
        st.session_state[key] = value
        _unsent().add(key)
        # Without a value, an empty number field would start at its minimum.
        empty = {"value": None} if value is None and "value" in takes else {}
        return functools.partial(draw, key=key, **hears, **empty)
    start = next(name for name in _STARTS if name in takes)
    begins = {start: options.index(value) if start == "index" else value}
    return functools.partial(draw, key=key, **hears, **begins)


def in_words(key: str) -> str:
    """Return the key of a select box, and send its value again after a change of language or of a
    name: the browser would continue to show the choice in the old words. For boxes that `show` does
    not draw."""
    if language.changed() and key in st.session_state:
        st.session_state[key] = st.session_state[key]
    return key


def mark_sent() -> None:
    """Mark everything as sent: the script or a fragment ran to its end. Anything drawn before a
    rerun, or before a click interrupted the script, may never have reached the browser."""
    _unsent().clear()
    _note_going_back()
    language.mark_drawn()


def behind() -> bool:
    """Return whether a click arrives with an earlier address: newer addresses and data had not
    reached the browser. Immediately after going back, the address cannot show that."""
    if time.monotonic() - st.session_state.get(_BACK, -math.inf) < _UNDER_WAY_S:
        return True
    fields = address.given()
    return fields != address.written() and address.is_known(fields)


def gone_back() -> bool:
    """Return whether the address was reached by going back, or forward again."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def _note_going_back() -> None:
    """Record the time of going back, at the beginning and at the end of a run: the result is in
    transit."""
    if gone_back():
        st.session_state[_BACK] = time.monotonic()


@dataclass(frozen=True)
class _Turns:
    """The changes of a session that are being handled, and the widgets whose change was
    interrupted."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    cut_short: set[str] = field(default_factory=set)


def _turns() -> _Turns:
    turns: _Turns = st.session_state.setdefault(_TURNS, _Turns())
    return turns


def _under_way() -> dict[str, list[Any]]:
    values: dict[str, list[Any]] = st.session_state.setdefault(_UNDER_WAY, {})
    return values


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
    emptied: list[str] | None = None,
) -> None:
    """Draw a widget that shows the choice and changes it.

    emptied: the value of the field if nothing of several is chosen.
    """
    # Without options, nothing was chosen.
    address.set_default(name, (emptied if chosen == [] else chosen) if options else None)
    key = f"address.{name}"

    def changed() -> None:
        for each in clears:
            address.choose(each, None)
        value = st.session_state[key]
        address.choose(name, emptied if value == [] else value)

    labels = text.distinct({option: format_func(option) for option in options})
    drawn = show(draw, key, chosen, changed, options)
    drawn(options=options, format_func=labels.__getitem__, **settings)
