"""What a new user does, done in a real browser against a real server, worker and model."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.sets import SETS

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


# Set → its size (of the sample, that it is there), its labels, how much of its first stage is
# labelled, and what is said of BM25, the NDCG@10 of the first stage being that of trec_eval over
# the queries with a relevant document.
UPLOADED = {
    "helpcentre": (
        *("These files equal Help centre, which is in this workspace", "4,421 labels", "100%"),
        *(r"score the same on every one of the 164 queries", r"^0\.666$"),
    ),
    "medquad": (
        *("60 queries and 2,523 documents", "377 labels", "15%"),
        *(r"NDCG@10 goes from 0\.312 to 0\.\d{3} over 60 queries", r"\d+ helped"),
    ),
}


@pytest.mark.parametrize("name", [name for name in SETS if name in UPLOADED])
@pytest.mark.thorough
def test_upload_a_set_read_the_check_report_and_run_bm25(visit, name):
    size, labels, judged, *said = UPLOADED[name]
    visit.open("data")
    upload(visit, files_of(SETS[name]))
    visit.sees(size)
    visit.sees("Check report")
    visit.sees(labels)
    visit.sees(judged)
    visit.go("Run")
    visit.choose_reranker("BM25")
    start_run(visit)
    expect(visit.page.get_by_role("button", name="Compare on Overview")).to_be_visible(
        timeout=RUN_MS
    )
    visit.go("Overview")
    visit.sees("BM25")
    for each in said:
        visit.sees(re.compile(each))
    assert "base=first-stage" in visit.params


HOSTILE = (
    '<script>window.hacked = 1</script><img src=x onerror="window.hacked=2"> '
    "![pic](http://evil.invalid/a.png) [link](http://evil.invalid/) **bold**"
)


def test_hostile_text_stays_inert_everywhere(visit):
    rows = [
        {
            "query": f"q{q} {HOSTILE}",
            "document": f"d{q}{d} {HOSTILE}",
            "label": d % 2,
            "kind": HOSTILE,
        }
        for q in range(6)
        for d in range(4)
    ]
    body = "\n".join(json.dumps(row) for row in rows).encode()
    visit.open("data")
    name = "![x](http:evil.invalid)<b>.jsonl"
    upload(visit, [{"name": name, "mimeType": "text/plain", "buffer": body}])
    visit.sees("6 queries and 24 documents")
    visit.go("Run")
    visit.choose_reranker("BM25")
    start_run(visit)
    expect(visit.page.get_by_role("button", name="Compare on Overview")).to_be_visible(
        timeout=RUN_MS
    )
    for page in ("Overview", "Queries", "Data", "Run"):
        visit.go(page)
        assert visit.page.evaluate("window.hacked") is None
        assert visit.page.locator("img[src*='evil']").count() == 0
        assert visit.page.locator("a[href*='evil']").count() == 0


@pytest.mark.thorough
def test_a_cold_deep_link_shows_the_same_view_and_one_to_what_is_gone_falls_back(visit):
    visit.open()
    link = visit.page.url
    assert "data=" in link
    assert "k=10" in link
    visit.open("queries?" + link.partition("?")[2].replace("k=10", "k=5"))
    expect(visit.page.get_by_role("heading", name="Queries", level=1)).to_be_visible()
    visit.sees("Nothing to compare with yet")
    # The frame is there too: navigation, the data set, the cutoff of the link.
    visit.sees("NDCG@5")
    assert "k=5" in visit.params
    visit.open("?data=0123456789abcdef&metric=nonsense&k=999999&base=nobody&system=nobody")
    visit.sees("Help centre · First stage · NDCG@10")


@pytest.mark.thorough
def test_dark_mode_draws_charts_in_light_ink(dark_visit):
    dark_visit.open()
    dark_visit.page.reload()
    dark_visit.settle()
    tick = dark_visit.page.locator(".xtick text").first
    expect(tick).to_be_visible()
    red, green, blue = (
        int(part) for part in re.findall(r"\d+", tick.evaluate("e => getComputedStyle(e).fill"))[:3]
    )
    assert min(red, green, blue) > 150


@pytest.mark.thorough
def test_a_deleted_sample_stays_deleted_and_every_page_has_its_empty_state(visit):
    visit.open("data")
    visit.page.get_by_role("button", name="Delete").click()
    visit.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    visit.sees("Open the sample")
    for page in ("Overview", "Queries", "Run"):
        visit.go(page)
        visit.sees("No data set yet")
    visit.page.get_by_role("button", name="Go to Data").click()
    visit.page.get_by_role("button", name="Open the sample", exact=True).click()
    visit.sees("168 queries and 435 documents")


SLOW = """
import time
import numpy as np
from rankdash.rerankers import Capabilities, RerankerKind, Scored

class Slow:
    name = "slow"
    settings = {}
    def __init__(self, settings):
        pass
    def prepare(self, corpus):
        pass
    def fingerprint(self):
        return ""
    def score(self, requests):
        time.sleep(0.1)
        return [Scored(np.arange(len(request.documents), dtype=float)) for request in requests]

KIND = RerankerKind("slow", "Slow", "Takes its time.", (), Capabilities(), Slow)
"""


@pytest.fixture
def slow_reranker(tmp_path_factory, monkeypatch):
    """A reranker that is still at work when a person reaches for the button."""
    # Not in the workspace: a folder that holds something else is refused.
    plugin = tmp_path_factory.mktemp("plugin") / "slow.py"
    plugin.write_text(SLOW)
    monkeypatch.setenv("RANKDASH_PLUGINS", str(plugin))


@pytest.mark.thorough
def test_cancel_keeps_what_is_done_and_resume_goes_on(slow_reranker, visit):
    visit.open("run")
    visit.choose_reranker("Slow")
    start_run(visit)
    visit.sees(re.compile(r"[1-9]\d* of 168 queries"), timeout=RUN_MS)
    visit.page.get_by_role("button", name="Cancel").click()
    visit.sees(re.compile(r"quer(y is|ies are) done and saved"), timeout=RUN_MS)
    visit.page.get_by_role("button", name="Resume").click()
    expect(visit.page.get_by_role("button", name="Compare on Overview")).to_be_visible(
        timeout=RUN_MS
    )


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
