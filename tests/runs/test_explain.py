"""Explanations by a worker: effects of a made-up model exact, cancelled, failed, cached."""

import math
import threading
from dataclasses import replace

import numpy as np
import pytest

from rankdash.core.data.explanation import Explanation
from rankdash.core.rerankers import Scored, create, get
from rankdash.core.runs.jobs import Handover, line
from rankdash.core.runs.runner import rerank
from rankdash.core.workspace.jobs.leases import ExplanationRequest, Explanations, Owner
from rankdash.features.queries import occlusion
from rankdash.features.queries.occlusion import Explainer, TextVariant
from tests.runs.stub import Stub, failed

TEXT = "A gift has a refund. Never a refund, never."
WORTH = {"refund": 2.0, "gift": 0.5, "ever": -1.25}


def worth(request):
    """Return the sum of the weights of words; a text without "has" cannot be scored."""
    texts = request.documents
    if any("has" not in text for text in texts):
        return failed("a text without has")(request)
    scores = [sum(value for word, value in WORTH.items() if word in text) for text in texts]
    read = [12 if text == TEXT else 7 for text in texts]
    return Scored(np.array(scores), np.array(read), np.full(len(texts), 40))


@pytest.fixture
def dataset(workspace, make_dataset):
    made = make_dataset(doc_text={"d0": TEXT, "d1": "alone"}, query_text="my gift")
    workspace.save_dataset(made)
    return made


@pytest.fixture
def add_run(workspace, dataset):
    def add(run_id):
        able = get("bm25").capabilities
        run = rerank(dataset, create("bm25"), capabilities=able, query_ids=["q0"])
        return workspace.save_run(replace(run, id=run_id))

    return add


@pytest.fixture
def model(monkeypatch):
    made = Stub(usual=worth)
    monkeypatch.setattr(occlusion, "create", lambda name, settings: made)
    return made


@pytest.fixture
def explainer(workspace, model):
    return Explainer(workspace, Owner(), threading.Event())


@pytest.fixture
def ask(workspace):
    rows = Explanations(workspace)

    def put(run_id, doc_id="d0", level="term", query_id="q0"):
        asked = ExplanationRequest(run_id, query_id, doc_id, level)
        rows.ask(asked)
        return lambda: rows.find(asked)

    return put


def effects(row, text):
    stage = Explanation.from_json(row.result).stages[-1]
    return dict(zip([part.shown(text) for part in stage.parts], stage.effects, strict=True))


@pytest.mark.parametrize("batch", [occlusion.LOCAL_BATCH, 1])
def test_effects_tokens_and_the_part_that_cannot_be_spared(
    explainer, add_run, ask, monkeypatch, batch
):
    monkeypatch.setattr(occlusion, "LOCAL_BATCH", batch)
    add_run("one")
    find = ask("one")
    assert explainer.serve()
    assert not explainer.serve()
    row = find()
    assert (row.state, row.done, row.total) == ("done", 6, 6)
    found = Explanation.from_json(row.result)
    assert (found.score, found.read, found.full) == (1.25, 12, 40)
    assert str(effects(row, TEXT)) == str(
        {"A": 0.0, "gift": 0.5, "has": math.nan, "refund": 2.0, "Never": -1.25}
    ), "a variant that failed has no effect, and does not take the others with it"


def test_a_kept_answer_and_a_kept_model_are_not_made_again(
    explainer, model, add_run, ask, monkeypatch
):
    now = [1000.0]
    monkeypatch.setattr(occlusion.time, "monotonic", lambda: now[0])

    def loaded(run_id, level, waited=0.0):
        now[0] += waited
        ask(run_id, level=level)
        before = model.loaded
        assert explainer.serve()
        return model.loaded - before

    for run_id in ("one", "two"):
        add_run(run_id)
    assert loaded("one", "term") == 1
    ask("one")
    assert not explainer.serve(), "it is kept"
    for level in ("query", "sentence"):
        assert loaded("one", level, occlusion.KEEP_SECONDS) == 0, "since it was last asked"
    assert loaded("two", "term") == 1, "one model is kept, not two"
    assert loaded("two", "query", occlusion.KEEP_SECONDS + 1) == 1, "it was let go of"


def test_a_text_that_cannot_be_scored_is_said(explainer, model, add_run, ask):
    """Other errors: `test_claimed.py`."""
    add_run("one")
    for doc_id, why in (("d1", "a text without has."), ("d0", "the reranker gave no score.")):
        find = ask("one", doc_id)
        explainer.serve()
        row = find()
        assert (row.state, row.result) == ("failed", None)
        assert f"cannot be scored: {why}" in str(row.error)
        model.usual = lambda request: Scored(np.full(len(request.documents), math.nan))


def test_one_that_is_cancelled_stops(
    explainer, model, add_run, ask, monkeypatch, workspace, until_told
):
    add_run("one")
    find = ask("one", level="sentence")
    cancel = until_told(Explanations, lambda: Explanations(workspace).cancel(find().id))
    model.usual = lambda request: cancel() or worth(request)
    monkeypatch.setattr(occlusion, "LOCAL_BATCH", 1)
    explainer.serve()
    assert (find().state, find().done) == ("cancelled", 1)


def test_a_real_model(workspace, add_run, ask):
    add_run("one")
    find, about = ask("one"), ask("one", level="query")
    explainer = Explainer(workspace, Owner(), threading.Event())
    assert explainer.serve() and explainer.serve()
    row = find()
    assert row.state == "done", row.error
    found = effects(row, TEXT)
    assert max(found, key=found.get) == "gift"
    docs, scores = workspace.run("one").ranking.documents_of("q0")
    again = Explanation.from_json(row.result)
    assert again.score == pytest.approx(scores[docs.index("d0")], abs=1e-4)
    assert effects(about(), "my gift")["gift"] > 0


def test_a_service_is_asked_in_calls_of_many_with_the_key_that_was_typed(
    workspace, add_run, ask, monkeypatch, server
):
    add_run("one")
    server.key = "sk-typed-by-hand"
    settings = {"base_url": server.url, "key_variable": "RACK_API_KEY"}
    run = workspace.run("one")
    workspace.save_run(replace(run, id="far", reranker="endpoint", settings=settings))
    handover = Handover()
    explainer = Explainer(workspace, Owner(), threading.Event(), handover)
    find = ask("far")
    explainer.serve()
    assert "The key of the service is missing" in str(find().error)
    assert server.seen == []

    handover.feed(line(find().id, {"RACK_API_KEY": "sk-typed-by-hand"}))
    ask("far")
    explainer.serve()
    row = find()
    assert (row.state, len(server.seen)) == ("done", 1)
    assert max(effects(row, TEXT).items(), key=lambda each: each[1])[0] == "gift"
    assert handover.take(row.id) == {}
    find = ask("far", level="sentence")
    explainer.serve()
    said = str(find().error)
    assert "The key of the service is missing" in said, "a service is not kept: it holds a key"
    # One of three calls fails; it is not retried, because retries may cost money. Two calls are
    # active at the same time, so the fault belongs to a text, not to a position.
    server.fault_of = lambda body: {"short": 1} if body["query"] == "gift" else {}
    monkeypatch.setattr(occlusion, "REMOTE_BATCH", 2)
    about = ask("far", level="query")
    handover.feed(line(about().id, {"RACK_API_KEY": "sk-typed-by-hand"}))
    explainer.serve()
    assert len(server.seen) == 1 + 3


@pytest.mark.parametrize(("remote", "sizes"), [(True, [25, 5]), (False, [16, 14])])
def test_so_many_variants_are_put_to_a_reranker_between_two_looks(remote, sizes):
    """Variants of one query are one request."""
    variants = [TextVariant("one" if at < 20 else "other", f"text {at}") for at in range(30)]
    calls = list(occlusion.in_calls("q", "d", variants, remote))
    texts = [[text for request in call for text in request.documents] for call in calls]
    assert [len(each) for each in texts] == sizes
    assert [text for each in texts for text in each] == [one.document for one in variants]
    asked = [request.query for call in calls for request in call]
    assert asked == (["one", "other", "other"] if remote else ["one", "one", "other"])


def test_settings_of_a_run_are_those_that_a_reranker_can_have():
    kept = {"a": "x", "b": 1, "c": 0.5, "d": False}
    assert occlusion.scalars({**kept, "e": None, "f": [1], "g": {"h": 1}}) == kept


def test_of_a_run_that_is_gone_and_by_a_worker_that_has_to_stop_nothing_is_explained(
    explainer, model, add_run, ask, workspace
):
    add_run("one")
    find = ask("one")
    stopping = threading.Event()
    stopping.set()
    assert Explainer(workspace, Owner(), stopping).serve()
    assert (find().state, model.loaded) == ("interrupted", 0)
    find = ask("one")
    workspace.delete_run("one")
    explainer.serve()
    row = find()
    assert row is None or (row.state, row.result) == ("cancelled", None)
    assert model.loaded == 0
