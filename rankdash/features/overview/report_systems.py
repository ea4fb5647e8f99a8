"""The section of the report on all systems, and the leaderboard for pages and documents."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from rankdash.core.base.i18n import all_of, level_percent, ngettext, number, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import html_safe
from rankdash.core.statistics.verdict import PROVEN
from rankdash.core.study import latency
from rankdash.core.study.leaderboard import (
    Axis,
    Standing,
    as_good_as_best,
    known_axes,
    standings,
)
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money
from rankdash.core.words import prices, targets
from rankdash.core.words.columns import Column, Row, columns
from rankdash.core.words.latency import added, busy_notes, milliseconds, without_p95
from rankdash.core.words.prices import money
from rankdash.core.words.queries import metric_title
from rankdash.core.words.verdicts import change_fact, chip, p_title, tally
from rankdash.features.overview import charts
from rankdash.kit.drawing import frontier, style
from rankdash.kit.drawing.draw import Drawing, mark_image
from rankdash.kit.html import interval
from rankdash.kit.html.html_page import (
    DASH,
    Draft,
    PageTable,
    as_table,
    prose,
    table,
    together,
    with_interval,
)


def means(draft: Draft) -> str:
    study = draft.study
    level, corrected = study.statistics.level, study.comparison.corrected
    shown = columns("report", level, corrected)
    rows = [
        [
            metric_title(row["metric"]),
            study.name(row["system"]),
            *(each.text(row) for each in shown),
        ]
        for row in study.comparison.frame.to_dict("records")
    ]
    head = [_p("column", "metric"), _p("column", "system"), *(each.title for each in shown)]
    sentences = [
        _(
            "Each mean is over all queries that the system has a value for; each change is over "
            "the queries that both systems have."
        )
    ]
    if study.comparison.frame["mean_low"].notna().any():
        sentences.append(
            _(
                "An interval covers the true value with {level} confidence. A change is proven if "
                "its interval excludes 0 and its {p} is significant.",
                level=level_percent(level),
                p=p_title(corrected),
            )
        )
    # With too few queries, no row has an interval or p, so these columns are omitted.
    used = [place for place in range(len(head)) if any(row[place] != DASH for row in rows)]
    content = PageTable(
        [head[place] for place in used],
        [[row[place] for place in used] for row in rows],
        frozenset(range(2, len(used) - 1)),
    )
    chart = draft.chart(charts.systems(study))
    return together(prose(paragraph(sentences)), chart) + table(content) + _targets(draft)


def _targets(draft: Draft) -> str:
    """Return each system's values against the targets of the chosen profile; "" without one."""
    goals = draft.study.goals
    if goals is None:
        return ""
    title = _("Targets: {profile}", profile=_p("profile", goals.profile.title))
    content = PageTable(
        targets.head(), targets.target_rows(draft.study, goals), frozenset(range(2, 8))
    )
    return f"<h3>{html_safe(title)}</h3>{table(content)}{prose(targets.note(goals), 'muted')}"


def curve(draft: Draft) -> str:
    """Return the metric by cutoff k."""
    study = draft.study
    drawn = charts.cutoffs(study)
    if drawn is None:
        return prose(
            _(
                "{metric} has no cutoff: it is computed over the whole list.",
                metric=study.measure.metric.title,
            )
        )
    curves = study.curves
    rows = []
    for k in sorted(set(curves["k"])):
        at_k = curves[curves["k"] == k].set_index("system")
        cells = [
            with_interval(number(at_k["mean"][system]), at_k["low"][system], at_k["high"][system])
            if system in at_k.index
            else DASH
            for system in study.chosen
        ]
        rows.append((str(k), *cells))
    sentences = [_("Mean by cutoff k: the metric uses the first k documents of each list.")]
    if curves["low"].notna().any():
        level = level_percent(study.statistics.level)
        sentences.append(_("The {level} interval is in brackets.", level=level))
    content = PageTable(("k", *study.names.values()), rows, frozenset(range(len(study.chosen) + 1)))
    return together(prose(paragraph(sentences)), draft.chart(drawn)) + as_table(content)


# The leaderboard of pages and reports: headings, and a row of cells for each system.

# On a narrow page each system is a block: its name, then its cells with their headings.
_STYLE = """<style>
.rd-board { container-type: inline-size; overflow-x: auto; margin-bottom: 0.8rem; }
.rd-board table { border-collapse: collapse; font-size: 0.875rem; width: 100%; }
.rd-board th, .rd-board td { text-align: right; vertical-align: top; white-space: nowrap;
  padding: 0.3rem 0.3rem; line-height: 1.25;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
.rd-board th { font-weight: 600; white-space: normal; }
.rd-board thead th { word-break: keep-all; }
.rd-board thead small { white-space: nowrap; }
.rd-board tr > :first-child { text-align: left; white-space: normal; overflow-wrap: anywhere;
  min-width: 7rem; font-weight: 400; padding-left: calc(16px + 0.6rem); position: relative; }
.rd-board tbody tr:first-child { font-weight: 600; }
.rd-board tbody tr:first-child > :first-child { font-weight: 600; }
.rd-board img { position: absolute; left: 0.3rem; top: 0.4rem; }
.rd-drawn { display: flex; gap: 0.6rem; justify-content: flex-end; align-items: center; }
.rd-board [role=img] + span { min-width: 3.6rem; }
.rd-board [role=img] + span:has(small) { min-width: 6.6rem; }
@media print { .rd-board th, .rd-board td { padding-block: 0.14rem; line-height: 1.2; } }
.rd-board small { display: block; font-weight: 400; opacity: 0.75; font-size: 0.72rem; }
@container (max-width: 35rem) {
  .rd-board thead { display: none; }
  .rd-board table, .rd-board tbody { display: block; }
  .rd-board tr { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); }
  .rd-board tr > * { text-align: left; border-bottom: none; white-space: normal; }
  .rd-board tr > :first-child { grid-column: 1 / -1; }
  .rd-drawn { justify-content: flex-start; }
  .rd-board [role=img] { width: 6rem !important; }
  .rd-board tbody tr {
    border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
  .rd-board td::before { content: attr(data-title); display: block; font-weight: 400;
    font-size: 0.72rem; opacity: 0.75; }
}
</style>"""


@dataclass(frozen=True)
class Cell:
    """Plain text of a cell. below: small text under the value. more: tooltip. order: sort key, None
    without a value."""

    value: str
    below: str = ""
    more: str = ""
    order: float | None = None

    @property
    def line(self) -> str:
        """The value and the small text in one line."""
        return f"{self.value} · {self.below}" if self.below else self.value


@dataclass(frozen=True)
class BoardColumn:
    """A column of the leaderboard. name: as in `columns`. low_first: low values are better. always:
    shown even if every cell is a dash."""

    name: str
    title: Cell
    cell: Callable[[Standing], Cell]
    low_first: bool = False
    always: bool = False


def _columns(study: Study, axis: Axis) -> list[BoardColumn]:
    """Return the columns: name, comparison, latency, price, and Pareto-optimality. A missing value
    is a dash with its reason."""
    level, corrected = study.statistics.level, study.comparison.corrected
    rows = {system: study.comparison.row(system, study.spec) for system in study.chosen}
    against = _p("axis", "latency") if axis == "p95" else _p("axis", "price")
    pareto = Cell(_p("column", "Pareto"), _("quality, {axis}", axis=against), optimal_meaning(axis))
    price = Cell(_p("column", "Price"), _("1,000 searches"))
    return [
        BoardColumn(
            "system",
            Cell(_p("column", "System"), _("best first")),
            lambda row: Cell(study.name(row.system), _state(study, row)),
            always=True,
        ),
        *(
            BoardColumn(
                each.name,
                Cell(each.title[:1].upper() + each.title[1:], each.small, each.help),
                partial(_compared, rows, each),
                always=each.name == "mean",
            )
            for each in columns("leaderboard", level, corrected, study.title)
        ),
        BoardColumn("p95", Cell(_("p95 added")), partial(_p95, study), low_first=True),
        BoardColumn("price", price, partial(_price, study), low_first=True),
        BoardColumn("pareto", pareto, partial(_optimal, axis)),
    ]


def _compared(rows: Mapping[str, Row], column: Column, row: Standing) -> Cell:
    of = rows[row.system]
    text = column.text(of)
    # The text of two counts is sorted by their difference.
    value = of["helped"] - of["hurt"] if column.kind == "words" else column.value(of)
    order = None if text == DASH or math.isnan(value) else float(value)
    return Cell(text, column.small_text(of), order=order)


def _p95(study: Study, row: Standing) -> Cell:
    if row.p95 is not None:
        beside = [added(study.run(row.system)), _("machine was busy") if row.busy else ""]
        below = " · ".join(each for each in beside if each)
        return Cell(milliseconds(row.p95), below, order=row.p95)
    if timed := _timed(study, row):
        if latency.of_whole_search(study, row.system):
            summary = latency.summary(study, row.system)
            time = milliseconds(None if summary is None else summary.p95)
            return Cell(DASH, _("whole search: {ms}", ms=time), without_p95(timed, whole=True))
        return Cell(DASH, _("too few timed"), without_p95(timed))
    return Cell(DASH, _("not measured"))


def _optimal(axis: Axis, row: Standing) -> Cell:
    if axis in row.unsure:
        return Cell(_("within noise"))
    is_optimal = row.pareto[axis]
    words = {True: _("✓ optimal"), False: _p("state", "dominated"), None: DASH}
    return Cell(words[is_optimal], order=None if is_optimal is None else float(is_optimal))


def optimal_meaning(axis: Axis) -> str:
    """Return what Pareto-optimal and dominated mean for an axis."""
    if axis == "p95":
        return _(
            "✓ optimal: no other system is as good and faster, or as fast and better. Dominated: "
            "another system is. Means are compared as measured, so a difference may be due to "
            "chance."
        )
    return _(
        "✓ optimal: no other system is as good and cheaper, or as cheap and better. Dominated: "
        "another system is. Means are compared as measured, so a difference may be due to chance."
    )


def leaderboard_html(study: Study, axis: Axis) -> str:
    """Return the table, with each change and the queries helped and hurt drawn; everything in it is
    escaped here."""
    marks, drawn = style.marks(study.places, study.baseline), _drawn(study)
    shown = board(study, axis)
    (_title, names), *columns = shown
    head = "".join(
        f"<th scope=col title='{html_safe(cell.more)}'>{html_safe(cell.value)}{_small(cell)}</th>"
        for cell in (column.title for column, _cells in shown)
    )
    body = ""
    for at, (row, name) in enumerate(zip(standings(study), names, strict=True)):
        body += (
            f"<tr><th scope=row><img src=\"{mark_image(marks[row.system])}\" alt=''>"
            f"<span>{html_safe(name.value)}</span>{_small(name)}</th>"
            + "".join(
                f"<td title='{html_safe(cells[at].more)}' data-title="
                f"'{html_safe(column.title.line)}'>"
                f"{_beside(drawn.get((row.system, column.name), ''), cells[at])}</td>"
                for column, cells in columns
            )
            + "</tr>"
        )
    label = html_safe(_p("heading", "Leaderboard"))
    return (
        f"{_STYLE}<div class='rd-board'><table aria-label='{label}'>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _beside(picture: str, cell: Cell) -> str:
    """Return a cell as HTML, with its picture next to the text if there is one."""
    text = f"{html_safe(cell.value)}{_small(cell)}"
    return f"<span class=rd-drawn>{picture}<span>{text}</span></span>" if picture else text


def _drawn(study: Study) -> dict[tuple[str, str], str]:
    """Return (system, column) → picture: the change on an axis that all systems share, and the
    queries helped, same and hurt as a bar."""
    rows = [row for row in standings(study) if math.isfinite(row.delta)]
    axis, threshold = change_axis(study)
    drawn = {}
    for row in rows:
        compared = study.comparison.row(row.system, study.spec)
        drawn[row.system, "delta"] = interval.interval_html(
            *(row.delta, row.delta_low, row.delta_high, axis),
            change_fact(compared, study.statistics),
            proven=row.kind in PROVEN,
            threshold=threshold,
            labelled=row is rows[0],
            width="min(9rem, 13cqw)",
        )
        helped, same, hurt = (int(compared[each]) for each in ("helped", "same", "hurt"))
        drawn[row.system, "helped_hurt"] = interval.tally_html(
            helped, same, hurt, tally(compared), width="min(5rem, 7cqw)"
        )
    return drawn


def change_axis(study: Study) -> tuple[interval.Ends, float | None]:
    """Return the axis for the changes of all systems, and the minimum gain on it if the user set
    one."""
    minimum = study.statistics.worthwhile
    threshold = None if minimum is None else minimum * study.mean(study.baseline)[0]
    rows = standings(study)
    ends = [end for row in rows for end in (row.delta, row.delta_low, row.delta_high)]
    return interval.common_axis([*ends, *([] if threshold is None else [threshold])]), threshold


def lines(study: Study, axis: Axis) -> list[list[str]]:
    """Return the leaderboard as plain text: the headings, then a row for each system."""
    titles, rows = _table(study, axis)
    return [[cell.line for cell in row] for row in (titles, *rows)]


def board(study: Study, axis: Axis) -> list[tuple[BoardColumn, list[Cell]]]:
    """Return the columns with a cell for each system, in the order of `standings`.

    Columns without a value for any system except the first stage are omitted; `notes` has the
    reasons.
    """
    systems = standings(study)
    cells = ((each, [each.cell(row) for row in systems]) for each in _columns(study, axis))
    return [
        (column, values)
        for column, values in cells
        if column.always
        or any(
            cell.value != DASH
            for row, cell in zip(systems, values, strict=True)
            if row.system != FIRST_STAGE
        )
    ]


def _table(study: Study, axis: Axis) -> tuple[list[Cell], list[list[Cell]]]:
    """Return the headings and the rows."""
    titles, *rows = map(
        list, zip(*((each.title, *cells) for each, cells in board(study, axis)), strict=True)
    )
    return titles, rows


def _small(cell: Cell) -> str:
    return f"<small>{html_safe(cell.below)}</small>" if cell.below else ""


def legend(study: Study, axis: Axis) -> list[str]:
    """Return the explanation of Pareto-optimal, if the table has this column."""
    ranked = any(row.pareto[axis] is not None or axis in row.unsure for row in standings(study))
    return [optimal_meaning(axis)] if ranked else []


def notes(study: Study, axis: Axis) -> list[str]:
    """Return notes on the table and the chart; names are not escaped."""
    sentences, rows = [], standings(study)
    absent = (
        []
        if axis not in known_axes(rows)
        else [
            _(
                "{system} ({reason})",
                system=study.name(row.system),
                reason=_absence(study, row, axis),
            )
            for row in rows
            if row.pareto[axis] is None
            and axis not in row.unsure
            # A baseline without a comparison needs no reason.
            and (row.kind != "baseline" or row.takes(axis) is None)
        ]
    )
    if absent:
        sentences.append(_("Not in the chart: {systems}.", systems=all_of(absent)))
    if study.money is not None and any(
        row.per_thousand is None and row.cost is not None and row.cost.example for row in rows
    ):
        sentences.append(_("Price not set: enter it on the page Cost & ROI."))
    sentences += busy_notes(study)
    if len({row.n for row in rows}) > 1:
        sentences.append(
            _(
                "Each mean is over the queries that the system has a value for; changes compare "
                "the same queries."
            )
        )
    return sentences


def trade_off(study: Study, axis: Axis) -> Drawing | None:
    """Draw quality against latency or price; None if fewer than two systems have both."""
    marks = style.marks(study.places, study.baseline)
    points = [
        frontier.FrontierPoint(
            study.name(row.system),
            marks[row.system],
            row.takes(axis) or 0.0,
            row.mean,
            bool(row.pareto[axis]),
            row.low,
            row.high,
        )
        for row in standings(study)
        if row.pareto[axis] is not None or axis in row.unsure
    ]
    if len(points) < 2:
        return None
    currency = (study.money or Money()).currency
    written: Callable[[float], str] = partial(money, currency=currency)
    title = _("{currency} for 1,000 searches", currency=currency)
    if axis == "p95":
        written, title = milliseconds, _("p95 latency added, ms")
    arguments = (points, study.title, title)
    return frontier.frontier_chart(*arguments, written=written)


def _timed(study: Study, row: Standing) -> int:
    """Return how many queries of a system were timed."""
    summary = latency.summary(study, row.system)
    return 0 if summary is None else summary.n


def _absence(study: Study, row: Standing, axis: Axis) -> str:
    """Return why the chart of quality against latency or price lacks a system, or its verdict."""
    if row.takes(axis) is not None:
        return chip(row.kind)
    if axis == "p95":
        whole = latency.of_whole_search(study, row.system)
        return _("latency: {reason}", reason=without_p95(_timed(study, row), whole))
    return "" if row.cost is None else prices.lack(row.cost) or _("not set")


def _state(study: Study, row: Standing) -> str:
    before = _("before reranking") if row.system == FIRST_STAGE else ""
    return " · ".join(filter(None, (chip(row.kind), before, remarks(study, row))))


def remarks(study: Study, row: Standing) -> str:
    """Return whether the values of a system are in-sample, how many queries failed, and whether it
    is the fastest or cheapest of the systems that are as good as the best one."""
    n = row.failed
    failed = ngettext("{n} query failed", "{n} queries failed", n) if n else ""
    tuned = _p("values", "in-sample") if study.evaluations[row.system].tuned else ""
    as_good = {
        (): "",
        ("p95",): _("as good as the best: fastest"),
        ("cost",): _("as good as the best: cheapest"),
        ("p95", "cost"): _("as good as the best: fastest and cheapest"),
    }[as_good_as_best(study).get(row.system, ())]
    return " · ".join(filter(None, (tuned, failed, as_good)))


def _price(study: Study, row: Standing) -> Cell:
    cost = row.cost
    if cost is None:
        amount = row.per_thousand
        return Cell(money(amount, (study.money or Money()).currency), order=amount)
    if row.per_thousand is None:
        return Cell(DASH, prices.lack(cost) or _("not set"))
    marks = prices.marks(cost)
    price = money(cost.per_thousand, cost.currency)
    return Cell(price, marks[0] if marks else "", all_of(marks), row.per_thousand)
