"""The explanation of a score: its cost, progress and result, and reasons why it is not offered."""

import re
import time
from dataclasses import replace

import numpy as np
import pytest

from rankdash.core.base.errors import UnavailableError
from rankdash.core.data.explanation import Explanation, Stage, TextPart
from rankdash.core.data.measured import Measured
from rankdash.core.rerankers import create
from rankdash.core.runs import jobs
from rankdash.core.runs.runner import rerank
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.workspace.jobs.leases import ExplanationRequest, Explanations, Owner
from rankdash.core.workspace.jobs.queue import Queue
from rankdash.features.queries import page_occlusion
from rankdash.features.queries import study as queries_study
from rankdash.kit.widgets import stored
from tests.approved import table
from tests.stored import keep_lists, keep_rows
from tests.ui.page_text import page_text
from tests.ui.parts import LANGUAGES, drawn, said, unlike
from tests.ui.sessions import button
from tests.ui.test_pages import open_page, texts

HOSTILE = "<script>alert(1)</script> a gift [x](http://evil.invalid) & more"
LONG = " ".join(f"w{n}." if n % 40 == 39 else f"w{n}" for n in range(200))
# The last one is below the depth of the run.
TEXTS = [HOSTILE, "one text", "", "word", LONG, *(f"text {n}" for n in range(5, 12)), "deep"]
ROWS = "query_id,query,doc_id,document,label,score\n" + "".join(
    f'q{q},return a gift {q},d{d},"{text}",{int(d == 1)},{30 - d}\n'
    for q in range(2)
    for d, text in enumerate(TEXTS)
)
LABEL = "Find out what the score depends on"
REMOTE = {"base_url": "https://api.example/v1", "dialect": "tei"}
RUNS = {
    "words": {},
    "no time": {"measured": Measured(pairs=20, seconds=0.0)},
    "2 pairs a second": {"measured": Measured(pairs=20, seconds=10.0)},
    "and a model to load": {"measured": Measured(pairs=20, seconds=10.0), "load_ms": 3000.0},
    "from a file": {"reranker": "precomputed", "settings": {}},
    "of the documents together": {"reranker": "llm-listwise", "settings": {}},
    "by a language model": {"reranker": "llm-pointwise", "settings": {}},
    "of settings that are not understood": {"settings": {"language": "*wrong*"}},
    "by a service": {"reranker": "endpoint", "settings": REMOTE},
    "by a service with a price": {"reranker": "endpoint",
                                  "settings": REMOTE | {"price_tokens": 1000.0}},
}  # fmt: skip


@pytest.fixture
def shop(workspace) -> str:
    """Return the id of a data set with a run for each of `RUNS`."""
    dataset_id = keep_rows(workspace, ROWS, "Shop")
    run = rerank(workspace.dataset(dataset_id), create("bm25"), depth=len(TEXTS) - 1)
    usual = replace(run, measured=None, load_ms=np.nan)
    scores = np.nan_to_num(run.ranking.scores)
    scored = {"every document scored": {"ranking": replace(run.ranking, scores=scores)}}
    for name, changes in (RUNS | scored).items():
        workspace.save_run(replace(usual, id=name, name=name, **changes))
    return dataset_id


def panel(dataset_id: str, run: str = "words", query: str = "return a gift 0"):
    """Return a function that draws the part for a run."""
    data, systems = stored.dataset(dataset_id), stored.systems(dataset_id)
    study = Study(data, systems, FIRST_STAGE, (run,))

    def draw() -> None:
        ladder = queries_study.ladder_of(study, run, "q0")
        page_occlusion.draw_occlusion(study, run, ladder, "q0", query)

    return draw


def work(workspace, doc: str, level: str = "term", run: str = "words"):
    """Let a worker claim an explanation. Return the rows, its id and its worker."""
    rows, me = Explanations(workspace), Owner()
    number = rows.ask(ExplanationRequest(run, "q0", doc, level))
    rows.claim(me)
    return rows, number, me


def leave_off(workspace) -> None:
    """Store explanations of documents in every state."""
    whole = Explanation(1.5, (Stage("sentence", (TextPart(((0, 6),)),), (-0.5,)),), 8, 20)
    work(workspace, "d6")
    rows, number, me = work(workspace, "d7")
    rows.progress(number, me, 5, 10)
    rows, number, me = work(workspace, "d8")
    # A document explained by sentence first may need fewer calls than the estimate.
    rows.progress(number, me, 12, 10)
    rows.cancel(number)
    rows, number, me = work(workspace, "d9")
    rows.finish(number, me, "cancelled")
    rows, number, me = work(workspace, "d10")
    rows.finish(number, me, "failed", UnavailableError("No *model*.", remedy="Get it."))
    rows, number, me = work(workspace, "d11")
    rows.interrupt(me.token)
    rows, number, me = work(workspace, "d1", "sentence")
    rows.finish(number, me, "done", result=whole.to_json())
    rows.ask(ExplanationRequest("words", "q0", "d5", "term"))


STATES = {
    "waits": {"doc": "d5"},
    "begins": {"doc": "d6"},
    "half done": {"doc": "d7"},
    "more than all, and being cancelled": {"doc": "d8"},
    "was cancelled": {"doc": "d9"},
    "failed": {"doc": "d10"},
    "was interrupted": {"doc": "d11"},
    "done": {"doc": "d1", "leave": "sentence"},
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_is_offered_priced_watched_or_refused_in_words(
    approved, shop, workspace, hand, language, monkeypatch
):
    monkeypatch.delenv("RERANK_API_KEY", raising=False)
    usual = said(panel(shop), language, doc="d0")
    cases = {"offered": usual}

    def add(name: str, draw=None, **params: str) -> None:
        text = said(draw or panel(shop), language, **({"doc": "d0"} | params))
        # A separate test covers the offered documents.
        cases[name] = re.sub(r"(?m)^(- )?\[selectbox\].*\n", "", unlike(usual, text))

    for run in [*RUNS][1:]:
        add(run, panel(shop, run))
    add("the list of another system", right="2 pairs a second")
    add("the list of a system that is gone", right="gone")
    add("the list of the first stage", left="words", right=FIRST_STAGE)
    add("words of the query by a service", panel(shop, "by a service"), leave="query")
    add("no text", panel(shop, "every document scored"), doc="d2")
    add("a query without a text", panel(shop, query=""))
    add("nothing is left without the only word", doc="d3")
    add("too many words", doc="d4")
    add("below the depth", doc="d12")
    jobs.submit(workspace, jobs.JobRequest(shop, "bm25"))
    add("while a run waits")
    Queue(workspace).claim(Owner())
    add("while a run is in progress")
    leave_off(workspace)
    for name, params in STATES.items():
        add(name, **params)
    assert hand.asked == 4
    monkeypatch.setattr(page_occlusion, "read_only", lambda: True)
    for name in ("half done", "failed", "done"):
        add(f"read-only: {name}", **STATES[name])
    assert hand.asked == 4
    approved(f"ui/why_score.{language}", table(cases))


def test_ranked_documents_are_offered_by_rank_and_relevant_ones_however_deep(workspace):
    """The fourth is not ranked; of many, fifty and the relevant ones below them."""
    rows = "".join(f"q0,a gift,d{n},Text {n},{int(n in (3, 55))},{90 - n}\n" for n in range(60))
    dataset_id = keep_rows(workspace, ROWS.partition("\n")[0] + "\n" + rows, "Deep")
    run = rerank(workspace.dataset(dataset_id), create("bm25"))
    order = [f"d{n}" for n in (0, 2, 1, *range(4, 60))]
    listed = keep_lists(workspace, dataset_id, [("q0", order, [*range(59, 0, -1)])], "listed")
    workspace.save_run(replace(run, id="words", ranking=listed.ranking))
    box = drawn(panel(dataset_id)).selectbox(key="address.doc")
    assert box.options[:3] == ["1 · Text 0 (0 of 1)", "2 · Text 2 (0 of 1)", "3 · Text 1 (0 of 1)"]
    assert box.options[49:] == ["50 · Text 50 (0 of 1)", "55 · Text 55 (1 of 1)"]


def test_it_is_asked_of_a_service_with_its_key_once_that_is_confirmed(shop, workspace, hand):
    asked = ExplanationRequest("by a service", "q0", "d0", "term")
    app = drawn(panel(shop, "by a service"), doc="d0")
    assert button(app, LABEL).disabled
    app.checkbox(key=f"occlusion.confirm.{asked.id}").check().run()
    button(app, LABEL).click().run()
    assert "No key yet" in page_text(app)
    assert not hand.asked and Explanations(workspace).find(asked) is None
    app.text_input(key=f"key.occlusion.{asked.id}.0").set_value("sk-own").run()
    button(app, LABEL).click().run()
    assert [*hand.keys.values()] == [{"TEI_API_KEY": "sk-own"}] and hand.asked
    assert Explanations(workspace).find(asked).state == "queued"


def test_while_it_runs_it_can_be_cancelled_once(shop, workspace, hand):
    rows, number, me = work(workspace, "d0")
    app = drawn(panel(shop), doc="d0")
    button(app, "Cancel").click().run()
    assert not rows.beat(number, me)
    app.run()
    assert button(app, "Cancel").disabled


def test_it_is_asked_made_shown_and_kept(app, shop, workspace):
    def opened() -> str:
        bodies = (element.proto.body for element in app.get("html"))
        return "".join(body for body in bodies if "rd-why" in body)

    app.session_state["queries.details"] = app.session_state["queries.occlusion"] = True
    open_page(app, "queries", q="q0", system="words", doc="d0")
    button(app, LABEL).click().run()
    deadline = time.monotonic() + 300
    while not opened() and time.monotonic() < deadline:
        time.sleep(0.2)
        app.run()
        assert not app.exception and not app.error
    shown = opened()
    assert "<mark class='rd-up rd-4'" in shown
    assert "&lt;script&gt;" not in shown, "the word is marked apart from its brackets"
    assert "<script" not in shown and "[x](" not in texts(app)
    found = next(each.value for each in app.dataframe if "effect" in each.value)
    effects = found.set_index("part")["effect"]
    assert set(effects.index[:2]) == {"a", "gift"}, "the words of the query"
    assert effects["gift"] > 0 > effects["more"], "BM25 marks down what is longer"
    row = Explanations(workspace).find(ExplanationRequest("words", "q0", "d0", "term"))
    assert (row.state, row.done) == ("done", 10)
    app.run()
    assert opened() == shown and LABEL not in [each.label for each in app.button]
