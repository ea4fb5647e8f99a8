"""Why this score: what it costs, progress, what was found in marks and numbers, and why not."""

import time
from dataclasses import replace

import pandas as pd
import pytest

from rankdash.analysis.reasons.occlusion import Explanation, Stage, TextPart, explain, terms
from rankdash.rerankers import create
from rankdash.runs.runner import rerank
from rankdash.store.jobs.explanations import Asked, Explanations
from rankdash.store.jobs.leases import Owner
from rankdash.ui.queries import occlusion_view
from tests.stored import keep_rows
from tests.ui.test_pages import open_page, texts

HOSTILE = "<script>alert(1)</script> a gift [x](http://evil.invalid) & more"
ROWS = "query_id,query,doc_id,document,label,score\n" + "".join(
    f'q{q},return a gift {q},d{d},"{other or HOSTILE}",{int(d == 1)},{3 - d}\n'
    for q in range(3)
    for d, other in enumerate(("", "one text", "other"))
)
LABEL = "Find out what the score depends on"


@pytest.fixture
def shop(workspace):
    """The id of a data set with a run by BM25."""
    dataset_id = keep_rows(workspace, ROWS, "Shop")
    run = rerank(workspace.dataset(dataset_id), create("bm25"), depth=2)
    workspace.save_run(replace(run, id="words", name="words"))
    return dataset_id


@pytest.fixture
def ask(workspace):
    """Put a row into the state that a worker would leave it in."""

    def put(level="term", doc_id="d0", run_id="words"):
        rows, me = Explanations(workspace), Owner()
        number = rows.ask(Asked(run_id, "q0", doc_id, level))
        rows.claim(me)
        return rows, number, me

    return put


def opened(app, **params):
    app.session_state["queries.occlusion"] = True
    return open_page(app, "queries", q="q0", **params)


def html(app) -> str:
    bodies = (element.proto.body for element in app.get("html"))
    return "".join(body for body in bodies if "rd-why" in body)


def button(app, label):
    return next((each for each in app.button if each.label == label), None)


def test_it_is_asked_made_shown_and_kept(app, shop, workspace):
    opened(app)
    assert "an approximation" in texts(app)
    assert "Cost: 10 pairs to score" in texts(app)
    button(app, LABEL).click().run()
    deadline = time.monotonic() + 300
    while not html(app) and time.monotonic() < deadline:
        time.sleep(0.2)
        app.run()
        assert not app.exception
        assert not app.error
    shown = html(app)
    assert "<mark class='rd-up rd-4'" in shown
    assert "&lt;script&gt;" not in shown, "the word is marked apart from its brackets"
    assert "<script" not in shown
    assert "[x](" not in texts(app)
    table = next(each.value for each in app.dataframe if "effect" in each.value)
    effects = table.set_index("part")["effect"]
    assert set(effects.index[:2]) == {"a", "gift"}, "the words of the query"
    assert effects["gift"] > 0 > effects["more"], "BM25 marks down what is longer"
    row = Explanations(workspace).find(Asked("words", "q0", "d0", "term"))
    assert (row.state, row.done) == ("done", 10)

    app.run()
    assert html(app) == shown
    assert button(app, LABEL) is None


def test_while_it_runs_it_shows_how_far_it_is_and_can_be_cancelled(app, shop, ask):
    rows, number, me = ask()
    rows.progress(number, me, 5, 10)
    opened(app)
    assert any("5 of 10 pairs" in each.proto.text for each in app.get("progress"))
    button(app, "Cancel").click().run()
    assert not rows.beat(number, me)
    rows.finish(number, me, "cancelled")
    app.run()
    assert "It was cancelled." in texts(app)
    assert button(app, LABEL) is not None


def test_a_failure_is_said_and_can_be_tried_again(app, shop, ask):
    from rankdash.errors import UnavailableError

    rows, number, me = ask()
    rows.finish(
        number, me, "failed", error=UnavailableError("No model {n}.", remedy="Get it.", n="*x*")
    )
    opened(app)
    assert "No model \\*x\\*\\. Get it\\." in [each.value for each in app.error]
    assert button(app, LABEL) is not None


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("level", ["sentence", "query"])
def test_sentences_and_words_of_the_query(app, shop, ask, level, language):
    rows, number, me = ask(level)
    text = HOSTILE if level == "sentence" else "return a gift 0"
    stage = Stage(level, (TextPart(((0, len(text)),)),), (-0.5,))
    rows.finish(number, me, "done", result=Explanation(1.5, (stage,), 8, 20).to_json())
    opened(app, leave=level, lang=language)
    shown = html(app)
    assert "rd-down rd-4" in shown
    assert ("&lt;script&gt;" in shown) == (level == "sentence")
    assert "<script" not in shown
    assert ("8 of 20 tokens" in texts(app)) == (language == "en")


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"doc": "d2"}, "This document was not reranked: it is below the depth of the run."),
        (
            {"cards": "first-stage"},
            "The scores of the first stage are part of the data and cannot be computed again. Run "
            "BM25 or a model as a reranker to see what its scores depend on.",
        ),
    ],
)
def test_what_cannot_be_explained_says_why(app, shop, params, said):
    opened(app, **params)
    assert said in texts(app).splitlines()
    assert button(app, LABEL) is None


def test_a_ranking_from_a_file_says_why_not(app, stored):
    opened(app)
    assert {*texts(app).splitlines()} >= {
        "This ranking was not computed from texts here, so no text can be tried on it."
    }


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            "llm-listwise",
            "This reranker scores the documents of a query together: a single document has no "
            "score whose change could be shown.",
        ),
        (
            "llm-pointwise",
            "A language model would be called once for each part, and its grades are too coarse to "
            "show what one part does. Not offered.",
        ),
    ],
)
def test_language_models_say_why_not(app, shop, workspace, kind, said):
    run = workspace.run("words")
    workspace.save_run(replace(run, id="asked", name="asked", reranker=kind, settings={}))
    opened(app, system="asked")
    assert said in texts(app).splitlines()


def test_a_service_is_called_only_when_that_is_confirmed(app, shop, workspace):
    run = workspace.run("words")
    settings = {"base_url": "http://127.0.0.1:9", "dialect": "tei"}
    workspace.save_run(replace(run, id="far", name="far", reranker="endpoint", settings=settings))
    opened(app, system="far")
    (cost,) = (line for line in texts(app).splitlines() if line.startswith("Cost: "))
    assert cost.replace("\\", "") == (
        "Cost: 10 pairs to score in about 1 call to 127.0.0.1:9, 198 tokens."
    )
    assert button(app, LABEL).disabled


def marks(found, text, query="q"):
    return occlusion_view._marked(found, text, query)


def test_strength_and_direction_differ_in_more_than_colour():
    text = "big small less none gap"
    parts = tuple(terms(text, ""))
    stage = Stage("term", parts, (1.0, 0.35, -0.9, 0.01, float("nan")))
    shown = marks(Explanation(1.0, (stage,)), text)
    assert "<mark class='rd-up rd-4' title='+1.0000'>big</mark>" in shown
    assert "<mark class='rd-up rd-2' title='+0.3500'>small</mark>" in shown
    assert "<mark class='rd-down rd-4' title='-0.9000'>less</mark>" in shown
    assert shown.count("<mark") == 3
    assert "solid #0072B2" in occlusion_view._STYLE
    assert "wavy #D55E00" in occlusion_view._STYLE


@pytest.mark.parametrize("blank", [" ", ""])
def test_sentences_that_were_not_looked_into_are_faint(blank):
    import numpy as np

    words = [f"w{n}" for n in range(200)] if blank else [chr(0x4E00 + n) * 2 for n in range(200)]
    text = "".join(
        blank.join(words[at : at + 40]) + ("." if blank else "。") + blank
        for at in range(0, 200, 40)
    )

    def scorer(variants):
        return np.array([float(words[50] in each.document) for each in variants])

    found = explain(words[50], text, "term", scorer)
    assert len(found.stages) == 2
    shown = marks(found, text, words[50])
    assert "rd-faint" in shown
    assert f">{words[50]}</mark>" in shown
    plain = pd.Series([shown]).str.replace(r"<[^>]+>", "", regex=True)[0]
    assert plain == text
