"""Pages without anything to show: what they will show, and the one button that gets there."""

import pytest

from tests.stored import keep_rows
from tests.ui.conftest import ROWS
from tests.ui.test_pages import open_page, texts

COMPARING = ("queries", "rank_shifts", "cost", "report")
EMPTY = "This page will show:"


def only_button(app):
    (button,) = [each for each in app.button if each.key == "empty_page.next"]
    assert button.proto.type == "primary"
    return button


@pytest.mark.parametrize("page", ["overview", "latency", "history", "run", *COMPARING])
def test_without_data_the_button_opens_data(app, workspace, page):
    assert EMPTY in texts(open_page(app, page))
    only_button(app).click().run()
    assert [title.value for title in app.title] == ["Data"]
    assert EMPTY in texts(app)


@pytest.mark.parametrize("page", ["overview", "latency", "history", *COMPARING])
def test_with_only_the_first_stage_the_button_opens_run(app, workspace, page):
    keep_rows(workspace, ROWS, "Shop")
    assert EMPTY in texts(open_page(app, page))
    only_button(app).click().run()
    assert [title.value for title in app.title] == ["Run"]
    assert EMPTY not in texts(app)


def test_overview_shows_the_baseline_all_the_same(app, workspace):
    keep_rows(workspace, ROWS, "Shop")
    assert open_page(app, "overview").metric


@pytest.mark.parametrize("page", ["overview", *COMPARING])
def test_where_no_system_is_chosen_the_button_compares_the_newest(app, stored, page):
    open_page(app, page)
    app.multiselect(key="address.system").set_value([]).run()
    assert "No system chosen" in texts(app)
    only_button(app).click().run()
    assert EMPTY not in texts(app)
    assert app.multiselect(key="address.system").value


def test_a_page_that_only_shows_has_no_button(app, monkeypatch, workspace):
    keep_rows(workspace, ROWS, "Shop")
    monkeypatch.setattr("rankdash.ui.sidebar.empty_page.read_only", lambda: True)
    assert EMPTY in texts(open_page(app, "queries"))
    assert not [each for each in app.button if each.key == "empty_page.next"]


@pytest.mark.parametrize(
    ("language", "heads"),
    [("en", ["Prepare", "Evaluate", "Decide"]), ("zh", ["准备", "评测", "决策"])],
)
def test_the_menu_is_in_the_order_of_work(app, stored, language, heads):
    open_page(app, "overview", lang=language)
    links = [each.proto.page.rpartition("/")[2] for each in app.sidebar.get("page_link")]
    assert links == [
        *("data", "run", "label", "judge", "", "queries", "rank_shifts", "latency"),
        *("cost", "report", "history"),
    ]
    assert [each.value for each in app.sidebar.caption][:3] == heads
