"""The menu and sidebar of all pages: language and theme."""

import re

from playwright.sync_api import expect

from .conftest import visiting


def test_dark_charts_have_light_ink_and_the_language_changes_every_word_at_once(browser, app):
    with visiting(browser, app, color_scheme="dark") as visit:
        page = visit.page
        visit.open("?lang=en")
        tick = page.locator(".xtick text").first
        expect(tick).to_be_visible()
        ink = tick.evaluate("each => getComputedStyle(each).fill")
        assert min(int(part) for part in re.findall(r"\d+", ink)[:3]) > 150
        data = page.get_by_role("combobox", name="Data set")
        expect(data).to_have_value(re.compile(r"\(sample\)$"))
        page.get_by_test_id("stSidebar").get_by_text("中文", exact=True).click()
        expect(page.get_by_role("heading", name="概览", level=1)).to_be_visible()
        data = page.get_by_role("combobox", name="数据集")
        expect(data).to_have_value(re.compile("（示例）$"))
        expect(page).to_have_title("概览 · rankdash")
        # After the page is drawn, no part is still loading.
        visit.settle()
        expect(page.get_by_test_id(re.compile("^stSkeleton"))).to_have_count(0)


def test_the_sidebar_is_folded_in_a_narrow_window_and_a_choice_of_a_person_stays(browser, app):
    with visiting(browser, app) as visit:
        page, unfold = visit.page, visit.page.get_by_test_id("stExpandSidebarButton")
        link = page.get_by_test_id("stSidebar").get_by_role("link", name="Queries")
        page.set_viewport_size({"width": 900, "height": 900})
        visit.open()
        expect(link).not_to_be_in_viewport()
        unfold.click()
        expect(link).to_be_in_viewport()
        visit.open("queries")
        expect(link).to_be_in_viewport()
        page.set_viewport_size({"width": 1440, "height": 900})
        visit.open()
        expect(link).to_be_in_viewport()
        expect(unfold).to_have_count(0)
