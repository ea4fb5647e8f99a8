"""The report: its sections in order, as one file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from babel.dates import format_date

from rankdash.core.base.errors import SpecError
from rankdash.core.base.i18n import (
    LANGUAGES,
    enumerated,
    ngettext,
    paragraph,
    speaking,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import html_safe
from rankdash.core.readers import Source
from rankdash.core.study import latency
from rankdash.core.study.certificate import EMPTY, certificate, embedded, is_certifiable
from rankdash.core.study.judged import verdicts
from rankdash.core.study.labelling import as_estimated, only_estimates
from rankdash.core.study.study import Study
from rankdash.core.words.judged import judged_sentence
from rankdash.core.words.labelling import labelling_sentences
from rankdash.core.words.verdicts import query_counts
from rankdash.features import offered
from rankdash.kit.html.html_page import (
    Draft,
    Page,
    data_uri,
    section,
)


@dataclass(frozen=True)
class Section:
    """An optional section of the report.

    title: in English, to be translated. drawn: address of the function that draws it. estimated:
        the same for a report on sampled labels, which has no section that is computed from means;
        "" for none.
    """

    id: str
    title: str
    drawn: str
    estimated: str = ""


SECTIONS = (
    Section(
        "decision",
        "Decision",
        "report.report_sections:draw_decision",
        "overview.report:draw_estimates",
    ),
    Section("verdict", "Verdict of each system", "overview.report:draw"),
    Section("systems", "Systems and metrics", "overview.report_systems:means"),
    Section("cutoffs", "The metric by cutoff", "overview.report_systems:curve"),
    Section("queries", "Queries helped and hurt", "queries.report:draw"),
    Section("segments", "Kinds of queries", "overview.report:segments"),
    Section("reasons", "Reasons for changes", "overview.report:reasons"),
    Section("latency", "Latency", "latency.report:draw", "latency.report:draw"),
    Section("cost", "Cost and break-even", "cost.report:draw", "cost.report:draw"),
    Section("data", "The data", "data.report:draw", "data.report:draw"),
    Section("rules", "How these numbers are computed", "report.report_sections:rules"),
    Section(
        "origin",
        "Versions and machines",
        "report.report_sections:origin",
        "report.report_sections:origin",
    ),
)

ALL = tuple(each.id for each in SECTIONS)
ESTIMATED = tuple(each.id for each in SECTIONS if each.estimated)

PRESETS: Mapping[str, tuple[str, ...]] = {"decision": ("decision",), "full": ALL}
"""Name → sections: one printed page, or everything."""

# Most systems that are named above the first section.
_NAMED = 4

LONGEST_TITLE, LONGEST_NOTE = 200, 5_000


def sections_of(study: Study) -> tuple[str, ...]:
    """Return the ids of the sections that a report on the study can have."""
    return ESTIMATED if only_estimates(study) else ALL


@dataclass(frozen=True)
class Front:
    """Settings of a report. title: "" for the default, which names the data set. note: text of the
    author. logo: picture. sections: ids of `SECTIONS`, shown in the order of `SECTIONS`.

    Raises SpecError for a section or a language that does not exist, or a text that is too long.
    """

    title: str = ""
    note: str = ""
    logo: bytes | None = None
    sections: tuple[str, ...] = ALL
    language: str = "en"

    def __post_init__(self) -> None:
        for unknown in (each for each in self.sections if each not in ALL):
            raise SpecError(
                "Unknown section {section!r}.",
                remedy="Allowed: {sections}.",
                section=unknown,
                sections=", ".join(ALL),
            )
        if not self.sections:
            raise SpecError(
                "Choose at least one section for the report.",
                remedy="Choose at least one of: {sections}.",
                sections=", ".join(ALL),
            )
        if self.language not in LANGUAGES:
            raise SpecError(
                "Unknown language {language!r}.",
                remedy="Allowed: {languages}.",
                language=self.language,
                languages=", ".join(LANGUAGES),
            )
        for text, most in ((self.title, LONGEST_TITLE), (self.note, LONGEST_NOTE)):
            if len(text) > most:
                raise SpecError(
                    "A text of the report has {length:,} characters; at most {most:,} are allowed.",
                    remedy="Shorten it.",
                    length=len(text),
                    most=most,
                )


def front_of(
    title: str,
    note: str,
    logo: str | os.PathLike[str] | None,
    sections: Iterable[str] | None,
    language: str,
) -> Front:
    """Return the settings of a report, with the logo read from a file. sections: None for all.

    Raises DataError if the file cannot be read, and the SpecErrors of `Front`.
    """
    picture = None if logo is None else Source.from_path(Path(logo)).data
    return Front(title, note, picture, ALL if sections is None else tuple(sections), language)


def lacking(study: Study) -> Mapping[str, str]:
    """Return section id → the reason why the section would be empty."""
    possible = sections_of(study)
    sampled = _("Needs labels of all documents; the existing labels were sampled.")
    reasons = {each: sampled for each in ALL if each not in possible}
    metric = study.measure.metric
    if "cutoffs" in possible and not metric.has_cutoff:
        reasons["cutoffs"] = _("{metric} has no cutoff.", metric=metric.title)
    timed = (latency.summary(study, system) for system in study.challengers)
    if not any(each is not None and each.p95 is not None for each in timed):
        reasons["latency"] = _(
            "No latency was measured: the rankings came from files or from the score cache."
        )
    return reasons


def html(study: Study, front: Front | None = None) -> bytes:
    """Return the report as one file.

    Raises DataError for a logo that is not a picture or too large.
    """
    front = front or Front()
    with speaking(front.language):
        page, body = _written(study, front)
        content = certificate(as_estimated(study))
        document = page.html(body if content is None else body + EMPTY)
    written = document.encode("utf-8", "replace")
    return written if content is None else embedded(written, content)


def first_page(study: Study, front: Front, scale: float) -> str:
    """Return a picture of the first page, as HTML that runs no script and loads nothing.

    scale: 1 for its size on the screen.
    """
    with speaking(front.language):
        page, body = _written(study, front, most=1)
        return page.picture(body, scale)


def _written(study: Study, front: Front, most: int | None = None) -> tuple[Page, str]:
    """Return the page of the report and its HTML body. most: maximum number of sections; None for
    all."""
    title = front.title.strip() or _("Reranking on {data}", data=study.dataset.name)
    page = Page(title, front.language)
    estimated = only_estimates(study)
    draft = Draft(page, as_estimated(study))
    # With sampled labels, the decision is the verdict.
    ids = set(front.sections) & set(sections_of(study)) or {"decision"}
    chosen = [each for each in SECTIONS if each.id in ids]
    parts = [
        section(
            _p("section", each.title),
            offered(each.estimated if estimated else each.drawn)(draft),
            each.id,
        )
        for each in chosen[:most]
    ]
    # The first section comes before the links to the others.
    first, *rest = parts
    return page, "\n".join(
        [_head(draft.study, front, title), first, _contents(chosen), *rest, _foot(study)]
    )


def _head(study: Study, front: Front, title: str) -> str:
    compared = study.name(study.baseline)
    if study.challengers:
        n = len(study.challengers)
        systems = enumerated([*map(study.name, study.challengers)])
        if n > _NAMED:
            systems = ngettext("{n} system", "{n} systems", n)
        compared = _("{baseline} → {systems}", baseline=compared, systems=systems)
    facts = [
        study.dataset.name,
        compared,
        study.title,
        query_counts(study, means=not only_estimates(study)),
        str(format_date(datetime.now(UTC), "medium", locale=front.language)),
    ]
    logo = ""
    if front.logo is not None:
        logo = f'<img class="logo" alt="" src="{data_uri(front.logo)}">'
    notes = [front.note.strip()]
    # The decision starts with it.
    if study.judge is not None and "decision" not in front.sections:
        judge_verdicts = verdicts(study, study.judge).values()
        notes.append(paragraph([judged_sentence(study, each) for each in judge_verdicts]))
    if study.labelling is not None:
        notes.append(paragraph(labelling_sentences(study.labelling)))
    shown = "".join(
        f'<div class="whole note" dir=auto>{html_safe(note)}</div>' for note in notes if note
    )
    return (
        f"<header>{logo}<h1 dir=auto>{html_safe(title)}</h1>"
        f'<p class="muted">{html_safe(" · ".join(facts))}</p></header>{shown}'
    )


def _contents(chosen: list[Section]) -> str:
    """Return links to the sections, for the screen."""
    links = "".join(
        f'<a href="#{each.id}">{html_safe(_p("section", each.title))}</a>' for each in chosen
    )
    return f"<nav>{links}</nav>" if len(chosen) > 1 else ""


def _foot(study: Study) -> str:
    text = _(
        "Static snapshot: every number was computed when this file was made. The file loads "
        "nothing from a network."
    )
    check = _(
        "This report can be checked: {command}",
        command=_("rankdash verify REPORT --qrels FILE --run FILE …"),
    )
    sentences = [text, check] if is_certifiable(study) else [text]
    if any(map(study.tuned, study.chosen)):
        sentences.append(
            _(
                "This report contains a system that was tuned on these queries, so it cannot be "
                "verified."
            )
        )
    return f"<footer>{html_safe(paragraph(sentences))}</footer>"
