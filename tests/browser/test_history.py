"""The page History: pin, note, compare two runs, go back; a new session shows the pin."""

import re

from playwright.sync_api import Locator, expect

from rankdash.core.workspace import Workspace
from rankdash.core.workspace.notes import Pins, RunNotes
from tests.stored import keep_lists, keep_rows

from .conftest import shop_lists, shop_rows, visiting

# The checkboxes of the table, from top to bottom, the newest run first.
FIRST_ROW, ROW = 53, 35
HOSTILE = "![x](http://evil.invalid/x.png) <img src=http://evil.invalid/y.png>"


def two_runs(home) -> tuple[str, str, str]:
    """Return the ids of a data set and of two runs of it, the first of which is worse."""
    store = Workspace.open(home)
    dataset_id = keep_rows(store, shop_rows(), "Shop")
    ids = [
        keep_lists(store, dataset_id, shop_lists(step=step), name).id
        for name, step in (("Turned round", 3), ("As it was", 1))
    ]
    return dataset_id, *ids


def choose(visit, place: int) -> None:
    table = visit.page.get_by_test_id("stDataFrame").first
    table.click(position={"x": 17, "y": FIRST_ROW + ROW * place})
    visit.settle()


def baseline(visit) -> Locator:
    return visit.page.get_by_role("combobox", name="Baseline")


def test_pin_note_compare_and_back_and_a_fresh_session_sees_them(visit, app, browser):
    dataset_id, turned, straight = two_runs(app.home)
    workspace = Workspace.open(app.home)
    visit.open(f"history?data={dataset_id}")
    visit.open_settings()
    visit.sees("use the same")
    choose(visit, 0)
    visit.page.get_by_role("button", name="Pin as baseline").click()
    expect(baseline(visit)).to_have_value("As it was (pinned)")
    assert Pins(workspace).of(dataset_id) == straight
    assert f"base={straight}" in visit.params
    note = visit.page.get_by_label("Note on this run")
    note.fill(HOSTILE)
    note.press("Control+Enter")
    visit.sees(re.compile("^Saved .* UTC$"))
    assert RunNotes(workspace).of(straight).text == HOSTILE

    choose(visit, 1)
    visit.sees("Turned round is worse than As it was")
    visit.sees("Differences")
    visit.page.get_by_role("button", name="Open on Overview").click()
    expect(visit.page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    visit.sees("Turned round is worse than As it was")
    assert f"base={straight}" in visit.params
    assert f"system={turned}" in visit.params
    visit.settle()
    visit.page.go_back()
    visit.sees("Differences")

    with visiting(browser, app) as other:
        other.page.set_viewport_size({"width": 1700, "height": 900})
        other.open(f"history?data={dataset_id}")
        other.open_settings()
        expect(baseline(other)).to_have_value("As it was (pinned)")
        assert f"base={straight}" in other.params
        cell = other.page.get_by_role("gridcell", name=HOSTILE, include_hidden=True)
        expect(cell).to_have_count(1)
