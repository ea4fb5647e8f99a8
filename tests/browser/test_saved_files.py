"""A saved report and a saved query whose texts are hostile: opened without a network, printed."""

import base64
import io
import json
import re
import struct
import unicodedata
import zlib
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect
from pypdf import PdfReader

from rankdash.cli import main
from rankdash.reporting.exports import query_file
from rankdash.reporting.report import SECTIONS
from rankdash.store.notes.notes import Note
from tests.ui.parts import dataset_of, run_of, study_of

from .conftest import PATIENCE_MS, new_page

pytestmark = pytest.mark.thorough

HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2> "
    "![p](http://evil.invalid/a.png) =HYPERLINK(1) <svg onload=window.hacked=3> {{7*7}}"
)
QUERIES = 24
LARGEST = 8_000_000


def png(width: int = 40, height: int = 40) -> bytes:
    """A picture in one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        summed = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + summed

    rows = (b"\x00" + b"\x00\x72\xb2" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A report of a data set whose every text is hostile, through the command line."""
    folder = tmp_path_factory.mktemp("report")
    rows = [
        {
            "query_id": f"q{q}", "query": f"return {q} {HOSTILE}", "doc_id": f"d{q}{d}",
            "title": HOSTILE, "document": f"document {q}{d} {HOSTILE}", "label": int(d == 3),
            "score": 9 - d, "kind": (HOSTILE, "plain")[q % 2],
        }
        for q in range(QUERIES)
        for d in range(5)
    ]  # fmt: skip
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    order = {q: (3, 0, 1, 2, 4) if q % 4 else (4, 2, 1, 0, 3) for q in range(QUERIES - 1)}
    run = folder / "<img src=x onerror=alert(1)>.trec"
    run.write_text(
        "".join(
            f"q{q} Q0 d{q}{d} {rank} {9 - rank} x\n"
            for q, docs in order.items()
            for rank, d in enumerate(docs, start=1)
        )
    )
    (folder / "times.json").write_text(
        json.dumps(
            [{"query_id": f"q{q}", "latency_ms": 5.0 + q} for q in order]
            + [{"query_id": f"q{QUERIES - 1}", "state": "failed", "latency_ms": None}]
        )
    )
    (folder / "logo.png").write_bytes(png())
    done = main(
        [
            *("report", "--data", str(folder / "rows.jsonl"), "--challenger", str(run)),
            *("--timings", str(folder / "times.json"), "--logo", str(folder / "logo.png")),
            *("--title", f"Title {HOSTILE}", "--note", f"Note {HOSTILE}"),
            *("--out", str(folder / "report.html")),
        ]
    )
    assert done == 0
    return folder / "report.html"


class Opened:
    """The file in a browser without a network; what it asks for, and what it complains of."""

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
    """A saved query of a data set whose every text is hostile."""
    rows = [
        {
            "query_id": "q", "query": HOSTILE, "doc_id": f"d{d}", "document": f"{d} {HOSTILE}",
            "label": int(d == 4), "score": 9 - d,
        }
        for d in range(5)
    ]  # fmt: skip
    data = dataset_of(pd.DataFrame(rows).to_csv(index=False), HOSTILE)
    run = replace(run_of(data, "run", {"q": ["d4", "d3", "d2", "d1", "d0"]}), name=HOSTILE)
    note = Note("q", (HOSTILE[:40],), HOSTILE)
    file = tmp_path_factory.mktemp("query") / "query.html"
    file.write_bytes(query_file.html(replace(study_of(data, run), notes={"q": note}), "run", "q"))
    return file


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
    pictures = page.locator("img").all()
    assert [each.evaluate("each => each.naturalWidth") for each in pictures] == [40] * (
        name == "made"
    )
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    expect(page.get_by_text("</script><script>window.hacked=1").first).to_be_visible()
    # Nothing is wider than the window, and no chart is wider than its place.
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    for chart in page.locator(".chart").all():
        box = chart.bounding_box()
        drawn = chart.locator(".main-svg").first.bounding_box()
        assert box and drawn
        assert drawn["width"] <= box["width"] + 1
    ink = page.locator(".xtick text, .ytick text").first.evaluate("e => getComputedStyle(e).fill")
    least = min(int(part) for part in re.findall(r"\d+", ink)[:3])
    assert (least > bright) == (scheme == "dark")
    # Even what slipped through could neither run nor ask.
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
    # Printing leaves the screen as it was.
    assert page.locator("details[open]").count() == 0
    expect(page.locator(".chart:has(.main-svg)")).to_have_count(found.charts)
    page.context.close()
    # Type sets "fi" as one letter.
    pages = [
        unicodedata.normalize("NFKC", each.extract_text())
        for each in PdfReader(io.BytesIO(printed)).pages
    ]
    text = " ".join(" ".join(pages).split())
    at = [text.find(section.title) for section in SECTIONS]
    assert -1 not in at
    # What to decide by has the first page for itself.
    assert "Next step" in pages[0]
    assert SECTIONS[1].title not in pages[0]
    assert SECTIONS[1].title in pages[1]
    # Folded on screen and open on paper; and what only a chart writes.
    assert "the target is met" in text
    assert text.count("As a table") == 3
    assert "Read as: JSON lines" in text
    assert "cutoff k" in text
    assert "queries, worst first" in text
    assert "Most hurt" in text
    assert "onerror=window.hacked=2" in text
    # No heading stands alone at the foot of a page.
    for each in pages[:-1]:
        lines = [line.strip() for line in each.splitlines() if line.strip()]
        assert lines[-1] not in [section.title for section in SECTIONS]


def test_a_file_whose_scripts_are_changed_draws_nothing_and_still_says_all(browser, made, tmp_path):
    """The policy names the scripts by their hash; the tables need none."""
    changed = tmp_path / "changed.html"
    text = made.read_text(encoding="utf-8")
    assert text.count("const places = ") == 1
    changed.write_text(text.replace("const places = ", "window.hacked = 5; const places = "))
    page = new_page(browser, offline=True)
    page.goto(changed.as_uri())
    expect(page.get_by_role("heading", name="What was found")).to_be_visible()
    assert page.evaluate("window.hacked") is None
    assert page.locator(".chart .main-svg").count() == 0
    assert page.locator("table").count() > 10
    page.context.close()
    assert base64.b64encode(png())[:20].decode() in text
