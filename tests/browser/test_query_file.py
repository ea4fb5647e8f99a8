"""A query saved as a file, and what an analyst says of one, in a real browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from rankdash.store import Workspace
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.notes import Notes
from tests.stored import keep_lists, keep_rows

from .conftest import PATIENCE_MS, new_page, serving, visiting

pytestmark = pytest.mark.thorough

HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2> "
    "![p](http://evil.invalid/a.png)"
)


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """An app whose data set is hostile, with a run that turns every list around."""
    home = tmp_path_factory.mktemp("home")
    rows = [
        {
            "query_id": f"q{q}", "query": f"return {q} {HOSTILE}", "doc_id": f"d{q}{d}",
            "document": f"document {q}{d} {HOSTILE}", "label": int(d == 4), "score": 9 - d,
        }
        for q in range(6)
        for d in range(5)
    ]  # fmt: skip
    store = Workspace.open(home)
    dataset_id = keep_rows(store, rows, f"set {HOSTILE}")
    turned = [(f"q{q}", [f"d{q}{d}" for d in (4, 3, 2, 1, 0)], [5.0, 4, 3, 2, 1]) for q in range(6)]
    keep_lists(store, dataset_id, turned, HOSTILE, "turned")
    Notes(store).keep(dataset_id, "q2", [HOSTILE[:40]], HOSTILE)
    with serving(home) as app:
        yield app


@pytest.fixture(scope="module")
def saved(browser, app, tmp_path_factory) -> dict[str, Path]:
    """Language → the file of a query that was saved in it."""
    files = {}
    label = re.compile("Save this query as a file|将此查询存为文件")
    with visiting(browser, app) as visit:
        for language in ("en", "zh"):
            visit.open(f"queries?q=q2&lang={language}")
            with visit.page.expect_download(timeout=PATIENCE_MS) as waiting:
                visit.page.get_by_role("button", name=label).click()
            name = waiting.value.suggested_filename
            files[language] = tmp_path_factory.mktemp(language) / name
            waiting.value.save_as(files[language])
    return files


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_saved_query_opens_offline_asks_for_nothing_and_runs_nothing(browser, saved, scheme):
    file = saved["en"]
    assert re.fullmatch(r"rankdash_[\w-]+_query-q2\.html", file.name)
    page = new_page(browser, color_scheme=scheme, offline=True)
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    drawn = page.locator(".chart .main-svg")
    expect(drawn.first).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator(".chart:has(.main-svg)")).to_have_count(2)
    assert page.locator(".chart .scatterlayer path").count() > 5
    assert page.locator(".chart .barlayer path").count() >= 3
    assert asked == [file.as_uri()]
    assert complaints == []
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, iframe, a[href^='http']").count() == 0
    for part in page.locator("details").all():
        part.locator("summary").click()
    expect(page.get_by_text("document 24 </script><script>").first).to_be_visible()
    ink = page.locator("text.ytick, .ytick text").first.evaluate("e => getComputedStyle(e).fill")
    bright = min(int(part) for part in re.findall(r"\d+", ink)[:3]) > 150
    assert bright == (scheme == "dark")
    # Even a script that slipped through could not run or ask.
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=http://evil.invalid/a.png>')"
    )
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), "
        "{textContent: 'window.hacked = 3'}))"
    )
    assert page.evaluate("window.hacked") is None
    # On paper the charts are in light ink, and fit.
    page.emulate_media(media="print", color_scheme=scheme)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".chart .main-svg").first).to_have_attribute("width", "680")
    page.context.close()


def test_a_query_is_saved_in_the_language_of_the_interface(saved):
    text = saved["zh"].read_text(encoding="utf-8")
    assert '<html lang="zh">' in text
    assert "各系统排在最前的文档" in text


def test_a_tag_is_typed_a_label_corrected_and_every_page_says_so(app, visit):
    store = Workspace.open(app.home)
    [row] = store.datasets()
    visit.open("queries?q=q1")
    visit.page.get_by_text("Tags, note and labels").click()
    visit.sees("as uploaded: 1")
    visit.settle()
    tags = visit.page.get_by_role("combobox", name="Tags")
    tags.click()
    tags.press_sequentially("look again")
    expect(visit.page.get_by_role("option", name="look again")).to_be_visible()
    tags.press("Enter")
    visit.sees("Saved")
    tags.press("Escape")
    visit.settle()
    note = visit.page.get_by_role("textbox", name="Note")
    note.fill("![p](http://evil.invalid/a.png)")
    note.press("Control+Enter")
    # The field says so until what is in it has been sent.
    expect(visit.page.get_by_text("to apply")).to_have_count(0)
    visit.settle()
    visit.page.get_by_role("radio", name="not judged").click()
    visit.sees("1 label given or corrected")
    visit.settle()
    kept = Notes(store).of(row.id, "q1")
    assert (kept.tags, kept.text) == (("look again",), "![p](http://evil.invalid/a.png)")
    [made] = Corrections(store).all(row.id)
    assert (made.pair, made.label) == (("q1", "d14"), None)
    visit.go("Overview")
    visit.sees("1 label given or corrected")
    visit.page.get_by_role("radio", name="as uploaded").click()
    visit.sees("1 correction excluded")
    assert "labels=uploaded" in visit.params
    visit.go("Data")
    visit.page.get_by_role("button", name="Undo all").click()
    visit.sees("1 correction undone")
    assert Corrections(store).all(row.id) == []
    visit.go("Overview")
    expect(visit.page.get_by_text("given or corrected")).to_have_count(0)
    # What another analyst typed is shown as it was typed.
    visit.open("queries?q=q2")
    visit.page.get_by_text("Tags, note and labels").click()
    expect(visit.page.get_by_role("textbox", name="Note")).to_have_value(HOSTILE)
    visit.sees(HOSTILE[:40])
    assert visit.page.evaluate("window.hacked") is None


def test_a_click_before_the_choices_are_ready_does_not_lose_them(visit):
    """The page asks for the code of each kind of widget when it first meets one."""
    late = []
    visit.page.route(
        re.compile(r"/(Multiselect|Slider|Selectbox|ButtonGroup)\.[^/]*\.js"),
        lambda route: late.append(route),
    )
    visit.page.goto(visit.url + "queries?q=q1&k=3&outcome=helped")
    visit.page.get_by_text("Tags, note and labels").click()
    visit.sees("as uploaded: 1")
    asked = visit.params
    assert late, "nothing was held back"
    for each in late:
        each.continue_()
    slider = visit.page.get_by_role("slider", name="Cutoff k")
    expect(slider).to_have_attribute("aria-valuetext", "3")
    visit.settle()
    # The next click tells the server what the page holds.
    visit.page.get_by_text("Tags, note and labels").click()
    visit.settle()
    visit.go("Overview")
    assert {"k=3", "base=first-stage"} < set(visit.params.split("&"))
    assert next(each for each in asked.split("&") if each.startswith("system=")) in visit.params
