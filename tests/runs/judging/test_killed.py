"""A worker that is killed while it asks: what tests/benchmarks/judge_run.py does in large."""

import pytest

from tests.benchmarks.judge_run import check, trial


@pytest.mark.thorough
@pytest.mark.parametrize("kills", [0, 1])
def test_every_failure_is_counted_and_a_killed_worker_loses_at_most_a_batch(tmp_path, kills):
    found = trial(tmp_path / "home", 400, kills)
    check(found, 400, kills)
    assert sum(found.failures.values()) >= 8
    assert found.row.graded > 350
