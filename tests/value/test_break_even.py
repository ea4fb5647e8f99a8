"""The break-even of an option, and the options that no other dominates."""

import math

from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.value import break_even
from rankdash.core.value.payoff import pareto
from rankdash.core.value.prices import Price
from tests.results import results, several

QUALITY = {"value_per_search": 0.01, "cost_per_search": 0.001}
CASES = {
    # $3.60 per hour is $0.001 per second, one search per second at $1 per 1,000.
    **{
        f"a machine at {price.amount} an hour, used {price.utilisation}, against {other:g}": (
            lambda price=price, other=other: break_even.equal_rate(price, other)
        )
        for price, other in (
            (Price(3.6, "hour"), 1.0), (Price(3.6, "hour", utilisation=0.5), 1.0),
            (Price(3.6, "hour"), 0.0), (Price(2.95, "hour"), 2.00), (Price(1.0, "hour"), 5e-324),
            (Price(1.0, "hour"), 1e-311),
        )
    },
    # A search at $0.001 with a value of $0.01 needs a tenth more quality, or a twentieth if each
    # percent counts twice.
    **several(
        "the least quality above {}, {}",
        lambda before, changes: break_even.least_quality(before, **(QUALITY | changes)),
        ((0.72, {}), (0.72, {"elasticity": 2.0}), (0.0, {}),
        (0.72, {"elasticity": 0.0}), (0.72, {"value_per_search": 0.0})),
    ),
    **several(
        "the highest price of {} searches, upkeep {}",
        lambda searches, upkeep: break_even.highest_price(0.002, searches, upkeep),
        ((0.0, 0.0), (1.0, 0.0), (2.0, 0.002), (1.0, 0.002)),
    ),
    **several(
        "the least searches of margin {}, upkeep {}",
        break_even.least_searches_a_day,
        ((0.0, 1.0), (-0.1, 0.0), (0.5, 0.0), (0.001, 0.5)),
    ),
}  # fmt: skip


def test_where_an_option_begins_to_pay(approved):
    approved("value/break_even", results(CASES))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_on_the_front_is_what_no_other_beats(points: list[tuple[int, int]]):
    costs, qualities = zip(*points, strict=True) if points else ((), ())
    front = pareto(costs, qualities)
    assert len(front) == len(points)
    for (cost, quality), on in zip(points, front, strict=True):
        beaten = any(c <= cost and q >= quality and (c < cost or q > quality) for c, q in points)
        assert on == (not beaten)


def test_what_has_no_cost_or_no_quality_that_is_known_is_not_on_the_front():
    costs, qualities = [1.0, math.nan, 0.5, 2.0], [0.5, 0.9, math.nan, 0.4]
    assert pareto(costs, qualities).tolist() == [True, False, False, False]
