"""What a widget is sent, and what it starts at: the choices must outlive scripts cut short."""

from streamlit.testing.v1 import AppTest


def choices() -> None:
    """Two widgets on the address; a rerun before the end of the script where one is asked for."""
    import streamlit as st

    from rankdash.ui.state import address, pickers

    pickers.restore()
    if st.session_state.pop("from elsewhere", False):
        address.choose("metric", "mrr")
    pickers.pick_one("metric", ["ndcg", "mrr", "map"], st.selectbox, default="map", label="Metric")
    pickers.pick_several("tag", ["a", "b"], st.multiselect, default=["b"], label="Tags")
    pickers.pick_free("text", st.text_input, lambda said: said or "", str, label="Text")
    if st.session_state.pop("cut short", False):
        st.rerun()
    address.publish()
    if not st.session_state.get("never ends", False):
        pickers.shown()


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


def test_what_a_person_moved_is_not_sent_even_where_no_script_has_ended():
    app = AppTest.from_function(choices)
    app.session_state["never ends"] = True
    app.run()
    app.selectbox[0].set_value("mrr").run()
    # It was heard from: the next press of a key is not to be taken back.
    assert app.selectbox[0].value == "mrr" and not app.selectbox[0].proto.set_value
    assert app.multiselect[0].proto.set_value, "never heard from, and maybe never drawn"


def test_a_choice_of_several_that_was_emptied_stays_empty():
    app = AppTest.from_function(choices).run()
    app.multiselect[0].set_value([]).run()
    assert app.multiselect[0].value == []
    app.run()
    assert app.multiselect[0].value == []
    # Another session that opens the address chooses none either, though "b" is the usual choice.
    other = AppTest.from_function(choices)
    other.query_params.update(app.query_params)
    other.run()
    assert other.multiselect[0].value == []
    assert other.session_state["address.lost"] == {}


def growing() -> None:
    """Tags that are there from the second run on."""
    import streamlit as st

    from rankdash.ui.state import pickers

    options = ["a", "b"] if st.session_state.get("grown") else []
    pickers.pick_several("tag", options, st.multiselect, default=["b"], label="Tags")
    pickers.shown()


def test_where_there_was_nothing_to_choose_from_nothing_was_emptied():
    app = AppTest.from_function(growing).run()
    assert app.multiselect[0].value == []
    app.session_state["grown"] = True
    app.run()
    assert app.multiselect[0].value == ["b"]


def test_what_a_link_asks_for_in_vain_gives_way_to_the_usual_and_is_told_until_chosen_anew():
    app = AppTest.from_function(choices)
    app.query_params.update({"metric": "gone", "tag": ["x", "y"]})
    app.run()
    assert (app.selectbox[0].value, app.multiselect[0].value) == ("map", ["b"])
    assert app.session_state["address.lost"] == {"metric": "gone", "tag": "x, y"}
    app.selectbox[0].set_value("mrr").run()
    assert app.session_state["address.lost"] == {"tag": "x, y"}


def test_of_several_choices_those_that_are_there_are_kept():
    app = AppTest.from_function(choices)
    app.query_params.update({"metric": "mrr", "tag": ["x", "a"]})
    app.run()
    assert (app.selectbox[0].value, app.multiselect[0].value) == ("mrr", ["a"])
    assert app.session_state["address.lost"] == {"tag": "x"}


def clearing() -> None:
    """A choice whose change empties another."""
    import streamlit as st

    from rankdash.ui.state import address, pickers

    pickers.restore()
    pickers.pick_one("reason", ["buried", "idle"], st.selectbox, label="Reason", clears=["q"])
    pickers.pick_one("sort", ["hurt", "id"], st.selectbox, label="Order")
    address.publish()
    pickers.shown()


def test_a_choice_clears_those_that_say_nothing_once_it_is_made():
    app = AppTest.from_function(clearing)
    app.query_params["q"] = "q7"
    app.run()
    app.selectbox[1].set_value("id").run()
    assert app.query_params["q"] in ("q7", ["q7"])
    app.selectbox[0].set_value("idle").run()
    assert "q" not in app.query_params


def test_the_address_leaves_out_what_goes_without_saying():
    app = AppTest.from_function(clearing).run()
    assert not app.query_params, "hurt queries first is the usual order, and no reason was chosen"
    app.selectbox[1].set_value("id").run()
    # The reason that the page settled is written with the next choice.
    assert app.query_params["reason"] in ("buried", ["buried"])
    assert set(app.query_params) == {"reason", "sort"}
    app.selectbox[0].set_value("idle").run()
    assert set(app.query_params) == {"reason", "sort"}


def test_a_text_is_not_sent_back_to_the_one_who_types_it():
    app = AppTest.from_function(choices)
    app.query_params["text"] = "old"
    app.run()
    assert app.text_input[0].proto.set_value and app.text_input[0].value == "old"
    app.text_input[0].set_value("new").run()
    assert app.text_input[0].value == "new" and not app.text_input[0].proto.set_value
    app.multiselect[0].set_value(["a"]).run()
    assert not app.text_input[0].proto.set_value and app.text_input[0].proto.default == "new"


def test_a_click_that_brings_the_address_of_before_changes_nothing_chosen():
    app = AppTest.from_function(choices)
    app.query_params["metric"] = "ndcg"
    app.run()
    before = dict(app.query_params)
    app.selectbox[0].set_value("mrr").run()
    assert app.query_params["metric"] in ("mrr", ["mrr"])
    # The browser has not heard of it yet when the next click is made.
    app.query_params.clear()
    app.query_params.update(before)
    app.multiselect[0].set_value(["a"]).run()
    app.query_params.clear()
    app.query_params.update(before)
    app.run()
    assert (app.selectbox[0].value, app.multiselect[0].value) == ("mrr", ["a"])
    assert app.query_params["metric"] in ("mrr", ["mrr"])
    assert app.query_params["tag"] in ("a", ["a"])
    # An address that was never here is a link that was followed.
    app.query_params.clear()
    app.query_params["metric"] = "map"
    app.run()
    assert app.selectbox[0].value == "map"
