"""Variants of a run: one reranker with several values of its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text, ngettext, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.rerankers import (
    RerankerKind,
    SettingSpec,
    SettingValue,
)
from rankdash.core.runs.plan import DEPTH, Variant, variants
from rankdash.kit.widgets import pickers, settings_form
from rankdash.kit.widgets.text import markdown_safe

_LONGEST = 200


def draw_variants(
    kind: RerankerKind, settings: Mapping[str, SettingValue], depth: int | None
) -> tuple[Variant, ...]:
    """Draw the choice of variants. Return one run if nothing varies; show an error and return none
    if the values cannot be run."""
    specs = {spec.name: spec for spec in kind.settings if _varies(spec)}
    titles = {
        DEPTH: _p("setting", "Depth"),
        **{name: _p("setting", spec.title) for name, spec in specs.items()},
    }
    with st.expander(
        _p("heading", "Variants"), icon=":material/account_tree:", key=f"variants.{kind.name}"
    ):
        chosen = st.multiselect(
            _("Run once for each value of"),
            list(titles),
            format_func=titles.__getitem__,
            placeholder=_("nothing: one run, as set above"),
            key=pickers.in_words(f"variants.{kind.name}.names"),
            persist_state="session",
            help=_(
                "Every combination becomes a separate run; all start together. Compare them on "
                "Overview to see how much quality a cheaper setting loses."
            ),
        )
        varied = {name: _values(kind.name, name, titles[name], specs.get(name)) for name in chosen}
        try:
            # A setting without a value does not vary yet.
            combinations = variants(
                kind.settings,
                settings,
                depth,
                {name: each for name, each in varied.items() if each},
            )
        except RankdashError as error:
            st.error(markdown_safe(error_text(error), 500), icon=":material/error:")
            return ()
        if len(combinations) > 1:
            st.caption(ngettext("{n} variant", "{n} variants", len(combinations)))
    return combinations


def variant_words(kind: RerankerKind, variant: Variant) -> list[str]:
    """Return the settings of a variant that vary, in words."""
    titles = {spec.name: _p("setting", spec.title) for spec in kind.settings}
    return [
        _("top {n}", n=value) if name == DEPTH else f"{titles[name]} {_shown(value)}"
        for name, value in variant.differs
    ]


def _shown(value: SettingValue) -> str:
    if isinstance(value, bool):
        return _p("answer", "yes") if value else _p("answer", "no")
    return value if isinstance(value, str) else number(value, 0 if value == int(value) else 3)


def _varies(spec: SettingSpec) -> bool:
    """Return True if variants may differ in a setting. Names of models and addresses are excluded:
    another one is another reranker."""
    return bool(spec.choices) or spec.type is not str


def _values(kind: str, name: str, title: str, spec: SettingSpec | None) -> Sequence[SettingValue]:
    key = f"variants.{kind}.{name}"
    if spec is not None and (spec.choices or spec.type is bool):
        options = [*spec.choices] or ["true", "false"]
        shown = {
            "true": _p("answer", "yes"),
            "false": _p("answer", "no"),
        } | settings_form.choice_titles(spec)
        return st.multiselect(
            title,
            options,
            default=options if spec.type is bool else [],
            format_func=shown.__getitem__,
            key=pickers.in_words(key),
            persist_state="session",
        )
    typed = st.text_input(
        title,
        placeholder=_("values separated by commas, such as 20, 50, 100"),
        max_chars=_LONGEST,
        key=key,
        persist_state="session",
    )
    return [value for value in re.split(r"[,，;；、\s]+", typed) if value]
