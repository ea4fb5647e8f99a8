"""Safe rendering of all text that came from a file.

Streamlit renders Markdown in labels, captions, messages and metrics, and Markdown can load remote
images. All uploaded text (ids, names, queries, documents) passes through here, or is shown
unchanged by `st.dataframe` and `st.text`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from rankdash.core.base.i18n import brief, signed
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.text import CONTROL, columns, fits, middle
from rankdash.core.base.text import html_safe as html_safe
from rankdash.core.base.text import shortened as shortened
from rankdash.core.words.columns import Column, Row

_ASCII_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
# All of it except the marks of headings, lists, quotes and emphasis.
_NO_MARK = re.compile(r"([!\"$%&',/:;<=?@\[\\\]^`{|}~])")
_HEADING = re.compile(r"^( {0,3})(#{1,6})(?=\s|$)")
_ADDRESS = re.compile(r":(?=//)|www(?=\.)|@", re.IGNORECASE)

# In columns of text: an interval, "0.617 … 0.714", is shown whole.
_WHOLE = 14
# In columns of text: a name or a few words, which break between words.
_BRIEF = 26
# Longer than usual names, which are shown whole, and wrap.
_NAME_WIDTH = 160

# The width of a column of names in a grid, in Latin letters; the heights of its rows, in pixels.
_NAME_COLUMN = 40
_LINE, _PADDING, _LOWEST_WRAPPED = 20, 12, 66

# Borders have the colour of the text, so that the table suits light and dark pages.
_TABLE_STYLE = """<style>
.rd-table { width: 100%; border-collapse: collapse; font-size: 0.875rem; }
.rd-table th, .rd-table td { text-align: left; vertical-align: top; padding: 0.35rem 0.4rem;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent);
  overflow-wrap: anywhere; }
.rd-table th { font-weight: 600; opacity: 0.7; overflow-wrap: normal; word-break: keep-all; }
.rd-scroll { overflow-x: auto; }
.rd-table td { min-width: 9rem; }
.rd-table td.rd-brief { overflow-wrap: break-word; min-width: 4.5rem; }
.rd-table td.rd-short { white-space: nowrap; min-width: 0; }
</style>"""


def markdown_safe(text: str, limit: int = 200) -> str:
    """Return one line of `text` for a place that renders Markdown, with all markup escaped.

    CommonMark allows a backslash before every ASCII punctuation character. Addresses become links
    even after escaping, so an invisible word joiner breaks them. Bidirectional overrides and
    control characters, which could make a label misleading, are dropped.
    """
    line = shortened(" ".join(CONTROL.sub("", text).split()), limit)
    return _ASCII_PUNCTUATION.sub(r"\\\1", _ADDRESS.sub("\\g<0>\u2060", line))


def paragraphs_safe(text: str) -> str:
    """Return `text` with its headings, lists, quotes and emphasis, for a place that renders
    Markdown.

    Everything else stays text: HTML, images, links, code, tables and Streamlit's own marks need a
        character that is escaped here. Headings become small; line breaks stay.
    """
    return "  \n".join(
        _line_safe(CONTROL.sub("", line)) for line in text.expandtabs(4).splitlines()
    )


def _line_safe(line: str) -> str:
    escaped = _NO_MARK.sub(r"\\\1", _ADDRESS.sub("\\g<0>\u2060", line))
    return _HEADING.sub(lambda match: f"{match[1]}{'#' * min(3 + len(match[2]), 6)}", escaped)


def name_safe(name: str, width: int = _NAME_WIDTH) -> str:
    """Return the name of a system for a place that renders Markdown, truncated in the middle to
    `width` columns (a Chinese character takes two): such names often differ only at the end."""
    return markdown_safe(middle(name, width), 2 * width)


def names_help(names: Iterable[str], width: int) -> str | None:
    """Return the full names, as help text for a place that truncates them to `width` columns; None
    if all fit."""
    truncated = [f"- {name_safe(name)}" for name in names if not fits(name, width)]
    return "\n".join([_("Full names:"), "", *truncated]) if truncated else None


def name_rows(names: Iterable[str]) -> int | None:
    """Return the height of a grid's rows, in pixels, that shows the longest of some names
    completely; None for the default. A grid wraps text only in rows of more than 4 rem, and its
    hover shows no more of a cell."""
    lines = math.ceil(max(map(columns, names), default=0) / _NAME_COLUMN)
    return None if lines < 2 else max(_LOWEST_WRAPPED, lines * _LINE + _PADDING)


def table_html(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with wrapping, escaped cells, for `st.html`.

    Empty columns are omitted.
    """

    def row(cells: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(cell(each, tag) for each in cells)}</tr>"

    def cell(text: str, tag: str) -> str:
        # Numbers and intervals must not wrap; names wrap between words, and longer texts take the
        # remaining width.
        brief = " class='rd-brief'" if fits(text, _BRIEF) else ""
        kind = " class='rd-short'" if fits(text, _WHOLE) else brief
        return f"<{tag}{kind}>{html_safe(text)}</{tag}>"

    used = [place for place in range(len(headings)) if any(cells[place] for cells in rows)]
    headings, rows = _columns([headings], used)[0], _columns(rows, used)
    body = "".join(row(cells, "td") for cells in rows)
    table = f"<table class='rd-table'>{row(headings, 'th')}{body}</table>"
    # The keyboard scrolls only the focused element.
    name = html_safe(next(filter(None, headings), ""))
    scrolled = f"class='rd-scroll' tabindex=0 role=group aria-label='{name}'"
    return f"{_TABLE_STYLE}<div {scrolled}>{table}</div>"


def _columns(rows: Sequence[Sequence[str]], used: Sequence[int]) -> list[list[str]]:
    return [[cells[place] for place in used] for cells in rows]


# The words of a query marked in the text of a document, as escaped HTML.
#
# The rule, which needs neither a dictionary nor a model:
#
# - Words separated by blanks: each word of the query counts, except short everyday words (unless
#   the query has no others). A word of the text is marked if it is equal, or if both are equal
#   without a common English ending: "returning" marks "return", "returns" and "returned". The rest
#   of a word has at least four letters; a shorter word is marked only as a separate word, with or
#   without a plural s.
# - Text without blanks (Chinese, Japanese kana): question words and particles split the query into
#   pieces; then the longest stretch of two or more characters that a piece and the text have in
#   common is marked, from left to right. A single character is marked only if a piece has no other.
#
# The marks show words that a reader would look for. They do not explain the score of a model.

Spans = list[tuple[int, int]]

_UNSPACED = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNSPACED += "\U00020000-\U0003fffd"
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_WORD = re.compile(rf"[^\W_{_UNSPACED}]+")
_ENDINGS = (
    "ations", "ation", "ments", "ment", "ness", "ings", "ing", "ions", "ion", "ies", "ied", "ive",
    "ers", "er", "ed", "es", "ly", "al", "s", "y", "e",
)  # fmt: skip
_SHORTEST_STEM = 4
_LONGEST_PIECE = 12
_EVERYDAY = frozenset(
    """a an and any are as at be been but by can could do does did for from had has have how i if in
    into is it its me my no not of on or our should so than that the their them then there these
    they this those to was we were what when where which who whom whose why will with would you
    your""".split()  # noqa: SIM905 - forty quoted words are hard to read
)
_PARTICLES = re.compile(
    "什么|怎么样|怎么|怎样|如何|哪些|哪个|哪里|为什么|为何|多少|是否|能否|可以|可否|以及|或者"
    "|还是|有没有|[的了是在和与及或吗呢吧啊么有之为被把从对于也都就请问几哪谁]"
)


@dataclass(frozen=True)
class QueryTerms:
    """The search terms of a query. words: in full; stems: without their endings; pieces: stretches
    of text without blanks."""

    words: frozenset[str]
    stems: frozenset[str]
    pieces: frozenset[str]


def terms(query: str) -> QueryTerms:
    """Return the search terms of a query."""
    text = _plain(query)
    words = _WORD.findall(text)
    content = [word for word in words if word not in _EVERYDAY] or words
    pieces = [
        piece for run in _UNSPACED_RUN.findall(text) for piece in _PARTICLES.split(run) if piece
    ]
    stretches = {
        piece[start : start + size]
        for piece in pieces
        for size in range(2, min(len(piece), _LONGEST_PIECE) + 1)
        for start in range(len(piece) - size + 1)
    }
    return QueryTerms(
        words=frozenset(content),
        stems=frozenset(stem for word in content if (stem := _stem(word))),
        pieces=frozenset(stretches | {piece for piece in pieces if len(piece) == 1}),
    )


def spans(text: str, query_terms: QueryTerms) -> Spans:
    """Return the marks in a text: (start, end), in order, without overlaps."""
    plain = _plain(text)
    ranges = [
        (match.start(), match.end())
        for match in _WORD.finditer(plain)
        if _is_match(match.group(), query_terms)
    ]
    if query_terms.pieces:
        for run in _UNSPACED_RUN.finditer(plain):
            ranges += _stretches(plain, run.start(), run.end(), query_terms.pieces)
    return sorted(ranges)


def snippet(text: str, marked: Spans, length: int) -> tuple[int, int]:
    """Return the part of the text, of about `length` characters, with most of the marks."""
    if len(text) <= length:
        return 0, len(text)
    words = [text[start:end].lower() for start, end in marked]
    # The count of each word among the marks within the part.
    inside: Counter[str] = Counter()
    best, most, reached = 0, -1, 0
    for place, (start, _end) in enumerate(marked):
        while reached < len(marked) and marked[reached][1] <= start + length * 3 // 4:
            inside[words[reached]] += 1
            reached += 1
        if len(inside) > most:
            best, most = start, len(inside)
        if reached == place:
            reached += 1
        elif inside[words[place]] == 1:
            del inside[words[place]]
        else:
            inside[words[place]] -= 1
    start = min(max(0, best - length // 4), len(text) - length)
    # Start at a nearby blank instead of in the middle of a word.
    blank = text.find(" ", start, start + 20) if start else -1
    start = blank + 1 if blank >= 0 else start
    return start, min(len(text), start + length)


def pieces(text: str, marked: Spans, start: int = 0, end: int | None = None) -> list[str]:
    """Return part of the text as pieces, alternately without and with a mark."""
    end = len(text) if end is None else end
    parts, at = [], start
    for first, last in marked:
        if last <= start or first >= end:
            continue
        first, last = max(first, start), min(last, end)
        parts += [text[at:first], text[first:last]]
        at = last
    return [*parts, text[at:end]]


def marked_html(text: str, marked: Spans, start: int = 0, end: int | None = None) -> str:
    """Return part of the text with its marks, as escaped HTML."""
    parts = map(html_safe, pieces(text, marked, start, end))
    return "".join(f"<mark>{part}</mark>" if at % 2 else part for at, part in enumerate(parts))


def _plain(text: str) -> str:
    """Return the text in lower case, with full-width letters as usual ones; it has the same length,
    so that positions stay valid."""
    if text.isascii():
        return text.lower()
    return "".join(map(_folded, text))


def _folded(character: str) -> str:
    if character < "\u0080":
        return character.lower()
    folded = unicodedata.normalize("NFKC", character).lower()
    return folded if len(folded) == 1 else character


# The documents of a query share most of their words.
@lru_cache(maxsize=2**14)
def _stem(word: str) -> str:
    """Return the word without its ending; "" if too little remains."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            stem = word[: -len(ending)]
            # "stopped" is "stop", "studying" is "studies".
            doubled = stem[-1] == stem[-2] or stem[-1] in "yie"
            return _without_y(stem[:-1] if doubled and len(stem) > _SHORTEST_STEM else stem)
    return _without_y(word) if len(word) >= _SHORTEST_STEM else ""


def _without_y(stem: str) -> str:
    """Return the stem with a final i for y: "copi" for "copy", as in "copies"."""
    return f"{stem[:-1]}i" if stem.endswith("y") else stem


def _is_match(word: str, query_terms: QueryTerms) -> bool:
    if word in query_terms.words or (word.endswith("s") and word[:-1] in query_terms.words):
        return True
    return _stem(word) in query_terms.stems


def _stretches(
    text: str, start: int, end: int, pieces: frozenset[str]
) -> Sequence[tuple[int, int]]:
    ranges = []
    while start < end:
        longest = next(
            (
                size
                for size in range(min(_LONGEST_PIECE, end - start), 0, -1)
                if text[start : start + size] in pieces
            ),
            0,
        )
        if longest:
            ranges.append((start, start + longest))
        start += longest or 1
    return ranges


# Changes in a table have a sign unless they round to 0; latencies have three digits.
#
# No format of a number column can do that: "%+.3f" writes +0.000, "%.3g" 12300 for 12,345. So the
# texts of a short table are formatted here, and the browser still sorts by the numbers. A long
# table, which would take too long, has no plus signs.


def signed_cells(
    frame: pd.DataFrame, digits: Mapping[str, int], times: Collection[str] = ()
) -> Styler:
    """Return the table with formatted changes and latencies. digits: column of changes → decimals.
    times: columns of milliseconds.

    Those columns must have no format in their configuration, which would override this one; other
    columns of decimals must have one.
    """
    written: dict[Any, Any] = {
        **{column: partial(signed, digits=places) for column, places in digits.items()},
        **dict.fromkeys(times, brief),
    }
    return frame.reset_index(drop=True).style.format(written, na_rep="–")


_NUMBERS = {"number": "%.4f", "p": "%.4f", "size": "%.2f", "share": "percent", "count": "%.0f"}
_CHANGE_DIGITS = 4


def compared_cells(
    columns: Sequence[Column], rows: Sequence[Row]
) -> tuple[dict[str, list[Any]], dict[str, Any], dict[str, int]]:
    """Return the cells of a comparison and the configuration of their columns, both by name, and
    the decimals of its changes for `signed_cells`."""
    cells, config = {}, {}
    for each in columns:
        if each.kind == "words":
            cells[each.name] = [each.text(row) for row in rows]
            config[each.name] = st.column_config.TextColumn(each.title, help=each.help or None)
        else:
            cells[each.name] = [each.value(row) for row in rows]
            config[each.name] = st.column_config.NumberColumn(
                each.title, format=_NUMBERS.get(each.kind), help=each.help or None
            )
    digits = {each.name: _CHANGE_DIGITS for each in columns if each.kind == "change"}
    return cells, config, digits


def rounded(changes: pd.Series, digits: int) -> pd.Series:
    """Return changes for a column of a long table, formatted as "%.3f": values that round to 0 have
    no minus."""
    return changes.round(digits) + 0.0
