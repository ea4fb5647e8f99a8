"""The loop that sends questions: batches of limited size, however the loop ends."""

import itertools
import threading

import pytest

from rankdash.core.base.errors import SettingError
from rankdash.core.data.ranking import Ranking
from rankdash.core.runs.results import Usage
from rankdash.core.sampling.label_plan import pool_of
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.judges import MOST_UNKEPT
from rankdash.features.judge.asking import Question, ask, estimate, pairs_of, seconds_of
from rankdash.features.judge.judge import Judge
from tests.results import results


def questions(count):
    return [Question(f"q{n // 10}", f"d{n}", "a refund", f"refund {n}") for n in range(count)]


def taken(batches):
    return sorted(int(pair.doc_id[1:]) for batch in batches for pair in batch)


@pytest.fixture
def asked(settings, server):
    """Send `count` questions; return the batches. reply: function called for each answer."""

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

    # If the clock does not move, batches depend only on their size.
    batches = asked(350, reply, 8, keep=keep, clock=lambda: 0.0)
    assert taken(batches) == list(range(350))
    assert len(batches) >= 4
    assert most[0] <= MOST_UNKEPT
    assert server.most_at_once > 1
    # With a running clock, batches are passed on early.
    ticks = itertools.count()
    batches = asked(12, clock=lambda: float(next(ticks)))
    assert (taken(batches), len(batches)) == (list(range(12)), 12)


def test_one_slow_answer_does_not_hold_up_the_others(asked, server):
    free = threading.Event()

    def reply(body):
        if "refund 0\n" in body["messages"][1]["content"]:
            assert free.wait(60)
        elif len(server.seen) >= 40:
            free.set()

    assert taken(asked(40, reply, 2)) == list(range(40))


def test_the_pairs_are_those_of_the_label_pool():
    lists = [("q1", ["a", "b", "c"], [3.0, 2, 1]), ("q2", ["d", "e", "a"], [3.0, 2, 1])]
    other = [("q1", ["c", "b", "a"], [3.0, 2, 1]), ("q2", ["d", "f", "a"], [3.0, 2, 1])]
    pool = pool_of({"x": Ranking.from_lists(lists), "y": Ranking.from_lists(other)}, 2)
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


def test_cost_and_time_before_are_as_approved(settings, tmp_path, server, approved):
    """Cached answers cost nothing, whether of whole pairs or of some of the repeats; another prompt
    is another question. A pair without a text is not sent."""
    store = Workspace(tmp_path / "workspace").score_cache
    twice = Judge({**settings, "repeats": 2, "per_minute": 120, "price_in": 1.0})
    once, thrice = (Judge({**settings, "repeats": n, "price_in": 1.0}) for n in (1, 3))
    every, thousand, blank = questions(30), questions(1000), Question("q", "d", "a", " ")

    def asked(judge, pairs):
        before, begun = len(server.seen), {}
        ask(judge, pairs, on_batch=lambda batch: None, on_begin=begun.update, cache=store)
        return len(server.seen) - before, sum(begun.values(), Usage())

    cases = {
        "a thousand pairs twice": lambda: estimate(twice, [*thousand, blank]),
        "each counted": lambda: twice.estimate([(pair.query, pair.document) for pair in thousand]),
        "no pair": lambda: estimate(twice, []),
        "seconds of 2000 calls": lambda: seconds_of(twice, 2000),
        "at one in two seconds": lambda: seconds_of(twice, 2000, 0.5),
        "without a limit": lambda: seconds_of(Judge(settings), 10),
        "thirty pairs": lambda: estimate(once, every, store),
        "ten are asked": lambda: asked(once, every[:10]),
        "the others": lambda: estimate(once, [*every, blank], store),
        "all three times": lambda: estimate(thrice, every, store),
        "what is left is asked": lambda: asked(thrice, every),
        "nothing is left": lambda: estimate(thrice, every, store),
        "another prompt": lambda: estimate(Judge({**settings, "guidelines": "x"}), every, store),
    }
    approved("runs/judging_costs", results(cases))
