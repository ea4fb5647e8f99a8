"""The filters of the list of queries, as a link has them."""

import pytest
from streamlit.testing.v1 import AppTest


def change(given: str) -> None:
    """The range of changes that a link asks for, where the largest change is 1."""
    import streamlit as st

    from rankdash.ui.queries import query_filters
    from rankdash.ui.state import address

    address.take_over({"delta": [given]})
    st.text(str(query_filters._range("delta", "Change", 1.0, both_ways=True)))
    st.text(str("delta" in address.lost()))


@pytest.mark.parametrize(
    ("given", "wanted", "lost"),
    [
        ("-0.5..0.5", (-0.5, 0.5), False),
        ("0.2..0.2", (0.2, 0.2), False),
        ("-9..0.5", (-1.0, 0.5), False),
        # A range that is none, or that is no number, leaves every query in the list.
        ("0.3..0.2", None, True),
        ("nan..0.5", None, True),
        ("0.5", None, True),
    ],
)
def test_a_range_of_changes_that_cannot_be_is_said_and_filters_nothing(given, wanted, lost):
    app = AppTest.from_function(change, args=(given,)).run()
    assert not app.exception
    assert [each.value for each in app.text] == [str(wanted), str(lost)]
