"""The Queries page as a person uses it: filters and the open query live in the address."""

import io

import pandas as pd

from rankdash.store.notes.notes import Notes
from rankdash.ui.queries import query_export, query_list_file
from rankdash.ui.sidebar import view
from rankdash.ui.state import pickers
from tests.stored import keep_lists
from tests.ui.parts import drawn
from tests.ui.test_pages import in_address, open_page, texts

FILTERS = {"outcome", "reason", "segment", "text", "state", "delta", "share", "sort"}


def listed(app):
    return app.dataframe[0].value


def press(app, label: str) -> None:
    next(button for button in app.button if button.label == label).click().run()
    assert not app.exception


def test_filters_and_the_open_query_are_written_into_the_address_and_cleared_from_it(app, stored):
    open_page(app, "queries", outcome="helped", segment="kind=b", sort="helped", text="RETURN 1")
    assert list(listed(app)["query"]) == [f"how to return {n}" for n in (11, 10, 14, 13)]
    assert "4 of 16 queries listed" in texts(app)
    assert app.subheader[0].value == "how to return 11", "the first of them"
    press(app, "Clear filters")
    assert len(listed(app)) == 16
    assert not FILTERS - {"sort"} & set(app.query_params)
    app.multiselect(key="address.outcome").select("same").run()
    app.slider(key="address.delta").set_value((0.0, 0.2)).run()
    app.text_input(key="address.text").set_value("q12").run()
    assert in_address(app, "outcome") == ["same"]
    assert in_address(app, "delta") == ["0..0.2"]
    assert in_address(app, "text") == ["q12"]
    assert list(listed(app)["query"]) == ["how to return 12"]
    press(app, "Clear filters")
    assert app.subheader[0].value == "how to return 12", "the query that was open stays open"
    open_page(app, "queries", sort="-text")
    order = sorted((f"how to return {n}" for n in range(16)), reverse=True)
    assert list(listed(app)["query"]) == order
    for label in ("Next", "Next", "Previous"):
        press(app, label)
    place = order.index("how to return 12") + 1
    assert app.subheader[0].value == order[place] == "how to return 11"
    assert f"{place + 1} of 16" in texts(app)
    assert in_address(app, "q") == ["q11"]


def test_cards_are_those_of_the_chosen_system_and_a_failed_one_has_none(app, workspace, stored):
    lists = [(f"q{q}", [f"d{d}" for d in (3, 2, 1, 0)], [4.0, 3.0, 2.0, 1.0]) for q in range(16)]
    reader = keep_lists(workspace, stored, lists, "reader")

    def first_card() -> str:
        found = "".join(element.proto.body for element in app.get("html"))
        return found.split("<div class='rd-card")[1]

    open_page(app, "queries", q="q3", vs=reader.id, sort="disagreement")
    assert "document d3" in first_card() and "= better 1" in first_card()
    # Systems may disagree where there is more than one challenger.
    spread = listed(app)["spread"]
    assert spread.is_monotonic_decreasing and spread.iloc[0] > 0
    app.button_group(key="address.cards").set_value("first-stage").run()
    assert "document d0" in first_card()
    assert in_address(app, "cards") == ["first-stage"]
    assert "better has no result here." in texts(open_page(app, "queries", q="q15"))
    assert "better" not in str(app.get("plotly_chart")[-1].proto)


def test_the_state_is_shown_where_some_query_is_not_ok(app, stored):
    open_page(app, "queries")
    shown = listed(app).set_index("query")["state"]
    assert "state" in app.dataframe[0].proto.column_order
    assert app.dataframe[0].proto.placeholder == "–"
    assert shown[shown != ""].to_dict() == {"how to return 15": "failed"}
    assert listed(app)["bar"].isna().sum() == 1, "a failed query has no bar"
    app.multiselect(key="address.outcome").select("helped").run()
    assert "state" not in app.dataframe[0].proto.column_order


def test_the_list_as_csv_is_in_english_and_runs_no_formula():
    table = pd.DataFrame(
        {
            "query_id": ["q1", "q15"],
            "text": ["怎么退货", "=1+1"],
            "before": [0.5, 0.25],
            "after": [1.0, 0.5],
            "delta": [0.5, 0.25],
            "reason": ["rescued", "mixed"],
            "state": "ok",
        }
    )
    marks = pd.DataFrame({"query_id": ["q15"], "tags": ["=1+1"], "note": ["n"]})
    written = query_list_file.as_csv(table, marks, ("First stage", "=better"))
    expected = table.assign(text=["怎么退货", "'=1+1"], tags=["", "'=1+1"], note=["", "n"])
    expected.insert(2, "baseline", "First stage")
    expected.insert(3, "challenger", "'=better")
    read = pd.read_csv(io.BytesIO(written)).fillna("")
    pd.testing.assert_frame_equal(read, expected, check_dtype=False)


def test_a_saved_query_says_what_its_reason_rests_on(workspace, stored):
    made = []
    Notes(workspace).keep(stored, "q3", ["odd"], "look here")

    def save() -> None:
        pickers.restore()
        study = view.study("queries")
        made.append(query_export.html(study, study.challengers[0], "q3", "en").decode())

    drawn(save, data=stored, system=workspace.runs(stored)[0].id)
    assert "<strong>relevant moved up</strong> · Relevant documents moved up." in made[0]
    assert "The document: “document 3”, label 1." in made[0]
    assert "look here" in made[0]
