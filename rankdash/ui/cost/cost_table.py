"""Figures side by side: a value, and below it, smaller, its interval."""

from __future__ import annotations

from collections.abc import Sequence

from rankdash.words.html import html_safe

# The columns keep their width; where there are too many of them the table scrolls, not the page.
_STYLE = """<style>
.rd-figures { overflow-x: auto; }
.rd-figures table { border-collapse: collapse; font-size: 0.875rem; min-width: 100%; }
.rd-figures th, .rd-figures td { text-align: right; vertical-align: top; min-width: 4.6rem;
  padding: 0.3rem 0.35rem; line-height: 1.3;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
.rd-figures th { font-weight: 600; max-width: 10rem; overflow-wrap: anywhere; }
.rd-figures tr > :first-child { text-align: left; font-weight: 400; padding-left: 0;
  min-width: 6.5rem; }
.rd-figures .rd-looked { background: color-mix(in srgb, #0072B2 12%, transparent); }
.rd-figures small { display: block; font-weight: 400; opacity: 0.75; font-size: 0.72rem; }
.rd-figures .rd-whole { white-space: nowrap; }
.rd-figures .rd-strong { font-weight: 600; }
</style>"""

# So long a value is a sentence, and wraps; so do intervals and prices where there are
# many columns.
_SENTENCE = 22
_MANY = 4

Cell = tuple[str, str]
"""A value and what stands below it, such as its interval; "" for nothing."""


def html(
    corner: str,
    headings: Sequence[str],
    rows: Sequence[tuple[Cell, Sequence[Cell]]],
    *,
    looked_at: int | None = None,
    strong: Sequence[str] = (),
) -> str:
    """A table for `st.html`; everything in it is escaped here.

    rows: (title with its unit, one cell for each heading). looked_at: the column to set off.
    strong: titles of the rows that matter most.
    """

    def cell(
        tag: str, content: Cell, place: int | None, *, title: bool = False, bold: bool = False
    ) -> str:
        kinds = ["rd-looked"] if looked_at is not None and place == looked_at else []
        kinds += ["rd-strong"] if bold else []
        value, below = content
        # Titles wrap; a number broken over two lines is misread.
        many = len(headings) > _MANY
        size = (
            " class='rd-whole'" if _whole(value) and not (title or (many and "/" in value)) else ""
        )
        kind = " class='rd-whole'" if _whole(below) and not many else ""
        small = f"<small{kind}>{html_safe(below)}</small>" if below else ""
        return (
            f"<{tag} class='{' '.join(kinds)}'><span{size}>{html_safe(value)}</span>{small}</{tag}>"
        )

    head = cell("th", (corner, ""), None, title=True)
    head += "".join(
        cell("th", (text, ""), place, title=True) for place, text in enumerate(headings)
    )
    body = "".join(
        f"<tr>{cell('td', name, None, title=True)}"
        + "".join(
            cell("td", each, place, bold=name[0] in strong) for place, each in enumerate(cells)
        )
        + "</tr>"
        for name, cells in rows
    )
    return f"{_STYLE}<div class='rd-figures'><table><tr>{head}</tr>{body}</table></div>"


def _whole(text: str) -> bool:
    """Whether it is a number, or two: misread when broken over two lines."""
    return len(text) <= _SENTENCE and any(each.isdigit() for each in text)
