"""The check of a data set: traffic lights, findings, and the result of an upload."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from rankdash.core.base.errors import Finding
from rankdash.core.base.i18n import (
    enumerated,
    finding_text,
    ngettext,
    number,
    paragraph,
    share_percent,
    where_text,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.intake.reading import StoreOutcome
from rankdash.core.readers.checks.check import FIRST_STAGE, CheckReport, LabelSpread
from rankdash.core.readers.checks.grading import NO_LABELS
from rankdash.core.rerankers.kinds.precomputed import Precomputed
from rankdash.core.study.systems import first_stage_name
from rankdash.core.words.queries import judged_title
from rankdash.features.data import charts, page_labels
from rankdash.features.data.words import Light, State, label_count, lights
from rankdash.kit.widgets import address, stored, view
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.labels import plan, unjudged
from rankdash.kit.widgets.labels.plan import Labelling
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.stored import workspace
from rankdash.kit.widgets.text import markdown_safe, name_rows, shortened, table_html

_EXAMPLE_CHARS = 200


def draw(dataset_id: str, *, blocking_said: bool) -> None:
    """Draw the check report. blocking_said: the page already shows what blocks reranking."""
    report = stored.check_report(stored.in_force(dataset_id))
    if report is None:
        return
    sampled = plan.sampled(dataset_id)
    name = next(row.name for row in workspace().datasets() if row.id == dataset_id)
    st.header(_("Check report: {name}", name=markdown_safe(name, 60)), anchor=False)
    if report.blocks_reranking is not None and not blocking_said:
        why = [finding_text(report.blocks_reranking), _remedy(report.blocks_reranking)]
        st.warning(paragraph(why), icon=":material/block:")
    st.markdown(f"**{_summary(report)}**")
    boxed = draw_lights(report, sampled)
    _counts(report)
    _findings(report, boxed)
    labels, rankings = st.columns([2, 3])
    with labels:
        _labels(report, 0 if sampled is None else sampled.status.pairs)
        # Labels entered in rankdash already have its scale.
        unjudged.draw_direction(dataset_id, stored.check_report(dataset_id) or report)
    with rankings:
        _rankings(dataset_id, report)
        _systems(dataset_id)
    if report.labels:
        fold(
            _("Labels that look wrong"),
            "data.doubtful",
            ":material/rule:",
            lambda: page_labels.draw(dataset_id),
        )


def _summary(report: CheckReport) -> str:
    if not report.warnings:
        return _("No warnings.")
    return ngettext(
        "{n} warning: check it before you trust the numbers.",
        "{n} warnings: check them before you trust the numbers.",
        len(report.warnings),
    )


def _counts(report: CheckReport) -> None:
    candidates = report.candidates_per_query
    cards = (
        (
            _p("count", "Queries"),
            number(report.queries, 0),
            ngettext("{n} with labels", "{n} with labels", report.labelled_queries),
        ),
        (_p("count", "Documents"), number(report.documents, 0), _characters(report.document_chars)),
        (
            _("Median candidates"),
            number(candidates.median, 0) if candidates else "–",
            _range_of(candidates),
        ),
        (
            _("Judged@10 of the first stage"),
            share_percent(report.judged_at_10),
            _("labelled share of its top ten documents"),
        ),
    )
    for column, (title, value, below) in zip(st.columns(4), cards, strict=True):
        with column.container(border=True, height="stretch"):
            st.metric(title, value)
            st.caption(below)


def _range_of(spread: LabelSpread | None) -> str:
    if spread is None:
        return ""
    if spread.low == spread.high:
        return _("the same for every query")
    return _("{low} to {high}", low=number(spread.low, 0), high=number(spread.high, 0))


def _characters(spread: LabelSpread | None) -> str:
    if spread is None:
        return _("no text")
    return _("median length: {n} characters", n=number(spread.median, 0))


def _labels(report: CheckReport, sampled_from: int) -> None:
    st.markdown(f"**{label_count(report.labels, sampled_from)}**")
    if report.labels:
        widgets_charts.draw(charts.grades(report), key="check.labels")


def _findings(report: CheckReport, boxed: Sequence[Finding]) -> None:
    """Draw a table of the findings. boxed: findings that the lights explain."""
    signs = {"error": _("⛔ error"), "warning": _("⚠ warning"), "note": _("ℹ note")}
    # The page states above what blocks reranking, and that labels are missing.
    shown = (report.blocks_reranking, NO_LABELS, *boxed)
    findings = [each for each in report.findings if each not in shown]
    if not findings:
        return
    st.markdown(f"**{_('Warnings and notes')}**")
    rows = [
        (
            signs[finding.severity],
            where_text(finding),
            finding_text(finding),
            _remedy(finding),
            shortened(", ".join(finding.examples), _EXAMPLE_CHARS),
        )
        for finding in findings
    ]
    pairs = list(zip(rows, findings, strict=True))
    actionable = [row for row, finding in pairs if _actionable(finding)]
    rest = [row for row, finding in pairs if not _actionable(finding)]
    headings = (
        _p("column", "kind"),
        _p("column", "location"),
        _p("column", "finding"),
        _p("column", "remedy"),
        _p("column", "examples"),
    )
    if actionable:
        st.html(table_html(headings, actionable))
    if rest:
        with st.expander(
            ngettext(
                "{n} note on how the data were read",
                "{n} notes on how the data were read",
                len(rest),
            )
        ):
            st.html(table_html(headings, rest))


def _actionable(finding: Finding) -> bool:
    """Return True if a finding requires an action of the user."""
    return finding.severity != "note" or bool(finding.remedy)


def _remedy(finding: Finding) -> str:
    return _(finding.remedy, **finding.params) if finding.remedy else ""


def _rankings(dataset_id: str, report: CheckReport) -> None:
    st.markdown(f"**{_p('heading', 'Rankings')}**")
    first = first_stage_name(stored.dataset(dataset_id))
    names = [first if ranking.name == FIRST_STAGE else ranking.name for ranking in report.rankings]
    st.dataframe(
        pd.DataFrame(
            {
                _p("column", "ranking"): names,
                _p("column", "queries"): [ranking.queries for ranking in report.rankings],
                _p("column", "rows"): [ranking.rows for ranking in report.rankings],
                judged_title(10): [ranking.judged_at_10 for ranking in report.rankings],
                _("queries with ties"): [ranking.tied_queries for ranking in report.rankings],
            }
        ),
        hide_index=True,
        placeholder="–",
        column_config={
            judged_title(10): st.column_config.NumberColumn(format="percent"),
            _p("column", "rows"): st.column_config.NumberColumn(format="localized"),
        },
        row_height=name_rows(names),
        alt=_("The first stage and the other rankings in the data"),
    )


def _systems(dataset_id: str) -> None:
    """Draw which systems came with the files, and a link to their comparison."""
    systems = [run for run in workspace().runs(dataset_id) if run.reranker == Precomputed.name]
    if not systems:
        return
    st.caption(
        ngettext(
            "The files contain {n} system: {names}.",
            "The files contain {n} systems: {names}.",
            len(systems),
            names=enumerated(markdown_safe(run.name, 60) for run in systems),
        )
    )
    view.link(
        "overview",
        _("Compare them with the first stage"),
        ":material/arrow_forward:",
        {**address.offered(), "system": [run.id for run in systems]},
    )


# The traffic lights of a data set on the page: a card for each, with its remedy.

_SIGNS: dict[State, str] = {
    "good": ":green[:material/check_circle:]",
    "look": ":orange[:material/warning:]",
    "wrong": ":red[:material/error:]",
    "unknown": ":gray[:material/help:]",
    "none": ":gray[:material/radio_button_unchecked:]",
}
_CHARS = 600


def draw_lights(report: CheckReport, sampled: Labelling | None) -> list[Finding]:
    """Draw the lights side by side, and a box with the remedy for each warning light.

    sampled: the plan whose labels are a sample; None if they are not. Return the warnings in the
    boxes.
    """
    words: dict[State, str] = {
        "good": _("looks plausible"),
        "look": _("check this"),
        "wrong": _("likely wrong"),
        "unknown": _("needs labels"),
        "none": _("none yet"),
    }
    every = lights(report, 0 if sampled is None else sampled.status.pairs)
    for column, light in zip(st.columns(len(every)), every, strict=True):
        with column.container(border=True, height="stretch"):
            st.markdown(f"{_SIGNS[light.state]} **{light.title}**  \n{words[light.state]}")
            if light.state == "good" and light.what:
                st.caption(light.what)
    blocking = report.blocks_reranking
    above = "" if blocking is None else finding_text(blocking)
    boxes = [each for each in every if each.state != "good" and each.what and each.what != above]
    for light in boxes:
        _box(light)
    if sampled is not None and sampled.status.conclusive:
        view.link("overview", _("See the verdict"), ":material/gavel:")
    elif sampled is not None:
        view.link("label", _("Continue labelling"), ":material/label:")
    return [each.finding for each in boxes if each.finding is not None]


def _box(light: Light) -> None:
    """Draw a warning with its remedy and examples, and with links if labels are missing."""
    boxes = {"wrong": st.error, "look": st.warning, "none": st.info}
    what, remedy = (markdown_safe(text, _CHARS) for text in (light.what, light.remedy))
    finding = light.finding
    if finding is not None and finding.examples:
        examples = shortened(", ".join(finding.examples), _EXAMPLE_CHARS)
        what = paragraph([what, _("Examples: {ids}.", ids=markdown_safe(examples))])
    if light.state == "look":
        text = f"**{light.title}**  \n{paragraph([each for each in (what, remedy) if each])}"
    else:
        text = f"**{light.title}**  \n{what}\n\n**{_('What to do')}**  \n{remedy}"
    boxes[light.state](text)
    if finding is not None and finding.code in ("no_labels", "mostly_unjudged"):
        with st.container(horizontal=True):
            view.link("label", _("Label documents"), ":material/label:")
            if finding == NO_LABELS:
                view.link("judge", _p("page", "Judge"), ":material/smart_toy:")


# The result of an upload: a data set that is ready, that cannot be reranked, or that existed.


def choose(dataset_id: str) -> None:
    """Open a data set and reset baseline, system and query."""
    address.choose("data", dataset_id)
    for choice in ("base", "system", "q"):
        address.choose(choice, None)


def show_stored(saved: StoreOutcome) -> str | None:
    """Show the result of an upload. Return the id of its data set if something blocks reranking."""
    row = next((row for row in workspace().datasets() if row.id == saved.dataset_id), None)
    if row is None:
        return None
    name = markdown_safe(row.name, 80)
    if saved.was_here:
        sentences = [_("These files equal {name}, which is in this workspace.", name=name)]
        if saved.added:
            systems = enumerated(markdown_safe(each, 60) for each in saved.added)
            sentences.append(_("New systems: {systems}.", systems=systems))
        else:
            sentences.append(_("Nothing was stored."))
        st.info(paragraph(sentences), icon=":material/content_copy:")
        if address.one("data") != saved.dataset_id:
            st.button(
                _("Open {name}", name=name),
                icon=":material/database:",
                key="data.open_equal",
                on_click=choose,
                args=(saved.dataset_id,),
            )
        return None
    size = {
        "queries": ngettext("{n} query", "{n} queries", row.queries),
        "documents": ngettext("{n} document", "{n} documents", row.documents),
    }
    report = stored.check_report(row.id)
    blocking = report.blocks_reranking if report else None
    wrong = report.implausible if report else ()
    if blocking is None and wrong:
        text = _(
            "{name} is stored, but something looks wrong: {queries} and {documents}.",
            name=name,
            **size,
        )
        st.warning(
            paragraph([text, markdown_safe(finding_text(wrong[0]), 400)]),
            icon=":material/warning:",
        )
        return None
    if blocking is None:
        text = _("{name} is ready: {queries} and {documents}.", name=name, **size)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.success(text, icon=":material/check_circle:")
            with st.container(border=True, width="content", horizontal=True):
                _next_step(row.id, labelled=report is None or report.labelled_queries > 0)
        return None
    text = _("{name} is stored: {queries} and {documents}.", name=name, **size)
    why = [finding_text(blocking), _(blocking.remedy, **blocking.params)]
    st.warning(paragraph([*why, text]), icon=":material/block:")
    return row.id


def _next_step(dataset_id: str, *, labelled: bool) -> None:
    """Draw links to the pages of the next steps for this data set."""
    if workspace().runs(dataset_id):
        view.link("overview", _p("page", "Compare"), ":material/monitoring:", address.offered())
    else:
        # Labelling compares two rankings.
        view.link("run", _("Run a reranker"), ":material/play_circle:", address.offered())
    if not labelled:
        view.link("label", _("Label documents"), ":material/label:", address.offered())
