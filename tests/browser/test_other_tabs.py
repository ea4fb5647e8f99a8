"""Changes by another tab or process: a tab shows them without a click, and they interrupt no user's
input."""

import re

import pytest
from playwright.sync_api import expect

from rankdash.core.workspace import Workspace
from tests.stored import keep_lists, keep_rows

from .conftest import serving, shop_lists, shop_rows, visiting

pytestmark = pytest.mark.thorough


@pytest.fixture
def app(tmp_path):
    home = tmp_path / "home"
    store = Workspace.open(home)
    shop = keep_rows(store, shop_rows(), "Shop")
    keep_lists(store, shop, shop_lists(), "second")
    keep_rows(store, shop_rows().replace("return", "repair"), "Workshop")
    with serving(home) as started:
        yield started


def store_of(app):
    return Workspace.open(app.home)


def named(app, name):
    return next(row.id for row in store_of(app).datasets() if row.name == name)


def chooser(page):
    return page.get_by_test_id("stSidebar").get_by_role("combobox", name="Data set")


def test_a_rename_shows_in_every_tab_and_what_is_typed_there_stays(browser, app, visit):
    shop = named(app, "Shop")
    with visiting(browser, app) as other:
        other.open(f"queries?data={shop}")
        field = other.page.get_by_label("Text or id")
        field.scroll_into_view_if_needed()
        field.press_sequentially("how to re")
        at = other.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")

        visit.open(f"data?data={shop}")
        visit.page.get_by_role("button", name="Rename", exact=True).click()
        visit.page.get_by_role("dialog").get_by_label("Name").fill("Shop of spring")
        visit.page.get_by_role("dialog").get_by_role("button", name="Rename").click()
        expect(chooser(visit.page)).to_have_value("Shop of spring")

        expect(chooser(other.page)).to_have_value("Shop of spring")
        other.settle()
        other.sees(re.compile("^Shop of spring ·"))
        expect(field).to_have_value("how to re")
        expect(field).to_be_focused()
        assert at == other.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")
        field.press_sequentially("turn 7")
        field.press("Enter")
        other.page.wait_for_url(re.compile(r"text=how\+to\+return\+7"))


def test_a_dialog_stays_open_with_what_is_typed_in_it(app, visit):
    store, shop = store_of(app), named(app, "Shop")
    visit.open(f"data?data={shop}")
    visit.page.get_by_role("button", name="Rename", exact=True).click()
    field = visit.page.get_by_role("dialog").get_by_label("Name")
    field.fill("half a na")
    store.rename_dataset(shop, "Shop of spring")
    # When a tab opened later shows a change, this tab has received it before.
    other = visit.page.context.new_page()
    other.goto(visit.url + f"overview?data={shop}")
    expect(chooser(other)).to_have_value("Shop of spring")
    store.rename_dataset(shop, "Shop of summer")
    expect(chooser(other)).to_have_value("Shop of summer")
    expect(field).to_have_value("half a na")
    expect(chooser(visit.page)).to_have_value("Shop")
    # After the dialog is closed, the new name is shown.
    visit.page.keyboard.press("Escape")
    expect(chooser(visit.page)).to_have_value("Shop of summer")
