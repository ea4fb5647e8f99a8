"""Links to the queries of a reason, and to the queries of a cell of the rank shifts."""

import re

from playwright.sync_api import expect

from rankdash.core.workspace import Workspace
from tests.browser.conftest import Visit
from tests.stored import keep_lists, keep_rows

DOCS = [f"d{place}" for place in range(12)]
SCORES = [40.0, 33.0, 30.0, 24.0, 21.0, 17.0, 14.0, 9.0, 8.0, 5.0, 4.0, 1.0]


def store(workspace: Workspace) -> str:
    """Store six queries: the first two lose their one relevant document, the others gain it."""
    rows = [
        {"query_id": f"q{q}", "query": f"about q{q}", "doc_id": doc, "title": f"title of {doc}",
         "document": "text", "label": 1 if doc == ("d0" if q < 2 else "d11") else None,
         "score": score}
        for q in range(6)
        for doc, score in zip(DOCS, SCORES, strict=True)
    ]  # fmt: skip
    dataset_id = keep_rows(workspace, rows, "Shop")
    keep_lists(workspace, dataset_id, [(f"q{q}", DOCS[::-1], SCORES) for q in range(6)], "turned")
    keep_lists(workspace, dataset_id, [(f"q{q}", DOCS, SCORES) for q in range(6)], "same")
    return dataset_id


def choose_systems(visit: Visit) -> None:
    """Choose in the leaderboard, which is on the first screen together with the verdict."""
    expect(visit.sees(re.compile("^Too few queries to compare turned"))).to_be_in_viewport()
    board = visit.page.get_by_role("table", name="Leaderboard")
    rows, heads = board.get_by_role("row"), board.get_by_role("columnheader")
    expect(rows.last).to_be_in_viewport()
    assert [row.get_by_role("rowheader").inner_text() for row in rows.all()[1:]] == [
        "turned", "First stage", "same"
    ]  # fmt: skip
    assert visit.stops("overview-leaderboard") == [
        *(f'button "{each}"' for each in ("System", "Verdict", "NDCG@10", "Change 95% interval")),
        'button "Helped / hurt queries"',
        *('checkbox "turned" [checked]', 'button "turned" [pressed]'),
        *('checkbox "same" [checked]', 'button "same"'),
    ]
    heads.filter(has_text="System").get_by_role("button").press("Enter")
    expect(heads.first).to_have_attribute("aria-sort", "ascending")
    expect(rows.nth(1)).to_contain_text("First stage")
    # A click on a row shows its system.
    board.get_by_role("button", name="same", exact=True).click()
    visit.sees(re.compile("^Too few queries to compare same"))
    expect(board.get_by_role("button", name="same", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    # After a checkbox is cleared, its row has no numbers, and the focus does not move.
    tick = visit.page.get_by_role("checkbox", name="same", exact=True)
    tick.press("Space")
    visit.sees("1 run is not shown")
    visit.sees(re.compile("^Not proven that turned"))
    expect(rows.filter(has=tick).get_by_role("cell")).to_have_count(0)
    expect(tick).to_be_focused()
    visit.page.get_by_role("button", name="Add to the comparison").click()
    expect(tick).to_be_checked()
    expect(rows.filter(has=tick).get_by_role("cell")).not_to_have_count(0)
    board.get_by_role("button", name="turned", exact=True).click()
    visit.sees(re.compile("^Too few queries to compare turned"))
    assert visit.params.count("system=") == 2


def test_a_reason_on_the_overview_leads_to_its_queries_and_each_says_why(visit, app):
    visit.open(f"?data={store(Workspace.open(app.home))}")
    choose_systems(visit)
    # Lower parts are drawn when they are scrolled into view; the keyboard reaches all of them.
    lost = visit.page.get_by_role("button", name=re.compile("^relevant dropped out"))
    visit.page.mouse.move(900, 400)
    for _step in range(20):
        if lost.count():
            break
        visit.page.mouse.wheel(0, 400)
        visit.settle()
    # Parts that are now visible are drawn before the test uses them.
    lost.scroll_into_view_if_needed()
    visit.settle()
    assert visit.stops("overview-reasons") == [
        'button "relevant moved up +0.667 4 queries"',
        'button "relevant dropped out −0.333 2 queries"',
    ]
    lost.focus()
    visit.settle()
    lost.press("Enter")
    expect(visit.page.get_by_role("heading", name="Queries", level=1)).to_be_visible()
    visit.settle()
    assert "reason=buried" in visit.params
    visit.sees("1 of 2")
    visit.page.locator(".chip", has_text="relevant dropped out").hover()
    visit.sees("A relevant document dropped out of the top ranks.")
    visit.sees("title of d0")
    visit.page.get_by_text("Details", exact=True).click()
    visit.sees(re.compile(r"1 relevant document dropped out of the top 10 \(1 → 12\)"))
    chart = visit.page.locator(".st-key-queries-waterfall")
    expect(chart).to_contain_text("▼ −1.000")
    expect(chart).to_contain_text("1 → 12 · label 1")
    visit.go("Rank shifts")
    visit.sees("4 came in, 2 dropped out, 0 stayed")
    visit.page.get_by_text("Queries, most reordered first").scroll_into_view_if_needed()
    for name in ("Ranks in First stage", "Relevant documents: 6", "Agreement of each pair"):
        expect(visit.page.get_by_label(re.compile(name)).first).to_be_attached()
    # A cell of the map lists its documents.
    cells = visit.page.locator(".js-plotly-plot").filter(has_text="moved up").first
    lifted = cells.locator(".textpoint").filter(has_text="▲ 4").first
    lifted.scroll_into_view_if_needed()
    lifted.click(force=True)
    visit.sees("From 11–20 to 1: 4 documents.")
    visit.settle()
    # A mark of the chart is a query: a click opens it.
    visit.go("Policy")
    visit.page.get_by_role("radio", name="Skip").check(force=True)
    visit.page.get_by_text("Change by reranking against the margin").click()
    chart = visit.page.locator(".js-plotly-plot").filter(has_text="change in NDCG@10").first
    chart.scroll_into_view_if_needed()
    chart.locator(".scatterlayer .points path").first.click(force=True)
    expect(visit.page.get_by_role("heading", name="Queries", level=1)).to_be_visible()
    visit.settle()
    assert re.search(r"[?&]q=q\d+", visit.page.url)
