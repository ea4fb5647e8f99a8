"""A form for any reranker, drawn from the schema that the reranker declares."""

from __future__ import annotations

import streamlit as st

from rankdash.rerankers import RerankerKind, SettingSpec
from rankdash.ui.i18n import gettext as _


def draw(kind: RerankerKind) -> dict[str, str | int | float | bool]:
    """One widget per setting, three a row; returns name → value."""
    values: dict[str, str | int | float | bool] = {}
    columns = st.columns(3)
    for position, spec in enumerate(kind.settings):
        with columns[position % 3]:
            values[spec.name] = _widget(kind.name, spec)
    return values


def _widget(kind: str, spec: SettingSpec) -> str | int | float | bool:
    label, help_text, key = _(spec.title), _(spec.help), f"setting.{kind}.{spec.name}"
    if spec.type is bool:
        return st.checkbox(
            label, bool(spec.default), help=help_text, key=key, persist_state="session"
        )
    if spec.choices:
        options = [str(choice) for choice in spec.choices]
        chosen = st.selectbox(
            label,
            options,
            index=options.index(str(spec.default)),
            help=help_text,
            key=key,
            persist_state="session",
        )
        return str(chosen)
    if spec.type is str:
        # Not stripped: a prompt may end in a blank; the schema strips what must not.
        return str(
            st.text_input(
                label, str(spec.default), help=help_text, key=key, persist_state="session"
            )
        )
    whole = spec.type is int
    value = st.number_input(
        label,
        min_value=_bound(spec.minimum, whole),
        max_value=_bound(spec.maximum, whole),
        value=int(spec.default) if whole else float(spec.default),
        help=help_text,
        key=key,
        persist_state="session",
    )
    return int(value) if whole else float(value)


def _bound(limit: float | None, whole: bool) -> int | float | None:
    if limit is None:
        return None
    return int(limit) if whole else float(limit)
