"""Rerank services over real HTTP on 127.0.0.1, working and broken. Waiting is done by a clock that
the test holds, so the pauses cost no time."""

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

from rankdash.errors import SettingError, UnavailableError
from rankdash.rerankers import Corpus, Request, create
from rankdash.rerankers.kinds import endpoint
from rankdash.rerankers.kinds.endpoint import Endpoint
from rankdash.rerankers.remote import keys
from rankdash.rerankers.remote.apis import DIALECTS
from rankdash.rerankers.remote.call_settings import Clock
from rankdash.rerankers.remote.client import LONGEST_PAUSE_SECONDS, Gate
from rankdash.rerankers.remote.estimates import Estimate
from rankdash.rerankers.settings import parse_settings
from tests.rerankers.loopback import score

DOCUMENTS = ["refund for an item", "delivery time", "退货 需要 时间", "get a refund", "cat"]
QUERY = "get a refund 退货"
SECRET = "sk-very/secret+42"


class Hands:
    """A clock that moves when someone sleeps, by `step` when someone looks, and by itself only if
    it is `real`; `slept` is what was waited for."""

    def __init__(self):
        self.slept = []
        self.real = False
        self.step = 0.0
        self._ahead = 0.0
        self._lock = threading.Lock()

    def now(self):
        self._ahead += self.step
        return self._ahead + (time.perf_counter() if self.real else 0.0)

    def sleep(self, seconds):
        with self._lock:
            self.slept.append(seconds)
            self._ahead += seconds

    @property
    def clock(self):
        return Clock(self.now, self.sleep, lambda: 0.0)


@pytest.fixture
def hands():
    return Hands()


@pytest.fixture
def make(server, hands):
    def made(dialect="cohere", **settings):
        given = {
            "dialect": dialect,
            "base_url": server.url_of(dialect),
            "key_variable": "none",
            **settings,
        }
        reranker = Endpoint(parse_settings(endpoint.KIND.settings, given), hands.clock)
        reranker.prepare(Corpus([], []))
        return reranker

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


def test_what_the_server_tells_of_its_time_is_kept_apart(make):
    (scored,) = make("tei").score([ask()])
    assert scored.calls[0].server_ms == 8
    assert scored.calls[0].queue_ms == 2


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


def test_a_service_that_has_ended_is_not_offered():
    offered = "cohere, jina, voyage, mixedbread, tei, vllm, infinity, nim"
    with pytest.raises(SettingError) as caught:
        parse_settings(endpoint.KIND.settings, {"dialect": "zeroentropy"})
    assert str(caught.value).endswith(f"Possible: {offered}.")


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
def test_an_answer_with_a_fault_fails_its_query_and_is_never_zero(make, server, fault, says, lost):
    server.fail(fault)
    (scored,) = make().score([ask()])
    assert says in scored.error
    missing = np.isnan(scored.scores)
    assert missing.sum() == lost
    np.testing.assert_allclose(scored.scores[~missing], np.array(expected())[~missing])


def test_one_bad_answer_fails_one_query_of_many(make, server):
    server.fail({"short": 1})
    answers = make(concurrency=1).score([ask(name=f"q{number}") for number in range(4)])
    assert [bool(answer.error) for answer in answers] == [True, False, False, False]


# Busy services.


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5),
        ({"Retry-After": "3600"}, LONGEST_PAUSE_SECONDS),
        ({"Retry-After": "soon"}, 0.25),
        ({}, 0.25),
    ],
)
def test_429_is_waited_for_as_long_as_asked_within_bounds(make, server, hands, headers, pause):
    server.fail({"status": 429, "headers": headers})
    (scored,) = make().score([ask()])
    assert scored.error == ""
    assert sum(hands.slept) == pytest.approx(pause)
    (call,) = scored.calls
    assert call.attempts == 2
    assert call.retry_wait_s == pytest.approx(pause)
    assert call.end - call.start == pytest.approx(pause)


def test_retry_after_may_be_a_date(make, server, hands):
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    server.fail({"status": 503, "headers": {"Retry-After": date}})
    (scored,) = make().score([ask()])
    assert scored.error == ""
    assert 27 < sum(hands.slept) < 31


def test_a_busy_service_holds_up_all_workers():
    hands = Hands()
    gate = Gate(0, hands.clock)
    gate.close(20)
    assert gate.enter() == 20
    assert gate.enter() == 0


def test_the_rate_limit_spreads_requests_evenly_and_is_not_latency(make, server, hands):
    answers = make(per_minute=30, concurrency=1).score([ask(name=str(n)) for n in range(4)])
    starts = sorted(answer.calls[0].start for answer in answers)
    assert np.diff(starts).tolist() == pytest.approx([2, 2, 2])
    assert sum(hands.slept) == pytest.approx(6)
    assert all(answer.calls[0].end == answer.calls[0].start for answer in answers)
    assert all(answer.calls[0].retry_wait_s == 0 for answer in answers)


@pytest.mark.parametrize(
    "fault",
    [{"status": 500}, {"status": 408}, {"status": 424}, {"cut": 1}, {"html": 1}],
    ids=str,
)
def test_what_may_pass_is_tried_again_with_longer_and_longer_pauses(make, server, hands, fault):
    server.fail(fault, fault, fault)
    (scored,) = make().score([ask()])
    assert scored.error == ""
    np.testing.assert_allclose(scored.scores, expected())
    assert scored.calls[0].attempts == 4
    assert hands.slept == pytest.approx([0.25, 0.5, 1.0])


def test_what_does_not_pass_fails_the_query_with_the_reason(make, server):
    reranker = make(retries=2)
    reranker.score([ask()])
    server.fail(*[{"html": 1}] * 3)
    (scored,) = reranker.score([ask()])
    assert "not JSON: Bad gateway (after 3 attempts)" in scored.error
    assert np.isnan(scored.scores).all()
    assert scored.calls[0].error


def test_a_service_that_goes_away_ends_the_run_after_a_few_queries(make, server):
    reranker = make(retries=0, concurrency=1)
    assert reranker.score([ask()])[0].error == ""
    server.fail(*[{"status": 502}] * 20)
    with pytest.raises(
        UnavailableError, match=r"keeps failing: the service answered 502.*\. Check"
    ):
        reranker.score([ask(name=str(number)) for number in range(20)])
    assert len(server.seen) == 1 + 5


@pytest.mark.parametrize("fault", [{"status": 500}, {"cut": True}])
def test_a_query_that_always_fails_is_no_service_that_has_gone_even_if_it_is_the_first(
    make, server, fault
):
    reranker = make(retries=1, concurrency=1)
    server.fail(fault, fault)
    answers = reranker.score([ask(name="first"), ask(name="second")])
    assert [bool(answer.error) for answer in answers] == [True, False]


def test_a_quota_that_is_used_up_ends_the_run_and_not_every_query(make, server):
    reranker = make(retries=0, concurrency=1)
    server.fail(*[{"status": 429}] * 20)
    with pytest.raises(UnavailableError, match=r"answered 429.*\. Check your quota"):
        reranker.score([ask(name=str(number)) for number in range(20)])
    assert len(server.seen) == 5


def test_nobody_there_ends_the_run_at_once_in_words(hands):
    settings = {"dialect": "tei", "base_url": "http://127.0.0.1:9", "retries": 1}
    settings["key_variable"] = "none"
    reranker = Endpoint(parse_settings(endpoint.KIND.settings, settings), hands.clock)
    reranker.prepare(Corpus([], []))
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:9 cannot be reached: there is no"):
        reranker.score([ask()])


# Slow services.


def test_a_service_that_hangs_fails_the_query_and_its_time_is_known(make, server, hands):
    hands.real = True
    server.fail({"hang": 60.0})
    (scored,) = make(read_s=1.0).score([ask()])
    assert scored.error.startswith("Time-out: no answer within 1 s")
    assert scored.calls[0].status == 0
    assert 0.9 < scored.calls[0].end - scored.calls[0].start < 60
    assert len(server.seen) == 1


def test_an_answer_that_drips_in_ends_with_the_time_of_the_query(make, server, hands):
    hands.step = 5.0
    server.fail({"drip": 60.0})
    (scored,) = make(total_s=30).score([ask()])
    assert scored.error == "Time-out: the time for this query was over."


def test_a_pause_longer_than_the_query_may_take_is_not_begun(make, server, hands):
    server.fail({"status": 429, "headers": {"Retry-After": "40"}})
    (scored,) = make(total_s=30).score([ask()])
    assert "429" in scored.error
    assert hands.slept == []


# Refusals.


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_ends_the_run_without_a_second_try(make, server, status):
    server.fail({"status": status, "text": {"error": {"message": "no such *model*"}}})
    with pytest.raises(UnavailableError, match=rf"\({status}\): no such \*model\*"):
        make(concurrency=1).score([ask(), ask()])
    assert len(server.seen) == 1


def test_one_query_refused_after_others_were_answered_fails_alone(make, server):
    reranker = make()
    reranker.score([ask()])
    server.fail({"status": 400, "text": {"message": "query must not be empty"}})
    (scored,) = reranker.score([ask()])
    assert scored.error == "The service answered 400: query must not be empty."


def test_one_pair_that_is_too_long_fails_its_query_even_the_first(make, server):
    server.fail({"status": 400, "text": {"message": "maximum context length is 512 tokens"}})
    (scored,) = make("vllm").score([ask()])
    assert scored.error == "The service answered 400: maximum context length is 512 tokens."


def test_a_redirect_is_not_followed(make, server):
    server.fail({"redirect": "http://elsewhere.invalid/"})
    with pytest.raises(UnavailableError, match=r"sends on to http://elsewhere\.invalid/"):
        make().score([ask()])


def test_an_answer_without_end_is_not_read(make, server):
    server.fail({"huge": 33_000_000})
    (scored,) = make().score([ask()])
    assert scored.error == "The answer is far too long."


# Splitting.


def test_a_query_is_split_over_the_limit_of_the_service(make, server):
    documents = [f"document {number} refund" for number in range(70)]
    (scored,) = make("tei").score([ask(documents)])
    np.testing.assert_allclose(scored.scores, expected(documents))
    assert sorted(len(body["texts"]) for _, _, body in server.seen) == [6, 32, 32]
    assert len(scored.calls) == 3


def test_a_limit_lower_than_known_is_found_by_halving_and_remembered(make, server):
    documents = [f"document {number} refund" for number in range(30)]
    server.limit = 9
    reranker = make("tei", concurrency=1)
    (scored,) = reranker.score([ask(documents)])
    assert scored.error == ""
    np.testing.assert_allclose(scored.scores, expected(documents))
    server.seen.clear()
    (scored,) = reranker.score([ask(documents)])
    np.testing.assert_allclose(scored.scores, expected(documents))
    assert max(len(body["texts"]) for _, _, body in server.seen) <= 9


def test_a_single_document_that_is_too_large_fails_its_query(make, server):
    server.fail(*[{"status": 413}] * 9)
    (scored,) = make("tei").score([ask(DOCUMENTS[:1])])
    assert scored.error == "The service answered 413: told to say 413."


# Several at once.


def test_many_requests_are_under_way_at_once_and_stay_aligned(make, server):
    requests = [ask([f"refund {n}", f"item {n} refund get"], name=str(n)) for n in range(24)]
    server.fail(*[{"together": 8, "slow": 0.03}] * 24)
    answers = make(concurrency=8).score(requests)
    # The server counts a request until its thread has ended, when the next may have come already.
    assert 8 <= server.most_at_once <= 16
    for request, answer in zip(requests, answers, strict=True):
        np.testing.assert_allclose(answer.scores, expected(request.documents))


# Keys.


def test_a_key_comes_from_the_environment_or_from_hand_and_goes_into_the_header(
    make, server, monkeypatch
):
    server.key = SECRET
    monkeypatch.setenv("RACK_API_KEY", SECRET)
    assert make(key_variable="RACK_API_KEY").score([ask()])[0].error == ""
    monkeypatch.delenv("RACK_API_KEY")
    with keys.given({"COHERE_API_KEY": SECRET}):
        typed = make(key_variable="")
    assert typed.score([ask()])[0].error == ""
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


@pytest.mark.parametrize("name", ["PATH", "AWS_SECRET_ACCESS_KEY", SECRET, "cohere_api_key"])
def test_only_the_name_of_a_key_is_taken_and_what_was_typed_is_not_repeated(name):
    with pytest.raises(SettingError) as caught:
        create("endpoint", {"key_variable": name})
    assert name not in str(caught.value)


def test_a_server_that_repeats_the_key_is_not_quoted(make, server):
    server.key = "another"
    with keys.given({"COHERE_API_KEY": SECRET}):
        reranker = make(key_variable="")
    with pytest.raises(UnavailableError, match="invalid api token: Bearer •••") as caught:
        reranker.score([ask()])
    assert SECRET not in repr(vars(caught.value))
    assert SECRET not in repr(vars(reranker))


def echoes():
    """What services answer that show the key, or a part of it."""
    header = {"Accept": "*/*", "Authorization": f"Bearer {SECRET}"}
    for length in range(300 - len(SECRET), 300):
        yield {"message": "x" * (length - 1) + " " + SECRET}
    yield {"message": "x" * 250 + json.dumps({"headers": header})}
    yield {"message": "x" * 280 + " Bearer " + SECRET}
    yield {"request": "y" * 200, "headers": header}
    # In the middle of what is looked at, and cut by the service itself.
    yield {"x": "<p>" * 6640 + "z" * 60 + SECRET, "y": "z" * 100}
    yield {"message": f"no such key: {SECRET[:9]}…"}
    yield {"message": f"no such key: {SECRET[:7]}****{SECRET[-7:]}"}
    yield {"message": f"authorization: Bearer {SECRET[:4]}"}


@pytest.mark.parametrize("text", list(echoes()), ids=lambda text: repr(text)[-40:])
def test_the_key_is_taken_out_before_an_answer_is_cut(make, server, text):
    with keys.given({"COHERE_API_KEY": SECRET}):
        reranker = make(key_variable="", retries=0)
    assert reranker.score([ask()])[0].error == ""
    server.fail({"status": 400, "text": text})
    (scored,) = reranker.score([ask()])
    assert "answered 400" in scored.error
    assert len(scored.error) < 340
    assert not [at for at in range(len(SECRET) - 3) if SECRET[at : at + 4] in scored.error]
    assert SECRET[:4] not in scored.calls[0].error


def test_a_key_in_an_address_to_go_on_to_is_taken_out_before_that_is_cut(make, server):
    with keys.given({"COHERE_API_KEY": SECRET}):
        reranker = make(key_variable="")
    server.fail({"redirect": "http://127.0.0.1:9/?" + "x" * 270 + f"&key={SECRET}"})
    with pytest.raises(UnavailableError) as caught:
        reranker.score([ask()])
    assert SECRET[:4] not in str(caught.value)


def test_a_key_with_a_line_break_is_refused_without_being_shown(make):
    with keys.given({"COHERE_API_KEY": "abc\ndef"}), pytest.raises(SettingError) as caught:
        make(key_variable="")
    assert str(caught.value) == (
        "The key has a character that cannot be sent, such as a line break. Copy it again."
    )


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x", "x.com", "file:///etc/passwd", "https://", "http://[::1", "http://a:b@x.com",
        "https://x.com/?key=1", "http://x:99999",
    ],
)  # fmt: skip
def test_only_plain_addresses_of_http_are_taken(url):
    with pytest.raises(SettingError):
        create("endpoint", {"base_url": url})


# The estimate and the name of what is cached.


def test_the_estimate_counts_calls_tokens_and_dollars():
    settings = {"dialect": "tei", "price_tokens": 2.0}
    requests = [ask(["word " * 40] * 70), ask(["字" * 40] * 3)]
    found = endpoint.KIND.estimate(parse_settings(endpoint.KIND.settings, settings), requests)
    assert found.calls == 3 + 1
    assert found.tokens_in == pytest.approx(70 * 50 + 3 * 30 + 73 * 4.75, rel=0.02)
    assert found.dollars == pytest.approx(found.tokens_in * 2e-6)
    free = parse_settings(endpoint.KIND.settings, {})
    assert np.isnan(endpoint.KIND.estimate(free, requests).dollars)


def test_what_changes_scores_changes_the_fingerprint_and_nothing_else():
    def of(**settings):
        return create("endpoint", settings).fingerprint()

    assert of() == of(concurrency=9, per_minute=3, key_variable="X_API_KEY", price_tokens=1)
    assert len({of(), of(model="m"), of(dialect="tei"), of(base_url="http://x")}) == 4


def results(*pairs):
    return {"results": [{"index": index, "relevance_score": value} for index, value in pairs]}


@pytest.mark.parametrize(
    ("answer", "scores", "fault"),
    [
        (results((1, 0.5), (0, 2)), [2, 0.5], ""),
        (results((0, 0.5), (2, 1)), [0.5, np.nan], "index 2 is out of range"),
        (results((0, 0.5), (-1, 1)), [0.5, np.nan], "index -1 is out of range"),
        (results((0, 0.5)), [0.5, np.nan], "the answer is too short"),
        (results((0, True), (1, 1)), [np.nan, 1], "the score of index 0 is not a number"),
        (results((0, 1), (1, 2), (1, 3)), [1, np.nan], "index 1 comes twice"),
    ],
)
def test_each_score_goes_to_its_document_or_to_none(answer, scores, fault):
    found, said = DIALECTS["cohere"].read_scores(answer, 2)
    np.testing.assert_array_equal(found, scores)
    known = 2 - int(np.isnan(found).sum())
    assert said == (fault and f"documents with a score: {known} of 2: {fault}.")


@pytest.mark.parametrize(
    ("status", "said", "too_large"),
    [
        (413, "", True),
        (400, "too many documents", True),
        (422, "batch size 64 > 32", True),
        (400, "query must not be empty", False),
        (500, "too many documents", False),
    ],
)
def test_fewer_documents_are_tried_where_there_were_too_many(make, server, status, said, too_large):
    reranker = make(retries=0)
    reranker.score([ask()])
    server.fail({"status": status, "text": {"message": said}})
    (scored,) = reranker.score([ask(DOCUMENTS[:2])])
    assert (scored.error == "") == too_large
    assert len(server.seen) == (4 if too_large else 2)


@pytest.mark.parametrize(("asked", "begun"), [(29, True), (30, False)])
def test_a_pause_as_long_as_what_is_left_is_not_begun(make, server, hands, asked, begun):
    server.fail({"status": 429, "headers": {"Retry-After": str(asked)}})
    (scored,) = make(total_s=30).score([ask()])
    assert (scored.error == "") == begun
    assert hands.slept == ([29] if begun else [])


def test_failures_count_as_a_service_that_has_gone_only_in_a_row(make, server):
    """Four times nobody, once an answer that is no JSON, four times nobody, and then once more."""
    reranker = make(retries=0, concurrency=1)
    reranker.score([ask()])
    server.fail(*[{"status": 502}] * 4, {"html": 1}, *[{"status": 502}] * 5)
    answers = reranker.score([ask(name=str(number)) for number in range(9)])
    assert all(answer.error for answer in answers)
    with pytest.raises(UnavailableError, match="keeps failing"):
        reranker.score([ask()])


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_key_that_is_refused_later_ends_the_run(make, server, status):
    reranker = make()
    reranker.score([ask()])
    server.fail({"status": status})
    with pytest.raises(UnavailableError, match=rf"refused the request \({status}\)"):
        reranker.score([ask()])


def test_the_turn_that_a_query_waits_for_is_not_in_its_time(make, hands):
    answers = make(per_minute=2, total_s=10, concurrency=1).score([ask(name="a"), ask(name="b")])
    assert [answer.error for answer in answers] == ["", ""]
    assert hands.slept == [30]


@pytest.mark.parametrize(("length", "hidden"), [(4, True), (3, False)])
def test_a_key_that_could_be_a_word_is_not_looked_for(length, hidden):
    key = "k" * length
    assert ("k" in keys.Key(key).redact_whole(f"no such key: <{key}>").split("<")[1]) != hidden


def test_a_share_of_the_work_has_whole_calls():
    found = Estimate(5, 100.0, 8.0, 2.0).scaled(0.25)
    assert found == Estimate(2, 25.0, 2.0, 0.5)


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


@pytest.mark.parametrize("key", ["schlüssel-1", "abc\u2028def", "abc\x00"])
def test_a_key_with_a_character_that_no_header_holds_is_refused(make, key):
    with keys.given({"COHERE_API_KEY": key}), pytest.raises(SettingError, match="cannot be sent"):
        make(key_variable="")


def test_a_request_has_as_many_documents_as_are_asked_for(make, server):
    (scored,) = make(documents_per_request=2).score([ask()])
    np.testing.assert_allclose(scored.scores, expected())
    assert sorted(len(body["documents"]) for _, _, body in server.seen) == [1, 2, 2]


def test_two_documents_that_are_too_many_are_asked_one_by_one(make, server):
    server.fail({"status": 413})
    (scored,) = make(concurrency=1).score([ask(DOCUMENTS[:2])])
    np.testing.assert_allclose(scored.scores, expected(DOCUMENTS[:2]))
    assert [len(body["documents"]) for _, _, body in server.seen] == [2, 1, 1]


def test_where_one_half_fails_the_other_is_not_asked(make, server):
    reranker = make(concurrency=1)
    reranker.score([ask()])
    server.seen.clear()
    server.fail({"status": 413}, {"status": 400, "text": {"message": "no"}})
    (scored,) = reranker.score([ask(DOCUMENTS[:4])])
    assert scored.error == "The service answered 400: no."
    assert np.isnan(scored.scores).all()
    assert len(server.seen) == len(scored.calls) == 2


@pytest.mark.parametrize(("documents", "units"), [(1, 1), (100, 1), (101, 2)])
def test_a_hundred_documents_are_one_search_unit(documents, units):
    settings = parse_settings(endpoint.KIND.settings, {"price_searches": 1000.0})
    found = endpoint.KIND.estimate(settings, [ask(["word"] * documents)])
    assert found.dollars == units
