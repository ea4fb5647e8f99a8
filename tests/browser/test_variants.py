"""One reranker at several depths: started as one, watched as one, compared on Overview."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.thorough

RUN_MS = 900_000


def test_the_variants_of_a_reranker_are_compared(visit):
    visit.open("run")
    visit.choose_reranker("BM25")
    visit.page.get_by_text("Variants", exact=True).click()
    visit.settle()
    visit.page.get_by_role("combobox", name="Run it once for each value of").click()
    visit.page.get_by_role("option", name="Depth", exact=True).click()
    visit.page.keyboard.press("Escape")
    visit.settle()
    depths = visit.page.get_by_role("textbox", name="Depth", exact=True)
    depths.fill("5, 20, 40")
    depths.press("Enter")
    visit.page.get_by_role("button", name="Start 3 runs").click()
    visit.sees("3 variants are done.", timeout=RUN_MS)
    visit.settle()
    visit.page.get_by_role("button", name="Compare", exact=True).click()
    expect(visit.page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    visit.settle()
    visit.sees("BM25 · top 5 → BM25 · top 20, BM25 · top 40")
