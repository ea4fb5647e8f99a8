"""Work that is killed at any moment loses nothing: what tests/benchmarks/kills.py does a hundred
times."""

import pytest

from tests.benchmarks.kills import DOES, trial


@pytest.mark.thorough
def test_work_and_commands_of_every_kind_survive_a_kill(tmp_path):
    found = trial(tmp_path, len(DOES), seed=3)
    assert {what: how.total() for what, how in found.items()} == dict.fromkeys(DOES, 1)
