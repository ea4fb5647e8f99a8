"""The first section of a report (findings, cost, risks, next step) and the last ones: definitions,
versions and machines."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from datetime import UTC, datetime

import pandas as pd

import rankdash
from rankdash.core.base.i18n import (
    all_of,
    brief,
    level_percent,
    moment,
    ngettext,
    number,
    paragraph,
    separated,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import html_safe
from rankdash.core.metrics import parse_measure
from rankdash.core.statistics.verdict import PROVEN
from rankdash.core.study import latency, leaderboard
from rankdash.core.study.costs import hit_title
from rankdash.core.study.judged import headline, verdicts
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words import costs as cost_words
from rankdash.core.words import prices
from rankdash.core.words.judged import judge_warnings, judged_sentence, without_judge
from rankdash.core.words.latency import busy_notes
from rankdash.core.words.methods import methods, rule_meanings, rules_in_words
from rankdash.core.words.queries import count_words, excluded_text, first_stage, metric_title
from rankdash.core.words.verdicts import change_interval, chip, p_fact, sentence
from rankdash.features.overview import report_systems
from rankdash.features.report import decision, words
from rankdash.features.report.decision import Decision
from rankdash.kit.html.html_page import (
    CHART_ENGINE,
    DASH,
    Draft,
    PageTable,
    listed,
    prose,
    table,
    together,
)

_LONGEST = 200
# Most systems for which the printed page has its normal size.
_ROOMY = 7


def rules(draft: Draft) -> str:
    """Return definitions, conventions and statistics, and the excluded queries of each system."""
    study = draft.study
    measures = {spec: parse_measure(spec).metric for spec in study.specs}
    definitions = [
        (
            metric_title(spec),
            paragraph([_(each) for each in (metric.meaning, metric.note) if each]),
            _(metric.formula),
            _(metric.reference),
        )
        for spec, metric in measures.items()
    ]
    text = _(
        "A query without a value for one of two compared systems, for example because it failed, "
        "is excluded from this comparison for both and reported as excluded. A failed query never "
        "counts as 0."
    )
    head = (
        _p("column", "metric"),
        _p("column", "meaning"),
        _p("column", "formula"),
        _p("column", "source"),
    )
    return "".join(
        [
            prose(text),
            table(PageTable(head, definitions)),
            f"<h3>{html_safe(_('Metric conventions used'))}</h3>",
            table(
                PageTable(
                    (_p("column", "setting"), _("current value"), _p("column", "meaning")),
                    _in_force(draft),
                )
            ),
            f"<h3>{html_safe(_('Statistics and causes'))}</h3>",
            table(
                PageTable(
                    (_p("column", "item"), _p("column", "definition")),
                    methods(
                        study.statistics,
                        study.comparison.corrected,
                        weighted=study.conventions.weighted,
                    ),
                )
            ),
            f"<h3>{html_safe(_('Queries of each system'))}</h3>",
            _counts(draft),
        ]
    )


def _in_force(draft: Draft) -> list[tuple[str, str, str]]:
    rules = draft.study.conventions
    text, meanings = rules_in_words(rules, draft.study.statistics), rule_meanings(rules)
    return [(*each, meaning) for each, meaning in zip(text, meanings, strict=True)]


def _counts(draft: Draft) -> str:
    titles = count_words()
    rows = [
        (draft.study.name(system), *(number(evaluation.counts.get(key, 0), 0) for key in titles))
        for system, evaluation in draft.study.evaluations.items()
    ]
    numbers = frozenset(range(1, len(titles) + 1))
    return table(PageTable((_p("column", "system"), *titles.values()), rows, numbers))


def origin(draft: Draft) -> str:
    """Return the systems with settings and machines, and the versions and date of the report."""
    study = draft.study
    parts = []
    for system in study.chosen:
        run = study.run(system)
        rows: list[tuple[str, str]] = []
        if run is None:
            rows.append(
                (_p("heading", "Description"), _("the ranking that the other systems rerank"))
            )
        else:
            rows += [
                (_p("heading", "Reranker"), run.reranker),
                (
                    _p("heading", "Depth"),
                    _("all candidates") if run.depth is None else number(run.depth, 0),
                ),
                (_p("heading", "Run"), run.id),
                *([(_("Made (UTC)"), moment(run.created))] if run.created else []),
                (_p("heading", "Settings"), _listed(run.settings)),
                (_p("heading", "Machine"), _listed(run.machine)),
            ]
        parts.append(
            together(
                f"<h3>{html_safe(study.name(system))}</h3>",
                table(PageTable((_p("column", "item"), _p("column", "value")), rows)),
            )
        )
    made = [
        ("rankdash", rankdash.__version__),
        ("Python", platform.python_version()),
        (_p("heading", "Charts"), CHART_ENGINE),
        (_("Report created on"), platform.platform()),
        (_("Report created (UTC)"), moment(datetime.now(UTC).isoformat(timespec="seconds"))),
    ]
    parts.append(
        together(
            f"<h3>{html_safe(_('This report'))}</h3>",
            table(PageTable((_p("column", "item"), _p("column", "value")), made)),
        )
    )
    return "".join(parts)


def _listed(values: Mapping[str, object]) -> str:
    parts = (
        _("{part}: {value}", part=name, value=_short(str(value))) for name, value in values.items()
    )
    return separated(parts) or DASH


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"


def draw_decision(draft: Draft) -> str:
    study = draft.study
    best = leaderboard.best_challenger(study)
    if best is None:
        alone, step = words.nothing_compared(study)
        return prose(alone) + _mean(draft) + _step(step)
    best_decision = decision.decision(study, best)
    parts = [
        (_p("heading", "Findings"), _found(draft, best_decision)),
        (_p("heading", "Cost"), _cost(draft, best_decision)),
        (_p("heading", "Risk"), listed(words.risks(study, best_decision))),
        (_("Open points"), listed(words.gaps(study, best_decision))),
    ]
    kind = best_decision.kind
    axis = leaderboard.usual_axis(leaderboard.standings(study))
    notes = (*report_systems.legend(study, axis), *busy_notes(study), *_meanings(draft))
    tight = " class=tight" if len(study.chosen) > _ROOMY else ""
    return "".join(
        [
            f"<div{tight}>",
            report_systems.leaderboard_html(study, axis),
            f'<div class="verdict {html_safe(kind)}"><h3><span class=tag>{html_safe(chip(kind))}'
            f"</span> {html_safe(draft.against(best))}</h3>",
            *(f"<h4>{html_safe(title)}</h4>{inside}" for title, inside in parts),
            _step(words.next_step(study, best_decision)),
            "</div>",
            _others(draft, best) if len(study.challengers) > 1 else "",
            *(prose(each, "muted") for each in notes),
            "</div>",
        ]
    )


def _step(step: str) -> str:
    title = html_safe(_("Next step"))
    return f"<div class=step><h4>{title}</h4><p><strong>{html_safe(step)}</strong></p></div>"


def _mean(draft: Draft) -> str:
    """Return the mean of the only system as a sentence; "" without one."""
    study = draft.study
    mean = study.mean(study.baseline)[0]
    if math.isnan(mean):
        return ""
    text = _("{metric} is {mean} on average.", metric=study.title, mean=number(mean))
    return prose(text)


def _found(draft: Draft, best_decision: Decision) -> str:
    """Return the findings, with a proven one first and in large type: counts if their change is
    proven."""
    study, hits = draft.study, best_decision.hits
    verdict = study.comparison.verdict(best_decision.challenger, study.spec, study.names)
    found = [sentence(verdict)]
    if hits is not None and study.measures_quality:
        counts = [words.hits(hits), sureness(study, hits.change)]
        proven = hits.change["verdict"] in PROVEN
        found = [*counts, *found] if proven else [*found, *counts]
    out = excluded_text(study.comparison.excluded(best_decision.challenger, study.spec))
    found += [each for each in (words.other_metrics(study, best_decision), out) if each]
    lead = "lead" if best_decision.headline is None else ""
    return "".join(
        [*_judged(draft, best_decision.challenger), prose(found[0], lead), *map(prose, found[1:])]
    )


def _judged(draft: Draft, challenger: str) -> list[str]:
    """Return the judge's verdict corrected with human labels, with its warnings."""
    study = draft.study
    if study.judge is None:
        return []
    verdict = verdicts(study, study.judge)[challenger]
    warnings = [prose(_("Warning: {text}", text=each)) for each in judge_warnings(study, verdict)]
    above = "lead" if headline(study, challenger) is not None else ""
    statement = prose(judged_sentence(study, verdict), above)
    return [statement, *warnings, prose(without_judge(), "muted")]


def sureness(study: Study, row: pd.Series) -> str:
    """Return the change of the hit rate as a sentence, with interval, p-value and verdict."""
    title = hit_title(study)
    if not math.isfinite(row["delta_low"]):
        return _("{part}: {value}", part=title, value=chip(str(row["verdict"])))
    return _(
        "{metric} {change} ({level}: {interval}; {p}): {verdict}",
        metric=title,
        change=signed(row["delta"]),
        level=level_percent(study.statistics.level),
        interval=change_interval(row["delta_low"], row["delta_high"]),
        p=p_fact(row, study.statistics, "p_corrected"),
        verdict=chip(str(row["verdict"])),
    )


def _cost(draft: Draft, best_decision: Decision) -> str:
    study, choice = draft.study, best_decision.choice
    sentences = [cost_words.headline(draft.context, choice, draft.money.assumptions)]
    if best_decision.headline is not None:
        # The sentences above use human labels only.
        sentences.append(cost_words.sureness(draft.context, choice))
    if choice.bill is not None and not choice.unset:
        amount, _interval = cost_words.cell(choice.outcome.cost_per_thousand, draft.money.currency)
        marks = prices.marks(choice.bill)
        text = _("1,000 searches cost {amount}.", amount=amount)
        sentences.append(f"{text} ({all_of(marks)})" if marks else text)
    summary = latency.summary(study, best_decision.challenger)
    if summary is not None and summary.p95 is not None:
        sentences.append(
            ngettext(
                "p95 latency: {ms} ms ({n} query timed).",
                "p95 latency: {ms} ms ({n} queries timed).",
                summary.n,
                ms=brief(summary.p95),
            )
        )
    return "".join(map(prose, sentences))


def _others(draft: Draft, best: str) -> str:
    """Return the judge's verdicts on the other systems."""
    study = draft.study
    if study.judge is None:
        return ""
    judge_verdicts = verdicts(study, study.judge)
    paragraphs = [
        prose(judged_sentence(study, judge_verdicts[each]))
        for each in judge_verdicts
        if each != best
    ]
    return "".join([*paragraphs, prose(without_judge(), "muted")])


def _meanings(draft: Draft) -> list[str]:
    """Return definitions for readers who have only this file: the metric and the first stage."""
    study = draft.study
    sentences = [draft.explained(study.title, _(study.measure.metric.meaning))]
    if study.baseline == FIRST_STAGE:
        how = study.dataset.first_stage
        order = (
            _("the order of the search, before any reranking.")
            if how == "given"
            else _("{made}, before any reranking.", made=first_stage(how))
        )
        sentences.append(draft.explained(study.name(FIRST_STAGE), order))
    return sentences
