"""The conventions in force: drawn from the schema that the metrics declare, kept in the address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from rankdash.metrics import CONVENTION_SETTINGS, Conventions, ConventionSetting
from rankdash.ui import address
from rankdash.ui.i18n import gettext as _

_FROM_LABELS = "auto"


def draw(labels: Sequence[float]) -> None:
    """One widget per convention. labels: the labels above 0 that the data set uses."""
    with st.expander(_("Rules"), icon=":material/rule:"):
        for setting in CONVENTION_SETTINGS:
            options = _options(setting, labels)
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


def conventions() -> Conventions:
    """The conventions of the address; what cannot be is left at its default."""
    given: dict[str, Any] = {}
    for setting in CONVENTION_SETTINGS:
        text = address.one(setting.name)
        if text is None or text == _key(setting.default):
            continue
        if setting.choices:
            given.update({setting.name: text} if text in setting.choices else {})
        elif isinstance(setting.default, bool):
            given[setting.name] = text == _key(not setting.default)
        else:
            number = _positive(text)
            given.update({setting.name: number} if number else {})
    return Conventions(**given)


def in_words(rules: Conventions) -> list[tuple[str, str]]:
    """(title, what holds) for every convention."""
    said = []
    for setting in CONVENTION_SETTINGS:
        value = getattr(rules, setting.name)
        said.append((_(setting.title), _options(setting, [value])[_key(value)]))
    return said


def _options(setting: ConventionSetting, labels: Sequence[float | None]) -> dict[str, str]:
    """Value as written in the address → words."""
    if setting.choices:
        return {value: _(meaning) for value, meaning in setting.choices.items()}
    if isinstance(setting.default, bool):
        return {_key(False): _("no"), _key(True): _("yes")}
    numbers = sorted({label for label in (setting.default, *labels) if isinstance(label, float)})
    words = {_key(number): _key(number) for number in numbers}
    return words if setting.default else {_FROM_LABELS: _("taken from the labels"), **words}


def _key(value: object) -> str:
    if value is None:
        return _FROM_LABELS
    return f"{value:g}" if isinstance(value, float) else str(value)


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < 1e6 else None


# What goes without saying is left out of the address; it never depends on the data.
address.FIELDS.update({setting.name: _key(setting.default) for setting in CONVENTION_SETTINGS})
