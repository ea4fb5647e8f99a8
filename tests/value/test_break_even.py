"""Where an option begins to pay; that of a whole scenario is in test_payoff.py."""

import pytest

from rankdash.value.billing import Price
from rankdash.value.break_even import equal_rate, highest_price, least_quality, least_searches_a_day


def test_a_machine_that_is_used_half_of_the_time_pays_at_twice_the_rate():
    # $3.60 an hour is $0.001 a second, of one search a second at $1 a thousand.
    assert equal_rate(Price(3.6, "hour"), 1.0) == pytest.approx(1.0)
    assert equal_rate(Price(3.6, "hour", utilisation=0.5), 1.0) == pytest.approx(2.0)
    assert equal_rate(Price(3.6, "hour"), 0.0) is None
    assert round(equal_rate(Price(2.95, "hour"), 2.00) or 0, 2) == 0.41


@pytest.mark.parametrize("next_to_nothing", [5e-324, 1e-311])
def test_next_to_nothing_is_no_price_to_reach(next_to_nothing):
    assert equal_rate(Price(1.0, "hour"), next_to_nothing) is None


def test_the_least_quality_pays_for_the_search_exactly():
    # A search at $0.001 that is worth $0.01 needs a tenth more quality, or a twentieth where each
    # percent counts twice.
    given = {"value_per_search": 0.01, "cost_per_search": 0.001}
    assert least_quality(0.72, **given) == pytest.approx(0.792)
    assert least_quality(0.72, **given, elasticity=2.0) == pytest.approx(0.756)
    assert least_quality(0.0, **given) is None
    assert least_quality(0.72, **given, elasticity=0.0) is None
    assert least_quality(0.72, value_per_search=0.0, cost_per_search=0.001) is None


@pytest.mark.parametrize(
    ("searches", "upkeep", "price"),
    [(0.0, 0.0, "no_traffic"), (1.0, 0.0, 2.0), (2.0, 0.002, 1.0), (1.0, 0.002, "never")],
)
def test_the_highest_price_leaves_what_upkeep_takes_of_each_search(searches, upkeep, price):
    assert highest_price(0.002, searches, upkeep) == (
        price if isinstance(price, str) else pytest.approx(price)
    )


@pytest.mark.parametrize(
    ("margin", "upkeep", "searches"),
    [
        (0.0, 1.0, "never"),
        (-0.1, 0.0, "never"),
        (0.5, 0.0, "always"),
        (0.001, 0.5, 0.5 / (0.001 * 365 / 12)),
    ],
)
def test_the_least_searches_pay_the_upkeep(margin, upkeep, searches):
    found = least_searches_a_day(margin, upkeep)
    assert found == (searches if isinstance(searches, str) else pytest.approx(searches))
