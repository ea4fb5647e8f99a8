"""The form *Fetch from a search engine* of the page Run, and its runs on all pages."""

import json
import threading

import pandas as pd
import pytest

from rankdash.core.base import allowed
from rankdash.core.runs import jobs
from rankdash.core.runs.fetch_job import Fetch
from rankdash.core.runs.jobs import JobRequest
from rankdash.core.runs.worker import Attempt, Handover
from rankdash.core.search.endpoint import Endpoint
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.workspace.jobs.leases import Owner
from rankdash.core.workspace.jobs.queue import Progress, Queue
from rankdash.core.workspace.notes import Corrections
from rankdash.features.run import page_fetch, page_form, page_jobs, page_runs
from rankdash.kit.widgets import run_records, search_form
from rankdash.kit.widgets import stored as widgets_stored
from tests.rerankers.loopback import SEARCH
from tests.ui.page_text import page_text
from tests.ui.sessions import part, press, said, whole

KEY = "typed-by-hand-4711"
NOWHERE = (
    '{"hits": "nowhere", "id": "_id", '
    '"body": {"query": {"match": {"text": "{query}"}}, "size": "{k}"}}'
)
EVIL = "return **bold** <img src=x onerror=alert(1)> [link](http://evil.example)"


@pytest.fixture(autouse=True)
def worker(hand):
    return hand


@pytest.fixture
def engine(server):
    server.key = KEY
    server.documents = {f"d{n}": f"how to return {n}" for n in range(3)} | {"evil": EVIL}
    return server


@pytest.fixture
def work(workspace, worker):
    """Run all queued jobs in this process, with the keys that the page passed."""

    def all_jobs():
        queue, owner, row = Queue(workspace), Owner(), None
        while (job := queue.claim(owner)) is not None:
            handover = Handover()
            handover.feed(jobs.line(job.id, worker.keys.get(job.id, {})))
            Attempt(workspace, owner, job, threading.Event(), handover).run()
            row = queue.row(job.id)
        return row

    return all_jobs


def form(data, lang="en", **state):
    return part(page_fetch.form, data, lang=lang, state=state)


def fill(app, engine, key=KEY, url=""):
    """Enter the URL of the engine, and a key."""
    app.text_input(key="search.run.url").set_value(url or engine.url + SEARCH).run()
    [field] = [each for each in app.text_input if each.label.startswith("Key of the service")]
    if key:
        field.set_value(key).run()
    return app


def endpoint(engine, **fields):
    template = search_form.presets()["elasticsearch"].as_dict()
    return Endpoint.of({**template, "url": engine.url + SEARCH, **fields})


@pytest.fixture
def fetched(workspace, stored, engine, work, worker):
    """The id of a fetched run of the data set."""
    job_id = jobs.new_id()
    worker.keys[job_id] = {"SEARCH_KEY": KEY}
    request = Fetch(endpoint(engine), 4, 2)
    jobs.submit_fetch(workspace, stored, request, "Elasticsearch · top 4", job_id)
    row = work()
    assert row.state == "done", row.message
    return job_id


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_form(stored, approved, lang):
    approved(f"pages/fetch.{lang}", page_text(form(stored, lang)))


def test_a_test_shows_request_and_hits_and_stores_nothing(workspace, stored, engine):
    app = press(fill(form(stored), engine), "Test")
    request, answer = (each.value for each in app.code)
    assert (
        f"POST {engine.url}{SEARCH}" in request and "Authorization: ApiKey $SEARCH_KEY" in request
    )
    assert '"query": "how to return 0"' in request and KEY not in request + answer
    [hits] = app.dataframe
    assert list(hits.value["document"]) == ["d0", "d1", "d2", "evil"]
    assert hits.value["text"][3] == EVIL
    # A text of a document is never Markdown.
    assert "evil.example" not in said(app)
    assert not jobs.list(workspace) and not workspace.setting("search.endpoints")
    # The result of another request is not shown.
    assert not app.number_input(key="search.run.depth").set_value(3).run().code


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"key": ""}, "No key yet"),
        ({"key": "wrong-key-0815"}, "401"),
        ({"request": NOWHERE}, "the answer has no list at nowhere"),
        ({"request": '{"id": '}, "not valid JSON"),
        ({"request": '{"id": "_id", "body": 1}'}, "does not use the query"),
        ({"request": '{"id": "_id", "headers": {"Authorization": "a"}}'}, "would be stored"),
        ({"url": "ftp://host/x"}, "URL of the endpoint is not valid"),
        ({"address": "http://169.254.169.254/latest"}, "its address is private"),
        ({"query": " "}, "Enter a test query"),
    ],
)
def test_a_problem_is_shown_in_words(stored, engine, change, words, monkeypatch):
    if "address" in change:
        monkeypatch.setenv(allowed.SHARED, allowed.YES)
    engine.key = "" if change.get("request") == NOWHERE else engine.key
    app = form(stored)
    app = fill(app, engine, change.get("key", KEY), change.get("address", ""))
    if "request" in change:
        [field] = app.text_area
        field.set_value(change["request"]).run()
    if "url" in change:
        app.text_input(key="search.run.url").set_value(change["url"]).run()
    if "query" in change:
        [field] = [each for each in app.text_input if each.label == "Test query"]
        field.set_value(change["query"]).run()
    if [each for each in app.button if each.label == "Test"]:
        app = press(app, "Test")
    assert words in " ".join(each.value for each in app.error)


def test_a_fetch_is_started_with_a_typed_key_that_is_never_stored(
    workspace, stored, engine, work, worker
):
    app = fill(form(stored), engine)
    app.number_input(key="search.run.depth").set_value(4).run()
    press(app, "Fetch")
    [job] = jobs.list(workspace)
    assert job.name == "Elasticsearch · top 4"
    assert worker.keys == {job.id: {"SEARCH_KEY": KEY}}
    assert work().state == "done"
    assert workspace.run(job.id).documents["text"].tolist() == [EVIL]
    files = [path for path in workspace.root.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    # The same request is offered first the next time.
    app = form(stored)
    assert app.text_input(key="search.run.url").value == engine.url + SEARCH
    address = engine.url.partition("://")[2] + SEARCH
    assert app.selectbox[0].options[0] == f"Elasticsearch · {address}"
    assert json.loads(workspace.setting("search.endpoints"))[0]["url"] == engine.url + SEARCH


def test_an_engine_is_recognised_and_placeholders_in_the_url_become_parameters(stored, engine):
    engine.key = ""
    app = form(stored)
    app = app.selectbox[0].set_value("solr").run()
    url = app.text_input(key="search.run.url")
    assert url.value == "http://localhost:8983/solr/docs/query"
    app = url.set_value("http://127.0.0.1:7700/indexes/shop/search").run()
    assert app.selectbox[0].value == "meilisearch"
    app = app.text_input(key="search.run.url").set_value("http://127.0.0.1:1/find").run()
    assert app.selectbox[0].value == "meilisearch"
    app.selectbox[0].set_value("other").run()
    assert app.text_input(key="search.run.url").value == "http://127.0.0.1:1/find"
    written = json.dumps({"hits": "hits.hits", "id": "_id"})
    app.text_area[0].set_value(written).run()
    app = app.text_input(key="search.run.url").set_value("http://127.0.0.1:1/x?q={query}&a=b").run()
    app = press(app, "Test")
    assert app.code[0].value.startswith("GET http://127.0.0.1:1/x?a=b&q=how+to+return+0")
    assert "cannot be reached" in app.error[0].value and "resume" not in app.error[0].value
    app = app.text_area[0].set_value("{").run()
    assert "choose a preset again" in app.error[0].value


def test_a_complete_file_brings_its_url_and_no_key_is_possible(workspace, stored, engine, work):
    engine.key = ""
    app = form(stored)
    app.text_area[0].set_value(json.dumps(endpoint(engine).as_dict())).run()
    app.checkbox(key="key.search.run.SEARCH_KEY.none").check().run()
    press(app, "Fetch")
    [job] = jobs.list(workspace)
    assert "SEARCH_KEY" not in str(job.settings)
    assert work().state == "done"


def test_variants_of_one_preset_have_different_names(workspace, engine):
    one = endpoint(engine)
    assert search_form.distinct_title(one, "BM25") == "Elasticsearch"
    assert search_form.distinct_title(one, "Elasticsearch") == "Elasticsearch · docs/_search"
    search_form.remember(one)
    other = endpoint(engine, url=f"{engine.url}/shop-v2/_search?key=secret")
    assert search_form.distinct_title(other, "BM25") == "Elasticsearch · shop-v2/_search"
    moved = endpoint(engine, url="http://other.example/docs/_search")
    assert search_form.distinct_title(moved, "BM25") == "Elasticsearch · other.example"
    assert search_form.distinct_title(endpoint(engine, name="Mine"), "Mine") == "Mine"
    shown = run_records.settings_in_words(
        {"endpoint": json.dumps(other.as_dict()), "request": "a1"}
    )
    assert shown == f"url={other.address}, request=a1" and "secret" not in shown


def test_progress_resume_and_retry(workspace, stored, engine, work, worker):
    engine.fault_of = lambda body: {"status": 400} if "return 3" in str(body) else {}
    request = Fetch(endpoint(engine), 4)
    job_id = jobs.submit_fetch(workspace, stored, request, "Elasticsearch")
    claimed = Queue(workspace).claim(Owner("other"))
    assert claimed.id == job_id
    assert "fetching" in page_text(part(page_jobs.draw, stored))
    Queue(workspace).interrupt("other")
    app = part(page_jobs.draw, stored)
    press(app, "Resume")
    assert "No key yet" in said(app), "a key is needed again"
    [field] = [each for each in app.text_input if each.label.startswith("Key of the service")]
    press(field.set_value(KEY).run(), "Resume")
    row = work()
    assert (row.state, row.done, row.failed) == ("done", 15, 1), row.message
    app = part(page_runs.draw_details, job_id)
    assert "1 query failed. It is reported as failed and never scored as 0" in said(app)
    assert f"Fetched from 127.0.0.1:{engine.server_address[1]}{SEARCH}: request" in said(app)
    engine.fault_of = lambda body: {}
    [field] = [each for each in app.text_input if each.label.startswith("Key of the service")]
    press(field.set_value(KEY).run(), "Retry the 1 failed query")
    assert work().failed == 0
    assert len(workspace.runs(stored)) == 3


def test_repeats_and_the_removal_of_a_fetch_are_named(workspace, stored, engine, monkeypatch):
    jobs.submit_fetch(workspace, stored, Fetch(endpoint(engine), 4, 3), "Elasticsearch")
    queue, owner = Queue(workspace), Owner("other")
    job = queue.claim(owner)
    queue.progress(job.id, owner, Progress(stage="timing", done=15, failed=1, total=16))
    text = page_text(part(page_jobs.draw, stored))
    assert "repeating the requests" in text
    assert "15 of 16 queries · 1 query failed" in text
    queue.interrupt("other")
    lost = []
    monkeypatch.setattr(page_jobs.dialogs, "delete", lambda _title, lines, _do: lost.extend(lines))
    press(part(page_jobs.draw, stored), "Remove")
    assert lost == ["Elasticsearch", "15 answered queries will be lost."]


def test_the_churn_of_an_engine_is_shown(fetched):
    assert list(run_records.record(fetched).remarks()) == ["churn of the top 10: 0%"]
    assert "Churn: 0% of the top 10 changed" in said(part(page_runs.draw_details, fetched))


def test_fetched_documents_are_labelled_and_reranked_until_their_run_is_deleted(
    workspace, stored, fetched, work
):
    data = widgets_stored.dataset(stored)
    assert data.document_text()["evil"] == EVIL and data.id == stored
    layer = Corrections(workspace)
    layer.correct(stored, ("q0", "evil"), 1.0, "Ann")
    layer.correct(stored, ("q0", "d1"), 1.0, "Ann")
    labelled = widgets_stored.dataset(widgets_stored.in_force(stored))
    assert "evil" in set(labelled.qrels["doc_id"])
    app = part(page_form.draw, stored, state={"run.rerankers": ["bm25"]})
    assert "Elasticsearch · top 4" in app.selectbox(key=f"run.source.{stored}").options
    workspace.delete_run(fetched)
    assert "evil" not in widgets_stored.dataset(stored).document_places
    remaining = widgets_stored.dataset(widgets_stored.in_force(stored))
    pairs = pd.MultiIndex.from_frame(remaining.qrels[["query_id", "doc_id"]])
    assert ("q0", "evil") not in pairs and ("q0", "d1") in pairs


@pytest.mark.parametrize("page", [
    "overview", "queries", "rank_shifts", "latency", "cost", "policy", "report", "history", "run",
    "label", "judge",
])  # fmt: skip
def test_every_page_shows_a_fetched_run_as_baseline_and_a_run_over_its_candidates(
    page, workspace, stored, fetched, work
):
    run = jobs.submit(workspace, JobRequest(stored, "bm25", name="again", candidates=fetched))
    assert work().state == "done"
    for base, systems in ((fetched, [run, FIRST_STAGE]), (FIRST_STAGE, [fetched, run])):
        app = whole(page, data=stored, base=base, system=systems)
        assert not app.exception, app.exception[0].message
        text = page_text(app)
        assert "again" in text or "Elasticsearch" in text
        assert "its latency is not measured" not in text
        assert "<img" not in text or page == "queries", "a text of a document is HTML"


def test_a_data_set_without_texts_cannot_be_fetched(workspace):
    from tests.stored import keep_rows

    rows = keep_rows(workspace, "query_id,doc_id,label,score\na,b,1,2\nc,b,0,1\n", "ids")
    app = form(rows)
    assert "needs the texts of the queries" in said(app) and not app.button
