"""A saved report and a saved query with hostile texts: opened without a network, and printed."""

import base64
import io
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect
from pypdf import PdfReader

from rankdash.core.study.study import Study
from rankdash.core.workspace.notes import Note
from rankdash.features.queries import report_query
from rankdash.features.report.report import PRESETS, SECTIONS, Front, html
from tests.ui.parts import dataset_of, run_of, study_of

from .conftest import PATIENCE_MS, new_page

pytestmark = pytest.mark.thorough

HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2> "
    "![p](http://evil.invalid/a.png) =HYPERLINK(1) <svg onload=window.hacked=3> {{7*7}}"
)
QUERIES = 24
LARGEST = 8_000_000


PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def written(file: Path, rows: list[dict[str, object]], write: Callable[[Study], bytes]) -> Path:
    """Write a file of a study with hostile texts. Its run reverses the lists of all queries but the
    last, on which it fails."""
    data = dataset_of(pd.DataFrame(rows).to_csv(index=False), HOSTILE)
    lists = {}
    for row in rows:
        lists.setdefault(row["query_id"], []).insert(0, row["doc_id"])
    for docs in [*lists.values()][:-1:4]:
        # In a report, every fourth list has its relevant document last.
        docs.append(docs.pop(1))
    run = run_of(data, "run", lists)
    times = run.queries.assign(latency_ms=np.arange(len(lists)) + 5.0, pairs=5.0)
    if len(lists) > 1:
        times.loc[len(lists) - 1, ["state", "reason"]] = "failed", HOSTILE
    file.write_bytes(write(study_of(data, replace(run, name=HOSTILE, queries=times))))
    return file


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    rows = [
        {
            "query_id": f"q{q}", "query": f"return {q} {HOSTILE}", "doc_id": f"d{q}{d}",
            "title": HOSTILE, "document": f"document {q}{d} {HOSTILE}", "label": int(d == 3),
            "score": 9 - d, "kind": (HOSTILE, "plain")[q % 2],
        }
        for q in range(QUERIES)
        for d in range(5)
    ]  # fmt: skip
    front = Front(title=f"Title {HOSTILE}", note=f"Note {HOSTILE}", logo=PICTURE)
    file = tmp_path_factory.mktemp("report") / "report.html"
    return written(file, rows, lambda study: html(study, front))


class Opened:
    """The file in a browser without a network, with its requests and its error messages."""

    def __init__(self, browser: Browser, file: Path, **settings: object) -> None:
        self.page: Page = new_page(browser, offline=True, **settings)
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.goto(file.as_uri())
        places = self.page.locator(".chart").count()
        drawn = self.page.locator(".chart:has(.main-svg)")
        expect(drawn).to_have_count(places, timeout=PATIENCE_MS)
        self.charts = places


@pytest.fixture(scope="module")
def query(tmp_path_factory) -> Path:
    rows = [
        {"query_id": "q", "query": HOSTILE, "doc_id": f"d{d}", "document": f"{d} {HOSTILE}",
         "label": int(d == 4), "score": 9 - d}
        for d in range(5)
    ]  # fmt: skip
    noted = {"q": Note("q", (HOSTILE[:40],), HOSTILE)}
    file = tmp_path_factory.mktemp("query") / "query.html"
    return written(
        file, rows, lambda study: report_query.html(replace(study, notes=noted), "run", "q")
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "charts", "bright"), [("made", 6, 100), ("query", 2, 150)])
def test_a_file_opens_offline_asks_for_nothing_and_runs_nothing(
    browser, request, name, charts, bright, scheme
):
    file = request.getfixturevalue(name)
    found = Opened(browser, file, color_scheme=scheme)
    page = found.page
    assert file.stat().st_size < LARGEST
    assert found.charts >= charts
    assert [url for url in found.asked if not url.startswith("data:")] == [file.as_uri()]
    assert found.complaints == []
    assert page.locator("iframe, object, link, svg[onload], a[href^='http']").count() == 0
    pictures = page.locator("img.logo").all()
    assert [each.evaluate("each => each.naturalWidth") for each in pictures] == [1] * (
        name == "made"
    )
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    expect(page.get_by_text("</script><script>window.hacked=1").first).to_be_visible()
    # No element is wider than the window, and no chart is wider than its container.
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    for chart in page.locator(".chart").all():
        box = chart.bounding_box()
        drawn = chart.locator(".main-svg").first.bounding_box()
        assert box and drawn
        assert drawn["width"] <= box["width"] + 1
    ink = page.locator(".xtick text, .ytick text").first.evaluate("e => getComputedStyle(e).fill")
    least = min(int(part) for part in re.findall(r"\d+", ink)[:3])
    assert (least > bright) == (scheme == "dark")
    # Injected elements can neither run nor send requests.
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=http://evil.invalid/a.png>')"
    )
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), "
        "{textContent: 'window.hacked = 4'}))"
    )
    assert page.evaluate("window.hacked") is None
    # On paper the charts have the width of the page.
    page.emulate_media(media="print", color_scheme=scheme)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".chart .main-svg").first).to_have_attribute("width", "680")
    page.context.close()


def test_it_prints_every_section_with_its_charts_and_folded_tables(browser, made):
    found = Opened(browser, made, color_scheme="dark")
    page = found.page
    assert page.locator("details[open]").count() == 0
    folded = page.locator("details.printed").count()
    assert folded >= 3
    margin = dict.fromkeys(("top", "bottom", "left", "right"), "14mm")
    printed = page.pdf(format="A4", margin=margin, print_background=True)
    # Printing does not change the page on screen.
    assert page.locator("details[open]").count() == 0
    expect(page.locator(".chart:has(.main-svg)")).to_have_count(found.charts)
    page.context.close()
    # A PDF may contain "fi" as one character.
    pages = [
        unicodedata.normalize("NFKC", each.extract_text())
        for each in PdfReader(io.BytesIO(printed)).pages
    ]
    text = " ".join(" ".join(pages).split())
    at = [text.find(section.title) for section in SECTIONS]
    assert -1 not in at
    # The decision fills the first page.
    assert "Next step" in pages[0]
    assert SECTIONS[1].title not in pages[0]
    assert SECTIONS[1].title in pages[1]
    # Texts that are folded on screen and printed, and texts in charts only.
    assert "target met" in text
    assert text.count("As a table") == 3
    assert "cutoff k" in text
    assert "queries, worst first" in text
    assert "Most hurt" in text
    assert "onerror=window.hacked=2" in text
    # No heading is the last line of a printed page.
    for each in pages[:-1]:
        lines = [line.strip() for line in each.splitlines() if line.strip()]
        assert lines[-1] not in [section.title for section in SECTIONS]


@pytest.mark.parametrize("systems", [2, 5, 12])
def test_a_decision_prints_on_one_page(browser, tmp_path, systems):
    rows = "query_id,query,doc_id,label,score\n" + "".join(
        f"q{q},where is item {q},d{d},{int(d == q % 5)},{9 - d}\n"
        for q in range(30)
        for d in range(5)
    )
    data = dataset_of(rows, "Shop")
    orders = [[f"d{(d + at) % 5}" for d in range(5)] for at in range(1, systems)]
    runs = [
        run_of(data, f"a long name of system {at}", {f"q{q}": docs for q in range(30)})
        for at, docs in enumerate(orders)
    ]
    file = tmp_path / "report.html"
    file.write_bytes(html(study_of(data, *runs), Front(sections=PRESETS["decision"])))
    page = new_page(browser, offline=True)
    page.goto(file.as_uri())
    assert page.get_by_role("img", name=re.compile("helped")).count() == systems - 1
    assert len(PdfReader(io.BytesIO(page.pdf(format="A4"))).pages) == 1
    page.context.close()
