"""What each section of the report would say, in a line, or what it lacks and who gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext, number
from rankdash.study.study import Subject
from rankdash.ui.widgets.text import markdown_safe
from rankdash.words.verdicts import chip

_NAME = 40
# From here on a tenth of a millisecond says nothing.
_COARSE_MS = 10


@dataclass(frozen=True)
class Preview:
    """said: safe for Markdown. page and link: where to get what is missing, "" where nothing is.
    empty: whether the section would have nothing to say."""

    said: str
    page: str = ""
    link: str = ""
    empty: bool = False


def of(subject: Subject) -> Mapping[str, Preview]:
    """Section id → its preview."""
    return {section: tell(subject) for section, tell in _TOLD.items()}


def _verdict(subject: Subject) -> Preview:
    compared = subject.comparison
    found = (
        _(
            "{name}: {verdict}",
            name=_name(subject, system),
            verdict=chip(compared.verdict(system, subject.spec).kind),
        )
        for system in subject.challengers
    )
    return Preview(" · ".join(found))


def _systems(subject: Subject) -> Preview:
    return Preview(
        _(
            "{metrics} of {systems}, with intervals",
            metrics=ngettext("{n} metric", "{n} metrics", len(subject.specs)),
            systems=ngettext("{n} system", "{n} systems", len(subject.chosen)),
        )
    )


def _cutoffs(subject: Subject) -> Preview:
    if not subject.measure.metric.has_cutoff:
        said = _("{metric} has no cutoff.", metric=subject.measure.metric.title)
        return Preview(said, empty=True)
    return Preview(_("{metric} from k = 1 to 100", metric=subject.measure.metric.title))


def _queries(subject: Subject) -> Preview:
    rows = (
        (system, subject.comparison.row(system, subject.spec)) for system in subject.challengers
    )
    return Preview(
        " · ".join(
            _(
                "{name}: {helped} helped, {hurt} hurt",
                name=_name(subject, system),
                helped=number(row["helped"], 0),
                hurt=number(row["hurt"], 0),
            )
            for system, row in rows
        )
    )


def _latency(subject: Subject) -> Preview:
    timed = {
        system: found
        for system in subject.challengers
        if (found := subject.latency(system)) is not None
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
                name=_name(subject, system),
                ms=number(found.p95, 0 if found.p95 >= _COARSE_MS else 1),
            )
            for system, found in timed.items()
        )
    )


def _money(subject: Subject) -> Preview:
    if subject.money is None or not subject.money.chosen:
        return Preview(
            _("With example assumptions: nobody set any."),
            "cost",
            _("Set your own"),
        )
    return Preview(_("With the assumptions that you set on Cost & ROI."))


def _segments(subject: Subject) -> Preview:
    if subject.dataset.segments:
        named = ", ".join(markdown_safe(each, _NAME) for each in subject.dataset.segments)
        return Preview(_("{columns}, and those that rankdash works out", columns=named))
    return Preview(_("By length, relevant documents and difficulty"))


def _reasons(subject: Subject) -> Preview:
    if subject.has_reasons:
        return Preview(_("Why each query changed, and where quality is lost"))
    return Preview(_("Where quality is lost; reasons only for a metric that sums over documents"))


def _data(subject: Subject) -> Preview:
    said = [
        ngettext("{n} query", "{n} queries", len(subject.dataset.queries)),
        ngettext("{n} document", "{n} documents", len(subject.dataset.documents)),
        ngettext("{n} label", "{n} labels", len(subject.dataset.qrels)),
    ]
    if subject.check is not None and subject.check.warnings:
        said.append(ngettext("{n} warning", "{n} warnings", len(subject.check.warnings)))
    return Preview(" · ".join(said))


def _rules(subject: Subject) -> Preview:
    return Preview(_("Definitions, rules and statistics in force"))


def _origin(subject: Subject) -> Preview:
    return Preview(_("What each ranking was made with, and where"))


def _name(subject: Subject, system: str) -> str:
    return markdown_safe(subject.name(system), _NAME)


_TOLD: Mapping[str, Callable[[Subject], Preview]] = {
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
