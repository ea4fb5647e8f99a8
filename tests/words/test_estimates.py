"""Estimates from some of the labels in words."""

import math
from dataclasses import replace

import pytest

from rankdash.analysis.labelling.estimate import Estimate
from rankdash.analysis.labelling.status import LabelStatus
from rankdash.words.estimates import (
    effort_sentence,
    estimate_sentence,
    relative_sentence,
    saved_sentence,
)

FOUND = Estimate(
    baseline="BM25", challenger="MiniLM", metric="dcg@10", state="open", difference=0.25,
    low=-0.1, high=0.6, like_these_low=-0.2, like_these_high=0.7, level=0.95, queries=60,
    labels=200, waiting=0, known=30, pairs=961, needed=180, saved=None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {},
            "MiniLM against BM25: DCG@10 +0.2500 (95% -0.1000 … +0.6000), estimated from 230 of "
            "961 labels; not conclusive yet.",
        ),
        (
            {"state": "settled", "low": 0.1},
            "MiniLM is better than BM25: DCG@10 +0.2500 (95% +0.1000 … +0.6000), estimated from "
            "230 of 961 labels; conclusive after 230.",
        ),
        (
            {"state": "settled", "difference": -0.25, "low": -0.6, "high": -0.1},
            "MiniLM is worse than BM25: DCG@10 -0.2500 (95% -0.6000 … -0.1000), estimated from "
            "230 of 961 labels; conclusive after 230.",
        ),
        (
            {"state": "complete", "labels": 931},
            "MiniLM against BM25: DCG@10 +0.2500, from all 961 labels that can change the result; "
            "exact for these 60 queries. One without a relevant document counts as 0; compare "
            "excludes it by default (convention no_relevant).",
        ),
        (
            {"state": "too_early", "difference": math.nan},
            "MiniLM against BM25: too early to say, with 230 of 961 labels.",
        ),
    ],
)
def test_an_estimate_says_from_how_many_labels_it_is(changes, said) -> None:
    told = estimate_sentence(replace(FOUND, **changes))
    assert told.replace("\N{MINUS SIGN}", "-").replace("\N{NARROW NO-BREAK SPACE}", "") == said


@pytest.mark.parametrize(
    ("needed", "seconds", "said"),
    [
        (
            (180,),
            10.0,
            "About 180 more labels are needed if the difference stays as estimated. It may take "
            "all 731 labels that are left. At the present rate: 30 min.",
        ),
        (
            (1,),
            math.nan,
            "About 1 more label is needed if the difference stays as estimated. It may take all "
            "731 labels that are left.",
        ),
        ((0, 0), 10.0, "No more labels are needed."),
        (
            (20, None),
            10.0,
            "How many more labels it takes can be said after 50 labels, 10 of them of relevant "
            "documents.",
        ),
    ],
)
def test_the_effort_is_that_of_the_comparison_that_needs_most(needed, seconds, said) -> None:
    estimates = tuple(replace(FOUND, needed=each) for each in needed)
    assert effort_sentence(LabelStatus("weight", estimates, 0, (), (), seconds)) == said


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (500, "In at least nine of ten cases at most 500."),
        (731, "It may take all 731 labels that are left."),
    ],
)
def test_the_effort_states_a_bound_only_below_all_that_are_left(most, said) -> None:
    found = (replace(FOUND, needed_most=most), replace(FOUND, needed=20, needed_most=90))
    told = effort_sentence(LabelStatus("weight", found, 0, (), (), math.nan))
    middle = "About 180 more labels are needed if the difference stays as estimated."
    assert told == f"{middle} {said}"


def test_a_conclusive_result_keeps_the_number_of_labels_at_which_it_became_so() -> None:
    found = replace(FOUND, state="settled", low=0.1, conclusive_at=57)
    assert estimate_sentence(found).endswith("from 230 of 961 labels; conclusive after 87.")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        (
            {"relative": 0.273, "relative_low": 0.0016, "relative_high": 0.84},
            "Relative to BM25: +27.3% (95% +0.2% … +84.0%).",
        ),
        (
            {"state": "complete", "relative": 0.273, "relative_low": 0.273, "relative_high": 0.273},
            "Relative to BM25: +27.3%.",
        ),
    ],
)
def test_a_difference_is_stated_as_a_share_of_the_baseline(changes, said) -> None:
    assert relative_sentence(replace(FOUND, **changes)) == said


def test_the_effort_of_few_documents_is_all_of_them() -> None:
    few = (replace(FOUND, needed=None, pairs=50), replace(FOUND, needed=None, pairs=24))
    said = effort_sentence(LabelStatus("random", few, 0, (), (), math.nan))
    assert said == "With so few documents the result comes with the last label."
    more = (*few, replace(FOUND, needed=None, pairs=51))
    assert "after 50 labels" in effort_sentence(LabelStatus("random", more, 0, (), (), math.nan))


def test_what_a_judge_saves_or_costs_as_the_guess() -> None:
    rests = "; the result rests on people's labels."
    assert saved_sentence(1) == (
        f"The judge's grades as the guess have saved about 1 label so far{rests}"
    )
    assert saved_sentence(1200).startswith("The judge's grades as the guess have saved about 1,200")
    assert saved_sentence(-3) == (
        f"With the judge's grades as the guess it takes about 3 labels more{rests}"
    )
