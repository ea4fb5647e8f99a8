"""Price, gain and scenario put together: the published example, break-even, and saying no."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rankdash.errors import DataError
from rankdash.value.assumptions import ASSUMPTIONS, DAYS_PER_MONTH, Assumptions
from rankdash.value.benefit import (
    deflection,
    equal_recall_depth,
    latency_penalty,
    llm_saving,
    simple_roi,
    staff_time,
)
from rankdash.value.billing import Machines
from rankdash.value.payoff import (
    NO_CHANGE,
    Amount,
    Gain,
    MeasuredChange,
    Option,
    Outcome,
    only_from_set,
    outcome,
    value_per_search,
)

PUBLISHED = Assumptions(searches_per_day=100_000, value_per_search=0.01, elasticity=1.0)
RISE = (0.87 - 0.72) / 0.72


def option(relative: float = RISE, cost: float | None = 0.001, **more: object) -> Option:
    return Option("MiniLM", cost, changed(relative, 0.1), **more)


def changed(relative: float, half: float = 0.0, **hit: MeasuredChange) -> Gain:
    """A gain with an interval of so much to either side, and the proof that it makes."""
    low, high = relative - half, relative + half
    proof = "proven" if low > 0 or high < 0 else "unproven"
    return Gain(MeasuredChange(relative, low, high, proof), **hit)


def test_the_published_example_to_the_cent():
    found = simple_roi(
        0.72, 0.87, searches_per_day=100_000, value_per_search=0.01, cost_per_search=0.001
    )
    assert round(found.improvement * 100, 4) == 20.8333
    assert round(found.gain_per_day, 2) == 208.33
    assert found.cost_per_day == 100
    assert round(found.roi * 100, 2) == 108.33


def test_a_scenario_of_the_published_example_says_the_same():
    came = outcome(option(), PUBLISHED)
    assert came.value_per_month.value == pytest.approx(208.3333333 * DAYS_PER_MONTH)
    assert came.cost_per_month.value == pytest.approx(100 * DAYS_PER_MONTH)
    assert came.roi.value == pytest.approx(1.083333333)
    assert came.cost_per_thousand.value == pytest.approx(1.0)
    # 20.8333 % better brings 0.0020833 a search; the reranker pays from 0.48 of that on.
    assert came.break_even_elasticity.value == pytest.approx(0.48)
    assert came.break_even_price.value == pytest.approx(2.0833333)
    assert came.proven is True


def test_the_worked_saving_of_an_llm_is_large_or_small_by_its_price():
    assert 1000 * llm_saving(10, 3, 400, 2.50) == pytest.approx(7.00)
    assert 1000 * llm_saving(10, 3, 400, 0.15) == pytest.approx(0.42)
    assert llm_saving(3, 10, 400, 2.50) < 0


def test_no_saving_is_claimed_where_no_depth_surely_holds_the_recall():
    assert equal_recall_depth({1: 0.5, 3: 0.71, 5: 0.8}, 0.7) == 3
    assert equal_recall_depth({1: 0.5, 3: 0.6}, 0.7) is None
    assert equal_recall_depth({}, 0.7) is None
    assert equal_recall_depth({3: 0.3}, 0.1 + 0.2) == 3


def test_tickets_and_time_come_from_searches_that_now_show_something():
    assert deflection(0.1, 0.05, 20.0) == pytest.approx(0.1)
    assert staff_time(0.1, 90.0, 40.0) == pytest.approx(0.1)
    assert latency_penalty(250.0, 0.01, 2.0) == pytest.approx(0.05)
    assert latency_penalty(-250.0, 0.01, 2.0) == 0.0


gains = st.floats(0.001, 2.0)


@given(gains, st.floats(1e-4, 1.0), st.floats(0, 0.99), st.floats(0.05, 1.0))
def test_the_return_at_break_even_is_zero(gain: float, part: float, upkeep: float, share: float):
    scenario = replace(PUBLISHED, traffic_share=share)
    # Costs are a part of what the gain brings at the highest elasticity, 10.
    most = outcome(Option("x", 0.0, changed(gain)), replace(scenario, elasticity=10.0))
    a_month = part * most.value_per_month.value
    cost = (1 - upkeep) * a_month / (scenario.searches_per_day * DAYS_PER_MONTH)
    scenario = replace(scenario, monthly_cost=upkeep * a_month)
    needed = outcome(Option("x", cost, changed(gain)), scenario).break_even_elasticity.value
    assert needed == pytest.approx(10 * part)
    at = outcome(Option("x", cost, changed(gain)), replace(scenario, elasticity=min(needed, 10.0)))
    # What is lost in the last digit of a sum is no loss.
    assert at.roi.value == pytest.approx(0, abs=1e-9)
    assert at.break_even_price.value == pytest.approx(cost * 1000, rel=1e-6)


@given(gains, st.floats(1e-6, 0.001), st.floats(1, 5000))
def test_at_the_break_even_traffic_nothing_is_won_or_lost(gain: float, cost: float, upkeep: float):
    scenario = replace(PUBLISHED, monthly_cost=upkeep)
    found = outcome(Option("x", cost, changed(gain)), scenario).break_even_searches
    assume(found.value is not None)
    at = replace(scenario, searches_per_day=found.value)
    assert outcome(Option("x", cost, changed(gain)), at).net_per_month.value == pytest.approx(
        0, abs=1e-6 * upkeep
    )


def test_intervals_are_the_formula_at_the_ends_of_the_gain_and_hold_the_price_fixed():
    came = outcome(option(), PUBLISHED)
    low, high = ((RISE + by) * 1000 * DAYS_PER_MONTH for by in (-0.1, 0.1))
    assert (came.value_per_month.low, came.value_per_month.high) == pytest.approx((low, high))
    assert came.roi.low == pytest.approx(low / (100 * DAYS_PER_MONTH) - 1)
    # The higher the gain, the less each percent of it has to bring.
    even = came.break_even_elasticity
    assert (even.low, even.high) == pytest.approx((0.1 / (RISE + 0.1), 0.1 / (RISE - 0.1)))


def test_a_gain_that_may_be_nothing_may_never_break_even():
    came = outcome(Option("x", 0.001, changed(0.02, 0.05)), PUBLISHED)
    assert came.proven is False
    assert came.break_even_elasticity == Amount(5.0, pytest.approx(0.1 / 0.07), "never")
    # No end is cut at 0: what it may lose is said, and that no price would do.
    assert came.value_per_month.low == pytest.approx(-0.03 * 1000 * DAYS_PER_MONTH)
    assert came.break_even_price.low == "never"


def test_a_loss_says_no():
    came = outcome(option(-0.3), replace(PUBLISHED, setup_cost=1000))
    assert came.proven is True and came.pays is False
    assert came.value_per_month.value < 0
    assert came.payback_months == Amount(reason="never")
    assert came.break_even_elasticity == Amount(reason="no_gain")
    assert came.break_even_price == Amount(reason="never")
    assert came.break_even_searches == Amount(reason="never")


def test_what_does_not_exist_has_a_reason():
    free = outcome(option(cost=0.0), PUBLISHED)
    assert free.roi.reason == "no_cost"
    assert free.break_even_elasticity.reason == "always"
    quiet = outcome(option(), replace(PUBLISHED, searches_per_day=0))
    assert (quiet.roi.reason, quiet.break_even_elasticity.reason) == ("no_traffic", "no_traffic")
    assert outcome(option(cost=None), PUBLISHED).roi.reason == "unknown_cost"
    assert outcome(Option("x", 0.001, None), PUBLISHED).roi.reason == "unknown_gain"
    worthless = outcome(option(), replace(PUBLISHED, value_per_search=0.0))
    assert worthless.break_even_elasticity.reason == "no_value"
    assert outcome(option(), PUBLISHED).payback_months.reason == "no_setup"


def test_the_one_off_cost_is_paid_back_by_what_a_month_nets():
    came = outcome(option(), replace(PUBLISHED, setup_cost=6_590.2777))
    assert came.payback_months.value == pytest.approx(2.0, rel=1e-5)
    assert came.payback_months.low < 2.0 < came.payback_months.high


def test_leaving_it_as_it_is_costs_nothing_and_brings_nothing():
    as_it_is = Option("none", 0.0, Gain(NO_CHANGE), free=True)
    came = outcome(as_it_is, replace(PUBLISHED, monthly_cost=500, setup_cost=9))
    assert (came.cost_per_month.value, came.net_per_month.value) == (0, 0)
    assert came.payback_months.reason == "no_setup"


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


def test_what_is_too_large_for_a_number_has_a_reason():
    tiny = 2.2e-311
    came = outcome(Option("x", 1.0, changed(tiny)), PUBLISHED)
    assert came.break_even_elasticity == Amount(reason="never")
    scenario = replace(PUBLISHED, setup_cost=1e4, monthly_cost=1e4)
    came = outcome(Option("x", 0.0, changed(tiny)), scenario)
    assert came.break_even_searches == Amount(reason="never")
    scenario = replace(scenario, monthly_cost=0.0, searches_per_day=1.0)
    came = outcome(Option("x", 0.0, changed(tiny)), scenario)
    assert came.payback_months == Amount(reason="never")
    assert outcome(option(cost=5e-324), PUBLISHED).roi == Amount(reason="tenfold")
    for baseline, cost in ((5e-324, 1.0), (0.5, 5e-324)):
        with pytest.raises(DataError):
            simple_roi(baseline, 0.9, searches_per_day=1, value_per_search=1, cost_per_search=cost)


@pytest.mark.parametrize(
    "wrong",
    [{"traffic_share": 1.5}, {"searches_per_day": -1}, {"llm_price": float("nan")}, {"typo": 1}],
)
def test_an_impossible_scenario_is_refused_by_name(wrong: dict[str, float]):
    with pytest.raises(DataError):
        Assumptions.from_dict(wrong)


def test_a_scenario_survives_being_written_down():
    scenario = Assumptions(searches_per_day=7, elasticity=0.3)
    assert Assumptions.from_dict(scenario.as_dict()) == scenario


def test_every_assumption_is_described_and_within_its_slider():
    assert {each.name for each in ASSUMPTIONS} == {each.name for each in fields(Assumptions)}
    for each in ASSUMPTIONS:
        assert each.low <= each.default <= each.high


TICKETS = Assumptions(searches_per_day=1000, value_per_search=0.0, ticket_share=0.1, ticket_cost=10)


def shows(value: float, half: float, proof: str) -> Gain:
    """No change of the metric, and one of the hit rate."""
    return Gain(NO_CHANGE, MeasuredChange(value, value - half, value + half, proof))


@pytest.mark.parametrize(
    ("low", "proof", "pays"),
    [
        (0.101, "proven", True),
        (0.1, "proven", False),  # It costs what it brings.
        (0.099, "proven", False),
        (0.101, "unproven", False),  # The corrected p is too large.
        (0.101, "same", False),
    ],
)
def test_it_pays_only_where_the_proven_lower_end_is_above_the_cost(low, proof, pays):
    measured = Gain(MeasuredChange(low + 0.1, low, low + 0.2, proof))
    came = outcome(Option("x", 0.001, measured), PUBLISHED)
    assert came.pays is pays
    assert came.proven is (proof != "unproven")
    # The interval is the verdict's, whatever its p.
    assert came.value_per_month.low == pytest.approx(low * 1000 * DAYS_PER_MONTH)


@pytest.mark.parametrize(("half", "covers"), [(0.049, True), (0.051, False)])
def test_without_any_gain_it_pays_only_where_the_interval_covers_the_cost(half, covers):
    # Each search that now shows something saves 1; a search costs 0.05.
    came = outcome(Option("x", 0.05, shows(0.1, half, "proven")), TICKETS)
    assert came.break_even_elasticity.reason == "always"
    assert came.pays_without_gain is covers
    unproven = outcome(Option("x", 0.05, shows(0.1, half, "unproven")), TICKETS)
    assert unproven.pays_without_gain is False and unproven.proven is False


def test_a_saving_that_a_likely_loss_outweighs_does_not_pay():
    saves = replace(PUBLISHED, passages=10.0, llm_price=1.0)
    kept = Option("x", 0.001, changed(0.0, 0.1), passages_after=5)
    # 5 passages of 400 tokens save 0.002 a search; 10 % less quality costs 0.001, as the search.
    assert outcome(kept, replace(saves, llm_price=1.01)).pays_without_gain
    outweighed = outcome(kept, replace(saves, llm_price=0.99))
    assert (outweighed.pays, outweighed.pays_without_gain) == (False, False)


READS = replace(PUBLISHED, value_per_search=0.0, passages=10.0, llm_price=2.5)


@pytest.mark.parametrize("share", [1.0, 0.25])
@pytest.mark.parametrize(
    ("before", "after", "passages"),
    [
        (10.0, 3, 7),
        (10.0, 10, 0),
        (10.0, 25, 0),  # More than it reads now are never given to it.
        (0.0, 3, 0),  # There is no LLM.
        (10.0, None, 0),
    ],
)
def test_what_an_llm_no_longer_reads_is_saved_on_the_share_that_was_measured(
    before, after, passages, share
):
    scenario = replace(READS, passages=before, traffic_share=share)
    came = outcome(Option("x", 0.0, Gain(NO_CHANGE), passages_after=after), scenario)
    thousand = passages * 400 * 2.5 / 1e6 * 1000 * share
    assert came.value_per_month.value == pytest.approx(thousand * 100 * DAYS_PER_MONTH)


def test_waiting_longer_is_paid_by_every_search():
    scenario = replace(PUBLISHED, loss_per_100_ms=0.01, traffic_share=0.25)
    came = outcome(Option("x", 0.0, Gain(NO_CHANGE), extra_ms=200.0), scenario)
    assert came.value_per_month.value == pytest.approx(-0.02 * 0.01 * 100_000 * DAYS_PER_MONTH)


# A gain of a tenth brings 0.001 a search, exactly what it costs.
EVEN = Gain(MeasuredChange(0.1, 0.1, 0.1, "proven"))


@pytest.mark.parametrize(
    ("cost", "changes", "figure", "expected"),
    [
        # What an LLM saves, 4 × 400 tokens for 0.625 a million, is what the search costs.
        (0.001, {"passages": 10.0, "llm_price": 0.625}, "break_even_elasticity", "always"),
        (0.001, {}, "break_even_searches", "never"),
        (0.0005, {}, "break_even_searches", "always"),
        (0.0005, {"monthly_cost": 0.05 * DAYS_PER_MONTH}, "break_even_searches", 100.0),
        (0.001, {"monthly_cost": 100.0 * DAYS_PER_MONTH}, "break_even_price", "never"),
        (0.001, {"monthly_cost": 99.0 * DAYS_PER_MONTH}, "break_even_price", 0.01),
        (0.001, {"setup_cost": 1.0}, "payback_months", "never"),
        (0.0, {"setup_cost": 0.0}, "payback_months", "no_setup"),
        (0.0, {"setup_cost": 1.0, "searches_per_day": 0.0}, "roi", "no_traffic"),
    ],
)
def test_where_gain_and_cost_are_equal_the_figure_says_so(cost, changes, figure, expected):
    chosen = Option("x", cost, EVEN, passages_after=6 if "passages" in changes else None)
    found = getattr(outcome(chosen, replace(PUBLISHED, **changes)), figure)
    got = found.value if isinstance(expected, float) else found.reason
    assert got == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_a_change_that_nothing_rests_on_needs_no_proof():
    unsure = MeasuredChange(0.1, -0.1, 0.3, "unproven")
    sure = MeasuredChange(0.3, 0.2, 0.4, "proven")
    for gain, scenario in ((Gain(sure, unsure), PUBLISHED), (Gain(unsure, sure), TICKETS)):
        assert outcome(Option("x", 0.001, gain), scenario).proven is True
    for gain, scenario in ((Gain(unsure, sure), PUBLISHED), (Gain(sure, unsure), TICKETS)):
        assert outcome(Option("x", 0.001, gain), scenario).proven is False
        untouched = replace(scenario, traffic_share=0.0)
        assert outcome(Option("x", 0.001, gain), untouched).proven is True


def test_too_few_queries_leave_no_interval_and_nothing_to_count_on():
    came = outcome(Option("x", 0.001, Gain(MeasuredChange(0.5))), PUBLISHED)
    assert came.net_per_month.value > 0
    assert came.net_per_month.low is None and came.net_per_month.high is None
    assert came.pays is False and came.proven is False


def test_an_interval_that_nothing_rests_on_may_be_unknown():
    measured = Gain(MeasuredChange(0.3, 0.2, 0.4, "proven"), MeasuredChange(0.1))
    assert outcome(Option("x", 0.001, measured), PUBLISHED).pays
    came = outcome(Option("x", 0.001, measured), replace(PUBLISHED, ticket_share=0.1))
    assert (came.value_per_month.low, came.pays) == (None, False)


@pytest.mark.parametrize(
    ("relative", "worth", "reason"),
    [(0.0, 0.01, "no_gain"), (-0.1, 0.01, "no_gain"), (0.1, 0.0, "no_value"), (0.1, 0.01, None)],
)
def test_no_break_even_is_for_want_of_a_gain_or_of_a_value(relative, worth, reason):
    came = outcome(
        Option("x", 0.001, changed(relative)), replace(PUBLISHED, value_per_search=worth)
    )
    assert came.break_even_elasticity.reason == reason


@pytest.mark.parametrize(
    ("figure", "reached", "beyond", "scenario", "value"),
    [
        ("break_even_elasticity", (1.0, 1.01e-4), (1.0, 0.99e-4), {}, 1e6 / 1.01),
        ("payback_months", (0.0, 1.01e-2), (0.0, 0.99e-2), {"setup_cost": 3650}, 1200 / 1.01),
        ("break_even_searches", (0.0, 1.01e-2), (0.0, 0.99e-2), {"monthly_cost": 3.65e7 / 1.2},
         1e10 / 1.01),
    ],
)  # fmt: skip
def test_what_is_beyond_reach_is_never(figure, reached, beyond, scenario, value):
    """Cost of a search and gain on either side of a million percent, a hundred years and all the
    searches of the world."""
    assumed = replace(PUBLISHED, searches_per_day=1000.0, **scenario)
    near, far = (
        getattr(outcome(Option("x", cost, changed(gain)), assumed), figure)
        for cost, gain in (reached, beyond)
    )
    assert near.value == pytest.approx(value)
    assert far == Amount(reason="never")


@pytest.mark.parametrize(
    ("cost", "value", "reason"),
    [
        (0.001, 9.0, None),
        (0.01 / 11 * 1.001, pytest.approx(9.989, abs=1e-3), None),
        (0.01 / 11 * 0.999, None, "tenfold"),
        (0.01, 0.0, None),
        (0.010001, None, "loses"),
    ],
)
def test_a_return_is_a_number_from_0_to_ten_times_the_cost(cost, value, reason):
    """A gain of 100 % brings $0.01 a search."""
    came = outcome(Option("x", cost, changed(1.0)), PUBLISHED)
    assert (came.roi.value, came.roi.reason) == (value, reason)


def test_the_ends_of_a_return_are_words_beyond_its_range():
    measured = Gain(MeasuredChange(0.2, -0.1, 3.0, "unproven"))
    came = outcome(Option("x", 0.001, measured), PUBLISHED)
    assert came.roi == Amount(pytest.approx(1.0), "loses", "tenfold")


MACHINES = Machines(146.0, 1000.0)


def test_machines_cost_the_same_for_any_traffic_that_they_serve():
    few, many = (
        outcome(
            Option("x", 0.0, changed(0.2), machines=(MACHINES,)),
            replace(PUBLISHED, searches_per_day=each),
        )
        for each in (100.0, 1000.0)
    )
    assert few.cost_per_month.value == many.cost_per_month.value == 146.0
    assert few.cost_per_thousand.value == pytest.approx(10 * many.cost_per_thousand.value)
    none = outcome(
        Option("x", 0.0, changed(0.2), machines=(MACHINES,)),
        replace(PUBLISHED, searches_per_day=0.0),
    )
    assert (none.cost_per_month.value, none.cost_per_thousand.reason) == (146.0, "no_traffic")


@given(gains, st.floats(1, 5000), st.floats(10, 1e6), st.floats(0, 0.001))
def test_from_its_traffic_on_a_machine_pays_at_any_higher_one(gain, upkeep, served, beside):
    scenario = replace(PUBLISHED, monthly_cost=upkeep)
    measured = Option("x", beside, changed(gain), machines=(Machines(146.0, served),))
    found = outcome(measured, scenario).break_even_searches
    assume(found.value is not None and found.value < 1e9)
    for factor in (1 + 1e-6, 1.5, 7.3):
        at = replace(scenario, searches_per_day=found.value * factor)
        assert outcome(measured, at).net_per_month.value >= -1e-6 * upkeep
    below = replace(scenario, searches_per_day=found.value * (1 - 1e-6))
    assert outcome(measured, below).net_per_month.value <= 1e-5 * upkeep


@given(gains, st.floats(1e-6, 0.01), st.floats(0.01, 1))
def test_at_the_break_even_worth_of_quality_it_nets_nothing(gain, cost, share):
    """1,000 searches whose quality rises by 1 % are worth that much: 10 × the value of one."""
    scenario = replace(PUBLISHED, traffic_share=share)
    worth = outcome(Option("x", cost, changed(gain)), scenario).break_even_worth.value
    at = replace(scenario, value_per_search=worth / 10)
    spent = outcome(Option("x", cost, changed(gain)), at)
    assert spent.net_per_month.value == pytest.approx(0, abs=1e-9 * spent.cost_per_month.value)


@pytest.mark.parametrize(
    ("price", "value", "shown", "reason"),
    [
        (True, True, {"break_even_worth", "break_even_price"}, None),
        (True, False, {"break_even_worth"}, "unset_value"),
        (False, True, {"break_even_price"}, "unset_price"),
        (False, False, set(), "unset_both"),
    ],
)
def test_no_figure_rests_on_what_the_user_did_not_set(price, value, shown, reason):
    came = only_from_set(outcome(option(), PUBLISHED), price=price, value=value)
    figures = {each.name: getattr(came, each.name) for each in fields(came)}
    found = {name for name, each in figures.items() if getattr(each, "reason", "") == reason}
    money = {"value_per_month", "net_per_month", "roi", "payback_months",
             "break_even_elasticity", "break_even_searches"}  # fmt: skip
    if reason is not None:
        assert found == money | ({"break_even_worth", "break_even_price"} - shown)
        assert not came.pays and not came.pays_without_gain
    assert all(figures[name].value is not None for name in shown)
    assert figures["cost_per_month"].value is not None


def test_no_assumption_is_larger_than_amounts_can_be():
    Assumptions(searches_per_day=1e10)
    with pytest.raises(DataError, match="0 to 10,000,000,000"):
        Assumptions(searches_per_day=1.001e10)


def test_an_end_of_a_gain_has_that_end_of_the_hit_rate_or_none_where_it_has_no_interval():
    gain = Gain(MeasuredChange(0.2, 0.1, 0.3), MeasuredChange(0.05, 0.01, 0.09), queries=40)
    assert gain.at("low") == Gain(MeasuredChange(0.1), MeasuredChange(0.01), 40)
    assert gain.at("high") == Gain(MeasuredChange(0.3), MeasuredChange(0.09), 40)
    bare = replace(gain, hit=MeasuredChange(0.05))
    assert bare.at("low") == Gain(MeasuredChange(0.1), MeasuredChange(0.0), 40)
    assert replace(gain, relative=MeasuredChange(0.2)).at("low") is None


@pytest.mark.parametrize(("extra_ms", "lost"), [(None, 0.0), (0.0, 0.0), (-5.0, 0.0), (100.0, 1.0)])
def test_waiting_that_was_not_measured_costs_nothing(extra_ms, lost):
    scenario = replace(PUBLISHED, loss_per_100_ms=0.01, traffic_share=0.5)
    found = outcome(option(0.0, 0.0, extra_ms=extra_ms), scenario)
    searches = 100_000 * DAYS_PER_MONTH
    assert found.value_per_month.value == pytest.approx(-lost * searches * 0.01 * 0.01)


def test_what_pays_whatever_the_input_has_no_interval_of_it():
    found = outcome(Option("free", 0.0, changed(0.2, 0.1)), PUBLISHED)
    assert found.break_even_elasticity == Amount(reason="always")


def test_a_loss_beyond_measure_is_no_return_either():
    dear = replace(PUBLISHED, value_per_search=1.0)
    found = outcome(Option("loss", 1e-9, changed(-0.2, 0.1)), dear)
    assert found.roi.reason == "loses" and found.net_per_month.value < 0


@pytest.mark.parametrize(("months", "reason"), [(1200.0, None), (1200.1, "never")])
def test_what_is_paid_back_within_a_hundred_years_is(months, reason):
    free = Option("free", 0.0, Gain(MeasuredChange(0.5, 0.4, 0.6, "proven")))
    net = outcome(free, PUBLISHED).net_per_month.value
    setup = net * months
    found = outcome(free, replace(PUBLISHED, setup_cost=setup)).payback_months
    assert found.reason == reason
    if reason is None:
        assert found.value == 1200.0


def test_without_a_baseline_or_a_cost_the_published_formula_has_no_answer():
    given = {"searches_per_day": 1.0, "value_per_search": 1.0}
    with pytest.raises(DataError, match="baseline's value is 0"):
        simple_roi(0.0, 0.5, cost_per_search=1.0, **given)
    with pytest.raises(DataError, match="cost is 0"):
        simple_roi(0.5, 0.6, cost_per_search=0.0, **given)
    # As much at a depth as before, to rounding.
    assert equal_recall_depth({1: 0.3, 2: 0.6 - 5e-13, 3: 0.7}, 0.6) == 2


def test_a_search_that_shows_something_saves_a_share_of_a_ticket_and_the_time_of_a_person():
    scenario = replace(
        PUBLISHED, ticket_share=0.1, ticket_cost=10.0, seconds_saved=90.0, hourly_wage=40.0
    )
    measured = Gain(NO_CHANGE, MeasuredChange(0.5, 0.4, 0.6, "proven"))
    # A tenth of a ticket of 10, and a fortieth of an hour of 40.
    assert value_per_search(Option("x", 0.0, measured), scenario) == pytest.approx(0.5 * 2.0)
    assert value_per_search(Option("x", 0.0, None), scenario) is None


def test_quality_that_brings_nothing_needs_no_proof():
    unsure = Option("x", 0.001, Gain(MeasuredChange(0.1, -0.1, 0.3, "unproven")))
    assert outcome(unsure, replace(PUBLISHED, elasticity=0.0)).proven is True
    assert outcome(unsure, PUBLISHED).proven is False


@pytest.mark.parametrize(("net", "pays"), [(0.5, True), (0.0, False), (-0.5, False)])
def test_the_least_that_is_left_of_a_month_pays(net, pays):
    scenario = replace(PUBLISHED, searches_per_day=10.0, value_per_search=1.0)
    free = Option("x", 0.0, Gain(MeasuredChange(1.0, 1.0, 1.0, "proven")))
    brought = outcome(free, scenario).value_per_month.value
    assert outcome(free, replace(scenario, monthly_cost=brought - net)).pays is pays


def test_an_end_at_which_it_pays_whatever_the_quality_brings_says_so():
    # Each search that now shows something saves 1, a search costs 0.1: at the higher end of the
    # hits that is paid already.
    measured = Gain(
        MeasuredChange(0.5, 0.4, 0.6, "proven"), MeasuredChange(0.05, 0.0, 0.2, "proven")
    )
    even = outcome(
        Option("x", 0.1, measured), replace(TICKETS, value_per_search=1.0)
    ).break_even_elasticity
    assert even == Amount(pytest.approx(0.05 / 0.5), "always", pytest.approx(0.1 / 0.4))


def test_prices_alone_have_no_net_and_a_value_needs_no_price():
    came = outcome(Option("x", None, EVEN), replace(PUBLISHED, setup_cost=1.0))
    searches = 100_000 * DAYS_PER_MONTH
    assert came.value_per_month.value == pytest.approx(0.001 * searches)
    assert came.break_even_price.value == pytest.approx(1.0)
    for name in ("cost_per_thousand", "cost_per_month", "net_per_month", "payback_months"):
        assert getattr(came, name) == Amount(reason="unknown_cost")


def test_of_two_gains_the_proven_one_counts_from_its_lower_end():
    for proof, value, low, sure in (
        ("proven", 0.2, 0.1, 0.1), ("proven", -0.2, -0.3, -0.3), ("unproven", 0.2, 0.1, 0.0),
        ("unproven", 0.2, -0.1, -0.1), ("same", 0.0, 0.0, 0.0), ("too_few", 0.2, None, None),
    ):  # fmt: skip
        change = MeasuredChange(value, low, None if low is None else value + 0.1, proof)
        assert change.sure == sure
        assert change.settled is (proof in ("proven", "same"))


def test_what_an_amount_of_money_is_elsewhere_is_told_by_the_rate():
    by_name = {each.name: each for each in ASSUMPTIONS}
    value, tokens = by_name["value_per_search"], by_name["passage_tokens"]
    assert (value.money, by_name["llm_price"].money, tokens.money) == (True, True, False)
    assert [value.default_at(rate) for rate in (1.0, 7.0, None)] == pytest.approx([0.01, 0.07, 0.0])
    assert [tokens.default_at(rate) for rate in (7.0, None)] == [400.0, 400.0]


def test_what_nobody_set_is_named_where_it_counts():
    def untouched(given=(), **changes):
        return {each.name for each in replace(Assumptions(), **changes).untouched(given)}

    always = untouched()
    assert {"searches_per_day", "value_per_search", "elasticity", "latency_target_ms"} <= always
    assert untouched(["elasticity"]) == always - {"elasticity"}
    for switch, of in (
        ("passages", {"passages", "passage_tokens", "llm_price"}),
        ("ticket_share", {"ticket_share", "ticket_cost"}),
        ("seconds_saved", {"seconds_saved", "hourly_wage"}),
        ("loss_per_100_ms", {"loss_per_100_ms"}),
    ):
        assert not always & of
        assert untouched(**{switch: 1.0}) == always | of


def test_what_is_assumed_where_nobody_said_is_what_the_page_shows():
    found = {each.name: each.default for each in ASSUMPTIONS}
    assert found == {
        "searches_per_day": 100_000, "traffic_share": 1, "value_per_search": 0.01, "elasticity": 1,
        "setup_cost": 0, "monthly_cost": 0, "passages": 0, "passage_tokens": 400,
        "llm_price": 0.15, "ticket_share": 0, "ticket_cost": 15, "seconds_saved": 0,
        "hourly_wage": 40, "loss_per_100_ms": 0, "latency_target_ms": 500,
    }  # fmt: skip
    assert {each.name for each in ASSUMPTIONS if each.most == 1.0} == {
        "traffic_share", "ticket_share", "loss_per_100_ms"
    }  # fmt: skip


def test_the_published_formula_has_an_answer_below_one_and_none_where_it_overflows():
    given = {"searches_per_day": 1.0, "value_per_search": 1.0}
    assert simple_roi(0.5, 0.75, cost_per_search=0.25, **given).roi == 1.0
    with pytest.raises(DataError, match="baseline's value is 0"):
        simple_roi(1e-320, 0.5, cost_per_search=1.0, **given)
    with pytest.raises(DataError, match="cost is 0"):
        simple_roi(0.5, 0.75, cost_per_search=1e-320, **given)
