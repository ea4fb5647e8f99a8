"""What a new user does, done in a real browser against a real server, worker and model."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from .conftest import visiting

# A model run on two slow cores, loading included.
RUN_MS = 900_000


@pytest.fixture
def app(app_of_test):
    return app_of_test


def files_of(folder: Path) -> list[Path]:
    return [
        folder / name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv", "initial.trec")
    ]


def upload(visit, files) -> None:
    box = visit.page.locator("input[type=file]")
    # The uploader of the files before is on its way out.
    expect(box).to_have_count(1)
    visit.settle()
    button = visit.page.get_by_role("button", name=re.compile(r"^Read \d+ file"))
    # Files that were refused stay, and so does the button for them until the new ones are there.
    refused = int(button.inner_text().split()[-2]) if button.count() else 0
    box.set_input_files(files)
    visit.page.get_by_role("button", name=re.compile(rf"^Read {refused + len(files)} file")).click()
    visit.settle()


def start_run(visit) -> None:
    visit.page.get_by_role("button", name="Start 1 run").click()


@pytest.mark.thorough
def test_the_sample_is_open_and_a_model_run_changes_overview_and_queries(visit, app):
    visit.open()
    visit.sees("Help centre")
    visit.sees("There is only the baseline so far")
    before = visit.page.get_by_test_id("stMetricValue").first.inner_text()
    visit.page.get_by_role("button", name="Run a reranker").click()
    visit.settle()
    log = app.home / "worker.log"
    assert not log.exists(), "a worker has nothing to do yet"
    visit.choose_reranker("Bi-encoder")
    start_run(visit)
    # A person may leave the page once it has begun, and come back.
    expect(visit.page.get_by_role("button", name="Cancel")).to_be_visible()
    visit.go("Overview")
    visit.go("Run")
    visit.sees(re.compile(r"Compare on Overview"), timeout=RUN_MS)
    expect(visit.page.get_by_text("of 168 queries")).to_have_count(0, timeout=RUN_MS)
    assert log.exists()
    # The worker alone has loaded the model.
    assert "libtorch" not in Path(f"/proc/{app.process.pid}/maps").read_text()

    visit.go("Overview")
    visit.sees("all-MiniLM-L6-v2")
    after = visit.page.get_by_test_id("stMetricValue").first.inner_text()
    assert re.fullmatch(r"0\.\d{3}", after)
    assert after != before
    visit.sees(
        re.compile(r"[1-9]\d* helped · \d+ same \(±0\.005\) · [1-9]\d* hurt, of 164 queries")
    )

    visit.go("Queries")
    visit.sees(re.compile(r"^1 of 168$"))
    visit.sees(re.compile(r"NDCG@10 \d\.\d{3} → \d\.\d{3}"))
    assert not re.search(r"[?&]q=", visit.page.url), "nobody chose it: going back leaves the page"
    visit.page.get_by_role("button", name="Next").click()
    visit.sees(re.compile(r"^2 of 168$"))
    expect(visit.page).to_have_url(re.compile(r"[?&]q=q\d+(&|$)"))


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
