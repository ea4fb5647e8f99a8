"""The filters of the list of queries, as a link has them."""

import pytest
from streamlit.testing.v1 import AppTest


def change(given: str) -> None:
    """The range of changes that a link asks for, where the largest change is 1."""
    import streamlit as st

    from rankdash.ui.queries import query_filters
    from rankdash.ui.state import address

    address.take_over({"delta": [given]})
    axis = query_filters._Axis.to(1.0, both_ways=True)
    st.text(str(query_filters._range("delta", "Change", axis)))
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


def others(given: list[str]) -> None:
    """The ranges of the systems a=1 and b that a link asks for, whose values are from 0 to 1."""
    import streamlit as st

    from rankdash.ui.queries import query_filters
    from rankdash.ui.state import address

    if given and "linked" not in st.session_state:
        st.session_state["linked"] = True
        address.take_over({"values": given})
    systems = {"a=1": "First", "b": "Second"}
    st.text(str(query_filters._values(systems, query_filters._Axis.to(1.0))))
    st.text(str(address.several("values")))
    st.text(address.lost().get("values", ""))


def test_each_compared_system_has_a_range_of_values_that_a_link_carries():
    given = ["a=1=0.2..0.5", "gone=0..0.3", "b=0.9..0.1"]
    app = AppTest.from_function(others, args=(given,)).run()
    assert not app.exception
    assert [each.label for each in app.slider] == ["Value of First", "Value of Second"]
    assert [each.value for each in app.slider] == [(0.2, 0.5), (0.0, 1.0)]
    # A system that is not compared, and a range that is none, are said.
    assert [each.value for each in app.text] == [
        "{'value a=1': (0.2, 0.5)}", "['a=1=0.2..0.5']", "gone=0..0.3, b=0.9..0.1",
    ]  # fmt: skip
    app.slider[1].set_value((0.0, 0.3)).run()
    assert [each.value for each in app.text] == [
        "{'value a=1': (0.2, 0.5), 'value b': (0.0, 0.3)}", "['a=1=0.2..0.5', 'b=0..0.3']", "",
    ]  # fmt: skip
    app.slider[0].set_value((0.0, 1.0)).run()
    assert app.text[1].value == "['b=0..0.3']"
