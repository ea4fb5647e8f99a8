"""The tables of the page on cost, and the numbers at which it draws."""

import itertools
import math
import re
from datetime import date

import pytest

from rankdash.ui.cost import cost_cards, cost_inputs, cost_units
from rankdash.value.assumptions import ASSUMPTIONS
from rankdash.value.billing import Load, Price
from rankdash.value.price_list import ListedPrice


def side_by_side(*rows, heads=("a",), corner="", **settings):
    """The table without its style."""
    drawn = cost_cards.side_by_side(corner, heads, rows, **settings)
    return drawn.rpartition("</style>")[2]


def test_one_column_is_set_off_and_some_rows_are_strong():
    table = side_by_side(
        (("net", ""), [("1", "x"), ("2", "")]), (("cost", ""), [("3", "")] * 2),
        heads=("a", "b"), in_focus=1, strong=("net",),
    )  # fmt: skip
    rows = table.split("<tr>")[1:]
    assert ["rd-focus" in cell for cell in rows[0].split("<th")[1:]] == [False, False, True]
    first, second = (row.split("<td")[1:] for row in rows[1:])
    assert ["rd-focus" in cell for cell in first] == [False, False, True]
    assert ["rd-strong" in cell for cell in first] == [False, True, True]
    assert "rd-strong" not in str(second) and table.count("<small") == 1
    assert "rd-focus'" not in side_by_side((("net", ""), [("1", "")]))


@pytest.mark.parametrize(
    ("value", "whole"),
    [("1 … 2", True), ("never", False), ("1" * 22, True), ("1" * 23, False),
     ("每提升 1 个百分点的价值还不知道", False)],
)  # fmt: skip
def test_a_number_is_never_broken_over_two_lines_and_a_sentence_is(value, whole):
    assert ("class='rd-whole'" in side_by_side((("net", ""), [(value, "")]))) is whole


@pytest.mark.parametrize(("columns", "whole"), [(4, True), (5, False)])
def test_intervals_and_prices_wrap_where_there_are_many_columns(columns, whole):
    row = (("", ""), [("$1 / 1,000", "1 … 2")] * columns)
    cells = side_by_side(row, heads=[*map(str, range(columns))]).split("<td")[2:]
    assert all(("<span class='rd-whole'>" in cell) is whole for cell in cells)
    assert all(("<small class='rd-whole'>" in cell) is whole for cell in cells)


@pytest.mark.parametrize(
    ("columns", "said", "least"), [(2, "1", 17.4), (6, "1", 38.6), (2, "1" * 20, 26.2)]
)
def test_a_table_that_is_wider_than_its_place_says_that_it_scrolls(columns, said, least):
    heads = [*map(str, range(columns))]
    table = cost_cards.side_by_side("", heads, [(("", ""), [(said, "")] * columns)])
    [(limit, named)] = re.findall(
        r"@container \(max-width: ([\d.]+)rem\) \{ \.rd-figures p\.(\S+) ", table
    )
    assert float(limit) == pytest.approx(least, abs=0.11)
    assert f"<p class='{named}'>Scroll sideways to see all columns →</p>" in table
    assert f"<table style='min-width: {limit}rem'>" in table


def test_nothing_in_a_table_is_markup():
    table = side_by_side((("<u>", "<s>"), [("<p>", "<q>")]), corner="<b>", heads=["<i>"])
    assert not set(re.findall(r"<(b|i|u|s|p|q)>", table))


def test_a_slider_has_the_decimals_of_its_step():
    written = {step: cost_inputs.written(step) for step in (10, 1, 0.5, 0.05, 0.001)}
    assert written == {10: "%.0f", 1: "%.0f", 0.5: "%.1f", 0.05: "%.2f", 0.001: "%.3f"}


@pytest.mark.parametrize("each", [each for each in ASSUMPTIONS if each.logarithmic])
def test_a_slider_of_decades_goes_from_its_lowest_to_its_highest(each):
    steps = sorted(set(cost_inputs.decades(each)))
    assert (steps[0], steps[-1]) == (each.low, each.high)
    assert all(b / a <= 2.0001 for a, b in itertools.pairwise(steps) if a > each.low > 0)


def test_empty_cells_of_the_price_table_are_left_out_and_dates_are_dates():
    row = {"key": "own", "amount": 0.0, "model": None, "chunk_tokens": math.nan,
           "as_of": date(2026, 11, 1), "utilisation": 0.5}  # fmt: skip
    assert cost_inputs.entry(row) == {
        "key": "own", "amount": 0.0, "as_of": "2026-11-01", "utilisation": 0.5
    }  # fmt: skip


def listed(key, amount, unit="search", **more):
    return ListedPrice(key, key, "", Price(amount, unit, **more), "a test", date(2026, 11, 1))


def test_lengths_go_to_twice_ones_own_and_stand_on_both_sides_of_a_chunk():
    def lengths(own, *prices):
        return cost_units.lengths_drawn(Load(20, 10, own), prices)

    found = lengths(300, listed("chunk", 1.0, chunk_tokens=520))
    assert found == sorted(found)
    assert 300.0 in found and 10.0 in found and max(found) == 1000.0
    # A chunk of 520 has room for 500 tokens beside the query.
    assert {500.0, 500.0 + 1e-6} <= set(found)
    assert max(lengths(600)) == 1200.0
    plain = lengths(300, listed("token", 1.0, "tokens", chunk_tokens=520))
    assert not any(500 < each < 500.1 for each in plain)
    assert len(lengths(300, listed("full", 1.0, chunk_tokens=20))) == 41
