"""Sensitivity of a result to its inputs."""

from dataclasses import replace

from rankdash.core.value.assumptions import Assumptions
from rankdash.core.value.payoff import (
    NO_CHANGE,
    Gain,
    MeasuredChange,
    Option,
    least_value,
    value_needed,
)
from rankdash.core.value.prices import Machines
from rankdash.features.cost import sensitivity
from rankdash.features.cost.sensitivity import GAIN, PRICE
from tests.results import results, several

SCENARIO = Assumptions(monthly_cost=500, traffic_share=0.8)
OPTION = Option("x", 0.001, Gain(MeasuredChange(0.2, 0.1, 0.3, "proven")))


AS_IT_IS = Option("none", 0.0, Gain(NO_CHANGE), free=True)
LOSS, BARE = Option("x", 0.0, Gain(MeasuredChange(-0.2))), Option("x", None, None)
FULL = replace(SCENARIO, traffic_share=1.0, elasticity=8.0)
UNKNOWN = (BARE, replace(OPTION, gain=None), replace(OPTION, cost_per_search=None))
BOTH = {PRICE: (0.5, 1.5), "searches_per_day": (99_999.0, 100_000.0)}
ASKED = {"elasticity": (0.5, 2.0), PRICE: (1.0, 2.0)}
CASES = {
    "inputs": lambda: list(sensitivity.INPUTS),
    "as it is": lambda: sensitivity.net_per_month(AS_IT_IS, SCENARIO),
    "net": lambda: sensitivity.net_per_month(OPTION, SCENARIO),
    # Inputs without effect have no bar: here no LLM reads passages and no search becomes a ticket.
    "all bars": lambda: sensitivity.tornado(
        OPTION, SCENARIO, sensitivity.usual_ranges(OPTION, SCENARIO, None)
    ),
    "whole machines are in a price that varies": lambda: sensitivity.tornado(
        replace(OPTION, cost_per_search=0.0, machines=(Machines(146.0, 40_000.0),)), SCENARIO, ASKED
    ),
    "the net of each pair": lambda: sensitivity.net_grid(
        OPTION, SCENARIO, (PRICE, [0.5, 1.0]), ("elasticity", [0.0, 1.0, 2.0])
    ),
    "as wide whichever end is higher": lambda: sensitivity.tornado(OPTION, SCENARIO, BOTH),
    "hits stay as they are while the gain varies": lambda: sensitivity.tornado(
        replace(OPTION, gain=replace(OPTION.gain, hit=MeasuredChange(0.05))),
        replace(SCENARIO, ticket_share=0.1, ticket_cost=10.0), {GAIN: (0.1, 0.3)},
    ),
    "ranges of a loss, from the larger to the smaller": lambda: sensitivity.usual_ranges(
        LOSS, Assumptions(), None
    ),
    "ranges stay within what an input may be": lambda: sensitivity.usual_ranges(OPTION, FULL, None),
    "a tenth": lambda: sensitivity.usual_ranges(OPTION, FULL, None, share=0.1),
    **several(
        "the input {1}",
        lambda option, name: sensitivity.input_value(option, SCENARIO, name),
        ((OPTION, PRICE), (OPTION, "traffic_share"), (OPTION, GAIN)),
    ),
    # An upkeep of $500 is $0.000164 per search; 80 % of the traffic gains 20 %.
    **several(
        "by price of {0}",
        lambda _name, option, scenario: (
            sensitivity.net_by_price(option, scenario), value_needed(option, scenario),
            least_value(option, scenario, 2.0),
        ),
        (
            ("a gain", OPTION, SCENARIO), ("a loss", LOSS, SCENARIO), ("no gain", BARE, SCENARIO),
            ("no traffic", OPTION, replace(SCENARIO, searches_per_day=0.0)),
        ),
    ),
    "no price": lambda: [sensitivity.input_value(BARE, SCENARIO, name) for name in (PRICE, GAIN)],
    # An unknown value has no net.
    **{
        f"unknown {place}": lambda option=option: (
            sensitivity.net_per_month(option, SCENARIO),
            sensitivity.tornado(option, SCENARIO, ASKED),
            sensitivity.net_grid(option, SCENARIO, (PRICE, [1.0]), (GAIN, [0.1])),
        )
        for place, option in enumerate(UNKNOWN)
    },
}  # fmt: skip


def test_what_a_result_hangs_on(approved):
    approved("value/sensitivity", results(CASES))
