"""Labelling by keys: blind, two annotators concurrently, and a killed server."""

from dataclasses import asdict

from playwright.sync_api import expect

from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.notes import Corrections, LabelPlans
from rankdash.kit.widgets.labels.plan import LabelSettings
from tests.stored import keep_lists, keep_rows

from .conftest import serving, visiting

QUERIES, DOCS, EACH = 6, 12, 2
SYSTEM, SCORE, DOC = "zebra", "7316.25", "rankedat"
HOSTILE = "- **be strict** ![x](http://evil.example/x.png) <img src=http://evil.example/y.png>"
CARD = ".rd-label"
PARTS = f"{CARD}, [class*='st-key-labelling-']"


def _begun(workspace: Workspace) -> str:
    """Store a data set without labels, and a plan for its two rankings. Scores and ids contain the
    rank, so that tests can search a page for them."""
    scores = [float(f"{SCORE}{99 - place}") for place in range(DOCS)]
    rows = [
        {"query_id": f"q{query}", "query": f"ask {query}", "doc_id": f"{DOC}{doc}of{query}",
         "document": f"about {chr(97 + doc)} and {chr(97 + query)}", "score": score}
        for query in range(QUERIES)
        for doc, score in enumerate(scores)
    ]  # fmt: skip
    dataset_id = keep_rows(workspace, rows, "Blind")
    lists = [
        (f"q{query}", [f"{DOC}{doc}of{query}" for doc in reversed(range(DOCS))], scores)
        for query in range(QUERIES)
    ]
    run = keep_lists(workspace, dataset_id, lists, SYSTEM)
    settings = LabelSettings((FIRST_STAGE, run.id), "dcg@10", 1.0, 1.0, seed=3)
    LabelPlans(workspace).begin(dataset_id, asdict(settings), HOSTILE)
    return dataset_id


def _enter(visit, dataset_id: str, name: str) -> None:
    visit.open(f"label?data={dataset_id}")
    field = visit.page.get_by_label("Your name, stored with each label")
    field.fill(name)
    field.press("Enter")
    expect(visit.page.locator(CARD)).to_be_visible()


def _press(visit, key: str) -> str:
    """Press a key and return the text of its card, after its label was acknowledged."""
    visit.settle()
    card = visit.page.locator(CARD)
    shown = card.inner_text()
    while card.inner_text() == shown:
        # The key is repeated only after an answer: a key before its card appears is ignored, and
        # a repetition during the answer would label the next card.
        visit.page.keyboard.press(key)
        visit.settle()
    return shown


def test_robots_label_blind_together_and_lose_nothing_when_the_server_is_killed(browser, tmp_path):
    home = tmp_path / "home"
    workspace = Workspace(home)
    dataset_id = _begun(workspace)
    with (
        serving(home) as app,
        visiting(browser, app) as ann,
        visiting(browser, app) as bo,
    ):
        frames: list[bytes] = []
        for visit in (ann, bo):
            visit.page.on("websocket", lambda socket: _listen(socket, frames))
        _enter(ann, dataset_id, "Ann")
        _enter(bo, dataset_id, "Bo")
        answered: dict[str, tuple[float, str]] = {}
        for turn in range(EACH):
            for visit, who in ((ann, "Ann"), (bo, "Bo")):
                page = visit.page
                # Parts are read in one step, because a rerun may remove one between two steps.
                parts = page.locator(PARTS).evaluate_all("parts => parts.map(p => p.innerHTML)")
                assert parts
                assert not any(SYSTEM in part for part in (*parts, page.url))
                # The strip shows the names of the systems, and no id or score of a document.
                whole = page.content() + page.url
                assert DOC not in whole and SCORE not in whole
                label = (turn + len(who)) % 2
                shown = _press(visit, str(label))
                # No two windows ever show the same card.
                assert shown not in answered
                answered[shown] = float(label), who
        expect(ann.page.get_by_text("be strict")).to_be_visible()
        assert ann.page.locator("a[href*=evil], img[src*=evil]").count() == 0
        assert frames and not [each for each in frames if DOC.encode() in each]
        assert not [each for each in frames if SCORE.encode() in each]
        app.process.kill()
        app.process.join()
    queries = workspace.dataset(dataset_id).query_names
    texts = workspace.dataset(dataset_id).document_text()
    stored = {
        f"Query {queries[each.query_id]} Document {texts[each.doc_id]}": (each.label, each.who)
        for each in Corrections(workspace).all(dataset_id)
    }
    assert {" ".join(card.split()): given for card, given in answered.items()} == stored
    with serving(home) as app, visiting(browser, app) as ann:
        _enter(ann, dataset_id, "Ann")
        ann.sees(f"{2 * EACH} of")
        assert ann.page.locator(CARD).inner_text() not in answered


def _listen(socket, frames: list[bytes]) -> None:
    def kept(payload: str | bytes) -> None:
        frames.append(payload if isinstance(payload, bytes) else payload.encode())

    socket.on("framereceived", kept)
    socket.on("framesent", kept)
