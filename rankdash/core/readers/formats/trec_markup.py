"""Reader of TREC markup: documents, and topics as SGML or XML.

    <DOC> <DOCNO> FT911-3 </DOCNO> <HEADLINE> … </HEADLINE> <TEXT> … </TEXT> </DOC>
    <top> <num> Number: 301 <title> International crime <desc> Description: … <narr> … </top>
    <topics> <topic number="1"> <query> … </query> <question> … </question> </topic> </topics>

Tags may be unclosed, nested and in any case. The text of a topic is its title or query; else its
question or description; without any tag all of its text. HTML entities become characters; entities
defined by the file or in other files are not supported.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

from rankdash.core.base.errors import Finding
from rankdash.core.readers.parse.limits import ReadLimits, Refusals
from rankdash.core.readers.parse.table import Row, Table, table_of_rows

_SAMPLE_CHARS = 1 << 16
_FIRST = re.compile(r"<(doc|top|topic)(?=[\s>])", re.IGNORECASE)
_ID, _TITLE, _TEXT, _ASKED, _SKIPPED, _REST = "id", "title", "text", "asked", "skipped", "rest"
# Tag → its role, for the collections of disks 1 to 5, Cranfield and GOV.
_OF_DOCUMENTS = (
    {"docno": _ID, "docid": _SKIPPED, "dochdr": _SKIPPED, "docoldno": _SKIPPED}
    | dict.fromkeys(("title", "headline", "head", "hl", "ttl"), _TITLE)
    | dict.fromkeys(("text", "lp", "leadpara", "abstract"), _TEXT)
    | dict.fromkeys(("script", "style"), _SKIPPED)
)
_OF_TOPICS = (
    {"num": _ID, "number": _ID, "title": _TITLE, "query": _TITLE}
    | dict.fromkeys(("question", "desc", "description"), _ASKED)
    | dict.fromkeys(("narr", "narrative", "subtopic", "head", "dom", "smry"), _SKIPPED)
    | dict.fromkeys(("con", "fac", "def", "nat", "time"), _SKIPPED)
)
_ID_ATTRIBUTES = ("number", "id", "num")
_NUMBER = re.compile(r"(?:number|topic)\s*:\s*0*(?=\S)", re.IGNORECASE)
_SECTION = re.compile(r"<!--|<!\[CDATA\[")
# A "<" without ">" before the next tag is not a tag. The parser would search the rest of the file
# for the end of each.
_NO_TAG = re.compile(r"<(?=!\[|[^<>]*(?:<|\Z))")
_HEADING = re.compile(r"(?:topic|title|description|desc|question)\s*:\s*", re.IGNORECASE)


def matches(text: str) -> bool:
    """Return whether the text is markup that contains documents or topics."""
    return text.lstrip().startswith("<") and bool(_FIRST.search(text[:_SAMPLE_CHARS]))


def read(text: str, file: str, limits: ReadLimits) -> Table:
    """Read one row per document (doc_id, title, document) or per topic (query_id, query), depending
    on the first entry of the file. Entries without a number are refused with their lines.
    """
    first = _FIRST.search(text)
    documents = first is not None and first[1].lower() == "doc"
    reader = _Documents() if documents else _Topics()
    reader.feed(_NO_TAG.sub("&lt;", "".join(_without_sections(text))))
    reader.close()
    refusals = Refusals(file)
    columns = ("doc_id", "title", "document") if documents else ("query_id", "query")
    name = "TREC documents" if documents else "TREC topics"
    rows = _rows(reader.entries, refusals, documents=documents)
    table = table_of_rows(name, columns, rows, refusals, limits)
    if not reader.truncated:
        return table
    finding = Finding(
        "warning",
        "not_closed",
        "The last entry is not closed, although others are: the file may be truncated.",
        remedy="Copy or download the file again.",
        file=file,
        line=reader.entries[-1].line,
    )
    return replace(table, findings=(finding,))


def _rows(entries: Sequence[_Entry], refusals: Refusals, *, documents: bool) -> Iterator[Row]:
    for entry in entries:
        row = entry.document() if documents else entry.topic()
        if row[0] is None:
            refusals.add("no_number", [entry.line], [" ".join(filter(None, row))])
        else:
            yield entry.line, row


def _without_sections(text: str) -> Iterator[str]:
    """Yield the text in pieces, with comments as empty lines and CDATA as escaped text, so that
    line numbers do not change."""
    start = 0
    while (match := _SECTION.search(text, start)) is not None:
        close = "-->" if match[0] == "<!--" else "]]>"
        end = text.find(close, match.end())
        if end < 0:
            break
        yield text[start : match.start()]
        inside = text[match.end() : end]
        yield "\n" * inside.count("\n") if close == "-->" else escape(inside)
        start = end + len(close)
    yield text[start:]


class _Entry:
    """A document or a topic. line: its first line. number: the id from an attribute."""

    def __init__(self, line: int, number: str | None) -> None:
        self.line = line
        self._number = number
        self._pieces: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, part: str, text: str) -> None:
        self._pieces[part].append(text)

    def document(self) -> tuple[str | None, str | None, str | None]:
        number = self._line(_ID) or self._number
        body = "".join(self._pieces[_TEXT]).strip() or "".join(self._pieces[_REST]).strip()
        return number, self._line(_TITLE), body or None

    def topic(self) -> tuple[str | None, str | None]:
        number = _NUMBER.sub("", self._line(_ID) or self._number or "", count=1)
        candidates = (self._line(part) for part in (_TITLE, _ASKED, _REST))
        return number or None, next(filter(None, candidates), None)

    def _line(self, part: str) -> str | None:
        line = " ".join("".join(self._pieces[part]).split())
        if part in (_TITLE, _ASKED):
            heading = _HEADING.match(line)
            line = line[heading.end() :] if heading else line
        return line or None


class _Markup(HTMLParser):
    """A parser of documents or topics. entries: in the order of the file."""

    opens: frozenset[str]
    parts: dict[str, str]

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[_Entry] = []
        self._inside: list[str] = []
        self._entry: _Entry | None = None
        self._closed = False

    @property
    def truncated(self) -> bool:
        """True if other entries are closed, but not the last one."""
        return self._closed and self._entry is not None

    def set_cdata_mode(self, elem: str, **_settings: bool) -> None:
        """Do nothing, so that tags after an unclosed <title> or <style> are parsed as tags."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.opens:
            attributes = dict(attrs)
            number = next(
                (attributes[name] for name in _ID_ATTRIBUTES if attributes.get(name)), None
            )
            self._entry = _Entry(self.getpos()[0], number)
            self.entries.append(self._entry)
            self._inside = []
        elif self._entry is not None:
            self._begin(tag)
            self.handle_data(" ")

    @abstractmethod
    def _begin(self, tag: str) -> None: ...

    def handle_endtag(self, tag: str) -> None:
        if tag in self.opens:
            self._entry, self._closed = None, True
        elif tag in self._inside:
            while self._inside.pop() != tag:
                pass
        else:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        if self._entry is not None:
            part = self.parts[self._inside[-1]] if self._inside else _REST
            self._entry.add(part, data)


class _Documents(_Markup):
    opens = frozenset({"doc"})
    parts = _OF_DOCUMENTS

    def _begin(self, tag: str) -> None:
        # A number contains no tags, so the next tag closes it.
        if self._inside and self.parts[self._inside[-1]] == _ID:
            self._inside.pop()
        if tag in self.parts:
            self._inside.append(tag)


class _Topics(_Markup):
    opens = frozenset({"top", "topic"})
    parts = _OF_TOPICS

    def _begin(self, tag: str) -> None:
        # The parts of a topic follow each other; most of them are never closed.
        if tag in self.parts:
            self._inside = [tag]
