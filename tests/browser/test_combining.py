"""A cascade of a plugin and BM25, and a combination of stored runs, in a real browser."""

import os
import re

import pytest
from playwright.sync_api import expect

from tests.documented import plugin

pytestmark = pytest.mark.thorough

RUN_MS = 900_000


@pytest.fixture
def app(app_of_test):
    return app_of_test


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """The server starts with the example of the docs and a plugin that is broken."""
    good, broken = tmp_path / "shortest.py", tmp_path / "broken.py"
    good.write_text(plugin())
    broken.write_text("KIND = nothing")
    monkeypatch.setenv("RANKDASH_PLUGINS", os.pathsep.join(map(str, (good, broken))))


def choose(visit, field: str, *options: str) -> None:
    box = visit.page.get_by_role("combobox", name=field)
    for option in options:
        box.click()
        box.press_sequentially(option)
        visit.page.get_by_role("option", name=option, exact=True).click()
        # A second click before the first has arrived would be made on the list of before.
        visit.settle()
    visit.page.keyboard.press("Escape")
    visit.settle()


def test_new_kinds_run_and_stored_runs_are_combined(plugins, visit):
    visit.open("run")
    visit.sees(re.compile(r"broken\.py is not loaded"))
    visit.choose_reranker("Cascade")
    choose(visit, "First reranker", "Shortest first")
    choose(visit, "Second reranker", "BM25")
    visit.page.get_by_role("button", name="Start 1 run").click()
    visit.sees("p50 and p95: milliseconds for one query", timeout=RUN_MS)
    expect(visit.page.get_by_text("of 168 queries")).to_have_count(0, timeout=RUN_MS)

    visit.page.get_by_text("Fuse runs").click()
    visit.sees("without running a model")
    combine = visit.page.get_by_role("button", name="Fuse", exact=True)
    expect(combine).to_be_disabled()
    visit.settle()
    choose(visit, "Rankings", "First stage", "shortest → bm25")
    combine.click()
    visit.sees("Fused (RRF) is in the list of runs.")
    visit.settle()

    visit.go("Overview")
    visit.sees("Fused (RRF)")
