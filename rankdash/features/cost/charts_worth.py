"""Charts of payoff: net value by price, or the value of a search at break-even."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.i18n import separated
from rankdash.core.study.costs import Choice, choices, system_of
from rankdash.core.study.labelling import only_estimates
from rankdash.core.study.leaderboard import best_challenger
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.value.payoff import Option, value_needed
from rankdash.core.words.costs import Period, month
from rankdash.core.words.prices import money as amount_in
from rankdash.core.words.prices import symbol
from rankdash.features.cost.sensitivity import net_by_price
from rankdash.kit.drawing import draw, frontier, style
from rankdash.kit.drawing.draw import Drawing

_SIZE = frontier.Size(380, 400.0, 290.0, 28)
_SAMPLES = 24
_BAND = 0.14
# End of the axis (price of 1,000 searches) if no price is set. The sentence above uses half of it.
_USUAL_PRICE = 2.0

Line = tuple[float, float]
"""(value at a price of 0, change for each unit of the price of 1,000 searches)."""


@dataclass(frozen=True)
class Lines:
    """A system's line in a chart over the price of 1,000 searches, and its lines at the two ends of
    the interval of its gain; None without an interval."""

    middle: Line
    low: Line | None = None
    high: Line | None = None

    @classmethod
    def of(
        cls,
        line: Callable[[Option, Assumptions], Line | None],
        option: Option,
        assumptions: Assumptions,
    ) -> Lines | None:
        middle = line(option, assumptions)
        if middle is None or option.gain is None:
            return None
        ends = [option.gain.at("low"), option.gain.at("high")]
        low, high = (
            None if gain is None else line(replace(option, gain=gain), assumptions) for gain in ends
        )
        return cls(middle, low, high)


@dataclass(frozen=True)
class Point(frontier.FrontierPoint):
    """System at its price (x) with its net value (quality). Its mark is hollow unless proven."""

    proven: bool = True
    in_focus: bool = False


def _net_alt(
    points: Sequence[Point], *, period: str = "per month", money: Callable[[float], str] = str
) -> str:
    sentences = [
        _(
            "{name}: {net} ({low} … {high}) at {price}.",
            name=point.name,
            net=money(point.quality),
            low=money(point.low),
            high=money(point.high),
            price=money(point.x),
        )
        for point in points
    ]
    return _(
        "Net value {period} by the price of 1,000 searches. {systems}",
        period=period,
        systems=" ".join(sentences),
    ).strip()


@draw.chart(_net_alt)
def net_by_price_chart(
    ink: style.Ink,
    points: Sequence[Point],
    *,
    by_price: Lines | None = None,
    period: str = "per month",
    currency: str = "USD",
    money: Callable[[float], str] = str,
    demonstrated: bool = False,
) -> go.Figure:
    """Draw each system at its price, with its interval; it pays off above 0.

    by_price: net value of the system in focus at other prices. demonstrated: whether example values
    are used.
    """
    across = frontier.Across.of(points)
    layout = across.layout()
    ends = [end for point in points for end in (point.quality, point.low, point.high)]
    traces: list[style.Trace] = []
    if by_price is not None:
        [focus] = [point for point in points if point.in_focus]
        prices = across.along(_SAMPLES)
        look = {"color": focus.mark.colour, "dash": "dot", "width": 1.5}
        traces += _band(by_price, prices, focus.mark, -math.inf)
        values = _along(by_price.middle, prices, -math.inf)
        traces.append(draw.scatter(prices, values, "lines", line=look))
        ends.append(by_price.middle[0])
    corners = frontier.corners(points, across, _SIZE)
    for point, corner in zip(points, corners, strict=True):
        name = style.short(point.name, _SIZE.name)
        name = f"<b>{name}</b>" if point.in_focus else name
        traces.append(
            draw.scatter(
                [across.place(point.x)],
                [point.quality],
                "markers+text",
                **frontier.named(name, corner),
                textfont={"color": ink.text},
                error_y=frontier.error(point),
                marker=_mark(point.mark, point.proven, point.in_focus, ink),
                hover=[
                    _(
                        "{name}<br>net {net} {period}<br>{price} for 1,000 searches",
                        name=style.whole(point.name),
                        net=style.short(_with_ends(point, money), 80),
                        period=style.short(period),
                        price=style.short(money(point.x), 40),
                    )
                ],
            )
        )
    low, high = style.reach([*ends, 0.0], 0.1, 1e-9)
    return style.finish(
        traces,
        ink,
        _SIZE.height,
        shapes=[_level(0.0, ink, "solid")],
        annotations=[
            _at_right(0.0, _p("chart", "break-even"), ink.muted),
            *_example(demonstrated, ink),
        ],
        xaxis=style.axis(_in_money(_("price of 1,000 searches"), currency), **layout),
        yaxis=style.axis(
            _in_money(_("net value {period}", period=style.short(period)), currency),
            range=[low, high],
            tickformat=style.ticks(max(abs(low), abs(high))),
            zeroline=False,
        ),
    )  # fmt: skip


def _with_ends(point: Point, money: Callable[[float], str]) -> str:
    known = math.isfinite(point.low) and math.isfinite(point.high)
    ends = f" ({money(point.low)} … {money(point.high)})" if known else ""
    return f"{money(point.quality)}{ends}"


@dataclass(frozen=True)
class Need:
    """System with the value of a search at which it breaks even, by its price."""

    name: str
    mark: style.Mark
    by_price: Lines
    proven: bool = True
    in_focus: bool = False


def _needed_alt(
    systems: Sequence[Need], most: float, *, money: Callable[[float], str] = str
) -> str:
    sentences = [
        _("{part}: {value}", part=each.name, value=money(*_along(each.by_price.middle, [most])))
        for each in systems
    ]
    return _(
        "Break-even value of a search by the price of 1,000 searches. At {price}: {systems}",
        price=money(most),
        systems=separated(sentences),
    )


@draw.chart(_needed_alt)
def value_needed_chart(
    ink: style.Ink,
    systems: Sequence[Need],
    most: float,
    *,
    price: float | None = None,
    value: float | None = None,
    currency: str = "USD",
    money: Callable[[float], str] = str,
) -> go.Figure:
    """Draw a line for each system, above which it pays off. The system in focus has its interval.

    most: highest price drawn. price, value: set by the user, for the system in focus and for a
    search; drawn as dashed lines, on which a mark shows the break-even of the system in focus.
    """
    prices = np.linspace(0.0, most, _SAMPLES).tolist()
    focus = next((each for each in systems if each.in_focus), systems[0])
    top = max(1.6 * _along(focus.by_price.middle, prices)[-1], 1.2 * (value or 0.0)) or 1.0
    shapes, notes, traces = [], [], []
    if price is not None:
        shapes.append(draw.upright(price, ink.line, "dash"))
        ends = {"yref": "paper", "xanchor": "left", "yanchor": "top"}
        notes.append(draw.note(price, 1, style.short(money(price)), ink.text, **ends))
    if value is not None:
        shapes.append(_level(value, ink, "dash"))
        notes.append(_at_right(value, style.short(money(value)), ink.text))
    for each in systems:
        needed = _along(each.by_price.middle, prices)
        name = style.short(each.name, _SIZE.name)
        mark = _mark(each.mark, each.proven, each.in_focus, ink)
        line = {"color": each.mark.colour, "dash": each.mark.dash, "width": 2}
        traces.append(
            draw.scatter(prices, needed, "lines", line=line, hover=_needs(each, prices, money))
        )
        # In the legend only: a system without a set price has no point.
        title = f"<b>{name}</b>" if each.in_focus else name
        shown: style.Trace = {"line": line, "marker": mark, "name": title, "showlegend": True}
        traces.append(draw.scatter([None], [None], "lines+markers") | shown)
        if each.in_focus:
            traces = _band(each.by_price, prices, each.mark) + traces
            even = None if value is None else _price(each.by_price.middle, value)
            at = price or even
            if at is not None and at <= most:
                hover = _needs(each, [at], money)
                height = _along(each.by_price.middle, [at])
                traces.append(draw.scatter([at], height, "markers", marker=mark, hover=hover))
    corner = {"xref": "paper", "yref": "paper"}
    notes += [
        draw.note(
            0.02,
            0.9,
            _("pays off"),
            ink.muted,
            xanchor="left",
            yanchor="top",
            bgcolor=ink.background,
            **corner,
        ),
        draw.note(
            0.98,
            0.03,
            _("does not pay off"),
            ink.muted,
            xanchor="right",
            yanchor="bottom",
            **corner,
        ),
    ]
    return style.finish(
        traces,
        ink,
        _SIZE.height,
        shapes=shapes,
        annotations=notes,
        xaxis=style.axis(
            _in_money(_("price of 1,000 searches"), currency), range=[0, most], zeroline=False
        ),
        yaxis=style.axis(
            _in_money(_("value of a search"), currency),
            range=[0, top],
            tickformat="~g",
            zeroline=False,
        ),
    )  # fmt: skip


def _needs(system: Need, prices: Sequence[float], money: Callable[[float], str]) -> list[str]:
    """Return the hover text at each price."""
    return [
        _(
            "{name}<br>pays off if a search is worth at least {value}<br>at {price} for 1,000 "
            "searches",
            name=style.whole(system.name),
            value=style.short(money(value), 40),
            price=style.short(money(price), 40),
        )
        for price, value in zip(prices, _along(system.by_price.middle, prices), strict=True)
    ]


def _price(line: Line, value: float) -> float | None:
    """Return the price at which a value is needed; None if there is none above 0."""
    price = (value - line[0]) / line[1] if line[1] > 0 else -1.0
    return price if price > 0 else None


def _along(line: Line, prices: Sequence[float], floor: float = 0.0) -> list[float]:
    """Return the line's value at each price, raised to `floor` if it is lower."""
    return [max(line[0] + line[1] * price, floor) for price in prices]


def _band(
    lines: Lines, prices: Sequence[float], mark: style.Mark, floor: float = 0.0
) -> list[style.Trace]:
    """Return the interval of a line."""
    if lines.low is None or lines.high is None:
        return []
    low, high = (_along(each, prices, floor) for each in (lines.low, lines.high))
    return [draw.band(prices, low, high, mark.colour, _BAND, {"width": 0})]


def _mark(mark: style.Mark, proven: bool, in_focus: bool, ink: style.Ink) -> style.Trace:
    """Return the mark of a system: hollow if not proven, outlined if in focus."""
    hollow = "" if proven or "-open" in mark.symbol else "-open"
    drawn = draw.marker(mark.colour, mark.symbol + hollow, 14 if in_focus else 11)
    if in_focus and not hollow:
        drawn["line"] = {"color": ink.text, "width": 2}
    return drawn


def _level(y: float, ink: style.Ink, dash: str) -> style.Trace:
    """Return a horizontal line across the chart."""
    line = {"color": ink.line, "width": 1.5, "dash": dash}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}


def _at_right(y: float, text: str, colour: str) -> style.Trace:
    """Return a note above the right end of a horizontal line."""
    ends = {"xref": "paper", "xanchor": "right", "yanchor": "bottom"}
    return draw.note(1, y, text, colour, **ends)


def _example(demonstrated: bool, ink: style.Ink) -> list[style.Trace]:
    """Return a note inside the picture, so that exported pictures contain it."""
    if not demonstrated:
        return []
    at = {"xref": "paper", "yref": "paper", "xanchor": "right", "yanchor": "top"}
    border = {"bordercolor": ink.line, "borderpad": 3, "bgcolor": ink.background}
    return [draw.note(1, 1, _("example values"), ink.text, **at, **border)]


def _in_money(title: str, currency: str) -> str:
    return _("{title} ({unit})", title=title, unit=symbol(currency))


def worth(study: Study, in_focus: str = "", period: Period | None = None) -> Drawing | None:
    """Return the chart of net value for each system with a set or example price and value; the
    break-even chart if the system in focus lacks one. None if no system gains anything.

    in_focus: a challenger; "" for the best one. period: a month by default.
    """
    options = choices(study)
    known = [
        each
        for each in options
        if system_of(study, each) is not None and each.outcome.net_per_month.value is not None
    ]
    challengers = [each for each in options if each.system in study.challengers]
    if not challengers:
        return None
    if not in_focus and not only_estimates(study):
        in_focus = best_challenger(study) or ""
    focus = next((each for each in challengers if each.system == in_focus), challengers[0])
    if focus in known:
        return _net(study, known, focus, period or month())
    return _needed(study, challengers, focus)


def absence(choice: Choice, focus: Choice, assumed: Assumptions) -> str | None:
    """Return why a system is missing from the chart of the system in focus; None if it is drawn."""
    net = choice.outcome.net_per_month
    if not choice.system:
        return None
    if focus.outcome.net_per_month.value is not None:
        return None if net.value is not None else net.reason
    if choice.option.free:
        return None
    if choice.option.gain is None:
        return "unknown_gain"
    return None if Lines.of(value_needed, choice.option, assumed) else "no_gain"


def _net(study: Study, known: Sequence[Choice], focus: Choice, period: Period) -> Drawing:
    money, marks = study.money or Money(), style.marks(study.places, study.baseline)
    points = []
    for each in known:
        net = period.of(each.outcome.net_per_month)
        system = system_of(study, each) or ""
        low, high = (end if isinstance(end, float) else math.nan for end in (net.low, net.high))
        points.append(
            Point(
                study.name(system),
                marks[system],
                each.outcome.cost_per_thousand.value or 0.0,
                net.value or 0.0,
                # The name of the system in focus is placed first.
                each is focus,
                low,
                high,
                proven=each.option.free or each.outcome.proven,
                in_focus=each is focus,
            )
        )
    lines = Lines.of(
        lambda option, scenario: net_by_price(option, scenario, period.months),
        focus.option,
        money.assumptions,
    )
    demonstrated = any(each.demonstrated for each in known)
    title = _("Net value {period} by the price of 1,000 searches", period=period.name)
    if demonstrated:
        title = _("{title} (example values)", title=title)
    drawing = net_by_price_chart(
        points,
        by_price=lines,
        period=period.name,
        currency=money.currency,
        money=partial(amount_in, currency=money.currency),
        demonstrated=demonstrated,
    )
    return replace(drawing, title=title)


def _needed(study: Study, challengers: Sequence[Choice], focus: Choice) -> Drawing | None:
    money, marks = study.money or Money(), style.marks(study.places, study.baseline)
    systems = []
    for each in challengers:
        lines = Lines.of(value_needed, each.option, money.assumptions)
        if lines is None:
            continue
        systems.append(
            Need(
                study.name(each.system),
                marks[each.system],
                lines,
                proven=each.outcome.proven,
                in_focus=each is focus,
            )
        )
    if not systems:
        return None
    price = focus.outcome.cost_per_thousand.value
    own_price = 0.0 if focus.unset else price or 0.0
    even = focus.outcome.break_even_price.value if money.valued else None
    end = 2 * max(own_price, even or 0.0)
    drawing = value_needed_chart(
        systems,
        end or _USUAL_PRICE,
        price=None if focus.unset else price,
        value=money.assumptions.value_per_search if money.valued else None,
        currency=money.currency,
        money=partial(amount_in, currency=money.currency),
    )
    return replace(drawing, title=_("Break-even value of a search, by price"))
