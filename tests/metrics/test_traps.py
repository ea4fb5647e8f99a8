"""Mistakes found in other tools, one test each, numbered as in the guide to metrics."""

import numpy as np
import pandas as pd
import pytest

from rankdash.metrics import evaluate, judge
from rankdash.ranking.ranking import Ranking


def test_trap_01_ndcg_is_not_normalised_by_the_returned_list_only(value_of):
    assert value_of("ndcg", [1], unranked=[3]) == pytest.approx(1 / (3 + 1 / np.log2(3)))


def test_trap_02_ideal_is_cut_at_k(value_of):
    assert value_of("ndcg@1", [1, 1, 1]) == 1.0
    assert value_of("ndcg@2", [2, 1, 1, 1], unranked=[1]) == 1.0


@pytest.mark.parametrize("spec", ["ndcg@3", "ndcg_exp@3", "ndcg_jk@3"])
def test_trap_03_ndcg_is_never_above_1(value_of, spec):
    assert value_of(spec, [3, 3, 3, 1], unranked=[-1, -2]) == 1.0
    assert value_of(spec, [0.25, 3, -4, 2.5]) < 1.0


def test_trap_04_means_are_of_unrounded_values(evaluation_of):
    lists = {"a": [0, 0, 1], "b": [0, 0, 0, 0, 0, 0, 1]}
    assert evaluation_of(lists, ["mrr"]).mean("mrr") == (1 / 3 + 1 / 7) / 2


def test_trap_05_precision_divides_by_k_when_fewer_came_back(value_of):
    assert value_of("precision@10", [1, 1]) == 0.2


def test_trap_06_average_precision_divides_by_all_relevant_documents(value_of):
    assert value_of("map", [1, 0], unranked=[1, 1, 1]) == 0.25


def test_trap_07_mrr_at_10_is_cut_at_10(value_of):
    assert value_of("mrr@10", [0] * 10 + [1]) == 0.0
    assert value_of("mrr@11", [0] * 10 + [1]) == 1 / 11


def test_trap_08_a_sample_of_queries_is_not_averaged_over_all_labels(evaluation_of):
    lists = {"asked": [1, 0], "also": [0, 1], "failed": []}
    elsewhere = {f"not_asked_{n}": [1] for n in range(8)}
    evaluation = evaluation_of(
        lists, ["mrr"], unranked={**elsewhere, "failed": [1]}, only={"asked", "also", "failed"}
    )
    assert list(evaluation.query_ids) == ["asked", "also", "failed"]
    assert evaluation.mean("mrr") == (1 + 0.5 + 0) / 3
    assert evaluation.counts["queries"] == 3
    both = evaluation_of(lists, ["mrr"], unranked=elsewhere, queries="both")
    assert both.mean("mrr") == 0.75


def test_trap_09_recall_counts_documents_not_grades(value_of):
    assert value_of("recall@1", [3, 1, 1]) == 1 / 3


@pytest.mark.parametrize("state", ["failed", "skipped"])
def test_trap_10_a_failed_query_is_not_0(evaluation_of, state):
    evaluation = evaluation_of(
        {"good": [1]}, ["ndcg@10", "mrr", "judged@5"], {"bad": [1]}, left_out={"bad": state}
    )
    wide = evaluation.wide()
    assert wide.loc["bad", ["ndcg@10", "mrr", "judged@5"]].isna().all()
    assert wide.loc["bad", "state"] == state
    assert evaluation.mean("mrr") == 1.0
    assert evaluation.counts[state] == 1
    assert evaluation.counts["missing"] == 0


def test_trap_14_exponential_gain_has_its_own_name(value_of):
    labels = [1, 3, 2]
    assert value_of("ndcg", labels) == pytest.approx(
        (1 + 3 / np.log2(3) + 1) / (3 + 2 / np.log2(3) + 0.5)
    )
    assert value_of("ndcg_exp", labels) == pytest.approx(
        (1 + 7 / np.log2(3) + 1.5) / (7 + 3 / np.log2(3) + 0.5)
    )


def test_trap_23_labels_and_rankings_meet_by_id_not_by_place(tables):
    run, qrels = tables({"a": [1, 0, 0], "b": [0, 0, 1]})
    ranking = Ranking.from_columns(*run.iloc[::-1].to_numpy().T)
    evaluation = evaluate(judge(ranking, qrels.sort_values("label")), ["mrr"])
    assert dict(zip(evaluation.query_ids, evaluation.column("mrr"), strict=True)) == {
        "a": 1.0,
        "b": 1 / 3,
    }


def test_trap_24_half_a_grade_is_not_floored_to_0(value_of):
    assert value_of("ndcg", [0.5, 1]) == pytest.approx(
        (0.5 + 1 / np.log2(3)) / (1 + 0.5 / np.log2(3))
    )
    assert value_of("mrr", [0, 0.5], threshold=0.5) == 0.5


def test_list_shorter_than_k(value_of):
    assert value_of("ndcg@10", [1], unranked=[1]) == pytest.approx(1 / (1 + 1 / np.log2(3)))
    assert value_of("judged@10", [1, 0]) == 1.0
    assert value_of("recall@10", [1]) == 1.0


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


def test_shuffled_rows_and_a_list_stored_worst_first(tables):
    run, qrels = tables({"a": [0, 1, 2], "b": [3, 0, 1]})
    judged = judge(Ranking.from_columns(*run.to_numpy().T), qrels)
    expected = evaluate(judged, ["ndcg"]).wide()["ndcg"]
    for rows in (run.iloc[::-1], run.iloc[[3, 0, 5, 2, 4, 1]]):
        judged = judge(Ranking.from_columns(*rows.to_numpy().T), qrels)
        pd.testing.assert_series_equal(evaluate(judged, ["ndcg"]).wide()["ndcg"], expected)


def test_labels_of_100_and_of_2000_stay_finite(value_of):
    assert value_of("ndcg_exp", [0, 100]) == pytest.approx(1 / np.log2(3))
    assert value_of("ndcg_exp", [2000, 1999]) == 1.0
    assert value_of("err", [2000, 0]) == pytest.approx(1.0)
    assert value_of("err", [0, 2000]) == pytest.approx(0.5)
