import io

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, evaluate, judge, match, parse_measure
from tests.lists import ranking


def labels_frame(*rows):
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])


def test_mean_of_a_measure_that_was_not_evaluated(evaluation_of):
    evaluation = evaluation_of({"a": [1]}, ["ndcg@10"])
    assert evaluation.mean("nDCG@10") == evaluation.mean(parse_measure("ndcg@10")) == 1.0
    with pytest.raises(SpecError, match=r"ndcg@5.*Evaluated: ndcg@10"):
        evaluation.mean("ndcg@5")


def test_nothing_to_evaluate():
    made = Ranking.from_columns(["q"], ["d"], [1.0])
    evaluation = evaluate(judge(made, labels_frame()), ["ndcg@10", "err", "judged@3"])
    assert evaluation.counts["queries"] == 0
    assert np.isnan(evaluation.mean("ndcg@10"))
    empty = Ranking.from_columns([], [], [])
    evaluation = evaluate(judge(empty, labels_frame(("q", "d", 1))), ["ndcg@10", "err"])
    assert evaluation.means() == {"ndcg@10": 0.0, "err": 0.0}


def test_the_join_is_the_same_for_few_and_for_many_labels(tables):
    rng = np.random.default_rng(2)
    lists = {f"q{n}": list(rng.integers(0, 3, 20)) for n in range(30)}
    run, qrels = tables(lists, {f"q{n}": [0] * 40 for n in range(30)})
    made = Ranking.from_columns(*run.to_numpy().T)
    many = evaluate(judge(made, qrels), ["ndcg", "map"])
    few = evaluate(judge(made, qrels[qrels["label"] > 0]), ["ndcg", "map"])
    assert len(qrels) > len(run) > (qrels["label"] > 0).sum()
    pd.testing.assert_frame_equal(many.wide().sort_index(), few.wide().sort_index())


def test_a_spec_may_say_the_threshold_that_is_in_force_and_no_other(evaluation_of):
    evaluation = evaluation_of({"a": [1, 2]}, ["map"], threshold=2.0)
    assert evaluation.mean("AP(rel=2)") == 0.5
    with pytest.raises(SpecError, match="are set: 2 and 1"):
        evaluation.mean("AP(rel=1)")


def test_a_notebook_shows_each_mean_and_the_queries_that_it_rests_on(evaluation_of):
    lists = {"a": [1, 0], "b": [0, 0, 1], "c": [0], "d": [None]}
    shown = evaluation_of(lists, ["mrr", "judged@10"], {"d": [1]})._repr_html_()
    (table,) = pd.read_html(io.StringIO(shown), index_col=0)
    assert table.to_numpy().tolist() == [[0.4444, 3], [0.75, 4]]
    assert list(table.index) == ["mrr", "judged@10"]
    nothing = evaluation_of({"c": [0]}, ["mrr"])._repr_html_()
    assert "<td>–</td>" in nothing and "<td>0</td>" in nothing


def test_a_label_of_a_document_that_no_list_holds_is_not_taken_for_another():
    """The last document of one query and the unknown one of the next are adjacent."""
    made = Ranking.from_lists([("a", ["x", "y"], [2.0, 1.0]), ("b", ["x", "y"], [2.0, 1.0])])
    judged = judge(made, labels_frame(("a", "x", 1), ("b", "unknown", 2), ("b", "y", 1)))
    assert judged.query.tolist() == [0, 1]
    assert judged.rank.tolist() == [1, 2]
    assert judged.label.tolist() == [1.0, 1.0]
    assert judged.judged_within(None).tolist() == [1, 1]
    assert judged.pool_label.tolist() == [1.0, 2.0, 1.0]


def test_labels_and_lists_in_partly_different_orders_meet():
    order = ["b", "c", "a", "d"]
    ranks = {"a": 1, "b": 2, "c": 3, "d": 4}
    lists = [(query, list("wxyz"), [4.0, 3.0, 2.0, 1.0]) for query in order]
    labels = [(query, "wxyz"[rank - 1], 1) for query, rank in ranks.items()]
    judged = judge(Ranking.from_lists(lists), labels_frame(*labels, ("e", "w", 1)))
    assert judged.query.tolist() == [0, 1, 2, 3]
    assert judged.rank.tolist() == [1, 2, 3, 4]
    assert judged.present.tolist() == [True] * 4 + [False]
    assert judged.lengths.tolist() == [4] * 4 + [0]
    assert evaluate(judged, ["mrr"]).column("mrr").tolist() == [1.0, 1 / 2, 1 / 3, 1 / 4, 0.0]


def test_an_empty_list_has_no_judged_share_and_scores_0_else():
    judged = judge(Ranking.from_lists([("q", [], [])]), labels_frame(("q", "d", 1)))
    evaluation = evaluate(judged, ["judged@3", "mrr", "judged"])
    assert judged.present.tolist() == [True]
    assert evaluation.frame()["state"].tolist() == ["undefined", "scored", "undefined"]
    assert evaluation.column("mrr").tolist() == [0.0]
    assert evaluation.states.tolist() == ["scored"]
    assert evaluation.counts["scored"] == 1


@pytest.mark.parametrize("negative", ["nonrelevant", "unjudged"])
@pytest.mark.parametrize("seed", range(4))
def test_pairs_that_are_found_once_take_one_set_of_labels_after_another(negative, seed):
    rng = np.random.default_rng(seed)
    lists = [(f"q{n}", [f"d{k}" for k in rng.permutation(9)], range(9, 0, -1)) for n in range(6)]
    made = Ranking.from_lists(lists)
    # Some queries and documents are in no list, and rows come in any order.
    pairs = pd.DataFrame(
        [(f"q{q}", f"d{d}") for q in range(1, 8) for d in range(12)], columns=["query_id", "doc_id"]
    ).sample(40, random_state=seed)
    conventions = Conventions(negative=negative)
    found = match(made, pairs, conventions)
    for _ in range(3):
        labels = rng.choice([-1.0, 0.0, 0.5, 1.0, 3.0], len(pairs))
        again = evaluate(found.judged(labels), ["ndcg@5", "map", "judged@4"], conventions)
        alone = evaluate(
            judge(made, pairs.assign(label=labels), conventions), again.measures, conventions
        )
        pd.testing.assert_frame_equal(again.wide(), alone.wide())
        # Labels belong to pairs by the order of rows.
        assert again.counts == alone.counts
        turned = match(made, pairs[::-1], conventions).judged(labels[::-1])
        other = evaluate(turned, again.measures, conventions).wide()
        pd.testing.assert_frame_equal(other.loc[again.query_ids], again.wide())


@pytest.mark.parametrize("labelled", [0.2, 0.9], ids=["few labels", "many labels"])
def test_a_join_that_was_evaluated_before_says_what_a_fresh_one_says(labelled):
    rng = np.random.default_rng(5)
    docs = [f"d{n}" for n in range(30)]
    lists = [(f"q{n}", list(rng.permutation(docs)), np.arange(30, 0, -1.0)) for n in range(12)]
    made = Ranking.from_lists(lists)
    labels = pd.DataFrame(
        [
            (query, doc, rng.choice([0.0, 1.0, 2.0, 3.0]))
            for query, own, _ in lists
            for doc in own
            if rng.random() < labelled
        ],
        columns=["query_id", "doc_id", "label"],
    )
    kept = judge(made, labels)
    rules = [Conventions(), Conventions(threshold=2.0), Conventions(judged_only=True)]
    specs = [
        f"{name}@{k}"
        for name in ("ndcg", "ndcg_exp", "map", "mrr", "recall", "err", "judged")
        for k in (3, 10)
    ]
    for each in (*rules, *rules[::-1]):
        for chosen in (specs, specs[::-1]):
            fresh = evaluate(judge(made, labels), chosen, each)
            np.testing.assert_array_equal(evaluate(kept, chosen, each).values, fresh.values)


def test_systems_under_the_same_labels_have_their_queries_in_common():
    frames = {"query_id": list("qr"), "text": "t"}, {"doc_id": list("ab"), "title": "", "text": "t"}
    labels = labels_frame(("q", "a", 1.0), ("r", "b", 1.0))
    shop = Dataset("shop", *map(pd.DataFrame, frames), labels, Ranking.from_lists([]))
    one, other = (evaluate(judge(ranking(q=doc), shop.labels), ["mrr"]) for doc in "ab")
    assert one.query_ids is other.query_ids
    assert list(one.query_ids) == ["q", "r"]


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_one_label_among_others_that_is_not_finite_is_refused(number):
    with pytest.raises(DataError, match="A label is not a finite number"):
        judge(
            Ranking.from_columns(["q"], ["d"], [1.0]),
            labels_frame(("q", "d", 1.0), ("q", "e", number)),
        )


def test_a_pair_that_is_labelled_twice_is_refused():
    made = Ranking.from_columns(["q"], ["d"], [1.0])
    with pytest.raises(DataError, match="labelled twice"):
        judge(made, labels_frame(("q", "x", 1), ("q", "d", 1), ("q", "x", 2)))


def test_frames(evaluation_of):
    """Measures given as specs and as objects."""
    evaluation = evaluation_of({"007": [1, 0], "7": [0, 1]}, ["mrr", parse_measure("P@1")])
    frame = evaluation.frame()
    assert list(frame.columns) == ["query_id", "metric", "value", "state"]
    assert frame.to_numpy().tolist() == [
        [query, metric, value, "scored"]
        for query, metric, value in (
            ("007", "mrr", 1.0), ("007", "precision@1", 1.0), ("7", "mrr", 0.5),
            ("7", "precision@1", 0.0),
        )
    ]  # fmt: skip
    wide = evaluation.wide()
    assert (list(wide.columns), wide.index.name) == (["mrr", "precision@1", "state"], "query_id")
    assert evaluation.means() == {"mrr": 0.75, "precision@1": 0.5}


def test_tied_queries_are_counted():
    """Documents below a depth, without a score, are not tied."""
    lists = {"a": [1.0, 1.0], "b": [2.0, 1.0], "c": [1.0, 1.0]}
    made = Ranking.from_lists(
        (query, ["x", "y", "u", "v"], [*scores, np.nan, np.nan]) for query, scores in lists.items()
    )
    qrels = pd.DataFrame({"query_id": list(lists), "doc_id": "v", "label": 1.0})
    found = evaluate(judge(made, qrels), ["mrr"])
    assert (found.counts["tied"], found.mean("mrr")) == (2, 1 / 4)
