"""The loop that asks: batches that never hold too much, whatever ends it."""

import itertools
import threading

import numpy as np
import pytest

from rankdash.analysis.labelling.label_pool import pool_of
from rankdash.errors import SettingError
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.judging.judge import Judge
from rankdash.rerankers.remote.estimates import Estimate
from rankdash.runs.judging.asking import Question, ask
from rankdash.runs.judging.wish import estimate, pairs_of, seconds_of
from rankdash.store import Workspace
from rankdash.store.jobs.judges import MOST_UNKEPT


def questions(count):
    return [Question(f"q{n // 10}", f"d{n}", "a refund", f"refund {n}") for n in range(count)]


def taken(batches):
    return sorted(int(pair.doc_id[1:]) for batch in batches for pair in batch)


@pytest.fixture
def asked(settings, server):
    """Ask so many questions; the batches that were handed on. reply: is called for each answer."""

    def asked(count, reply=lambda body: None, concurrency=1, keep=None, **how):
        batches = []
        server.reply = lambda body: reply(body) or ("So.\nGrade: 1", {})
        judge = Judge({**settings, "concurrency": concurrency})
        ask(
            judge,
            questions(count),
            on_batch=lambda batch: batches.append(batch) or (keep and keep(batch)),
            **how,
        )
        return batches

    return asked


def test_no_more_is_under_way_or_unkept_than_may_be_lost(asked, server):
    kept, most = [0], [0]

    def reply(body):
        with server.lock:
            most[0] = max(most[0], len(server.seen) - kept[0])

    def keep(batch):
        kept[0] += len(batch)

    # A clock that stands: batches come by their size alone.
    batches = asked(350, reply, 8, keep=keep, clock=lambda: 0.0)
    assert taken(batches) == list(range(350))
    assert len(batches) >= 4
    assert most[0] <= MOST_UNKEPT
    assert server.most_at_once > 1


def test_a_clock_that_runs_hands_on_early(asked):
    ticks = itertools.count()
    batches = asked(12, clock=lambda: float(next(ticks)))
    assert taken(batches) == list(range(12))
    assert len(batches) == 12


def test_one_slow_answer_does_not_hold_up_the_others(asked, server):
    free = threading.Event()

    def reply(body):
        if "refund 0\n" in body["messages"][1]["content"]:
            assert free.wait(60)
        elif len(server.seen) >= 40:
            free.set()

    assert taken(asked(40, reply, 2)) == list(range(40))


@pytest.fixture
def pool():
    lists = [("q1", ["a", "b", "c"], [3.0, 2, 1]), ("q2", ["d", "e", "a"], [3.0, 2, 1])]
    other = [("q1", ["c", "b", "a"], [3.0, 2, 1]), ("q2", ["d", "f", "a"], [3.0, 2, 1])]
    return pool_of({"x": Ranking.from_lists(lists), "y": Ranking.from_lists(other)}, 2)


def test_the_pairs_are_those_of_the_label_pool(pool):
    every = {("q1", "a"), ("q1", "b"), ("q1", "c"), ("q2", "d"), ("q2", "e"), ("q2", "f")}
    assert set(pairs_of(pool)) == every
    assert len(pairs_of(pool)) == 6
    drawn = {seed: pairs_of(pool, 1, seed) for seed in range(8)}
    assert {tuple(sorted(pairs)) for pairs in drawn.values()} == {
        tuple(sorted(pair for pair in every if pair[0] == query)) for query in ("q1", "q2")
    }
    assert set(pairs_of(pool, 2)) == every
    with pytest.raises(SettingError, match="at least 1"):
        pairs_of(pool, 0)


def test_a_sample_takes_queries_with_human_labels_first():
    lists = [(f"q{n}", ["a", "b"], [2.0, 1.0]) for n in range(30)]
    pool = pool_of({"x": Ranking.from_lists(lists)}, 2, fewest=1)
    labelled = {"q3", "q17", "q28", "of another set"}

    def queries(size, seed=0):
        return {query for query, _ in pairs_of(pool, size, seed, labelled)}

    for seed in range(5):
        assert queries(3, seed) == {"q3", "q17", "q28"}
        assert queries(2, seed) < labelled
        assert len(queries(10, seed)) == 10 and queries(3) < queries(10, seed)
        assert len(pairs_of(pool, 10, seed, labelled)) == 20
    assert len({frozenset(queries(10, seed)) for seed in range(5)}) > 1
    assert len({frozenset(queries(2, seed)) for seed in range(9)}) > 1


def test_cost_and_time_before(settings):
    judge = Judge({**settings, "repeats": 2, "per_minute": 120, "price_in": 1.0})
    asked = [*questions(1000), Question("q", "d", "a", " ")]
    found, answered = estimate(judge, asked)
    assert answered == 0
    assert found.calls == 2000
    whole = judge.estimate([(pair.query, pair.document) for pair in questions(1000)])
    assert found.tokens_in == pytest.approx(whole.tokens_in, rel=0.01)
    assert found.dollars == pytest.approx(found.tokens_in * 1e-6)
    assert seconds_of(judge, 2000) == 1000
    assert seconds_of(judge, 2000, 0.5) == 4000
    assert np.isnan(seconds_of(Judge(settings), 10))
    assert estimate(judge, [])[0].calls == 0


def test_what_is_answered_costs_nothing_before(settings, tmp_path, server):
    """Whatever part of it: whole pairs, and some of the repeats."""
    store = Workspace(tmp_path / "workspace").score_cache
    once, thrice = (Judge({**settings, "repeats": n, "price_in": 1.0}) for n in (1, 3))
    every = questions(30)
    whole, _ = estimate(once, every, store)
    assert whole.calls == 30
    ask(once, every[:10], on_batch=lambda batch: None, cache=store)
    assert estimate(once, every, store)[1] == 10
    left, answered = estimate(once, [*every, Question("q", "d", "a", " ")], store)
    assert (left.calls, answered) == (20, 10)
    assert left.tokens_in == pytest.approx(whole.tokens_in * 2 / 3, rel=0.05)
    assert left.dollars == pytest.approx(left.tokens_in * 1e-6)
    more, answered = estimate(thrice, every, store)
    assert (more.calls, answered) == (80, 0)
    before = len(server.seen)
    ask(thrice, every, on_batch=lambda batch: None, cache=store)
    assert len(server.seen) - before == 80
    assert estimate(thrice, every, store) == (Estimate(0, 0.0), 30)
    # Another prompt is another question.
    other = Judge({**settings, "guidelines": "Be strict."})
    assert estimate(other, every, store)[1] == 0
