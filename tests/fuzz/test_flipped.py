"""A flipped bit in any file of a workspace is named, or changes no value."""

import pytest

from tests.fuzz.flipped import trial

FLIPS = 120


@pytest.mark.thorough
def test_of_120_flipped_bits_none_changes_a_value_or_is_a_raw_error(tmp_path):
    found, wrong = trial(tmp_path, FLIPS, 3)
    assert wrong == []
    assert found["rankdash.sqlite"]["named"] > 10
    assert found["rankdash.sqlite-wal"]["named"] > 10
