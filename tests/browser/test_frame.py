"""The frame around the pages: its language and its theme."""

import re

import pytest
from playwright.sync_api import expect

from .conftest import visiting


@pytest.mark.thorough
def test_dark_mode_draws_charts_in_light_ink(browser, app):
    with visiting(browser, app, color_scheme="dark") as visit:
        visit.open()
        tick = visit.page.locator(".xtick text").first
        expect(tick).to_be_visible()
        ink = tick.evaluate("each => getComputedStyle(each).fill")
        assert min(int(part) for part in re.findall(r"\d+", ink)[:3]) > 150


def test_the_switch_of_the_language_changes_every_word_at_once(visit):
    visit.open("?lang=en")
    expect(visit.page.get_by_role("combobox", name="Baseline")).to_have_value("First stage")
    visit.page.get_by_test_id("stSidebar").get_by_text("中文", exact=True).click()
    expect(visit.page.get_by_role("heading", name="概览", level=1)).to_be_visible()
    expect(visit.page.get_by_role("combobox", name="基线")).to_have_value(re.compile("^初排"))
    expect(visit.page).to_have_title("概览 · rankdash")
    # Nothing is still on its way once the page is drawn.
    visit.settle()
    expect(visit.page.get_by_test_id(re.compile("^stSkeleton"))).to_have_count(0)
