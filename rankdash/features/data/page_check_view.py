"""The check report on the page: counts, labels, and whatever was noticed, worst first."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.core.base.findings import Finding
from rankdash.core.base.i18n import (
    enumerated,
    finding_text,
    ngettext,
    number,
    paragraph,
    percent,
    where_text,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.readers.checks.check import FIRST_STAGE, CheckReport, LabelSpread
from rankdash.core.readers.checks.grading import NO_LABELS
from rankdash.core.rerankers.kinds.precomputed import Precomputed
from rankdash.core.study.systems import first_stage_name
from rankdash.core.words.queries import judged_title
from rankdash.features.data import charts, page_lights_view
from rankdash.features.data.words_lights import label_count
from rankdash.features.label import page_label_direction
from rankdash.kit.widgets import address, label_plan, plotly_chart, stored, view
from rankdash.kit.widgets.server import workspace
from rankdash.kit.widgets.text import markdown_safe, name_rows, shortened, table_html

_EXAMPLE_CHARS = 200


def draw(dataset_id: str, *, blocking_said: bool) -> None:
    """blocking_said: what blocks reranking stands above on the page already."""
    report = stored.check_report(stored.in_force(dataset_id))
    if report is None:
        return
    sampled = label_plan.sampled(dataset_id)
    name = next(row.name for row in workspace().datasets() if row.id == dataset_id)
    st.subheader(_("Check report: {name}", name=markdown_safe(name, 60)), anchor=False)
    if report.blocks_reranking is not None and not blocking_said:
        why = [finding_text(report.blocks_reranking), _remedy(report.blocks_reranking)]
        st.warning(paragraph(why), icon=":material/block:")
    page_lights_view.draw(report, sampled)
    st.caption(_summary(report))
    _counts(report)
    _findings(report)
    labels, rankings = st.columns([2, 3])
    with labels:
        _labels(report, 0 if sampled is None else sampled.status.pairs)
        # Labels that were given here have the scale of rankdash.
        page_label_direction.draw(dataset_id, stored.check_report(dataset_id) or report)
    with rankings:
        _rankings(dataset_id, report)
        _systems(dataset_id)


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
            _("Queries"),
            number(report.queries, 0),
            ngettext("{n} with labels", "{n} with labels", report.labelled_queries),
        ),
        (_("Documents"), number(report.documents, 0), _characters(report.document_chars)),
        (
            _("Median candidates"),
            number(candidates.median, 0) if candidates else "–",
            _range_of(candidates),
        ),
        (
            _("Judged@10 of the first stage"),
            percent(report.judged_at_10),
            _("share of its top ten that has a label"),
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
    return _("{n} characters at the median", n=number(spread.median, 0))


def _labels(report: CheckReport, sampled_from: int) -> None:
    st.markdown(f"**{label_count(report.labels, sampled_from)}**")
    if report.labels:
        plotly_chart.draw(charts.grades(report), key="check.labels")


def _findings(report: CheckReport) -> None:
    st.markdown(f"**{_('Warnings and notes')}**")
    signs = {"error": _("⛔ error"), "warning": _("⚠ warning"), "note": _("ℹ note")}
    # What blocks reranking, and that there are no labels, is said above.
    said = (report.blocks_reranking, NO_LABELS)
    findings = [each for each in report.findings if each not in said]
    rows = [
        (
            signs[found.severity],
            where_text(found),
            finding_text(found),
            _remedy(found),
            shortened(", ".join(found.examples), _EXAMPLE_CHARS),
        )
        for found in findings
    ]
    pairs = list(zip(rows, findings, strict=True))
    actionable = [row for row, found in pairs if _actionable(found)]
    rest = [row for row, found in pairs if not _actionable(found)]
    headings = (_("kind"), _("where"), _("what"), _("remedy"), _("examples"))
    if actionable:
        st.html(table_html(headings, actionable))
    else:
        st.caption(_("Nothing."))
    if rest:
        with st.expander(
            ngettext("{n} note on how it was read", "{n} notes on how it was read", len(rest))
        ):
            st.html(table_html(headings, rest))


def _actionable(finding: Finding) -> bool:
    """Whether there is something to do about it."""
    return finding.severity != "note" or bool(finding.remedy)


def _remedy(finding: Finding) -> str:
    return _(finding.remedy, **finding.params) if finding.remedy else ""


def _rankings(dataset_id: str, report: CheckReport) -> None:
    st.markdown(f"**{_('Rankings')}**")
    first = first_stage_name(stored.dataset(dataset_id))
    names = [first if ranking.name == FIRST_STAGE else ranking.name for ranking in report.rankings]
    st.dataframe(
        pd.DataFrame(
            {
                _("ranking"): names,
                _("queries"): [ranking.queries for ranking in report.rankings],
                _("rows"): [ranking.rows for ranking in report.rankings],
                judged_title(10): [ranking.judged_at_10 for ranking in report.rankings],
                _("queries with ties"): [ranking.tied_queries for ranking in report.rankings],
            }
        ),
        hide_index=True,
        placeholder="–",
        column_config={judged_title(10): st.column_config.NumberColumn(format="percent")},
        row_height=name_rows(names),
        alt=_("The first stage and the rankings that came with the data"),
    )


def _systems(dataset_id: str) -> None:
    """Which systems came with the files, and the way to their comparison."""
    systems = [run for run in workspace().runs(dataset_id) if run.reranker == Precomputed.name]
    if not systems:
        return
    st.caption(
        ngettext(
            "{n} system came with the files: {names}.",
            "{n} systems came with the files: {names}.",
            len(systems),
            names=enumerated(markdown_safe(run.name, 60) for run in systems),
        )
    )
    st.page_link(
        view.page("overview"),
        label=_("Compare them with the first stage"),
        icon=":material/arrow_forward:",
        query_params={**address.offered(), "system": [run.id for run in systems]},
    )
