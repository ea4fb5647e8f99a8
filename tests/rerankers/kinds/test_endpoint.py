"""Rerank services over real HTTP on 127.0.0.1, working and broken. Waiting is done by a clock that
the test holds, so the pauses cost no time. What a single request may meet: `../test_remote.py`."""

import json
import math

import numpy as np
import pytest

from rankdash.errors import SettingError, UnavailableError
from rankdash.rerankers import Corpus, Request, create
from rankdash.rerankers.kinds import endpoint
from rankdash.rerankers.kinds.endpoint import Endpoint
from rankdash.rerankers.remote import keys
from rankdash.rerankers.remote.apis import DIALECTS
from rankdash.rerankers.settings import parse_settings
from tests.rerankers.loopback import score

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
    """With a key that was typed."""

    def made(key=SECRET, **settings):
        with keys.given({"COHERE_API_KEY": key}):
            return make(key_variable="", **settings)

    return made


def ask(documents=DOCUMENTS, query=QUERY, name="q"):
    return Request(name, query, [f"d{place}" for place in range(len(documents))], documents)


def expected(documents=DOCUMENTS, query=QUERY):
    return [score(query, text) for text in documents]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_gets_the_scores_in_the_order_of_the_documents(make, dialect):
    (scored,) = make(dialect).score([ask()])
    assert scored.error == ""
    np.testing.assert_allclose(scored.scores, expected())
    (call,) = scored.calls
    assert (call.status, call.attempts, call.error) == (200, 1, "")
    assert call.start <= call.end
    billed = {"cohere": {"search_units": 1}, "tei": {}}
    tokens = sum(len(text.split()) + len(QUERY.split()) for text in DOCUMENTS)
    assert call.billed == billed.get(dialect, {"tokens": tokens})


def test_services_are_told_not_to_send_documents_back_and_where_to_cut(make, server):
    for dialect in ("jina", "mixedbread", "nim", "tei", "voyage"):
        make(dialect).score([ask()])
    jina, mixedbread, nim, tei, voyage = (body for _, _, body in server.seen)
    assert jina["return_documents"] is False
    assert mixedbread["return_input"] is False
    assert nim["query"] == {"text": QUERY}
    assert nim["truncate"] == "END"
    assert tei == {"query": QUERY, "texts": DOCUMENTS, "truncate": True, "raw_scores": True}
    assert voyage["truncation"] is True
    assert all("top_n" not in body and "top_k" not in body for _, _, body in server.seen)


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("http://x", "/v1/rerank"),
        ("http://x/v1", "/rerank"),
        ("http://x/proxy", "/v1/rerank"),
        ("http://x/v1/rerank", ""),
    ],
)
def test_a_base_url_may_end_with_the_beginning_of_the_path(base, path):
    assert DIALECTS["jina"].path_after(base) == path


# Faults of an answer: the query fails in words, only the documents concerned have no score.


@pytest.mark.parametrize(
    ("fault", "says", "lost"),
    [
        ({"short": 2}, "too short", 2),
        ({"duplicate": 1}, "comes twice", 2),
        ({"out_of_range": 1}, "9999 is out of range", 1),
        ({"no_index": 1}, "no index", 1),
        ({"nan": 1}, "not a number", 1),
        ({"null": 1}, "not a number", 1),
        ({"digits": 400}, "not a number", 1),
        ({"digits": 4000}, "not a number", 1),
        ({"answer": {"results": "none"}}, "has no results", 5),
        ({"answer": ["x"]}, "has no results", 5),
        ({"answer": {"results": [1, None, {"index": True, "relevance_score": 1}]}}, "index", 5),
    ],
)
def test_an_answer_with_a_fault_fails_its_query_alone_and_is_never_zero(
    make, server, fault, says, lost
):
    server.fail(fault)
    scored, *others = make(concurrency=1).score([ask(name=name) for name in "pqr"])
    assert says in scored.error
    missing = np.isnan(scored.scores)
    assert missing.sum() == lost
    np.testing.assert_allclose(scored.scores[~missing], np.array(expected())[~missing])
    assert [each.error for each in others] == ["", ""]


@pytest.mark.parametrize(
    ("pairs", "scores", "fault"),
    [
        ([(1, 0.5), (0, 2)], [2, 0.5], ""),
        ([(0, 0.5), (2, 1)], [0.5, NAN], "index 2 is out of range"),
        ([(0, 0.5), (-1, 1)], [0.5, NAN], "index -1 is out of range"),
        ([(0, 0.5)], [0.5, NAN], "the answer is too short"),
        ([(0, True), (1, 1)], [NAN, 1], "the score of index 0 is not a number"),
        ([(0, 1), (1, 2), (1, 3)], [1, NAN], "index 1 comes twice"),
    ],
)
def test_each_score_goes_to_its_document_or_to_none(pairs, scores, fault):
    answer = {"results": [{"index": index, "relevance_score": value} for index, value in pairs]}
    found, said = DIALECTS["cohere"].read_scores(answer, 2)
    np.testing.assert_array_equal(found, scores)
    known = 2 - int(np.isnan(found).sum())
    assert said == (fault and f"documents with a score: {known} of 2: {fault}.")


# What becomes of a query whose request fails.


def test_what_does_not_pass_fails_the_query_with_the_reason(make, server, hands):
    reranker = make(retries=2)
    reranker.score([ask()])
    server.fail(*[{"html": 1}] * 3)
    (scored,) = reranker.score([ask()])
    assert scored.error == "The answer is not JSON: Bad gateway (after 3 attempts)."
    assert np.isnan(scored.scores).all()
    assert scored.calls[0].error and scored.calls[0].attempts == 3
    assert hands.slept == [0.25, 0.5]
    server.fail({"html": 1})
    (scored,) = reranker.score([ask()])
    np.testing.assert_allclose(scored.scores, expected())


@pytest.mark.parametrize("fault", [{"status": 500}, {"cut": True}])
def test_a_first_query_that_fails_for_good_fails_alone(make, server, fault):
    server.fail(fault, fault)
    answers = make(retries=1, concurrency=1).score([ask(name="first"), ask(name="second")])
    assert [bool(answer.error) for answer in answers] == [True, False]


@pytest.mark.parametrize(
    ("faults", "answered", "match"),
    [
        (
            [{"status": 502}] * 5,
            1,
            r"keeps failing: the service answered 502.*\. Check that it runs",
        ),
        ([{"status": 429}] * 5, 0, r"answered 429.*\. Check your quota"),
        ([{"status": 404}], 1, r"refused the request \(404\)"),
        ([{"redirect": "http://elsewhere.invalid/"}], 0, "sends on to http"),
    ],
)
def test_a_service_that_has_gone_ends_the_run_and_not_every_query(
    make, server, faults, answered, match
):
    reranker = make(retries=0, concurrency=1)
    assert reranker.score([ask()] * answered) == [] or server.seen
    server.fail(*faults)
    with pytest.raises(UnavailableError, match=match):
        reranker.score([ask(name=str(number)) for number in range(20)])
    assert len(server.seen) == answered + len(faults)


def test_one_pair_that_is_too_long_fails_its_query_even_the_first(make, server):
    server.fail({"status": 400, "text": {"message": "maximum context length is 512 tokens"}})
    (scored,) = make("vllm").score([ask()])
    assert scored.error == "The service answered 400: maximum context length is 512 tokens."


def test_the_rate_limit_spreads_requests_evenly_and_is_not_latency(make, hands):
    answers = make(per_minute=30, concurrency=1).score([ask(name=str(n)) for n in range(4)])
    starts = sorted(answer.calls[0].start for answer in answers)
    assert np.diff(starts).tolist() == pytest.approx([2, 2, 2])
    assert sum(hands.slept) == pytest.approx(6)
    assert all(answer.calls[0].end == answer.calls[0].start for answer in answers)
    assert all(answer.calls[0].retry_wait_s == 0 for answer in answers)


def test_the_turn_that_a_query_waits_for_is_not_in_its_time(make, hands):
    answers = make(per_minute=2, total_s=10, concurrency=1).score([ask(name="a"), ask(name="b")])
    assert [answer.error for answer in answers] == ["", ""]
    assert hands.slept == [30]


# Splitting.


@pytest.mark.parametrize(
    ("dialect", "settings", "documents", "sizes"),
    [("tei", {}, 70, [6, 32, 32]), ("cohere", {"documents_per_request": 2}, 5, [1, 2, 2])],
)
def test_a_query_is_split_over_the_limit(make, server, dialect, settings, documents, sizes):
    texts = [f"document {number} refund" for number in range(documents)]
    (scored,) = make(dialect, **settings).score([ask(texts)])
    np.testing.assert_allclose(scored.scores, expected(texts))
    key = "texts" if dialect == "tei" else "documents"
    assert sorted(len(body[key]) for _, _, body in server.seen) == sizes
    assert len(scored.calls) == 3


def test_a_limit_lower_than_known_is_found_by_halving_and_remembered(make, server):
    documents = [f"document {number} refund" for number in range(30)]
    server.limit = 9
    reranker = make("tei", concurrency=1)
    for _ in range(2):
        server.seen.clear()
        (scored,) = reranker.score([ask(documents)])
        assert scored.error == ""
        np.testing.assert_allclose(scored.scores, expected(documents))
    assert max(len(body["texts"]) for _, _, body in server.seen) <= 9


@pytest.mark.parametrize(
    ("documents", "faults", "error", "sizes"),
    [
        (1, [{"status": 413}], "The service answered 413: told to say 413.", [1]),
        (2, [{"status": 413}], "", [2, 1, 1]),
        (4, [{"status": 413}, {"status": 400, "text": {"message": "no"}}],
         "The service answered 400: no.", [4, 2]),
    ],
)  # fmt: skip
def test_documents_that_are_too_many_are_halved_until_one_half_fails(
    make, server, documents, faults, error, sizes
):
    reranker = make(concurrency=1)
    reranker.score([ask()])
    server.seen.clear()
    server.fail(*faults)
    (scored,) = reranker.score([ask(DOCUMENTS[:documents])])
    assert scored.error == error
    lost = [NAN] * documents if error else expected(DOCUMENTS[:documents])
    np.testing.assert_allclose(scored.scores, lost)
    assert [len(body["documents"]) for _, _, body in server.seen] == sizes
    assert len(scored.calls) == len(sizes)


# Several at once.


def test_many_requests_are_under_way_at_once_and_stay_aligned(make, server):
    requests = [ask([f"refund {n}", f"item {n} refund get"], name=str(n)) for n in range(24)]
    server.fault_of = lambda body: {"together": 8, "slow": 0.03}
    answers = make(concurrency=8).score(requests)
    # The server counts a request until its thread has ended, when the next may have come already.
    assert 8 <= server.most_at_once <= 16
    for request, answer in zip(requests, answers, strict=True):
        np.testing.assert_allclose(answer.scores, expected(request.documents))


# Keys.


def test_a_key_comes_from_the_environment_or_from_hand_and_goes_into_the_header(
    make, keyed, server, monkeypatch
):
    server.key = SECRET
    monkeypatch.setenv("RACK_API_KEY", SECRET)
    assert make(key_variable="RACK_API_KEY").score([ask()])[0].error == ""
    monkeypatch.delenv("RACK_API_KEY")
    assert keyed().score([ask()])[0].error == ""
    assert {headers["Authorization"] for _, headers, _ in server.seen} == {f"Bearer {SECRET}"}


@pytest.mark.parametrize("named", ["", "COHERE_API_KEY", "CO_API_KEY"])
def test_the_name_that_the_library_of_cohere_uses_holds_a_key_too(monkeypatch, named):
    monkeypatch.delenv("COHERE_API_KEY", raising=False)
    monkeypatch.setenv("CO_API_KEY", SECRET)
    place = endpoint.key_place(create("endpoint", {"key_variable": named}).settings)
    assert place.set_variable == "CO_API_KEY"
    assert place.find().header == f"Bearer {SECRET}"
    elsewhere = {"key_variable": named, "base_url": "https://example.org"}
    with pytest.raises(UnavailableError, match=r"sent to https://api\.cohere\.com only"):
        endpoint.key_place(create("endpoint", elsewhere).settings).find()
    with keys.given({"COHERE_API_KEY": "typed"}):
        assert place.find().header == "Bearer typed"


def test_a_missing_key_is_named_before_any_request(monkeypatch):
    for name in ("COHERE_API_KEY", "CO_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UnavailableError, match="COHERE_API_KEY"):
        create("endpoint").prepare(Corpus([], []))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_service_is_asked_without_a_key_unless_that_is_said(make, server, dialect):
    with pytest.raises(UnavailableError, match=r"_API_KEY before .* key_variable=none"):
        make(dialect, key_variable="")
    make(dialect, key_variable="none").score([ask()])
    assert not any("Authorization" in headers for _, headers, _ in server.seen)


def test_the_key_of_a_service_goes_to_no_other_address(make, server, monkeypatch):
    monkeypatch.setenv("COHERE_API_KEY", SECRET)
    for dialect, variable in (("cohere", ""), ("vllm", "COHERE_API_KEY")):
        with pytest.raises(UnavailableError, match=r"sent to https://api\.cohere\.com only"):
            make(dialect, key_variable=variable)
    assert server.seen == []


def test_a_server_that_repeats_the_key_is_not_quoted(keyed, server):
    server.key = "another"
    reranker = keyed()
    with pytest.raises(UnavailableError, match="invalid api token: Bearer •••") as caught:
        reranker.score([ask()])
    assert SECRET not in repr(vars(caught.value))
    assert SECRET not in repr(vars(reranker))


def echoes():
    """What services answer that show the key, or a part of it: in the middle of what is looked at,
    over each of its ends, and cut by the service itself."""
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
    reranker = keyed(retries=0)
    assert reranker.score([ask()])[0].error == ""
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


@pytest.mark.parametrize("key", ["abc\ndef", "schlüssel-1", "abc\u2028def", "abc\x00"])
def test_a_key_with_a_character_that_no_header_holds_is_refused_without_being_shown(keyed, key):
    with pytest.raises(SettingError) as caught:
        keyed(key)
    assert str(caught.value) == (
        "The key has a character that cannot be sent, such as a line break. Copy it again."
    )


@pytest.mark.parametrize(("length", "hidden"), [(4, True), (3, False)])
def test_a_key_that_could_be_a_word_is_not_looked_for(length, hidden):
    key = "k" * length
    assert ("k" in keys.Key(key).redact_whole(f"no such key: <{key}>").split("<")[1]) != hidden


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://api.cohere.com/v2", True),
        ("http://api.cohere.com", False),
        ("https://api.cohere.com:8443", False),
    ],
)
def test_a_key_is_sent_to_the_scheme_host_and_port_of_its_service(url, allowed):
    assert endpoint.key_place(create("endpoint", {"base_url": url}).settings).allowed == allowed


# The estimate and the name of what is cached.


def estimated(requests, **settings):
    return endpoint.KIND.estimate(parse_settings(endpoint.KIND.settings, settings), requests)


def test_the_estimate_counts_calls_tokens_and_dollars():
    requests = [ask(["word " * 40] * 70), ask(["字" * 40] * 3)]
    found = estimated(requests, dialect="tei", price_tokens=2.0)
    assert found.calls == 3 + 1
    assert found.tokens_in == pytest.approx(70 * 50 + 3 * 30 + 73 * 4.75, rel=0.02)
    assert found.dollars == pytest.approx(found.tokens_in * 2e-6)
    assert np.isnan(estimated(requests).dollars)


@pytest.mark.parametrize(("documents", "units"), [(1, 1), (100, 1), (101, 2)])
def test_a_hundred_documents_are_one_search_unit(documents, units):
    assert estimated([ask(["word"] * documents)], price_searches=1000.0).dollars == units


def test_what_changes_scores_changes_the_fingerprint_and_nothing_else():
    def of(**settings):
        return create("endpoint", settings).fingerprint()

    assert of() == of(concurrency=9, per_minute=3, key_variable="X_API_KEY", price_tokens=1)
    assert len({of(), of(model="m"), of(dialect="tei"), of(base_url="http://x")}) == 4
