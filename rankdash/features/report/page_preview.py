"""What each section of the report would say, in a line, or what it lacks and who gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rankdash.core.base.i18n import brief, enumerated, ngettext, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study import latency
from rankdash.core.study.costs import choices, is_known
from rankdash.core.study.judged import headline
from rankdash.core.study.labelling import sampled_from
from rankdash.core.study.study import Study
from rankdash.core.words.costs import answer
from rankdash.core.words.verdicts import chip
from rankdash.features.data.words import label_count
from rankdash.features.report.report import sections_of
from rankdash.kit.widgets.text import markdown_safe

_NAME = 40
# From here on a tenth of a millisecond says nothing.


@dataclass(frozen=True)
class Preview:
    """said: safe for Markdown. page and link: where to get what is missing, "" where nothing is.
    empty: whether the section would have nothing to say."""

    summary: str
    page: str = ""
    link: str = ""
    empty: bool = False


def of(study: Study) -> Mapping[str, Preview]:
    """Section id → its preview."""
    possible = sections_of(study)
    sampled = Preview(_("Needs all labels: those that there are were sampled."), empty=True)
    return {
        section: tell(study) if section in possible else sampled for section, tell in _TOLD.items()
    }


def _decision(study: Study) -> Preview:
    return Preview(_("What was found, what it costs, risk, what is missing, the next step"))


def _verdict(study: Study) -> Preview:
    compared = study.comparison

    def kind(system: str) -> str:
        corrected = headline(study, system)
        return compared.verdict(system, study.spec).kind if corrected is None else corrected.kind

    entries = (
        _(
            "{name}: {verdict}",
            name=_name(study, system),
            verdict=chip(kind(system)),
        )
        for system in study.challengers
    )
    return Preview(" · ".join(entries))


def _systems(study: Study) -> Preview:
    counts = {
        "metrics": ngettext("{n} metric", "{n} metrics", len(study.specs)),
        "systems": ngettext("{n} system", "{n} systems", len(study.chosen)),
    }
    if study.comparison.frame["mean_low"].isna().all():
        return Preview(_("{metrics} of {systems}", **counts))
    return Preview(_("{metrics} of {systems}, with intervals", **counts))


def _cutoffs(study: Study) -> Preview:
    if not study.measure.metric.has_cutoff:
        text = _("{metric} has no cutoff.", metric=study.measure.metric.title)
        return Preview(text, empty=True)
    return Preview(_("{metric} from k = 1 to 100", metric=study.measure.metric.title))


def _queries(study: Study) -> Preview:
    rows = ((system, study.comparison.row(system, study.spec)) for system in study.challengers)
    return Preview(
        " · ".join(
            _(
                "{name}: {helped} helped, {hurt} hurt",
                name=_name(study, system),
                helped=number(row["helped"], 0),
                hurt=number(row["hurt"], 0),
            )
            for system, row in rows
        )
    )


def _latency(study: Study) -> Preview:
    timed = {
        system: summary.p95
        for system in study.challengers
        if (summary := latency.summary(study, system)) is not None and summary.p95 is not None
    }
    if not timed:
        return Preview(
            _("Nothing was timed: these rankings came from files, or from the cache."),
            "run",
            _("Run a reranker here"),
            empty=True,
        )
    return Preview(
        " · ".join(
            _(
                "{name}: p95 {ms} ms",
                name=_name(study, system),
                ms=brief(p95),
            )
            for system, p95 in timed.items()
        )
    )


def _money(study: Study) -> Preview:
    if not any(is_known(study, system) for system in study.challengers):
        return Preview(_("Costs alone: the gain is not known."))
    if study.money is not None and study.money.example:
        return Preview(_("With example values, marked as such."), "cost", _("Set your own"))
    chosen = [each for each in choices(study) if each.system in study.challengers]
    if all(answer(each) == "no" for each in chosen):
        return Preview(_("Does not pay off."))
    if study.money is None or not study.money.valued:
        text = _("Break-even only: price and value are not set.")
        return Preview(text, "cost", _("Set your own"))
    return Preview(_("With the assumptions that you set on Cost & ROI."))


def _segments(study: Study) -> Preview:
    if study.dataset.segments:
        named = enumerated(markdown_safe(each, _NAME) for each in study.dataset.segments)
        return Preview(_("{columns}, and those that rankdash works out", columns=named))
    return Preview(_("By length, relevant documents and difficulty"))


def _reasons(study: Study) -> Preview:
    if study.has_reasons:
        return Preview(_("Why each query changed, and where quality is lost"))
    return Preview(_("Where quality is lost; reasons only for a metric that sums over documents"))


def _data(study: Study) -> Preview:
    sentences = [
        ngettext("{n} query", "{n} queries", len(study.dataset.queries)),
        ngettext("{n} document", "{n} documents", len(study.dataset.documents)),
        label_count(len(study.dataset.qrels), sampled_from(study)),
    ]
    if study.check is not None and study.check.warnings:
        sentences.append(ngettext("{n} warning", "{n} warnings", len(study.check.warnings)))
    return Preview(" · ".join(sentences))


def _rules(study: Study) -> Preview:
    return Preview(_("Definitions, metric conventions and statistics"))


def _origin(study: Study) -> Preview:
    return Preview(_("Settings and machine of each ranking"))


def _name(study: Study, system: str) -> str:
    return markdown_safe(study.name(system))


_TOLD: Mapping[str, Callable[[Study], Preview]] = {
    "decision": _decision,
    "verdict": _verdict,
    "systems": _systems,
    "cutoffs": _cutoffs,
    "queries": _queries,
    "segments": _segments,
    "reasons": _reasons,
    "latency": _latency,
    "cost": _money,
    "data": _data,
    "rules": _rules,
    "origin": _origin,
}
