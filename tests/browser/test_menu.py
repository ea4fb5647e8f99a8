"""The links between the pages: one step back each, and each of them opens what is chosen."""

import re

import pytest
from playwright.sync_api import expect

from rankdash.store import Workspace
from tests.stored import keep_lists, keep_rows

from .conftest import shop_lists, shop_rows, visiting

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def filled(app) -> tuple[str, str]:
    """The ids of a data set and of its run."""
    workspace = Workspace(app.home)
    dataset_id = keep_rows(workspace, shop_rows(), "Shop")
    return dataset_id, keep_lists(workspace, dataset_id, shop_lists(), "better").id


def link(visit, name: str):
    return visit.page.get_by_test_id("stSidebar").get_by_role("link", name=name)


def test_going_back_is_one_step_and_a_link_opens_elsewhere_what_is_chosen(
    visit, browser, app, filled
):
    dataset_id, run_id = filled
    visit.open(f"?data={dataset_id}&metric=mrr&k=5&lang=en")
    visit.sees("MRR@5")
    visit.go("Rank shifts")
    visit.go("History")
    assert {"metric=mrr", "k=5", f"system={run_id}"} < set(visit.params.split("&"))
    visit.page.go_back()
    expect(visit.page.get_by_role("heading", name="Rank shifts", level=1)).to_be_visible()
    visit.settle()
    visit.page.go_back()
    expect(visit.page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    visit.settle()
    assert {"metric=mrr", "k=5"} < set(visit.params.split("&"))
    # As when a link is opened in a tab of its own.
    with visiting(browser, app, locale="zh-CN") as other:
        other.page.goto(visit.url + str(link(visit, "Queries").get_attribute("href")))
        other.sees("MRR@5")
        expect(other.page.get_by_role("heading", name="Queries", level=1)).to_be_visible()


def test_a_link_that_was_drawn_before_a_slider_moved_does_not_take_it_back(visit, filled):
    dataset_id, _run = filled
    visit.open(f"cost?data={dataset_id}&value_per_search=0.010&lang=en")
    slider = visit.page.get_by_role("slider", name=re.compile("Value gained for each 1%"))
    slider.focus()
    slider.press("ArrowLeft")
    visit.page.wait_for_url(re.compile(r"elasticity=0\.99"))
    visit.settle()
    visit.go("Overview")
    assert "elasticity=0.99" in visit.params
    visit.go("Cost & ROI")
    visit.sees(re.compile("brings 0.99% more value"))
    slider.focus()
    slider.press("ArrowLeft")
    visit.page.wait_for_url(re.compile(r"elasticity=0\.98"))
    visit.settle()
    # Back to where it had not moved yet, on the page itself.
    visit.page.go_back()
    visit.sees(re.compile("brings 0.99% more value"))
