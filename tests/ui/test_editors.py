"""Tables that a person edits: an empty cell is a dash, not the English word of a library."""

from tests.ui.test_pages import open_page


def placeholders(app) -> list[str]:
    return [each.proto.placeholder for each in app.dataframe if each.proto.editing_mode]


def test_an_empty_target_is_a_dash(app, stored):
    app.session_state["overview.targets"] = True
    open_page(app, "overview")
    assert placeholders(app) == ["–"]


def test_an_empty_field_of_a_price_is_a_dash(app, stored):
    open_page(app, "cost", part="prices")
    assert placeholders(app) == ["–"]
