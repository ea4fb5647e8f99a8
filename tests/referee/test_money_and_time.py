"""Latency and its costs, compared with the definitions."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import binom

from tests.referee.conftest import array
from tests.referee.inference import Range, relative_interval
from tests.referee.shown import assert_ends, assert_shows, assert_within

SEARCHES = 100_000 * 365 / 12
"""Searches per month, at the default number of searches per day."""
TARGET_MS = 500
WORTH, PRICE = 0.01, 2.00
"""Value of a search; price of 1,000 search units, each a query with up to 100 documents."""


def test_latencies(own, said):
    (rows, *_others) = said.page.tables["latency"]
    assert len(rows) == 2
    values = own.latencies
    _name, n, _met, within, mean, deviation, p50, p90, p95, p99 = rows[1][:10]
    assert n == str(len(values))
    assert within == str(sum(value <= TARGET_MS for value in values))
    assert_shows(mean, np.mean(values))
    assert_shows(deviation, np.std(values, ddof=1))
    for cell, share in ((p50, 0.5), (p90, 0.9), (p95, 0.95)):
        assert_shows(cell, np.quantile(values, share))
    assert p99 == "–"
    assert len(values) < 1000
    for cell, share in ((p50, 0.5), (p95, 0.95)):
        below = binom.ppf((1 - own.rules.level) / 2, len(values), share)
        above = binom.ppf((1 + own.rules.level) / 2, len(values), share)
        low = values[int(below) - 1]
        if above < len(values):
            ends = cell.partition("(")[2].rstrip(")").split(" … ")
            assert_shows(ends[0], low)
            assert_shows(ends[1], values[int(above)])
        else:
            assert_shows(cell.partition("at least ")[2], low)


# Shown for a gain without value; the gain below which no return is computed.
NEVER, LEAST = "never", 1e-6


def test_costs(own, said):
    """Each figure equals its formula at the relative change and at both ends of its interval."""
    head, _baseline, *rows = said.page.tables["cost"][0]
    cost, worth = SEARCHES * PRICE / 1000, SEARCHES * WORTH
    rising: dict[str, Callable[[float], float]] = {
        "value per month": lambda gain: worth * gain,
        "net per month": lambda gain: worth * gain - cost,
        "return on cost": lambda gain: (worth * gain - cost) / cost,
    }
    paying: dict[str, Callable[[float], float]] = {
        "break-even price of 1,000 searches": lambda gain: WORTH * gain * 1000,
        "break-even: value gained per 1% of quality": lambda gain: cost / (worth * gain),
    }
    for row, system in zip(rows, own.challengers, strict=True):
        cells = {
            title: cell.rstrip(")").partition(" (") for title, cell in zip(head, row, strict=True)
        }
        assert_shows(cells["cost of 1,000 searches"][0], PRICE)
        assert_shows(cells["cost per month"][0], cost)
        changes = own.changes(system)
        before = np.array([own.table["ndcg", own.baseline][query] for query in changes])
        gain = array(changes).mean() / before.mean()
        ends = relative_interval(before, array(changes), own.rules)
        for title, formula in rising.items():
            value, bracket, interval = cells[title]
            if title == "return on cost":
                shown = [value, *(interval.split(" … ") if bracket else [])]
                for text, (low, high) in zip(shown, [(gain, gain), *ends], strict=False):
                    _assert_returns(text, formula(low), formula(high))
                continue
            assert_shows(value, formula(gain))
            assert bool(bracket) == bool(array(changes).any()), (title, system)
            if bracket:
                assert_ends(interval, [(formula(low), formula(high)) for low, high in ends])
        for title, formula in paying.items():
            value, bracket, interval = (cell.replace("%", "") for cell in cells[title])
            if gain > 0:
                assert_shows(value, formula(gain))
                assert bracket, (title, system)
            if bracket:
                # The larger the gain, the lower its necessary value.
                falls = formula(2) < formula(1)
                _assert_pays(interval.split(" … ")[:: -1 if falls else 1], ends, formula)


def _assert_returns(text: str, low: float, high: float) -> None:
    """Check a return; below 0 and above ten times the cost it is in words."""
    if text == "loses money":
        assert low < 0, (text, low)
    elif text == "more than ten times the cost":
        assert high > 10, (text, high)
    else:
        assert_within(text, low, high)


def _assert_pays(
    shown: Sequence[str], ends: Sequence[Range], formula: Callable[[float], float]
) -> None:
    """Check break-evens. shown: a figure at the lower and at the upper end, or `NEVER` if it never
    pays off there."""
    for text, (low, high) in zip(shown, ends, strict=True):
        if text == NEVER:
            assert low <= LEAST, (text, low)
        else:
            assert high > 0, (text, high)
            assert_within(text, *sorted(formula(max(each, LEAST)) for each in (low, high)))
