"""What a widget is sent, and what it starts at: the choices must outlive scripts cut short."""

from streamlit.testing.v1 import AppTest


def choices() -> None:
    """Two widgets on the address; a rerun before the end of the script where one is asked for."""
    import streamlit as st

    from rankdash.ui import address

    if st.session_state.pop("from elsewhere", False):
        address.choose("metric", "mrr")
    address.pick_one("metric", ["ndcg", "mrr", "map"], st.selectbox, default="map", label="Metric")
    address.pick_several("tag", ["a", "b"], st.multiselect, default=["b"], label="Tags")
    if st.session_state.pop("cut short", False):
        st.rerun()
    address.shown()


def test_a_choice_is_sent_once_and_what_the_widget_starts_at_afterwards():
    app = AppTest.from_function(choices).run()
    assert app.selectbox[0].proto.set_value and app.selectbox[0].value == "map"
    assert app.multiselect[0].proto.set_value and app.multiselect[0].value == ["b"]
    app.run()
    # A widget that was not ready when its value came begins where the choice stands.
    assert not app.selectbox[0].proto.set_value and app.selectbox[0].proto.default == 2
    assert not app.multiselect[0].proto.set_value and app.multiselect[0].proto.default == [1]
    assert (app.selectbox[0].value, app.multiselect[0].value) == ("map", ["b"])


def test_what_was_sent_before_a_rerun_is_sent_again():
    app = AppTest.from_function(choices).run()
    app.session_state["from elsewhere"] = app.session_state["cut short"] = True
    app.run()
    assert app.selectbox[0].value == "mrr"
    assert app.selectbox[0].proto.set_value, "the run that sent it was cut short"
    assert not app.multiselect[0].proto.set_value
    app.run()
    assert app.selectbox[0].value == "mrr" and not app.selectbox[0].proto.set_value


def test_a_choice_that_a_person_made_is_not_sent_back():
    app = AppTest.from_function(choices).run()
    app.multiselect[0].set_value(["a", "b"]).run()
    assert app.multiselect[0].value == ["a", "b"]
    assert not app.multiselect[0].proto.set_value
