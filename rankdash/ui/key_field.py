"""The key that a run needs: found on the server, or typed for this run and never stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from rankdash.errors import RankdashError
from rankdash.i18n import error_text
from rankdash.i18n import gettext as _
from rankdash.rerankers import RerankerKind
from rankdash.rerankers.keys import Place
from rankdash.ui.text import markdown_safe


@dataclass(frozen=True)
class Found:
    """What is known of the key of a kind.

    keys:    variable → key, to hand to the worker; empty where the worker finds it by itself.
    missing: whether a run would fail for want of it.
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    missing: bool = False


def draw(kind: RerankerKind, settings: Mapping[str, str | int | float | bool], name: str) -> Found:
    """Say where the key comes from, or ask for it. `name` tells two fields of a page apart."""
    place = _place(kind, settings)
    if place is None or not place.variable:
        return Found()
    secret = _secret(place)
    if secret:
        st.caption(_("The key comes from the secrets of this server: {name}.", name=place.variable))
        return Found({place.variable: secret})
    if place.in_environment:
        st.caption(
            _("The key comes from the environment of this server: {name}.", name=place.variable)
        )
        return Found()
    typed = st.text_input(
        _("Key of the service ({name})", name=place.variable)
        if place.required
        else _("Key of the service, where it asks for one"),
        type="password",
        autocomplete="off",
        key=f"key.{name}",
        help=_(
            "Kept in memory until this run is done: never stored, never in a log or an export. "
            "After a restart it is asked for again."
        ),
    ).strip()
    if typed:
        return Found({place.variable: typed})
    return Found(missing=place.required)


def _place(kind: RerankerKind, settings: Mapping[str, str | int | float | bool]) -> Place | None:
    if kind.key is None:
        return None
    try:
        return kind.key(settings)
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 300), icon=":material/error:")
        return None


def _secret(place: Place) -> str:
    """From secrets.toml. The worker, which began before the file was read, has to be given it."""
    if not place.allowed or not st.secrets.load_if_toml_exists():
        return ""
    value = st.secrets.get(place.variable, "")
    return value.strip() if isinstance(value, str) else ""
