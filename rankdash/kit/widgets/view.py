"""The `Study` of the current choices that a page renders, and elements that all pages share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import (
    enumerated,
    error_text,
    moment,
    ngettext,
    number,
    plain,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.shipped import PAGES
from rankdash.core.data.judgements import Judgements
from rankdash.core.study.leaderboard import best_challenger
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words.queries import excluded
from rankdash.core.words.verdicts import query_counts
from rankdash.core.workspace.notes import Corrections
from rankdash.kit.widgets import address, pickers, scenario, settings_form, stored
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.labels import plan
from rankdash.kit.widgets.scenario import with_money
from rankdash.kit.widgets.stored import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe, name_safe, names_help

LARGEST_CUTOFF = 1000
WHOLE_LIST = "all"
# The field of the address for the labels in use, if some were corrected.
LABELS = "labels"
CORRECTED, UPLOADED = "corrected", "uploaded"
# The field of the address for the judge whose verdict is shown next to the human one.
JUDGE = "judge"
# In columns of text.
_SHORT_NAME = 32
# The query whose heading is scrolled into view, because a click elsewhere opened it.
LANDING = "queries.landing"
# The pages that show one challenger in detail.
_WITH_FOCUS = ("overview", "queries", "rank_shifts", "cost", "policy", "judge")
# The pages that show only the chosen metric.
_OF_ONE_METRIC = ("queries", "rank_shifts", "policy")
# More would not fit in one line.
_MOST_BUTTONS, _MOST_NAMED = 4, 2


def study(page: str) -> Study:
    """Return the current comparison. Without a data set, show an empty state and stop.

    page: the name of its file.
    """
    uploaded = dataset(page)
    layer = Corrections(workspace()).layer(uploaded)
    in_force = layer.count and address.one(LABELS) != UPLOADED
    dataset_id = stored.with_corrections(uploaded, layer.revision) if in_force else uploaded
    data = stored.dataset(dataset_id)
    baseline = address.one("base") or FIRST_STAGE
    statistics = settings_form.statistics(data.labelled_queries)
    # The page shows no other metrics, but they count if all are corrected together.
    single_metric = page in _OF_ONE_METRIC and statistics.family == "metric"
    conventions, judge = settings_form.conventions(), _judge(uploaded)
    if conventions.weighted and (judge is not None or plan.sampled(uploaded) is not None):
        _refuse_weights(_("Grades of an LLM judge, and sampled labels, have no means per search."))
    current = with_money(
        Study(
            dataset=data,
            systems=stored.systems(dataset_id),
            baseline=baseline,
            challengers=tuple(name for name in address.several("system") if name != baseline),
            metric=address.one("metric") or "ndcg",
            cutoff=cutoff_of(address.one("k")),
            conventions=conventions,
            others=() if single_metric else None,
            statistics=statistics,
            check=stored.check_report(dataset_id),
            goals=scenario.chosen_goals(),
            corrections=layer.count,
            judge=judge,
            dataset_id=dataset_id,
            cache=cache,
        )
    )
    try:
        current.require_weights()
    except RankdashError as error:
        _refuse_weights(error_text(error))
    return current


def _refuse_weights(reason: str) -> NoReturn:
    """Show why means per search cannot be computed, with a button that changes the weights, and
    stop the page."""
    st.info(markdown_safe(reason, 600), icon=":material/info:")
    if st.button(_("Compute means per query")):
        address.choose("weights", None)
        st.rerun()
    st.stop()


def again(study: Study) -> Study:
    """Return the study of a fragment that is redrawn, without cached results, which the session
    would reference as long as the fragment. If labels were corrected, the whole page is redrawn."""
    layer, stored_id = Corrections(workspace()).layer(study.stored_id), study.stored_id
    in_force = study.corrected and study.dataset_id
    if layer.count != study.corrections or (
        in_force and in_force != stored.with_corrections(stored_id, layer.revision)
    ):
        st.rerun()
    return replace(study)


def _judge(dataset_id: str) -> Judgements | None:
    """Return the grades of the judge that is compared with human labels; None without one."""
    judge_id = address.one(JUDGE)
    row = stored.judge_rows(dataset_id).get(judge_id) if judge_id else None
    address.lose(JUDGE, judge_id if row is None else None)
    return None if row is None or not row.graded else stored.judgements(row)


def dataset(page: str) -> str:
    """Return the id of the current data set, as it was uploaded. Without one, show an empty state
    and stop.

    page: the name of its file.
    """
    uploaded = address.one("data")
    if uploaded is None:
        nothing_yet(
            page,
            _("No data set yet"),
            _(
                "rankdash shows whether a reranker improves your search, measured on your own "
                "labelled queries. Open the sample or drop your files to begin."
            ),
            "data",
        )
    return uploaded


def cutoff_of(value: str | None) -> int | None:
    """Return a cutoff from the address: 1 to `LARGEST_CUTOFF`, else None."""
    if value and value.isascii() and value.isdigit() and 0 < int(value[:5]) <= LARGEST_CUTOFF:
        return int(value[:5])
    return None


def page(name: str) -> Path:
    """Return the file of a page, for links."""
    return PAGES / f"{name}.py"


def link(name: str, label: str, icon: str, query: Mapping[str, Any] | None = None) -> None:
    """Draw a link to a page; do nothing if the page does not exist."""
    if page(name).is_file():
        st.page_link(page(name), label=label, icon=icon, query_params=query)


def go(name: str) -> None:
    """Open another page with the current choices, in one step of the browser's history: a page that
    is opened without its address writes it afterwards, and going back then takes two steps. Do
    nothing if the page does not exist."""
    if page(name).is_file():
        st.switch_page(page(name), query_params=address.carried())


def open_query(query_id: str) -> None:
    """Open a query on the page Queries, without filters, which could hide it."""
    for name in address.QUERY_FILTERS:
        address.choose(name, None)
    address.choose("q", query_id)
    st.session_state[LANDING] = query_id
    go("queries")


def nothing_yet(page: str, title: str, why: str, target: str) -> NoReturn:
    """Show an empty state, which ends the page: the missing content, the reason, a preview of the
    page, and a button to the page that helps.

    page, target: names of files; target is "data" or "run".
    """
    empty_state(page, title, why, target)
    st.stop()


def empty_state(page: str, title: str, why: str, target: str) -> None:
    """Show an empty state above the rest of the page."""
    label = _("Go to Data") if target == "data" else _("Run a reranker")
    if draw_empty_page(page, title, why, label, target):
        go(target)


def needs_challenger(study: Study, page: str) -> None:
    """Show an empty state, which ends the page, if there is only the baseline."""
    if not study.challengers:
        only_baseline(study, page)
        st.stop()


def only_baseline(study: Study, page: str) -> None:
    """Show the empty state of a page that compares, if there is only the baseline."""
    if len(study.systems) < 2:
        empty_state(
            page,
            _("Nothing to compare with yet"),
            _("There is only the baseline. Run a reranker to see what it changes."),
            "run",
        )
    elif draw_empty_page(
        page,
        _("No system chosen"),
        _("Only the baseline is selected. Select other systems in the table on Overview."),
        _("Compare the newest systems"),
    ):
        address.choose("system", None)
        st.rerun()


def caption(study: Study, extra: Iterable[str] = ()) -> None:
    """Draw the line under the title: data set, systems, metric, queries, date, and the labels in
    use if some were corrected."""
    data = study.dataset
    names, compared = study.challengers, short_name(study, study.baseline)
    many = len(names) > _MOST_NAMED
    whole = names_help(map(study.name, study.chosen), 0 if many else _SHORT_NAME)
    if names:
        systems = enumerated([short_name(study, system) for system in names])
        if many:
            systems = ngettext("{n} system", "{n} systems", len(names))
        compared = _("{baseline} → {systems}", baseline=compared, systems=systems)
    rows = stored.rows(study.stored_id)
    sampled = plan.sampled(study.stored_id)
    newest = max((rows[system].created for system in study.chosen if system in rows), default="")
    parts = [
        markdown_safe(data.name, 60),
        compared,
        study.title if sampled is None else sampled.metric,
        # This convention changes the numbers.
        *(
            [f"**{_('condensed lists (judged documents only)')}**"]
            if study.conventions.judged_only
            else []
        ),
        query_counts(study, means=sampled is None and bool(data.labelled_queries)),
        *extra,
        *([_("newest run {when} UTC", when=moment(newest))] if newest else []),
    ]
    if study.corrections:
        parts.append(_corrections(study))
    st.caption(" · ".join(parts), help=whole)


def _corrections(study: Study) -> str:
    if study.corrected:
        return ngettext(
            "**{n} label added or corrected**",
            "**{n} labels added or corrected**",
            study.corrections,
        )
    return ngettext("{n} correction excluded", "{n} corrections excluded", study.corrections)


def settle_focus(page: str) -> None:
    """Set the challenger in focus in the address before a page that shows it is drawn: then the
    menu contains it, and the page opens in one step of the browser's history.

    page: the name of its file.
    """
    chosen = address.one("data")
    several = len(address.several("system")) > 1
    if chosen and several and page in _WITH_FOCUS and stored.damage(chosen) is None:
        _set_focus(study(page))


def _set_focus(study: Study) -> None:
    """Set the best challenger, unless one of the compared systems was chosen."""
    chosen = address.one("vs")
    if chosen not in study.challengers:
        address.lose("vs", chosen)
        address.set_default("vs", best_challenger(study))


def focus(study: Study) -> str:
    """Return the challenger in focus: the chosen one, else the best one; the baseline if there is
    no challenger."""
    if len(study.challengers) < 2:
        return study.challengers[0] if study.challengers else study.baseline
    _set_focus(study)
    return address.one("vs") or study.challengers[0]


def in_focus(study: Study) -> str:
    """Return the challenger in focus, and draw its choice if there are several."""
    if len(study.challengers) < 2:
        return focus(study)
    label = _("System shown (vs. {baseline})", baseline=short_name(study, study.baseline))
    _set_focus(study)
    return pick_system(study, "vs", study.challengers, label) or study.challengers[0]


def pick_system(
    study: Study, field: str, systems: Sequence[str], label: str, **settings: Any
) -> str | None:
    """Draw buttons for a few systems, a list for more. field: of the address."""
    options = list(systems)
    if len(options) > _MOST_BUTTONS:
        return pickers.pick_one(
            field, options, st.selectbox, label=label, format_func=study.name, **settings
        )
    return pickers.pick_one(
        field,
        options,
        st.segmented_control,
        label=label,
        format_func=lambda system: short_name(study, system),
        help=names_help(map(study.name, options), _SHORT_NAME),
        required=True,
        **settings,
    )


def safe_name(study: Study, system_id: str) -> str:
    """Return the system's name for a place that renders Markdown."""
    return name_safe(study.name(system_id))


def short_name(study: Study, system_id: str) -> str:
    """Return the system's name for a place with little room."""
    return name_safe(study.name(system_id), _SHORT_NAME)


def tally_line(study: Study, system: str) -> None:
    """Draw the number of helped, same and hurt queries with the tie band, and the excluded ones
    with reasons."""
    comparison = study.comparison
    row = comparison.row(system, study.spec)
    out = excluded(comparison.excluded(system, study.spec))
    line = _(
        "**{name}**: {helped} helped · {same} same (±{band}) · {hurt} hurt, of {queries}",
        name=safe_name(study, system),
        helped=number(row["helped"], 0),
        same=number(row["same"], 0),
        hurt=number(row["hurt"], 0),
        band=plain(study.statistics.tie_band),
        queries=ngettext("{n} query", "{n} queries", int(row["paired"])),
    )
    st.markdown(" · ".join([line, *out]))


MOST_COMPARED = 12
"""The number of newest runs that are compared by default."""


# An empty page: the missing content, a preview, and one button.

_ICONS = {"data": ":material/database:", "run": ":material/play_circle:"}


def draw_empty_page(page: str, title: str, why: str, label: str, target: str = "") -> bool:
    """Draw the empty state; return whether the button was clicked. A read-only workspace cannot be
    changed, so there is no button then.

    page: the name of its file. target: the page that the button opens, for its icon.
    """
    with st.container(border=True):
        st.header(title, anchor=False)
        st.write(why)
        preview(page)
        if target and read_only():
            st.caption(_("This workspace is read-only: you cannot add anything here."))
            return False
        return st.button(label, type="primary", icon=_ICONS.get(target), key="empty_page.next")


def preview(page: str) -> None:
    """Draw a list of the parts that a page will show."""
    lines = [f"- :gray[{icon}] {text}" for icon, text in _parts().get(page, ())]
    if lines:
        st.markdown("\n".join([_("This page will show:"), "", *lines]))


def _parts() -> dict[str, tuple[tuple[str, str], ...]]:
    """Return page → icon and words of each of its parts."""
    return {
        "data": (
            (
                ":material/fact_check:",
                _("the check report: counts, labels, rejected rows"),
            ),
            (":material/database:", _("all data sets, to open, rename, export or delete")),
        ),
        "run": (
            (":material/model_training:", _("the rerankers and their settings")),
            (":material/schedule:", _("an estimate of time and cost before a run starts")),
            (":material/list:", _("the progress, and all runs")),
        ),
        "label": (
            (":material/label:", _("one document at a time, labelled with a single key")),
            (
                ":material/balance:",
                _("which ranking is better, and whether the result is conclusive"),
            ),
        ),
        "judge": (
            (":material/smart_toy:", _("an LLM judge that grades documents, and its cost")),
            (
                ":material/handshake:",
                _("its agreement with human labels, and the direction of its errors"),
            ),
            (
                ":material/balance:",
                _("the verdict by the judge, by human labels, and by both together"),
            ),
        ),
        "overview": (
            (
                ":material/gavel:",
                _("the verdict: which system is better, and with what confidence"),
            ),
            (":material/leaderboard:", _("all systems side by side: quality, latency and cost")),
            (":material/bar_chart:", _("the queries that improved and those that got worse")),
        ),
        "queries": (
            (":material/list:", _("every query with its score before and after reranking")),
            (":material/filter_alt:", _("filters by kind of query, reason and change")),
            (":material/manage_search:", _("for one query: which documents moved, and why")),
        ),
        "rank_shifts": (
            (":material/grid_on:", _("how documents moved between ranks")),
            (":material/handshake:", _("how far the systems agree")),
        ),
        "latency": (
            (":material/timer:", _("the latency of a query: p50, p95 and p99")),
            (":material/speed:", _("throughput at several concurrent queries")),
            (":material/trending_up:", _("how latency grows with documents and tokens")),
        ),
        "cost": (
            (":material/payments:", _("what 1,000 searches cost with each system")),
            (":material/balance:", _("net value and break-even")),
            (":material/tune:", _("which assumption changes the result most")),
        ),
        "policy": (
            (":material/rule_settings:", _("what to deploy, with its quality, latency and price")),
            (":material/layers:", _("how many documents to rerank, and for which queries")),
            (":material/download:", _("the policy as a file for your search")),
        ),
        "report": (
            (":material/description:", _("the report: one HTML file that opens without a network")),
            (":material/download:", _("the numbers as CSV, JSON, Markdown, LaTeX and TREC runs")),
        ),
        "history": (
            (":material/show_chart:", _("the metric of every run over time")),
            (":material/push_pin:", _("notes on runs, and the pinned baseline")),
            (":material/compare_arrows:", _("two runs compared: settings and queries")),
        ),
    }
