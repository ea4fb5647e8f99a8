"""The sidebar: data set and language on every page; baseline, metric and evaluation settings on
pages that compare systems."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAuthError

from rankdash.core.base.i18n import LANGUAGES, language_name, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import middle
from rankdash.core.metrics import registry
from rankdash.core.study.systems import System
from rankdash.core.workspace import DatasetRow, RunRow
from rankdash.core.workspace.notes import Corrections, Pins
from rankdash.features.data import page_samples
from rankdash.kit.widgets import address, language, pickers, redraw, settings_form, stored
from rankdash.kit.widgets.labels import plan as labels_plan
from rankdash.kit.widgets.stored import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe
from rankdash.kit.widgets.view import (
    CORRECTED,
    LABELS,
    MOST_COMPARED,
    UPLOADED,
    WHOLE_LIST,
    cutoff_of,
)

Menu = tuple[list[DeltaGenerator], dict[str, list[str]]]
"""The links, and the query parameters in them."""

CUTOFFS = (1, 2, 3, 5, 10, 15, 20, 30, 50, 100)
# The width of a select box in columns of text, and of "(pinned)".
_NAME_WIDTH, _PINNED = 26, 9


def choose_language() -> None:
    """Set the session's language: from the address, or else from the browser. If the language
    changes, replace an open sample by the sample in the new language."""
    chosen = address.one("lang")
    if chosen not in LANGUAGES:
        preferred = (st.context.locale or "en").split("-")[0]
        chosen = preferred if preferred in LANGUAGES else "en"
    before = st.session_state.get(language.STATE)
    language.choose(chosen)
    if before not in (None, chosen):
        page_samples.follow(workspace(), before, chosen)


def draw_sidebar(*, analysis: bool) -> str | None:
    """Draw the sidebar; `analysis` adds baseline, metric and evaluation settings to it.

    Returns the name of the chosen data set if another window deleted it: then no other one is
    chosen in its place.
    """
    with st.sidebar:
        if read_only():
            st.caption(
                _(
                    ":material/visibility: **Read only.** You can view everything, but not "
                    "change anything."
                )
            )
        rows = {row.id: row for row in workspace().datasets()}
        deleted = stored.deleted_dataset({each: row.name for each, row in rows.items()})
        if deleted is None:
            _draw_choices(rows, analysis=analysis)
        pickers.pick_one(
            "lang",
            list(LANGUAGES),
            st.segmented_control,
            default=st.session_state[language.STATE],
            label=_p("field", "Language"),
            format_func=language_name,
            required=True,
        )
        if not read_only():
            draw_login()
    return deleted


def _draw_choices(rows: Mapping[str, DatasetRow], *, analysis: bool) -> None:
    dataset_id = pickers.pick_one(
        "data",
        list(rows),
        st.selectbox,
        label=_("Data set"),
        default=page_samples.offered(rows, st.session_state[language.STATE]),
        format_func=lambda value: page_samples.called(rows[value]),
        # Choices within one data set do not apply to the next, even if an id is in both: the first
        # stage is in every one, and the next may have a pinned baseline.
        clears=address.OF_A_DATA_SET,
    )
    if dataset_id and analysis and stored.damage(dataset_id) is None:
        _draw_comparison(dataset_id)
    if dataset_id is None:
        address.set_default("data", None)


def _retried(row: RunRow, rows: Mapping[str, RunRow]) -> bool:
    """Return whether a later run with the same settings has fewer failed queries."""
    return any(
        (each.reranker, each.settings, each.depth) == (row.reranker, row.settings, row.depth)
        and each.created > row.created
        and each.queries_failed < row.queries_failed
        for each in rows.values()
    )


def _draw_comparison(dataset_id: str) -> None:
    systems, rows = stored.systems(dataset_id), stored.rows(dataset_id)
    set_apart = {each: name for each, (name, _error) in stored.damaged(dataset_id).items()}
    stored.note_runs(
        dataset_id, {each: system.name for each, system in systems.items()} | set_apart
    )
    pinned = Pins(workspace()).of(dataset_id)
    baseline = pickers.settle_one("base", list(systems), pinned)
    others = [system for system in systems if system != baseline]
    # A run over a sample of queries is not compared by default, nor is a run whose failed queries
    # were retried.
    whole = [
        name
        for name in others
        if name not in rows or not (rows[name].queries_skipped or _retried(rows[name], rows))
    ]
    # The user can choose others in the table on Overview.
    pickers.settle_several("system", others, (whole or others)[-MOST_COMPARED:])
    metric = pickers.pick_one(
        "metric",
        [name for name in registry if name != "judged"],
        st.selectbox,
        default="ndcg",
        label=_p("field", "Metric"),
        format_func=lambda value: _p("metric", registry[value].title),
        help=_("Its definition, formula and source are at the end of Overview."),
    )
    if (plan := labels_plan.sampled(dataset_id)) is not None:
        st.caption(
            _(
                "Not used: the labels are a sample, so the result is in {metric}.",
                metric=plan.metric,
            )
        )
    if metric is not None and registry[metric].has_cutoff:
        complete = labels_plan.complete_cutoff(dataset_id)
        if complete is not None and not address.by_hand("k"):
            # Documents below this rank have no label.
            address.set_default("k", str(complete))
        cutoffs = sorted({*CUTOFFS, cutoff_of(address.one("k")) or 10})
        pickers.pick_one(
            "k",
            [*(str(k) for k in cutoffs), WHOLE_LIST],
            st.select_slider,
            default="10",
            label=_("Cutoff k"),
            format_func=lambda value: _p("choice", "all") if value == WHOLE_LIST else value,
            help=_("The number of results that a user looks at."),
        )
    settings_form.draw_conventions()
    usual = pinned if pinned in systems else next(iter(systems))
    changed = settings_form.changed_settings() + (baseline != usual)
    corrected = Corrections(workspace()).layer(dataset_id).count
    if corrected:
        changed += address.one(LABELS) == UPLOADED

    def draw_settings() -> None:
        _draw_baseline(systems, pinned)
        if corrected:
            _draw_labels()
        settings_form.draw_comparison_settings(stored.dataset(dataset_id).label_values)

    if changed:
        st.caption(ngettext("{n} setting changed", "{n} settings changed", changed))
    redraw.fold(_p("heading", "Settings"), "sidebar.settings", ":material/tune:", draw_settings)


def _draw_baseline(systems: Mapping[str, System], pinned: str | None) -> None:
    pickers.pick_one(
        "base",
        list(systems),
        st.selectbox,
        default=pinned,
        label=_p("field", "Baseline"),
        help=_(
            "Your current search, with which all other systems are compared. The first stage is "
            "the ranking before any reranking. Defaults to the run pinned on History."
        ),
        format_func=lambda value: (
            _("{name} (pinned)", name=middle(systems[value].name, _NAME_WIDTH - _PINNED))
            if value == pinned
            else middle(systems[value].name, _NAME_WIDTH)
        ),
    )


def _draw_labels() -> None:
    words = {CORRECTED: _("with corrections"), UPLOADED: _("as uploaded")}
    pickers.pick_one(
        LABELS,
        list(words),
        st.selectbox,
        default=CORRECTED,
        label=_("Labels used"),
        format_func=words.__getitem__,
    )


def draw_menu(place: DeltaGenerator, groups: Mapping[str, Sequence[st.Page]]) -> Menu:
    """Draw the links to the pages under the titles of their groups; return the links and their
    query parameters."""
    links, carried = [], address.offered()
    for title, pages in groups.items():
        place.caption(title)
        links += [place.page_link(page, query_params=carried, width="stretch") for page in pages]
    return links, carried


def update_menu(menu: Menu, pages: Sequence[st.Page]) -> None:
    """Update the links if the choices changed. They stay in place: replacing a link would lose a
    click."""
    links, before = menu
    carried = address.offered()
    if carried != before:
        for link, page in zip(links, pages, strict=True):
            link.page_link(page, query_params=carried, width="stretch")


# Login and logout, if the server's secrets name a provider: only for names on notes.


def draw_login() -> None:
    if not language.can_log_in():
        return
    name = language.person_name()
    if name:
        st.caption(_("Logged in as {name}", name=markdown_safe(name, 60)))
        st.button(_("Log out"), icon=":material/logout:", on_click=st.logout, width="stretch")
    elif st.button(
        _("Log in"),
        icon=":material/login:",
        width="stretch",
        help=_("Your name is then added to notes and corrections."),
    ):
        _log_in()


def _log_in() -> None:
    if importlib.util.find_spec("authlib") is None:
        text = _('Logging in needs a package that is not installed: pip install "rankdash[login]"')
        st.error(markdown_safe(text, 200), icon=":material/extension_off:")
        return
    try:
        st.login()
    except StreamlitAuthError as error:
        st.error(markdown_safe(str(error), 500), icon=":material/error:")
