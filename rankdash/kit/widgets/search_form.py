"""The form of a search endpoint: its request as editable JSON, its keys, and a test that stores
nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pandas as pd
import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text, ngettext, number, reason_text
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import SettingSpec, settings_of
from rankdash.core.rerankers.remote.connection import SENDING, Place, Policy, given_keys
from rankdash.core.search.endpoint import Endpoint, presets
from rankdash.core.search.fetching import Trial, trial
from rankdash.kit.widgets import pickers, redraw, settings_form
from rankdash.kit.widgets.stored import workspace
from rankdash.kit.widgets.text import markdown_safe

# The workspace setting with the endpoints used before, the latest first.
_USED = "search.endpoints"
_MOST_USED = 20
_MOST_DEPTH = 1_000
_LONGEST_URL, _LONGEST_REQUEST, _LONGEST_NAME, _LONGEST_END = 2_000, 50_000, 60, 40
_LINES = 330
_SNIPPET = 200
_FIRST = "elasticsearch"
# Steps of a path that many engines have, and the points from which an engine is recognised.
_COMMON_STEPS, _ENOUGH = ("search", "query"), 2
_MONOSPACE = """<style>
.st-key-search-request textarea { font-family: "Source Code Pro", monospace; font-size: 0.85rem; }
</style>"""
# Session: the tested request and its result.
_TRIED = "search.tried"


@dataclass(frozen=True)
class Keys:
    """The keys of an endpoint: variable → key, the variables of keys that the user marked as not
    needed, and what to do before a request can be sent."""

    keys: Mapping[str, str] = field(default_factory=dict)
    unneeded: frozenset[str] = frozenset()
    missing: str = ""


@dataclass(frozen=True)
class Entered:
    """The content of the form. tried: the result of the test of this request; None without one."""

    endpoint: Endpoint
    keys: Keys
    depth: int
    policy: Policy
    tried: Trial | None = None


@dataclass(frozen=True)
class _Sending:
    """Settings and key of an endpoint, as a form of settings draws them."""

    name: str
    settings: tuple[SettingSpec, ...] = ()
    key: Callable[[Mapping[str, Any]], Place | None] | None = None


def draw(place: str, query: str, depth: int = 100) -> Entered | None:
    """Draw the form, and the button that tests it. Return its content; None if it is not valid.

    place: distinguishes the forms of two pages. query: the query of the test. depth: its default.
    """
    offered, used = _offered(), {each.request_hash for each in _used()}
    first = next(iter(offered)) if used else _FIRST
    of_engine, of_url = pickers.in_words(f"search.{place}.engine"), f"search.{place}.url"

    def follow_url() -> None:
        engine = _resembling(st.session_state[of_url])
        if engine is not None and st.session_state[of_engine] not in used:
            st.session_state[of_engine] = engine

    def follow_engine() -> None:
        engine = st.session_state[of_engine]
        # A URL that the user entered stays.
        if engine in used or st.session_state[of_url] in {each.url for each in offered.values()}:
            st.session_state[of_url] = offered[engine].url

    left, right = st.columns([2, 1])
    url = left.text_input(
        _("Search URL"),
        offered[first].url,
        max_chars=_LONGEST_URL,
        key=of_url,
        on_change=follow_url,
        persist_state="session",
        help=_("{query} and {k} may be in the URL too, such as ?q={query}&size={k}."),
    )
    chosen = right.selectbox(
        _("Search engine"),
        list(offered),
        index=list(offered).index(first),
        format_func=lambda each: _title(each, offered[each]),
        key=of_engine,
        on_change=follow_engine,
        persist_state="session",
        help=_("Start from a preset, or from a request that was used in this workspace."),
    )
    template = {name: each for name, each in offered[chosen].as_dict().items() if name != "url"}
    left, right = st.columns([2, 1])
    st.html(_MONOSPACE)
    written = left.container(key="search-request").text_area(
        _("Request and paths (JSON)"),
        json.dumps(template, indent=2, ensure_ascii=False),
        height=_LINES,
        max_chars=_LONGEST_REQUEST,
        key=f"search.{place}.request.{chosen}",
        persist_state="session",
    )
    with right:
        st.caption(_explained(offered[chosen]))
        depth = st.number_input(
            _p("setting", "Depth"),
            1,
            _MOST_DEPTH,
            depth,
            key=f"search.{place}.depth",
            persist_state="session",
            help=_("Documents requested per query: the value of {k}."),
        )
    try:
        endpoint = Endpoint.of(_together(url, written))
    except RankdashError as error:
        if "rankdash fetch" in error.remedy:
            error = RankdashError(
                error.template,
                remedy="Correct the JSON, or choose a preset again.",
                **error.params,
            )
        st.error(markdown_safe(error_text(error), 500), icon=":material/error:")
        return None
    keys = draw_keys(endpoint, place, fixed=False)
    endpoint = _without_keys(endpoint, keys.unneeded)
    sending = settings_form.draw(_Sending(f"search.{place}", settings_of(Policy)), "latin")
    entered = Entered(endpoint, keys, int(depth), Policy.of(sending))
    return replace(entered, tried=_test(place, entered, query))


def draw_keys(endpoint: Endpoint, name: str, *, fixed: bool = True) -> Keys:
    """Draw the source of each key of an endpoint, or a field for it. name: distinguishes the fields
    of a page. fixed: whether the endpoint cannot change, so that each key is needed."""
    keys: dict[str, str] = {}
    unneeded = set()
    missing = ""
    for place in endpoint.places:
        field_name = f"search.{name}.{place.variable}"
        kind = _Sending(field_name, SENDING[:1], partial(_place, place))
        entry = settings_form.draw_key_field(kind, {}, field_name, fixed=fixed)
        keys |= entry.keys
        if entry.settings:
            unneeded.add(place.variable)
        missing = missing or entry.missing
    return Keys(keys, frozenset(unneeded), missing)


def _without_keys(endpoint: Endpoint, unneeded: frozenset[str]) -> Endpoint:
    """Return the endpoint without the headers of these variables."""
    if not unneeded:
        return endpoint
    written = endpoint.as_dict()
    names = [name for name, each in endpoint.secrets.items() if each.variable in unneeded]
    for name in names:
        written.get("headers", {}).pop(name, None)
        written.pop(name if name == "password" else "", None)
    return Endpoint.of(written)


def _place(place: Place, _settings: Mapping[str, Any]) -> Place:
    return place


def lend(endpoint: Endpoint, name: str, job_id: str) -> None:
    """Record that a job uses the keys in the fields of `draw_keys`."""
    for place in endpoint.places:
        settings_form.lend(f"search.{name}.{place.variable}", job_id)


def remember(endpoint: Endpoint) -> None:
    """Store an endpoint in the workspace, without keys, so that the form offers it again."""
    earlier = [each for each in _used() if each.request_hash != endpoint.request_hash]
    texts = [each.as_dict() for each in (endpoint, *earlier)][:_MOST_USED]
    workspace().set_setting(_USED, json.dumps(texts))


def title(endpoint: Endpoint) -> str:
    """Return the name of an endpoint, or its host without one."""
    return (endpoint.name.strip() or endpoint.host)[:_LONGEST_NAME]


def distinct_title(endpoint: Endpoint, first: str) -> str:
    """Return the title of an endpoint, followed by the end of its URL if the name is a preset's and
    the first stage, or an endpoint with another URL, has it too. first: the first stage's name."""
    name = title(endpoint)
    others = [each for each in _used() if title(each) == name and each.url != endpoint.url]
    of_preset = name in {title(each) for each in presets().values()}
    if not of_preset or not (others or name == first):
        return name
    end = _path_end(endpoint)
    same = not end or end in map(_path_end, others)
    return f"{name} · {endpoint.host if same else end}"


def _path_end(endpoint: Endpoint) -> str:
    """Return the last two parts of the path of a URL."""
    return "/".join(endpoint.address.rstrip("/").split("/")[1:][-2:])[-_LONGEST_END:]


def _used() -> list[Endpoint]:
    found = []
    try:
        for each in json.loads(workspace().setting(_USED) or "[]"):
            found.append(Endpoint.of(each))
    except (RankdashError, ValueError, TypeError):
        # Written by another version.
        return found
    return found


def _offered() -> dict[str, Endpoint]:
    """Return key → endpoint: those used before, then the presets."""
    used = {each.request_hash: each for each in _used()}
    return {**used, **presets()}


def _title(key: str, endpoint: Endpoint) -> str:
    if key in presets():
        return _("{name} (preset)", name=title(endpoint))
    return f"{title(endpoint)} · {endpoint.address}"


def _resembling(url: str) -> str | None:
    """Return the preset of the engine that a URL probably belongs to; None if it is unknown."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return None
    points = {}
    for name, template in presets().items():
        other = urlsplit(template.url)
        # The names of indexes are in capitals or "docs".
        fixed = {each for each in other.path.split("/") if each.islower()} - {"docs"}
        common = fixed & {*parts.path.split("/")}
        points[name] = (
            sum(1 if each in _COMMON_STEPS else 3 for each in common)
            - len(fixed - common)
            + (port is not None and port == other.port)
            + 3 * (name in parts.netloc)
            + 4 * (parts.scheme.startswith("postgres") and template.kind == "postgres")
            - (template.vector != "")
        )
    best = max(points, key=points.__getitem__)
    return best if points[best] >= _ENOUGH else None


def _explained(endpoint: Endpoint) -> str:
    lines = [
        _("`%(query)s` and `%(k)s` are replaced by the query and the depth.")
        if endpoint.kind == "postgres"
        else _("`{query}` and `{k}` are replaced by the query and the depth."),
        _("`hits` is the path to the list of hits; the other paths start at a hit (JMESPath)."),
        _(
            "A header with a key names a variable: `{example}`. Never enter a key here.",
            example='{"env": "SEARCH_KEY"}',
        ),
    ]
    return "\n\n".join(lines)


def _together(url: str, written: str) -> str | dict[str, Any]:
    """Return the endpoint of both fields. Placeholders in the query string of the URL become
    parameters. A URL in the JSON, as in a complete file, takes precedence."""
    try:
        parsed = json.loads(written)
    except (ValueError, RecursionError):
        return written
    if not isinstance(parsed, dict) or "url" in parsed:
        return written
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return {"url": url.strip(), **parsed}
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    moved = {name: value for name, value in pairs if "{" in value}
    if not moved or not isinstance(parsed.get("params", {}), dict):
        return {"url": url.strip(), **parsed}
    remaining = urlencode([pair for pair in pairs if pair[0] not in moved])
    parsed["params"] = {**moved, **parsed.get("params", {})}
    return {"url": parts._replace(query=remaining).geturl(), **parsed}


# The test: one request, shown as it is sent, and the hits in its answer.


def _test(place: str, entered: Entered, query: str) -> Trial | None:
    """Draw the test query and the button; return the result of the request."""
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    text = left.text_input(
        _("Test query"), query, key=f"search.{place}.query.{query[:40]}", max_chars=1_000
    )
    pressed = right.button(
        _p("button", "Test"),
        icon=":material/experiment:",
        key=f"search.{place}.test",
        width="stretch",
        help=_("Sends one request. Nothing is stored."),
    )
    tried = (entered.endpoint.request_hash, text, entered.depth)
    if pressed and not text.strip():
        redraw.pause()
        st.error(_("Enter a test query."), icon=":material/edit:")
        return None
    if pressed and entered.keys.missing:
        redraw.pause()
        st.error(entered.keys.missing, icon=":material/key_off:")
        return None
    if pressed:
        with st.spinner(_("Waiting for the search engine")), given_keys(entered.keys.keys):
            try:
                result = trial(entered.endpoint, text, entered.depth, entered.policy)
            except RankdashError as error:
                redraw.pause()
                st.error(markdown_safe(error_text(error), 500), icon=":material/error:")
                return None
        st.session_state[f"{_TRIED}.{place}"] = (tried, result)
    before, last = st.session_state.get(f"{_TRIED}.{place}", (None, None))
    # The result of another request would be misleading.
    return last if before == tried else None


def show(result: Trial) -> None:
    """Draw the request, the start of the answer, and the hits. No text of them is Markdown."""
    hits, request = st.columns(2, gap="large")
    with request:
        st.markdown(f"**{_p('heading', 'Request')}**")
        st.code(result.request, language=None, wrap_lines=True, height=_LINES)
        if result.answer:
            status = _("Start of the answer (status {status})", status=str(result.status))
            st.markdown(f"**{status}**")
            st.code(result.answer, language=None, wrap_lines=True, height=_LINES)
    with hits:
        _show_hits(result)


def _show_hits(result: Trial) -> None:
    if result.reason:
        reason = (
            error_text(result.error)
            if result.error
            else _("The request failed: {reason}.", reason=reason_text(result.reason).rstrip("."))
        )
        st.error(markdown_safe(reason, 500), icon=":material/error:")
        return
    found = ngettext("{n} hit", "{n} hits", len(result.hits))
    time = _("{n} ms", n=number(result.latency_ms, 0))
    st.markdown(f"**{found} · {time}**")
    if not result.hits:
        st.info(
            _("The answer contains no hits. Check the path `hits`, or try another query."),
            icon=":material/search_off:",
        )
        return
    st.dataframe(_table(result), hide_index=True, alt=_("The hits of the test query"))
    for remark in _remarks(result):
        st.caption(remark)


def _table(result: Trial) -> pd.DataFrame:
    return pd.DataFrame(
        {
            _p("column", "rank"): range(1, len(result.hits) + 1),
            _p("column", "document"): [hit.doc_id for hit in result.hits],
            _p("column", "title"): [hit.title for hit in result.hits],
            _p("column", "text"): [(hit.text or "")[:_SNIPPET] for hit in result.hits],
            _p("column", "score"): [hit.score for hit in result.hits],
        }
    )


def _remarks(result: Trial) -> list[str]:
    remarks = []
    if without := sum(not (hit.text or hit.title) for hit in result.hits):
        remarks.append(
            ngettext(
                "{n} hit has neither a title nor a text: rerankers and annotators need one.",
                "{n} hits have neither a title nor a text: rerankers and annotators need one.",
                without,
            )
        )
    if result.repeats:
        remarks.append(
            ngettext(
                "{n} repeated document is not used.",
                "{n} repeated documents are not used.",
                result.repeats,
            )
        )
    return remarks
