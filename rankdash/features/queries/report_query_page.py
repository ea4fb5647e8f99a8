"""One query as a page: what it scored, why, where its documents went, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rankdash.core.base.html import html_safe
from rankdash.core.base.i18n import gettext as _
from rankdash.kit.drawing.drawing import Chart
from rankdash.kit.html.html_page import Page, PageTable, folded, section, table


@dataclass(frozen=True)
class Card:
    """A document in the list of a system. grade, elsewhere (its rank in other systems) and facts
    (score, tokens read) are in labels."""

    doc_id: str
    rank: int
    grade: str
    relevant: bool
    elsewhere: str
    facts: Sequence[str] = ()


@dataclass(frozen=True)
class Document:
    """text: "" where the data has none. about: its grade and ranks, in labels."""

    doc_id: str
    title: str
    text: str
    about: str


@dataclass(frozen=True, eq=False)
class QueryPage:
    """What the file says, in the reader's words; nothing here is markup.

    facts: one line under the query: data set, systems, date.
    reason, because, sentences: why it changed: in a word or two, what that rests on, and what each
        group of documents adds; empty where nothing can be said.
    fault, ground: whose fault a low value is, and what that rests on; empty likewise.
    missed: the relevant documents that the challenger lacks.
    lists: system → its first documents.
    documents: each document of the lists once.
    note, tags, corrections: what an analyst said of the query.
    made: what is in force, and what it means. versions: what made the file.
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


def html(page: QueryPage) -> str:
    """The page as one HTML file that needs no network."""
    made = Page(page.query, page.language)
    parts = [
        f"<header><h1 dir=auto>{html_safe(page.query)}</h1>"
        f'<p class="muted">{html_safe(" · ".join(page.facts))}</p></header>',
        section(_("What it scored"), table(page.values)),
        section(_("Why it changed"), _why(made, page)),
        section(_("Relevant documents that were not retrieved"), _missed(page.missed)),
        section(
            _("Where its documents went"),
            _charted(made, page.ladder, page.places, _("Ranks of every document as a table")),
        ),
        section(_("The first documents of each system"), _lists(page)),
        section(_("Tags and note"), _notes(page)),
        section(_("Corrected labels"), table(page.corrections) if page.corrections else ""),
        section(_("Whole texts"), _texts(page.documents)),
        section(
            _("How these numbers are computed"), _paragraphs(page.definitions) + table(page.made)
        ),
        f"<footer>{html_safe(page.versions)}</footer>",
    ]
    return made.html("\n".join(parts))


def _why(made: Page, page: QueryPage) -> str:
    text = ""
    if page.reason:
        text = f"<p><strong>{html_safe(page.reason)}</strong> · {html_safe(page.because)}</p>"
    if page.fault:
        fault = html_safe(_("Fault: {fault}", fault=page.fault))
        text += f"<p><strong>{fault}</strong> · {html_safe(page.ground)}</p>"
    if page.sentences:
        text += f"<ul>{''.join(f'<li>{html_safe(each)}</li>' for each in page.sentences)}</ul>"
    return text + _charted(
        made, page.waterfall, page.contributions, _("Contribution of every document as a table")
    )


def _charted(made: Page, chart: Chart | None, beside: PageTable | None, summary: str) -> str:
    """A chart, and the table that says the same."""
    drawn = made.chart(chart) if chart is not None else ""
    return drawn + (folded(summary, table(beside)) if beside is not None else "")


def _lists(page: QueryPage) -> str:
    known = {document.doc_id: (at, document) for at, document in enumerate(page.documents)}
    columns = []
    for system, cards in page.lists:
        inside = "".join(_card(card, *known[card.doc_id]) for card in cards)
        nothing = (
            f'<p class="muted">{html_safe(_("This system has no document for the query."))}</p>'
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


def _missed(documents: Sequence[Document]) -> str:
    return "".join(
        f'<div class="card relevant"><b dir=auto>{html_safe(document.title or document.doc_id)}</b>'
        f'<p class="muted">{html_safe(document.about)}</p>'
        f'<p class="whole" dir=auto>{_whole(document)}</p></div>'
        for document in documents
    )


def _texts(documents: Sequence[Document]) -> str:
    # The target of a link inside of a folded part unfolds it.
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
    return html_safe(document.text or _("The data has no text for it."))


def _notes(page: QueryPage) -> str:
    tags = "".join(f'<span class="tag">{html_safe(tag)}</span>' for tag in page.tags)
    note = f'<div class="whole" dir=auto>{html_safe(page.note)}</div>' if page.note else ""
    return (f"<p>{tags}</p>" if tags else "") + note


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{html_safe(text)}</p>" for text in texts)
