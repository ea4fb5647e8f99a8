"""A form for any reranker or judge, drawn from its schema of settings, with its API key; and the
forms of the evaluation settings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from rankdash.core.base import text as base_text
from rankdash.core.base.allowed import may_read_key
from rankdash.core.base.errors import RankdashError, SpecError
from rankdash.core.base.i18n import (
    error_text,
    finding_text,
    number,
    paragraph,
    percent,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import (
    CONVENTION_PRESETS,
    PRESET_SETTINGS,
    RULE_OF_THUMB,
    STATISTICS_SETTINGS,
    Setting,
    StatisticsSettings,
    completed,
    preset_of,
)
from rankdash.core.data.measured import TOO_MANY_UNKNOWN
from rankdash.core.metrics import CONVENTION_SETTINGS, Conventions
from rankdash.core.rerankers import Configured, SettingSpec
from rankdash.core.rerankers.catalogue import known
from rankdash.core.rerankers.neural import packaged
from rankdash.core.rerankers.neural.packaged import fitting, misfit
from rankdash.core.rerankers.remote.connection import NO_KEY, Place
from rankdash.core.words.methods import key_of, options_of
from rankdash.core.words.queries import languages, licence_of, provenance
from rankdash.kit.widgets import address, pickers
from rankdash.kit.widgets.text import markdown_safe

_A_ROW = 3
_LINE_PIXELS = 26
_COARSE_FROM = 100


Settings = Mapping[str, str | int | float | bool]


def draw(
    kind: Configured,
    language: str,
    unknown_share: Callable[[str], float] = lambda model: math.nan,
    implied: Callable[[Settings], Mapping[str, str]] = lambda settings: {},
) -> dict[str, str | int | float | bool]:
    """Draw one widget per setting, three per row, with longer texts below; return name → value.

    Advanced settings are under "More settings". language: of the queries. unknown_share: returns
    the share of the texts' tokens that a model does not know; NaN if unknown. A model that does not
    support the language is never the default, and shows a warning.
    """
    specs, place = _placed(kind, language, unknown_share)
    values = _rows(place, [spec for spec in specs if not spec.advanced], {}, implied)
    model = str(values.get("model", ""))
    _draw_origin(model)
    _caution(model, language, unknown_share(model))
    advanced = [spec for spec in specs if spec.advanced]
    if advanced:
        with st.expander(_("More settings"), key=f"more.{kind.name}"):
            values = _rows(place, advanced, values, implied)
    return {spec.name: values[spec.name] for spec in kind.settings}


def _placed(
    kind: Configured, language: str, unknown_share: Callable[[str], float]
) -> tuple[list[SettingSpec], str]:
    """Return the settings with a default model that supports the texts, and the name of the form:
    choices for one language do not apply to another one."""
    specs = [_fitting(spec, language, unknown_share) for spec in kind.settings]
    usual = language == "latin" and specs == list(kind.settings)
    return specs, kind.name if usual else f"{kind.name}.{language}"


def choose_model(
    kind: Configured,
    language: str,
    unknown_share: Callable[[str], float],
    settings: Mapping[str, str],
) -> None:
    """Set the model of a form, and for a service its dialect, before the form is drawn again."""
    _specs, place = _placed(kind, language, unknown_share)
    for name, value in settings.items():
        key = f"setting.{place}.{name}"
        listed = any(spec.name == name and spec.choices for spec in kind.settings)
        st.session_state[pickers.in_words(key) if listed else key] = value


def _draw_origin(model: str) -> None:
    model_card = packaged.in_use(model)
    if model_card is not None and (line := provenance(model_card.provenance)):
        st.caption(markdown_safe(line, 400))


def _caution(model: str, language: str, share: float) -> None:
    """Draw a warning about a model that does not support the texts, if that is known."""
    if share > TOO_MANY_UNKNOWN:
        text = _(
            "{share} of the tokens of these texts are unknown to this model, so its ranking is "
            "meaningless.",
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


def _rows(
    kind: str,
    specs: list[SettingSpec],
    above: Settings,
    implied: Callable[[Settings], Mapping[str, str]],
) -> dict[str, str | int | float | bool]:
    """Draw the settings and return their values together with the values `above`."""
    values = {**above}
    short = [spec for spec in specs if spec.lines == 1]
    for start in range(0, len(short), _A_ROW):
        # A separate row of columns, so that labels of two lines do not push the next row apart.
        for column, spec in zip(st.columns(_A_ROW), short[start : start + _A_ROW], strict=False):
            with column:
                values[spec.name] = _widget(kind, spec, implied(values).get(spec.name, ""))
    for spec in specs:
        if spec.lines > 1:
            values[spec.name] = _long_text(kind, spec)
    return values


def _long_text(kind: str, spec: SettingSpec) -> str:
    return str(
        st.text_area(
            _p("setting", spec.title),
            str(spec.default),
            height=_LINE_PIXELS * (spec.lines + 1),
            help=_(spec.help),
            key=f"setting.{kind}.{spec.name}",
            persist_state="session",
        )
    )


def _widget(kind: str, spec: SettingSpec, implied: str) -> str | int | float | bool:
    label, help_text, key = _p("setting", spec.title), _(spec.help), f"setting.{kind}.{spec.name}"
    if spec.type is bool:
        return st.checkbox(
            label, bool(spec.default), help=help_text, key=key, persist_state="session"
        )
    if spec.choices:
        options, shown = list(spec.choices), base_text.distinct(choice_titles(spec))
        chosen = st.selectbox(
            label,
            options,
            index=options.index(str(spec.default)),
            format_func=shown.__getitem__,
            help=help_text,
            key=pickers.in_words(key),
            persist_state="session",
        )
        return str(chosen)
    if spec.suggestions:
        return _suggested(label, spec, key)
    if spec.type is str:
        # Not stripped: a prompt may end in a blank; the schema strips other texts.
        return str(
            st.text_input(
                label,
                str(spec.default),
                help=help_text,
                key=key,
                placeholder=implied
                or (None if spec.default or spec.required else _p("choice", "default")),
                persist_state="session",
            )
        )
    whole = spec.type is int
    value = st.number_input(
        label,
        min_value=_bound(spec.least, whole),
        max_value=_bound(spec.most, whole),
        value=int(spec.default) if whole else float(spec.default),
        format=None if whole else "%g",
        step=None if whole else _step(spec),
        help=help_text,
        key=key,
        persist_state="session",
    )
    return int(value) if whole else float(value)


def choice_titles(spec: SettingSpec) -> dict[str, str]:
    """Return choice → its title in a form."""
    by_itself = {"auto": _p("choice", "auto")}
    titles = {
        value: _p("choice", title) if title != value else by_itself.get(value, value)
        for value, title in spec.words.items()
    }
    # A cascade chooses among rerankers.
    return {value: _p("reranker", title) for value, title in titles.items()}


def _suggested(label: str, spec: SettingSpec, key: str) -> str:
    """Draw a list with the option to type another value, and the details of a known model below
    it."""
    # The chosen value is first: the browser shows the whole list to a user who types it again, and
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
    model_card = known(str(chosen))
    if model_card is not None:
        facts = [
            languages(model_card.languages),
            _("{millions} M parameters", millions=number(model_card.size / 1e6, 0)),
        ]
        if model_card.max_length:
            facts.append(_("{tokens} tokens", tokens=number(model_card.max_length, 0)))
        # The line on the origin of a packaged model contains its licence.
        if not packaged.in_use(model_card.id):
            facts.append(
                _(
                    "licence according to the model page (please check): {licence}",
                    licence=licence_of(model_card),
                )
            )
        st.caption(_(model_card.purpose))
        st.caption(" · ".join(facts))
    return str(chosen)


def _step(spec: SettingSpec) -> float:
    """Return the step of the + and - buttons: hundredths of a share, whole seconds and dollars."""
    return 1.0 if _COARSE_FROM <= spec.most < math.inf else 0.01


def _bound(limit: float, whole: bool) -> int | float | None:
    if math.isinf(limit):
        return None
    return int(limit) if whole else float(limit)


# The API key of a run: from the server, or typed for this run and never stored.

# The setting with the name of a key variable, or "none".
_SETTING = "key_variable"
# Session: the name of a field → a hash of its key, and the jobs that use it.
_LENT = "keys.lent"
# Session: the name of a field → the service of its key when it was last drawn.
_GOES = "keys.goes"
# Session: the name of a field → how often it was cleared.
_EMPTIED = "keys.emptied"


@dataclass(frozen=True)
class Found:
    """API key for a rerank service, as found or entered.

    keys: variable → key, for the worker; empty if the worker finds it itself.
    settings: to change for the run, if the user ticked that no key is needed.
    missing: what to do before a run can start; "" if it can start.
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    missing: str = ""


def draw_key_field(
    kind: Configured, settings: Settings, name: str, *, fixed: bool = False
) -> Found:
    """Show the source of the key, or a field for it. `name` distinguishes two fields of a page.

    fixed: whether the settings belong to an existing job or run, so that "no key needed" cannot be
        chosen.
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
    # A key for one service must not be sent to another one.
    goes = st.session_state.setdefault(_GOES, {})
    if goes.get(name) != place and _typed(name):
        _empty(name)
    goes[name] = place
    # Offered for any address: without a key nothing secret is sent, and a service that needs a key
    # reports it.
    tick = f"key.{name}.none"
    offered = not fixed and any(spec.name == _SETTING for spec in kind.settings)
    missing = _missing(offered, fixed)
    if offered and st.session_state.get(tick):
        entry = Found(settings={_SETTING: NO_KEY})
    elif typed := _typed(name):
        entry = Found({place.variable: typed})
    else:
        entry = Found(missing=missing)
    _draw_field(place, name, tick if offered else None, missing, ready=not entry.missing)
    return entry


@st.fragment
def _draw_field(place: Place, name: str, tick: str | None, missing: str, *, ready: bool) -> None:
    """Draw the field for an API key, the checkbox “No key needed”, and a caption about the key and
    its recipient. A fragment: every typed letter is committed.

    tick: the session key of the checkbox; None without a checkbox. missing: the caption without a
    key. ready: whether a run could start when the page was drawn.
    """
    host = markdown_safe(place.host, 80)
    free = tick is not None and st.session_state.get(tick, False)
    if not free:
        st.text_input(
            _("Key of the service ({name})", name=place.variable)
            if place.allowed
            else _("Key of the service, if it needs one"),
            type="password",
            autocomplete="off",
            key=_key(name),
            # Not only on leaving the field: the Tab key moves to the button that shows the key,
            # which Streamlit treats as part of the field, and the typed text would be lost.
            live="0ms",
            help=_(
                "The key stays in memory until this run ends. It is never stored, logged or "
                "exported. Enter it again for another run, a resumed run, or another service or "
                "address."
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
        # The page may show an error about a missing key.
        st.rerun(scope="app")


def lend(name: str, job_id: str) -> None:
    """Record that a job uses the key of a field."""
    lent = st.session_state.setdefault(_LENT, {})
    jobs = lent.get(name, (0, frozenset()))[1]
    lent[name] = hash(_typed(name)), jobs | {job_id}


def clear(live: Collection[str]) -> None:
    """Clear the fields whose key no `live` job needs. Call it before the fields are drawn. A key
    that was typed later for another run stays."""
    lent = st.session_state.get(_LENT, {})
    for name, (typed, jobs) in list(lent.items()):
        if jobs.isdisjoint(live):
            del lent[name]
            if _typed(name) and hash(_typed(name)) == typed:
                _empty(name)


def _empty(name: str) -> None:
    st.session_state.pop(_key(name), None)
    # A new field: the browser could send the key of the old one again.
    st.session_state.setdefault(_EMPTIED, Counter())[name] += 1


def _key(name: str) -> str:
    return f"key.{name}.{st.session_state.get(_EMPTIED, Counter())[name]}"


def _typed(name: str) -> str:
    return str(st.session_state.get(_key(name), "")).strip()


def _missing(offered: bool, fixed: bool) -> str:
    if offered:
        return _("No key yet. Enter it, or tick “No key needed”.")
    if fixed:
        return _("No key yet. Enter it.")
    return _(
        "No key yet. Enter it, or enter “none” as Key variable in the stage whose service needs "
        "no key."
    )


def _place(kind: Configured, settings: Settings) -> Place | None:
    if kind.key is None:
        return None
    try:
        # Stored settings may be from another version.
        return kind.key(completed(kind.settings, settings))
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 300), icon=":material/error:")
        return None


def _secret(place: Place) -> str:
    """Return the key in secrets.toml, which must be passed to the worker because it started before
    the file was read; "" without one."""
    readable = place.allowed and may_read_key(place.variable)
    if not readable or not st.secrets.load_if_toml_exists():
        return ""
    value = st.secrets.get(place.variable, "")
    return value.strip() if isinstance(value, str) else ""


# The conventions and the statistics settings, drawn from their schemas.

_TOOL, _NO_TOOL = "sidebar.tool", ""
_TOPS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 100.0)
_STATISTICS_OFFERED = {
    "level": (0.8, 0.9, 0.99),
    "resamples": (1_000, 2_000, 20_000),
    "seed": (1, 2, 3),
    "tie_band": (0.0, 0.001, 0.01, 0.02, 0.05),
    "worthwhile": (0.0, 0.01, 0.02, 0.05, 0.1, RULE_OF_THUMB, 0.2, 0.3, 0.5),
    "equal_margin": (0.005, 0.01, 0.02, 0.05),
}


def draw_conventions() -> None:
    """Draw the choice of a tool whose conventions are used, or of custom settings."""
    tool = preset_of(conventions()) or _NO_TOOL
    tools = [*CONVENTION_PRESETS, *([_NO_TOOL] if tool == _NO_TOOL else [])]
    words = {**dict(zip(tools, tools, strict=True)), _NO_TOOL: _("custom settings")}

    def changed() -> None:
        if (chosen := CONVENTION_PRESETS.get(st.session_state[_TOOL])) is not None:
            for setting in PRESET_SETTINGS:
                address.choose(setting.name, key_of(getattr(chosen, setting.name)))

    pickers.show(st.selectbox, _TOOL, tool, changed, tools)(
        label=_("Metric conventions"),
        options=tools,
        format_func=words.__getitem__,
        help=_(
            "Tools differ in conventions that change numbers, such as the order of equal "
            "scores. Each convention is under Settings."
        ),
    )


def draw_comparison_settings(labels: Sequence[float]) -> None:
    """Draw the settings of metrics and statistics. labels: the labels in the data set."""
    positive = [label for label in labels if label > 0]
    # A scale may end above the highest label, but not below it.
    tops = [top for top in {*positive, *_TOPS} if top >= max(positive, default=0.0)]
    st.markdown(f"**{_('Metric conventions')}**")
    _draw_settings(CONVENTION_SETTINGS, {"threshold": positive, "err_top_label": tops})
    st.markdown(f"**{_p('heading', 'Statistics')}**")
    _draw_statistics()


def changed_settings() -> int:
    """Return how many settings differ from the defaults, or from the chosen tool's conventions."""
    rules = conventions()
    usual = CONVENTION_PRESETS[preset_of(rules) or "rankdash"]
    of_rules: int = sum(
        getattr(rules, each.name) != getattr(usual, each.name) for each in CONVENTION_SETTINGS
    )
    return of_rules + len(_chosen(STATISTICS_SETTINGS))


def conventions() -> Conventions:
    """Return the conventions in the address; the defaults if they are invalid."""
    try:
        return Conventions(**_chosen(CONVENTION_SETTINGS))
    except SpecError:
        return Conventions()


def statistics(queries: int) -> StatisticsSettings:
    """Return the statistics settings in the address; the defaults if they are invalid.

    queries: the number of labelled queries.
    """
    settings = _chosen(STATISTICS_SETTINGS)
    try:
        return StatisticsSettings.for_queries(queries, **settings)
    except SpecError:
        return StatisticsSettings.for_queries(queries)


def _draw_statistics() -> None:
    _draw_settings(STATISTICS_SETTINGS, _STATISTICS_OFFERED)
    if "worthwhile" not in _chosen(STATISTICS_SETTINGS):
        st.button(
            _("Set {share} (rule of thumb)", share=percent(RULE_OF_THUMB)),
            key="sidebar.rule_of_thumb",
            on_click=address.choose,
            args=("worthwhile", key_of(RULE_OF_THUMB)),
            help=_(
                "A common minimum practically relevant gain. Verdicts and reports show it as "
                "your choice."
            ),
        )


def _draw_settings(settings: Sequence[Setting], numbers: Mapping[str, Sequence[float]]) -> None:
    """Draw one select box per setting. numbers: setting → the numbers that it offers in addition to
    its default."""
    for setting in settings:
        options = options_of(setting, numbers.get(setting.name, ()))
        if len(options) > 1:
            pickers.pick_one(
                setting.name,
                list(options),
                st.selectbox,
                default=key_of(setting.default),
                label=_p("setting", setting.title),
                help=_(setting.help),
                format_func=options.__getitem__,
            )


def _chosen(settings: Sequence[Setting]) -> dict[str, Any]:
    """Return name → value for settings that differ from their defaults; invalid values are
    omitted."""
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
