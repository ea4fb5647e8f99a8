"""What a result hangs on."""

from dataclasses import replace

import numpy as np
import pytest

from rankdash.value.assumptions import Assumptions
from rankdash.value.payoff import NO_CHANGE, Gain, MeasuredChange, Option, outcome
from rankdash.value.sensitivity import (
    GAIN,
    INPUTS,
    PRICE,
    input_value,
    net_grid,
    net_per_month,
    tornado,
    usual_ranges,
)

SCENARIO = Assumptions(monthly_cost=500, traffic_share=0.8)
OPTION = Option("x", 0.001, Gain(MeasuredChange(0.2, 0.1, 0.3, "proven")))


def test_the_widest_swing_comes_first_and_each_end_is_the_net_there():
    swings = tornado(OPTION, SCENARIO, usual_ranges(OPTION, SCENARIO, (0.1, 0.3)))
    assert [s.width for s in swings] == sorted((s.width for s in swings), reverse=True)
    by_name = {swing.name: swing for swing in swings}
    assert by_name[GAIN].low == 0.1
    dearer = replace(OPTION, cost_per_search=0.0015)
    assert by_name[PRICE].net_high == pytest.approx(outcome(dearer, SCENARIO).net_per_month.value)
    busier = replace(SCENARIO, searches_per_day=150_000)
    assert by_name["searches_per_day"].net_high == pytest.approx(net_per_month(OPTION, busier))
    # A share of 0.8 cannot rise by half.
    assert by_name["traffic_share"].high == 1.0


def test_the_system_as_it_is_nets_what_the_outcome_says():
    as_it_is = Option("none", 0.0, Gain(NO_CHANGE), free=True)
    assert net_per_month(as_it_is, SCENARIO) == 0 == outcome(as_it_is, SCENARIO).net_per_month.value
    net = outcome(OPTION, SCENARIO).net_per_month.value
    assert net_per_month(OPTION, SCENARIO) == pytest.approx(net)


def test_what_changes_nothing_has_no_bar():
    names = {s.name for s in tornado(OPTION, SCENARIO, usual_ranges(OPTION, SCENARIO, None))}
    # No LLM reads passages and no search becomes a ticket here.
    assert not names & {"llm_price", "passage_tokens", "ticket_cost", "hourly_wage", "setup_cost"}


def test_the_grid_holds_the_net_of_each_pair():
    grid = net_grid(OPTION, SCENARIO, (PRICE, [0.5, 1.0]), ("elasticity", [0.0, 1.0, 2.0]))
    assert grid.shape == (3, 2)
    assert grid[1, 1] == pytest.approx(net_per_month(OPTION, SCENARIO))
    assert (np.diff(grid, axis=0) > 0).all()
    assert (np.diff(grid, axis=1) < 0).all()


def test_a_loss_varies_from_the_larger_to_the_smaller_and_nothing_does_not_vary():
    option = Option("x", 0.0, Gain(MeasuredChange(-0.2)))
    ranges = usual_ranges(option, Assumptions(), None)
    assert ranges[GAIN] == pytest.approx((-0.3, -0.1))
    assert PRICE not in ranges and "monthly_cost" not in ranges
    assert ranges["value_per_search"] == pytest.approx((0.005, 0.015))


def test_a_swing_is_as_wide_whichever_end_is_higher():
    found = {each.name: each for each in tornado(OPTION, SCENARIO, {PRICE: (0.5, 1.5)})}
    assert found[PRICE].net_low > found[PRICE].net_high
    assert found[PRICE].width == pytest.approx(found[PRICE].net_low - found[PRICE].net_high)
    both = {PRICE: (0.5, 1.5), "searches_per_day": (99_999.0, 100_000.0)}
    assert [each.name for each in tornado(OPTION, SCENARIO, both)] == [PRICE, "searches_per_day"]


def test_what_is_not_known_has_no_net_and_is_no_input():
    bare = Option("x", None, None)
    assert (input_value(bare, SCENARIO, PRICE), input_value(bare, SCENARIO, GAIN)) == (None, None)
    assert input_value(OPTION, SCENARIO, PRICE) == 1.0
    assert input_value(OPTION, SCENARIO, "traffic_share") == 0.8
    for option in (bare, replace(OPTION, gain=None), replace(OPTION, cost_per_search=None)):
        assert net_per_month(option, SCENARIO) is None
        assert tornado(option, SCENARIO, {"elasticity": (0.5, 2.0), PRICE: (1.0, 2.0)}) == []
        assert np.isnan(net_grid(option, SCENARIO, (PRICE, [1.0]), (GAIN, [0.1]))).all()
    # What changes no amount is none of the inputs.
    assert "latency_target_ms" not in INPUTS and INPUTS[:2] == (GAIN, PRICE)


def test_a_range_stays_within_what_an_input_may_be():
    full = replace(SCENARIO, traffic_share=1.0, elasticity=8.0)
    ranges = usual_ranges(OPTION, full, None)
    assert ranges["traffic_share"] == (0.5, 1.0)
    assert ranges["elasticity"] == (4.0, 10.0)
    assert usual_ranges(OPTION, full, None, share=0.1)["elasticity"] == pytest.approx((7.2, 8.8))
