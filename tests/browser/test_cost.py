"""The Cost page in a real browser: a slider, and the link to the displayed state."""

import json
import re

import pytest
from playwright.sync_api import expect

from rankdash.core.workspace import Workspace
from tests.stored import keep_lists, keep_rows

from .conftest import visiting

QUERIES, BEFORE, AFTER = 100, 72, 87


@pytest.fixture(scope="module")
def shop(app) -> str:
    """The published example: hit@1 rises from 0.72 to 0.87. The name of the run is a formula, a
    link and markup at the same time. Returns the data set and the run's price, for an address."""
    rows = "query_id,query,doc_id,document,label,score\n" + "".join(
        f"q{q},question {q},d{d},words of document {d},{int(d == 0)},{score}\n"
        for q in range(QUERIES)
        for d, score in ((0, 2 if q < BEFORE else 0), (1, 1))
    )
    workspace = Workspace(app.home)
    # Results with an example price show no verdict, so this price is the user's own.
    price = {"key": "flat", "provider": "Flat", "unit": "search", "amount": 2.0,
             "source": "a test", "as_of": "2026-11-21"}  # fmt: skip
    workspace.set_setting("prices", json.dumps({"prices": [price]}))
    dataset_id = keep_rows(workspace, rows, "Shop")
    order = [("d0", "d1") if q < AFTER else ("d1", "d0") for q in range(QUERIES)]
    lists = ((f"q{q}", docs, [2.0, 1.0]) for q, docs in enumerate(order))
    name = "=cmd|'/c' <img src=x> [go](http://x.y) $1$"
    run = keep_lists(workspace, dataset_id, lists, "better", name)
    return f"{dataset_id}&price={run.id}=flat&value_per_search=0.010"


def answer(visit) -> str:
    return str(visit.page.get_by_text(re.compile(r"^.*Net .* per month\.$")).first.inner_text())


def chart(visit) -> str:
    return str(visit.page.locator(".js-plotly-plot").first.text_content())


def test_three_inputs_move_the_chart_at_once_and_the_link_restores_it(visit, browser, app, shop):
    visit.open(f"cost?data={shop}&metric=hit&k=1")
    visit.sees("pays off under these assumptions")
    before, drawn = answer(visit), chart(visit)
    slider = visit.page.get_by_role("slider", name=re.compile("Value of a search"))
    slider.focus()
    slider.press("ArrowRight")
    visit.page.wait_for_url(re.compile(r"value_per_search=0\.02"))
    visit.settle()
    now = answer(visit)
    assert now != before and chart(visit) != drawn
    # The answer stays visible at the top while the user changes numbers further down.
    top = "document.querySelector('.st-key-stays-in-sight').getBoundingClientRect().top"
    visit.page.get_by_text("More assumptions").click()
    slider = visit.page.get_by_role("slider", name=re.compile("Value gained for each 1%"))
    slider.focus()
    slider.press("ArrowLeft")
    visit.page.wait_for_url(re.compile(r"elasticity=0\.99"))
    visit.page.get_by_role("button", name="Restore the defaults").scroll_into_view_if_needed()
    visit.page.wait_for_function(f"() => {top} === 0")
    # In a narrow window the inputs are below the chart.
    visit.page.set_viewport_size({"width": 900, "height": 900})
    slider.scroll_into_view_if_needed()
    visit.page.wait_for_function(f"() => {top} === 0")
    visit.page.set_viewport_size({"width": 1280, "height": 900})
    visit.page.get_by_role("heading", name="Cost & ROI").scroll_into_view_if_needed()
    visit.page.wait_for_function(f"() => {top} > 50")
    visit.settle()
    with visiting(browser, app) as another:
        another.page.goto(visit.page.url)
        another.settle()
        assert answer(another) == answer(visit) != now
        # The name of the run is not rendered as markup, and every figure is a number.
        page = another.page.get_by_test_id("stMain")
        name = page.locator(".js-plotly-plot text", has_text="=cmd|'/c' <img")
        expect(name).to_be_visible()
        assert page.locator("img[src='x'], a[href^='http://x']").count() == 0
        assert not re.search(r"\b(nan|inf|infinity|undefined)\b", page.inner_text(), re.IGNORECASE)


@pytest.mark.thorough
def test_a_link_that_was_drawn_before_a_slider_moved_does_not_take_it_back(visit, shop):
    visit.open(f"cost?data={shop}&lang=en")

    def slide():
        slider = visit.page.get_by_role("slider", name=re.compile("Searches per day"))
        slider.focus()
        slider.press("ArrowLeft")

    slide()
    visit.page.wait_for_url(re.compile(r"searches_per_day=50000"))
    visit.settle()
    before = answer(visit)
    visit.go("Overview")
    assert "searches_per_day=50000" in visit.params
    visit.go("Cost & ROI")
    visit.sees(before)
    slide()
    visit.page.wait_for_url(re.compile(r"searches_per_day=30000"))
    visit.settle()
    # The back button returns to the slider's start value.
    visit.page.go_back()
    visit.sees(before)
