"""Sharing in a real browser: a link opened elsewhere, a workspace taken to another server, and a
server that only shows."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from rankdash.sharing import write_scenarios
from rankdash.store import Workspace
from rankdash.store.notes.notes import Notes
from rankdash.value.assumptions import Assumptions
from tests.browser.conftest import App, Visit, serving, visiting
from tests.stored import keep_lists, keep_rows

pytestmark = pytest.mark.thorough

PAGES = ("Overview", "Queries", "Rank shifts", "Latency", "Cost & ROI", "History", "Run", "Data")


@pytest.fixture
def app(app_of_test):
    return app_of_test


def fill(home: Path) -> tuple[str, str]:
    """A data set of 40 queries whose one run puts most relevant documents first."""
    rows = "query_id,query,doc_id,document,label,score\n" + "".join(
        f"q{q},question {q},d{d},words of document {d},{int(d == q % 4)},{4 - d}\n"
        for q in range(40)
        for d in range(4)
    )
    workspace = Workspace(home)
    dataset_id = keep_rows(workspace, rows, "Shop")
    best = [
        (f"q{q}", [f"d{q % 4}", *(f"d{d}" for d in range(4) if d != q % 4)], [4.0, 3.0, 2.0, 1.0])
        for q in range(36)
    ]
    run = keep_lists(workspace, dataset_id, best, "better.trec", "better")
    Notes(workspace).keep(dataset_id, "q7", ["odd"], "look here")
    workspace.set_setting("scenarios", write_scenarios({"careful": Assumptions(elasticity=0.25)}))
    return dataset_id, run.id


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Another server with another workspace, which has something of its own."""
    home = tmp_path_factory.mktemp("elsewhere")
    Workspace(home).set_setting("sample opened", "yes")
    with serving(home) as started:
        yield started


def answer(visit: Visit) -> str:
    return str(visit.page.get_by_text(re.compile("It pays while")).first.inner_text())


def verdict(visit: Visit) -> str:
    said = visit.page.get_by_text(re.compile(r"better is better|Not proven")).first
    expect(said).to_be_visible()
    return str(said.inner_text())


def test_a_view_opens_the_same_for_another_person(visit, browser: Browser, app: App):
    dataset_id, _run = fill(app.home)
    visit.open(f"cost?data={dataset_id}&metric=mrr&k=5&q=q7&per=year&value_per_search=0.010")
    visit.page.locator("summary", has_text="Link to this view").click()
    expect(visit.page.get_by_test_id("stCode")).to_contain_text("q=q7")
    visit.settle()
    slider = visit.page.get_by_role("slider", name=re.compile("Value gained for each 1%"))
    slider.focus()
    slider.press("ArrowLeft")
    visit.page.wait_for_url(re.compile(r"elasticity=0\.99"))
    # The link that is seen follows.
    code = visit.page.get_by_test_id("stCode")
    expect(code).to_contain_text("elasticity=0.99")
    visit.settle()
    link = str(code.inner_text()).strip()
    assert link == visit.page.url
    with visiting(browser, app) as other:
        other.page.goto(link)
        other.settle()
        assert answer(other) == answer(visit)
        other.sees(re.compile("brings 0.99% more value"))
        other.sees("cost a year")
        other.go("Queries")
        other.sees("question 7")
        other.sees("MRR@5")
        assert "elasticity=0.99" in other.params
        # What is typed from memory, and what this workspace does not have.
        other.open("overview?metric=mrr")
        expect(other.page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
        other.sees("MRR@10")
        other.open(f"?data={'0' * 16}&elasticity=much")
        other.sees("The link names a data set that is not in this workspace")


def test_a_workspace_goes_to_another_server_and_shows_the_same(
    visit, browser: Browser, app: App, elsewhere: App, tmp_path: Path
):
    dataset_id, _run = fill(app.home)
    visit.open(f"?data={dataset_id}")
    before = verdict(visit)
    visit.go("Data")
    # It is fetched when it is first shown, and moves what is below it.
    expect(visit.page.get_by_test_id("stFileUploader").first).to_be_visible()
    visit.page.get_by_text("Export or import the workspace").click()
    expect(visit.page.get_by_role("button", name="Export", exact=True)).to_be_visible()
    visit.settle()
    with visit.page.expect_download() as waited:
        visit.page.get_by_role("button", name="Export", exact=True).click()
    file = tmp_path / waited.value.suggested_filename
    assert file.name.endswith(".rankdash.zip")
    waited.value.save_as(file)

    with visiting(browser, elsewhere) as other:
        other.open(f"?data={dataset_id}")
        other.sees("not in this workspace, which is empty")
        other.go("Data")
        expect(other.page.get_by_test_id("stFileUploader").first).to_be_visible()
        other.page.get_by_text("Export or import the workspace").click()
        uploader = other.page.get_by_test_id("stFileUploader").filter(has_text="workspace file")
        uploader.locator("input[type=file]").set_input_files(file)
        other.page.get_by_role("button", name="Import", exact=True).click()
        other.sees("Imported: ")
        other.open(f"?data={dataset_id}")
        assert verdict(other) == before
        # The same ids, so the same link; and what belongs to it.
        theirs = Workspace(elsewhere.home)
        assert [row.id for row in theirs.datasets()] == [
            row.id for row in Workspace(app.home).datasets()
        ]
        assert Notes(theirs).of(dataset_id, "q7").text == "look here"
        other.open(f"cost?data={dataset_id}&part=scenarios")
        other.sees("careful")


def bytes_of(home: Path) -> dict[str, str]:
    return {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(home.rglob("*"))
        if file.is_file()
    }


def test_a_server_that_only_shows_changes_nothing(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    dataset_id, _run = fill(tmp_path)
    before = bytes_of(tmp_path)
    monkeypatch.setenv("RANKDASH_READ_ONLY", "1")
    with serving(tmp_path) as app, visiting(browser, app) as visit:
        visit.open(f"?data={dataset_id}&q=q7")
        for page in PAGES:
            visit.go(page)
            visit.sees("You can look at everything; nothing can be changed.")
            main = visit.page.get_by_test_id("stMain")
            writing = re.compile("^(Delete|Rename|Save|Import|Read .*|Start .*|Open the sample.*)$")
            expect(main.get_by_role("button", name=writing)).to_have_count(0)
            expect(main.get_by_test_id("stException")).to_have_count(0)
        expect(visit.page.get_by_test_id("stFileUploader")).to_have_count(0)
    assert bytes_of(tmp_path) == before
