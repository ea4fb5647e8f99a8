"""What is read from the headers and errors of services, and how long the next attempt waits."""

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from rankdash.errors import UnavailableError
from rankdash.rerankers.remote import call_settings, client
from rankdash.rerankers.remote.call_settings import Budget, Policy, each
from rankdash.rerankers.remote.client import Client, Gate, GoneError, Reply
from rankdash.rerankers.remote.estimates import Estimate
from rankdash.rerankers.remote.keys import Place
from tests.rerankers.held_clock import HeldClock


@pytest.fixture
def asking(server, hands):
    """Make a function that asks the service once; it may fail beforehand, as `Server.fail` says."""

    def made(
        *faults: dict, time: HeldClock = hands, url: str = server.url, **policy: float
    ) -> Callable[[], Reply]:
        made = Client(Place("", url), Policy(**policy), time.clock)
        body = {"query": "q", "texts": ["a"]}
        server.fail(*faults)
        return lambda: made.post("/rerank", body, made.budget(), lambda answer: {})

    return made


# Pauses.


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 -0000"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:20:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_a_service_asks_for_seconds_milliseconds_or_a_date_which_all_wait_for(
    asking, hands, monkeypatch, headers, seconds
):
    """What it asks for holds up a request that is made meanwhile too."""
    now = datetime(2015, 10, 21, 7, 27, 30, tzinfo=UTC)
    monkeypatch.setattr(client, "datetime", SimpleNamespace(now=lambda zone: now))
    hands.meanwhile = ask = asking({"status": 503, "headers": headers})
    call = ask().call
    assert call.retry_wait_s == (seconds or 0.25)
    assert call.end - call.start == sum(hands.slept)
    assert (call.attempts, len(hands.slept)) == (2, 1 if seconds is None else 2)


def test_all_wait_where_there_is_no_quota(asking, hands):
    hands.meanwhile = ask = asking({"status": 429})
    ask()
    assert hands.slept == [0.25, 0.25]


@pytest.mark.parametrize(
    ("asked", "jitter", "pauses"),
    [
        (None, 0.0, [0.25, 0.5, 1, 2, 4, 8, 10, 10]),
        (None, 1.0, [0.5, 1, 2, 4, 8, 16, 20, 20]),
        (7.0, 0.0, [7, 7]),
        (7.0, 1.0, [7.7, 7.7]),
        (60.0, 0.0, [60]),
        (3600.0, 1.0, [66]),
    ],
)
def test_pauses_are_those_asked_for_or_twice_as_long_each_time(asking, asked, jitter, pauses):
    time = HeldClock(jitter)
    headers = {} if asked is None else {"retry-after": str(asked)}
    faults = [{"status": 503, "headers": headers}] * len(pauses)
    assert asking(*faults, time=time, retries=9)().error == ""
    assert time.slept == pytest.approx(pauses)


@pytest.mark.parametrize(("asked", "begun"), [(29, True), (30, False), (40, False)])
def test_a_pause_as_long_as_what_is_left_is_not_begun(asking, hands, asked, begun):
    reply = asking({"status": 429, "headers": {"Retry-After": str(asked)}}, total_s=30)()
    assert (reply.error == "") == begun
    assert hands.slept == ([29] if begun else [])


def test_a_gate_spreads_what_it_lets_out_and_stays_closed_for_the_longest_wait(hands):
    gate = Gate(30, hands.clock)
    assert [gate.enter() for _ in range(3)] == [0.0, 2.0, 2.0]
    gate.close(9)
    gate.close(5)
    assert gate.enter() == 9.0
    hands.sleep(60)
    assert [gate.enter(), gate.enter()] == [0.0, 2.0], "what was not used is gone"
    free = Gate(0, hands.clock)
    free.close(20)
    assert [free.enter(), free.enter()] == [20, 0]


def test_a_budget_ends_and_may_be_extended(hands):
    budget = Budget(5, hands.clock)
    hands.sleep(3)
    assert budget.left == 2
    budget.extend(4)
    assert budget.left == 6


# What answers mean.


def silent(*statuses):
    return [({"status": status, "text": b""}, f"the service said {status}") for status in statuses]


PASSING = [*silent(408, 409, 424, 425), ({"html": 1}, "the answer is not JSON: Bad gateway")]
LEAVING = [*silent(429, 500, 599), ({"cut": 1}, "the connection was cut (")]
LASTING = silent(400, 413, 499)


@pytest.mark.parametrize(("fault", "said"), PASSING + LEAVING, ids=str)
def test_what_may_pass_is_asked_again_and_the_first_that_fails_says_nothing_of_others(
    asking, fault, said
):
    reply = asking(fault, fault, retries=1)()
    assert reply.error.startswith(said) and reply.error.endswith("(after 2 attempts)")
    assert asking(fault, retries=1)().call.attempts == 2


@pytest.mark.parametrize(("fault", "said"), PASSING + LEAVING + LASTING, ids=str)
def test_a_service_that_leaves_five_requests_in_a_row_is_gone(asking, server, fault, said):
    ask = asking(retries=0)
    ask()
    asking(*[fault] * 5)
    assert all(ask().error.startswith(said) for _ in range(4))
    gone = pytest.raises(GoneError, match=r"keeps failing|cannot be reached")
    with gone if (fault, said) in LEAVING else nullcontext() as caught:
        ask()
    if caught:
        quota = caught.value.remedy.startswith("Check your quota there")
        assert quota == (fault.get("status") == 429)
    assert len(server.seen) == 6, "none is asked again"


@pytest.mark.parametrize("fault", silent(400, 413, 499))
def test_what_lasts_is_not_asked_again(asking, fault):
    ask = asking(retries=1)
    ask()
    asking(fault[0])
    assert ask().call.attempts == 1


def test_an_answer_without_end_is_not_read(asking):
    reply = asking({"huge": 33_000_000}, retries=1)()
    assert (reply.error, reply.call.attempts) == ("the answer is far too long", 1)


def test_failures_count_as_a_service_that_has_gone_only_in_a_row(asking):
    """Four times nobody, once an answer that is no JSON, four times nobody, and then once more."""
    ask = asking(retries=0)
    ask()
    asking(*[{"status": 502}] * 4, {"html": 1}, *[{"status": 502}] * 5)
    assert all(ask().error for _ in range(9))
    with pytest.raises(GoneError, match="keeps failing"):
        ask()


def test_nobody_there_ends_it_at_once(asking):
    with pytest.raises(GoneError, match=r"127\.0\.0\.1:9 cannot be reached: there is no"):
        asking(url="http://127.0.0.1:9", retries=1)()


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize(
    ("status", "said", "ends", "large"),
    [
        *((status, "no such *model*", True, False) for status in (401, 403, 404)),
        *((status, "query must not be empty", None, False) for status in (400, 422)),
        (400, "maximum context length is 512 tokens", False, False),
        (400, "too many documents", False, True),
        (422, "batch size 64 > 32", False, True),
        (413, "no", False, True),
    ],
)
def test_a_refusal_is_of_one_request_or_of_all(asking, server, answered, status, said, ends, large):
    """None: of all where none was answered before. It is never tried again."""
    ask = asking()
    if answered:
        ask()
    asking({"status": status, "text": {"error": {"message": said}}})
    if ends or (ends is None and not answered):
        with pytest.raises(UnavailableError) as caught:
            ask()
        assert f"refused the request ({status}): {said}." in str(caught.value)
    else:
        reply = ask()
        assert reply.error == f"the service answered {status}: {said}"
        assert reply.too_large == large
    assert len(server.seen) == 1 + answered


def test_of_a_server_that_fails_too_many_documents_say_nothing(asking):
    assert not asking({"status": 500, "text": "too many documents"}, retries=0)().too_large


def test_a_redirect_is_not_followed(asking):
    with pytest.raises(UnavailableError, match=r"sends on to http://elsewhere\.invalid/"):
        asking({"redirect": "http://elsewhere.invalid/"})()


@pytest.mark.parametrize("status", [200, 201, 299])
def test_an_answer_is_read_whatever_kind_of_success_it_is(asking, status):
    reply = asking({"status": status, "text": [1]})()
    assert (reply.answer, reply.error, reply.call.attempts) == ([1], "", 1)


@pytest.mark.parametrize(
    ("headers", "taken"),
    [
        ({"x-tokenization-time": "3", "x-inference-time": "5", "openai-processing-ms": "90"}, 8.0),
        ({"x-inference-time": "5"}, 5.0),
        ({"x-inference-time": "long", "openai-processing-ms": "90"}, 90.0),
        ({"openai-processing-ms": "inf", "x-envoy-upstream-service-time": "7"}, 7.0),
        ({"x-envoy-upstream-service-time": "7"}, 7.0),
        ({"x-queue-time": "2"}, math.nan),
    ],
)
def test_the_first_of_the_headers_that_tell_a_time_holds(asking, headers, taken):
    call = asking({"status": 200, "text": [], "headers": headers})().call
    assert call.server_ms == pytest.approx(taken, nan_ok=True)
    queued = 2.0 if "x-queue-time" in headers else math.nan
    assert call.queue_ms == pytest.approx(queued, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"message": "a  b"}', "a b"),
        ('{"error": {"message": "inner", "code": 3}}', "inner"),
        ('{"detail": [{"msg": "first"}, {"msg": "second"}]}', "first"),
        ('{"message": "", "errors": ["why"]}', "why"),
        ('["only this", "not that"]', "only this"),
        ('"quoted"', "quoted"),
        ('{"code": 3}', '{"code": 3}'),
        ("[]", "[]"),
        ("<h1>Bad</h1><style>b{}</style><script>x</script>\n gateway", "Bad gateway"),
        ("plain", "plain"),
    ],
)
def test_an_error_is_the_message_in_it_or_its_text_without_marks(asking, text, said):
    reply = asking({"status": 500, "text": text.encode()}, retries=0)()
    assert reply.error == f"the service answered 500: {said}"


# Time-outs.


def test_a_service_that_hangs_is_given_up_and_its_time_is_known(asking, server, hands):
    hands.real = True
    reply = asking({"hang": 600.0}, read_s=0.5)()
    assert reply.error == "time-out: no answer within 0.5 s"
    assert (reply.call.status, reply.call.attempts) == (0, 1)
    assert reply.call.end - reply.call.start > 0.45
    server.heard(1)


def test_an_answer_that_drips_in_ends_with_the_time_of_the_query(asking, hands):
    hands.step = 5.0
    reply = asking({"drip": 60.0}, total_s=30)()
    assert reply.error == "time-out: the time for this query was over"


# What the kinds share.


@pytest.mark.parametrize(
    ("items", "at_once", "workers"),
    [(0, 4, []), (1, 4, []), (5, 1, []), (5, 3, [3]), (3, 3, [3]), (2, 64, [2])],
)
def test_everything_is_answered_in_order_and_so_much_at_once(monkeypatch, items, at_once, workers):
    names, made = [], []

    def double(item):
        names.append(threading.current_thread().name)
        return 2 * item

    def pool(most, **options):
        made.append(most)
        return ThreadPoolExecutor(most, **options)

    monkeypatch.setattr(call_settings, "ThreadPoolExecutor", pool)
    assert each(double, range(items), at_once) == [2 * item for item in range(items)]
    assert made == workers
    assert all(name.startswith("rerank") == bool(workers) for name in names)


def test_estimates_add_up_and_a_share_of_one_has_whole_calls():
    found = Estimate(2, 10.0, 1.0, 0.5) + Estimate(3, 20.0, 4.0, 0.25)
    assert found == Estimate(5, 30.0, 5.0, 0.75)
    assert math.isnan((Estimate(1, 1.0) + Estimate(1, 1.0, 0.0, 1.0)).dollars)
    assert Estimate(5, 100.0, 8.0, 2.0).scaled(0.25) == Estimate(2, 25.0, 2.0, 0.5)
