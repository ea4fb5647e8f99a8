"""The verdict needs both: a proven difference and a gain worth having; and it can be read."""

import math

import pytest

from rankdash.analysis.statistics.verdict import Facts, Verdict, decide, verdict_on


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
        "settles": 40,
        "comparisons": 1,
        "level": 0.95,
        "tie_band": 0.005,
        "worthwhile": 0.15,
        "quality": True,
    }
    return Facts(**(known | changes))


def verdict(**changes: object) -> Verdict:
    return verdict_on(facts(**changes))


NAN = math.nan
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
        "MiniLM is better than BM25: NDCG@10 rises by 20.0%, from 0.500 to 0.600 over 60 queries, "
        "and with 95% confidence the true gain is between +0.050 and +0.150."
    )


def test_a_small_gain_is_told_beside_what_was_asked_for():
    assert "only by 20.0% where 25.0% was asked for" in verdict(worthwhile=0.25).sentence


def test_a_gain_over_nothing_is_told_without_a_percentage():
    sentence = verdict(before=0.0, after=0.1).sentence
    assert "rises from 0 to 0.100" in sentence
    assert "by" not in sentence.split()


def test_more_comparisons_are_why_more_queries_are_needed():
    alone = verdict(low=-0.01, settles=1300, comparisons=1)
    among = verdict(low=-0.01, settles=1300, comparisons=3)
    assert "correction" not in alone.sentence
    assert "correction for 3 comparisons" in among.sentence


def test_an_end_of_an_interval_that_rounds_to_zero_has_no_sign():
    said = verdict(low=0.0, high=0.21, p=0.2).sentence
    assert "between 0.000 and +0.210" in said
    assert "between 0.000 and" in verdict(low=-0.0, high=0.21, p=0.2).sentence


@pytest.mark.parametrize(
    ("settles", "advice"),
    [
        (1300, "About 1,240 more queries like these would settle it."),
        (55, "It is close: a few more queries may settle it."),
        (None, "no practical number of queries"),
        (3_000_000, "no practical number of queries"),
    ],
)
def test_what_is_not_proven_says_what_would_settle_it(settles, advice):
    told = verdict(low=-0.01, settles=settles)
    assert told.kind == "unproven"
    assert advice in told.sentence


def test_among_many_systems_one_may_look_better_by_chance():
    sentence = verdict(p=0.12, comparisons=4).sentence
    assert "may come by chance (p = 0.120, comparisons made: 4)" in sentence


def test_an_end_of_the_interval_that_is_not_zero_is_not_shown_as_zero():
    assert "between +0.0003 and" in verdict(low=0.0003).sentence


def test_names_for_display_take_the_place_of_ids():
    told = verdict(baseline="run-1", challenger="run-2").named({"run-1": "BM25", "run-2": "Fusion"})
    assert told.sentence.startswith("Fusion is better than BM25")
    assert verdict(challenger="run-2").named({}).params["challenger"] == "run-2"


@pytest.mark.parametrize("end", [0.0, -0.0])
def test_an_end_of_the_interval_at_zero_has_no_sign(end):
    assert "between 0.000 and +0.200" in verdict(low=end, high=0.2, delta=0.1).sentence
