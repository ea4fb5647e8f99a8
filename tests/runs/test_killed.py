"""Work that is killed at any moment loses nothing: what tests/benchmarks/kills.py does a hundred
times."""

from tests.benchmarks.kills import DOES, trial


def test_a_run_an_import_an_upload_a_migration_and_a_backup_survive_a_kill(tmp_path):
    found = trial(tmp_path, len(DOES), seed=3)
    assert {what: how.total() for what, how in found.items()} == dict.fromkeys(DOES, 1)
