"""Settings that describe themselves, drawn as a form and kept in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from rankdash.errors import RankdashError
from rankdash.i18n import gettext as _
from rankdash.settings import Setting
from rankdash.ui.state import address, pickers
from rankdash.words.settings import key_of, options_of


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
    values = {}
    for setting in settings:
        text = address.one(setting.name)
        lost = None
        if text not in (None, key_of(setting.default)):
            try:
                values[setting.name] = setting.parse(text)
            except RankdashError:
                lost = text
        address.lose(setting.name, lost)
    return values
