"""The leaderboard as a page and a report show it: headings, and a row of cells for each system."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rankdash.charts import style
from rankdash.charts.cost import frontier
from rankdash.charts.milliseconds import text as ms
from rankdash.i18n import all_of, ngettext, number, percent, signed
from rankdash.i18n import gettext as _
from rankdash.reporting.figures import Drawing
from rankdash.study.leaderboard import Axis, Standing, standings
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money
from rankdash.words import prices
from rankdash.words.money import money
from rankdash.words.verdict_chips import chip, interval

_NONE = "–"


@dataclass(frozen=True)
class Cell:
    """Plain text. below: in small letters under the value. more: what a pointer that rests on it
    shows."""

    value: str
    below: str = ""
    more: str = ""


def headings(study: Study, axis: Axis) -> tuple[Cell, ...]:
    """One for each cell of `cells`. axis: what quality is traded against."""
    within = _("{level} interval", level=percent(study.statistics.level))
    against = _("latency") if axis == "p95" else _("price")
    return (
        Cell(_("System"), _("best first")),
        Cell(study.measure.title, within),
        Cell(_("Change"), within),
        Cell(_("Helped / hurt"), _("queries")),
        Cell(_("p95 added")),
        Cell(_("Price"), _("1,000 searches")),
        Cell(_("Pareto"), _("quality, {axis}", axis=against), optimal_meaning(axis)),
    )


def optimal_meaning(axis: Axis) -> str:
    """What it means to be Pareto-optimal on an axis, and what to be dominated."""
    if axis == "p95":
        return _(
            "✓ optimal: no other system is as good and faster, or as fast and better. Dominated: "
            "another one is. Means are compared as measured: a difference may be chance."
        )
    return _(
        "✓ optimal: no other system is as good and cheaper, or as cheap and better. Dominated: "
        "another one is. Means are compared as measured: a difference may be chance."
    )


def cells(study: Study, row: Standing, axis: Axis) -> tuple[Cell, ...]:
    """The row of a system: name and verdict, metric, change, queries helped and hurt, latency,
    price, and whether it is Pareto-optimal. What does not exist is a dash with its reason."""
    change = helped = Cell(_NONE)
    if row.system != study.baseline:
        change = Cell(signed(row.delta), _changes(row.delta_low, row.delta_high))
        helped = Cell(f"{number(row.helped, 0)} / {number(row.hurt, 0)}")
    latency = Cell(_NONE, _("not measured"))
    if row.p95 is not None:
        latency = Cell(_milliseconds(row.p95))
    optimal = {True: _("✓ optimal"), False: _("dominated"), None: _NONE}[row.pareto[axis]]
    return (
        Cell(study.name(row.system), _state(row)),
        Cell(number(row.mean), interval(row.low, row.high)),
        change,
        helped,
        latency,
        _price(study, row),
        Cell(optimal),
    )


def notes(study: Study, rows: Sequence[Standing], axis: Axis) -> list[str]:
    """What to know to read table and chart; names are as they were typed."""
    sentences = [optimal_meaning(axis)]
    absent = [
        _("{system} ({reason})", system=study.name(row.system), reason=_absence(row, axis))
        for row in rows
        if row.pareto[axis] is None
    ]
    if absent:
        sentences.append(_("Not in the chart: {systems}.", systems=all_of(absent)))
    if len({row.n for row in rows}) > 1:
        sentences.append(
            _(
                "Each mean is over the queries that the system has a value for; changes compare "
                "the same queries."
            )
        )
    return sentences


def trade_off(study: Study, axis: Axis) -> Drawing | None:
    """Quality against latency or price; None where both are known of fewer than two systems."""
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
        if row.pareto[axis] is not None
    ]
    if len(points) < 2:
        return None
    currency = (study.money or Money()).currency
    written: Callable[[float], str] = partial(money, currency=currency)
    title = _("{currency} for 1,000 searches", currency=currency)
    if axis == "p95":
        written, title = _milliseconds, _("p95 latency added, ms")
    given = (points, study.measure.title, title)
    return Drawing(
        lambda ink: frontier.figure(*given, ink, written=written, size=frontier.BESIDE),
        frontier.alt(*given, written=written),
    )


def _milliseconds(value: float) -> str:
    return _("{ms} ms", ms=ms(value))


def _absence(row: Standing, axis: Axis) -> str:
    """Why a system is not in the chart."""
    if row.takes(axis) is not None:
        return chip(row.kind)
    if axis == "p95":
        return _("latency not measured")
    return prices.lack(row.cost) if row.cost is not None else ""


def _state(row: Standing) -> str:
    said = [chip(row.kind)]
    if row.system == FIRST_STAGE:
        said.append(_("before reranking"))
    if row.failed:
        said.append(ngettext("{n} query failed", "{n} queries failed", row.failed))
    return " · ".join(said)


def _changes(low: float, high: float) -> str:
    """An interval of changes; a dash where there is none."""
    known = math.isfinite(low) and math.isfinite(high)
    return f"{signed(low)} … {signed(high)}" if known else _NONE


def _price(study: Study, row: Standing) -> Cell:
    cost = row.cost
    if cost is None:
        return Cell(money(row.per_thousand, (study.money or Money()).currency))
    if cost.lack:
        return Cell(_NONE, prices.lack(cost))
    marks = prices.marks(cost)
    amount = money(cost.per_thousand, cost.currency)
    return Cell(amount, marks[0] if marks else "", all_of(marks))
