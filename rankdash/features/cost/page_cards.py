"""The options side by side, and the answer: does it pay?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from rankdash.core.base.i18n import (
    all_of,
    brief,
    level_percent,
    number,
    paragraph,
    signed_percent,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.text import columns, html_safe, middle
from rankdash.core.data.measured import meets
from rankdash.core.study.costs import Choice, system_of
from rankdash.core.study.labelling import only_estimates
from rankdash.core.study.pricing import Bill
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.value.prices import title
from rankdash.core.words import costs as cost_words
from rankdash.core.words import methods, prices
from rankdash.core.words.costs import Answer
from rankdash.core.words.latency import added, busy_notes, milliseconds, without_p95
from rankdash.core.words.verdicts import interval
from rankdash.features.cost import words as cost_words_module
from rankdash.features.cost.page_inputs import assumption_rows, cell, context, period
from rankdash.kit.widgets.charts import _UNKNOWN, Look
from rankdash.kit.widgets.text import markdown_safe, shortened

# The answer, the options side by side, and the published formula beside it.

# The columns keep their width; where there are too many of them the table scrolls, not the page,
# and a line above it says so.
_STYLE = """<style>
.rd-figures { overflow-x: auto; container-type: inline-size; }
.rd-figures table { border-collapse: collapse; font-size: 0.875rem; width: 100%; }
.rd-figures p { display: none; position: sticky; left: 0; width: max-content; margin: 0;
  font-size: 0.8rem; opacity: 0.75; }
.rd-figures th, .rd-figures td { text-align: right; vertical-align: top; min-width: 4.6rem;
  padding: 0.3rem 0.35rem; line-height: 1.3;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
.rd-figures th { font-weight: 600; max-width: 10rem; overflow-wrap: anywhere; }
.rd-figures tr > :first-child { text-align: left; font-weight: 400; padding-left: 0;
  min-width: 6.5rem; }
.rd-figures .rd-focus { background: color-mix(in srgb, #0072B2 12%, transparent); }
.rd-figures small { display: block; font-weight: 400; opacity: 0.75; font-size: 0.72rem; }
.rd-figures .rd-whole { white-space: nowrap; }
.rd-figures .rd-strong { font-weight: 600; }
</style>"""

# So long a value is a sentence, and wraps; so do intervals and prices where there are
# many columns.
_SENTENCE = 22
_MANY = 4
# Columns of text.
_HEADING_WIDTH = 44
# In rem: of the first column, of another one at least, of a letter, and beside a text.
_CORNER, _NARROWEST, _LETTER, _PADDING = 6.85, 4.6, 0.45, 0.7

Cell = tuple[str, str]
"""A value and what stands below it, such as its interval; "" for nothing."""


def side_by_side(
    corner: str,
    headings: Sequence[str],
    rows: Sequence[tuple[Cell, Sequence[Cell]]],
    *,
    in_focus: int | None = None,
    strong: Sequence[str] = (),
) -> str:
    """A table for `st.html`; everything in it is escaped here.

    rows: (title with its unit, one cell for each heading). in_focus: the column to set off.
    strong: titles of the rows that matter most.
    """

    def cell(
        tag: str, content: Cell, place: int | None, *, title: bool = False, bold: bool = False
    ) -> str:
        kinds = ["rd-focus"] if in_focus is not None and place == in_focus else []
        kinds += ["rd-strong"] if bold else []
        value, below = content
        # Titles wrap; a number broken over two lines is misread.
        whole = [] if title else _unbroken(content, len(headings))
        size, kind = (" class='rd-whole'" if each in whole else "" for each in content)
        small = f"<small{kind}>{html_safe(below)}</small>" if below else ""
        return (
            f"<{tag} class='{' '.join(kinds)}'><span{size}>{html_safe(value)}</span>{small}</{tag}>"
        )

    def heading(text: str, place: int) -> str:
        """Cut in its middle; whole under the pointer."""
        whole = cell("th", (middle(text, _HEADING_WIDTH), ""), place, title=True)
        return whole.replace("<th", f'<th title="{html_safe(text)}"', 1)

    head = cell("th", (corner, ""), None, title=True)
    head += "".join(heading(text, place) for place, text in enumerate(headings))
    body = "".join(
        f"<tr>{cell('td', name, None, title=True)}"
        + "".join(
            cell("td", each, place, bold=name[0] in strong) for place, each in enumerate(cells)
        )
        + "</tr>"
        for name, cells in rows
    )
    least = _least_width([cells for _name, cells in rows], len(headings))
    hint = html_safe(_("Scroll sideways to see all columns →"))
    return (
        f"{_STYLE}<style>@container (max-width: {least:.1f}rem)"
        f" {{ .rd-figures p.rd-{10 * least:.0f} {{ display: block; }} }}</style>"
        f"<div class='rd-figures'><p class='rd-{10 * least:.0f}'>{hint}</p>"
        f"<table style='min-width: {least:.1f}rem'><tr>{head}</tr>{body}</table></div>"
    )


def _least_width(rows: Sequence[Sequence[Cell]], n: int) -> float:
    """Of a table with n such columns, in rem: below it the table scrolls."""
    texts = [[each for row in rows for each in _unbroken(row[place], n)] for place in range(n)]
    longest = (max(map(columns, cells), default=0) for cells in texts)
    return _CORNER + sum(max(_NARROWEST, _LETTER * width) + _PADDING for width in longest)


def _unbroken(content: Cell, n: int) -> list[str]:
    """What of a cell stays on its line where there are n columns."""
    value, below = content
    parts = [value if n <= _MANY or "/" not in value else "", below if n <= _MANY else ""]
    return [each for each in parts if _whole(each)]


def _whole(text: str) -> bool:
    """Whether it is a number, or two: misread when broken over two lines."""
    return columns(text) <= _SENTENCE and any(each.isdigit() for each in text)


_LONGEST_NAME = 60
_LONGEST_NOTE = 400
_NONE: Cell = ("–", "")
_ANSWERS: dict[Answer, Look] = {
    "yes": (":material/check_circle:", "blue"),
    "maybe": (":material/trending_up:", "blue"),
    "open": (":material/price_change:", "gray"),
    "unproven": (":material/help:", "gray"),
    "doubtful": (":material/trending_down:", "orange"),
    "no": (":material/cancel:", "orange"),
    "unknown": _UNKNOWN,
}


def answer(study: Study, choice: Choice, scenario: Assumptions) -> None:
    """Does the system in focus pay: the first thing on the page."""
    with st.container(horizontal=True):
        badge(cost_words.answer(choice))
        if choice.demonstrated:
            st.badge(_("Example values"), icon=":material/science:", color="orange")
    st.markdown(cost_words.headline(context(study), choice, scenario))


def grounds(study: Study, choice: Choice, scenario: Assumptions) -> None:
    """What the answer rests on: certainty, caveats, and the assumptions at their defaults."""
    cautions = cost_words_module.cautions(choice, scenario.latency_target_ms)
    facts = [
        cost_words.sureness(context(study), choice),
        _("Caveats: {cautions}.", cautions=all_of(cautions)) if cautions else "",
        cost_words_module.passages(choice, scenario),
        prices.defaults(study.money or Money()),
        *(markdown_safe(each, _LONGEST_NOTE) for each in busy_notes(study)),
    ]
    st.caption("  \n".join(fact for fact in facts if fact))


def draw_cards(
    study: Study, choices: Sequence[Choice], scenario: Assumptions, in_focus: str
) -> None:
    """One column an option, one row a figure; the column of the system in focus is set off."""
    span = period()
    titles = {
        "quality": (study.measure.title, ""),
        "price": (_("price"), ""),
        "thousand": (_("1,000 searches"), ""),
        "cost": (span.cost, ""),
        "value": (span.value, ""),
        "net": (span.net, ""),
        "roi": (_("return on the cost"), ""),
        "payback": (_("months to pay back"), ""),
        "even": (_("break-even"), _("value for 1% quality")),
        "worth": (_("break-even"), _("value of 1% quality, 1,000 searches")),
        "most": (_("break-even price"), _("1,000 searches")),
        "p95": (_("p95 added"), ""),
        "care": (_("caveats"), ""),
    }
    figures = [_cells(study, choice, scenario) for choice in choices]
    st.html(
        side_by_side(
            "",
            [_heading(choice) for choice in choices],
            [
                (title, [cells.get(key, _NONE) for cells in figures])
                for key, title in titles.items()
                if any(key in cells for cells in figures)
            ],
            in_focus=next(
                (at for at, choice in enumerate(choices) if choice.system == in_focus), None
            ),
            strong=(span.net, span.cost, span.value),
        )
    )
    sources = _("Sources of prices and token counts: see Assumptions.")
    # The baseline is the first, and no gain is measured for a price alone.
    if all(choice.option.gain is None for choice in choices[1:]):
        st.caption(sources)
        return
    level = level_percent(study.statistics.level)
    st.caption(paragraph([_("Small: {level} intervals.", level=level), sources]))


def _heading(choice: Choice) -> str:
    listed = None if choice.bill is None else choice.bill.listed
    return title(listed) if listed is not None and not choice.system else choice.name


def _cells(study: Study, choice: Choice, scenario: Assumptions) -> dict[str, Cell]:
    """Row → what the option has there; rows that it has nothing for are left out."""
    came, span = choice.came, period()
    system = system_of(study, choice)
    cells: dict[str, Cell] = {"quality": (_("not measured"), "")}
    if only_estimates(study):
        cells["quality"] = _estimated(choice)
    elif system is not None:
        mean, low, high = study.mean(system)
        cells["quality"] = (number(mean), interval(low, high) if math.isfinite(low) else "")
    if choice.bill is not None:
        cells["price"] = _price(choice, choice.bill)
    known = choice.option.cost_per_search is not None
    if known or choice.bill is None:
        cells["thousand"] = cell(came.cost_per_thousand)
        cells["cost"] = cell(span.of(came.cost_per_month))
    else:
        cells["thousand"] = (prices.lack(choice.bill), "")
    if choice.option.gain is None:
        cells["value"] = cell(came.value_per_month)
    elif choice.lacks_value and (choice.valued or not choice.unset):
        cells["worth" if choice.unset is False else "most"] = cell(
            came.break_even_price if choice.unset else came.break_even_worth
        )
    elif not choice.option.free and not choice.lacks_value:
        cells["value"] = cell(span.of(came.value_per_month))
        cells["net"] = cell(span.of(came.net_per_month))
        cells["roi"] = cell(came.roi, "percent")
        cells["even"] = cell(came.break_even_elasticity, "elasticity")
        if scenario.setup_cost:
            cells["payback"] = cell(came.payback_months, "months")
    p95 = choice.waiting.p95
    if system is not None:
        cells["p95"] = (without_p95(choice.waiting.timed), "")
    if system is not None and p95 is not None:
        target = scenario.latency_target_ms
        # The baseline adds nothing, whatever it is made of.
        beside = added(study.run(system)) if p95 else ""
        if not meets(p95, target):
            beside = _("▼ over {ms} ms", ms=brief(target, p95))
        cells["p95"] = (milliseconds(p95, target), beside)
    if choice.bill is not None:
        marks = [_("example values")] if choice.demonstrated else []
        marks += prices.marks(choice.bill)
        cells["care"] = ("", all_of(marks)) if marks else _NONE
    return cells


def _estimated(choice: Choice) -> Cell:
    """The relative change, estimated from sampled labels."""
    gain = choice.option.gain
    if gain is None or choice.option.free or gain.relative.low is None:
        return _NONE
    change = gain.relative
    ends = (signed_percent(each, 1) for each in (change.low, change.high))
    return (signed_percent(change.value, 1), " … ".join(ends))


def _price(choice: Choice, bill: Bill) -> Cell:
    """How much for what, and whose."""
    if bill.listed is None:
        return (prices.of(bill), "")
    below = title(bill.listed) if choice.system else ""
    return (prices.rate(bill.listed.price), shortened(below, _LONGEST_NAME))


def assumptions_table(study: Study, scenario: Assumptions, choices: Sequence[Choice]) -> None:
    """Everything that the numbers rest on, as on every export."""
    rows = assumption_rows(study, scenario, choices)
    st.dataframe(
        {
            _("assumption"): [row[0] for row in rows],
            _("value"): [row[1] for row in rows],
            _("meaning"): [row[2] for row in rows],
        },
        hide_index=True,
        alt=_("All sources, definitions and settings"),
    )
    if any(choice.option.gain is not None for choice in choices[1:]):
        st.caption(
            _(
                "Intervals ({level}) follow from that of the verdict; prices and assumptions "
                "are held fixed, so they show how sure the measurement is, not how good the "
                "assumptions are.",
                level=level_percent(study.statistics.level),
            )
        )
    st.caption(methods.cost())


def badge(kind: Answer) -> None:
    """Draw the answer in a word: whether a system pays."""
    words: dict[Answer, str] = {
        "yes": _("pays"),
        "maybe": _("probably pays"),
        "open": _("break-even only"),
        "unproven": _("not proven"),
        "doubtful": _("probably does not pay"),
        "no": _("does not pay"),
        "unknown": _("no answer"),
    }
    icon, colour = _ANSWERS[kind]
    st.badge(words[kind], icon=icon, color=colour)


# What the address says about money: currency, period, words; and all of it as rows and a file.
