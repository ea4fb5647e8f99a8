"""The verdict needs both: a proven difference and a gain worth having; and it can be read."""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.statistics.planning import QueryPlan
from rankdash.core.statistics.verdict import (
    Facts,
    Margin,
    Verdict,
    decide,
    is_proven,
    relative_change,
    verdict_on,
)
from tests.results import results, several

USUAL = Facts(
    "BM25", "MiniLM", "NDCG@10", n=60, in_common=60, n_before=60, n_after=60, before=0.5, after=0.6,
    delta=0.1, low=0.05, high=0.15, p=0.001, identical=False, exact=False, comparisons=1,
    corrected=False, level=0.95, tie_band=0.005, worthwhile=0.15, quality=True,
)  # fmt: skip


def verdict(**changes: object) -> Verdict:
    return verdict_on(replace(USUAL, **changes))


NAN = math.nan
PLAN = QueryPlan(likely=710, least=300, most=2_000, none_within=False)
NOTHING = {"n": 0, "in_common": 0}
NOTHING |= dict.fromkeys(("before", "after", "delta", "low", "high", "p"), NAN)
WORSE = {"delta": -0.1, "low": -0.15, "high": -0.05, "after": 0.4}
UNSURE = {"low": -0.01, "high": 0.21, "p": 0.08}
NONE_FIT = {"low": NAN, "high": NAN, "p": NAN}
SAME = {"delta": 0.0, "low": 0.0, "high": 0.0}
MANY = {"comparisons": 3, "corrected": True}
CASES: dict[str, dict[str, object]] = {
    "a gain with its size, its queries and its interval": {},
    "just the smallest relevant gain, 15 % of 0.5": {"delta": 0.075, "low": 0.01},
    "that, to rounding": {"delta": 0.15 * 0.5 - 1e-13, "low": 0.01},
    "less than that": {"delta": 0.074, "low": 0.01},
    "less than a minimum of 25.5 %": {"worthwhile": 0.255},
    "14 %, with the minimum in whole percent": {"after": 0.57, "delta": 0.07},
    "a loss": WORSE,
    "a loss smaller than the minimum": {
        "delta": -0.001, "low": -0.002, "high": -0.0005, "worthwhile": 0.5
    },
    "a loss to the last digit": WORSE | {"high": -1e-9},
    "no loss, for it ends at 0": WORSE | {"high": 0.0},
    "no loss by its p": WORSE | {"p": 0.2},
    "0 is within": {"low": -0.001},
    "it ends at 0": {"low": 0.0, "high": 0.2},
    "it ends at -0": {"low": -0.0, "high": 0.2},
    "it ends above 0": {"low": 1e-9},
    "a fall that is not proven": {"delta": -0.01, "low": -0.05, "high": 0.02},
    "p is the level": {"p": 0.05},
    "p is above the level": {"p": 0.051},
    "p is above a stricter level": {"p": 0.02, "level": 0.99},
    "no query changes": SAME | {"identical": True, "exact": True},
    "all within the band": {"delta": 0.004, "low": 0.003, "high": 0.005, "identical": True},
    "four queries": {"n": 4} | NONE_FIT,
    "six are enough": {"n": 6},
    "six where seven are needed": {"n": 6, "fewest": 7},
    "sixty uneven ones": {"effective": 3.89} | NONE_FIT,
    "four uneven ones": {"n": 4, "effective": 3.89} | NONE_FIT,
    "no interval": {"delta": 0.01, "low": NAN, "high": NAN, "p": 0.01},
    "a measure of labels": {"quality": False, "p": NAN},
    "that, of four": {"quality": False, "n": 4, "p": NAN},
    "that, of none in common": {"quality": False, "n": 4, "in_common": 0},
    "nothing in common": NOTHING,
    "nothing in common, but numbers": {"in_common": 0},
    "nothing before": {"n_before": 0, "in_common": 0},
    "no values at all": NOTHING | {"n_before": 0, "n_after": 0},
    "from 0 there is no percentage": {"before": 0.0, "after": 0.1},
    # A mean of grades up to 100 with exponential gain may be as small as 2^-100.
    "from as good as 0": {"before": 2.0**-100, "after": 0.1},
    "no minimum from 0": {"before": 0.0, "delta": 0.01, "low": 0.001},
    **{
        f"each query changes by {delta} from {before}": {
            "before": before, "after": before + delta, "delta": delta, "low": delta, "high": delta
        }
        for before, delta in ((0.5, 0.1), (0.5, 0.07), (0.0, 0.1), (0.5, -0.1))
    },
    "each but for the last digits": {"low": 0.1 - 1e-9, "high": 0.1},
    "each but for the last digits above": {"low": 0.1, "high": 0.1 + 1e-9},
    "by chance among four": {"p": 0.12, "comparisons": 4},
    "between two numbers of queries": UNSURE | {"plan": PLAN},
    "at least so many": UNSURE | {"plan": replace(PLAN, most=None)},
    "too many": UNSURE | {"plan": replace(PLAN, likely=None)},
    "the change may well be none": UNSURE | {"plan": replace(PLAN, none_within=True)},
    "without a plan": UNSURE,
    "more, for three comparisons": UNSURE | MANY | {"plan": PLAN},
    "all is below the minimum": {"low": -0.01, "high": 0.0749, "plan": PLAN},
    "all but the minimum is": {"low": -0.01, "high": 0.075, "plan": PLAN},
    "what is proven needs no more": {"plan": PLAN},
    "as good, within the margin": UNSURE | {"margin": Margin(0.2, -0.005, 0.199, 0.9)},
    "the margin itself is not within": UNSURE | {"margin": Margin(0.2, -0.2, 0.1, 0.9)},
    "beyond the margin": UNSURE | {"margin": Margin(0.1, -0.005, 0.199, 0.9), "plan": PLAN},
    "no interval for the margin": UNSURE | {"margin": Margin(0.2, NAN, NAN, 0.9)},
    "better, within the margin": {"margin": Margin(0.2, 0.06, 0.14, 0.9)},
    "worse, within the margin": WORSE | {"margin": Margin(0.2, -0.14, -0.06, 0.9)},
    "worse, beyond the margin": WORSE | {"margin": Margin(0.1, -0.14, -0.06, 0.9)},
    # So many digits are shown as tell an end from 0, up to the sixth.
    **{
        f"digits of {low:g} … {high:g}, {delta:g}": {"low": low, "high": high, "delta": delta}
        for low, high, delta in (
            (0.0007, 0.15, 0.1), (0.0004, 0.15, 0.1), (0.0003, 0.15, 0.1), (-0.0006, 0.15, 0.1),
            (-0.0004, 0.15, 0.1), (-0.00004, 0.15, 0.1), (-1e-7, 0.15, 0.1), (0.0, 0.15, 0.1),
            (-0.1, 0.1, 0.0004), (-0.1, 0.1, 0.0),
        )
    },
    "not proven, ends at 0": {"low": 0.0, "high": 0.21, "p": 0.2},
    "not proven, ends at -0": {"low": -0.0, "high": 0.21, "p": 0.2},
}  # fmt: skip


# An end at none is no proof; a p of the level, to rounding, is.
PROVEN = (
    (0.01, 0.2, 0.05), (0.01, 0.2, 0.05 + 1e-13), (0.01, 0.2, 0.0501), (-0.2, -0.01, 0.05),
    (0.0, 0.2, 0.01), (-0.2, 0.0, 0.01), (-0.1, 0.2, 0.01), (NAN, NAN, 0.01), (0.01, 0.2, NAN),
)  # fmt: skip


def told(changes: dict[str, object]) -> str:
    found = verdict(**changes)
    assert found.kind == decide(replace(USUAL, **changes))
    ends = [found.params[name] for name in ("low", "high") if name in found.params]
    return f"{found.kind}, more: {found.more}, ends: {' '.join(map(str, ends))}\n{found.sentence}"


def test_each_verdict_its_sentence_and_how_many_more_queries_it_advises(approved):
    rules = several(
        "{} … {}, p {}", lambda low, high, p: is_proven(low, high, p, 0.95), PROVEN
    ) | several("{} of a millionth", lambda delta: relative_change(delta, 1e-6), (0.999, 1.0, -1.0))
    approved("analysis/verdict", f"{results(CASES, told)}\n{results(rules)}")


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


def test_systems_may_be_called_by_other_names_and_keep_theirs_without_one():
    found = verdict(**UNSURE).named({"BM25": "First stage", "another": "x"})
    assert (found.params["baseline"], found.params["challenger"]) == ("First stage", "MiniLM")
    assert found.sentence.startswith("Not proven that MiniLM differs from First stage")
    assert (found.kind, found.advice) == ("unproven", verdict(**UNSURE).advice)
