"""Throughput with several clients: measured, bounded in time, and honest about what is shared."""

import heapq
import math
import threading

import numpy as np
import pytest

from rankdash.errors import UnavailableError
from rankdash.ranking.measured import Level
from rankdash.rerankers import Request, Scored
from rankdash.runs import concurrency
from rankdash.runs.concurrency import measure, within_target
from rankdash.runs.plan import Timing
from rankdash.runs.runner import Cancelled, rerank

REQUESTS = [Request(f"q{n}", f"ask {n}", ["a", "b"], ["one", "two"]) for n in range(20)]


class Clock:
    """A time that passes only when every client of a level waits for it."""

    def __init__(self):
        self.now = 0.0
        self._change = threading.Condition()
        self._waits = {}
        self.expect(0)

    def expect(self, clients):
        """Time stands still until so many clients have begun."""
        self._clients, self._begun = clients, set()

    def wait(self, until):
        if not threading.current_thread().name.startswith("client-"):
            self.now = max(self.now, until)
            return
        with self._change:
            self._begun.add(threading.current_thread())
            self._waits[threading.current_thread()] = until
            while self.now < until:
                self._pass()
                # Clients that end tell nobody.
                self._change.wait(0.01)
            del self._waits[threading.current_thread()]

    def _pass(self):
        alive = sum(each.name.startswith("client-") for each in threading.enumerate())
        if len(self._begun) >= self._clients and len(self._waits) == alive:
            self.now = max(self.now, min(self._waits.values()))
            self._change.notify_all()


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The time of what is measured here."""
    made = Clock()
    for name in ("perf_counter", "process_time"):
        monkeypatch.setattr(concurrency.time, name, lambda: made.now)
    monkeypatch.setattr(Slots, "clock", made)
    return made


class Slots:
    """Answers in 20 ms; as many requests at once as it has slots, the others wait."""

    name = "slots"
    clock = Clock()

    def __init__(self, slots, answer=None):
        self.settings = {}
        self._free = [0.0] * slots
        self._answer = answer or (lambda request: Scored(np.array([1.0, 2.0])))
        self._lock = threading.Lock()
        self.now = self.most = 0
        self.seen = []

    def prepare(self, corpus):
        pass

    def fingerprint(self):
        return ""

    def score(self, requests):
        return [self._score(request) for request in requests]

    def _score(self, request):
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.seen.append(request.query_id)
            # A heap: the slot that is free first.
            ready = max(self._free[0], self.clock.now) + 0.02
            heapq.heapreplace(self._free, ready)
        self.clock.wait(ready)
        with self._lock:
            self.now -= 1
        return self._answer(request)


def levels(reranker, requests, clients, seconds):
    """As `measure`, with clients that begin together."""
    found = []
    for count in clients:
        reranker.clock.expect(count)
        found += measure(reranker, requests, (count,), seconds)
    return found


def test_clients_are_under_way_at_once_and_the_rate_is_what_came_back():
    reranker = Slots(100)
    one, four = levels(reranker, REQUESTS, (1, 4), 0.4)
    assert reranker.most == 4
    assert (one.in_flight, four.in_flight) == (1, 4)
    for level in (one, four):
        assert level.queries_per_second == pytest.approx(level.queries / level.seconds)
        assert level.pairs_per_second == pytest.approx(2 * level.queries / level.seconds)
        # What was begun in time is finished.
        assert level.seconds == pytest.approx(0.4, abs=0.021)
        assert (level.p50_ms, level.p95_ms) == pytest.approx((20.0, 20.0))
    assert four.queries_per_second == pytest.approx(4 * one.queries_per_second, rel=0.05)
    # Every client takes the next query of one list.
    assert set(reranker.seen) == {request.query_id for request in REQUESTS}


def test_trap_17_where_clients_queue_the_rate_is_not_clients_over_latency_of_one():
    """One slot: four clients get no more done than one, and some wait four times as long."""
    one, four = levels(Slots(1), REQUESTS, (1, 4), 0.4)
    derived = 4 * 1000 / one.p50_ms
    assert four.queries_per_second == pytest.approx(derived / 4, rel=0.05)
    assert four.p95_ms == pytest.approx(4 * one.p50_ms)


def test_failures_are_counted_apart_and_are_no_throughput():
    """An answer counts where it has no error and every score."""

    def answer(request):
        return {
            "q1": lambda: Scored.failed(2, "HTTP 429"),
            "q2": lambda: 1 / 0,
            "q3": lambda: Scored(np.array([1.0, np.nan])),
            "q4": lambda: Scored(np.array([1.0, 2.0]), error="too late"),
        }.get(request.query_id, lambda: Scored(np.array([1.0, 2.0])))()

    (bad,) = levels(Slots(1, answer), REQUESTS[1:5], (1,), 0.1)
    assert (bad.queries, bad.failed, bad.queries_per_second) == (0, 5, 0.0)
    assert np.isnan(bad.p50_ms)
    (some,) = levels(Slots(1, answer), REQUESTS[:5], (1,), 0.2)
    assert (some.queries, some.failed) == (2, 8)
    assert some.pairs_per_second == pytest.approx(20)


@pytest.mark.parametrize("fresh", ["q1", "q0 q1 q2"])
def test_the_time_of_embedding_is_in_no_latency(fresh):
    """Of the first and the last request all is embedded, or nothing is, so that all are put to it
    beforehand."""
    clock, left = Slots.clock, set(fresh.split())

    def answer(request):
        seconds = 0.3 if request.query_id in left else 0.0
        left.discard(request.query_id)
        clock.wait(clock.now + seconds)
        return Scored(np.array([1.0, 2.0]), index_seconds=seconds)

    (found,) = levels(Slots(9, answer), REQUESTS[:3], (1,), 0.5)
    assert found.queries >= 3
    assert found.p95_ms == pytest.approx(20.0)
    assert found.queries == (25 if "q0" in fresh else 10)


def level(clients, rate, p95, failed=0):
    return Level(clients, 5.0, 100, failed, p95 / 2, p95, rate, rate * 50, 1.0)


LEVELS = {"one": level(1, 2.0, 300.0), "two": level(2, 3.5, 450.0), "four": level(4, 4.0, 900.0)}
LEVELS |= {"wider": level(4, 3.0, 500.0), "failing": level(8, 9.0, 100.0, 3)}
LEVELS |= {"unknown": level(1, 0.0, math.nan)}


@pytest.mark.parametrize(
    ("names", "target", "best"),
    [
        ("one two four", 500.0, "two"),
        ("one two four", 2000.0, "four"),
        ("one two four", 100.0, None),
        ("failing one two four", 500.0, "two"),
        ("unknown", 500.0, None),
        # The fastest, not the widest.
        ("two wider", 500.0, "two"),
        ("wider", 500.0, "wider"),
        ("wider", 499.9, None),
    ],
)
def test_the_most_queries_a_second_that_still_meet_the_target(names, target, best):
    assert within_target([LEVELS[name] for name in names.split()], target) == LEVELS.get(best)


def test_nothing_to_ask_or_a_cancel_measures_nothing():
    assert measure(Slots(1), [], (1, 2), 1.0) == ()
    assert measure(Slots(1), REQUESTS, (1, 2), 5.0, cancelled=lambda: True) == ()


def test_a_run_measures_the_levels_it_is_asked_for_with_nothing_from_a_cache(
    make_dataset, workspace
):
    dataset = make_dataset(queries=4)

    class Kept(Slots):
        def fingerprint(self):
            return "slots"

    def answer(request):
        return Scored(np.arange(float(len(request.doc_ids))))

    timing = Timing(concurrency=(1, 2), seconds=1)
    rerank(dataset, Kept(9, answer), cache=workspace.score_cache)
    reranker = Kept(9, answer)
    kept = []
    run = rerank(
        dataset, reranker, cache=workspace.score_cache, timing=timing, on_batch=kept.extend
    )
    assert run.measured.cached_pairs == 20
    one, two = run.measured.throughput
    assert (one.in_flight, two.in_flight) == (1, 2)
    assert one.queries >= 10
    assert one.p50_ms == pytest.approx(20.0)
    workspace.save_dataset(dataset)
    workspace.save_run(run)
    assert workspace.run(run.id).measured.throughput == (one, two)
    # A kill after the last query: the levels are still to be measured, and nothing else.
    again = Kept(9, answer)
    told = []
    resumed = rerank(
        dataset,
        again,
        done=kept,
        timing=Timing(concurrency=(2,), seconds=1),
        on_timing=lambda: told.append(again.most),
    )
    # Only the warm-up came before, one request at a time.
    assert told == [1]
    assert [level.in_flight for level in resumed.measured.throughput] == [2]
    with pytest.raises(Cancelled):
        rerank(dataset, again, done=kept, timing=timing, cancelled=lambda: again.most > 0)


@pytest.mark.parametrize(("queries", "known"), [(5, True), (4, False)])
def test_five_answers_are_enough_for_a_95th_percentile(queries, known):
    """A client sends one every 20 ms, as long as the time is not up."""
    (found,) = levels(Slots(9), REQUESTS, (1,), 0.02 * queries - 0.01)
    assert found.queries == queries
    assert bool(np.isfinite(found.p95_ms)) == known
    assert found.p50_ms == pytest.approx(20.0)


@pytest.mark.parametrize("good", [0, 2])
def test_a_reranker_that_goes_before_or_while_it_is_measured_ends_it(good):
    """Two are asked before the clock starts."""
    asked = []

    def answer(request):
        asked.append(request.query_id)
        if len(asked) > good:
            raise UnavailableError("No model any more.")
        return Scored(np.array([1.0, 2.0]))

    with pytest.raises(UnavailableError, match="No model any more"):
        levels(Slots(1, answer), REQUESTS, (1,), 0.2)
    assert len(asked) == good + 1
