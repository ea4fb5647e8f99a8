"""The key that a run needs: found on the server, or typed for this run and never stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import streamlit as st

from rankdash.core.base.allowed import may_read_key
from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text
from rankdash.core.base.i18n import gettext as _
from rankdash.core.rerankers import Configured
from rankdash.core.rerankers.remote.keys import NO_KEY, Place
from rankdash.core.rerankers.settings import completed
from rankdash.kit.widgets.text import markdown_safe

# The setting that names the variable of a key, or says that there is none.
_SETTING = "key_variable"
# Session: the name of a field → what it held, as a hash, and the jobs that were given it.
_LENT = "keys.lent"
# Session: the name of a field → where its key was to be sent when it was last drawn.
_GOES = "keys.goes"
# Session: the name of a field → how often it was emptied.
_EMPTIED = "keys.emptied"

Settings = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class Found:
    """What is known of the key of a kind.

    keys:     variable → key, to hand to the worker; empty where the worker finds it by itself.
    settings: those to change for the run, where the person says that no key is needed.
    missing:  what to do before a run can start; "" where it can.
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    missing: str = ""


def draw(kind: Configured, settings: Settings, name: str, *, fixed: bool = False) -> Found:
    """Say where the key comes from, or ask for it. `name` tells two fields of a page apart.

    fixed: the settings are those of a job or a run, so that it is too late to say that no key is
        needed.
    """
    place = _place(kind, settings)
    if place is None:
        return Found()
    host = markdown_safe(place.host, 80)
    if not place.variable:
        st.caption(f":material/key_off: {_('Requests go to {host} without a key.', host=host)}")
        return Found()
    secret = _secret(place)
    if secret:
        st.caption(
            _(
                "The key comes from the secrets of this server: {name}. It is sent to {host} with "
                "each request.",
                name=place.variable,
                host=host,
            )
        )
        return Found({place.variable: secret})
    if place.in_environment:
        st.caption(
            _(
                "The key comes from the environment of this server: {name}. It is sent to {host} "
                "with each request.",
                name=place.set_variable,
                host=host,
            )
        )
        return Found()
    # A key typed for one service is not for another one.
    goes = st.session_state.setdefault(_GOES, {})
    if goes.get(name) != place and _typed(name):
        _empty(name)
    goes[name] = place
    # Of any address: nothing secret is sent by it, and a service that needs a key says so.
    tick = f"key.{name}.none"
    offered = not fixed and any(spec.name == _SETTING for spec in kind.settings)
    missing = _missing(offered, fixed)
    if offered and st.session_state.get(tick):
        found = Found(settings={_SETTING: NO_KEY})
    elif typed := _typed(name):
        found = Found({place.variable: typed})
    else:
        found = Found(missing=missing)
    _ask(place, name, tick if offered else None, missing, ready=not found.missing)
    return found


@st.fragment
def _ask(place: Place, name: str, tick: str | None, missing: str, *, ready: bool) -> None:
    """The field, the tick, and what will be sent. A fragment: every letter typed is committed.

    ready: whether a run could start when the page was drawn.
    """
    host = markdown_safe(place.host, 80)
    free = tick is not None and st.session_state.get(tick, False)
    if not free:
        st.text_input(
            _("Key of the service ({name})", name=place.variable)
            if place.allowed
            else _("Key of the service, where it asks for one"),
            type="password",
            autocomplete="off",
            key=_key(name),
            # Not only when the field is left: the Tab key goes from it to the button that shows
            # the key, which Streamlit takes for a part of the field, and what was typed is lost.
            live="0ms",
            help=_(
                "The key stays in memory until this run ends. It is never stored, logged or "
                "exported. Then the field is empty again; another run or a resume needs the key "
                "again. So does another service or address."
            ),
        )
    if tick is not None:
        st.checkbox(
            _("No key needed"),
            key=tick,
            persist_state="session",
            help=_(
                "For a service that needs no key, such as TEI or vLLM on your own machine. "
                "Requests are then sent without a key."
            ),
        )
    if free:
        without = _("Requests go to {host} without a key.", host=host)
        st.caption(f":material/key_off: {without}")
    elif _typed(name):
        received = _("Key received. It is sent to {host} with each request.", host=host)
        st.caption(f":material/check: {received}")
    else:
        st.caption(missing)
    if ready != bool(free or _typed(name)):
        # A refusal for want of a key may stand on the page.
        st.rerun(scope="app")


def lend(name: str, job_id: str) -> None:
    """The key of a field was given to a job."""
    lent = st.session_state.setdefault(_LENT, {})
    jobs = lent.get(name, (0, frozenset()))[1]
    lent[name] = hash(_typed(name)), jobs | {job_id}


def clear(live: Collection[str]) -> None:
    """Empty the fields whose key none of the jobs needs that are still `live`. Call it before the
    fields are drawn. What was typed since for another run stays."""
    lent = st.session_state.get(_LENT, {})
    for name, (typed, jobs) in list(lent.items()):
        if jobs.isdisjoint(live):
            del lent[name]
            if _typed(name) and hash(_typed(name)) == typed:
                _empty(name)


def _empty(name: str) -> None:
    st.session_state.pop(_key(name), None)
    # Another field: a browser that does not know yet says the key of this one again.
    st.session_state.setdefault(_EMPTIED, Counter())[name] += 1


def _key(name: str) -> str:
    return f"key.{name}.{st.session_state.get(_EMPTIED, Counter())[name]}"


def _typed(name: str) -> str:
    return str(st.session_state.get(_key(name), "")).strip()


def _missing(offered: bool, fixed: bool) -> str:
    if offered:
        return _("No key yet. Type it, or tick that no key is needed.")
    if fixed:
        return _("No key yet. Type it.")
    return _(
        "No key yet. Type it, or write key_variable=none into the settings of the stage whose "
        "service needs no key."
    )


def _place(kind: Configured, settings: Settings) -> Place | None:
    if kind.key is None:
        return None
    try:
        # Those of a job, a run or a judge may be of another version.
        return kind.key(completed(kind.settings, settings))
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 300), icon=":material/error:")
        return None


def _secret(place: Place) -> str:
    """From secrets.toml. The worker, which began before the file was read, has to be given it."""
    readable = place.allowed and may_read_key(place.variable)
    if not readable or not st.secrets.load_if_toml_exists():
        return ""
    value = st.secrets.get(place.variable, "")
    return value.strip() if isinstance(value, str) else ""
