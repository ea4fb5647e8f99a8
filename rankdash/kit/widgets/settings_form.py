"""A form for any reranker or judge, drawn from the schema that it declares."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st
from babel import Locale

from rankdash.core.base import text as base_text
from rankdash.core.base.allowed import may_read_key
from rankdash.core.base.errors import RankdashError, SpecError
from rankdash.core.base.i18n import enumerated, error_text, finding_text, number, paragraph, percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import language as reader_language
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
from rankdash.core.rerankers.neural import packaged
from rankdash.core.rerankers.neural.packaged import fitting, known_models, misfit
from rankdash.core.rerankers.remote.connection import NO_KEY, Place
from rankdash.core.words.methods import key_of, options_of
from rankdash.core.words.queries import provenance
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
    """One widget per setting, three a row and longer texts below; returns name → value.

    What suits nearly everyone as it is stays behind "More settings". language: of the queries.
    unknown_share: of the tokens of the texts, the share that a model does not know; NaN if that
    cannot be told. A model that does not read the texts is no default, and is warned of.
    """
    specs = [_fitting(spec, language, unknown_share) for spec in kind.settings]
    # What is chosen for one language is no choice for another.
    usual = language == "latin" and specs == list(kind.settings)
    place = kind.name if usual else f"{kind.name}.{language}"
    values = _rows(place, [spec for spec in specs if not spec.advanced], {}, implied)
    model = str(values.get("model", ""))
    _say_origin(model)
    _caution(model, language, unknown_share(model))
    advanced = [spec for spec in specs if spec.advanced]
    if advanced:
        with st.expander(_("More settings"), key=f"more.{kind.name}"):
            values = _rows(place, advanced, values, implied)
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


def _rows(
    kind: str,
    specs: list[SettingSpec],
    above: Settings,
    implied: Callable[[Settings], Mapping[str, str]],
) -> dict[str, str | int | float | bool]:
    """The values of the settings above and of these."""
    values = {**above}
    short = [spec for spec in specs if spec.lines == 1]
    for start in range(0, len(short), _A_ROW):
        # A row of columns of its own, so that labels of two lines do not push the next row apart.
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
        # Not stripped: a prompt may end in a blank; the schema strips what must not.
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
    """Choice → what a form calls it."""
    by_itself = {"auto": _p("choice", "auto")}
    titles = {
        value: _p("choice", title) if title != value else by_itself.get(value, value)
        for value, title in spec.words.items()
    }
    # A cascade chooses among rerankers.
    return {value: _p("reranker", title) for value, title in titles.items()}


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
    return 1.0 if _COARSE_FROM <= spec.most < math.inf else 0.01


def _bound(limit: float, whole: bool) -> int | float | None:
    if math.isinf(limit):
        return None
    return int(limit) if whole else float(limit)


# The key that a run needs: found on the server, or typed for this run and never stored.

# The setting that names the variable of a key, or says that there is none.
_SETTING = "key_variable"
# Session: the name of a field → what it held, as a hash, and the jobs that were given it.
_LENT = "keys.lent"
# Session: the name of a field → where its key was to be sent when it was last drawn.
_GOES = "keys.goes"
# Session: the name of a field → how often it was emptied.
_EMPTIED = "keys.emptied"


@dataclass(frozen=True)
class Found:
    """What is known of the key of a kind.

    keys:     variable → key, to hand to the worker; empty where the worker finds it by itself.
    settings: those to change for the run, where the person says that no key is needed.
    missing:  what to do before a run can start; "" where it can.
    """

    keys: Mapping[str, str] = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    missing: str = ""


def draw_key_field(
    kind: Configured, settings: Settings, name: str, *, fixed: bool = False
) -> Found:
    """Say where the key comes from, or ask for it. `name` tells two fields of a page apart.

    fixed: the settings are those of a job or a run, so that it is too late to say that no key is
        needed.
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
    # A key typed for one service is not for another one.
    goes = st.session_state.setdefault(_GOES, {})
    if goes.get(name) != place and _typed(name):
        _empty(name)
    goes[name] = place
    # Of any address: nothing secret is sent by it, and a service that needs a key says so.
    tick = f"key.{name}.none"
    offered = not fixed and any(spec.name == _SETTING for spec in kind.settings)
    missing = _missing(offered, fixed)
    if offered and st.session_state.get(tick):
        entry = Found(settings={_SETTING: NO_KEY})
    elif typed := _typed(name):
        entry = Found({place.variable: typed})
    else:
        entry = Found(missing=missing)
    _ask(place, name, tick if offered else None, missing, ready=not entry.missing)
    return entry


@st.fragment
def _ask(place: Place, name: str, tick: str | None, missing: str, *, ready: bool) -> None:
    """The field, the tick, and what will be sent. A fragment: every letter typed is committed.

    ready: whether a run could start when the page was drawn.
    """
    host = markdown_safe(place.host, 80)
    free = tick is not None and st.session_state.get(tick, False)
    if not free:
        st.text_input(
            _("Key of the service ({name})", name=place.variable)
            if place.allowed
            else _("Key of the service, where it asks for one"),
            type="password",
            autocomplete="off",
            key=_key(name),
            # Not only when the field is left: the Tab key goes from it to the button that shows
            # the key, which Streamlit takes for a part of the field, and what was typed is lost.
            live="0ms",
            help=_(
                "The key stays in memory until this run ends. It is never stored, logged or "
                "exported. Then the field is empty again; another run or a resume needs the key "
                "again. So does another service or address."
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
        # A refusal for want of a key may stand on the page.
        st.rerun(scope="app")


def lend(name: str, job_id: str) -> None:
    """The key of a field was given to a job."""
    lent = st.session_state.setdefault(_LENT, {})
    jobs = lent.get(name, (0, frozenset()))[1]
    lent[name] = hash(_typed(name)), jobs | {job_id}


def clear(live: Collection[str]) -> None:
    """Empty the fields whose key none of the jobs needs that are still `live`. Call it before the
    fields are drawn. What was typed since for another run stays."""
    lent = st.session_state.get(_LENT, {})
    for name, (typed, jobs) in list(lent.items()):
        if jobs.isdisjoint(live):
            del lent[name]
            if _typed(name) and hash(_typed(name)) == typed:
                _empty(name)


def _empty(name: str) -> None:
    st.session_state.pop(_key(name), None)
    # Another field: a browser that does not know yet says the key of this one again.
    st.session_state.setdefault(_EMPTIED, Counter())[name] += 1


def _key(name: str) -> str:
    return f"key.{name}.{st.session_state.get(_EMPTIED, Counter())[name]}"


def _typed(name: str) -> str:
    return str(st.session_state.get(_key(name), "")).strip()


def _missing(offered: bool, fixed: bool) -> str:
    if offered:
        return _("No key yet. Type it, or tick that no key is needed.")
    if fixed:
        return _("No key yet. Type it.")
    return _(
        "No key yet. Type it, or enter none as Variable of the key in the stage whose service "
        "needs no key."
    )


def _place(kind: Configured, settings: Settings) -> Place | None:
    if kind.key is None:
        return None
    try:
        # Those of a job, a run or a judge may be of another version.
        return kind.key(completed(kind.settings, settings))
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 300), icon=":material/error:")
        return None


def _secret(place: Place) -> str:
    """From secrets.toml. The worker, which began before the file was read, has to be given it."""
    readable = place.allowed and may_read_key(place.variable)
    if not readable or not st.secrets.load_if_toml_exists():
        return ""
    value = st.secrets.get(place.variable, "")
    return value.strip() if isinstance(value, str) else ""


# The conventions and the statistics in force: drawn from the schemas that declare them.

_TOOL, _NO_TOOL = "sidebar.tool", ""
_TOPS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 100.0)
_STATISTICS_OFFERED = {
    "level": (0.8, 0.9, 0.99),
    "resamples": (1_000, 2_000, 20_000),
    "seed": (1, 2, 3),
    "tie_band": (0.0, 0.001, 0.01, 0.02, 0.05),
    "worthwhile": (0.0, 0.01, 0.02, 0.05, 0.1, RULE_OF_THUMB, 0.2, 0.3, 0.5),
}


def draw_conventions() -> None:
    """One list: the tool whose conventions are in force, or that they are no tool's."""
    tool = preset_of(conventions()) or _NO_TOOL
    tools = [*CONVENTION_PRESETS, *([_NO_TOOL] if tool == _NO_TOOL else [])]
    words = {**dict(zip(tools, tools, strict=True)), _NO_TOOL: _("own settings")}

    def changed() -> None:
        if (chosen := CONVENTION_PRESETS.get(st.session_state[_TOOL])) is not None:
            for setting in PRESET_SETTINGS:
                address.choose(setting.name, key_of(getattr(chosen, setting.name)))

    pickers.show(st.selectbox, _TOOL, tool, changed, tools)(
        label=_("Metric conventions"),
        options=tools,
        format_func=words.__getitem__,
        help=_(
            "Tools differ in rules that change numbers, such as the order of equal scores. Each "
            "rule is under Settings."
        ),
    )


def draw_comparison_settings(labels: Sequence[float]) -> None:
    """labels: those that the data set uses."""
    positive = [label for label in labels if label > 0]
    # A scale may end above the highest label that was given, and never below it.
    tops = [top for top in {*positive, *_TOPS} if top >= max(positive, default=0.0)]
    st.markdown(f"**{_('Metric conventions')}**")
    _draw_settings(CONVENTION_SETTINGS, {"threshold": positive, "err_top_label": tops})
    st.markdown(f"**{_p('heading', 'Statistics')}**")
    _draw_statistics()


def changed_settings() -> int:
    """Return how many settings differ from the defaults, or from those of the tool that is
    chosen."""
    rules = conventions()
    usual = CONVENTION_PRESETS[preset_of(rules) or "rankdash"]
    of_rules: int = sum(
        getattr(rules, each.name) != getattr(usual, each.name) for each in CONVENTION_SETTINGS
    )
    return of_rules + len(_chosen(STATISTICS_SETTINGS))


def conventions() -> Conventions:
    """The conventions of the address; the defaults where they cannot be."""
    try:
        return Conventions(**_chosen(CONVENTION_SETTINGS))
    except SpecError:
        return Conventions()


def statistics(queries: int) -> StatisticsSettings:
    """The statistics settings of the address; the defaults where they cannot be.

    queries: how many of the data set's have a label.
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
                "A common minimum practically relevant gain. It counts as your choice, and is "
                "named so in verdicts and reports."
            ),
        )


def _draw_settings(settings: Sequence[Setting], numbers: Mapping[str, Sequence[float]]) -> None:
    """One selectbox a setting. numbers: setting → the numbers it offers beside its default."""
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
