"""Labelling plans that are recognised from a file of labels, without the plan."""

import numpy as np
import pandas as pd
import pytest

from rankdash.core.data.ranking import Ranking
from rankdash.core.sampling.estimate import estimate
from rankdash.core.sampling.label_plan import (
    Additive,
    Answered,
    LabelPlan,
    labels_table,
    no_answers,
    pool_of,
)
from rankdash.core.sampling.status import status_of_sampled
from tests.lists import ranking

QUERIES, DOCS = 30, 8
RNG = np.random.default_rng(12)
LABELS = {
    (f"q{query}", f"d{doc}"): float(RNG.integers(0, 4)) * (RNG.random() < 0.6)
    for query in range(QUERIES)
    for doc in range(DOCS)
}


def _ranking(seed: int) -> Ranking:
    order = np.random.default_rng(seed)
    return ranking(
        **{f"q{query}": [f"d{doc}" for doc in order.permutation(DOCS)] for query in range(QUERIES)}
    )


SYSTEMS = {"old": _ranking(1), "new": _ranking(2), "third": _ranking(3)}


def _plan(names, spec="dcg@5", **settings) -> LabelPlan:
    metric = Additive.of(spec, top=3)
    pool = pool_of({name: SYSTEMS[name] for name in names}, metric.k)
    return LabelPlan.make(pool, metric, seed=4, **settings)


def _labelled(plan: LabelPlan, places) -> pd.DataFrame:
    """Return the file's table after the pairs at these places of the order were labelled."""
    pairs = plan.order[places]
    ids = zip(plan.pool.query_ids[plan.pool.query[pairs]], plan.pool.doc_ids[pairs], strict=True)
    rows = [(*pair, LABELS[pair], "ann", "") for pair in ids]
    table = pd.DataFrame(rows, columns=["query_id", "doc_id", "label", "rater", "time"])
    answers = Answered.of(plan.pool, pd.concat([no_answers(), table]))
    return labels_table(plan, answers).astype({"label": float})


def _told(names, table, specs=("dcg@5",), level=0.95):
    rankings = {name: SYSTEMS[name] for name in names}
    return status_of_sampled(rankings, table, specs, threshold=1.0, level=level)


def _same(found, wanted) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        for name in ("baseline", "challenger", "metric", "state", "labels", "waiting", "known"):
            assert getattr(one, name) == getattr(other, name), name
        for name in ("difference", "low", "high", "like_these_low"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), nan_ok=True)


@pytest.mark.parametrize("mode", ["weight", "random", "query"])
@pytest.mark.parametrize(("spec", "places"), [
    ("dcg@5", np.r_[np.arange(150), np.arange(155, 160)]), ("precision@3", np.arange(24)),
    ("rbp@5", np.arange(120)), ("dcg@5", None),
])  # fmt: skip
def test_the_estimate_is_that_of_the_plan(mode, spec, places) -> None:
    """Also if labels of later draws wait, or if all are there."""
    plan = _plan(["old", "new"], spec, mode=mode)
    table = _labelled(plan, slice(None) if places is None else places)
    found = _told(["old", "new"], table, (spec,))
    # In precision all pairs with a weight have the same weight.
    assert found.mode == mode or (mode == "random" and spec == "precision@3")
    assert (found.estimates[0].waiting >= 5) == (places is not None and len(places) == 155)
    _same(found.estimates, estimate(plan, plan.pool.aligned(table)))


def test_labels_that_were_there_before_count_in_full() -> None:
    bare = _plan(["old", "new"])
    ids = zip(bare.pool.query_ids[bare.pool.query], bare.pool.doc_ids, strict=True)
    every = np.array([LABELS[pair] for pair in ids])
    known = np.where(np.arange(len(bare.pool)) % 3, np.nan, every)
    plan = _plan(["old", "new"], known=known)
    table = _labelled(plan, np.arange(60))
    assert table["draw"].isna().sum() == (~np.isnan(known)).sum()
    (wanted,) = estimate(plan, plan.pool.aligned(table))
    assert wanted.known > 0
    _same(_told(["old", "new"], table).estimates, [wanted])


@pytest.mark.parametrize("asked", ["ndcg@5", "dcg@5", "map, ndcg@5", "dcg@4", "ndcg@8"])
def test_the_metric_is_told_from_the_probabilities(asked) -> None:
    plan = _plan(["old", "new"], "precision@5")
    table = _labelled(plan, np.arange(60))
    (found,) = _told(["old", "new"], table, asked.split(", ")).estimates
    assert found.metric == "precision@5"


def test_the_baseline_may_be_either() -> None:
    plan = _plan(["old", "new"])
    table = _labelled(plan, np.arange(120))
    (one,), (other,) = (_told(names, table).estimates for names in (["old", "new"], ["new", "old"]))
    assert one.difference == pytest.approx(-other.difference)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_a_plan_for_several_is_told_with_all_of_them_and_one_for_two_among_several() -> None:
    names = ["old", "new", "third"]
    plan = _plan(names, contrasts=[(0, 1), (0, 2), (1, 2)])
    table = _labelled(plan, np.arange(120))
    _same(_told(names, table).estimates, estimate(plan, plan.pool.aligned(table)))
    # The probabilities of a plan for two of them are different.
    assert _told(["old", "new"], table) is None
    table = _labelled(_plan(["old", "third"]), np.arange(120))
    (found,) = _told(names, table).estimates
    assert (found.baseline, found.challenger) == ("old", "third")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda table: table.assign(probability=table["probability"] * 1.001),
        lambda table: table[table["draw"] != 1],
        lambda table: table.assign(draw=table["draw"].iloc[::-1].to_numpy()),
        lambda table: table.assign(doc_id=["elsewhere", *table["doc_id"].iloc[1:]]),
        lambda table: _labelled(_plan(["new", "third"]), np.arange(15)),
    ],
)
def test_what_is_no_plan_of_these_rankings_gives_no_estimate(spoil) -> None:
    table = _labelled(_plan(["old", "new"]), np.arange(15))
    assert _told(["old", "new"], spoil(table)) is None
