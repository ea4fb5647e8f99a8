"""What a run recorded and the kept scores, from the page: a second run of the same pairs costs no
model time, and clearing is asked for first."""

import re

import pytest
from playwright.sync_api import expect

from rankdash.store import Workspace

pytestmark = pytest.mark.thorough

# A model that is loaded for the first time, by a worker that gives way to everything else.
MODEL_MS = 900_000


def start(visit) -> None:
    visit.page.get_by_role("button", name="Start 1 run").click()


def test_a_second_run_takes_its_scores_from_the_first_until_they_are_cleared(visit, app):
    visit.open("run")
    visit.choose_reranker("Bi-encoder")
    start(visit)
    visit.sees("p50 and p95: milliseconds for one query", timeout=MODEL_MS)
    start(visit)
    grid = visit.page.get_by_test_id("stDataFrame").first
    expect(grid.get_by_role("row", include_hidden=True)).to_have_count(3, timeout=MODEL_MS)
    visit.settle()
    # The first box of the list: the newest run.
    grid.click(position={"x": 17, "y": 53})
    visit.sees(re.compile(r"^([\d,]+) of \1 pairs came from the score cache"))
    visit.sees("No query was timed alone")

    workspace = Workspace.open(app.home)
    kept = workspace.score_cache.pairs
    assert kept > 3000
    visit.page.locator("summary", has_text="Score cache").click()
    visit.sees(re.compile(rf"^{kept:,} pairs · [\d.]+ MB of at most 512 MB"))
    visit.settle()
    visit.page.get_by_role("button", name="Clear", exact=True).click()
    dialog = visit.page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"{kept:,} pairs have to be scored again")
    dialog.get_by_role("button", name="Delete").click()
    visit.sees(re.compile(r"^0 pairs · "))
    assert workspace.score_cache.pairs == 0
    assert len(workspace.runs()) == 2
