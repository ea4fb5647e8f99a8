"""Price, gain and scenario together: the published example, break-even, and negative results."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rankdash.core.value.assumptions import ASSUMPTIONS, DAYS_PER_MONTH, Assumptions
from rankdash.core.value.payoff import (
    NO_CHANGE,
    Gain,
    MeasuredChange,
    Option,
    Outcome,
    deflection,
    equal_recall_depth,
    latency_penalty,
    llm_saving,
    only_from_set,
    outcome,
    simple_roi,
    staff_time,
    value_per_search,
)
from rankdash.core.value.prices import Machines
from tests.results import results, several, shown

PUBLISHED = Assumptions(searches_per_day=100_000, value_per_search=0.01, elasticity=1.0)
RISE = (0.87 - 0.72) / 0.72


def changed(relative: float, half: float = 0.0, **hit: MeasuredChange) -> Gain:
    """Return a gain with an interval of ±`half`, and the proof that follows from it."""
    low, high = relative - half, relative + half
    proof = "proven" if low > 0 or high < 0 else "unproven"
    return Gain(MeasuredChange(relative, low, high, proof), **hit)


def option(relative: float = RISE, cost: float | None = 0.001, **more: object) -> Option:
    return Option("MiniLM", cost, changed(relative, 0.1), **more)


def measured(*change: object, hit: MeasuredChange = NO_CHANGE) -> Gain:
    return Gain(MeasuredChange(*change), hit)


def came(gain: Gain | None, cost: float | None = 0.001, extra_ms=None, after=None, machines=(),
         free=False, of: Assumptions | None = None, **assumed: float) -> Outcome:  # fmt: skip
    chosen = Option("x", cost, gain, extra_ms, after, free, machines)
    return outcome(chosen, replace(of or PUBLISHED, **assumed))


def told(found: object) -> str:
    """Return the figures of an outcome, each with the ends of its interval or its reason."""
    if not isinstance(found, Outcome):
        return shown(found)
    figures = {each.name: getattr(found, each.name) for each in fields(found)}
    said = [f"{name}={figures.pop(name)}" for name in FLAGS]
    amounts = []
    for name, amount in figures.items():
        ends = [shown(end) for end in (amount.low, amount.high) if end is not None]
        own = f" ({' … '.join(ends)})" if ends else ""
        amounts.append(f"{name}: {amount.reason or shown(amount.value)}{own}")
    return "\n  ".join([", ".join(said), "; ".join(amounts[:6]), "; ".join(amounts[6:])])


FLAGS = ("brings", "proven", "pays", "pays_without_gain")
TICKETS = Assumptions(searches_per_day=1000, value_per_search=0.0, ticket_share=0.1, ticket_cost=10)
SURE, UNSURE = MeasuredChange(0.3, 0.2, 0.4, "proven"), MeasuredChange(0.1, -0.1, 0.3, "unproven")
# A gain of a tenth brings 0.001 per search, which is its cost.
EVEN = measured(0.1, 0.1, 0.1, "proven")
DOUBLED = measured(1.0, 1.0, 1.0, "proven")
MACHINES = (Machines(146.0, 1000.0),)
STILL = Gain(NO_CHANGE)
TINY = 2.2e-311
# The tokens that an LLM saves, 4 × 400 at 0.625 per million, cost as much as the search.
READS = {"passages": 10.0, "llm_price": 0.625}
MONTH = DAYS_PER_MONTH


def of_hits(value: float, half: float, proof: str, cost: float = 0.05) -> Outcome:
    """Return an outcome in which each additional search with a hit saves 1."""
    change = MeasuredChange(value, value - half, value + half, proof)
    return came(Gain(NO_CHANGE, change), cost, of=TICKETS)


def within(cost: float, gain: float, **assumed: float) -> Outcome:
    return came(changed(gain), cost, searches_per_day=1000.0, **assumed)


CASES = {
    # 20.8333 % better brings 0.0020833 per search; the reranker pays off at 0.48 of it or more.
    "the published example": lambda: outcome(option(), PUBLISHED),
    "a one-off cost is paid back in two months": lambda: outcome(
        option(), replace(PUBLISHED, setup_cost=6_590.2777)
    ),
    "a gain that may be none may never break even": lambda: came(changed(0.02, 0.05)),
    "a loss": lambda: outcome(option(-0.3), replace(PUBLISHED, setup_cost=1000)),
    "a loss beyond measure": lambda: came(changed(-0.2, 0.1), 1e-9, value_per_search=1.0),
    "free": lambda: outcome(option(cost=0.0), PUBLISHED),
    "what pays whatever the input has no interval": lambda: came(changed(0.2, 0.1), 0.0),
    "no traffic": lambda: outcome(option(), replace(PUBLISHED, searches_per_day=0)),
    "no traffic and a setup": lambda: came(EVEN, 0.0, setup_cost=1.0, searches_per_day=0.0),
    **{
        f"price set: {price}, value set: {value}": lambda price=price, value=value: only_from_set(
            outcome(option(), PUBLISHED), price=price, value=value
        )
        for price in (True, False) for value in (True, False)
    },
    "an unknown cost": lambda: came(EVEN, None, setup_cost=1.0),
    "an unknown gain": lambda: came(None),
    "a search is worth nothing": lambda: outcome(
        option(), replace(PUBLISHED, value_per_search=0.0)
    ),
    "as it is": lambda: came(STILL, 0.0, free=True, monthly_cost=500, setup_cost=9),
    **several(
        "{1} from {0}", lambda low, proof: came(measured(low + 0.1, low, low + 0.2, proof)),
        ((0.101, "proven"), (0.1, "proven"), (0.099, "proven"),
        (0.101, "unproven"), (0.101, "same")),
    ),
    **{
        f"{proof} hits, {half} to either side, cost 0.05": lambda half=half, proof=proof: of_hits(
            0.1, half, proof
        )
        for half in (0.049, 0.051) for proof in ("proven", "unproven")
    },
    # 5 passages of 400 tokens save 0.002 per search; 10 % less quality costs 0.001, as the search.
    **several(
        "a saving at {} against a likely loss",
        lambda price: came(changed(0.0, 0.1), after=5, passages=10.0, llm_price=price),
        (1.01, 0.99),
    ),
    # An LLM never gets more passages than it reads now.
    **{
        f"{before} passages, then {after}, {share} of all": lambda b=before, a=after, s=share: came(
            STILL, 0.0, after=a, passages=b, traffic_share=s, value_per_search=0.0, llm_price=2.5
        )
        for before, after in ((10.0, 3), (10.0, 10), (10.0, 25), (0.0, 3), (10.0, None))
        for share in (1.0, 0.25)
    },
    **several(
        "{} ms longer",
        lambda ms: came(STILL, 0.0, extra_ms=ms, loss_per_100_ms=0.01, traffic_share=0.25),
        (200.0, 100.0, 0.0, -5.0, None),
    ),
    "an LLM's saving is the cost": lambda: came(EVEN, after=6, **READS),
    "gain and cost are equal": lambda: came(EVEN, setup_cost=1.0),
    "half the cost": lambda: came(EVEN, 0.0005),
    "half the cost and an upkeep": lambda: came(EVEN, 0.0005, monthly_cost=0.05 * MONTH),
    "an upkeep as high as the gain": lambda: came(EVEN, monthly_cost=100.0 * MONTH),
    "an upkeep a little lower": lambda: came(EVEN, monthly_cost=99.0 * MONTH),
    **several(
        "needs no proof: {}",
        lambda name, of, gain, share: came(gain, of=replace(of, traffic_share=share)),
        (
            ("hits, where none counts", PUBLISHED, Gain(SURE, UNSURE), 1.0),
            ("quality, where none counts", TICKETS, Gain(UNSURE, SURE), 1.0),
            ("not so quality", PUBLISHED, Gain(UNSURE, SURE), 1.0),
            ("not so hits", TICKETS, Gain(SURE, UNSURE), 1.0),
            ("of no search", PUBLISHED, Gain(UNSURE, SURE), 0.0),
            ("of no ticket", TICKETS, Gain(SURE, UNSURE), 0.0),
        ),
    ),
    "quality that brings nothing needs no proof": lambda: came(Gain(UNSURE), elasticity=0.0),
    "too few queries": lambda: came(measured(0.5)),
    "hits without an interval": lambda: came(Gain(SURE, MeasuredChange(0.1))),
    "that count": lambda: came(Gain(SURE, MeasuredChange(0.1)), ticket_share=0.1),
    **several(
        "break-even of {} worth {}",
        lambda relative, worth: came(changed(relative), value_per_search=worth),
        ((0.0, 0.01), (-0.1, 0.01), (0.1, 0.0), (0.1, 0.01)),
    ),
    # Values around the limits: a million percent, a hundred years, all searches of the world.
    "a million percent": lambda: within(1.0, 1.01e-4),
    "more": lambda: within(1.0, 0.99e-4),
    "a hundred years": lambda: within(0.0, 1.01e-2, setup_cost=3650),
    **{
        f"paid back in {months} months": lambda months=months: came(
            measured(0.5, 0.4, 0.6, "proven"), 0.0, setup_cost=500 * MONTH * months
        )
        for months in (1200.0, 1200.1)
    },
    "longer": lambda: within(0.0, 0.99e-2, setup_cost=3650),
    "all searches": lambda: within(0.0, 1.01e-2, monthly_cost=3.65e7 / 1.2),
    "more than all": lambda: within(0.0, 0.99e-2, monthly_cost=3.65e7 / 1.2),
    # A gain of 100 % brings 0.01 per search.
    **{
        f"a return at a cost of {cost:g}": lambda cost=cost: came(changed(1.0), cost)
        for cost in (0.001, 0.01 / 11 * 1.001, 0.01 / 11 * 0.999, 0.01, 0.010001)
    },
    "the ends of a return are words": lambda: came(measured(0.2, -0.1, 3.0, "unproven")),
    **several(
        "a machine and {:g} searches",
        lambda searches: came(changed(0.2), 0.0, machines=MACHINES, searches_per_day=searches),
        (0.0, 100.0, 1000.0),
    ),
    # At the upper end of the hits the costs are covered already.
    "an end at which it pays whatever quality brings": lambda: came(
        measured(0.5, 0.4, 0.6, "proven", hit=MeasuredChange(0.05, 0.0, 0.2, "proven")), 0.1,
        of=TICKETS, value_per_search=1.0,
    ),
    **{
        f"{net} is left of a month": lambda net=net: came(
            DOUBLED, 0.0, searches_per_day=10.0, value_per_search=1.0,
            monthly_cost=10 * MONTH - net,
        )
        for net in (0.5, 0.0, -0.5)
    },
    "too large an elasticity": lambda: came(changed(TINY), 1.0),
    "too many searches": lambda: came(changed(TINY), 0.0, setup_cost=1e4, monthly_cost=1e4),
    "too many months": lambda: came(changed(TINY), 0.0, setup_cost=1e4, searches_per_day=1.0),
    "too large a return": lambda: outcome(option(cost=5e-324), PUBLISHED),
    "tickets": lambda: deflection(0.1, 0.05, 20.0),
    "time of staff": lambda: staff_time(0.1, 90.0, 40.0),
    **{f"{ms} ms": lambda ms=ms: latency_penalty(ms, 0.01, 2.0) for ms in (250.0, -250.0)},
    **{
        f"an LLM reads {after} of {before} at {price}": lambda each=(before, after, 400, price): (
            1000 * llm_saving(*each)
        )
        for before, after, price in ((10, 3, 2.50), (10, 3, 0.15), (3, 10, 2.50))
    },
    # The same recall at a smaller depth, except for rounding.
    **several(
        "recall {1} by depth, {0}", equal_recall_depth,
        (
            ({1: 0.5, 3: 0.71, 5: 0.8}, 0.7), ({1: 0.5, 3: 0.6}, 0.7), ({}, 0.7),
            ({3: 0.3}, 0.1 + 0.2), ({1: 0.3, 2: 0.6 - 5e-13, 3: 0.7}, 0.6),
        ),
    ),
    # A tenth of a ticket of 10, and 90 seconds, a fortieth of an hour, of 40.
    "a search that shows something": lambda: value_per_search(
        Option("x", 0.0, Gain(NO_CHANGE, MeasuredChange(0.5, 0.4, 0.6, "proven"))),
        replace(PUBLISHED, ticket_share=0.1, ticket_cost=10.0, seconds_saved=90.0,
                hourly_wage=40.0),
    ),
    "nothing measured": lambda: value_per_search(Option("x", 0.0, None), PUBLISHED),
    **{
        f"{proof} {value} from {low} may be counted on": lambda value=value, low=low, proof=proof: (
            (change := MeasuredChange(value, low, None, proof)).sure, change.conclusive
        )
        for proof, value, low in (
            ("proven", 0.2, 0.1), ("proven", -0.2, -0.3), ("unproven", 0.2, 0.1),
            ("unproven", 0.2, -0.1), ("same", 0.0, 0.0), ("too_few", 0.2, None),
        )
    },
    **{
        f"the {end} end, {name}": lambda end=end, gain=gain: gain.at(end)
        for name, gain in {
            "both": Gain(UNSURE, SURE, 40), "hits without": Gain(UNSURE, MeasuredChange(0.05), 40),
            "without": Gain(MeasuredChange(0.2), SURE, 40),
        }.items()
        for end in ("low", "high")
    },
    "the published example to the cent": lambda: simple_roi(
        0.72, 0.87, searches_per_day=100_000, value_per_search=0.01, cost_per_search=0.001
    ),
    **several(
        "published: {} → {} at {:g}",
        lambda before, after, cost: simple_roi(
            before, after, searches_per_day=1.0, value_per_search=1.0, cost_per_search=cost
        ),
        (
            (0.72, 0.87, 0.1), (0.5, 0.75, 0.25), (0.0, 0.5, 1.0), (0.5, 0.6, 0.0),
            (1e-320, 0.5, 1.0), (0.5, 0.75, 1e-320), (5e-324, 0.9, 1.0), (0.5, 0.9, 5e-324),
        ),
    ),
    **{
        f"assumed: {wrong}": lambda wrong=wrong: Assumptions.from_dict(wrong).searches_per_day
        for wrong in ({"traffic_share": 1.5}, {"searches_per_day": -1}, {"typo": 1},
                      {"llm_price": float("nan")}, {"searches_per_day": 1e10},
                      {"searches_per_day": 1.001e10})
    },
    **{
        f"{name} at a rate of {rate}": lambda name=name, rate=rate: (
            (each := BY_NAME[name]).money, each.default_at(rate)
        )
        for name in ("value_per_search", "llm_price", "passage_tokens") for rate in (1.0, 7.0, None)
    },
    "defaults": lambda: {name: (each.default, each.most) for name, each in BY_NAME.items()},
    "nobody set": lambda: {each.name for each in Assumptions().untouched(())},
    "only the elasticity": lambda: {each.name for each in Assumptions().untouched(["elasticity"])},
    **{
        f"{switch} is set": lambda switch=switch: {
            each.name for each in replace(Assumptions(), **{switch: 1.0}).untouched(())
        }
        for switch in ("passages", "ticket_share", "seconds_saved", "loss_per_100_ms")
    },
}  # fmt: skip
BY_NAME = {each.name: each for each in ASSUMPTIONS}


def test_what_an_option_comes_to_with_its_interval_or_the_reason_why_there_is_none(approved):
    approved("value/payoff", results(CASES, told))


gains = st.floats(0.001, 2.0)


@given(gains, st.floats(1e-4, 1.0), st.floats(0, 0.99), st.floats(0.05, 1.0))
def test_the_return_at_break_even_is_zero(gain: float, part: float, upkeep: float, share: float):
    scenario = replace(PUBLISHED, traffic_share=share)
    # Costs are a part of the value of the gain at the highest elasticity, 10.
    most = outcome(Option("x", 0.0, changed(gain)), replace(scenario, elasticity=10.0))
    a_month = part * most.value_per_month.value
    cost = (1 - upkeep) * a_month / (scenario.searches_per_day * DAYS_PER_MONTH)
    scenario = replace(scenario, monthly_cost=upkeep * a_month)
    needed = outcome(Option("x", cost, changed(gain)), scenario).break_even_elasticity.value
    assert needed == pytest.approx(10 * part)
    at = outcome(Option("x", cost, changed(gain)), replace(scenario, elasticity=min(needed, 10.0)))
    # The rounding error of a sum is not a loss.
    assert at.roi.value == pytest.approx(0, abs=1e-9)
    assert at.break_even_price.value == pytest.approx(cost * 1000, rel=1e-6)


anything = st.builds(
    Assumptions,
    **{
        each.name: st.floats(max(each.least, -5), min(each.most, 1e6)) | st.just(each.least)
        for each in ASSUMPTIONS
    },
)


@given(anything, st.floats(-1, 3), st.none() | st.floats(0, 10), st.none() | st.floats(-50, 5000))
def test_nothing_is_ever_nan_infinite_or_a_negative_payback(
    scenario: Assumptions, gain: float, cost: float | None, extra: float | None
):
    came = outcome(Option("x", cost, changed(gain, 0.2), extra_ms=extra), scenario)
    for each in fields(Outcome):
        if each.name in ("brings", "proven", "pays", "pays_without_gain"):
            continue
        found = getattr(came, each.name)
        assert (found.value is None) == (found.reason is not None)
        for number in (found.value, found.low, found.high):
            assert number in (None, "never", "always", "loses", "tenfold") or np.isfinite(number)
            if each.name == "roi" and isinstance(number, float):
                assert 0 <= number <= 10 + 1e-9
        if each.name in ("payback_months", "break_even_searches", "break_even_elasticity"):
            assert all(
                isinstance(x, str | None) or x >= 0 for x in (found.value, found.low, found.high)
            )


machines = st.just(()) | st.builds(Machines, st.just(146.0), st.floats(10, 1e6)).map(lambda m: (m,))


@given(gains, st.floats(1, 5000), machines, st.floats(0, 0.001))
def test_from_the_break_even_traffic_on_it_pays_and_below_it_does_not(gain, upkeep, kept, cost):
    scenario = replace(PUBLISHED, monthly_cost=upkeep)
    measured = Option("x", cost, changed(gain), machines=kept)
    found = outcome(measured, scenario).break_even_searches
    assume(found.value is not None and found.value < 1e9)
    for factor in (1 + 1e-6, 1.5, 7.3):
        at = replace(scenario, searches_per_day=found.value * factor)
        assert outcome(measured, at).net_per_month.value >= -1e-6 * upkeep
    below = replace(scenario, searches_per_day=found.value * (1 - 1e-6))
    assert outcome(measured, below).net_per_month.value <= 1e-5 * upkeep


@given(gains, st.floats(1e-6, 0.01), st.floats(0.01, 1))
def test_at_the_break_even_worth_of_quality_it_nets_nothing(gain, cost, share):
    """1 % more quality in 1,000 searches has this value: 10 × the value of one search."""
    scenario = replace(PUBLISHED, traffic_share=share)
    worth = outcome(Option("x", cost, changed(gain)), scenario).break_even_worth.value
    at = replace(scenario, value_per_search=worth / 10)
    spent = outcome(Option("x", cost, changed(gain)), at)
    assert spent.net_per_month.value == pytest.approx(0, abs=1e-9 * spent.cost_per_month.value)


def test_assumptions_are_described_within_their_sliders_and_survive_being_written_down():
    assert set(BY_NAME) == {each.name for each in fields(Assumptions)}
    assert all(each.low <= each.default <= each.high for each in ASSUMPTIONS)
    scenario = Assumptions(searches_per_day=7, elasticity=0.3)
    assert Assumptions.from_dict(scenario.as_dict()) == scenario
