"""Fetching, with a search engine on this machine that fails in many ways."""

import json
import math
import os
import subprocess
import sys
import threading
import time
from collections import Counter

import pandas as pd
import pytest

from rankdash.core.base.errors import DataError, SettingError, UnavailableError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import RETRIEVAL, Ranking
from rankdash.core.rerankers.remote.connection import Clock, Policy, given_keys
from rankdash.core.search.endpoint import Endpoint, Hit
from rankdash.core.search.fetching import (
    Answer,
    churn,
    churns,
    fetch,
    fetched,
    requests_in,
    trial,
)
from tests.rerankers.loopback import SEARCH, engine_at
from tests.sets import ROOT

WORDS = [f"word{number}" for number in range(40)]
TEXTS = {f"d{n}": " ".join(WORDS[(n * step) % 40] for step in (1, 3, 7)) for n in range(60)}
QUERIES = {f"q{n}": f"{WORDS[n % 40]} {n}" for n in range(500)}
KEY = "a-secret-key-0123456789"


def engine(url: str, **fields: object) -> Endpoint:
    return Endpoint.of(engine_at(url, **{"partial": "timed_out", **fields}))


class SharedClock(Clock):
    """A clock for several threads that sleep: it moves to the end of each sleep."""

    def __init__(self) -> None:
        lock, state = threading.Lock(), [0.0]

        def sleep(seconds: float) -> None:
            with lock:
                state[0] = max(state[0], asleep.pop(threading.get_ident(), state[0]) + seconds)

        def now() -> float:
            with lock:
                asleep[threading.get_ident()] = state[0]
                return state[0]

        asleep: dict[int, float] = {}
        super().__init__(now, sleep, lambda: 0.5)


@pytest.fixture
def docs(server, monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", KEY)
    server.forget(KEY)
    server.documents = TEXTS
    return engine(server.url)


@pytest.fixture
def dataset() -> Dataset:
    queries = pd.DataFrame({"query_id": list(QUERIES), "text": list(QUERIES.values())})
    documents = pd.DataFrame({"doc_id": ["d0"], "title": [""], "text": ["known"]})
    labels = pd.DataFrame({"query_id": ["q0"], "doc_id": ["d0"], "label": [1.0]})
    return Dataset("Set", queries, documents, labels, Ranking.from_lists([("q0", ["d0"], [1.0])]))


def text_of(body: dict) -> str:
    return body["query"]["match"]["text"]


def first(count: int) -> dict[str, str]:
    return dict(list(QUERIES.items())[:count])


def test_five_hundred_queries_of_which_some_fail_are_all_accounted_for(
    docs, server, dataset, tmp_path
):
    """25 requests are refused by the rate limit, 10 fail, 5 end halfway, and 5 hang, 2 of them
    twice; at 600 requests per minute of a clock that only sleeping moves."""
    asked: Counter[int] = Counter()
    clock = SharedClock()
    times: list[float] = []

    def fault(body: dict) -> dict:
        number = int(text_of(body).split()[1])
        times.append(clock.now())
        asked[number] += 1
        if number >= (495 if asked[number] == 1 else 498):
            return {"hang": 600.0}
        if asked[number] > 1 or number % 4:
            return {}
        if number < 100:
            return {"status": 429, "headers": {"Retry-After": "1"}}
        return {"status": 500} if number < 140 else {"cut": 1} if number < 160 else {}

    server.fault_of = fault
    policy = Policy(concurrency=6, per_minute=600, read_s=5.0, total_s=10_000)
    got: list[Answer] = []
    answers = fetch(
        docs, QUERIES, 10, policy, journal=tmp_path / "j", on_answers=got.extend, clock=clock
    )
    server.let_go.set()
    assert [each.query_id for each in answers] == list(QUERIES)
    # A query that is requested again is not counted twice.
    assert sorted(each.query_id for each in got) == sorted(QUERIES)
    assert requests_in(tmp_path / "j") == 545
    states = Counter(each.state for each in answers)
    assert states == {"done": 498, "failed": 2}
    failed = [each for each in answers if each.state == "failed"]
    assert {each.reason for each in failed} == {"time-out: no answer within 5 s"}
    assert all(each.hits == () and math.isnan(each.latency_ms) for each in failed)
    assert all(each.hits for each in answers if each.state == "done")
    assert sum(each.call.attempts for each in answers) == sum(asked.values()) == 545
    # A request every 0.1 s, without the pauses that the engine demands at the start. A request
    # arrives while others wait for their turn, so an arrival differs by a few turns.
    seconds = [later - earlier for earlier, later in zip(times, times[100:], strict=False)]
    assert min(seconds) > 9.0
    assert max(seconds[250:]) < 11.0

    run = fetched(dataset, docs, answers, 10, "Stub")
    documents = run.documents
    assert run.reranker == RETRIEVAL
    assert dict(Counter(run.queries["state"])) == {"done": 498, "failed": 2}
    lost = set(run.queries.loc[run.queries["state"] == "failed", "query_id"])
    assert lost.isdisjoint(run.ranking.query_ids)
    assert len(run.ranking.query_ids) == 498
    assert run.settings["how"] == "search"
    assert json.loads(run.settings["endpoint"]) == docs.as_dict()
    assert set(documents["doc_id"]) == {d for d in run.ranking.doc_ids if d != "d0"}
    assert dict(zip(documents["doc_id"], documents["text"], strict=True)).items() <= TEXTS.items()


FETCH = """
import sys
from pathlib import Path
from rankdash.core.rerankers.remote.connection import Policy
from rankdash.core.search.fetching import fetch
from tests.search.test_fetching import QUERIES, engine
answers = fetch(engine(sys.argv[1]), QUERIES, 10, Policy(), journal=Path(sys.argv[2]))
print(len(answers), sum(each.state == "done" for each in answers))
"""


def test_a_fetch_that_was_killed_requests_no_answered_query_again(docs, server, tmp_path):
    journal = tmp_path / "journal"
    # The engine answers 199 requests and no others.
    server.fault_of = lambda body: {"hang": 600.0} if len(server.seen) >= 200 else {}
    command = [sys.executable, "-c", FETCH, server.url, str(journal)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        limit = time.monotonic() + 300
        while not journal.exists() or journal.read_bytes().count(b"\n") < 199:
            assert time.monotonic() < limit and process.poll() is None
            time.sleep(0.01)
        process.kill()
    server.let_go.set()
    journalled = {json.loads(line)["query"] for line in journal.read_bytes().splitlines()}
    assert len(journalled) == 199
    before = len(server.seen)
    server.fault_of = lambda body: {}
    with journal.open("ab") as stream:
        stream.write(b'{"request": "cut')
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "500 500\n"
    again = [text_of(body) for _, _, body in server.seen[before:]]
    assert len(again) == len(set(again)) == 301
    assert journalled.isdisjoint(again)
    assert KEY not in journal.read_text()


def test_failed_queries_are_requested_again_and_done_ones_are_not(docs, server, tmp_path):
    journal = tmp_path / "journal"
    server.fault_of = lambda body: {"status": 422} if text_of(body).endswith(" 3") else {}
    policy = Policy(concurrency=1)
    answers = fetch(docs, first(5), 10, policy, journal=journal)
    assert [each.state for each in answers] == ["done", "done", "done", "failed", "done"]
    assert answers[3].reason.startswith("the service answered 422")
    server.fault_of = lambda body: {}
    again = fetch(docs, first(5), 10, policy, journal=journal)
    assert [each.state for each in again] == ["done"] * 5
    assert [text_of(body) for _, _, body in server.seen[5:]] == [QUERIES["q3"]]
    kept = [each for each in again if each.query_id != "q3"]
    assert kept == [each for each in answers if each.state == "done"]


@pytest.mark.parametrize("change", ["request", "depth", "query"])
def test_a_journal_of_another_fetch_is_refused(docs, server, tmp_path, change):
    journal = tmp_path / "journal"
    fetch(docs, first(2), 10, Policy(), journal=journal)
    other = {
        "request": (engine(server.url, text="_source.body"), first(2), 10),
        "depth": (docs, first(2), 20),
        "query": (docs, {**first(2), "q1": "changed"}, 10),
    }[change]
    with pytest.raises(DataError, match="answers to another request"):
        fetch(*other, Policy(), journal=journal)
    assert len(server.seen) == 2


def test_an_endpoint_is_corrected_after_all_queries_failed(docs, server, tmp_path):
    journal = tmp_path / "journal"
    server.key = "another"
    with pytest.raises(UnavailableError, match="refuses the requests"):
        fetch(docs, first(2), 10, Policy(concurrency=1), journal=journal)
    assert journal.read_bytes()
    server.forget(KEY)
    corrected = engine(server.url, headers={"X-Plain": "a", **docs.as_dict()["headers"]})
    answers = fetch(corrected, first(2), 10, Policy(), journal=journal)
    assert [each.state for each in answers] == ["done", "done"]


def test_a_cancelled_fetch_finishes_its_requests_and_can_be_resumed(docs, server, tmp_path):
    policy, journal = Policy(concurrency=2), tmp_path / "journal"
    got: list[Answer] = []
    answers = fetch(
        docs, QUERIES, 10, policy,
        journal=journal, on_answers=got.extend, cancelled=lambda: len(got) >= 20,
    )  # fmt: skip
    assert 20 <= len(answers) == len(server.seen) <= 22
    rest = fetch(docs, QUERIES, 10, policy, journal=journal)
    assert len(rest) == len(server.seen) == 500


def test_a_query_that_timed_out_before_a_stop_is_requested_after_it(docs, server, tmp_path):
    server.fault_of = lambda body: {"hang": 600.0} if text_of(body) == QUERIES["q0"] else {}
    journal, got = tmp_path / "journal", []
    policy = Policy(concurrency=1, retries=0, read_s=0.5)
    answers = fetch(
        docs, first(9), 10, policy,
        journal=journal, on_answers=got.extend, cancelled=lambda: len(got) >= 3,
    )  # fmt: skip
    assert [each.query_id for each in answers] == ["q1", "q2", "q3"]
    server.let_go.set()
    server.fault_of = lambda body: {}
    rest = fetch(docs, first(9), 10, policy, journal=journal)
    assert [each.state for each in rest] == ["done"] * 9


def test_a_partial_answer_is_retried_and_then_failed(docs, server):
    server.fail({"with": {"timed_out": True}})
    policy = Policy(retries=1, concurrency=1)
    (answer,) = fetch(docs, first(1), 10, policy, clock=SharedClock())
    assert (answer.state, answer.call.attempts) == ("done", 2)
    server.fail(*[{"with": {"timed_out": True}}] * 2)
    (answer,) = fetch(docs, first(1), 10, policy, clock=SharedClock())
    assert (answer.state, answer.reason) == ("failed", "partial answer (after 2 attempts)")


def test_an_engine_that_refuses_everything_is_asked_a_few_times_only(docs, server, tmp_path):
    server.key = "another"
    with pytest.raises(UnavailableError, match="refuses the requests") as refused:
        fetch(docs, QUERIES, 10, Policy(concurrency=1), journal=tmp_path / "j")
    assert len(server.seen) == 1
    assert KEY not in str(refused.value) + (tmp_path / "j").read_text()
    server.forget(KEY)
    server.fault_of = lambda body: {"status": 400}
    with pytest.raises(UnavailableError, match="refuses the requests"):
        fetch(docs, QUERIES, 10, Policy(concurrency=1))
    assert len(server.seen) == 5
    server.forget(KEY)
    server.fault_of = lambda body: {"redirect": "http://127.0.0.1:1/"}
    with pytest.raises(UnavailableError, match="the redirect to http"):
        fetch(docs, QUERIES, 10, Policy(concurrency=1))
    assert len(server.seen) == 1


def test_one_query_that_is_refused_after_an_answer_fails_alone(docs, server):
    server.fault_of = lambda body: {"status": 403} if text_of(body).endswith(" 7") else {}
    answers = fetch(docs, first(20), 10, Policy(concurrency=1))
    assert [each.query_id for each in answers if each.state == "failed"] == ["q7"]


def test_an_empty_list_is_done_and_a_query_without_a_text_fails(docs, server, dataset):
    answers = fetch(docs, {"q0": "nothing shared", "q1": " "}, 10, Policy())
    assert [(each.state, each.reason, each.hits) for each in answers] == [
        ("done", "", ()),
        ("failed", "the query has no text", ()),
    ]
    assert len(server.seen) == 1
    run = fetched(dataset, docs, answers, 10, "Stub")
    assert len(run.ranking.query_ids) == 0 and run.documents is None
    assert Counter(run.queries["state"]) == {"done": 1, "failed": 1, "skipped": 498}


def test_latency_does_not_include_opening_connections(docs):
    answers = fetch(docs, first(4), 10, Policy(concurrency=1))
    connecting = [each.call.connect_s for each in answers]
    assert connecting[0] > 0 and connecting[1:] == [0, 0, 0]
    for each in answers:
        whole = each.call.end - each.call.start
        assert each.latency_ms == pytest.approx(1000 * (whole - each.call.connect_s))
        assert each.latency_ms > 0


def test_a_second_fetch_is_another_run(docs, dataset):
    answers = fetch(docs, first(3), 10, Policy())
    runs = [fetched(dataset, docs, answers, 10, name) for name in ("Monday", "Tuesday")]
    assert runs[0].id != runs[1].id


def test_scores_are_used_unless_one_is_missing_or_rises(docs, dataset):
    def hits(*scores: float) -> tuple[Hit, ...]:
        return tuple(Hit(f"x{n}", "", None, score) for n, score in enumerate(scores))

    lists = {
        "q0": hits(2.0, 2.0, 1.0), "q1": hits(1.0, 2.0), "q2": hits(2.0, math.nan),
        "q3": hits(math.nan),
    }  # fmt: skip
    answers = [Answer(query, "done", "", each) for query, each in lists.items()]
    ranking = fetched(dataset, docs, answers, 10, "Stub").ranking
    assert {query: list(ranking.documents_of(query)[1]) for query in lists} == {
        "q0": [2.0, 2.0, 1.0],
        "q1": [-1.0, -2.0],
        "q2": [-1.0, -2.0],
        "q3": [-1.0],
    }


def test_a_trial_shows_the_request_and_the_hits_without_the_key(docs, server):
    shown = trial(docs, QUERIES["q1"], 3, Policy())
    assert (shown.status, shown.reason, len(shown.hits)) == (200, "", 3)
    assert shown.request.startswith(f"POST {server.url}{SEARCH}\nAuthorization: ApiKey $SEARCH_KEY")
    assert shown.answer.startswith('{"timed_out": false')
    server.key = "another"
    refused = trial(docs, QUERIES["q1"], 3, Policy())
    assert refused.status == 401
    assert refused.reason.startswith("the service answered 401: invalid api token")
    assert KEY not in repr(shown) + repr(refused)
    absent = trial(engine("http://127.0.0.1:9"), "a", 3, Policy())
    assert isinstance(absent.error, UnavailableError)


def test_a_key_that_the_engine_repeats_is_removed_from_hits(docs, server):
    server.documents = {f"id {KEY}": f"word0 {KEY}"}
    (answer,) = fetch(docs, first(1), 10, Policy())
    assert [hit.doc_id for hit in answer.hits] == ["id •••"]
    assert KEY not in repr(answer)


def test_a_key_is_missing_or_typed(docs, server, monkeypatch):
    monkeypatch.delenv("SEARCH_KEY")
    with pytest.raises(UnavailableError, match="key of the service is missing"):
        fetch(docs, first(1), 10, Policy())
    with given_keys({"SEARCH_KEY": KEY}):
        assert fetch(docs, first(1), 10, Policy())[0].state == "done"


def test_a_key_of_a_known_service_is_sent_only_there(docs, server, monkeypatch):
    monkeypatch.setenv("COHERE_API_KEY", "cohere-secret-123")
    endpoint = engine(server.url, headers={"Authorization": {"env": "COHERE_API_KEY"}})
    with pytest.raises(UnavailableError, match=r"sent only to https://api\.cohere\.com"):
        fetch(endpoint, first(1), 10, Policy())
    assert server.seen == []


def test_churn_is_the_share_of_the_top_that_left():
    one = Ranking.from_lists(
        [("a", ["x", "y"], [2, 1]), ("b", ["x", "y"], [2, 1]), ("c", ["x"], [1])]
    )
    two = Ranking.from_lists(
        [("a", ["x", "z"], [2, 1]), ("b", ["y", "x"], [2, 1]), ("d", ["x"], [1])]
    )
    found = churn(one, two)
    assert found.per_query == {"a": 0.5, "b": 0.0}
    assert (found.mean, found.changed) == (0.25, 1.0)
    assert churn(one, two, 1).per_query == {"a": 0.0, "b": 1.0}
    assert churn(one, two, queries=["c", "e"]).per_query == {"c": 1.0, "e": 0.0}
    assert math.isnan(churn(one, two, queries=[]).mean)


def test_churn_from_fetch_to_fetch_counts_an_answer_without_hits():
    hit = (Hit("x", "", None, 1.0),)
    first = [Answer("a", "done", hits=hit), Answer("b", "done", hits=hit), Answer("c", "failed")]
    second = [Answer("a", "done", hits=hit), Answer("b", "done"), Answer("c", "done", hits=hit)]
    one, other = churns([first, second, first])
    assert one.per_query == other.per_query == {"a": 0.0, "b": 1.0}
    assert (one.mean, one.changed) == (0.5, 0.5)
    assert churns([first]) == []


def test_private_hosts_get_no_request_from_a_shared_server(docs, server, monkeypatch):
    monkeypatch.setenv("RANKDASH_SHARED", "1")
    monkeypatch.setenv("RANKDASH_KEYS", "SEARCH_KEY")
    with pytest.raises(SettingError, match="its address is private"):
        fetch(docs, first(1), 10, Policy())
    monkeypatch.setenv("RANKDASH_SERVICES", "search.example")
    with pytest.raises(SettingError, match="not allowed to contact"):
        fetch(docs, first(1), 10, Policy())
    assert server.seen == []
