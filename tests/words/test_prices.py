"""Which price goes without saying for what a reranker runs on, and when a price is one's own."""

from dataclasses import replace
from datetime import date

import pytest

from rankdash.value.price_list import parse_prices, shipped, to_json, usual

BY_KEY = {each.key: each for each in shipped()}


@pytest.mark.parametrize(
    ("place", "key"),
    [("cpu", "own-cpu"), ("gpu", "own-gpu"), ("service", "own"), ("llm", "template-model")],
)
def test_a_reranker_is_priced_by_what_it_runs_on(place, key):
    assert usual(place, BY_KEY) == BY_KEY[key]
    assert usual(place, {}) is None


@pytest.mark.parametrize("key", BY_KEY)
def test_one_cell_makes_an_example_no_price_of_ones_own(key):
    example = BY_KEY[key]
    dearer = replace(example.price, amount=9.0)
    assert example.example
    for changed in (
        {"price": dearer}, {"source": "our contract"}, {"as_of": date(2026, 12, 1)},
        {"provider": "Us"}, {"key": "mine"},
    ):  # fmt: skip
        assert replace(example, **changed).example
    assert not replace(example, price=dearer, source="our contract").example


def test_a_list_of_an_earlier_version_loses_the_throughput_that_nobody_measured():
    old = [replace(each, price=replace(each.price, searches_per_second=20.0)) for each in shipped()]
    assert parse_prices(to_json(old).encode(), "saved") == tuple(
        new if new.price.unit == "hour" else was for new, was in zip(shipped(), old, strict=True)
    )
    own = replace(old[-1], source="our invoice")
    assert parse_prices(to_json([own]).encode(), "saved") == (own,)
