"""A presenter's path: open, say the verdict, show where it is worse, one query, price, report."""

import re

import pytest
from playwright.sync_api import expect

from .conftest import serving, visiting

pytestmark = pytest.mark.thorough

# Few enough for two minutes with time to speak.
MOST_CLICKS = 10


@pytest.fixture
def visit(browser, tmp_path):
    with serving(tmp_path / "home") as app, visiting(browser, app, viewport=SCREEN) as opened:
        yield opened


SCREEN = {"width": 1440, "height": 900}


def test_the_sample_is_presented_in_ten_clicks(visit):
    visit.page.add_init_script(
        "addEventListener('click', event => {"
        " if (event.isTrusted) sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1 },"
        " true)"
    )
    visit.open()
    # The verdict, where it is worse and what it costs are on the first screen.
    for text in (
        re.compile(r"^MiniLM cross-encoder is better than First stage: NDCG@10 rises by 13\.9%"),
        re.compile(
            r"^Worse for some kinds of queries: type “exact code” \(24 queries, -0\.\d{3}, not"
        ),
        re.compile(r"^\$0\.24 for 1,000 searches is assumed"),
    ):
        expect(visit.sees(text)).to_be_in_viewport()
    best = visit.page.get_by_role("table", name="Leaderboard").get_by_role("row").nth(1)
    expect(best).to_contain_text(re.compile(r"^\s*MiniLM cross.*0\.759.*\+0\.093.*79 / 26", re.S))
    expect(best).to_be_in_viewport()
    # One query that got worse, and why.
    visit.go("Queries")
    expect(visit.sees("Fault:")).to_be_in_viewport()
    visit.sees("Why:")
    visit.page.get_by_role("button", name="Next").click()
    visit.settle()
    visit.sees("2 of 168")
    # The price.
    visit.go("Cost & ROI")
    visit.sees("Break-even only: the price of MiniLM cross-encoder is an example.")
    # The report.
    visit.go("Report")
    with visit.page.expect_download() as waiting:
        visit.page.get_by_role("button", name="Make the report and save it").click()
    assert waiting.value.suggested_filename == "rankdash_help-centre_report.html"
    shown = visit.page.frame_locator("iframe")
    expect(shown.get_by_role("heading", name="Next step")).to_be_attached()
    assert 5 <= int(visit.page.evaluate("sessionStorage.clicks")) <= MOST_CLICKS
