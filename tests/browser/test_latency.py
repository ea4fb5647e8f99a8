"""A run with measured throughput, and its page Latency, in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from rankdash.core.workspace import Workspace
from tests.stored import keep_rows

from .conftest import RUN_MS, shop_rows


@pytest.fixture
def shop(app) -> str:
    return keep_rows(Workspace(app.home), shop_rows(80, 8), "Shop")


def test_measure_a_run_and_read_its_latency(visit, shop):
    page = visit.page
    visit.open(f"run?data={shop}")
    visit.choose_reranker("BM25")
    page.get_by_text("Measurements", exact=True).click()
    page.get_by_label("Seconds per concurrency level").fill("1")
    page.keyboard.press("Enter")
    # A click before the rerun ends may reach a button that is being replaced.
    visit.settle()
    page.get_by_role("button", name="2", exact=True).click()
    visit.sees("Adds about 1.0 s to each run.")
    page.get_by_role("button", name="Start 1 run").click()
    visit.sees("Compare on Overview", timeout=RUN_MS)

    visit.go("Latency")
    visit.sees("Within 500 ms for 95% of queries: BM25.")
    chart = page.get_by_label(re.compile("Latency of a query in milliseconds. BM25: p50"))
    expect(chart.first).to_be_attached()
    # A click in a row shows its details, and a second click hides them.
    row = page.locator(".stPlotlyChart .nsewdrag").first
    row.click(position={"x": 100, "y": 20})
    page.wait_for_url(re.compile("row="))
    visit.sees("80 of 80 queries within the target")
    row.click(position={"x": 100, "y": 20})
    expect(page.get_by_text("80 of 80 queries within the target")).to_be_hidden()
    page.get_by_text("Distribution", exact=True).click()
    expect(page.get_by_label(re.compile("Share of queries answered within")).first).to_be_attached()
    page.wait_for_url(re.compile("latency=distribution"))
    page.get_by_text("Details of each system").click()
    visit.sees(re.compile(r"80 queries, 95% interval .* 8 documents each"))
    visit.sees("80 of 80 queries within the target")
    # Lower parts are drawn when they are scrolled into view.
    page.get_by_text("Machine, load and versions").scroll_into_view_if_needed()
    page.mouse.wheel(0, 2000)
    visit.sees(re.compile(r"serves .* queries/s within 500 ms \(concurrency 2"))
    rate = page.get_by_label(re.compile("Queries per second by concurrent queries"))
    expect(rate.first).to_be_attached()
    # The user enters a target, and the address contains it.
    target = page.get_by_role("combobox", name=re.compile("Target"))
    target.fill("1500")
    target.press("Enter")
    page.wait_for_url(re.compile("target=1500"))
    visit.sees("Within 1,500 ms for 95% of queries: BM25.")
    page.get_by_text("Machine, load and versions").click()
    expect(page.get_by_label("Machine of each run").first).to_be_attached()
