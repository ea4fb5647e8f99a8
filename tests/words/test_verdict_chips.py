"""The facts beside a verdict."""

import pandas as pd
import pytest

from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.words.verdict_chips import (
    change_facts,
    change_interval,
    interval,
    p_value,
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
