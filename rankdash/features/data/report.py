"""Section of the report: the data set and its check."""

from __future__ import annotations

from rankdash.core.base.errors import Finding
from rankdash.core.base.i18n import (
    enumerated,
    finding_text,
    ngettext,
    number,
    plain,
    share_percent,
    where_text,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import html_safe
from rankdash.core.readers.checks.check import FIRST_STAGE, CheckReport, LabelSpread
from rankdash.core.study.labelling import sampled_from
from rankdash.core.study.systems import first_stage_name
from rankdash.core.words import queries
from rankdash.core.words.queries import judged_title
from rankdash.features.data import charts
from rankdash.features.data.words import label_count
from rankdash.kit.html.html_page import (
    DASH,
    Draft,
    PageTable,
    filled,
    folded,
    prose,
    table,
    together,
)

_EXAMPLES = 3
_LONGEST = 200


def draw(draft: Draft) -> str:
    report = draft.study.check
    parts = [table(PageTable((_p("column", "item"), _p("column", "value")), _counts(draft)))]
    if report is None:
        return parts[0] + prose(_("The check report of this data set is missing."))
    parts += [
        together(
            f"<h3>{html_safe(_('Judgments (relevance labels)'))}</h3>",
            draft.chart(charts.grades(report)) if report.labels else prose(_("No labels yet")),
        ),
        _rankings(draft, report),
        f"<h3>{html_safe(_('Warnings and notes'))}</h3>",
        _findings(report),
    ]
    return "".join(parts)


def _counts(draft: Draft) -> list[tuple[str, str]]:
    study, data = draft.study, draft.study.dataset
    report = study.check
    rows = [
        (_("Data set"), data.name),
        (_("ID (hash of the content)"), data.id),
        (_p("count", "Queries"), number(len(data.queries), 0)),
        (_p("count", "Documents"), number(len(data.documents), 0)),
        (
            _("Judgments (relevance labels)"),
            label_count(len(data.qrels), sampled_from(study)),
        ),
        (
            _("First stage"),
            queries.first_stage(data.first_stage),
        ),
    ]
    if report is not None and report.reversed_at is not None:
        how = _("{worst} minus the label in the files", worst=plain(report.reversed_at))
        rows.append((_("Labels reversed"), how))
    if study.corrections:
        rows.append((_("Labels corrected by hand"), number(study.corrections, 0)))
    if data.segments:
        rows.append((_("Columns that group the queries"), enumerated(data.segments)))
    if report is not None:
        rows += [
            (_("Queries with labels"), number(report.labelled_queries, 0)),
            (_("Candidates per query"), _spread(report.candidates_per_query)),
            (_("Characters of a document"), _spread(report.document_chars)),
            (_("Judged@10 of the first stage"), share_percent(report.judged_at_10)),
        ]
    return rows


def _spread(spread: LabelSpread | None) -> str:
    if spread is None:
        return DASH
    if spread.low == spread.high:
        return number(spread.low, 0)
    return _(
        "median {median}, {low} to {high}",
        median=number(spread.median, 0),
        low=number(spread.low, 0),
        high=number(spread.high, 0),
    )


def _rankings(draft: Draft, report: CheckReport) -> str:
    first = first_stage_name(draft.study.dataset)
    rows = [
        (
            first if each.name == FIRST_STAGE else each.name,
            number(each.queries, 0),
            number(each.rows, 0),
            share_percent(each.judged_at_10),
            number(each.tied_queries, 0),
        )
        for each in report.rankings
    ]
    head = (
        _p("column", "ranking"),
        _p("column", "queries"),
        _p("column", "rows"),
        judged_title(10),
        _("queries with ties"),
    )
    return table(PageTable(head, rows, frozenset(range(1, 5))), _p("heading", "Rankings"))


def _findings(report: CheckReport) -> str:
    actionable = [each for each in report.findings if each.severity != "note" or each.remedy]
    rest = [each for each in report.findings if each not in actionable]
    text = _table(actionable) if actionable else prose(_("No warnings."))
    if rest:
        title = ngettext(
            "{n} note on how the data were read", "{n} notes on how the data were read", len(rest)
        )
        text += folded(title, _table(rest), printed=True)
    return text


def _table(findings: list[Finding]) -> str:
    signs = {"error": _("⛔ error"), "warning": _("⚠ warning"), "note": _("ℹ note")}
    rows = [
        (
            signs[each.severity],
            _described(each),
            _(each.remedy, **each.params) if each.remedy else "",
            ", ".join(each.examples[:_EXAMPLES])[:_LONGEST],
        )
        for each in findings
    ]
    head = (
        _p("column", "kind"),
        _p("column", "finding"),
        _("remedy in rankdash"),
        _p("column", "examples"),
    )
    return table(filled(head, rows))


def _described(finding: Finding) -> str:
    where = where_text(finding)
    text = finding_text(finding)
    return _("{where}: {what}", where=where, what=text) if where else text
