"""The one door for text that came from a file.

Streamlit renders Markdown in labels, captions, messages and metrics, and Markdown can load remote
images. Whatever a user uploaded (ids, names, queries, documents) goes through here, or to
`st.dataframe` and `st.text`, which show it as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from rankdash.core.base.html import CONTROL
from rankdash.core.base.html import html_safe as html_safe
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.names import columns, fits, middle
from rankdash.core.base.names import shortened as shortened

_ASCII_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
# All of it but the marks of headings, lists, quotes and emphasis.
_NO_MARK = re.compile(r"([!\"$%&',/:;<=?@\[\\\]^`{|}~])")
_HEADING = re.compile(r"^( {0,3})(#{1,6})(?=\s|$)")
_ADDRESS = re.compile(r":(?=//)|www(?=\.)|@", re.IGNORECASE)

# In columns of text: an interval, "0.617 … 0.714", is whole.
_WHOLE = 14
# Longer than the names that a person gives: those are whole, and wrap.
_NAME_WIDTH = 160

# Of a column of names in a grid: how many Latin letters a line has. Of its rows, in pixels.
_NAME_COLUMN = 26
_LINE, _PADDING, _LOWEST_WRAPPED = 20, 12, 66

# Borders take the colour of the text, so that the table fits light and dark.
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
    """One line of `text` for a place that renders Markdown; nothing in it is markup there.

    CommonMark lets every ASCII punctuation character be escaped by a backslash. Addresses are made
    links after the escapes are gone, so an invisible word joiner breaks them. Bidirectional
    overrides and control characters, which could make a label lie, are dropped.
    """
    line = shortened(" ".join(CONTROL.sub("", text).split()), limit)
    return _ASCII_PUNCTUATION.sub(r"\\\1", _ADDRESS.sub("\\g<0>\u2060", line))


def paragraphs_safe(text: str) -> str:
    """`text` with its headings, lists, quotes and emphasis, for a place that renders Markdown.

    Everything else stays text: HTML, images, links, code, tables and Streamlit's own marks need a
    character that is escaped here. Headings become small ones; lines stay lines.
    """
    return "  \n".join(
        _line_safe(CONTROL.sub("", line)) for line in text.expandtabs(4).splitlines()
    )


def _line_safe(line: str) -> str:
    escaped = _NO_MARK.sub(r"\\\1", _ADDRESS.sub("\\g<0>\u2060", line))
    return _HEADING.sub(lambda found: f"{found[1]}{'#' * min(3 + len(found[2]), 6)}", escaped)


def name_safe(name: str, width: int = _NAME_WIDTH) -> str:
    """The name of a system for a place that renders Markdown, cut in the middle to `width` columns
    (a Chinese character takes two): such names often differ only at the end."""
    return markdown_safe(middle(name, width), 2 * width)


def names_help(names: Iterable[str], width: int) -> str | None:
    """The whole names, for the help beside a place that cuts them to `width` columns; None where
    all fit."""
    cut = [f"- {name_safe(name)}" for name in names if not fits(name, width)]
    return "\n".join([_("Names in full:"), "", *cut]) if cut else None


def name_rows(names: Iterable[str]) -> int | None:
    """The height of a grid's rows, in pixels, in which the longest of some names is whole; None for
    the usual one. A grid wraps text only in rows of more than 4 rem, and shows nothing more of a
    cell under the pointer."""
    lines = math.ceil(max(map(columns, names), default=0) / _NAME_COLUMN)
    return None if lines < 2 else max(_LOWEST_WRAPPED, lines * _LINE + _PADDING)


def table_html(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells wrap, for `st.html`; every cell and heading is escaped here.

    A column without a word in it is left out.
    """

    def row(cells: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(cell(each, tag) for each in cells)}</tr>"

    def cell(text: str, tag: str) -> str:
        # A number or an interval broken over two lines is misread; names wrap between words, and
        # sentences and what is longer take the room.
        brief = " class='rd-brief'" if fits(text, _NAME_COLUMN) else ""
        kind = " class='rd-short'" if fits(text, _WHOLE) else brief
        return f"<{tag}{kind}>{html_safe(text)}</{tag}>"

    used = [place for place in range(len(headings)) if any(cells[place] for cells in rows)]
    headings, rows = _columns([headings], used)[0], _columns(rows, used)
    body = "".join(row(cells, "td") for cells in rows)
    table = f"<table class='rd-table'>{row(headings, 'th')}{body}</table>"
    return f"{_TABLE_STYLE}<div class='rd-scroll'>{table}</div>"


def _columns(rows: Sequence[Sequence[str]], used: Sequence[int]) -> list[list[str]]:
    return [[cells[place] for place in used] for cells in rows]
