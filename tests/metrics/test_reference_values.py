"""Values worked out by hand or published, one by one."""

import pytest


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


def test_graded_average_precision_goes_by_the_top_grade_of_the_whole_set(evaluation_of, value_of):
    of_two_grades = evaluation_of({"q": [1, 0, 1], "other": [2]}, ["map_graded", "map_graded_norm"])
    assert of_two_grades.values[0] == pytest.approx([5 / 12, 5 / 6])
    assert value_of("map_graded", [1, 0, 1]) == pytest.approx(5 / 6)
    assert value_of("map_graded", [1, 0, 1], err_top_label=2) == pytest.approx(5 / 12)
    assert value_of("map_graded", [0, 0], no_relevant="count") == 0.0


def test_err_of_a_published_kind_of_list(value_of):
    # s = 7/8, 1/8, 3/8 for the labels 3, 1, 2 with 3 the highest.
    expected = 7 / 8 + (1 / 8) * (1 / 8) / 2 + (1 / 8) * (7 / 8) * (3 / 8) / 3
    assert value_of("err", [3, 1, 2, 0]) == pytest.approx(expected, abs=1e-12)


def test_the_wrong_2002_form_that_was_published_is_not_what_we_give(value_of):
    assert abs(value_of("ndcg_jk", [3, 1, 2, 0, 0]) - 0.9203) > 0.01


def test_mrr_over_three_queries(evaluation_of):
    lists = {"a": [0, 0, 1], "b": [1, 0], "c": [0, 1]}
    assert evaluation_of(lists, ["mrr"]).mean("mrr") == pytest.approx(0.61111, abs=5e-6)


def test_hit_at_3_of_two_of_three_queries(evaluation_of):
    lists = {"a": [0, 0, 1], "b": [1, 0], "c": [0, 0, 0, 1]}
    assert evaluation_of(lists, ["hit@3"]).mean("hit@3") == pytest.approx(2 / 3, abs=1e-12)
