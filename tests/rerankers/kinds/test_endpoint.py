"""Rerank services over real HTTP on 127.0.0.1, working and broken. Pauses use a clock that the test
controls, so they cost no time. Faults of a single request: `../test_remote.py`."""

import json
import math
from functools import partial

import numpy as np
import pytest

from rankdash.core.base.errors import UnavailableError
from rankdash.core.base.rules import parse_settings
from rankdash.core.rerankers import Corpus, Request, create
from rankdash.core.rerankers.kinds import endpoint
from rankdash.core.rerankers.kinds.endpoint import DIALECTS, Endpoint
from rankdash.core.rerankers.remote import connection
from tests.approved import table
from tests.rerankers.loopback import score
from tests.results import results, shown

DOCUMENTS = ["refund for an item", "delivery time", "退货 需要 时间", "get a refund", "cat"]
QUERY = "get a refund 退货"
SECRET = "sk-very/secret+42"
NAN = math.nan


@pytest.fixture
def make(server, hands):
    def made(dialect="cohere", **settings):
        free = {"dialect": dialect, "base_url": server.url_of(dialect), "key_variable": "none"}
        parsed = parse_settings(endpoint.KIND.settings, {**free, **settings})
        reranker = Endpoint(parsed, hands.clock)
        reranker.prepare(Corpus([], []))
        return reranker

    return made


@pytest.fixture
def keyed(make):
    """Make a reranker with a key that the user typed."""

    def made(key=SECRET, **settings):
        with connection.given_keys({"COHERE_API_KEY": key}):
            return make(key_variable="", **settings)

    return made


def ask(documents=DOCUMENTS, query=QUERY, name="q"):
    return Request(name, query, [f"d{place}" for place in range(len(documents))], documents)


def expected(documents=DOCUMENTS, query=QUERY):
    return [score(query, text) for text in documents]


def test_what_each_dialect_sends_and_reads_is_as_approved(make, server, approved):
    cases = {}
    for dialect in DIALECTS:
        (scored,) = make(dialect).score([ask()])
        assert scored.error == ""
        np.testing.assert_allclose(scored.scores, expected())
        (call,) = scored.calls
        assert (call.status, call.attempts, call.error) == (200, 1, "")
        assert call.start <= call.end
        path, headers, body = server.seen[-1]
        assert "Authorization" not in headers
        cases[dialect] = f"{path} {body}\n{shown(dict(call.billed))}"
    for base in ("http://x", "http://x/v1", "http://x/proxy", "http://x/v1/rerank"):
        cases[f"the path after {base}"] = DIALECTS["jina"].path_after(base)
    approved("rerankers/dialects", table(cases))


FAULTS = [
    {"short": 2},
    *({name: 1} for name in ("duplicate", "out_of_range", "no_index", "nan", "null")),
    *({"digits": 400}, {"digits": 4000}, {"answer": {"results": "none"}}, {"answer": ["x"]}),
    {"answer": {"results": [1, None, {"index": True, "relevance_score": 1}]}},
]
# (index, score) of each result, for two documents.
RESULTS = [
    *([(1, 0.5), (0, 2)], [(0, 0.5), (2, 1)], [(0, 0.5), (-1, 1)], [(0, 0.5)]),
    *([(0, True), (1, 1)], [(0, 1), (1, 2), (1, 3)]),
]


def test_an_answer_with_a_fault_fails_its_query_alone_and_is_never_zero(make, server, approved):
    cases = {}
    for fault in FAULTS:
        server.fail(fault)
        scored, *others = make(concurrency=1).score([ask(name=name) for name in "pqr"])
        cases[str(fault)] = f"{scored.error} {shown(scored.scores)}"
        assert [each.error for each in others] == ["", ""]
    for pairs in RESULTS:
        results = [{"index": index, "relevance_score": value} for index, value in pairs]
        cases[str(pairs)] = shown(DIALECTS["cohere"].read_scores({"results": results}, 2))
    cases["no fault"] = shown(expected())
    approved("rerankers/answers_with_faults", table(cases))


# Queries with failed requests.


def test_the_rate_limit_spreads_requests_evenly_and_is_not_latency(make, hands):
    answers = make(per_minute=30, concurrency=1).score([ask(name=str(n)) for n in range(4)])
    starts = sorted(answer.calls[0].start for answer in answers)
    assert np.diff(starts).tolist() == pytest.approx([2, 2, 2])
    assert sum(hands.slept) == pytest.approx(6)
    assert all(answer.calls[0].end == answer.calls[0].start for answer in answers)
    assert all(answer.calls[0].retry_wait_s == 0 for answer in answers)
    # The pause is not part of the query's time limit either.
    answers = make(per_minute=2, total_s=10, concurrency=1).score([ask(name="a"), ask(name="b")])
    assert [answer.error for answer in answers] == ["", ""]
    assert hands.slept[-1] == 30


# Splitting.


def many(count):
    return [f"document {number} refund" for number in range(count)]


LARGE = {"status": 413}
# Dialect, settings, number of documents, faults.
SPLIT = {
    "a dialect takes 32": ("tei", {}, 70),
    "as many as are set": ("cohere", {"documents_per_request": 2}, 5),
    "too large": ("cohere", {}, 2, LARGE),
    "one alone cannot be halved": ("cohere", {}, 1, LARGE),
    "nor what fails otherwise": (
        "cohere", {}, 4, LARGE, {"status": 400, "text": {"message": "no"}}
    ),
}  # fmt: skip


def test_documents_that_are_too_many_are_split(make, server, approved):
    cases = {}
    for name, (dialect, settings, count, *faults) in SPLIT.items():
        reranker, documents = make(dialect, concurrency=1, **settings), many(count)
        reranker.score([ask(many(1))])
        server.seen.clear()
        server.fail(*faults)
        (scored,) = reranker.score([ask(documents)])
        assert len(scored.calls) == len(server.seen)
        lost = [NAN] * count if scored.error else expected(documents)
        np.testing.assert_allclose(scored.scores, lost)
        sizes = [len(body.get("texts") or body["documents"]) for _, _, body in server.seen]
        cases[name] = f"requests of {sizes} documents, {scored.error or 'all scored'}"
    approved("rerankers/split", table(cases))


def test_a_limit_lower_than_known_is_found_by_halving_and_remembered(make, server):
    server.limit = 9
    reranker = make("tei", concurrency=1)
    for _ in range(2):
        server.seen.clear()
        (scored,) = reranker.score([ask(many(30))])
        assert scored.error == ""
        np.testing.assert_allclose(scored.scores, expected(many(30)))
    assert max(len(body["texts"]) for _, _, body in server.seen) <= 9


# Concurrent requests.


def test_many_requests_are_under_way_at_once_and_stay_aligned(make, server):
    requests = [ask([f"refund {n}", f"item {n} refund get"], name=str(n)) for n in range(24)]
    server.fault_of = lambda body: {"together": 8, "slow": 0.03}
    answers = make(concurrency=8).score(requests)
    # The server counts a request until its thread ends, when the next request may have started.
    assert 8 <= server.most_at_once <= 16
    for request, answer in zip(requests, answers, strict=True):
        np.testing.assert_allclose(answer.scores, expected(request.documents))


# Keys.


def test_where_a_key_is_found_and_may_be_sent_is_as_approved(monkeypatch, approved):
    """A key is sent to its own service only, by scheme, host and port. Without a key, the user has
    to state that the service needs none."""

    def header(environment, typed=None, **settings):
        with monkeypatch.context() as patch:
            for name in ("COHERE_API_KEY", "CO_API_KEY"):
                patch.delenv(name, raising=False)
            for name in environment:
                patch.setenv(name, SECRET)
            place = endpoint.key_place(create("endpoint", settings).settings)
            with connection.given_keys({"COHERE_API_KEY": typed} if typed else {}):
                key = place.find()
                return key and key.header, place.set_variable

    here, library = {"base_url": "http://127.0.0.1:9"}, ["CO_API_KEY"]
    cases = {"no key": partial(header, []), "typed": partial(header, [], "typed")}
    for named in ("", "COHERE_API_KEY", "CO_API_KEY"):
        key = {"key_variable": named}
        cases[f"as the library has it, {named}"] = partial(header, library, **key)
        cases[f"and typed, {named}"] = partial(header, library, "typed", **key)
        cases[f"another address, {named}"] = partial(header, library, **key, **here)
    for url in (
        "https://api.cohere.com/v2",
        "http://api.cohere.com",
        "https://api.cohere.com:8443",
    ):
        cases[url] = partial(header, ["COHERE_API_KEY"], base_url=url)
    for dialect in DIALECTS:
        cases[f"{dialect} without a key"] = partial(header, [], dialect=dialect, **here)
        free = {"dialect": dialect, "key_variable": "none"}
        cases[f"{dialect} that needs none"] = partial(header, library, **free, **here)
    other = {"dialect": "vllm", "key_variable": "COHERE_API_KEY"}
    cases["the key of another service"] = partial(header, ["COHERE_API_KEY"], **other, **here)
    for key in ("abc\ndef", "schlüssel-1", "abc\u2028def", "abc\x00"):
        cases[f"the key {key!r}"] = partial(header, [], key)
    approved("rerankers/keys", results(cases))


def echoes():
    """Yield answers of services that show the key, or a part of it: in the middle of the redacted
    text, over each of its ends, and truncated by the service."""
    header = {"Accept": "*/*", "Authorization": f"Bearer {SECRET}"}
    for length in range(300 - len(SECRET), 300):
        yield {"message": "x" * (length - 1) + " " + SECRET}
    yield {"message": "x" * 250 + json.dumps({"headers": header})}
    yield {"message": "x" * 280 + " Bearer " + SECRET}
    yield {"request": "y" * 200, "headers": header}
    yield {"x": "<p>" * 6640 + "z" * 60 + SECRET, "y": "z" * 100}
    yield {"message": f"no such key: {SECRET[:9]}…"}
    yield {"message": f"no such key: {SECRET[:7]}****{SECRET[-7:]}"}
    yield {"message": f"authorization: Bearer {SECRET[:4]}"}


def test_the_key_is_taken_out_before_an_answer_is_cut(keyed, server):
    reranker, server.key = keyed(retries=0), SECRET
    assert reranker.score([ask()])[0].error == ""
    assert SECRET not in repr(vars(reranker))
    for text in echoes():
        server.fail({"status": 400, "text": text})
        (scored,) = reranker.score([ask()])
        assert "answered 400" in scored.error, text
        assert len(scored.error) < 340, text
        shown = [at for at in range(len(SECRET) - 3) if SECRET[at : at + 4] in scored.error]
        assert not shown and SECRET[:4] not in scored.calls[0].error, text
    server.fail({"redirect": "http://127.0.0.1:9/?" + "x" * 270 + f"&key={SECRET}"})
    with pytest.raises(UnavailableError) as caught:
        reranker.score([ask()])
    assert SECRET[:4] not in str(caught.value)


@pytest.mark.parametrize(("length", "hidden"), [(4, True), (3, False)])
def test_a_key_that_could_be_a_word_is_not_looked_for(length, hidden):
    key = "k" * length
    assert (
        "k" in connection.Key(key).redact_whole(f"no such key: <{key}>").split("<")[1]
    ) != hidden


# The estimate and the fingerprint.


def estimated(requests, **settings):
    return endpoint.KIND.estimate(parse_settings(endpoint.KIND.settings, settings), requests)


def test_the_estimate_counts_calls_tokens_and_dollars():
    requests = [ask(["word " * 40] * 70), ask(["字" * 40] * 3)]
    found = estimated(requests, dialect="tei", price_tokens=2.0)
    assert found.calls == 3 + 1
    assert found.tokens_in == pytest.approx(70 * 50 + 3 * 30 + 73 * 4.75, rel=0.02)
    assert found.dollars == pytest.approx(found.tokens_in * 2e-6)
    assert np.isnan(estimated(requests).dollars)
    # A hundred documents are one search unit.
    for count, units in ((1, 1), (100, 1), (101, 2)):
        assert estimated([ask(["word"] * count)], price_searches=1000.0).dollars == units


def test_what_changes_scores_changes_the_fingerprint_and_nothing_else():
    def of(**settings):
        return create("endpoint", settings).fingerprint()

    assert of() == of(concurrency=9, per_minute=3, key_variable="X_API_KEY", price_tokens=1)
    assert len({of(), of(model="m"), of(dialect="tei"), of(base_url="http://x")}) == 4
