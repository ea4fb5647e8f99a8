"""The facts beside a verdict."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from rankdash.analysis.labelling.estimate import Estimate
from rankdash.analysis.labelling.status import LabelStatus
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.words.verdict_chips import (
    change_facts,
    change_interval,
    effort_sentence,
    estimate_sentence,
    interval,
    p_value,
    saved_sentence,
)


@pytest.mark.parametrize(
    ("planned_level", "column", "p", "said"),
    [
        (0.975, "p_corrected", 0.012, "p 0.0120, corrected 0.0360"),
        (0.975, "p_corrected", 0.036, "corrected p 0.0360"),
        (0.95, "p_corrected", 0.036, "p 0.0360"),
        (0.975, "p", 0.012, "p 0.0120"),
    ],
)
def test_where_a_p_is_corrected_both_are_said(planned_level, column, p, said):
    row = pd.Series(
        {"delta": 0.1, "delta_low": 0.05, "delta_high": 0.2, "p": p, "p_corrected": 0.036}
        | {"helped": 3, "same": 1, "hurt": 2, "planned_level": planned_level}
    )
    facts = change_facts(row, StatisticsSettings(), column)
    assert facts == [
        "change +0.100 (95% +0.050 … +0.200)",
        said,
        "3 helped, 1 same, 2 hurt",
    ]


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (0.000_049_9, "<0.0001"),
        (0.000_05, "0.0001"),
        (0.000_099, "0.0001"),
        (1.0, "1.0000"),
        (float("nan"), "–"),
    ],
)
def test_a_p_reads_as_less_only_where_its_four_decimals_are_zeros(p, said):
    assert p_value(p) == said


def test_of_a_change_without_an_interval_and_a_p_only_the_counts_are_said():
    nan = float("nan")
    row = pd.Series(
        {"delta": 0.1, "delta_low": nan, "delta_high": nan, "p": nan, "p_corrected": nan}
        | {"helped": 3, "same": 1, "hurt": 2, "planned_level": 0.95}
    )
    assert change_facts(row, StatisticsSettings(), "p") == ["3 helped, 1 same, 2 hurt"]
    assert interval(-0.5, 0.25) == "-0.500 … 0.250"
    assert [interval(0.5, 0.5), change_interval(0.5, 0.5 + 1e-13)] == ["no spread"] * 2
    assert change_interval(0.5, 0.5 + 1e-9) == "+0.500 … +0.500"
    assert [interval(*ends) for ends in ((nan, 0.1), (0.1, nan), (0.1, float("inf")))] == ["–"] * 3


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
            "961 labels; not settled.",
        ),
        (
            {"state": "settled", "low": 0.1},
            "MiniLM is better than BM25: DCG@10 +0.2500 (95% +0.1000 … +0.6000), estimated from "
            "230 of 961 labels; settled.",
        ),
        (
            {"state": "settled", "difference": -0.25, "low": -0.6, "high": -0.1},
            "MiniLM is worse than BM25: DCG@10 -0.2500 (95% -0.6000 … -0.1000), estimated from "
            "230 of 961 labels; settled.",
        ),
        (
            {"state": "complete", "labels": 931},
            "MiniLM against BM25: DCG@10 +0.2500, from all 961 labels that can make a difference; "
            "exact for these queries.",
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
        ((180,), 10.0, "About 180 more labels settle it. At the present rate: 30 min."),
        ((180, 20), math.nan, "About 180 more labels settle it."),
        ((1,), math.nan, "About 1 more label settles it."),
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
        (180, "About 180 more labels settle it."),
        (1200, "About 180 more labels settle it. In nine of ten cases at most 1,200."),
    ],
)
def test_the_effort_says_how_far_it_may_be_off(most, said) -> None:
    found = (replace(FOUND, needed_most=most), replace(FOUND, needed=20, needed_most=90))
    assert effort_sentence(LabelStatus("weight", found, 0, (), (), math.nan)) == said


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
