"""The page Queries in a real browser: filters, keys, and the address that restores its state."""

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from rankdash.core.workspace import Workspace
from rankdash.core.workspace.notes import Corrections
from tests.stored import keep_lists, keep_rows


@pytest.fixture(scope="module")
def compared(app) -> str:
    """Return the id of a data set with a run that reverses every list."""
    rows = "query_id,query,doc_id,document,label,score,kind\n" + "".join(
        f"q{q},how to return gift {q} 如何退货,d{d},document {d},"
        f"{int(d == q % 3)},{3 - d},{'ab'[q % 2]}\n"
        for q in range(8)
        for d in range(3)
    )
    store = Workspace.open(app.home)
    dataset_id = keep_rows(store, rows, "Shop")
    turned = [(f"q{q}", ["d2", "d1", "d0"], [3.0, 2.0, 1.0]) for q in range(8)]
    keep_lists(store, dataset_id, turned, "turned")
    return dataset_id


@pytest.fixture(scope="module")
def long(app) -> str:
    """Return the id of a data set of 1,000 queries with a run."""
    rows = "query_id,query,doc_id,document,label,score\n" + "".join(
        f"q{q},how to return gift {q},d{d},document {d},{int(d == q % 3)},{3 - d}\n"
        for q in range(1000)
        for d in range(3)
    )
    store = Workspace.open(app.home)
    dataset_id = keep_rows(store, rows, "Long")
    turned = [(f"q{q}", ["d2", "d1", "d0"], [3.0, 2.0, 1.0]) for q in range(1000)]
    keep_lists(store, dataset_id, turned, "turned")
    return dataset_id


def opened(visit) -> str:
    """Return the query on the page after the script has ended."""
    visit.settle()
    return visit.page.get_by_role("heading", level=2).first.inner_text()


def test_filter_open_step_by_key_and_come_back_by_the_address(visit, compared):
    visit.open(f"queries?data={compared}")
    visit.sees("1 of 8")
    visit.page.get_by_role("button", name="Filters").click()
    visit.page.get_by_role("combobox", name="Kind of query").click()
    visit.page.get_by_role("option", name="kind: a").click()
    visit.sees("1 of 4")
    # The menu stays open, for the next filter.
    expect(visit.page.get_by_role("combobox", name="Kind of query")).to_be_visible()
    visit.page.keyboard.press("Escape")
    visit.page.get_by_role("heading", name="Queries", level=1).click()
    first = opened(visit)
    visit.page.keyboard.press("j")
    visit.sees("2 of 4")
    second = opened(visit)
    assert second != first
    visit.page.keyboard.press("j")
    visit.sees("3 of 4")
    assert opened(visit) not in (first, second)
    visit.page.keyboard.press("k")
    visit.sees("2 of 4")
    expect(visit.page.get_by_role("heading", name=second)).to_be_visible()
    assert "segment=kind%3Da" in visit.params
    query = re.search(r"(?:^|&)q=(q\d)", visit.params)[1]
    assert second.startswith(f"how to return gift {query[1:]} ")

    link = visit.page.url
    visit.page.goto("about:blank")
    visit.page.goto(link)
    visit.settle()
    visit.sees("2 of 4")
    expect(visit.page.get_by_role("heading", name=second)).to_be_visible()
    assert visit.page.url == link

    visit.page.get_by_role("button", name="Clear filters").click()
    visit.sees("of 8")
    expect(visit.page.get_by_role("heading", name=second)).to_be_visible()
    assert "segment" not in visit.params

    # A part of a bar is a filter, and the list marks the open query.
    # Every control is reached by Tab, and has a name.
    assert visit.stops("queries-tally") == [
        f'button "{each}"'
        for each in ("helped ▲ 2", "same = (±0.005) 3", "hurt ▼ 3", "reranker 6", "perfect 2")
    ]
    assert visit.stops("queries-list") == ['listbox "Queries"']
    chips = ("NDCG@10 1.000 → 0.500 · -0.500 hurt ▼", "irrelevant promoted", "Fault: reranker",
             "Judged@10 100% → 100%")  # fmt: skip
    cards = [
        (f'button "document {doc}"', f'button "{int(doc == 0)} of 1" [pressed]')
        for doc in (0, 1, 2)
    ]
    assert visit.stops("queries-reading") == [
        *(f'listitem "{each}"' for each in chips),
        'combobox "System on the left"', *sum(cards, ()),
        'combobox "System on the right"', *sum(cards[::-1], ()),
    ]  # fmt: skip
    part = visit.page.get_by_role("button", name=re.compile("hurt"))
    part.press("Enter")
    visit.sees(re.compile("of 3$"))
    expect(part).to_have_attribute("aria-pressed", "true")
    assert "outcome=hurt" in visit.params
    part.press("Space")
    visit.sees("of 8")

    # With the keyboard to the second query of the list, and with a click to the third.
    rows = visit.page.get_by_role("listbox", name="Queries")
    options = rows.get_by_role("option")
    for press in (lambda: rows.press("Home"), lambda: rows.press("ArrowDown")):
        press()
    expect(options.nth(1)).to_have_id(rows.get_attribute("aria-activedescendant"))
    rows.press("Enter")
    visit.sees("2 of 8")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    options.nth(2).click()
    visit.sees("3 of 8")
    assert options.nth(2).inner_text().startswith(opened(visit))
    visit.page.keyboard.press("j")
    visit.sees("4 of 8")
    expect(options.nth(3)).to_have_attribute("aria-selected", "true")
    expect(rows.get_by_role("option", selected=True)).to_have_count(1)


def test_a_long_list_is_sent_in_windows_and_shows_what_is_open(visit, long):
    """Rows that are not loaded leave empty space, and scrolling loads them."""
    sent: list[bytes] = []
    visit.page.on("websocket", lambda socket: socket.on("framereceived", partial(sent.append)))
    visit.open(f"queries?data={long}&sort=given")
    rows = visit.page.get_by_role("listbox", name="Queries")
    options = rows.get_by_role("option")
    expect(options).to_have_count(200)
    expect(options.first).to_have_attribute("aria-setsize", "1000")
    height = rows.evaluate("(box) => box.scrollHeight")
    rows.evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    expect(options.last).to_have_attribute("aria-posinset", "1000")
    assert rows.evaluate("(box) => box.scrollHeight") == height
    expect(options.last).to_be_in_viewport()
    # Scrolling opens no other query, and the next step scrolls to the open query.
    visit.sees("1 of 1,000")
    visit.page.keyboard.press("j")
    visit.sees("2 of 1,000")
    selected = rows.get_by_role("option", selected=True)
    expect(selected).to_have_attribute("aria-posinset", "2")
    expect(selected).to_be_in_viewport()
    visit.settle()
    sent.clear()
    visit.page.keyboard.press("j")
    visit.sees("3 of 1,000")
    expect(selected).to_have_attribute("aria-posinset", "3")
    visit.settle()
    # Neither the list nor the filters are sent again.
    assert not [frame for frame in sent if b"how to return gift 7" in frame or b"Kind" in frame]


HOSTILE = "<img src=x onerror=alert(1)> **gift** 礼物 😀"


@pytest.fixture(scope="module")
def unlabelled(app) -> str:
    """Return the id of a data set of 20 queries with a label for the first document only, and a run
    that reverses every list."""
    rows = [
        {"query_id": f"q{q:02}", "query": f"gift {q}", "doc_id": f"q{q:02}d{d}",
         "title": f"{HOSTILE} {d}", "document": f"{HOSTILE} " + "about the gift " * 400,
         "label": 1 if d == 0 else None, "score": 12 - d}
        for q in range(20)
        for d in range(12)
    ]  # fmt: skip
    store = Workspace.open(app.home)
    dataset_id = keep_rows(store, rows, "Unlabelled")
    turned = [(f"q{q:02}", [f"q{q:02}d{d}" for d in range(11, -1, -1)], [*range(12, 0, -1)])
              for q in range(20)]  # fmt: skip
    keep_lists(store, dataset_id, turned, "turned")
    return dataset_id


def test_twenty_queries_are_reviewed_with_three_keys_each(visit, app, unlabelled):
    presses = []

    def press(key: str) -> None:
        presses.append(key)
        visit.page.keyboard.press(key)

    corrections = Corrections(Workspace.open(app.home))
    visit.open(f"queries?data={unlabelled}&sort=given")
    for query in range(20):
        visit.sees(f"{query + 1} of 20")
        visit.settle()
        expect(visit.page.get_by_role("heading", level=2)).to_have_text(f"gift {query}")
        press("2")
        press("0")
        # A grade shows before the server has it.
        given = visit.page.locator("section.side1 .squares").all_inner_texts()
        assert given[0] == "■■" and given[1] in ("□", "□□") and given[2] == "not judged"
        visit.settle()
        press("j")
    assert len(presses) == 60
    best = {(f"q{q:02}", f"q{q:02}d{doc}"): label for q in range(20)
            for doc, label in ((11, 2.0), (10, 0.0))}  # fmt: skip
    visit.until(lambda: {each.pair: each.label for each in corrections.all(unlabelled)} == best)
    expect(visit.page.get_by_role("status")).to_contain_text(re.compile(r"This query .* mean "))
    visit.page.keyboard.press("z")
    visit.until(
        lambda: ("q19", "q19d10") not in {each.pair for each in corrections.all(unlabelled)}
    )
    # The document with the withdrawn grade has the focus.
    focused = visit.page.get_by_role("button", name=f"{HOSTILE} 10").last
    expect(focused).to_be_focused()
    # Its grades are the next stops, and "[" and "]" are the documents before and after it.
    visit.page.keyboard.press("Tab")
    expect(
        visit.page.locator("section.side1 li").nth(1).get_by_role("button").nth(1)
    ).to_be_focused()
    visit.page.keyboard.press("ArrowRight")
    expect(visit.page.get_by_role("button", name="1 of 2")).to_be_focused()
    visit.page.keyboard.press("[")
    expect(visit.page.locator("section.side1 .title").first).to_be_focused()
    visit.page.keyboard.press("]")
    expect(focused).to_be_focused()
    visit.page.keyboard.press("Enter")
    visit.settle()
    card = visit.page.locator("section.side1 li").nth(1)
    expect(card).to_contain_text("document q19d10")
    card.get_by_role("button", name="Show more").click()
    visit.settle()
    expect(card.locator(".whole")).to_have_text(re.compile("(about the gift ){400}"))
    expect(visit.page.locator("li img")).to_have_count(0)
    expect(visit.page.locator("svg path.line")).to_have_count(8)
    visit.page.get_by_role("combobox", name="System on the left").select_option(label="turned")
    visit.page.wait_for_url(re.compile("left="))
    visit.settle()
    expect(visit.page.locator("section.side0 .title").first).to_have_text(f"{HOSTILE} 11")
    visit.page.set_viewport_size({"width": 390, "height": 800})

    def stacked() -> bool:
        left, right = (visit.page.locator(f"section.side{side}").bounding_box() for side in (0, 1))
        return right["y"] >= left["y"] + left["height"]

    visit.until(stacked)


@pytest.mark.thorough
def test_list_and_query_scroll_side_by_side_and_are_below_each_other_in_a_narrow_window(
    visit, compared
):
    visit.open(f"queries?data={compared}")
    rows = visit.page.get_by_role("listbox", name="Queries")
    heading = visit.page.get_by_role("heading", level=2).first
    last = visit.page.locator("li.doc").last
    last.scroll_into_view_if_needed()
    expect(rows).to_be_in_viewport()
    assert rows.bounding_box()["x"] + 300 <= last.bounding_box()["x"]

    # A bar of the overview leads to the heading of its query, however narrow the window.
    visit.page.set_viewport_size({"width": 900, "height": 700})
    visit.go("Overview")
    bars = visit.page.locator("[class*='st-key-overview-deltas'] .barlayer .point path")
    # Lower parts are drawn when they are scrolled into view.
    visit.page.mouse.move(500, 400)
    for _step in range(20):
        if bars.count():
            break
        visit.page.mouse.wheel(0, 400)
        visit.settle()
    bars.last.scroll_into_view_if_needed()
    bars.last.click(force=True)
    expect(visit.page.get_by_role("heading", name="Queries", level=1)).to_be_attached()
    visit.settle()
    expect(heading).to_be_in_viewport()
    assert rows.bounding_box()["height"] == 260
    assert rows.bounding_box()["y"] < heading.bounding_box()["y"]
