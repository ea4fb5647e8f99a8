"""A labelling plan of several comparisons has the status of its slowest comparison."""

from dataclasses import replace
from math import nan

import pytest

from rankdash.core.sampling.estimate import Estimate
from rankdash.core.sampling.status import LabelStatus

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
