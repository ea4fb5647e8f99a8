"""Widgets that show what is chosen and choose it, for a browser that lags behind.

A click comes with the address, and with the widgets' values, as the browser last heard of them. It
may not have heard yet of what was chosen a moment ago; and what a run of the script sent is lost
where a rerun or another click cut that run short.

The address that comes with a run (`restore`):

=================================  =========  ====================================================
what comes                         state      what is done
=================================  =========  ====================================================
nothing, or what was written last  in step    the choices stand; what was sent has arrived
one of before, by a click          behind     the choices stand; what was sent is still under way
one of before, by going back       gone back  it is chosen; for 5 s the browser counts as behind
one that was never here            followed   it is chosen
=================================  =========  ====================================================

A widget (`show`), which begins as unsent:

========  ================================  =====================================================
state     what happens                      what is done, and the next state
========  ================================  =====================================================
unsent    it is drawn                       its value is sent; unsent
any       the script ends (`shown`)         settled
settled   it is drawn where it stands       nothing is sent, it only starts there; settled
settled   it is drawn elsewhere             its value is sent, the old one noted; unsent, under way
any       it is drawn in other words        its value is sent: the browser shows old words; unsent
any       a person moves it, in step        that is chosen; settled, and nothing is under way
any       it reports a noted value, behind  nothing: nobody moved it; unsent
under w.  a person moves it, behind         that is chosen; unsent, as what was sent is yet to come
any       it reports, gone back             nothing: the address says more; unsent
========  ================================  =====================================================

A click that comes while the one before is being handled ends that run of the script wherever it
stands, and is handled beside it in another thread. So changes are heard one at a time, the older
first, and one that was cut short is heard when the widget is next drawn.
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

# The page of the run before.
_PAGE = "address.page"
# The widgets that were put to a value in a run of the script that has not ended.
_UNSENT = "address.unsent"
# Widget → where it stood when it was put elsewhere, until the browser is known to have heard of it.
_UNDER_WAY = "address.sent"
# Who hears what was changed, one at a time.
_TURNS = "address.turns"
# When what going back or forward shows was last sent, and how long it may be under way.
_BACK = "address.back"
_UNDER_WAY_S = 5.0
# What a widget calls the value that it starts at.
_STARTS = ("index", "selection_default", "default", "value")

T = TypeVar("T")


def restore() -> None:
    """Take over what the address says when it was typed, followed, or reached by going back.

    The link of a page carries the choices, or nothing: then the session's choices stand. So they do
    where an address of before comes with a click: the browser had not heard yet of what was chosen
    a moment ago, or a fragment of the page changed a choice since its links were drawn.
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
    """Draw a single-choice widget for a field, which is settled by `settle_one`.

    draw: `st.selectbox` or any widget that takes `options`, `key`, `on_change` and `format_func`.
    clears: the fields whose choices say nothing once another one is made here.
    """
    chosen = settle_one(name, options, default)
    if chosen is not None:
        _bind(name, chosen, options, draw, format_func, settings, clears)
    return address.one(name) if options else None


def settle_one(name: str, options: Sequence[str], default: str | None = None) -> str | None:
    """Return what is chosen of the options, and put it into the address; an unknown choice falls
    back to `default`."""
    chosen = address.one(name)
    address.lose(name, chosen if chosen not in options else None)
    if not options:
        return None
    if chosen not in options:
        chosen = default if default in options else options[0]
    address.settle(name, chosen)
    return chosen


def pick_several(
    name: str,
    options: Sequence[str],
    draw: Callable[..., Any],
    default: Sequence[str] = (),
    format_func: Callable[[str], str] = str,
    **settings: Any,
) -> list[str]:
    """Draw a several-choice widget for a field, which is settled by `settle_several`."""
    chosen = settle_several(name, options, default)
    # An empty choice says something only if something is chosen by default.
    emptied: list[str] | None = [] if default else None
    _bind(name, chosen, options, draw, format_func, settings, emptied=emptied)
    return address.several(name)


def settle_several(name: str, options: Sequence[str], default: Sequence[str] = ()) -> list[str]:
    """Return what is chosen of several options, and put it into the address; unknown choices are
    dropped.

    The default stands in for a choice never made or no longer possible, not for one emptied.
    """
    chosen = [value for value in address.several(name) if value in options]
    unknown = [value for value in address.several(name) if value not in options]
    address.lose(name, enumerated(unknown) if unknown else None)
    if not chosen and (address.several(name) or not address.is_set(name)):
        chosen = [value for value in default if value in options]
    address.settle(name, chosen or ([] if options and default else None))
    return chosen


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
    requested = address.one(name)
    value = read(requested)
    written = write(value)
    usual = (None, address.FIELDS.get(name))
    # What was given and comes to the usual all the same could not be read.
    address.lose(name, requested if requested not in usual and written in usual else None)
    address.settle(name, written)

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
    """Draw a widget of that key at a value; further settings are given to what is returned.

    The value is sent only where the widget does not stand there anyway: what is sent takes back
    what a person has changed since, such as the next press of an arrow key. Otherwise it is what
    the widget starts at, for one that has come to the browser and is not ready there yet: it never
    learns what the run before sent.
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
            # Nobody moved it: the browser had not heard yet of what it was put to.
            _unsent().add(key)
            return
        changed()
        if late and key in _under_way():
            # What it was put to is still under way, and would be shown.
            _unsent().add(key)
        else:
            # It is ready, then, and stands where the person put it.
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
        # An empty field of numbers starts at its least one where nothing is said.
        empty = {"value": None} if value is None and "value" in takes else {}
        return functools.partial(draw, key=key, **hears, **empty)
    start = next(name for name in _STARTS if name in takes)
    begins = {start: options.index(value) if start == "index" else value}
    return functools.partial(draw, key=key, **hears, **begins)


def in_words(key: str) -> str:
    """The key of a list of choices that `show` does not draw. After a change of language, or of a
    name, its value is sent anew: the browser keeps showing a choice in the words that it was
    sent."""
    if language.changed() and key in st.session_state:
        st.session_state[key] = st.session_state[key]
    return key


def shown() -> None:
    """The script or a fragment ran to its end, so the browser has what it was sent. What was drawn
    before a rerun, or before a click cut the script short, may never have reached it."""
    _unsent().clear()
    _note_going_back()
    language.shown()


def behind() -> bool:
    """Whether a click comes with an address of before: what was written since, and what was sent
    before that, had not reached the browser. Right after going back the address cannot tell."""
    if time.monotonic() - st.session_state.get(_BACK, -math.inf) < _UNDER_WAY_S:
        return True
    fields = address.given()
    return fields != address.written() and address.is_known(fields)


def gone_back() -> bool:
    """Whether the address was reached by going back, or forward again."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def _note_going_back() -> None:
    """What the person went back to is on its way: as a run begins, and again as it ends."""
    if gone_back():
        st.session_state[_BACK] = time.monotonic()


@dataclass(frozen=True)
class _Turns:
    """The changes of a session that are heard, and the widgets at which one was cut short."""

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
    """Draw a widget that shows the choice and, when it is used, becomes the choice.

    emptied: the value of the field if nothing of several is chosen.
    """
    # Where there is nothing to choose from, nothing was chosen.
    address.settle(name, (emptied if chosen == [] else chosen) if options else None)
    key = f"address.{name}"

    def changed() -> None:
        for each in clears:
            address.choose(each, None)
        value = st.session_state[key]
        address.choose(name, emptied if value == [] else value)

    labels = text.distinct({option: format_func(option) for option in options})
    drawn = show(draw, key, chosen, changed, options)
    drawn(options=options, format_func=labels.__getitem__, **settings)
