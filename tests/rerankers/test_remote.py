"""What is read from the headers and errors of services, and how long the next attempt waits."""

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from rankdash.errors import SettingError
from rankdash.rerankers.remote import call_settings
from rankdash.rerankers.remote.call_settings import Budget, Clock, Policy, check_url, each
from rankdash.rerankers.remote.client import Client, Gate, GoneError, Reply
from rankdash.rerankers.remote.estimates import Estimate, text_tokens
from rankdash.rerankers.remote.keys import Place


class Time:
    """A clock that moves when someone sleeps."""

    def __init__(self, jitter: float = 0.0) -> None:
        self.at = 100.0
        self.slept: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None
        self.clock = Clock(lambda: self.at, self.sleep, lambda: jitter)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        self.at += seconds


@pytest.fixture
def asking(server):
    """Make a function that asks the service once; it may fail beforehand, as `Server.fail` says."""

    def made(*faults: dict, time: Time | None = None, **policy: float) -> Callable[[], Reply]:
        client = Client(Place("", server.url), Policy(**policy), (time or Time()).clock)
        body = {"query": "q", "texts": ["a"]}
        server.fail(*faults)
        return lambda: client.post("/rerank", body, client.budget(), lambda answer: {})

    return made


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
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 -0000"}, 0.0),
        ({}, None),
    ],
)
def test_a_service_asks_for_seconds_milliseconds_or_a_date_which_all_wait_for(
    asking, headers, seconds
):
    """What it asks for holds up a request that is made meanwhile too."""
    time = Time()
    ask = asking({"status": 503, "headers": headers}, time=time)
    time.meanwhile = ask
    assert ask().call.retry_wait_s == (seconds or 0.25)
    assert len(time.slept) == (1 if seconds is None else 2)


def test_all_wait_where_there_is_no_quota(asking):
    time = Time()
    time.meanwhile = ask = asking({"status": 429}, time=time)
    ask()
    assert time.slept == [0.25, 0.25]


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
    time = Time(jitter)
    headers = {} if asked is None else {"retry-after": str(asked)}
    faults = [{"status": 503, "headers": headers}] * len(pauses)
    assert asking(*faults, time=time, retries=9)().error == ""
    assert time.slept == pytest.approx(pauses)


@pytest.mark.parametrize(
    ("status", "again", "gone"),
    [
        (408, True, False),
        (409, True, False),
        (424, True, False),
        (425, True, False),
        (429, True, True),
        (500, True, True),
        (599, True, True),
        (400, False, False),
        (499, False, False),
    ],
)
def test_which_answers_are_worth_another_attempt_and_which_say_that_it_is_gone(
    asking, status, again, gone
):
    """A service is gone after the fifth in a row."""
    fault = {"status": status, "text": b""}
    once, twice = (asking(retries=retries) for retries in (0, 1))
    once(), twice()
    asking(fault)
    assert twice().call.attempts == (2 if again else 1)
    asking(*[fault] * 5)
    assert [once().error for _ in range(4)] == [f"the service said {status}"] * 4
    with pytest.raises(GoneError) if gone else nullcontext():
        once()


@pytest.mark.parametrize("status", [200, 201, 299])
def test_an_answer_is_read_whatever_kind_of_success_it_is(asking, status):
    reply = asking({"status": status, "text": [1]})()
    assert (reply.answer, reply.error, reply.call.attempts) == ([1], "", 1)


def test_a_gate_spreads_what_it_lets_out_and_stays_closed_for_the_longest_wait():
    time = Time()
    gate = Gate(30, time.clock)
    assert [gate.enter() for _ in range(3)] == [0.0, 2.0, 2.0]
    gate.close(9)
    gate.close(5)
    assert gate.enter() == 9.0
    time.sleep(60)
    assert [gate.enter(), gate.enter()] == [0.0, 2.0], "what was not used is gone"


def test_a_budget_ends_and_may_be_extended():
    time = Time()
    budget = Budget(5, time.clock)
    time.sleep(3)
    assert budget.left == 2
    budget.extend(4)
    assert budget.left == 6


@pytest.mark.parametrize(("items", "at_once"), [(0, 4), (1, 4), (5, 1), (5, 3)])
def test_everything_is_answered_in_order_and_so_much_at_once(items, at_once):
    names = []

    def double(item):
        names.append(threading.current_thread().name)
        return 2 * item

    assert each(double, range(items), at_once) == [2 * item for item in range(items)]
    apart = items > 1 and at_once > 1
    assert all(name.startswith("rerank") == apart for name in names)


@pytest.mark.parametrize(("items", "at_once", "workers"), [(5, 3, 3), (3, 3, 3), (2, 64, 2)])
def test_no_more_are_under_way_than_allowed_and_than_there_are(
    monkeypatch, items, at_once, workers
):
    made = []

    def pool(most, **options):
        made.append(most)
        return ThreadPoolExecutor(most, **options)

    monkeypatch.setattr(call_settings, "ThreadPoolExecutor", pool)
    assert each(str, range(items), at_once) == [str(item) for item in range(items)]
    assert made == [workers]


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        (" https://x.com/v1// ", "https://x.com/v1"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]:1/", "http://[::1]:1"),
    ],
)
def test_an_address_loses_its_blanks_and_the_slash_at_its_end(url, kept):
    assert check_url(url) == kept


@pytest.mark.parametrize(
    "url",
    [
        *("http://x:0", "https:x", "ftp://x.com", "http://user@x.com", "http://:word@x.com"),
        *("https://x.com/#a", "https://x.com/?a=b"),
    ],
)
def test_what_is_no_plain_address_is_refused(url):
    with pytest.raises(SettingError):
        check_url(url)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("abcdefgh", 2), ("退货单号", 3), ("ab cd退货单号", 1.25 + 3)]
)
def test_four_letters_are_a_token_and_three_tokens_four_characters(text, tokens):
    assert text_tokens(text) == tokens


def test_estimates_add_up():
    found = Estimate(2, 10.0, 1.0, 0.5) + Estimate(3, 20.0, 4.0, 0.25)
    assert found == Estimate(5, 30.0, 5.0, 0.75)
    assert math.isnan((Estimate(1, 1.0) + Estimate(1, 1.0, 0.0, 1.0)).dollars)
