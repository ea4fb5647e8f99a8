"""The tables and sliders of the page Cost, and the values at which its curves are computed."""

import itertools
import math
from datetime import date

import pytest

from rankdash.core.value.assumptions import ASSUMPTIONS
from rankdash.core.value.prices import ListedPrice, Load, Price
from rankdash.features.cost import page as cost_page
from rankdash.features.cost import page_inputs


def test_a_slider_has_the_decimals_of_its_step():
    written = {step: page_inputs.written(step) for step in (10, 1, 0.5, 0.05, 0.001)}
    assert written == {10: "%.0f", 1: "%.0f", 0.5: "%.1f", 0.05: "%.2f", 0.001: "%.3f"}


@pytest.mark.parametrize("each", [each for each in ASSUMPTIONS if each.logarithmic])
def test_a_slider_of_decades_goes_from_its_lowest_to_its_highest(each):
    steps = sorted(set(page_inputs.decades(each)))
    assert (steps[0], steps[-1]) == (each.low, each.high)
    assert all(b / a <= 2.0001 for a, b in itertools.pairwise(steps) if a > each.low > 0)


def test_empty_cells_of_the_price_table_are_left_out_and_dates_are_dates():
    row = {"key": "own", "amount": 0.0, "model": None, "chunk_tokens": math.nan,
           "as_of": date(2026, 11, 1), "utilisation": 0.5}  # fmt: skip
    assert page_inputs.entry(row) == {
        "key": "own", "amount": 0.0, "as_of": "2026-11-01", "utilisation": 0.5
    }  # fmt: skip


def test_lengths_go_to_twice_ones_own_and_stand_on_both_sides_of_a_chunk():
    def lengths(own, unit="search", chunk=0):
        price = Price(1.0, unit, chunk_tokens=chunk)
        listed = ListedPrice("key", "key", "", price, "a test", date(2026, 11, 1))
        return cost_page.lengths_drawn(Load(20, 10, own), [listed])

    found = lengths(300, chunk=520)
    assert found == sorted(found)
    assert 300.0 in found and 10.0 in found and max(found) == 1000.0
    # A chunk of 520 tokens has room for 500 tokens of the document and 20 of the query.
    assert {500.0, 500.0 + 1e-6} <= set(found)
    assert max(lengths(600)) == 1200.0
    assert not any(500 < each < 500.1 for each in lengths(300, "tokens", 520))
    assert len(lengths(300, chunk=20)) == 41
