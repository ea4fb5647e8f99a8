"""The systems side by side, the best first, and quality against latency or price beside them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from rankdash.charts import style
from rankdash.charts.mark_image import mark_image
from rankdash.i18n import gettext as _
from rankdash.i18n import paragraph
from rankdash.reporting import leaderboard as shown
from rankdash.reporting.leaderboard import Cell
from rankdash.study.leaderboard import AXES, Axis, Standing, standings
from rankdash.study.study import Study
from rankdash.ui.state import pickers
from rankdash.ui.widgets import plotly_chart
from rankdash.ui.widgets.text import markdown_safe
from rankdash.words.html import html_safe
from rankdash.words.names import middle

_LONGEST_NAME = 36
_TABLE_WIDTH = 590
# On a narrow page each system is a block: its name, then its cells with their headings.
_STYLE = """<style>
.rd-board { container-type: inline-size; overflow-x: auto; }
.rd-board table { border-collapse: collapse; font-size: 0.875rem; width: 100%; }
.rd-board th, .rd-board td { text-align: right; vertical-align: top; white-space: nowrap;
  padding: 0.3rem 0.3rem; line-height: 1.25;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
.rd-board th { font-weight: 600; white-space: normal; }
.rd-board thead th { word-break: keep-all; }
.rd-board thead small { white-space: nowrap; }
.rd-board tr > :first-child { text-align: left; white-space: normal; overflow-wrap: anywhere;
  min-width: 7rem; font-weight: 400; padding-left: 1.6rem; position: relative; }
.rd-board tbody tr:first-child { font-weight: 600; }
.rd-board tbody tr:first-child > :first-child { font-weight: 600; }
.rd-board .rd-focus { background: color-mix(in srgb, #0072B2 12%, transparent); }
.rd-board img { position: absolute; left: 0.3rem; top: 0.4rem; }
.rd-board small { display: block; font-weight: 400; opacity: 0.75; font-size: 0.72rem; }
@container (max-width: 35rem) {
  .rd-board thead { display: none; }
  .rd-board tr { display: grid; grid-template-columns: repeat(3, 1fr); }
  .rd-board tr > * { text-align: left; border-bottom: none; }
  .rd-board tr > :first-child { grid-column: 1 / -1; }
  .rd-board tbody tr {
    border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
  .rd-board td::before { content: attr(data-title); display: block; font-weight: 400;
    font-size: 0.72rem; opacity: 0.75; }
}
</style>"""


def draw(study: Study, in_focus: str) -> None:
    """in_focus: the challenger whose row is set off."""
    rows = standings(study)
    # Beside each other where both fit, else below each other.
    both = st.container(horizontal=True, gap="medium")
    table, chart = both.container(width=_TABLE_WIDTH), both.container(width="stretch")
    with chart:
        axis = _axis(rows)
        drawn = shown.trade_off(study, axis)
        if drawn is None:
            st.caption(_("No latency was measured.") if axis == "p95" else _("No price is known."))
        else:
            plotly_chart.draw(drawn, key="overview.trade_off")
    with table:
        st.subheader(_("Leaderboard"), anchor=False)
        st.html(_table(study, rows, axis, in_focus))
        named = [markdown_safe(each, 400) for each in shown.notes(study, rows, axis)]
        st.caption(paragraph(named))


def _axis(rows: Sequence[Standing]) -> Axis:
    """The one that was chosen; else latency where it is known of every system, which is measured,
    while a price may be assumed."""
    usual: Axis = "p95" if all(row.p95 is not None for row in rows) else "cost"
    words = {"p95": _("Quality and latency"), "cost": _("Quality and price")}
    chosen = pickers.pick_one(
        "trade",
        list(AXES),
        st.segmented_control,
        default=usual,
        label=_("Trade-off"),
        label_visibility="collapsed",
        format_func=words.__getitem__,
        required=True,
    )
    return "p95" if chosen == "p95" else "cost"


def _table(study: Study, rows: Sequence[Standing], axis: Axis, in_focus: str) -> str:
    """A table for `st.html`; everything in it is escaped here."""
    marks = style.marks(study.places, study.baseline)
    headings = shown.headings(study, axis)
    head = "".join(
        f"<th scope=col title='{html_safe(cell.more)}'>{html_safe(cell.value)}{_small(cell)}</th>"
        for cell in headings
    )
    body = ""
    for row in rows:
        name, *others = shown.cells(study, row, axis)
        focus = " class='rd-focus'" if row.system == in_focus else ""
        body += (
            f"<tr{focus}><th scope=row title='{html_safe(name.value)}'>"
            f"<img src=\"{mark_image(marks[row.system])}\" alt=''>"
            f"<span>{html_safe(middle(name.value, _LONGEST_NAME))}</span>"
            f"{_small(name)}</th>"
            + "".join(
                f"<td title='{html_safe(cell.more)}' data-title='{html_safe(_heading(title))}'>"
                f"{html_safe(cell.value)}{_small(cell)}</td>"
                for title, cell in zip(headings[1:], others, strict=True)
            )
            + "</tr>"
        )
    label = html_safe(_("Leaderboard"))
    return (
        f"{_STYLE}<div class='rd-board'><table aria-label='{label}'>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _heading(title: Cell) -> str:
    """A heading in one line, for a narrow page."""
    return f"{title.value} · {title.below}" if title.below else title.value


def _small(cell: Cell) -> str:
    return f"<small>{html_safe(cell.below)}</small>" if cell.below else ""
