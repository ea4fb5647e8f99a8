"""The tables and the sliders of the page on cost: what stands where, and at which numbers."""

import math
import re
from datetime import date

import pytest

from rankdash.ui.cost import cost_cards, cost_inputs, cost_sensitivity, cost_units
from rankdash.value.assumptions import ASSUMPTIONS
from rankdash.value.billing import Load, Price
from rankdash.value.price_list import ListedPrice
from rankdash.value.sensitivity import GAIN, PRICE

BY_NAME = {each.name: each for each in ASSUMPTIONS}


def listed(key: str, amount: float, unit: str = "search", **more: float) -> ListedPrice:
    return ListedPrice(key, key, "", Price(amount, unit, **more), "a test", date(2026, 11, 1))


# Options side by side.


def test_one_column_is_set_off_and_some_rows_are_strong():
    table = cost_cards.side_by_side(
        "", ["a", "b"], [(("net", ""), [("1", "x"), ("2", "")]), (("cost", ""), [("3", "")] * 2)],
        in_focus=1, strong=("net",),
    )  # fmt: skip
    rows = table.split("<tr>")[1:]
    assert ["rd-focus" in cell for cell in rows[0].split("<th")[1:]] == [False, False, True]
    first, second = (row.split("<td")[1:] for row in rows[1:])
    assert ["rd-focus" in cell for cell in first] == [False, False, True]
    assert ["rd-strong" in cell for cell in first] == [False, True, True]
    assert not any("rd-strong" in cell for cell in second)
    assert table.count("<small") == 1
    without = cost_cards.side_by_side("", ["a"], [(("net", ""), [("1", "")])])
    assert "rd-focus'" not in without.partition("</style>")[2]


@pytest.mark.parametrize(
    ("value", "whole"),
    [("1 … 2", True), ("never", False), ("1" * 22, True), ("1" * 23, False)],
)
def test_a_number_is_never_broken_over_two_lines_and_a_sentence_is(value, whole):
    table = cost_cards.side_by_side("", ["a"], [(("net", ""), [(value, "")])])
    assert ("class='rd-whole'" in table.partition("</style>")[2]) is whole


@pytest.mark.parametrize(("columns", "whole"), [(4, True), (5, False)])
def test_intervals_and_prices_wrap_where_there_are_many_columns(columns, whole):
    heads = [str(place) for place in range(columns)]
    body = cost_cards.side_by_side("", heads, [(("", ""), [("$1 / 1,000", "1 … 2")] * columns)])
    cells = body.partition("</style>")[2].split("<td")[2:]
    assert all(("<span class='rd-whole'>" in cell) is whole for cell in cells)
    assert all(("<small class='rd-whole'>" in cell) is whole for cell in cells)


@pytest.mark.parametrize(
    ("columns", "said", "least"), [(2, "1", 17.4), (6, "1", 38.6), (2, "1" * 20, 26.2)]
)
def test_a_table_that_is_wider_than_its_place_says_that_it_scrolls(columns, said, least):
    heads = [str(place) for place in range(columns)]
    table = cost_cards.side_by_side("", heads, [(("", ""), [(said, "")] * columns)])
    [(limit, named)] = re.findall(
        r"@container \(max-width: ([\d.]+)rem\) \{ \.rd-figures p\.(\S+) ", table
    )
    assert float(limit) == pytest.approx(least, abs=0.11)
    assert f"<p class='{named}'>Scroll sideways to see all columns →</p>" in table
    assert f"<table style='min-width: {limit}rem'>" in table


def test_a_chinese_sentence_with_a_number_in_it_wraps():
    body = cost_cards.side_by_side(
        "", ["a"], [(("", ""), [("每提升 1 个百分点的价值还不知道", "")])]
    )
    assert "<span class='rd-whole'>" not in body


def test_nothing_in_a_table_is_markup():
    table = cost_cards.side_by_side("<b>", ["<i>"], [(("<u>", "<s>"), [("<p>", "<q>")])])
    assert not set(re.findall(r"<(b|i|u|s|p|q)>", table))


# The sliders.


@pytest.mark.parametrize(
    ("step", "written"), [(10, "%.0f"), (1, "%.0f"), (0.5, "%.1f"), (0.05, "%.2f"), (0.001, "%.3f")]
)
def test_a_slider_has_the_decimals_of_its_step(step, written):
    assert cost_inputs._written(step) == written


def test_empty_cells_of_the_price_table_are_left_out_and_dates_are_dates():
    row = {"key": "own", "amount": 0.0, "model": None, "chunk_tokens": math.nan,
           "as_of": date(2026, 11, 1), "utilisation": 0.5}  # fmt: skip
    assert cost_inputs._entry(row) == {
        "key": "own", "amount": 0.0, "as_of": "2026-11-01", "utilisation": 0.5
    }  # fmt: skip


# Which unit is cheaper.


def test_lengths_go_to_twice_ones_own_and_stand_on_both_sides_of_a_chunk():
    load = Load(20, 10, 300)
    found = cost_units._lengths(load, [listed("chunk", 1.0, chunk_tokens=520)])
    assert found == sorted(found)
    assert 300.0 in found and 10.0 in found and max(found) == 1000.0
    # A chunk of 520 has room for 500 tokens beside the query.
    assert {500.0, 500.0 + 1e-6} <= set(found)
    assert max(cost_units._lengths(Load(20, 10, 600), [])) == 1200.0
    plain = cost_units._lengths(load, [listed("token", 1.0, "tokens", chunk_tokens=520)])
    assert not any(500 < each < 500.1 for each in plain)
    assert len(cost_units._lengths(load, [listed("full", 1.0, chunk_tokens=20)])) == 41


def test_prices_that_cost_the_same_everywhere_are_one_line():
    load = Load(20, 10, 300)
    one, same, other = listed("one", 1.0), listed("same", 1.0), listed("other", 1.0, "tokens")
    costs, names = cost_units._costs(load, [one, other, same], [100.0, 200.0])
    # Ten documents of 100 or 200 tokens and the query of 20 with each, for $1 a million.
    assert list(costs) == ["one", "other"]
    assert costs["one"] == pytest.approx([1.0, 1.0])
    assert costs["other"] == pytest.approx([1.2, 2.2])
    assert names["one"].startswith("one = same")
    assert " = " not in names["other"]


# What the answer hangs on.


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(999.4, 999.0), (999.6, 1000.0), (1000.4, 1000.0), (1234.6, 1235.0), (0.12345, 0.123)],
)
def test_an_end_of_a_swing_has_three_digits_and_is_whole_from_a_thousand_on(value, rounded):
    assert cost_sensitivity._rounded(value) == rounded


def test_an_end_of_a_swing_is_written_by_its_unit(session):
    assert cost_sensitivity._in_words(GAIN, 0.125) == "12.5%"
    assert cost_sensitivity._in_words("traffic_share", 0.5) == "50.0%"
    assert cost_sensitivity._in_words(PRICE, 2.0) == cost_sensitivity._in_words("setup_cost", 2.0)
    assert "$2" in cost_sensitivity._in_words(PRICE, 2.0)
    assert cost_sensitivity._in_words("latency_target_ms", 500.0) == "500 ms"
