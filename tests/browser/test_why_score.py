"""The explanation of a score, which a page shows when a worker has finished it."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from rankdash.core.data.explanation import Explanation, Stage, TextPart
from rankdash.core.rerankers import create
from rankdash.core.runs.runner import rerank
from rankdash.core.workspace import Workspace, checksums
from rankdash.core.workspace.jobs.leases import ExplanationRequest, Explanations, Owner
from tests.browser.conftest import serving, visiting
from tests.stored import keep_rows

pytestmark = pytest.mark.thorough


def test_what_a_silent_worker_finds_in_the_end_is_shown(browser, tmp_path):
    """The worker of the page, which computes an explanation, has a test in tests/ui/queries."""
    store = Workspace(tmp_path / "home")
    row = {"query_id": "q", "query": "a gift", "doc_id": "d0", "document": "Gift shop", "label": 1}
    dataset_id = keep_rows(store, [row], "Shop")
    store.save_run(replace(rerank(store.dataset(dataset_id), create("bm25")), id="words"))
    rows, worker = Explanations(store), Owner()
    number = rows.ask(ExplanationRequest("words", "q", "d0", "term"))
    rows.claim(worker)
    with closing(sqlite3.connect(store.root / "rankdash.sqlite")) as db, db:
        checksums.teach(db)
        db.execute("UPDATE explanations SET heartbeat = 0")
    with serving(store.root) as app, visiting(browser, app) as visit:
        visit.open(f"queries?data={dataset_id}&system=words&q=q")
        visit.page.get_by_text("Details", exact=True).click()
        visit.page.get_by_text("Why this score?").click()
        visit.sees("The calculation was interrupted because the worker process ended.")
        part = Stage("term", (TextPart(((0, 4),)),), (0.5,))
        assert rows.finish(number, worker, "done", result=Explanation(1.5, (part,), 8, 8).to_json())
        expect(visit.page.locator("mark").and_(visit.page.get_by_title("+0.5"))).to_be_visible()
