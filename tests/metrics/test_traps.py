"""Values computed by hand or published; and mistakes found in other tools, numbered as in the guide
to metrics."""

from math import log2

import numpy as np
import pytest

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import evaluate, judge


@pytest.mark.parametrize(
    ("spec", "labels", "value"),
    [
        ("ndcg", [3, 1, 2, 0, 0], 0.97250449),
        ("ndcg_exp", [3, 1, 2, 0, 0], 0.97212122),
        ("ndcg_jk", [3, 1, 2, 0, 0], 0.9345),
        ("ndcg@5", [3, 2, 3, 0, 1], 0.97236428),
        ("ndcg_exp@5", [3, 2, 3, 0, 1], 0.95747847),
        ("ndcg_jk@5", [3, 2, 3, 0, 1], 0.9435),
        ("dcg", [3, 1, 2, 0, 0], 4.631),
        ("dcg_exp", [3, 1, 2, 0, 0], 9.131),
        ("dcg@2", [3, 1, 2, 0, 0], 3.631),
        ("map", [1, 0, 1, 0, 1], 0.75556),
        ("recall@5", [1, 0, 1, 0, 1, 0, 0, 1, 0, 0], 0.75),
        ("precision@5", [1, 0, 1, 0, 1, 0, 0, 1, 0, 0], 0.60),
        ("map_graded", [3, 0, 2, 0, 1], 0.548),
        ("map_graded_norm", [3, 0, 2, 0, 1], 0.822),
        ("map_graded", [3, 2, 1], 0.667),
        ("map_graded", [1, 2, 3], 0.667),
        ("map_graded_norm", [1, 2, 3], 1.0),
        ("rbp", [1, 0, 1], 0.328),
        ("rbp(0.5)@2", [1, 1, 1], 0.75),
        ("f1@2", [1, 0, 1], 0.5),
        ("r_precision", [1, 0, 1], 0.5),
        ("bpref", [0, 1, 0, 1], 0.25),
    ],
)
def test_published_value(value_of, spec, labels, value):
    digits = len(str(value).partition(".")[2])
    assert value_of(spec, labels) == pytest.approx(value, abs=0.5001 * 10**-digits)


TRAPS = {
    "01 NDCG is not normalised by the returned list only": [
        ("ndcg", [1], [3], 1 / (3 + 1 / log2(3))),
    ],
    "02 the ideal is cut at k": [
        ("ndcg@1", [1, 1, 1], [], 1.0),
        ("ndcg@2", [2, 1, 1, 1], [1], 1.0),
    ],
    "03 NDCG is never above 1": [
        (f"{name}@3", [3, 3, 3, 1], [-1, -2], 1.0) for name in ("ndcg", "ndcg_exp", "ndcg_jk")
    ],
    "05 precision divides by k when fewer came back": [("precision@10", [1, 1], [], 0.2)],
    "06 average precision divides by all relevant documents": [("map", [1, 0], [1, 1, 1], 0.25)],
    "07 MRR at 10 is cut at 10": [
        ("mrr@10", [0] * 10 + [1], [], 0.0),
        ("mrr@11", [0] * 10 + [1], [], 1 / 11),
    ],
    "09 recall counts documents, not grades": [("recall@1", [3, 1, 1], [], 1 / 3)],
    "14 exponential gain has its own name": [
        ("ndcg", [1, 3, 2], [], (1 + 3 / log2(3) + 1) / (3 + 2 / log2(3) + 0.5)),
        ("ndcg_exp", [1, 3, 2], [], (1 + 7 / log2(3) + 1.5) / (7 + 3 / log2(3) + 0.5)),
    ],
    "24 half a grade is not floored to 0": [
        ("ndcg", [0.5, 1], [], (0.5 + 1 / log2(3)) / (1 + 0.5 / log2(3))),
    ],
    "a list shorter than k": [
        ("ndcg@10", [1], [1], 1 / (1 + 1 / log2(3))),
        ("judged@10", [1, 0], [], 1.0),
        ("recall@10", [1], [], 1.0),
    ],
    "labels of 100 and of 2000 stay finite": [
        ("ndcg_exp", [0, 100], [], 1 / log2(3)),
        ("ndcg_exp", [2000, 1999], [], 1.0),
        ("err", [2000, 0], [], 1.0),
        ("err", [0, 2000], [], 0.5),
        # 2^1024 is beyond a double.
        ("dcg_exp", [1023], [], 2.0**1023),
        ("dcg_exp", [1024], [], np.nan),
        ("ndcg_exp", [1024], [], 1.0),
    ],
    # s = 7/8, 1/8, 3/8 for the labels 3, 1, 2 with 3 the highest.
    "ERR": [("err", [3, 1, 2, 0], [], 7 / 8 + 1 / 128 + 7 / 64 * 3 / 8 / 3)],
    "graded average precision": [("map_graded", [1, 0, 1], [], 5 / 6)],
    "a whole list": [("judged", [*[None] * 1500, *[1] * 500], [], 0.25)],
}


@pytest.mark.parametrize("trap", TRAPS)
def test_trap(value_of, trap):
    for spec, labels, unranked, value in TRAPS[trap]:
        expected = pytest.approx(value, rel=1e-12, nan_ok=True)
        assert value_of(spec, labels, unranked) == expected, (spec, labels)


def test_trap_04_means_are_of_unrounded_values(evaluation_of):
    lists = {"a": [0, 0, 1], "b": [0, 0, 0, 0, 0, 0, 1]}
    assert evaluation_of(lists, ["mrr"]).mean("mrr") == (1 / 3 + 1 / 7) / 2


def test_skewed_list_lengths(tables):
    rng = np.random.default_rng(0)
    lengths = [1, 2, 3, 5000, 7, 7, 8, 120, 1, 900]
    lists = {f"q{n}": list(rng.integers(0, 3, size)) for n, size in enumerate(lengths)}
    run, qrels = tables(lists)
    run = run.sample(frac=1, random_state=1)
    judged = judge(Ranking.from_columns(*run.to_numpy().T), qrels)
    together = evaluate(judged, ["ndcg", "map"]).wide()
    for query, labels in lists.items():
        one_run, one_qrels = tables({query: labels})
        alone = evaluate(
            judge(Ranking.from_columns(*one_run.to_numpy().T), one_qrels), ["ndcg", "map"]
        )
        np.testing.assert_allclose(
            together.loc[query, ["ndcg", "map"]].astype(float), alone.values[0], atol=1e-12
        )
