"""The four billing units against the worked tables, and properties for any numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.value.assumptions import DAYS_PER_MONTH
from rankdash.core.value.prices import (
    Load,
    Machines,
    Price,
    Searches,
    billed_tokens,
    cost_per_search,
    cost_per_thousand,
    crossover_tokens,
    search_units,
)
from tests.results import results, several

# query tokens, documents, document tokens, billed tokens, then $ per 1,000 searches at $0.05,
# $0.025 and $0.10 per million tokens, and at $0.20 with 70 tokens of template.
WORKED = [
    (12, 100, 60, 7_200, 0.36, 0.18, 0.72, 2.84),
    (12, 50, 200, 10_600, 0.53, 0.265, 1.06, 2.82),
    (12, 100, 200, 21_200, 1.06, 0.53, 2.12, 5.64),
    (30, 100, 500, 53_000, 2.65, 1.325, 5.30, 12.00),
]
SEARCHES = Price(2.00, "search")
LOAD, SHORT = Load(12, 100, 60), Load(10, 1, 90)
UNEVEN = Searches(np.array([10.0, 20.0]), np.repeat([5.0, 15.0], [60, 140]), np.array([60, 140]))


def crossing(amount: float, per_token: float, query=30, documents=100, **more) -> float | None:
    searches, tokens = Price(amount, "search", **more), Price(per_token, "tokens")
    return crossover_tokens(searches, tokens, Load(query, documents, 0))


def priced(**numbers: object) -> dict[str, object]:
    found = Price(**({"amount": 1.0, "unit": "hour"} | numbers))
    return {name: getattr(found, name) for name in numbers}


CASES = {
    **several(
        "units of {} documents of {} tokens",
        lambda documents, tokens: search_units(Load(12, documents, tokens)),
        (
            (1, 60), (100, 60), (100.5, 60), (101, 60), (200, 60), (200.5, 60), (50, 488),
            (50, 489), (51, 489), (100, 1000), (0, 9), (1, 0),
        ),
    ),
    # A query that fills a chunk leaves room for one token; without a limit nothing is split.
    **several(
        "units of a query of {} and {} by {}",
        lambda query, tokens, chunk: search_units(Load(query, 1, tokens), chunk),
        ((500, 60, 500), (900, 60, 500), (500, 150, 500),
        (499, 150, 500), (20, 1_000_000, 0), (20, 0, 500)),
    ),
    **{
        f"a machine used {share}": lambda share=share: cost_per_thousand(
            Price(2.95, "hour", searches_per_second=20, utilisation=share), LOAD
        )
        for share in (1.0, 0.3, 0.1)
    },
    **{
        f"by {price.unit}": lambda price=price: (
            cost_per_search(price, SHORT), cost_per_search(price, Load(10, 1000, 90))
        )
        for price in (Price(1.0, "tokens", template_tokens=70), Price(1.0, "template"),
                      Price(2.0, "flat"), Price(2.0, "hour"))
    },
    "a template that is told": lambda: cost_per_search(
        Price(1.0, "template", template_tokens=70), SHORT
    ),
    "by search, of two chunks of 100 tokens": lambda: cost_per_search(
        Price(2.0, "search", chunk_tokens=110), Load(10, 60, 190)
    ),
    "units of searches of 60 and of 140 documents": lambda: (
        search_units(UNEVEN.load(100)), search_units(UNEVEN.scaled(2, 9).load(100), 100),
        billed_tokens(UNEVEN.load(100)),
    ),
    "billed": lambda: billed_tokens(SHORT),
    **{
        f"tokens are dearer from, query {query}": lambda query=query: crossing(2.0, 0.05, query)
        for query in (30, 130, 399, 400)
    },
    **several("tokens at {}", lambda per_token: crossing(2.0, per_token), (0.001, 0.0)),
    # Documents of up to one chunk, or without an upper limit.
    **several("searches at {}", lambda amount: crossing(amount, 0.05), (2.5, 2.51)),
    **{
        f"chunks of {chunk}": lambda chunk=chunk: crossing(1.0, 1.0, 10, 1, chunk_tokens=chunk)
        for chunk in (0, 1000, 999)
    },
    "no documents": lambda: crossing(1.0, 1.0, 10, 0),
    "too small to divide by": lambda: crossing(1.0, 5e-324, 10, 10, chunk_tokens=0),
    # $0.2 per 1,000 searches is the price of 200 tokens per search.
    **{
        f"with 70 tokens of template by {unit}": lambda unit=unit: crossover_tokens(
            Price(0.2, "search"), Price(1.0, unit, template_tokens=70), SHORT
        )
        for unit in ("tokens", "template")
    },
    **{
        f"{name}: {value}": lambda name=name, value=value: priced(**{name: value})
        for name, values in {
            "amount": (0.0, 1e10, -1e-9, -1.0, 1.0000001e10, float("nan")),
            "template_tokens": (0.0, 1e10, -1.0, 1.1e10, float("inf")),
            "searches_per_second": (1e-12, 1e9, 0.9e-12, 0.0, 5e-324, float("inf")),
            "utilisation": (1e-12, 1.0, 0.9e-12, 0.0, 5e-324, 1.0000001, 1.5),
            "unit": ("month",),
        }.items()
        for value in values
    },
    "a usual chunk": lambda: SEARCHES.chunk_tokens,
    # $0.20 per hour is $146 per month, for any traffic that one machine can serve.
    **{
        f"machines for {searches} searches": lambda searches=searches: (
            MACHINES.searches_per_day, MACHINES.needed(searches), MACHINES.cost_per_month(searches)
        )
        for searches in (0, 100_000, 86_400 * 6, 86_400 * 6 + 1, 86_400 * 12.01)
    },
    "two kinds of work": lambda: Machines(146.0, 300.0).beside(Machines(146.0, 600.0)),
    "one kind": lambda: Machines(146.0, 300.0).beside(None),
    "no machines": lambda: (Machines.of(Price(2.0, "flat")), Machines.of(Price(2.0, "hour"))),
}  # fmt: skip
MACHINES = Machines.of(Price(0.2, "hour", searches_per_second=20, utilisation=0.3))


def test_what_each_unit_bills_and_which_prices_are_refused(approved):
    approved("value/billing", results(CASES))


@pytest.mark.parametrize("row", WORKED)
def test_the_worked_table(row: tuple[float, ...]):
    query, documents, tokens, billed, *money = row
    load = Load(query, documents, tokens)
    assert billed_tokens(load) == billed
    prices = [Price(amount, "tokens") for amount in (0.05, 0.025, 0.10)]
    prices.append(Price(0.20, "template", template_tokens=70))
    assert [cost_per_thousand(price, load) for price in prices] == pytest.approx(money, rel=1e-12)


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


@given(st.floats(1, 1e9), st.floats(0.01, 1e3), st.floats(0.01, 1))
def test_whole_machines_never_cost_less_than_their_share_nor_one_machine_more(searches, rate, use):
    price = Price(0.2, "hour", searches_per_second=rate, utilisation=use)
    whole = Machines.of(price).cost_per_month(searches)
    share = cost_per_search(price, Load(1, 1, 1)) * searches * DAYS_PER_MONTH
    assert share * (1 - 1e-6) <= whole <= share * (1 + 1e-6) + 146.0
