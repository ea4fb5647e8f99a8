"""Values compared with other implementations, on generated sets."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from sklearn.metrics import average_precision_score, dcg_score, ndcg_score

from rankdash.core.base.rules import CONVENTION_PRESETS, preset_of
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, evaluate, judge, parse_measure, registry

TREC_NAMES = {
    "ndcg": "ndcg",
    "ndcg@1": "ndcg_cut_1",
    "ndcg@10": "ndcg_cut_10",
    "map": "map",
    "map@5": "map_cut_5",
    "mrr": "recip_rank",
    "precision@5": "P_5",
    "precision": "set_P",
    "recall@10": "recall_10",
    "recall": "set_recall",
    "hit@3": "success_3",
    "r_precision": "Rprec",
    "bpref": "bpref",
    "f1": "set_F",
}
REQUEST = {
    *("ndcg", "ndcg_cut.1,10", "map", "map_cut.5", "recip_rank", "P.5", "set_P", "recall.10"),
    *("set_recall", "success.3", "Rprec", "bpref", "set_F"),
}


def as_dicts(frame, value, kind):
    result = {}
    for query, doc, number in zip(frame["query_id"], frame["doc_id"], frame[value], strict=True):
        result.setdefault(query, {})[doc] = kind(number)
    return result


def ranking_of(run, ties="stable"):
    return Ranking.from_columns(run["query_id"], run["doc_id"], run["score"], ties=ties)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("threshold", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_trec_eval_conventions_give_the_numbers_of_pytrec_eval(
    generated_set, seed, threshold, tied
):
    """For any rule by which the ranking broke its ties."""
    run, qrels = generated_set(seed, tied=tied)
    made_with = "trec" if seed % 2 else "stable"
    referee = pytrec_eval.RelevanceEvaluator(
        as_dicts(qrels, "label", int), REQUEST, relevance_level=threshold
    ).evaluate(as_dicts(run, "score", float))
    conventions = Conventions.trec_eval(9)
    conventions = Conventions(**{**conventions.as_dict(), "threshold": threshold})
    judged = judge(ranking_of(run, made_with), qrels, conventions)
    ours = evaluate(judged, list(TREC_NAMES), conventions)
    wide = ours.wide()
    assert set(wide.index) == set(referee)
    for spec, name in TREC_NAMES.items():
        expected = [referee[query][name] for query in wide.index]
        np.testing.assert_allclose(wide[spec], expected, rtol=0, atol=1e-9, err_msg=spec)
        assert ours.mean(spec) == pytest.approx(np.mean(expected), abs=1e-9)


def test_negative_labels_under_trec_eval_conventions():
    run = {"q": {"n": 5.0, "a": 3.0, "z": 2.0, "b": 1.5, "c": 1.0}, "only_negative": {"n": 1.0}}
    labels = {"q": {"a": 2, "b": 0, "c": 1, "n": -1}, "only_negative": {"n": -1, "m": 0}}
    rows = [(q, d, s) for q, docs in run.items() for d, s in docs.items()]
    frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    rows = [(q, d, s) for q, docs in labels.items() for d, s in docs.items()]
    qrels = pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])
    referee = pytrec_eval.RelevanceEvaluator(labels, REQUEST).evaluate(run)
    conventions = Conventions.trec_eval(9)
    wide = evaluate(
        judge(ranking_of(frame), qrels, conventions), list(TREC_NAMES), conventions
    ).wide()
    for query in run:
        for spec, name in TREC_NAMES.items():
            assert wide.loc[query, spec] == pytest.approx(referee[query][name], abs=1e-9), spec


@pytest.mark.parametrize(("gap", "tied"), [(1e-8, True), (1e-6, False)])
def test_single_precision_decides_what_is_tied_for_trec_eval_9_and_not_for_10(gap, tied):
    run = pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "score": [1.0 + gap, 1.0]})
    qrels = pd.DataFrame({"query_id": ["q"], "doc_id": ["a"], "label": [1.0]})
    conventions = Conventions.trec_eval(9)
    evaluation = evaluate(judge(ranking_of(run), qrels, conventions), ["mrr"], conventions)
    newest = Conventions.trec_eval()
    assert evaluate(judge(ranking_of(run), qrels, newest), ["mrr"], newest).mean("mrr") == 1.0
    referee = pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {"recip_rank"}).evaluate(
        {"q": {"a": 1.0 + gap, "b": 1.0}}
    )
    assert evaluation.mean("mrr") == referee["q"]["recip_rank"] == (0.5 if tied else 1.0)
    assert evaluation.counts["tied"] == int(tied)
    assert evaluate(judge(ranking_of(run), qrels), ["mrr"]).mean("mrr") == 1.0


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("k", [1, 3, 10, None])
def test_dcg_and_ndcg_agree_with_scikit_learn(fractional, k):
    rng = np.random.default_rng(3)
    lists = [
        rng.integers(0, 4, rng.integers(2, 40)) * (0.5 if fractional else 1) for _ in range(60)
    ]
    lists = [labels for labels in lists if labels.any()]
    scores = [rng.normal(size=len(labels)) for labels in lists]
    rows = [
        (f"q{q}", f"d{d}", scores[q][d], label)
        for q, labels in enumerate(lists)
        for d, label in enumerate(labels)
    ]
    frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "score", "label"])
    conventions = Conventions(threshold=0.5)
    judged = judge(ranking_of(frame), frame, conventions)
    suffix = f"@{k}" if k else ""
    specs = [f"{name}{suffix}" for name in ("ndcg", "ndcg_exp", "dcg", "dcg_exp")] + ["map"]
    wide = evaluate(judged, specs, conventions).wide()
    for q, (labels, given) in enumerate(zip(lists, scores, strict=True)):
        row = wide.loc[f"q{q}"]
        linear = ndcg_score([labels], [given], k=k, ignore_ties=True)
        exponential = ndcg_score([2.0**labels - 1], [given], k=k, ignore_ties=True)
        assert row[specs[0]] == pytest.approx(linear, abs=1e-9)
        assert row[specs[1]] == pytest.approx(exponential, abs=1e-9)
        for spec, gains in ((specs[2], labels), (specs[3], 2.0**labels - 1)):
            expected = dcg_score([gains], [given], k=k, ignore_ties=True)
            assert row[spec] == pytest.approx(expected, abs=1e-9)
        assert row["map"] == pytest.approx(average_precision_score(labels > 0, given), abs=1e-9)


def by_formula(name, labels, pool, k, top):
    """Return a metric of one list, straight from its formula, one rank at a time.

    labels: in rank order, None if unlabelled. pool: all labels of the query. k: None for all.
    """
    if name == "judged":
        return sum(label is not None for label in labels[:k]) / len(labels[:k])
    ideal = sorted((max(label, 0.0) for label in pool), reverse=True)
    relevant = sum(label >= 1 for label in pool)
    others = min(len(pool) - relevant, relevant)
    best = (discounted(name, *each) for each in zip(ideal[:k], itertools.count(1), strict=False))
    k = relevant if name == "r_precision" else len(labels) if k is None else k
    found, hits, wrong, reached = 0.0, 0, 0, 1.0
    for rank, label in enumerate(labels[:k], start=1):
        grade, hit = max(label or 0.0, 0.0), label is not None and label >= 1
        hits, stops = hits + hit, (2**grade - 1) / 2**top
        if hit:
            precision, graded = hits / rank, sum(each for each in ideal if each >= 1)
            found += {
                "mrr": (hits == 1) / rank,
                "hit": hits == 1,
                "map": precision / relevant,
                "map_graded": precision * grade / top / relevant,
                "map_graded_norm": precision * grade / graded,
                "precision": 1 / k,
                "recall": 1 / relevant,
                "r_precision": 1 / relevant,
                "f1": 2 / (k + relevant),
                "rbp": 0.2 * 0.8 ** (rank - 1),
                "bpref": (1 - min(wrong, relevant) / others if others else 1) / relevant,
            }.get(name, 0.0)
        wrong += label is not None and not hit
        found += reached * stops / rank if name == "err" else discounted(name, grade, rank)
        reached *= 1 - stops
    return found / math.fsum(best) if name.startswith("ndcg") else found


def discounted(name, grade, rank):
    """Return 0 for a metric without gains."""
    gain = 2**grade - 1 if name.endswith("_exp") else grade
    discount = max(math.log2(rank), 1) if name == "ndcg_jk" else math.log2(rank + 1)
    return gain / discount if "dcg" in name else 0.0


@pytest.mark.parametrize(
    ("name", "k"),
    [
        (name, k)
        for name, metric in registry.items()
        for k in ([None, 1, 3, 10, 100] if metric.has_cutoff else [None])
    ],
)
def test_every_metric_is_its_formula(evaluation_of, name, k):
    rng = np.random.default_rng(11)
    choices = np.array([None, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0], dtype=object)
    lists, unranked = {}, {}
    for number in range(80):
        lists[f"q{number}"] = list(rng.choice(choices, rng.integers(1, 30)))
        unranked[f"q{number}"] = list(rng.choice(choices[1:], rng.integers(0, 8)))
    pools = {q: [x for x in [*lists[q], *unranked[q]] if x is not None] for q in lists}
    lists = {q: labels for q, labels in lists.items() if any(x >= 1 for x in pools[q])}
    spec = name if k is None else f"{name}@{k}"
    pools = {q: pools[q] for q in lists}
    evaluation = evaluation_of(lists, [spec], {q: unranked[q] for q in lists})
    top = max(max(pool) for pool in pools.values())
    expected = [by_formula(name, lists[q], pools[q], k, top) for q in evaluation.query_ids]
    np.testing.assert_allclose(evaluation.values[:, 0], expected, rtol=0, atol=1e-12)
    assert parse_measure(spec).spec == spec


def test_scores_beyond_single_precision():
    run = pd.DataFrame({"query_id": ["q", "q", "q", "p"], "doc_id": [*"abc", "a"]})
    run["score"] = [1e300, -1e300, -2e300, 1.0]
    qrels = pd.DataFrame({"query_id": ["q", "p"], "doc_id": ["c", "a"], "label": [1, 1]})
    conventions = Conventions.trec_eval(9)
    expected = {"q": 1 / 2, "p": 1.0}
    judged = judge(ranking_of(run), qrels, conventions)
    assert evaluate(judged, ["mrr"], conventions).wide()["mrr"].to_dict() == expected
    referee = pytrec_eval.RelevanceEvaluator(as_dicts(qrels, "label", int), {"recip_rank"})
    assert referee.evaluate(as_dicts(run, "score", float))["q"]["recip_rank"] == 1 / 2


def test_each_preset_gives_the_mean_of_its_tool():
    """Over a query with a tie, one with nothing relevant, and one without a ranking."""
    ranked = {"a": {"x": 2.0, "y": 2.0, "z": 1.0}, "b": {"x": 2.0, "y": 1.0, "z": 0.5}}
    labels = {"a": {"x": 0, "y": 1, "z": 2}, "b": {"x": 0, "y": 0, "z": 0}, "c": {"x": 1}}
    run = pd.DataFrame(
        [(q, d, s) for q, docs in ranked.items() for d, s in docs.items()],
        columns=["query_id", "doc_id", "score"],
    )
    qrels = pd.DataFrame(
        [(q, d, n) for q, docs in labels.items() for d, n in docs.items()],
        columns=["query_id", "doc_id", "label"],
    )
    trec = pytrec_eval.RelevanceEvaluator(labels, {"ndcg"}).evaluate(ranked)
    ordered = [[0, 1, 2], [0, 0, 0]]
    first = ndcg_score([ordered[0]], [[3, 2, 1]])
    expected = {
        "rankdash": (trec["a"]["ndcg"] + 0) / 2,
        "trec_eval": np.mean([each["ndcg"] for each in trec.values()]),
        "BEIR": np.mean([each["ndcg"] for each in trec.values()]),
        # Its Run.make_comparable adds an empty list for a missing query.
        "ranx": (first + 0 + 0) / 3,
        "scikit-learn": ndcg_score(ordered, [[3, 2, 1], [3, 2, 1]]),
    }
    assert expected.keys() == CONVENTION_PRESETS.keys()
    for name, conventions in CONVENTION_PRESETS.items():
        ours = evaluate(judge(ranking_of(run, "trec"), qrels, conventions), ["ndcg"], conventions)
        assert ours.mean("ndcg") == pytest.approx(expected[name], abs=1e-9), name
        changed = replace(conventions, threshold=2.0, err_top_label=4.0)
        assert (preset_of(conventions), preset_of(changed)) == (name, name)
        assert preset_of(replace(conventions, judged_only=True)) is None
