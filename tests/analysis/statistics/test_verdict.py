"""The verdict needs both: a proven difference and a gain worth having; and it can be read."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.analysis.statistics.planning import QueryPlan
from rankdash.analysis.statistics.verdict import (
    Facts,
    Verdict,
    decide,
    is_proven,
    relative_change,
    verdict_on,
)


def facts(**changes: object) -> Facts:
    known: dict[str, object] = {
        "baseline": "BM25",
        "challenger": "MiniLM",
        "metric": "NDCG@10",
        "n": 60,
        "in_common": 60,
        "n_before": 60,
        "n_after": 60,
        "before": 0.5,
        "after": 0.6,
        "delta": 0.1,
        "low": 0.05,
        "high": 0.15,
        "p": 0.001,
        "identical": False,
        "exact": False,
        "comparisons": 1,
        "corrected": False,
        "level": 0.95,
        "tie_band": 0.005,
        "worthwhile": 0.15,
        "quality": True,
    }
    return Facts(**(known | changes))


def verdict(**changes: object) -> Verdict:
    return verdict_on(facts(**changes))


NAN = math.nan
PLAN = QueryPlan(likely=710, least=300, most=2_000, none_within=False)
NONE = "More queries like these are unlikely to settle it: the true change may well be zero."
NOTHING = {
    "n": 0,
    "in_common": 0,
    "before": NAN,
    "after": NAN,
    "delta": NAN,
    "low": NAN,
    "high": NAN,
    "p": NAN,
}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "better"),
        ({"delta": 0.075, "low": 0.01}, "better"),
        ({"delta": 0.074, "low": 0.01}, "small"),
        ({"low": -0.001}, "unproven"),
        ({"low": 0.0}, "unproven"),
        ({"delta": -0.01, "low": -0.05, "high": 0.02}, "unproven"),
        ({"delta": -0.1, "low": -0.15, "high": -0.05}, "worse"),
        ({"p": 0.05}, "better"),
        ({"p": 0.051}, "unproven"),
        ({"p": 0.02, "level": 0.99}, "unproven"),
        ({"delta": -0.1, "low": -0.15, "high": -0.05, "p": 0.2}, "unproven"),
        ({"delta": 0.0, "low": 0.0, "high": 0.0, "identical": True, "exact": True}, "identical"),
        ({"delta": 0.004, "low": 0.003, "high": 0.005, "identical": True}, "identical"),
        ({"n": 4, "low": NAN, "high": NAN, "p": NAN}, "too_few"),
        ({"n": 6}, "better"),
        ({"n": 6, "fewest": 7}, "too_few"),
        ({"delta": 0.01, "low": NAN, "high": NAN, "p": 0.01}, "unproven"),
        ({"quality": False, "n": 4, "p": NAN}, "descriptive"),
        ({"quality": False, "n": 4, "in_common": 0}, "nothing_common"),
        ({"low": 1e-9}, "better"),
        ({"delta": -0.1, "low": -0.15, "high": -1e-9}, "worse"),
        ({"delta": -0.1, "low": -0.15, "high": 0.0}, "unproven"),
        ({"n_before": 0, "in_common": 0}, "nothing_common"),
        ({"delta": 0.15 * 0.5 - 1e-13, "low": 0.01}, "better"),
        (NOTHING, "nothing_common"),
        ({"in_common": 0}, "nothing_common"),
        (NOTHING | {"n_before": 0, "n_after": 0}, "no_values"),
        ({"quality": False, "p": NAN}, "descriptive"),
        ({"before": 0.0, "delta": 0.01, "low": 0.001}, "better"),
    ],
)
def test_kind(changes, kind):
    assert decide(facts(**changes)) == kind
    sentence = verdict(**changes).sentence
    assert "nan" not in sentence
    assert "{" not in sentence


def test_a_proven_loss_is_worse_however_small_the_chosen_size():
    assert decide(facts(delta=-0.001, low=-0.002, high=-0.0005, worthwhile=0.5)) == "worse"


def test_a_gain_is_told_with_its_size_its_queries_and_its_interval():
    assert verdict().sentence == (
        "MiniLM is better than BM25: NDCG@10 rises by 20.0%, from 0.500 to 0.600 (+0.100) over 60 "
        "queries, and with 95% confidence the true gain is between +0.050 and +0.150."
    )


@pytest.mark.parametrize(
    ("after", "worthwhile", "change", "minimum"),
    [(0.6, 0.255, "20.0%", "25.5%"), (0.57, 0.15, "14.0%", "15%")],
)
def test_a_small_gain_is_told_beside_the_one_it_falls_short_of(after, worthwhile, change, minimum):
    told = verdict(after=after, delta=after - 0.5, worthwhile=worthwhile)
    assert told.sentence == (
        f"MiniLM is better than BM25, but only by {change}, less than the minimum practically "
        f"relevant gain of {minimum} (set by the user): NDCG@10 rises from 0.500 to "
        f"{after:.3f} (+{after - 0.5:.3f}) over 60 queries, and with 95% confidence the true gain "
        "is between +0.050 and +0.150."
    )


def test_a_gain_over_nothing_is_told_without_a_percentage():
    # A mean of grades up to 100 with exponential gain may be as small as 2^-100.
    assert verdict(before=2.0**-100, after=0.1).sentence == verdict(before=0.0, after=0.1).sentence
    assert verdict(before=0.0, after=0.1).sentence == (
        "MiniLM is better than BM25: NDCG@10 rises from 0 to 0.100 over 60 queries, and with 95% "
        "confidence the true gain is between +0.050 and +0.150."
    )


EVENLY = (
    "by the same amount for each of the 60 queries. Without spread there is no interval: other "
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"after": 0.6, "delta": 0.1},
            f"better than BM25: NDCG@10 rises by 20.0%, from 0.500 to 0.600 (+0.100), {EVENLY}",
        ),
        (
            {"after": 0.57, "delta": 0.07},
            "better than BM25, but only by 14.0%, less than the minimum practically relevant gain "
            f"of 15% (set by the user): NDCG@10 rises from 0.500 to 0.570 (+0.070), {EVENLY}",
        ),
        (
            {"before": 0.0, "after": 0.1, "delta": 0.1},
            f"better than BM25: NDCG@10 rises from 0 to 0.100, {EVENLY}",
        ),
        (
            {"after": 0.4, "delta": -0.1},
            f"worse than BM25: NDCG@10 falls by 20.0%, from 0.500 to 0.400 (-0.100), {EVENLY}",
        ),
    ],
)
def test_equal_changes_have_no_spread_and_no_interval_is_told_of_them(changes, said):
    delta = changes["delta"]
    assert (
        verdict(**changes, low=delta, high=delta).sentence == f"MiniLM is {said}queries may differ."
    )
    for other in ({"low": delta - 1e-9}, {"high": delta + 1e-9}):
        assert (
            "95% confidence" in verdict(**changes, **{"low": delta, "high": delta} | other).sentence
        )


def test_more_comparisons_are_why_more_queries_are_needed():
    alone = verdict(low=-0.01, plan=PLAN)
    among = verdict(low=-0.01, plan=PLAN, comparisons=3, corrected=True)
    assert "correction" not in alone.sentence
    assert among.sentence.endswith("that the correction for 3 comparisons requires.")


def test_an_end_of_an_interval_that_rounds_to_zero_has_no_sign():
    said = (
        "Not proven that MiniLM differs from BM25: NDCG@10 goes from 0.500 to 0.600 over 60 "
        "queries, but with 95% confidence the true change may be anything between 0.000 and +0.210."
    )
    assert verdict(low=0.0, high=0.21, p=0.2).sentence == said
    assert verdict(low=-0.0, high=0.21, p=0.2).sentence == said


@pytest.mark.parametrize(
    ("plan", "advice"),
    [
        (
            PLAN,
            "Between 300 and 2,000 more queries like these would prove a true change in the middle "
            "half of the interval, in 80% of all cases. A smaller change needs more.",
        ),
        (
            replace(PLAN, most=None),
            "At least 300 more queries like these are needed to prove a true change in the middle "
            "half of the interval in 80% of all cases. The smaller the true change, the more.",
        ),
        (replace(PLAN, likely=None), NONE),
        (replace(PLAN, none_within=True), NONE),
    ],
)
def test_what_is_not_proven_says_what_would_settle_it(plan, advice):
    told = verdict(low=-0.01, plan=plan)
    assert told.kind == "unproven"
    assert told.sentence.endswith(f"and +0.150. {advice}")


def test_without_a_plan_nothing_is_promised():
    assert verdict(low=-0.01).sentence.endswith("between -0.010 and +0.150.")


def test_an_interval_below_the_smallest_relevant_gain_promises_no_such_gain():
    """15 % of 0.5."""
    below = (
        "No number of such queries is likely to show the minimum practically relevant gain of 15% "
        "(set by the user): the whole interval is below it."
    )
    assert verdict(low=-0.01, high=0.0749, plan=PLAN).sentence.endswith(below)
    assert "No number" not in verdict(low=-0.01, high=0.075, plan=PLAN).sentence


@given(
    before=st.floats(0, 1), delta=st.floats(-1, 1), reach=st.floats(0, 1), p=st.floats(0, 1),
    plan=st.sampled_from([None, PLAN, replace(PLAN, none_within=True)]),
)  # fmt: skip
def test_without_a_minimum_nothing_is_small_and_no_gain_is_out_of_reach(
    before, delta, reach, p, plan
):
    """Each verdict is that with a minimum of 0, which everything reaches."""
    found, least = (
        verdict(before=before, after=before + delta, delta=delta, low=delta - reach,
                high=delta + reach, p=p, plan=plan, worthwhile=minimum)
        for minimum in (None, 0.0)
    )  # fmt: skip
    assert found.kind == least.kind != "small"
    assert "minimum" not in found.sentence and "worthwhile" not in found.params


def test_only_what_is_not_proven_is_planned():
    assert "queries like these" not in verdict(plan=PLAN).sentence


def test_among_many_systems_one_may_look_better_by_chance():
    sentence = verdict(p=0.12, comparisons=4).sentence
    assert sentence == (
        "Not proven that MiniLM differs from BM25: NDCG@10 goes from 0.500 to 0.600 over 60 "
        "queries, but a change like this may come by chance (p = 0.120, comparisons made: 4)."
    )


def test_an_end_of_the_interval_that_is_not_zero_is_not_shown_as_zero():
    assert verdict(low=0.0003).sentence == (
        "MiniLM is better than BM25: NDCG@10 rises by 20.0%, from 0.5000 to 0.6000 (+0.1000) over "
        "60 queries, and with 95% confidence the true gain is between +0.0003 and +0.1500."
    )


def test_names_for_display_take_the_place_of_ids():
    told = verdict(baseline="run-1", challenger="run-2").named({"run-1": "BM25", "run-2": "Fusion"})
    assert told.sentence.startswith("Fusion is better than BM25")
    assert verdict(challenger="run-2").named({}).params["challenger"] == "run-2"


@pytest.mark.parametrize("end", [0.0, -0.0])
def test_an_end_of_the_interval_at_zero_has_no_sign(end):
    assert verdict(low=end, high=0.2, delta=0.1).sentence.endswith(" between 0.000 and +0.200.")


@pytest.mark.parametrize(
    ("low", "shown"), [(0.0007, "+0.001"), (0.0004, "+0.0004"), (-0.0004, "-0.0004")]
)
def test_so_many_digits_are_shown_that_no_end_rounds_to_zero(low, shown):
    assert f"between {shown} and" in verdict(low=low).sentence


@pytest.mark.parametrize(("delta", "known"), [(0.999, True), (1.0, False), (-1.0, False)])
def test_a_million_times_the_baseline_is_no_percentage(delta, known):
    assert math.isnan(relative_change(delta, 1e-6)) != known


UNSURE = {"low": -0.01, "high": 0.21, "p": 0.08}


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        (UNSURE | {"plan": PLAN}, 300),
        (UNSURE | {"plan": replace(PLAN, most=None)}, 300),
        (UNSURE | {"plan": replace(PLAN, none_within=True)}, None),
        (UNSURE | {"plan": replace(PLAN, likely=None)}, None),
        (UNSURE | {"plan": None}, None),
        # The whole interval is below the gain that is worth having.
        (UNSURE | {"plan": PLAN, "high": 0.07}, None),
        # What is proven needs no more.
        ({"plan": PLAN}, None),
    ],
)
def test_so_many_more_queries_as_it_advises_and_none_where_it_advises_none(changes, more):
    assert verdict(**changes).more == more


def test_systems_may_be_called_by_other_names_and_keep_theirs_without_one():
    found = verdict(**UNSURE).named({"BM25": "First stage", "another": "x"})
    assert (found.params["baseline"], found.params["challenger"]) == ("First stage", "MiniLM")
    assert found.sentence.startswith("Not proven that MiniLM differs from First stage")
    assert (found.kind, found.advice) == ("unproven", verdict(**UNSURE).advice)


@pytest.mark.parametrize(
    ("delta", "low", "high", "shown"),
    [
        (0.1, 0.05, 0.15, ("+0.050", "+0.150")),
        (0.1, 0.0, 0.15, ("0.000", "+0.150")),
        (0.1, -0.0006, 0.15, ("-0.001", "+0.150")),
        (0.1, -0.0004, 0.15, ("-0.0004", "+0.1500")),
        (0.1, -0.00004, 0.15, ("-0.00004", "+0.15000")),
        # Beyond the sixth digit nothing is told apart from none.
        (0.1, -0.0000001, 0.15, ("0.000000", "+0.150000")),
        (0.0004, -0.1, 0.1, ("-0.1000", "+0.1000")),
        (0.0, -0.1, 0.1, ("-0.100", "+0.100")),
    ],
)
def test_numbers_have_the_digits_that_tell_them_from_none(delta, low, high, shown):
    params = verdict(delta=delta, low=low, high=high).params
    assert (params["low"], params["high"]) == shown


@pytest.mark.parametrize(
    ("low", "high", "p", "proven"),
    [
        (0.01, 0.2, 0.05, True),
        (0.01, 0.2, 0.05 + 1e-13, True),
        (0.01, 0.2, 0.0501, False),
        (-0.2, -0.01, 0.05, True),
        # An end at none is no proof.
        (0.0, 0.2, 0.01, False),
        (-0.2, 0.0, 0.01, False),
        (-0.1, 0.2, 0.01, False),
        (NAN, NAN, 0.01, False),
        (0.01, 0.2, NAN, False),
    ],
)
def test_a_change_is_proven_by_both_its_interval_and_its_p_up_to_the_level(low, high, p, proven):
    assert is_proven(low, high, p, 0.95) is proven
