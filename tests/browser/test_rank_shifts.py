"""From all documents to one query, in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from rankdash.store import Workspace
from tests.stored import keep_lists, keep_rows

QUERIES, DOCS = 40, 12


@pytest.fixture
def shop(app) -> str:
    """A set whose run lifts each relevant document from rank 12 to 1, in the app's workspace."""
    rows = "query_id,query,doc_id,document,label,score\n" + "".join(
        f"q{q},how to return {q},d{d},document {d},{int(d == DOCS - 1)},{DOCS - d + q * (d == 0)}\n"
        for q in range(QUERIES)
        for d in range(DOCS)
    )
    workspace = Workspace(app.home)
    dataset_id = keep_rows(workspace, rows, "Shop")
    order = [f"d{d}" for d in (DOCS - 1, *range(DOCS - 1))]
    lists = [(f"q{q}", order, [float(DOCS - d) for d in range(DOCS)]) for q in range(QUERIES)]
    keep_lists(workspace, dataset_id, lists, "lifted")
    return dataset_id


def test_from_the_page_on_shifts_to_a_query(visit, shop):
    visit.open(f"?data={shop}")
    visit.go("Rank shifts")
    visit.sees("40 came in, 0 dropped out, 0 stayed")
    visit.sees("Rerank everything.")
    for name in ("Ranks in First stage", "Relevant documents: 40", "Agreement of each two"):
        expect(visit.page.get_by_label(re.compile(name)).first).to_be_attached()
    visit.page.get_by_role("radio", name="All documents").click()
    visit.page.wait_for_url(re.compile("documents=all"))
    visit.settle()
    # A cell of the map lists its documents: each relevant one rose from rank 12 to 1.
    cells = visit.page.locator(".js-plotly-plot").filter(has_text="moved up").first
    lifted = cells.locator(".textpoint").filter(has_text="▲ 40").first
    lifted.scroll_into_view_if_needed()
    lifted.click(force=True)
    visit.sees("From 11–20 to 1: 40 documents.")
    visit.settle()
    # A mark of the chart is a query: clicking it opens that query.
    chart = visit.page.locator(".js-plotly-plot").filter(has_text="change in NDCG@10").first
    chart.scroll_into_view_if_needed()
    mark = chart.locator(".scatterlayer .points path").first
    mark.click(force=True)
    expect(visit.page.get_by_role("heading", name="Queries", level=1)).to_be_visible()
    visit.settle()
    assert re.search(r"[?&]q=q\d+", visit.page.url)
