"""The map of break-even."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumptions
from rankdash.features.cost import charts_break_even as break_even_chart
from rankdash.features.cost.costs import Choice, choices
from rankdash.features.cost.sensitivity import GAIN, PRICE, input_value, net_grid, net_per_month
from rankdash.features.cost.words_prices import money as amount_in
from rankdash.features.cost.words_prices import symbol, unit
from rankdash.kit.drawing.draw import Drawing

# Of the map of break-even, either way.
_CELLS = 31

_BY_NAME = {each.name: each for each in ASSUMPTIONS}


def break_even(study: Study, challenger: str) -> Drawing | None:
    """The net value a month over the price and what 1 % of quality is worth; None where there is no
    price, no value of a search or no gain, or it pays nowhere."""
    money = study.money or Money()
    choice = next(each for each in choices(study) if each.system == challenger)
    if choice.lacks_value:
        return None
    found = net_map(choice, money.assumptions, PRICE, "elasticity", money.currency)
    if found is None or not (found.net > 0).any():
        return None
    period = _("a month")
    title = _(
        "Break-even of {system}: net value {period} by its price and the value of better ranking",
        system=study.name(challenger),
        period=period,
    )
    if choice.demonstrated:
        title = _("{title} (example values)", title=title)
    return replace(found.drawing(period, money.currency), title=title)


@dataclass(frozen=True, eq=False)
class NetMap:
    """The net value over two inputs of a calculation. net: upward × across. now: as things are."""

    across: break_even_chart.Axis
    upward: break_even_chart.Axis
    net: npt.NDArray[np.float64]
    now: float

    def drawing(self, period: str, currency: str) -> Drawing:
        """period: what the values are for, in words."""
        written = partial(amount_in, currency=currency)
        given = (self.net, self.across, self.upward)
        return Drawing(
            lambda ink: break_even_chart.figure(
                *given, ink, now=self.now, period=period, money=written
            ),
            break_even_chart.alt(*given, period=period, money=written),
        )


def net_map(
    choice: Choice, scenario: Assumptions, across: str, upward: str, currency: str, months: int = 1
) -> NetMap | None:
    """across, upward: two of `sensitivity.INPUTS`. None where there is no price or no gain."""
    now = net_per_month(choice.option, scenario)
    if now is None:
        return None
    first, second = (_axis(choice, scenario, name, currency) for name in (across, upward))
    net = net_grid(choice.option, scenario, (across, first.values), (upward, second.values))
    return NetMap(first, second, months * net, months * now)


def _axis(choice: Choice, scenario: Assumptions, name: str, currency: str) -> break_even_chart.Axis:
    """From next to nothing to a few times what it is now, or over its slider where it is 0; far
    enough to have the break-even inside."""
    now = input_value(choice.option, scenario, name) or 0.0
    came = choice.came
    found = {
        PRICE: came.break_even_price,
        "elasticity": came.break_even_elasticity,
        "searches_per_day": came.break_even_searches,
    }.get(name)
    even = found.value if found is not None else None
    unit_of = symbol(currency) if name == PRICE else ""
    if name not in (PRICE, GAIN):
        unit_of = unit(_BY_NAME[name], currency)
    title = input_title(name)
    title = _("{title} ({unit})", title=title, unit=unit_of) if unit_of else title
    if name == GAIN:
        reach = max(abs(now) * 2, 0.05)
        return break_even_chart.Axis(title, np.linspace(-reach / 4, reach, _CELLS).tolist(), now)
    if name == PRICE:
        high = max(2 * now, 2 * (even or 0.0), 0.1)
        return break_even_chart.Axis(title, np.linspace(0, high, _CELLS).tolist(), now)
    each = _BY_NAME[name]
    if each.logarithmic and now > 0:
        reach = 100 * max(now, even or 0.0)
        low, high = max(min(now, even or now) / 100, each.least, 1e-9), min(reach, each.most)
        return break_even_chart.Axis(title, np.geomspace(low, high, _CELLS).tolist(), now, True)
    # Neither the present point nor the line is to lie at an edge.
    high = max(1.3 * now, 2 * even) if even is not None and now > 0 else max(2 * now, each.high)
    high = min(high, each.most)
    return break_even_chart.Axis(title, np.linspace(each.low, high, _CELLS).tolist(), now)


def input_title(name: str) -> str:
    """What one of `sensitivity.INPUTS` is called."""
    if name == PRICE:
        return _("Price of 1,000 searches")
    return _("Measured gain") if name == GAIN else _(_BY_NAME[name].title)
