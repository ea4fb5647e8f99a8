"""The four billing units against the worked tables, and what must hold for any numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.errors import DataError
from rankdash.value.assumptions import DAYS_PER_MONTH
from rankdash.value.billing import (
    Load,
    Machines,
    Price,
    billed_tokens,
    cost_per_search,
    cost_per_thousand,
    crossover_tokens,
    search_units,
)

# query tokens, documents, document tokens, billed tokens, then $ per 1,000 searches at $0.05,
# $0.025 and $0.10 for a million tokens, and at $0.20 with 70 tokens of template.
WORKED = [
    (12, 100, 60, 7_200, 0.36, 0.18, 0.72, 2.84),
    (12, 50, 200, 10_600, 0.53, 0.265, 1.06, 2.82),
    (12, 100, 200, 21_200, 1.06, 0.53, 2.12, 5.64),
    (30, 100, 500, 53_000, 2.65, 1.325, 5.30, 12.00),
]


@pytest.mark.parametrize("row", WORKED)
def test_the_worked_table(row: tuple[float, ...]):
    query, documents, tokens, billed, *money = row
    load = Load(query, documents, tokens)
    assert billed_tokens(load) == billed
    prices = [Price(amount, "tokens") for amount in (0.05, 0.025, 0.10)]
    prices.append(Price(0.20, "template", template_tokens=70))
    assert [cost_per_thousand(price, load) for price in prices] == pytest.approx(money, rel=1e-12)


def test_a_machine_by_the_hour_costs_what_its_use_makes_of_it():
    def at(utilisation: float) -> float:
        price = Price(2.95, "hour", searches_per_second=20, utilisation=utilisation)
        return float(cost_per_thousand(price, Load(12, 100, 60)))

    assert [round(at(u), 3) for u in (1.0, 0.3, 0.1)] == [0.041, 0.137, 0.41]


@pytest.mark.parametrize(
    ("documents", "tokens", "units"),
    [
        (100, 60, 1),
        (101, 60, 2),
        (50, 488, 1),
        (50, 489, 1),
        (51, 489, 2),
        (100, 1000, 3),
        (0, 9, 0),
        (1, 0, 1),
    ],
)
def test_search_units_are_whole_and_long_documents_are_several_chunks(
    documents: float, tokens: float, units: float
):
    assert search_units(Load(12, documents, tokens)) == units


def test_the_cheaper_unit_flips_with_the_length_of_a_document():
    searches, tokens = Price(2.00, "search"), Price(0.05, "tokens")
    flip = crossover_tokens(searches, tokens, Load(30, 100, 0))
    assert flip == pytest.approx(370)
    for length, tokens_dearer in ((flip - 1, False), (flip + 1, True)):
        load = Load(30, 100, length)
        assert (cost_per_search(tokens, load) > cost_per_search(searches, load)) is tokens_dearer
    assert crossover_tokens(searches, Price(0.001, "tokens"), Load(30, 100, 0)) is None
    assert crossover_tokens(searches, Price(0, "tokens"), Load(30, 100, 0)) is None


@pytest.mark.parametrize(("query", "flip"), [(30, 370.0), (130, 270.0), (400, None), (399, 1.0)])
def test_below_no_length_is_there_a_cheaper_unit(query, flip):
    searches, tokens = Price(2.00, "search"), Price(0.05, "tokens")
    assert crossover_tokens(searches, tokens, Load(query, 100, 0)) == (flip and pytest.approx(flip))


@pytest.mark.parametrize(("amount", "flip"), [(2.5, 470.0), (2.51, None)])
def test_the_cheaper_unit_is_looked_for_up_to_one_chunk(amount, flip):
    found = crossover_tokens(Price(amount, "search"), Price(0.05, "tokens"), Load(30, 100, 0))
    assert found == (flip and pytest.approx(flip))


@pytest.mark.parametrize(
    ("documents", "units"), [(1, 1), (100, 1), (100.5, 2), (101, 2), (200, 2), (200.5, 3)]
)
def test_a_begun_hundred_of_documents_is_a_unit(documents, units):
    assert search_units(Load(12, documents, 60)) == units


numbers = st.floats(0, 1e5)
prices = st.builds(
    Price,
    st.floats(0, 100),
    st.sampled_from(["search", "tokens", "template"]),
    template_tokens=st.floats(0, 200),
    chunk_tokens=st.sampled_from([0, 500]),
)


@given(prices, st.floats(0, 400), st.floats(0, 500), numbers, st.floats(0, 100))
def test_cost_never_falls_with_documents_tokens_or_price(
    price: Price, query: float, documents: float, tokens: float, more: float
):
    base = cost_per_search(price, Load(query, documents, tokens))
    slack = base * (1 - 1e-12) - 1e-12
    assert cost_per_search(price, Load(query + more, documents, tokens)) >= slack
    assert cost_per_search(price, Load(query, documents + more, tokens)) >= slack
    assert cost_per_search(price, Load(query, documents, tokens + more)) >= slack
    dearer = Price(
        price.amount + more,
        price.unit,
        template_tokens=price.template_tokens,
        chunk_tokens=price.chunk_tokens,
    )
    assert cost_per_search(dearer, Load(query, documents, tokens)) >= slack


@given(st.floats(1, 1000), st.integers(1, 1000), st.floats(0, 1000))
def test_tokens_pay_the_query_once_for_each_document(query: float, documents: int, tokens: float):
    whole = billed_tokens(Load(query, documents, tokens))
    without = billed_tokens(Load(0, documents, tokens))
    assert whole - without == pytest.approx(query * documents, rel=1e-9)


@pytest.mark.parametrize("unit", ["flat", "search", "tokens", "template", "hour"])
def test_arrays_give_what_single_numbers_give(unit: str):
    price = Price(2.0, unit, template_tokens=7, searches_per_second=3.0)
    queries, documents = np.array([3.0, 40.0]), np.array([10.0, 250.0])
    tokens = np.array([600.0, 90.0])
    together = cost_per_search(price, Load(queries, documents, tokens))
    apart = [
        cost_per_search(price, Load(*row)) for row in zip(queries, documents, tokens, strict=True)
    ]
    assert np.allclose(together, apart, rtol=1e-15)


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": -1.0},
        {"amount": float("nan")},
        {"amount": 1.001e10},
        {"unit": "month"},
        {"utilisation": 0.0},
        {"utilisation": 1.5},
        {"searches_per_second": 0.0},
        {"template_tokens": float("inf")},
    ],
)
def test_an_impossible_price_is_refused(wrong: dict[str, object]):
    with pytest.raises(DataError):
        Price(**{"amount": 1.0, "unit": "tokens", **wrong})


def test_whole_machines_serve_the_traffic_at_their_use_and_are_never_switched_off():
    """$0.20 an hour is $146 a month, whatever the traffic that one machine serves."""
    machines = Machines.of(Price(0.2, "hour", searches_per_second=20, utilisation=0.3))
    assert machines.searches_per_day == pytest.approx(86_400 * 6)
    costs = [machines.cost_per_month(each) for each in (0, 100_000, 86_400 * 6, 86_400 * 6 + 1)]
    assert costs == pytest.approx([146.0, 146.0, 146.0, 292.0])
    assert [machines.needed(each) for each in (0, 86_400 * 6, 86_400 * 12.01)] == [1, 1, 3]


@given(st.floats(1, 1e9), st.floats(0.01, 1e3), st.floats(0.01, 1))
def test_whole_machines_never_cost_less_than_their_share_nor_one_machine_more(searches, rate, use):
    price = Price(0.2, "hour", searches_per_second=rate, utilisation=use)
    whole = Machines.of(price).cost_per_month(searches)
    share = cost_per_search(price, Load(1, 1, 1)) * searches * DAYS_PER_MONTH
    assert share * (1 - 1e-6) <= whole <= share * (1 + 1e-6) + 146.0


def test_work_of_two_kinds_takes_more_of_the_same_machines():
    one, other = Machines(146.0, 300.0), Machines(146.0, 600.0)
    assert one.beside(other) == Machines(146.0, pytest.approx(200.0))
    assert one.beside(None) == one
    assert Machines.of(Price(2.0, "flat")) is None


def test_what_is_too_small_to_divide_by_is_nothing():
    unbounded = Price(1.0, "search", chunk_tokens=0)
    assert crossover_tokens(unbounded, Price(5e-324, "tokens"), Load(10, 10, 100)) is None
    for name in ("searches_per_second", "utilisation"):
        with pytest.raises(DataError, match="of a price must be"):
            Price(1.0, "hour", **{name: 5e-324})


@pytest.mark.parametrize(
    ("field", "ends", "beyond"),
    [
        ("amount", (0.0, 1e10), (-1e-9, 1.0000001e10)),
        ("template_tokens", (0.0, 1e10), (-1.0, 1.1e10)),
        ("searches_per_second", (1e-12, 1e9), (0.9e-12, float("inf"))),
        ("utilisation", (1e-12, 1.0), (0.9e-12, 1.0000001)),
    ],
)
def test_a_number_of_a_price_may_be_either_end_of_its_range(field, ends, beyond):
    for value in ends:
        assert getattr(Price(**({"amount": 1.0, "unit": "hour"} | {field: value})), field) == value
    for value in beyond:
        with pytest.raises(DataError, match=field.replace("_", " ")):
            Price(**({"amount": 1.0, "unit": "hour"} | {field: value}))


def test_a_query_that_fills_a_chunk_leaves_room_for_a_token_and_no_limit_splits_nothing():
    assert search_units(Load(500, 1, 60), 500) == search_units(Load(900, 1, 60), 500) == 1
    assert search_units(Load(500, 1, 150), 500) == search_units(Load(499, 1, 150), 500) == 2
    assert search_units(Load(20, 1, 1_000_000), 0) == 1
    assert search_units(Load(20, 100, 0), 500) == 1


@pytest.mark.parametrize(("unit", "cost"), [("tokens", 100e-6), ("template", 170e-6)])
def test_a_template_is_paid_by_its_own_unit_alone(unit, cost):
    price = Price(1.0, unit, template_tokens=70)
    assert cost_per_search(price, Load(10, 1, 90)) == pytest.approx(cost)
    # For $0.2 a thousand searches 200 tokens are bought for each of them.
    flip = crossover_tokens(Price(0.2, "search"), price, Load(10, 1, 90))
    assert flip == pytest.approx(190 if unit == "tokens" else 120)


@pytest.mark.parametrize(("chunk", "flip"), [(0, 990), (1000, 990), (999, None)])
def test_units_are_the_cheaper_ones_up_to_a_full_chunk_or_without_an_end(chunk, flip):
    searches = Price(1.0, "search", chunk_tokens=chunk)
    assert crossover_tokens(searches, Price(1.0, "tokens"), Load(10, 1, 90)) == flip
    assert crossover_tokens(searches, Price(1.0, "tokens"), Load(10, 0, 90)) is None
    assert crossover_tokens(searches, Price(0.0, "tokens"), Load(10, 1, 90)) is None


def test_a_template_is_paid_where_one_is_told_and_a_flat_price_by_the_search_alone():
    load = Load(10, 1, 90)
    assert cost_per_search(Price(1.0, "template"), load) == pytest.approx(100e-6)
    assert billed_tokens(load) == 100
    for documents in (1, 1000):
        assert cost_per_search(Price(2.0, "flat"), Load(10, documents, 90)) == pytest.approx(2e-3)
    assert np.isnan(cost_per_search(Price(2.0, "hour"), load))
    assert Machines.of(Price(2.0, "hour")) is None


def test_a_chunk_has_five_hundred_tokens_where_nobody_said():
    assert Price(2.0, "search").chunk_tokens == 500
