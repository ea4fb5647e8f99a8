"""Values sent to widgets, and their start values: choices survive scripts that were interrupted."""

import pytest
from streamlit.testing.v1 import AppTest

from rankdash.kit.widgets import pickers
from tests.ui.test_pages import in_address


def choices() -> None:
    """Draw widgets bound to the address; rerun before the end of the script on request."""
    import streamlit as st

    from rankdash.kit.widgets import address, pickers

    pickers.restore()
    if st.session_state.pop("from elsewhere", False):
        address.choose("metric", "mrr")
    pickers.pick_one("metric", ["ndcg", "mrr", "map"], st.selectbox, default="map", label="Metric")
    pickers.pick_several("tag", ["a", "b"], st.multiselect, default=["b"], label="Tags")
    pickers.pick_free("text", st.text_input, lambda said: said or "", str, label="Text")
    if st.session_state.pop("cut short", False):
        st.rerun()
    address.publish()
    pickers.mark_sent()


@pytest.fixture
def app():
    """Return a function that runs the app with an address."""

    def opened(**query):
        made = AppTest.from_function(choices)
        made.query_params.update(query)
        return made.run()

    return opened


def now(app):
    """Return (value, whether it was sent) of each widget."""
    widgets = (app.selectbox[0], app.multiselect[0], app.text_input[0])
    return [(each.value, each.proto.set_value) for each in widgets]


def lost(app):
    return app.session_state["address.lost"]


def test_a_choice_is_sent_once_and_what_the_widget_starts_at_afterwards(app):
    page = app()
    assert now(page)[:2] == [("map", True), (["b"], True)]
    # A widget that was not ready when its value was sent starts at the chosen value.
    assert now(page.run())[:2] == [("map", False), (["b"], False)]
    assert (page.selectbox[0].proto.default, page.multiselect[0].proto.default) == (2, [1])
    # A value is sent again after a rerun that interrupted the script which sent it.
    page.session_state["from elsewhere"] = page.session_state["cut short"] = True
    assert now(page.run())[:2] == [("mrr", True), (["b"], False)]
    assert now(page.run())[0] == ("mrr", False)
    # A choice by the user is not sent back.
    page.multiselect[0].set_value(["a", "b"]).run()
    assert now(page)[1] == (["a", "b"], False)
    page.text_input[0].set_value("new").run()
    assert now(page)[2] == ("new", False)
    page.multiselect[0].set_value(["a"]).run()
    assert now(page)[2] == ("new", False) and page.text_input[0].proto.default == "new"


def test_a_choice_of_several_that_was_emptied_stays_empty(app):
    page = app()
    for _ in range(2):
        page.multiselect[0].set_value([]).run()
        assert page.multiselect[0].value == []
    # Another session with this address also has no tag, although "b" is the default.
    other = app(**{name: page.query_params[name] for name in page.query_params})
    assert other.multiselect[0].value == [] and lost(other) == {}


def growing() -> None:
    """Draw tags that exist only after the first run."""
    import streamlit as st

    from rankdash.kit.widgets import pickers

    options = ["a", "b"] if st.session_state.get("grown") else []
    pickers.pick_several("tag", options, st.multiselect, default=["b"], label="Tags")
    pickers.mark_sent()


def test_where_there_was_nothing_to_choose_from_nothing_was_emptied():
    page = AppTest.from_function(growing).run()
    assert page.multiselect[0].value == []
    page.session_state["grown"] = True
    assert page.run().multiselect[0].value == ["b"]


def test_what_a_link_asks_for_in_vain_gives_way_to_the_usual_and_is_told_until_chosen_anew(app):
    page = app(metric="gone", tag=["x", "y"])
    assert [value for value, _sent in now(page)[:2]] == ["map", ["b"]]
    assert lost(page) == {"metric": "gone", "tag": "x, y"}
    page.selectbox[0].set_value("mrr").run()
    assert lost(page) == {"tag": "x, y"}
    # Of several choices, the existing ones are restored.
    some = app(metric="mrr", tag=["x", "a"])
    assert [value for value, _sent in now(some)[:2]] == ["mrr", ["a"]]
    assert lost(some) == {"tag": "x"}


def clearing() -> None:
    """Draw a choice whose change clears another."""
    import streamlit as st

    from rankdash.kit.widgets import address, pickers

    pickers.restore()
    pickers.pick_one("reason", ["buried", "idle"], st.selectbox, label="Reason", clears=["q"])
    pickers.pick_one("sort", ["hurt", "id"], st.selectbox, label="Order")
    address.publish()
    pickers.mark_sent()


def test_a_choice_clears_those_that_say_nothing_and_the_address_leaves_out_what_is_usual():
    page = AppTest.from_function(clearing).run()
    assert not page.query_params, "hurt queries first is the usual order, and no reason was chosen"
    page.query_params["q"] = "q7"
    page.run()
    page.selectbox[1].set_value("id").run()
    # The reason, set by the page, is written with the next choice.
    found = {name: in_address(page, name) for name in page.query_params}
    assert found == {"q": ["q7"], "reason": ["buried"], "sort": ["id"]}
    page.selectbox[0].set_value("idle").run()
    assert set(page.query_params) == {"reason", "sort"}


def test_a_click_that_brings_the_address_of_before_changes_nothing_chosen(app, monkeypatch):
    page = app(metric="ndcg")
    before = dict(page.query_params)

    def come(query):
        page.query_params.clear()
        page.query_params.update(query)

    page.selectbox[0].set_value("mrr").run()
    # The browser does not yet have the new address at the next click.
    come(before)
    page.multiselect[0].set_value(["a"]).run()
    come(before)
    page.run()
    assert [value for value, _sent in now(page)[:2]] == ["mrr", ["a"]]
    assert [page.query_params[each] for each in ("metric", "tag")] in (
        ["mrr", "a"],
        [["mrr"], ["a"]],
    )
    # A new address is a link that was followed.
    come({"metric": "map"})
    assert page.run().selectbox[0].value == "map"
    # The back button is not such a click.
    monkeypatch.setattr(pickers, "gone_back", lambda: True)
    come(before)
    assert page.run().selectbox[0].value == "ndcg"
