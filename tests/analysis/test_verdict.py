"""The verdict needs both: an interval that excludes 0 and a gain worth having."""

import pytest

from rankdash.analysis.verdict import decide


def verdict(**changes: object) -> str:
    facts: dict[str, object] = {
        "n": 60,
        "before": 0.5,
        "delta": 0.1,
        "low": 0.05,
        "high": 0.15,
        "identical": False,
        "worthwhile": 0.15,
    }
    return decide(**(facts | changes))  # type: ignore[arg-type]


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
        ({"delta": 0.0, "low": 0.0, "high": 0.0, "identical": True}, "identical"),
        ({"n": 4}, "too_few"),
        ({"n": 0, "delta": float("nan"), "low": float("nan")}, "too_few"),
        ({"before": 0.0, "delta": 0.01, "low": 0.001}, "better"),
    ],
)
def test_kind(changes, kind):
    assert verdict(**changes) == kind


def test_a_proven_loss_is_worse_however_small_the_chosen_size():
    assert verdict(delta=-0.001, low=-0.002, high=-0.0005, worthwhile=0.5) == "worse"
