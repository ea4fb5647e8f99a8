"""Work that is killed at any moment loses nothing; kills.py and judge_run.py in tests/benchmarks do
this many times."""

import pytest

from tests.benchmarks import judge_run, kills

pytestmark = pytest.mark.thorough


def test_work_and_commands_of_every_kind_survive_a_kill(tmp_path):
    found = kills.trial(tmp_path, len(kills.DOES), seed=3)
    assert {what: how.total() for what, how in found.items()} == dict.fromkeys(kills.DOES, 1)


@pytest.mark.parametrize("killed", [0, 1])
def test_every_failure_is_counted_and_a_killed_worker_loses_at_most_a_batch(tmp_path, killed):
    found = judge_run.trial(tmp_path / "home", 400, killed)
    judge_run.check(found, 400, killed)
    assert sum(found.failures.values()) >= 8
    assert found.row.graded > 350
