"""Settings that describe themselves, drawn as a form and kept in the address."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.state import address, pickers
from rankdash.words.settings import Setting, key_of, options_of


def draw(settings: Sequence[Setting], numbers: Mapping[str, Sequence[float]]) -> None:
    """One selectbox a setting. numbers: setting → the numbers it offers beside its default."""
    for setting in settings:
        options = options_of(setting, numbers.get(setting.name, ()))
        if len(options) > 1:
            pickers.pick_one(
                setting.name,
                list(options),
                st.selectbox,
                default=key_of(setting.default),
                label=_(setting.title),
                help=_(setting.meaning),
                format_func=options.__getitem__,
            )


def chosen(settings: Sequence[Setting]) -> dict[str, Any]:
    """name → value for what is not at its default; what cannot be read is left out."""
    given = {setting.name: _parsed(setting, address.one(setting.name)) for setting in settings}
    for setting in settings:
        text = address.one(setting.name)
        usual = text in (None, key_of(setting.default)) or given[setting.name] is not None
        address.lose(setting.name, None if usual else text)
    return {name: value for name, value in given.items() if value is not None}


def _parsed(setting: Setting, text: str | None) -> str | float | int | bool | None:
    default = setting.default
    if text is None or text == key_of(default):
        return None
    if setting.choices:
        return text if text in setting.choices else None
    if isinstance(default, bool):
        return not default if text == key_of(not default) else None
    try:
        number = float(text)
    except ValueError:
        return None
    low, high = getattr(setting, "low", -math.inf), getattr(setting, "high", math.inf)
    # Written so that NaN is refused as well; one that cannot be must not cost the others.
    if not (math.isfinite(number) and low <= number <= high):
        return None
    return int(number) if isinstance(default, int) else number
