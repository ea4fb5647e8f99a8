"""The Report page in a real browser: choose, save, open."""

import json
import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from rankdash.core.workspace import Workspace
from tests.stored import keep_lists, keep_rows

from .conftest import PATIENCE_MS, new_page, serving

HOSTILE = "=HYPERLINK(1)</script><script>window.hacked=1</script> ![p](http://evil.invalid/a.png)"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """An app whose data set is hostile, with a run that turns most lists around."""
    home = tmp_path_factory.mktemp("home")
    rows = [
        {
            "query_id": f"q{q}", "query": f"{HOSTILE} {q}", "doc_id": f"d{q}{d}",
            "document": f"document {q}{d}", "label": int(d == 4), "score": 9 - d,
        }
        for q in range(12)
        for d in range(5)
    ]  # fmt: skip
    store = Workspace.open(home)
    dataset_id = keep_rows(store, rows, f"set {HOSTILE}")
    turned = [(f"q{q}", [f"d{q}{d}" for d in (4, 3, 2, 1, 0)], [5.0, 4, 3, 2, 1]) for q in range(9)]
    kept = [(f"q{q}", [f"d{q}{d}" for d in range(5)], [5.0, 4, 3, 2, 1]) for q in range(9, 12)]
    keep_lists(store, dataset_id, turned + kept, "turned", HOSTILE)
    with serving(home) as app:
        yield app


def saved(visit, folder: Path, label: str, place: int = 0) -> Path:
    with visit.page.expect_download(timeout=PATIENCE_MS) as waiting:
        visit.page.get_by_role("button", name=label, exact=True).nth(place).click()
    target = folder / waiting.value.suggested_filename
    waiting.value.save_as(target)
    return target


def test_a_report_is_chosen_named_saved_and_read_offline(browser, visit, tmp_path):
    visit.open("report")
    title = visit.page.get_by_role("textbox", name="Title")
    title.fill("Ship it?")
    title.press("Enter")
    visit.settle()
    visit.page.get_by_text("Kinds of queries", exact=True).click()
    visit.settle()
    # The page shows a preview of the first page.
    shown = visit.page.frame_locator("iframe")
    expect(shown.get_by_role("heading", name="Ship it?")).to_be_visible()
    expect(shown.get_by_role("heading", name="Next step")).to_be_attached()
    expect(shown.get_by_role("link", name="Kinds of queries")).to_have_count(0)
    file = saved(visit, tmp_path, "Make the report and save it")
    assert re.fullmatch(r"rankdash_[\w-]+_report\.html", file.name)
    visit.sees(f"Your browser then saves it as {file.name}")
    page = new_page(browser, offline=True)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    expect(page.get_by_role("heading", level=1)).to_have_text("Ship it?")
    expect(page.get_by_role("heading", name="Findings")).to_be_visible()
    expect(page.get_by_role("heading", name="Kinds of queries")).to_have_count(0)
    assert page.evaluate("window.hacked") is None
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.context.close()


@pytest.mark.thorough
def test_charts_are_saved_as_svg_in_the_zip_and_one_by_one(visit, tmp_path):
    visit.open("report")
    archive = zipfile.ZipFile(saved(visit, tmp_path, "ZIP"))
    manifest = json.loads(archive.read("manifest.json"))
    # The browser of these tests also draws the charts of the zip.
    assert {"figures/systems.svg", "figures/changes-1.png"} <= {
        each["name"] for each in manifest["files"]
    }
    assert manifest["left_out"] == []
    visit.go("Overview")
    chart = visit.page.locator(".js-plotly-plot").first
    chart.hover()
    with visit.page.expect_download(timeout=PATIENCE_MS) as waiting:
        chart.locator("[data-title*='ownload']").click()
    assert waiting.value.suggested_filename == "rankdash_overview-systems.svg"
