from collections import Counter

import numpy as np
import pandas as pd
import pytest

from rankdash.core.sampling.label_plan import Additive, LabelPlan, pool_of
from tests.lists import ranking
from tests.results import result, results

METRIC = Additive.of("dcg@3", top=1)


def _pool(depth: int = 3):
    return pool_of({"old": ranking(q="abcd", r="ef"), "new": ranking(r="fg", q="bae")}, depth)


def told(pool) -> tuple[object, ...]:
    shown = zip(pool.query_ids[pool.query], pool.doc_ids, pool.ranks.T, strict=True)
    return (
        [f"{query}{doc} {result(ranks)}" for query, doc, ranks in shown],
        "excluded",
        pool.excluded,
    )


def drawn(pool, metric=METRIC, **more) -> str:
    plan = LabelPlan.make(pool, metric, seed=3, **more)
    pairs = zip(pool.query_ids[pool.query[plan.order]], pool.doc_ids[plan.order], strict=True)
    return " ".join(sorted(query + doc for query, doc in pairs))


LABELLED = pd.DataFrame(
    {"query_id": ["r", "q", "r"], "doc_id": ["e", "e", "zz"], "label": [2.0, 1.0, 3.0]}
)
AB = ranking(q="ab")
CASES = {
    "within the depth": lambda: told(_pool()),
    "at depth 1": lambda: told(_pool(depth=1)),
    "queries that a system lacks": lambda: told(
        pool_of({"old": ranking(q="ab", only_old="a"), "new": ranking(new="c", q="ba")}, 2)
    ),
    "labels by both ids": lambda: _pool().aligned(LABELLED),
    "no ranking": lambda: pool_of({}, 10),
    "one ranking": lambda: pool_of({"old": AB}, 10),
    "no query in common": lambda: pool_of({"old": AB, "new": ranking(r="ab")}, 10),
    "equal within the cutoff": lambda: drawn(
        pool_of({"old": ranking(q="abc"), "new": ranking(q="abd")}, 3),
        Additive.of("dcg@2", top=1),
    ),
    "all that weigh anything": lambda: drawn(_pool()),
    # Precision does not depend on ranks within the cutoff.
    "all that weigh anything in precision": lambda: drawn(
        _pool(), Additive.of("precision@3", top=1)
    ),
    "not what is known": lambda: drawn(
        _pool(), known=np.where(_pool().doc_ids == "e", 1.0, np.nan)
    ),
}


def test_what_is_pooled_and_what_of_it_is_drawn(approved) -> None:
    approved("analysis/draws", results(CASES))
    orders = [LabelPlan.make(_pool(), METRIC, seed=seed).order.tolist() for seed in (5, 5, 6, 7)]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) > 1


def test_pairs_are_drawn_as_often_as_they_say() -> None:
    """The first two pairs of 2,000 plans, against the probabilities that the plans state."""
    pool = _pool()
    plans = [LabelPlan.make(pool, METRIC, seed=seed) for seed in range(2_000)]
    first = Counter(int(plan.order[0]) for plan in plans)
    size = plans[0].reach / plans[0].reach.sum()
    for pair, share in enumerate(size):
        assert first[pair] / 2_000 == pytest.approx(share, abs=0.04)
    assert plans[0].probabilities[0] == pytest.approx(size[plans[0].order[0]])
    most = first.most_common(1)[0][0]
    after = [plan for plan in plans if plan.order[0] == most]
    second = Counter(int(plan.order[1]) for plan in after)
    for plan in after[:20]:
        assert second[int(plan.order[1])] / len(after) == pytest.approx(
            plan.probabilities[1], abs=0.09
        )
    assert all(plan.probabilities[-1] == pytest.approx(1) for plan in plans[:50])


def test_several_systems_are_drawn_for_by_the_sum_of_what_they_weigh() -> None:
    rankings = {"a": ranking(q="abc"), "b": ranking(q="bac"), "c": ranking(q="cab")}
    pool = pool_of(rankings, 3)
    plan = LabelPlan.make(pool, METRIC, seed=1)
    assert plan.contrasts == ((0, 1), (0, 2))
    assert [plan.names(each) for each in (0, 1)] == [("a", "b"), ("a", "c")]
    assert plan.reach == pytest.approx(np.abs(plan.weights).sum(axis=0))
    assert plan.alpha == pytest.approx(0.025)
    every = LabelPlan.make(pool, METRIC, seed=1, contrasts=[(1, 2)])
    assert every.weights[0] == pytest.approx(plan.weights[1] - plan.weights[0])


# Six queries of four documents each, reversed in the second ranking.
SIX = {f"q{number}": "abcd" for number in range(6)}
WIDE = pool_of(
    {"old": ranking(**SIX), "new": ranking(**{query: each[::-1] for query, each in SIX.items()})}, 3
)


def test_of_a_random_sample_every_pair_is_equally_likely() -> None:
    plans = [LabelPlan.make(WIDE, METRIC, seed=seed, mode="random") for seed in range(2_000)]
    size = len(plans[0].order)
    first = Counter(int(plan.order[0]) for plan in plans)
    assert set(first) == set(plans[0].order.tolist())
    for count in first.values():
        assert count / len(plans) == pytest.approx(1 / size, abs=0.02)
    assert plans[0].probabilities == pytest.approx(1 / (size - np.arange(size)))


def test_a_query_is_drawn_with_all_of_its_pairs() -> None:
    plans = [LabelPlan.make(WIDE, METRIC, seed=seed, mode="query") for seed in range(1_000)]
    for plan in plans[:20]:
        owners = WIDE.query[plan.order]
        assert [len(set(owners[plan.draw == draw])) for draw in range(6)] == [1] * 6
        assert len(set(owners[np.flatnonzero(np.diff(plan.draw, prepend=-1))])) == 6
        # Only the last pair remains.
        assert plan.probabilities[-1] == 1
        assert plan.probabilities[0] == pytest.approx(1 / 6)
    first = Counter(int(WIDE.query[plan.order[0]]) for plan in plans)
    assert len(first) == 6
    assert all(count / 1_000 == pytest.approx(1 / 6, abs=0.05) for count in first.values())
    # The order within a query is random too: it does not disclose the rank.
    documents = Counter(WIDE.doc_ids[plan.order[0]] for plan in plans)
    assert max(documents.values()) < 400


@pytest.mark.parametrize("mode", ["random", "query"])
def test_what_is_known_is_not_drawn_in_any_mode(mode) -> None:
    known = np.where(WIDE.query == 2, 1.0, np.nan)
    known[np.flatnonzero(WIDE.query == 3)[0]] = 0.0
    for of in (known, np.ones(len(WIDE))):
        plan = LabelPlan.make(WIDE, METRIC, seed=1, known=of, mode=mode)
        assert not (~np.isnan(of))[plan.order].any()
        assert len(plan.order) == len(plan.probabilities) == len(plan.draw)
