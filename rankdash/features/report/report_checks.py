"""The parts of a report that follow from its files, drawn again and compared."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import zip_longest

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.study.certificate import Check
from rankdash.core.study.leaderboard import best_challenger
from rankdash.core.study.study import Study
from rankdash.core.words.verdicts import sentence
from rankdash.features import offered
from rankdash.features.report import report_sections, words
from rankdash.features.report.decision import hit_counts
from rankdash.features.report.report import SECTIONS
from rankdash.kit.html.html_page import Draft, Page, prose, section

_Part = Callable[[str], list[str]]
_TABLE, _ROW = ("<table", "</table>"), ("<tr>", "</tr>")
_FACT, _VERDICT = ("<div><dt>", "</div>"), ('<div class="verdict ', "</dl>")
# A style sheet, and the mark of a system, which depends on the other systems of the dashboard.
_DRAWINGS = (("<style>", "</style>"), ("<img ", ">"))
_CELL, _TAG = re.compile("<t[hd] "), re.compile("<[^<>]*>")
_MOST_NAMED = 3


def section_checks(document: str, study: Study) -> Iterator[Check]:
    """Yield the checks of the sections of a report, in the current language."""
    parts: list[tuple[str, str, _Part]] = [
        ("decision", "leaderboard", _leaderboard),
        ("decision", "findings", partial(_findings, study)),
        ("verdict", "verdicts", _verdicts),
        ("systems", "table of systems and metrics", lambda drawn: [drawn.partition("<h3>")[0]]),
        ("cutoffs", "means by cutoff", lambda drawn: [drawn]),
        ("rules", "rules", lambda drawn: [drawn]),
    ]
    for section_id, subject, part in parts:
        start = f'<section id="{section_id}">'
        if start in document:
            printed = document.partition(start)[2].partition("</section>")[0]
            stored, expected = part(printed), part(_drawn(study, section_id))
            reason = _difference(stored, expected)
            if document.count(start) > 1:
                reason = "the report has two such sections"
            yield Check(f"printed {subject}", reason)


def _drawn(study: Study, section_id: str) -> str:
    """Return the content of a section, without the element around it."""
    (found,) = (each for each in SECTIONS if each.id == section_id)
    drawn = section(_p("section", found.title), offered(found.drawn)(Draft(Page("", ""), study)))
    return drawn.removeprefix("<section>").removesuffix("</section>")


def _difference(stored: list[str], expected: list[str]) -> str:
    """Return in which texts two lists differ; "" if they are equal."""
    pairs = [
        pair
        for one, other in zip_longest(stored, expected, fillvalue="")
        if one != other
        for pair in zip_longest(_TAG.split(one), _TAG.split(other), fillvalue="")
        if pair[0] != pair[1]
    ]
    wrong = [f"“{html.unescape(one)}”, computed “{html.unescape(other)}”" for one, other in pairs]
    if stored != expected and not wrong:
        wrong = ["the texts are equal, but not the markup"]
    return "; ".join(wrong[:_MOST_NAMED])


def _split(text: str, ends: tuple[str, str]) -> tuple[list[str], list[str]]:
    """Return the texts between the elements with this start and end, and the elements. The work is
    proportional to the length, whatever the text."""
    start, end = ends
    between, elements, at = [], [], 0
    while (begin := text.find(start, at)) >= 0 and (stop := text.find(end, begin)) >= 0:
        between.append(text[at:begin])
        at = stop + len(end)
        elements.append(text[begin:at])
    return [*between, text[at:]], elements


def _without_drawings(text: str) -> str:
    for ends in _DRAWINGS:
        text = "".join(_split(text, ends)[0])
    return text


def _leaderboard(drawn: str) -> list[str]:
    """Return the cells of the leaderboard that do not depend on latencies, prices and data beyond
    the labels and rankings."""
    hidden = (_("p95 added"), _p("column", "Price"), _p("column", "Pareto"))
    [content, *_others] = [*_split(drawn, _TABLE)[1], ""]
    between, found = _split(content, _ROW)
    rows = [_CELL.split(row.removeprefix("<tr>").removesuffix("</tr>")) for row in found]
    titles = (
        [html.unescape(cell.partition(">")[2].partition("<")[0]) for cell in rows[0]]
        if rows
        else []
    )
    cells = [
        _without_drawings(cell).replace(f" · {_('before reranking')}", "")
        for row in rows
        for title, cell in zip_longest(titles, row, fillvalue="")
        if title not in hidden
    ]
    return ["".join(between), *cells]


def _findings(study: Study, drawn: str) -> list[str]:
    """Return the decision from below the leaderboard to the findings."""
    best = best_challenger(study)
    [board, *_others] = [*_split(drawn, _TABLE)[1], ""]
    above, *boxes = _without_drawings(drawn.replace(board, "", 1)).split("<h4>")
    if best is None:
        return [above]
    found = boxes[0] if boxes else ""
    hits = hit_counts(study, best)
    sentences = [sentence(study.comparison.verdict(best, study.spec, study.names))]
    if hits is not None and study.measures_quality:
        sentences += [words.hits(hits), report_sections.sureness(study, hits.change)]
    if study.statistics.equal_margin is not None:
        # A sentence on an equal system with a lower latency or price may follow.
        ends = [found.rfind(prose(each)[2:]) + len(prose(each)) for each in sentences]
        found = found[: max(ends)]
    return [above, found]


def _verdicts(drawn: str) -> list[str]:
    """Return the verdicts with their facts. Facts that need latency, cost or the candidates of the
    first stage are excluded."""
    hidden = (_("p95 latency"), _("cost of 1,000 searches"), _("potential gain realised"))
    verdicts = []
    for each in [drawn.partition("<div")[0], *_split(drawn, _VERDICT)[1]]:
        (first, *between), facts = _split(each, _FACT)
        titles = (fact.removeprefix("<div><dt>").partition("</dt>")[0] for fact in facts)
        shown = (
            ("" if html.unescape(title) in hidden else fact) + after
            for title, fact, after in zip(titles, facts, between, strict=True)
        )
        verdicts.append("".join([first, *shown]))
    return verdicts
