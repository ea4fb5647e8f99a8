"""The worked examples by which people learn evaluation: lists of grades beside two lists of scores,
and lists of what was retrieved and is relevant. Each value is computed here by hand."""

import itertools
import json
import math

import pytest

import rankdash as rd
from rankdash.loading import load
from rankdash.readers import Source

# Two queries: grades, the scores of the first stage, the scores of a reranker.
GRADES = ([3, 1, 2, 0], [0, 1, 2, 0])
FIRST = ([0.9, 0.8, 0.7, 0.6], [0.9, 0.8, 0.7, 0.6])
RERANKED = ([0.9, 0.5, 0.8, 0.1], [0.2, 0.5, 0.8, 0.1])
TEXTS = (["red shoe", "blue shoe", "red boot", "hat"], ["tall cup", "low cup", "mug", "plate"])
QUERIES = ("a red boot", "what to drink from")


def ndcg(grades: list[int]) -> float:
    def dcg(listed: list[int]) -> float:
        return sum(grade / math.log2(place + 1) for place, grade in enumerate(listed, 1))

    return dcg(grades) / dcg(sorted(grades, reverse=True))


def by_hand(scores: tuple[list[float], ...], queries: int) -> float:
    values = [
        ndcg([grade for _, grade in sorted(zip(scored, grades, strict=True), reverse=True)])
        for scored, grades in zip(scores[:queries], GRADES[:queries], strict=True)
    ]
    return sum(values) / len(values)


def entries(truth: str, first: str, reranked: str, *, texts: bool, queries: bool):
    found = []
    for at in range(2):
        entry = {"query": QUERIES[at]} if queries else {}
        entry |= {"documents": TEXTS[at]} if texts else {}
        found.append(entry | {truth: GRADES[at], first: FIRST[at], reranked: RERANKED[at]})
    return found


def arranged(listed: list[dict]) -> dict[str, object]:
    """The same entries as people write them down."""
    return {
        "entries": listed,
        **{f"in {key}": {key: listed} for key in ("data", "results", "retrieved", "documents")},
        "one entry": listed[0],
        "parallel lists": {key: [entry[key] for entry in listed] for key in listed[0]},
        "by query": dict(zip(("a7", "b8"), listed, strict=True)),
        "columns by query": {
            key: dict(zip(("a7", "b8"), [entry[key] for entry in listed], strict=True))
            for key in listed[0]
        },
    }


def means(data: object, spec: str = "ndcg@10") -> list[float]:
    """Of the first stage and of each system."""
    loaded = load([Source("example.json", json.dumps(data).encode())])
    runs = [loaded.dataset.candidates, *loaded.rankings.values()]
    return [rd.evaluate(loaded.dataset, run, metrics=[spec]).mean(spec) for run in runs]


NAMES = [
    ("ground_truth", "initial_scores", "rerank_scores"),
    ("relevance", "baseline_scores", "reranker_scores"),
    ("labels", "before", "after"),
    ("true_relevance", "bm25_scores", "cross_encoder_scores"),
    ("y_true", "scores_before", "scores_after"),
    ("相关性", "初排分数", "重排分数"),
]


LAYOUTS = list(arranged(entries("a", "b", "c", texts=True, queries=True)))


@pytest.mark.parametrize(
    ("names", "layout"),
    [*((names, "entries") for names in NAMES), *((NAMES[0], layout) for layout in LAYOUTS[1:])],
)
def test_grades_beside_two_lists_of_scores_score_as_by_hand(names, layout):
    for texts, queries in itertools.product((True, False), repeat=2):
        data = arranged(entries(*names, texts=texts, queries=queries))[layout]
        count = 1 if layout == "one entry" else 2
        expected = [by_hand(FIRST, count), by_hand(RERANKED, count)]
        assert means(data) == pytest.approx(expected), (texts, queries)


def test_the_example_of_a_tutorial_is_not_perfect():
    entry = {"ground_truth": GRADES[0], "initial_scores": FIRST[0], "rerank_scores": RERANKED[0]}

    assert means(entry) == pytest.approx([0.97250, 1.0], abs=1e-5)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ({"doc_ids": [12, 11, 13], "relevant": [11, 12, 13], "scores": [3.0, 2.0, 1.0]}, 1.0),
        ({"doc_ids": [12, 11, 13], "relevant": [0, 0, 1], "scores": [3.0, 2.0, 1.0]}, 1 / 3),
        ({"doc_ids": ["a", "b", "c"], "relevant": [0, 1, 1], "scores": [3.0, 2.0, 1.0]}, 1 / 2),
        ({"retrieved": [12, 11, 13], "relevant": [13]}, 1 / 3),
        ({"retrieved": [12, 11, 13], "relevant": [0, 1, 0]}, 1 / 2),
        ({"retrieved": ["a", "b"], "relevant": ["b", "z"]}, 1 / 2),
        ({"retrieved": ["a", "b"], "relevant": {"b": 2}}, 1 / 2),
        ({"predicted": ["a", "b"], "actual": ["b"]}, 1 / 2),
    ],
)
def test_numbers_are_ids_only_where_the_documents_are_called_so(entry, value):
    assert means([entry], "mrr")[0] == pytest.approx(value)


def test_a_file_of_two_systems_keeps_both_by_their_names():
    rows = [
        {"query": "q", "doc_id": doc, "label": grade, "bm25_score": first, "minilm_score": other}
        for doc, grade, first, other in zip("abcd", GRADES[0], FIRST[0], RERANKED[0], strict=True)
    ]
    lists = {"query": "q", "labels": GRADES[0], "system_a": FIRST[0], "system_b": RERANKED[0]}

    assert means(rows)[0] == pytest.approx(by_hand(FIRST, 1))
    assert means([lists]) == pytest.approx([by_hand(FIRST, 1), by_hand(RERANKED, 1)])


@pytest.mark.parametrize("grade", [1, 2.5, True])
def test_ranks_beside_grades_are_best_at_one(grade):
    entry = {"relevance": [0, grade, 0], "initial_rank": [1, 2, 3], "rerank_rank": [2, 1, 3]}

    assert means([entry, entry], "mrr") == pytest.approx([0.5, 1.0])
