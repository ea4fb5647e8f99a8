"""Headers and errors of services, and the pause before the next attempt."""

import math
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers.remote import client
from rankdash.core.rerankers.remote.client import Client, Gate, GoneError, Reply
from rankdash.core.rerankers.remote.connection import Budget, Estimate, Place, Policy, concurrently
from tests.approved import masked, table
from tests.rerankers.held_clock import HeldClock
from tests.results import shown


@pytest.fixture
def asking(server, hands):
    """Make a function that sends one request; it may fail first, as set by `Server.fail`."""

    def made(
        *faults: dict, time: HeldClock = hands, url: str = server.url, **policy: float
    ) -> Callable[[], Reply]:
        made = Client(Place("", url), Policy(**policy), time.clock)
        body = {"query": "q", "texts": ["a"]}
        server.fail(*faults)
        return lambda: made.post("/rerank", body, made.budget(), lambda answer: {})

    return made


def said(ask: Callable[[], Reply]) -> str:
    try:
        reply = ask()
    except UnavailableError as refused:
        return f"{type(refused).__name__}: {refused}"
    large = ", too large" if reply.too_large else ""
    return f"{reply.error or shown(reply.answer)}{large} ({reply.call.attempts} attempts)"


def silent(*statuses: int) -> dict[str, dict]:
    return {str(status): {"status": status, "text": b""} for status in statuses}


def saying(message: str, *statuses: int) -> dict[str, dict]:
    text = {"error": {"message": message}}
    return {f"{status} {message}": {"status": status, "text": text} for status in statuses}


FAULTS = {
    **silent(400, 408, 409, 413, 424, 425, 429, 499, 500, 599),
    **{f"{status} with an answer": {"status": status, "text": [1]} for status in (201, 299)},
    **{name: {name: 1} for name in ("html", "cut")},
    "huge": {"huge": 33_000_000},
    "redirect": {"redirect": "http://elsewhere.invalid/"},
    **saying("no such *model*", 401, 403, 404),
    **saying("query must not be empty", 400, 422),
    **saying("maximum context length is 512 tokens", 400),
    **saying("too many documents", 400, 500),
    **saying("batch size 64 > 32", 422),
}
MESSAGES = [
    *('{"message": "a  b"}', '{"error": {"message": "inner", "code": 3}}'),
    *('{"detail": [{"msg": "first"}, {"msg": "second"}]}', '{"message": "", "errors": ["why"]}'),
    *('["only this", "not that"]', '"quoted"', '{"code": 3}', "[]", "plain"),
    "<h1>Bad</h1><style>b{}</style><script>x</script>\n gateway",
]
TIMES = [
    {"x-tokenization-time": "3", "x-inference-time": "5", "openai-processing-ms": "90"},
    {"x-inference-time": "5"},
    {"x-inference-time": "long", "openai-processing-ms": "90"},
    {"openai-processing-ms": "inf", "x-envoy-upstream-service-time": "7"},
    {"x-envoy-upstream-service-time": "7"},
    {"x-queue-time": "2"},
]


def test_answers_of_a_service_are_as_approved(asking, server, approved):
    """Each fault: twice at the first request; once after an answer; five times after an answer."""
    cases = {}
    for name, fault in FAULTS.items():
        server.forget()
        lines = [said(asking(fault, fault, retries=1))]
        server.forget()
        ask = asking(retries=1)
        ask()
        asking(fault)
        lines.append(said(ask))
        server.forget()
        ask = asking(retries=0)
        ask()
        asking(*[fault] * 5)
        lines += [said(ask) for _ in range(5)][-1:]
        assert len(server.seen) == 6, "none is asked again"
        cases[name] = "\n".join(lines)
    server.forget()
    for text in MESSAGES:
        cases[text] = said(asking({"status": 500, "text": text.encode()}, retries=0))
    for headers in TIMES:
        call = asking({"status": 200, "text": [], "headers": headers})().call
        cases[shown(headers)] = f"{call.server_ms} ms, queued {call.queue_ms}"
    cases["nobody"] = said(asking(url="http://127.0.0.1:9", retries=1))
    unlike = {"port": r"(?<=127\.0\.0\.1:)\d{2,}", "reason": r"(?<=cut )\(.*?\)(?=[ .])"}
    text = masked(table(cases), **unlike, errno=r"\[Errno.*?(?=\))")
    approved("rerankers/services", text)


def test_failures_count_as_a_service_that_has_gone_only_in_a_row(asking):
    """Four failures, one answer that is not JSON, four failures, and then one more."""
    ask = asking(retries=0)
    ask()
    asking(*[{"status": 502}] * 4, {"html": 1}, *[{"status": 502}] * 5)
    assert all(ask().error for _ in range(9))
    with pytest.raises(GoneError, match="fails repeatedly"):
        ask()


# Pauses.


DATE = "Wed, 21 Oct 2015 07:28:00"
HEADERS = [
    {"retry-after-ms": "1500", "retry-after": "9"},
    {"retry-after-ms": "soon", "retry-after": "9"},
    *({"retry-after": value} for value in (" 2.5 ", "-3", "0", "inf", "nan", "soon")),
    *({"retry-after": value} for value in (f"{DATE} GMT", f"{DATE} -0000")),
    {"retry-after": "Wed, 21 Oct 2015 07:20:00 GMT"},
    {},
]


class Then(datetime):
    """A clock half a minute before the date."""

    @classmethod
    def now(cls, zone: object = None) -> datetime:
        return datetime(2015, 10, 21, 7, 27, 30, tzinfo=UTC)


def test_pauses_are_as_approved(asking, server, monkeypatch, approved):
    """The pause of a service also delays a request that is sent during it."""
    monkeypatch.setattr(client, "datetime", Then)
    cases = {}
    for status, headers in [*((503, headers) for headers in HEADERS), (429, {})]:
        time = HeldClock()
        time.meanwhile = ask = asking({"status": status, "headers": headers}, time=time)
        call = ask().call
        assert call.end - call.start == sum(time.slept)
        slept = f"waited {call.retry_wait_s}, slept {time.slept}, {call.attempts} attempts"
        cases[f"{status} {headers}"] = slept
    for asked, jitter, tries in ((None, 0.0, 8), (None, 1.0, 8), (7.0, 0.0, 2), (7.0, 1.0, 2),
                                 (60.0, 0.0, 1), (3600.0, 1.0, 1)):  # fmt: skip
        time = HeldClock(jitter)
        headers = {} if asked is None else {"retry-after": str(asked)}
        faults = [{"status": 503, "headers": headers}] * tries
        assert asking(*faults, time=time, retries=9)().error == ""
        cases[f"{asked} s asked for, jitter {jitter}"] = shown(time.slept)
    for asked in (29, 30, 40):
        server.forget()
        time = HeldClock()
        faulty = {"status": 429, "headers": {"Retry-After": str(asked)}}
        reply = asking(faulty, time=time, total_s=30)()
        cases[f"{asked} of 30 s"] = f"{reply.error or 'answered'}, slept {time.slept}"
    approved("rerankers/pauses", table(cases))


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
    assert reply.error == "time-out: query time limit reached"


# Shared by all kinds.


def test_everything_is_answered_in_order_by_threads_if_several_may_be_under_way():
    def double(item):
        return 2 * item, threading.current_thread().name.startswith("rerank")

    for items, at_once, threads in ((0, 4, 0), (1, 4, 0), (5, 1, 0), (5, 3, 1), (2, 64, 1)):
        expected = [(2 * item, bool(threads)) for item in range(items)]
        assert concurrently(double, range(items), at_once) == expected


def test_estimates_add_up_and_a_share_of_one_has_whole_calls():
    found = Estimate(2, 10.0, 1.0, 0.5) + Estimate(3, 20.0, 4.0, 0.25)
    assert found == Estimate(5, 30.0, 5.0, 0.75)
    assert math.isnan((Estimate(1, 1.0) + Estimate(1, 1.0, 0.0, 1.0)).dollars)
    assert Estimate(5, 100.0, 8.0, 2.0).scaled(0.25) == Estimate(2, 25.0, 2.0, 0.5)
