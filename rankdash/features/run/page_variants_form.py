"""One reranker with several values of its settings: what varies, and the runs that come of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text, ngettext, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.rerankers import RerankerKind, SettingSpec, SettingValue
from rankdash.core.runs.variants import DEPTH, Variant, variants
from rankdash.kit.widgets import pickers
from rankdash.kit.widgets.text import markdown_safe

_LONGEST = 200


def draw(
    kind: RerankerKind, settings: Mapping[str, SettingValue], depth: int | None
) -> tuple[Variant, ...]:
    """The variants that are asked for: one, as set, where nothing varies; none where what was typed
    cannot be run, which is said."""
    specs = {spec.name: spec for spec in kind.settings if _varies(spec)}
    titles = {DEPTH: _("Depth"), **{name: _(spec.title) for name, spec in specs.items()}}
    with st.expander(_("Variants"), icon=":material/account_tree:", key=f"variants.{kind.name}"):
        chosen = st.multiselect(
            _("Run it once for each value of"),
            list(titles),
            format_func=titles.__getitem__,
            placeholder=_("nothing: one run, as set above"),
            key=pickers.in_words(f"variants.{kind.name}.names"),
            persist_state="session",
            help=_(
                "Every combination becomes a run of its own; all start together. Compare them on "
                "Overview: how much quality does a cheaper setting lose?"
            ),
        )
        varied = {name: _values(kind.name, name, titles[name], specs.get(name)) for name in chosen}
        try:
            # What has no value yet is not asked for yet.
            found = variants(
                kind.settings,
                settings,
                depth,
                {name: each for name, each in varied.items() if each},
            )
        except RankdashError as error:
            st.error(markdown_safe(error_text(error), 500), icon=":material/error:")
            return ()
        if len(found) > 1:
            st.caption(ngettext("{n} variant", "{n} variants", len(found)))
    return found


def words(kind: RerankerKind, variant: Variant) -> list[str]:
    """What a variant has of its own, a piece for each setting that varies."""
    titles = {spec.name: _(spec.title) for spec in kind.settings}
    return [
        _("top {n}", n=value) if name == DEPTH else f"{titles[name]} {_shown(value)}"
        for name, value in variant.differs
    ]


def _shown(value: SettingValue) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return value if isinstance(value, str) else number(value, 0 if value == int(value) else 3)


def _varies(spec: SettingSpec) -> bool:
    """Not what names a model or an address: another one is another reranker."""
    return bool(spec.choices) or spec.type is not str


def _values(kind: str, name: str, title: str, spec: SettingSpec | None) -> Sequence[SettingValue]:
    key = f"variants.{kind}.{name}"
    if spec is not None and (spec.choices or spec.type is bool):
        options = [*spec.choices] or ["true", "false"]
        shown = {"true": _("yes"), "false": _("no")} if spec.type is bool else {}
        named = dict(zip(spec.choices, map(_, spec.choice_titles), strict=False))
        return st.multiselect(
            title,
            options,
            default=options if spec.type is bool else [],
            format_func=lambda option: shown.get(option) or named.get(option) or option,
            key=pickers.in_words(key),
            persist_state="session",
        )
    typed = st.text_input(
        title,
        placeholder=_("values with commas between, such as 20, 50, 100"),
        max_chars=_LONGEST,
        key=key,
        persist_state="session",
    )
    return [value for value in re.split(r"[,，;；、\s]+", typed) if value]
