"""A form for any reranker or judge, drawn from the schema that it declares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st
from babel import Locale

from rankdash.core.base import names
from rankdash.core.base.i18n import enumerated, finding_text, number, paragraph, percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import language as reader_language
from rankdash.core.data.measured import TOO_MANY_UNKNOWN
from rankdash.core.rerankers import Configured, SettingSpec
from rankdash.core.rerankers.neural import packaged
from rankdash.core.rerankers.neural.known_models import fitting, known_models, misfit
from rankdash.core.words.rankings import provenance
from rankdash.kit.widgets import pickers
from rankdash.kit.widgets.text import markdown_safe

_A_ROW = 3
_LINE_PIXELS = 26
_COARSE_FROM = 100


def draw(
    kind: Configured, language: str, unknown_share: Callable[[str], float] = lambda model: math.nan
) -> dict[str, str | int | float | bool]:
    """One widget per setting, three a row and longer texts below; returns name → value.

    What suits nearly everyone as it is stays behind "More settings". language: of the queries.
    unknown_share: of the tokens of the texts, the share that a model does not know; NaN if that
    cannot be told. A model that does not read the texts is no default, and is warned of.
    """
    specs = [_fitting(spec, language, unknown_share) for spec in kind.settings]
    # What is chosen for one language is no choice for another.
    usual = language == "latin" and specs == list(kind.settings)
    place = kind.name if usual else f"{kind.name}.{language}"
    values = _rows(place, [spec for spec in specs if not spec.advanced])
    model = str(values.get("model", ""))
    _say_origin(model)
    _caution(model, language, unknown_share(model))
    advanced = [spec for spec in specs if spec.advanced]
    if advanced:
        with st.expander(_("More settings"), key=f"more.{kind.name}"):
            values |= _rows(place, advanced)
    return {spec.name: values[spec.name] for spec in kind.settings}


def _say_origin(model: str) -> None:
    known = packaged.in_use(model)
    if known is not None and (line := provenance(known.provenance)):
        st.caption(markdown_safe(line, 400))


def _caution(model: str, language: str, share: float) -> None:
    """One line about a model that does not read the texts, as far as that is known."""
    if share > TOO_MANY_UNKNOWN:
        text = _(
            "{share} of the tokens of these texts are unknown to this model, so its ranking says "
            "nothing about reranking.",
            share=percent(share),
        )
        better = fitting(model, language, lambda _model: share)
        if better != model:
            text = paragraph([text, _("Choose another, such as {better}.", better=better)])
        st.warning(markdown_safe(text, 400), icon=":material/translate:")
        return
    for warning in misfit({"model": model}, language):
        text = paragraph([finding_text(warning), _(warning.remedy, **warning.params)])
        st.warning(markdown_safe(text, 400), icon=":material/translate:")


def _fitting(
    spec: SettingSpec, language: str, unknown_share: Callable[[str], float]
) -> SettingSpec:
    if spec.name != "model":
        return spec
    return replace(spec, default=fitting(str(spec.default), language, unknown_share))


def _rows(kind: str, specs: list[SettingSpec]) -> dict[str, str | int | float | bool]:
    values: dict[str, str | int | float | bool] = {}
    short = [spec for spec in specs if spec.lines == 1]
    for start in range(0, len(short), _A_ROW):
        # A row of columns of its own, so that labels of two lines do not push the next row apart.
        for column, spec in zip(st.columns(_A_ROW), short[start : start + _A_ROW], strict=False):
            with column:
                values[spec.name] = _widget(kind, spec)
    for spec in specs:
        if spec.lines > 1:
            values[spec.name] = _long_text(kind, spec)
    return values


def _long_text(kind: str, spec: SettingSpec) -> str:
    return str(
        st.text_area(
            _(spec.title),
            str(spec.default),
            height=_LINE_PIXELS * (spec.lines + 1),
            help=_(spec.help),
            key=f"setting.{kind}.{spec.name}",
            persist_state="session",
        )
    )


def _widget(kind: str, spec: SettingSpec) -> str | int | float | bool:
    label, help_text, key = _(spec.title), _(spec.help), f"setting.{kind}.{spec.name}"
    if spec.type is bool:
        return st.checkbox(
            label, bool(spec.default), help=help_text, key=key, persist_state="session"
        )
    if spec.choices:
        options = [str(choice) for choice in spec.choices]
        titles = [_(title) for title in spec.choice_titles] or options
        shown = names.distinct(dict(zip(options, titles, strict=True)))
        chosen = st.selectbox(
            label,
            options,
            index=options.index(str(spec.default)),
            format_func=lambda choice: shown[choice],
            help=help_text,
            key=pickers.in_words(key),
            persist_state="session",
        )
        return str(chosen)
    if spec.suggestions:
        return _suggested(label, spec, key)
    if spec.type is str:
        # Not stripped: a prompt may end in a blank; the schema strips what must not.
        return str(
            st.text_input(
                label,
                str(spec.default),
                help=help_text,
                key=key,
                placeholder=None if spec.default or spec.required else _("default"),
                persist_state="session",
            )
        )
    whole = spec.type is int
    value = st.number_input(
        label,
        min_value=_bound(spec.minimum, whole),
        max_value=_bound(spec.maximum, whole),
        value=int(spec.default) if whole else float(spec.default),
        format=None if whole else "%g",
        step=None if whole else _step(spec),
        help=help_text,
        key=key,
        persist_state="session",
    )
    return int(value) if whole else float(value)


def _suggested(label: str, spec: SettingSpec, key: str) -> str:
    """A list to choose from, or to type something else into; below it what is known of a model."""
    # What is chosen comes first: to one who types it again the browser shows the whole list, and
    # Enter takes the first.
    current = st.session_state.get(key) or spec.default
    options = list(dict.fromkeys([str(current), str(spec.default), *spec.suggestions]))
    chosen = st.selectbox(
        label,
        options,
        index=options.index(str(spec.default)),
        help=_(spec.help),
        key=key,
        accept_new_options=True,
        persist_state="session",
    )
    known = next((model for model in known_models() if model.id == chosen), None)
    if known is not None:
        size = _(
            "{languages} · {millions} M parameters · {tokens} tokens",
            languages=_languages(known.languages),
            millions=number(known.parameters / 1e6, 0),
            tokens=number(known.max_length, 0),
        )
        # The licence of a packaged model is in the line on its origin.
        licence = _(
            "licence as stated on its page, to be checked there: {licence}", licence=known.licence
        )
        st.caption(_(known.purpose))
        st.caption(size if packaged.in_use(known.id) else f"{size} · {licence}")
    return str(chosen)


def _languages(codes: Sequence[str]) -> str:
    if codes == ("multi",):
        return _("many languages")
    return enumerated(Locale(code).get_display_name(reader_language()) or code for code in codes)


def _step(spec: SettingSpec) -> float:
    """What + and - change: hundredths of a share, whole seconds and dollars."""
    return 1.0 if (spec.maximum or 0) >= _COARSE_FROM else 0.01


def _bound(limit: float | None, whole: bool) -> int | float | None:
    if limit is None:
        return None
    return int(limit) if whole else float(limit)
