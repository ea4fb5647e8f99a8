"""How each number is made, by what, where and when."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime

import rankdash
from rankdash.core.base.html import html_safe
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import moment, number, paragraph
from rankdash.core.metrics import parse_measure
from rankdash.core.words.methods import methods
from rankdash.core.words.queries import count_words, metric_title
from rankdash.core.words.settings import rule_meanings, rules_in_words
from rankdash.kit.html.draft import DASH, Draft
from rankdash.kit.html.html_page import CHART_ENGINE, PageTable, prose, table, together

_LONGEST = 200


def rules(draft: Draft) -> str:
    """Definitions, the rules and the statistics in force, and what was left out of each system."""
    study = draft.study
    measures = {spec: parse_measure(spec).metric for spec in study.specs}
    definitions = [
        (
            metric_title(spec),
            paragraph([_(each) for each in (metric.meaning, metric.note) if each]),
            _(metric.formula),
            metric.reference,
        )
        for spec, metric in measures.items()
    ]
    text = _(
        "A query that failed, or has no value for another reason on one side, is excluded from "
        "both sides of that comparison and counted as excluded: it is never a zero."
    )
    head = (_("metric"), _("meaning"), _("formula"), _("source"))
    return "".join(
        [
            prose(text),
            table(PageTable(head, definitions)),
            f"<h3>{html_safe(_('Metric conventions used'))}</h3>",
            table(PageTable((_("setting"), _("current value"), _("meaning")), _in_force(draft))),
            f"<h3>{html_safe(_('Statistics and causes'))}</h3>",
            table(
                PageTable(
                    (_("what"), _("definition")),
                    methods(study.statistics, study.comparison.corrected),
                )
            ),
            f"<h3>{html_safe(_('Queries of each system'))}</h3>",
            _counts(draft),
        ]
    )


def _in_force(draft: Draft) -> list[tuple[str, str, str]]:
    text = rules_in_words(draft.study.conventions, draft.study.statistics)
    return [(*each, meaning) for each, meaning in zip(text, rule_meanings(), strict=True)]


def _counts(draft: Draft) -> str:
    titles = count_words()
    rows = [
        (draft.study.name(system), *(number(found.counts.get(key, 0), 0) for key in titles))
        for system, found in draft.study.evaluations.items()
    ]
    numbers = frozenset(range(1, len(titles) + 1))
    return table(PageTable((_("system"), *titles.values()), rows, numbers))


def origin(draft: Draft) -> str:
    """Systems with their settings, the machine of each, versions and the date."""
    study = draft.study
    parts = []
    for system in study.chosen:
        run = study.run(system)
        rows: list[tuple[str, str]] = []
        if run is None:
            rows.append((_("Description"), _("the ranking that the others rerank")))
        else:
            rows += [
                (_("Reranker"), run.reranker),
                (_("Depth"), _("all candidates") if run.depth is None else number(run.depth, 0)),
                (_("Run"), run.id),
                *([(_("Made (UTC)"), moment(run.created))] if run.created else []),
                (_("Settings"), _listed(run.settings)),
                (_("Machine"), _listed(run.machine)),
            ]
        parts.append(
            together(
                f"<h3>{html_safe(study.name(system))}</h3>",
                table(PageTable((_("what"), _("value")), rows)),
            )
        )
    made = [
        ("rankdash", rankdash.__version__),
        ("Python", platform.python_version()),
        (_("Charts"), CHART_ENGINE),
        (_("Report made on"), platform.platform()),
        (_("Report made (UTC)"), moment(datetime.now(UTC).isoformat(timespec="seconds"))),
    ]
    parts.append(
        together(
            f"<h3>{html_safe(_('This report'))}</h3>",
            table(PageTable((_("what"), _("value")), made)),
        )
    )
    return "".join(parts)


def _listed(values: Mapping[str, object]) -> str:
    return "; ".join(f"{name}: {_short(str(value))}" for name, value in values.items()) or DASH


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"
