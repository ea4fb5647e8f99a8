import pytest

from rankdash.ui.sidebar.view import LARGEST_CUTOFF, cutoff_of


@pytest.mark.parametrize(
    ("value", "cutoff"),
    [
        ("1", 1),
        ("10", 10),
        (str(LARGEST_CUTOFF), 1000),
        (str(LARGEST_CUTOFF + 1), None),
        ("9" * 5000, None),
        ("0", None),
        ("-1", None),
        ("all", None),
        ("", None),
        (None, None),
        # A digit to Python, and no number in an address.
        ("٣", None),
    ],
)
def test_a_cutoff_is_read_from_1_to_the_largest(value, cutoff):
    assert cutoff_of(value) == cutoff
