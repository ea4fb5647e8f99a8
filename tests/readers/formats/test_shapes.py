"""The shapes of JSON in which tutorials and frameworks write retrieved and relevant documents: for
each, the values, ids and names equal the file's."""

import itertools
import json

import pytest

from rankdash.core.base.errors import FormatError
from tests.readers.reading import parse, shown
from tests.readers.samples import SHAPES, TEXT


def test_a_shape_keeps_its_ids_names_and_values(approved):
    cases = {name: {"shape.json": content} for name, content in SHAPES.items()}
    approved("readers/shapes.en", shown(cases))


Q1 = "how to return an item"


def test_shapes_that_are_not_known_are_told_with_their_keys(approved):
    entry = {"query": Q1, "retrieved": ["d1"], "relevant": ["d1"], "kind": "returns"}
    columns = [
        {"frage": "wer", "extra": {"a": at}, "seite": "ein Text", "tags": ["m", "n"], "urteil": at}
        for at in (0, 1)
    ]
    values = {
        "equal texts with different ids are two queries, an id is no kind": [
            {"id": 1, **entry}, {"id": 2, **entry}
        ],
        "answers are no documents": [
            {"question": Q1, "contexts": [TEXT["d1"]], "ground_truth": "Within a month."}
        ],
        "two keys of an entry": [{"alpha": 1, "beta": [1, 2]}],
        "two keys of an object": {"alpha": {"beta": [1, 2]}, "gamma": "x"},
        "two keys of entries": [{"alpha": {"beta": [1, 2]}, "gamma": at} for at in "xy"],
        "three": {"alpha": {"beta": [1, 2]}, "gamma": "x", "delta": "y"},
        "objects of texts": {"alpha": {"a": "m"}, "beta": {"b": "n"}},
        "texts": {"alpha": "x", "beta": "y"},
        "a query without documents": {"query": Q1, "hits": {"total": 3}},
        "a version": {"version": 3, "stuff": {"a": [1]}},
        "a number first": [1, "x", {}],
        "a text first": ["a", "b"],
        "a row without a label": [{"query": Q1, "document": "x y", "tags": ["m", "n"]}],
        "columns of lists and objects are not asked for": columns,
        "an empty object": {},
        "an empty entry": [{}],
        "two": [{}, {}],
        **{
            f"the cells {cells} are offered as labels where they can be": [
                {"query": Q1, "document": f"text {at}", "relevance_note": cell}
                for at, cell in enumerate(cells)
            ]
            for cells in (["it is so", "it is not"], ["2", "0"], ["gut", "gut"], [None, None])
        },
    }  # fmt: skip
    approved(
        "readers/unknown_shapes.en",
        shown({name: {"x.json": json.dumps(value)} for name, value in values.items()}),
    )


def test_the_example_of_a_known_shape_is_one():
    with pytest.raises(FormatError) as refused:
        parse({"x.json": '[{"alpha": [1, 2]}]'})
    example = refused.value.params["example"]
    assert example in str(refused.value)
    assert len(parse({"x.json": str(example)}).qrels) == 1


# The worked examples of tutorials about evaluation.
# Two queries: grades, the scores of the first stage, the scores of a reranker.
GRADES = ([3, 1, 2, 0], [0, 1, 2, 0])
FIRST = ([0.9, 0.8, 0.7, 0.6], [0.9, 0.8, 0.7, 0.6])
RERANKED = ([0.9, 0.5, 0.8, 0.1], [0.2, 0.5, 0.8, 0.1])
TEXTS = (["red shoe", "blue shoe", "red boot", "hat"], ["tall cup", "low cup", "mug", "plate"])
QUERIES = ("a red boot", "what to drink from")


def entries(truth: str, first: str, reranked: str, *, texts: bool, queries: bool):
    found = []
    for at in range(2):
        entry = {"query": QUERIES[at]} if queries else {}
        entry |= {"documents": TEXTS[at]} if texts else {}
        found.append(entry | {truth: GRADES[at], first: FIRST[at], reranked: RERANKED[at]})
    return found


def arranged(listed: list[dict]) -> dict[str, object]:
    """Return the same entries in the usual arrangements."""
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


NAMES = [
    ("ground_truth", "initial_scores", "rerank_scores"),
    ("relevance", "baseline_scores", "reranker_scores"),
    ("labels", "before", "after"),
    ("true_relevance", "bm25_scores", "cross_encoder_scores"),
    ("y_true", "scores_before", "scores_after"),
    ("相关性", "初排分数", "重排分数"),
]


def test_lists_of_grades_beside_two_lists_of_scores_are_read_however_they_are_written(approved):
    rows = [
        {"query": "q", "doc_id": doc, "label": grade, "bm25_score": first, "minilm_score": other}
        for doc, grade, first, other in zip("abcd", GRADES[0], FIRST[0], RERANKED[0], strict=True)
    ]
    lists = {"query": "q", "labels": GRADES[0], "system_a": FIRST[0], "system_b": RERANKED[0]}
    alone = (
        {"doc_ids": [12, 11, 13], "relevant": [11, 12, 13], "scores": [3.0, 2.0, 1.0]},
        {"doc_ids": [12, 11, 13], "relevant": [0, 0, 1], "scores": [3.0, 2.0, 1.0]},
        {"doc_ids": ["a", "b", "c"], "relevant": [0, 1, 1], "scores": [3.0, 2.0, 1.0]},
        {"retrieved": [12, 11, 13], "relevant": [13]},
        {"retrieved": [12, 11, 13], "relevant": [0, 1, 0]},
        {"retrieved": ["a", "b"], "relevant": ["b", "z"]},
        {"retrieved": ["a", "b"], "relevant": {"b": 2}},
        {"predicted": ["a", "b"], "actual": ["b"]},
    )
    cases = {
        **{
            f"called {', '.join(names)}": entries(*names, texts=True, queries=True)
            for names in NAMES
        },
        **{
            f"{layout}{'' if texts else ', no texts'}{'' if queries else ', no queries'}": data
            for texts, queries in itertools.product((True, False), repeat=2)
            for layout, data in arranged(
                entries(*NAMES[0], texts=texts, queries=queries)
            ).items()
        },
        "rows of two systems": rows,
        "lists of two systems": [lists],
        **{f"numbers are ids only where documents are called so: {each}": [each] for each in alone},
        **{
            f"ranks beside grades of {grade}": [
                {"relevance": [0, grade, 0], "initial_rank": [1, 2, 3], "rerank_rank": [2, 1, 3]}
            ] * 2
            for grade in (1, 2.5, True)
        },
    }  # fmt: skip
    approved(
        "readers/graded.en",
        shown({name: {"x.json": json.dumps(data)} for name, data in cases.items()}),
    )


@pytest.mark.parametrize(
    "entry",
    [
        {"retrieved": ["d2", "d1"],
         "relevant": [{"id": "d1", "relevance": 2}, {"id": "d3", "grade": 1}]},
        {"retrieved": [{"id": "d2", "label": 0}, {"id": "d1", "label": 2},
                       {"id": "d3", "label": 1}]},
        {"relevant": {"d1": 2, "d3": 1}, "retrieved": [{"id": "d2"}, {"id": "d1", "label": 1}]},
    ],
)  # fmt: skip
def test_grades_within_objects_of_documents_are_labels(entry):
    table = parse({"x.json": json.dumps([{"query_id": "q", **entry}])}).tables().qrels
    labels = dict(zip(table["doc_id"], table["label"], strict=True))
    assert {name: label for name, label in labels.items() if label} == {"d1": 2, "d3": 1}


def test_scores_of_retrieved_documents_are_not_labels():
    found = [{"id": "d2", "relevance_score": 1.0}, {"id": "d1", "relevance_score": 0.0}]
    entry = {"query_id": "q", "retrieved": found, "relevant": ["d1"]}
    table = parse({"x.json": json.dumps([entry])}).tables().qrels
    assert table[["doc_id", "label"]].values.tolist() == [["d1", 1.0]]
