"""The form *Start from a search URL* of the page Data: a new data set without labels."""

import json
import time

import pytest

from rankdash.core.base.errors import DataError, FormatError
from rankdash.core.base.files import locked
from rankdash.core.intake import from_search
from rankdash.core.intake.from_search import Fetching, queries_of_file
from rankdash.core.readers import Source
from rankdash.core.readers.queries import queries_of
from rankdash.core.rerankers.remote.connection import Policy
from rankdash.core.search.endpoint import Endpoint
from rankdash.features.data import page_fetch
from rankdash.features.run import page_fetch as run_page_fetch
from rankdash.kit.widgets.labels import corrections
from tests.rerankers.loopback import SEARCH, engine_at
from tests.ui.page_text import page_text
from tests.ui.sessions import button, part, press, said, whole

LINES = "how to return 1\n\n how to return 2 \nhow to return 1\nmoney back\n"
KEY = "typed-by-hand-4711"


@pytest.fixture
def engine(server):
    server.documents = {f"d{n}": f"how to return {n}" for n in range(3)}
    server.documents["evil"] = "money **back** <img src=x onerror=alert(1)>"
    return server


def opened(lang="en", **state):
    """Return the page with the open form."""
    return part(page_fetch.draw, lang=lang, state={"data.fetch": True, **state})


def fill(app, engine):
    app.text_area(key="data.fetch.queries").set_value(LINES).run()
    app.text_input(key="search.data.url").set_value(engine.url + SEARCH).run()
    return app.checkbox(key="key.search.data.SEARCH_KEY.none").check().run()


def ended(app):
    fetching = app.session_state["data.fetching"]
    limit = time.monotonic() + 60
    while fetching.running and time.monotonic() < limit:
        time.sleep(0.02)
    return app.run()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_form(workspace, approved, lang):
    approved(f"pages/fetch_data.{lang}", page_text(opened(lang)))


def test_queries_without_labels_become_a_data_set_with_the_engine_as_first_stage(workspace, engine):
    app = fill(opened(), engine)
    app = press(app, "Test")
    assert app.dataframe[0].value["document"][0] == "d1"
    app = press(app, "Fetch 3 queries")
    assert workspace.datasets() == [] or not app.session_state["data.fetching"].running
    app = ended(app)
    [row] = workspace.datasets()
    assert (row.name, row.queries, row.documents, row.labels) == ("Elasticsearch", 3, 4, 0)
    data = workspace.dataset(row.id)
    assert dict(data.query_text()) == {
        "q1": "how to return 1",
        "q2": "how to return 2",
        "q3": "money back",
    }
    assert (data.first_stage, data.candidates_name) == ("given", "Elasticsearch")
    assert data.candidates.documents_of("q1")[0][0] == "d1"
    assert app.session_state["address.choices"]["data"] == [row.id]
    # The page Latency shows the requests of the first stage.
    assert data.timings["latency_ms"].gt(0).all() and len(data.timings) == 3
    assert "Elasticsearch" in said(whole("latency", data=row.id))
    report = workspace.check_report(row.id)
    assert "was fetched from {host}" in report and '"ties"' not in report
    assert list((workspace.root / "fetches").iterdir()) == []


def test_failed_queries_are_sent_again_or_left_out_and_answered_ones_are_not(workspace, engine):
    engine.fault_of = lambda body: {"status": 400} if "money" in str(body) else {}
    app = ended(press(fill(opened(), engine), "Fetch 3 queries"))
    assert "1 query failed. It is not counted as a query without results." in said(app)
    assert "2 queries are answered and are not sent again." in said(app)
    assert list(app.dataframe[0].value["query"]) == ["money back"]
    before = len(engine.seen)
    app = ended(press(app, "Resume"))
    assert len(engine.seen) == before + 1
    app = press(app, "Continue without 1 failed query")
    [row] = workspace.datasets()
    assert row.queries == 2
    assert '"fetch_failed"' in workspace.check_report(row.id)
    # The request and the queries are still in the form.
    assert "data.fetching" not in app.session_state


def test_labels_of_documents_that_the_engine_did_not_return_count(workspace, engine):
    engine.fault_of = lambda body: {"status": 400} if "money" in str(body) else {}
    app = fill(opened(), engine)
    app.number_input(key="search.data.depth").set_value(7).run()
    press(ended(press(app, "Fetch 3 queries")), "Continue without 1 failed query")
    [row] = workspace.datasets()
    app = part(corrections.draw_new_labels, row.id)
    labels = b"q1 0 d1 1\nq1 0 missed 1\nq2 0 lost 2\nother 0 d1 1\n"
    app.file_uploader[0].set_value([("labels.qrels", labels, "text/plain")]).run()
    app = press(app, "Add these labels")
    assert "2 labels are of documents that no ranking contains; they count as not" in said(app)
    assert "1 not used" in said(app)
    [_before, after] = workspace.datasets()
    data = workspace.dataset(after.id)
    assert len(data.qrels) == 3 and {"missed", "lost"} <= data.textless
    codes = {each["code"] for each in json.loads(workspace.check_report(after.id))["findings"]}
    assert {"fetched", "fetch_failed"} <= codes and "ties" not in codes
    form = part(run_page_fetch.form, after.id)
    assert form.number_input(key="search.run.depth").value == 7


def test_a_refused_fetch_can_be_changed(workspace, engine):
    engine.key = KEY
    app = ended(press(fill(opened(), engine), "Fetch 3 queries"))
    assert "refuses the requests" in said(app)
    assert not [each for each in app.button if each.label.startswith("Continue without")]
    app = press(app, "Change the request")
    assert button(app, "Fetch 3 queries")


def test_a_typed_key_is_used_once_and_never_stored(workspace, engine):
    engine.key = KEY
    app = opened()
    app.text_area(key="data.fetch.queries").set_value(LINES).run()
    app.text_input(key="search.data.url").set_value(engine.url + SEARCH).run()
    [field] = [each for each in app.text_input if each.label.startswith("Key of the service")]
    field.set_value(KEY).run()
    ended(press(app, "Fetch 3 queries"))
    assert len(workspace.datasets()) == 1
    assert {headers["Authorization"] for _path, headers, _body in engine.seen} == {f"ApiKey {KEY}"}
    files = [path for path in workspace.root.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    # The field is empty for the next fetch.
    app.session_state["data.fetch"] = True
    app.run()
    [field] = [each for each in app.text_input if each.label.startswith("Key of the service")]
    assert field.value == ""


def test_what_is_missing_is_named(workspace, engine):
    app = opened()
    assert "Enter queries first" in said(press(app, "Fetch 0 queries"))
    app.text_area(key="data.fetch.queries").set_value(LINES).run()
    assert "No key yet" in said(press(app, "Fetch 3 queries"))


def test_a_fetch_that_finds_nothing_stores_nothing(workspace, engine):
    engine.documents = {}
    app = ended(press(fill(opened(), engine), "Fetch 3 queries"))
    assert "returned no documents" in said(app)
    assert workspace.datasets() == []


def test_a_cancelled_fetch_continues_in_another_session(workspace, engine):
    endpoint = Endpoint.of(engine_at(engine.url, headers={}))
    queries = queries_of("\n".join(f"how to return {n}" for n in range(30)))
    engine.fault_of = lambda _body: {"slow": 0.05}

    def start():
        return Fetching(workspace, endpoint, queries, 5, Policy(concurrency=1), "Shop", {})

    first = start()
    while first.done < 2:
        time.sleep(0.01)
    first.cancel()
    while first.running:
        time.sleep(0.01)
    assert first.cancelled and 2 <= first.done < 30
    engine.fault_of = lambda _body: {}
    second = start()
    while second.running:
        time.sleep(0.01)
    assert (second.done, len(engine.seen)) == (30, 30)
    assert workspace.name("datasets", second.outcome.dataset_id) == "Shop"
    with pytest.raises(DataError, match="1 to 50,000 queries"):
        Fetching(workspace, endpoint, queries[:0], 5, Policy(), "Shop", {})


@pytest.mark.parametrize("restarted", [False, True])
def test_an_undecided_fetch_is_offered_after_a_reload(workspace, engine, restarted):
    engine.fault_of = lambda body: {"status": 400} if "money" in str(body) else {}
    ended(press(fill(opened(), engine), "Fetch 3 queries"))
    before = len(engine.seen)
    if restarted:
        from_search.IN_THIS_PROCESS.clear()
    app = opened()
    address = engine.url.partition("://")[2] + SEARCH
    line = f"Fetch without a data set: Elasticsearch, {address} (2 of 3 queries answered)."
    assert line in said(app).replace("\\", "")
    app = press(app, "Continue")
    assert "2 queries are answered and are not sent again." in said(app)
    if restarted:
        assert "This fetch was not finished." in said(app)
        app = ended(press(app, "Resume"))
        assert len(engine.seen) == before + 1
    press(app, "Continue without 1 failed query")
    [row] = workspace.datasets()
    assert (row.name, row.queries) == ("Elasticsearch", 2)
    assert "Fetch without" not in said(opened())


def test_a_fetch_of_another_process_is_not_listed_and_not_sent_twice(workspace, engine):
    endpoint = Endpoint.of(engine_at(engine.url, headers={}))
    engine.fault_of = lambda body: {"status": 400} if "money" in str(body) else {}

    def fetching():
        made = Fetching(workspace, endpoint, queries_of(LINES), 5, Policy(), "Shop", {})
        while made.running:
            time.sleep(0.01)
        return made

    assert len(fetching().failures) == 1
    [request] = (workspace.root / "fetches").glob("*.json")
    from_search.IN_THIS_PROCESS.clear()
    sent = len(engine.seen)
    with locked(request.with_suffix(".lock")):
        assert from_search.unfinished(workspace) == []
        assert "being fetched at this moment" in str(fetching().error)
    assert len(engine.seen) == sent
    [one] = from_search.unfinished(workspace)
    one.discard()
    assert list((workspace.root / "fetches").iterdir()) == []


def test_an_undecided_fetch_can_be_discarded(workspace, engine):
    engine.fault_of = lambda body: {"status": 400} if "money" in str(body) else {}
    ended(press(fill(opened(), engine), "Fetch 3 queries"))
    assert "Fetch without" not in said(press(opened(), "Discard"))
    assert list((workspace.root / "fetches").iterdir()) == []
    assert workspace.datasets() == []


def test_queries_are_read_from_an_uploaded_file():
    queries = queries_of_file(Source("a.csv", b"query_id,text,frequency\n7,one,3\n8,two,1\n"))
    assert queries.to_dict("list") == {
        "query_id": ["7", "8"],
        "text": ["one", "two"],
        "frequency": ["3", "1"],
    }
    assert list(queries_of_file(Source("a.txt", b"one\ntwo\n"))["text"]) == ["one", "two"]
    with pytest.raises(FormatError):
        queries_of_file(Source("a.csv", b"label,score\n1,2\n"))


def test_the_progress_can_be_cancelled(workspace, engine):
    engine.fault_of = lambda _body: {"hang": 30.0}
    app = press(fill(opened(), engine), "Fetch 3 queries")
    try:
        assert "Fetching from 127.0.0.1" in said(app)
        app = press(app, "Cancel")
    finally:
        engine.let_go.set()
    app = ended(app)
    assert "The fetch was cancelled." in said(app)
