"""A self-contained HTML page of one query."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import numpy as np

import rankdash
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import (
    language,
    moment,
    ngettext,
    number,
    paragraph,
    percent,
    plain,
    signed,
)
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import distinguishing, html_safe, middle, shortened
from rankdash.core.metrics import parse_measure
from rankdash.core.study.reasons.contributions import Split
from rankdash.core.study.study import Study
from rankdash.core.words.methods import rules_in_words
from rankdash.core.words.queries import grade, judged_title, label_words
from rankdash.core.words.verdicts import best_order, reason_words
from rankdash.core.workspace.notes import Correction, Note
from rankdash.features.queries import charts
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.ladder import Ladder
from rankdash.features.queries.study import Missed
from rankdash.features.queries.words import fault_words, ground, place, reasoning, statement_text
from rankdash.kit.drawing.draw import Chart
from rankdash.kit.html.html_page import CHART_ENGINE, Page, PageTable, folded, section, table

_NAME = 60


def html(
    study: Study,
    challenger: str,
    query_id: str,
    corrections: Sequence[Correction] = (),
    uploaded: Mapping[str, float] | None = None,
) -> bytes:
    """Return the page as an HTML file in the current language. The study contains the note on the
    query.

    corrections: of this query's labels, if they are used. uploaded: document → uploaded label.
    """
    corrected = _corrections(study, corrections, uploaded or {})
    page = _page(study, challenger, query_id, corrected)
    return page_html(page).encode("utf-8", "replace")


def _page(study: Study, challenger: str, query_id: str, corrections: PageTable | None) -> QueryPage:
    ladder = queries_study.ladder_of(study, challenger, query_id)
    measure = parse_measure(study.spec)
    names = distinguishing(study.dataset.names_of(ladder.doc_ids))
    note = study.notes.get(query_id, Note(query_id))
    split = queries_study.change(study, challenger, query_id)
    reason, because = _reason(study, challenger, query_id, split)
    missed = queries_study.missed(study, challenger, query_id, ladder)
    blame = queries_study.blame(study, challenger, split, missed)
    lists, documents = _lists(study, ladder, query_id)
    titles = {system: study.name(system) for system in ladder.systems}
    pair = (study.name(study.baseline), study.name(challenger))
    return QueryPage(
        query=study.dataset.query_names.get(query_id, query_id),
        language=language(),
        facts=_facts(study, query_id),
        values=_values(study, challenger, query_id),
        reason=reason,
        because=because,
        fault=fault_words()[blame.fault.code] if blame else "",
        ground=ground(blame, measure.title, study.name) if blame else "",
        missed=_missed(study, missed, query_id),
        sentences=[
            statement_text(statement, measure.k).replace("**", "")
            for statement in queries_study.change_statements(study, split)
        ],
        waterfall=None
        if split.documents.empty
        else charts.waterfall(study, challenger, split, names).in_both_inks(),
        contributions=_contributions(split, pair, names),
        ladder=charts.ladder(ladder, titles, names).in_both_inks() if len(ladder) else None,
        places=_places(ladder, titles, names),
        lists=lists,
        documents=documents,
        tags=note.tags,
        note=note.text,
        corrections=corrections,
        definitions=[
            _("{part}: {value}", part=measure.title, value=_(measure.metric.meaning)),
            _(measure.metric.formula),
            *([_(measure.metric.note)] if measure.metric.note else []),
        ],
        made=PageTable(
            (_p("column", "setting"), _("current value")),
            rules_in_words(study.conventions, study.statistics),
        ),
        versions=_(
            "Created with rankdash {version} (Python {python}, {charts}) on {when} UTC. This file "
            "loads nothing from a network.",
            version=rankdash.__version__,
            python=platform.python_version(),
            charts=CHART_ENGINE,
            when=moment(datetime.now(UTC).isoformat(timespec="seconds")),
        ),
    )


def _reason(study: Study, challenger: str, query_id: str, split: Split) -> tuple[str, str]:
    """Return (reason, explanation) of a query's change in metric value; ("", "") if unknown."""
    table = study.reasons(challenger)
    if table is None or query_id not in table.index:
        return "", ""
    row = table.loc[[query_id]].iloc[0]
    text = reasoning(study, challenger, row, split, partial(shortened, limit=_NAME))
    return reason_words()[str(row["reason"])], paragraph(text)


def _missed(study: Study, missed: Sequence[Missed], query_id: str) -> list[Document]:
    texts = queries_study.texts(study, [each.doc_id for each in missed])
    labels, best = queries_study.label_of(study, query_id), study.dataset.top_grade
    return [
        Document(
            each.doc_id,
            texts[each.doc_id].title,
            texts[each.doc_id].body or "",
            f"{grade(labels[each.doc_id], best)} · {place(each, study.name)} · "
            f"{_('document {id}', id=shortened(each.doc_id, _NAME))}",
        )
        for each in missed
    ]


def _contributions(split: Split, pair: tuple[str, str], names: dict[str, str]) -> PageTable | None:
    if split.documents.empty:
        return None
    counts = split.documents[(split.documents[["before", "after"]] != 0).any(axis="columns")]
    columns = [counts[name].tolist() for name in ("label", "rank_before", "rank_after")]
    values = [counts[name].tolist() for name in ("before", "after", "delta")]
    before, after = (_("rank in {system}", system=shortened(name, _NAME)) for name in pair)
    return PageTable(
        (
            _p("column", "document"),
            _p("column", "label"),
            before,
            after,
            _("contribution before"),
            _("contribution after"),
            _p("column", "change"),
        ),
        [
            (
                names.get(doc, doc),
                *(plain(each) for each in places),
                number(was, 4),
                number(now, 4),
                signed(delta, 4),
            )
            for doc, *places, was, now, delta in zip(
                counts["doc_id"], *columns, *values, strict=True
            )
        ],
        frozenset(range(1, 7)),
    )


def _facts(study: Study, query_id: str) -> list[str]:
    data = study.dataset
    compared = f"{study.name(study.baseline)} → {', '.join(map(study.name, study.challengers))}"
    facts = [data.name, compared, study.measure.title, _("query {id}", id=query_id)]
    if study.corrections:
        facts.append(
            ngettext("{n} label corrected", "{n} labels corrected", study.corrections)
            if study.corrected
            else ngettext("{n} correction excluded", "{n} corrections excluded", study.corrections)
        )
    return facts


def _values(study: Study, challenger: str, query_id: str) -> PageTable:
    """Return a row for each system, and one for the best possible order of the candidates."""
    judged = study.spec_of("judged")
    rows, before = [], math.nan
    for system in dict.fromkeys((study.baseline, challenger, *study.challengers)):
        value = _value(study, system, study.spec, query_id)
        if system == study.baseline:
            before = value
        change = "–" if system == study.baseline else signed(value - before)
        share = percent(_value(study, system, judged, query_id))
        rows.append((study.name(system), number(value), change, share))
    ceiling = queries_study.table(study, challenger).set_index("query_id").get("ceiling")
    if ceiling is not None and query_id in ceiling.index:
        best = float(ceiling[query_id])
        split = study.headroom(challenger)
        title = best_order(split is not None and split.own)
        rows.append((title, number(best), signed(best - before), "–"))
    return PageTable(
        (
            _p("column", "system"),
            study.measure.title,
            _p("column", "change"),
            judged_title(study.cutoff),
        ),
        rows,
        frozenset({1, 2, 3}),
    )


def _value(study: Study, system: str, spec: str, query_id: str) -> float:
    return float(queries_study.by_query(study, system, spec).get(query_id, math.nan))


def _lists(
    study: Study, ladder: Ladder, query_id: str
) -> tuple[list[tuple[str, list[Card]]], list[Document]]:
    """Return the first k documents of each system, and every document of these lists once."""
    lists: list[tuple[str, list[Card]]] = []
    near: dict[str, int] = {}
    best = study.dataset.top_grade
    for system in ladder.systems:
        ranks = ladder.column(system)
        rows = [int(row) for row in np.argsort(ranks) if ranks[row] <= ladder.k]
        docs = [str(ladder.doc_ids[row]) for row in rows]
        shown = queries_study.listed(study, system, query_id, docs)
        cards = [
            Card(
                each.doc_id,
                int(ranks[row]),
                grade(float(ladder.label[row]), best),
                bool(ladder.relevant[row]),
                _elsewhere(study, ladder, row, system),
                _read(each),
            )
            for row, each in zip(rows, shown, strict=True)
        ]
        lists.append((study.name(system), cards))
        near.update(zip(docs, rows, strict=True))
    texts = queries_study.texts(study, near)
    documents = [
        Document(
            doc,
            texts[doc].title,
            texts[doc].body or "",
            f"{grade(float(ladder.label[row]), best)} · {_elsewhere(study, ladder, row)}",
        )
        for doc, row in near.items()
    ]
    return lists, documents


def _elsewhere(study: Study, ladder: Ladder, row: int, current: str = "") -> str:
    """Return the rank of a document in every system except `current`. An arrow shows the direction
    of the move between the baseline and `current`."""
    sentences = []
    for system in ladder.systems:
        if system == current:
            continue
        rank = ladder.column(system)[row]
        name = middle(study.name(system), _NAME)
        if math.isnan(rank):
            sentences.append(_("{system}: not ranked", system=name))
            continue
        here = (
            ladder.column(current)[row] if study.baseline in (current, system) and current else rank
        )
        rise = here - rank if current == study.baseline else rank - here
        sign = "" if rise == 0 else ("▲ " if rise > 0 else "▼ ")
        sentences.append(sign + _("{system}: rank {rank}", system=name, rank=int(rank)))
    return " · ".join(sentences)


def _read(shown: queries_study.Listed) -> list[str]:
    facts = []
    if shown.score is not None:
        facts.append(_("score {score}", score=number(shown.score)))
    if shown.read is not None and shown.full is not None:
        facts.append(
            _(
                "the model saw {read} of {full} tokens",
                read=number(shown.read, 0),
                full=number(shown.full, 0),
            )
        )
    return facts


def _places(ladder: Ladder, titles: dict[str, str], names: dict[str, str]) -> PageTable | None:
    if not len(ladder):
        return None
    near = ladder.picked(ladder.near)
    return PageTable(
        (_p("column", "document"), _p("column", "label"), *titles.values(), _p("column", "ideal")),
        [
            (
                names.get(doc, doc),
                plain(near.label[row]),
                *(plain(rank) for rank in near.ranks[row]),
                plain(near.ideal[row]),
            )
            for row, doc in enumerate(near.doc_ids)
        ],
        frozenset(range(1, 3 + len(titles))),
    )


def _corrections(
    study: Study, rows: Sequence[Correction], uploaded: Mapping[str, float]
) -> PageTable | None:
    if not rows:
        return None
    titles = study.dataset.document_names[0]
    return PageTable(
        (
            _p("column", "document"),
            _p("correction", "uploaded"),
            _p("correction", "corrected"),
            _("corrected by"),
            _("date (UTC)"),
        ),
        [
            (
                titles.get(each.doc_id, each.doc_id),
                label_words(uploaded.get(each.doc_id)),
                label_words(each.label),
                each.who,
                moment(each.made),
            )
            for each in rows
        ],
    )


# The page: values, reason, movements of documents, and their texts.


@dataclass(frozen=True)
class Card:
    """A document in the list of a system. grade, elsewhere (its rank in other systems) and facts
    (score, tokens read) are words for the reader."""

    doc_id: str
    rank: int
    grade: str
    relevant: bool
    elsewhere: str
    facts: Sequence[str] = ()


@dataclass(frozen=True)
class Document:
    """A document with its text ("" if the data has none). about: its grade and ranks in words."""

    doc_id: str
    title: str
    text: str
    about: str


@dataclass(frozen=True, eq=False)
class QueryPage:
    """The contents of the page, in the reader's language; no text here is markup.

    facts: one line under the query: data set, systems, date.
    reason, because, sentences: why it changed: in a few words, the evidence, and the contribution
        of each group of documents; empty if unknown.
    fault, ground: what limits a low value, and the evidence; empty if unknown.
    missed: the relevant documents that the challenger lacks.
    lists: system → its first documents.
    documents: each document of the lists once.
    note, tags, corrections: by analysts.
    made: the conventions and settings. versions: of the software.
    """

    query: str
    language: str
    facts: Sequence[str]
    values: PageTable
    lists: Sequence[tuple[str, Sequence[Card]]]
    documents: Sequence[Document]
    made: PageTable
    versions: str
    reason: str = ""
    because: str = ""
    fault: str = ""
    ground: str = ""
    missed: Sequence[Document] = ()
    sentences: Sequence[str] = ()
    waterfall: Chart | None = None
    contributions: PageTable | None = None
    ladder: Chart | None = None
    places: PageTable | None = None
    tags: Sequence[str] = ()
    note: str = ""
    corrections: PageTable | None = None
    definitions: Sequence[str] = field(default=())


_SNIPPET = 180


def page_html(page: QueryPage) -> str:
    """Return the page as one HTML file that needs no network."""
    html_page = Page(page.query, page.language)
    parts = [
        f"<header><h1 dir=auto>{html_safe(page.query)}</h1>"
        f'<p class="muted">{html_safe(" · ".join(page.facts))}</p></header>',
        section(_("Metric values"), table(page.values)),
        section(_("Reason for the change"), _why(html_page, page)),
        section(_("Relevant documents that were not retrieved"), _missed_page(page.missed)),
        section(
            _("Document movements"),
            _charted(html_page, page.ladder, page.places, _("Ranks of every document as a table")),
        ),
        section(_("Top documents of each system"), _lists_page(page)),
        section(_("Tags and note"), _notes(page)),
        section(_("Corrected labels"), table(page.corrections) if page.corrections else ""),
        section(_("Full texts"), _texts(page.documents)),
        section(
            _("How these numbers are computed"), _paragraphs(page.definitions) + table(page.made)
        ),
        f"<footer>{html_safe(page.versions)}</footer>",
    ]
    return html_page.html("\n".join(parts))


def _why(html_page: Page, page: QueryPage) -> str:
    text = ""
    if page.reason:
        text = f"<p><strong>{html_safe(page.reason)}</strong> · {html_safe(page.because)}</p>"
    if page.fault:
        fault = html_safe(_("Fault: {fault}", fault=page.fault))
        text += f"<p><strong>{fault}</strong> · {html_safe(page.ground)}</p>"
    if page.sentences:
        text += f"<ul>{''.join(f'<li>{html_safe(each)}</li>' for each in page.sentences)}</ul>"
    return text + _charted(
        html_page,
        page.waterfall,
        page.contributions,
        _("Contribution of every document as a table"),
    )


def _charted(html_page: Page, chart: Chart | None, data: PageTable | None, summary: str) -> str:
    """Return a chart with its table."""
    drawn = html_page.chart(chart) if chart is not None else ""
    return drawn + (folded(summary, table(data)) if data is not None else "")


def _lists_page(page: QueryPage) -> str:
    documents = {document.doc_id: (at, document) for at, document in enumerate(page.documents)}
    columns = []
    for system, cards in page.lists:
        inside = "".join(_card(card, *documents[card.doc_id]) for card in cards)
        nothing = (
            f'<p class="muted">{html_safe(_("This system ranks no document for the query."))}</p>'
        )
        columns.append(f"<div><h3>{html_safe(system)}</h3>{inside or nothing}</div>")
    return f'<div class="lists">{"".join(columns)}</div>'


def _card(card: Card, at: int, document: Document) -> str:
    kind = "card relevant" if card.relevant else "card"
    facts = " · ".join([card.grade, card.elsewhere, *card.facts])
    name = document.title or document.doc_id
    text = document.text[: _SNIPPET - 1] + "…" if len(document.text) > _SNIPPET else document.text
    return (
        f'<div class="{kind}"><b>{card.rank}</b> '
        f'<a href="#text-{at}" dir=auto>{html_safe(name)}</a>'
        f'<p class="muted">{html_safe(facts)}</p><p dir=auto>{html_safe(text)}</p></div>'
    )


def _missed_page(documents: Sequence[Document]) -> str:
    return "".join(
        f'<div class="card relevant"><b dir=auto>{html_safe(document.title or document.doc_id)}</b>'
        f'<p class="muted">{html_safe(document.about)}</p>'
        f'<p class="whole" dir=auto>{_whole(document)}</p></div>'
        for document in documents
    )


def _texts(documents: Sequence[Document]) -> str:
    # A link to an element in a folded section unfolds the section.
    return "".join(
        folded(
            f"{document.title or document.doc_id} · {document.about}",
            f'<div class="whole" dir=auto id="text-{at}">'
            f'<p class="muted">{html_safe(document.doc_id)}</p>'
            f"{_whole(document)}</div>",
        )
        for at, document in enumerate(documents)
    )


def _whole(document: Document) -> str:
    return html_safe(document.text or _("The data contains no text for this document."))


def _notes(page: QueryPage) -> str:
    tags = "".join(f'<span class="tag">{html_safe(tag)}</span>' for tag in page.tags)
    note = f'<div class="whole" dir=auto>{html_safe(page.note)}</div>' if page.note else ""
    return (f"<p>{tags}</p>" if tags else "") + note


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{html_safe(text)}</p>" for text in texts)
