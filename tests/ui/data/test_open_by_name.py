"""Data sets of collections on the Data page: fetched, read and stored, or an error in words."""

import pytest

from rankdash.errors import DataError
from rankdash.readers import Source
from rankdash.ui.data import open_by_name
from tests.sets import ROOT

ROWS = b"query,document,label\na,b,1\na,c,0\n"
UNMAPPED = b"eins,zwei,drei\na x,b y,1\na x,c z,0\n"


@pytest.fixture
def data(app):
    app.query_params["lang"] = "en"
    app.session_state["data.by_name"] = True
    app.switch_page(str(ROOT / "pages" / "data.py")).run()
    return app


def opened(app, names: str):
    next(field for field in app.text_input if field.label == "Names").set_value(names)
    next(button for button in app.button if button.label == "Open").click().run()
    assert not app.exception
    return app


def test_what_is_named_is_fetched_read_and_chosen(data, workspace, monkeypatch):
    asked = []

    def fetched(names, *, waiting):
        asked.extend(names)
        for _ in range(10):
            waiting()
        return [Source("it/rows.csv", ROWS, "it")]

    monkeypatch.setattr(open_by_name, "sources_by_name", fetched)
    opened(data, " hf:me/it  hf:me/it-qrels ")

    assert asked == ["hf:me/it", "hf:me/it-qrels"]
    (row,) = workspace.datasets()
    assert row.name == "it" and data.query_params["data"] == row.id
    assert "it is ready" in data.success[0].value


def test_what_cannot_be_fetched_is_said_and_the_names_stay(data, workspace, monkeypatch):
    def refused(names, *, waiting):
        raise DataError("The hub at {hub} cannot be reached.", remedy="Check it.", hub="*x*")

    monkeypatch.setattr(open_by_name, "sources_by_name", refused)
    opened(data, "hf:me/it")

    assert r"The hub at \*x\* cannot be reached\. Check it\." in data.error[0].value
    assert next(field for field in data.text_input if field.label == "Names").value == "hf:me/it"
    assert not workspace.datasets()


def test_a_question_about_what_was_fetched_is_asked_in_place_of_the_field(data, monkeypatch):
    monkeypatch.setattr(
        open_by_name, "sources_by_name", lambda names, *, waiting: [Source("x.csv", UNMAPPED)]
    )
    opened(data, "hf:me/it")

    assert r"Which column of x\.csv is which?" in data.warning[0].value
    assert not [field for field in data.text_input if field.label == "Names"]
