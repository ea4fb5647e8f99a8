"""Settings that describe themselves, drawn as a form and kept in the address."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui import address

_BY_ITSELF = "auto"


class Setting(Protocol):
    """What a convention and a statistics setting have in common."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def meaning(self) -> str: ...
    @property
    def choices(self) -> Mapping[str, str]: ...
    @property
    def default(self) -> str | float | int | bool | None: ...


def register(settings: Sequence[Setting]) -> None:
    """Give the settings a field in the address, left out there while it holds the default."""
    address.FIELDS.update({setting.name: _key(setting.default) for setting in settings})


def draw(settings: Sequence[Setting], numbers: Mapping[str, Sequence[float]]) -> None:
    """One selectbox a setting. numbers: setting → the numbers it offers beside its default."""
    for setting in settings:
        options = _options(setting, numbers.get(setting.name, ()))
        if len(options) > 1:
            address.pick_one(
                setting.name,
                list(options),
                st.selectbox,
                default=_key(setting.default),
                label=_(setting.title),
                help=_(setting.meaning),
                format_func=options.__getitem__,
            )


def chosen(settings: Sequence[Setting]) -> dict[str, Any]:
    """name → value for what is not at its default; what cannot be read is left out."""
    given = {setting.name: _parsed(setting, address.one(setting.name)) for setting in settings}
    return {name: value for name, value in given.items() if value is not None}


def in_words(settings: Sequence[Setting], values: object) -> list[tuple[str, str]]:
    """(title, what holds) for every setting; values: an object with the settings as attributes."""
    said = []
    for setting in settings:
        value = getattr(values, setting.name)
        said.append((_(setting.title), _options(setting, (value,))[_key(value)]))
    return said


def _options(setting: Setting, numbers: Sequence[float | None]) -> dict[str, str]:
    """Value as written in the address → words."""
    default = setting.default
    if setting.choices:
        return {value: _(meaning) for value, meaning in setting.choices.items()}
    if isinstance(default, bool):
        return {_key(False): _("no"), _key(True): _("yes")}
    known = {value for value in (default, *numbers) if isinstance(value, (int, float))}
    words = {_key(value): _key(value) for value in sorted(known)}
    return {_BY_ITSELF: _("taken from the labels"), **words} if default is None else words


def _key(value: object) -> str:
    if value is None:
        return _BY_ITSELF
    return f"{value:g}" if isinstance(value, float) else str(value)


def _parsed(setting: Setting, text: str | None) -> str | float | int | bool | None:
    default = setting.default
    if text is None or text == _key(default):
        return None
    if setting.choices:
        return text if text in setting.choices else None
    if isinstance(default, bool):
        return not default if text == _key(not default) else None
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return int(number) if isinstance(default, int) else number
