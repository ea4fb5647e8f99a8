"""Throughput with several clients: measurement, time limit, and warnings about shared resources."""

import heapq
import math
import threading

import numpy as np
import pytest

from rankdash.core.base.errors import UnavailableError
from rankdash.core.data.measured import Level
from rankdash.core.rerankers import Request, Scored
from rankdash.core.runs import concurrency
from rankdash.core.runs.concurrency import measure, within_target
from rankdash.core.runs.plan import Timing
from rankdash.core.runs.runner import Cancelled, rerank
from tests.results import results, several, shown

REQUESTS = [Request(f"q{n}", f"ask {n}", ["a", "b"], ["one", "two"]) for n in range(20)]


class Clock:
    """A clock that moves only when every client of a level waits for it."""

    def __init__(self):
        self.now = 0.0
        self._change = threading.Condition()
        self._waits = {}
        self.expect(0)

    def expect(self, clients):
        """Stop the clock until `clients` clients have begun."""
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
                # Clients that end do not notify.
                self._change.wait(0.01)
            del self._waits[threading.current_thread()]

    def _pass(self):
        alive = sum(each.name.startswith("client-") for each in threading.enumerate())
        if len(self._begun) >= self._clients and len(self._waits) == alive:
            self.now = max(self.now, min(self._waits.values()))
            self._change.notify_all()


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The simulated clock of the measurements."""
    made = Clock()
    for name in ("perf_counter", "process_time"):
        monkeypatch.setattr(concurrency.time, name, lambda: made.now)
    monkeypatch.setattr(Slots, "clock", made)
    return made


class Slots:
    """A reranker that answers in 20 ms, one request per slot; other requests wait."""

    name = "slots"
    clock = Clock()

    def __init__(self, slots, answer=None):
        self.settings = {}
        self._free = [0.0] * slots
        self._answer = answer or good
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
            # A heap: the first item is the slot that is free first.
            ready = max(self._free[0], self.clock.now) + 0.02
            heapq.heapreplace(self._free, ready)
        self.clock.wait(ready)
        with self._lock:
            self.now -= 1
        return self._answer(request)


def levels(reranker, requests, clients, seconds):
    """Return the levels of `measure`, with clients that begin together."""
    found = []
    for count in clients:
        reranker.clock.expect(count)
        found += measure(reranker, requests, (count,), seconds)
    return found


def good(request):
    return Scored(np.array([1.0, 2.0]))


def faulty(request):
    """Answer some queries with faults: an answer counts with all scores and without an error."""
    faults = {
        "q1": lambda: Scored.failed(2, "HTTP 429"),
        "q2": lambda: 1 / 0,
        "q3": lambda: Scored(np.array([1.0, np.nan])),
        "q4": lambda: Scored(np.array([1.0, 2.0]), error="too late"),
    }
    return faults.get(request.query_id, lambda: good(request))()


def embedding(fresh):
    """Return a function that takes 0.3 s more for the first request of these queries."""
    left = set(fresh.split())

    def answer(request):
        seconds = 0.3 if request.query_id in left else 0.0
        left.discard(request.query_id)
        Slots.clock.wait(Slots.clock.now + seconds)
        return Scored(np.array([1.0, 2.0]), index_seconds=seconds)

    return answer


# Slots, answering function, requests, levels of clients, seconds.
MEASURED = {
    "clients are under way at once": (100, good, REQUESTS, (1, 4), 0.41),
    "trap 17: clients queue": (1, good, REQUESTS, (1, 4), 0.41),
    "failures are no throughput": (1, faulty, REQUESTS[:5], (1,), 0.19),
    "all fail": (1, faulty, REQUESTS[1:5], (1,), 0.09),
    # If the first or the last request embeds documents, all requests are sent once beforehand.
    "embedding one is in no latency": (9, embedding("q1"), REQUESTS[:3], (1,), 0.51),
    "nor embedding all": (9, embedding("q0 q1 q2"), REQUESTS[:3], (1,), 0.51),
    "five answers are enough for a 95th percentile": (9, good, REQUESTS, (1,), 0.09),
    "four are not": (9, good, REQUESTS, (1,), 0.07),
    "nothing to ask": (1, good, [], (1, 2), 1.0),
}  # fmt: skip
# Clients → queries per second, p95 in ms, failures.
LEVELS = {"one": (1, 2.0, 300.0), "two": (2, 3.5, 450.0), "four": (4, 4.0, 900.0)}
LEVELS |= {"wider": (4, 3.0, 500.0), "failing": (8, 9.0, 100.0, 3), "unknown": (1, 0.0, math.nan)}
# The level with the highest throughput that meets the target, not with the most clients.
TARGETS = [
    *(("one two four", target) for target in (500.0, 2000.0, 100.0)),
    *(("failing one two four", 500.0), ("unknown", 500.0), ("two wider", 500.0)),
    *(("wider", 500.0), ("wider", 499.9)),
]


def test_levels_of_clients_are_as_approved(approved):
    cases = {}
    for name, (slots, answer, requests, clients, seconds) in MEASURED.items():
        reranker = Slots(slots, answer)
        found = levels(reranker, requests, clients, seconds)
        asked = len(set(reranker.seen))
        cases[name] = f"{asked} queries, {reranker.most} at once\n" + "\n".join(map(shown, found))

    def best(names, target):
        made = {name: level(*LEVELS[name]) for name in names.split()}
        found = within_target(list(made.values()), target)
        return next((name for name in made if made[name] == found), None)

    def level(clients, rate, p95, failed=0):
        return Level(clients, 5.0, 100, failed, p95 / 2, p95, rate, rate * 50, 1.0)

    cases |= several("of {0} within {1} ms", best, TARGETS)
    approved("runs/levels", results(cases))
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
    # A kill after the last query: only the levels are measured after the resumption.
    again = Kept(9, answer)
    told = []
    resumed = rerank(
        dataset,
        again,
        done=kept,
        timing=Timing(concurrency=(2,), seconds=1),
        on_timing=lambda: told.append(again.most),
    )
    # Before the levels there was only the warm-up, one request at a time.
    assert told == [1]
    assert [level.in_flight for level in resumed.measured.throughput] == [2]
    with pytest.raises(Cancelled):
        rerank(dataset, again, done=kept, timing=timing, cancelled=lambda: again.most > 0)


@pytest.mark.parametrize("good", [0, 2])
def test_a_reranker_that_goes_before_or_while_it_is_measured_ends_it(good):
    """Two requests are sent before the clock starts."""
    asked = []

    def answer(request):
        asked.append(request.query_id)
        if len(asked) > good:
            raise UnavailableError("No model any more.")
        return Scored(np.array([1.0, 2.0]))

    with pytest.raises(UnavailableError, match="No model any more"):
        levels(Slots(1, answer), REQUESTS, (1,), 0.2)
    assert len(asked) == good + 1
