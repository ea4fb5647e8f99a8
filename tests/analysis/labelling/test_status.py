"""A labelling plan of several comparisons has the status of its slowest comparison."""

from dataclasses import replace
from math import nan

import pytest

from rankdash.core.sampling.estimate import Estimate
from rankdash.core.sampling.status import LabelStatus, usual_effort

FAR = Estimate(
    *("first stage", "far", "ndcg@10", "open", 0.1, -0.1, 0.3, -0.1, 0.3, 0.95),
    queries=8, labels=10, waiting=0, known=5, pairs=60, needed=20, saved=9, needed_most=35,
)  # fmt: skip
NEAR = replace(FAR, state="settled", low=0.05, pairs=40, needed=0, saved=3, needed_most=0)
EARLY = replace(FAR, state="too_early", low=nan, needed=None, saved=None, needed_most=None)
NAMES = ("needed", "needed_most", "saved", "left", "pairs")
NAMES += ("conclusive", "complete", "seconds_left")


@pytest.mark.parametrize(
    ("estimates", "expected"),
    [
        ((), (None, None, None, 0, 0, False, False, nan)),
        ((NEAR,), (0, 0, 3, 25, 40, True, False, 0)),
        ((NEAR, FAR), (20, 35, 9, 45, 60, False, False, 200)),
        ((FAR, NEAR), (20, 35, 9, 45, 60, False, False, 200)),
        ((NEAR, EARLY), (None, None, None, 45, 60, False, False, nan)),
    ],
)
def test_the_status_is_that_of_the_comparison_that_needs_most(estimates, expected):
    status = LabelStatus("weight", estimates, 0, (), (), 10.0)
    found = [getattr(status, name) for name in NAMES]
    assert found == pytest.approx(list(expected), nan_ok=True)


def test_no_effort_is_claimed_for_a_cutoff_that_needs_more_labels_than_the_simulated_ones():
    assert usual_effort(11, "weight") is usual_effort(100, "random") is None
    assert usual_effort(7, "weight") == usual_effort(10, "weight")
    assert usual_effort(3, "weight", judge=True) == usual_effort(5, "weight", judge=True)
    assert usual_effort(5, "query") is None
