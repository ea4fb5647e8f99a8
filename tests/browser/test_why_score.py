"""What a score hangs on, asked for in a real browser, made by the real worker, and kept."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from rankdash.analysis.reasons.occlusion import Explanation, Stage, TextPart
from rankdash.rerankers import create
from rankdash.runs.runner import rerank
from rankdash.store import Workspace, checksums
from rankdash.store.jobs.explanations import Asked, Explanations
from rankdash.store.jobs.leases import Owner
from tests.browser.conftest import serving, visiting
from tests.stored import keep_rows

pytestmark = pytest.mark.thorough

HOSTILE = "<img src=x onerror='window.hacked=1'> ![pic](http://evil.invalid/a.png) "
TEXTS = (f"{HOSTILE} You return a gift in the shop.", "退货需要小票", "Opening hours")


def keep_shop(home) -> str:
    """The address of a query of a data set that BM25 has reranked, in a workspace."""
    rows = [
        {"query_id": "q", "query": "how to return a gift", "doc_id": f"d{n}", "document": text,
         "label": int(n == 0), "score": n}
        for n, text in enumerate(TEXTS)
    ]  # fmt: skip
    store = Workspace(home)
    dataset_id = keep_rows(store, rows, "Shop")
    run = replace(rerank(store.dataset(dataset_id), create("bm25")), id="words", name="words")
    store.save_run(run)
    return f"queries?data={dataset_id}&system=words&q=q"


def test_a_score_is_explained_on_demand_and_kept(visit, app):
    page = visit.page
    visit.open(keep_shop(app.home))
    page.get_by_text("Why this score?").click()
    visit.sees("This is an approximation")
    visit.sees("Cost: 18 pairs to score")
    visit.settle()
    page.get_by_role("button", name="Find out what the score depends on").click()
    gift = page.locator("mark", has_text="gift").and_(page.get_by_title("+0."))
    expect(gift).to_be_visible()
    visit.settle()
    style = gift.evaluate("each => getComputedStyle(each).textDecorationStyle")
    assert style == "solid"
    longer = page.locator("mark", has_text="shop").and_(page.get_by_title("-0."))
    style = longer.evaluate("each => getComputedStyle(each).textDecorationStyle")
    assert style == "wavy", "BM25 marks down what makes a document longer"
    assert page.evaluate("window.hacked") is None

    page.get_by_text("sentences of the document").click()
    visit.sees("No text would be left to score without any one part")
    assert "leave=sentence" in visit.params
    page.get_by_text("words of the document").click()
    expect(gift).to_be_visible()
    again = page.get_by_role("button", name="Find out what the score depends on")
    expect(again).to_have_count(0)


def test_what_a_silent_worker_finds_in_the_end_is_shown(browser, tmp_path):
    home = tmp_path / "home"
    link = keep_shop(home)
    rows, worker = Explanations(Workspace(home)), Owner()
    number = rows.ask(Asked("words", "q", "d0", "term"))
    rows.claim(worker)
    with closing(sqlite3.connect(home / "rankdash.sqlite")) as db, db:
        checksums.teach(db)
        db.execute("UPDATE explanations SET heartbeat = 0")
    with serving(home) as app, visiting(browser, app) as visit:
        visit.open(link)
        visit.page.get_by_text("Why this score?").click()
        visit.sees("It was interrupted: the worker ended.")
        part = Stage("term", (TextPart(((0, 4),)),), (0.5,))
        assert rows.finish(number, worker, "done", result=Explanation(1.5, (part,), 8, 8).to_json())
        expect(visit.page.locator("mark").and_(visit.page.get_by_title("+0.5"))).to_be_visible()
