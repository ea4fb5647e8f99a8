"""Parallel lists of different lengths are refused with their names and lengths, and never read as
queries or documents that are not in the file."""

import json
from collections.abc import Iterator, Mapping

from tests.readers.reading import shown

QUERIES = ["how to return", "track my parcel", "gift cards"]
TEXTS = [["text a", "text b"], ["text c", "text d"], ["text e", "text f"]]
GRADES = [[1, 0], [0, 1], [1, 1]]
LISTS = {
    "query questions": QUERIES,
    "doc_ids retrieved retrieved_docs": [["d1", "d2"], ["d3", "d4"], ["d5", "d6"]],
    "documents pos neg": TEXTS,
    "labels ground_truth y_true": GRADES,
    "relevant relevant_docs": [["d1"], ["d4"], ["d5", "d6"]],
    "query_ids": ["a7", "b8", "c9"],
}
SCORES = [[0.9, 0.1], [0.5, 0.6], [0.3, 0.2]]
LAYOUTS = (
    *("query documents labels", "query documents labels scores", "query doc_ids labels"),
    *("query documents labels minilm_scores", "query retrieved relevant", "retrieved relevant"),
    *("questions retrieved_docs relevant_docs", "query_ids retrieved relevant", "query labels"),
    *("query ground_truth initial_scores", "query pos neg", "y_true y_score"),
)
ROWS = {"query_id": ["a7", "a7", "b8"], "doc_id": ["d1", "d2", "d3"], "label": [1, 0, 1]}
ENTRIES = (
    *("docs labels", "docs labels pred_scores", "docs labels minilm_scores"),
    *("docs doc_ids labels", "retrieved relevance", "retrieved_ids retrieved_texts"),
    *("retrieved scores", "documents relevance before after", "labels scores"),
    "ground_truth initial_scores rerank_scores",
)
VALUES = {
    "docs retrieved_texts documents": ["a b", "c d", "e f"],
    "doc_ids retrieved retrieved_ids": ["d1", "d2", "d3"],
    "labels relevance ground_truth": [2, 0, 1],
}


def lists_of(fields: str, known: Mapping[str, list[object]], scores: list[object]):
    values = {name: each for names, each in known.items() for name in names.split()}
    return {field: values.get(field, scores) for field in fields.split()}


def uneven(lists: Mapping[str, list[object]]) -> Iterator[dict[str, list[object]]]:
    """Yield the lists, each time with a different list shortened."""
    for field, values in lists.items():
        yield {**lists, field: values[:2]}


def named(lists: Mapping[str, list[object]]) -> str:
    return ", ".join(f"{field} {len(values)}" for field, values in lists.items())


def test_lists_of_unequal_length_are_refused_with_their_lengths(approved):
    wholes = [lists_of(fields, LISTS, SCORES) for fields in LAYOUTS]
    cases: dict[str, object] = {named(whole): whole for whole in wholes}
    for whole in (*wholes, ROWS, {**ROWS, "rank": [1, 2, 1]}):
        first = next(iter(whole))
        few = [{**whole, first: whole[first][:n]} for n in (0, 1)]
        cases |= {named(lists): lists for lists in (*uneven(whole), *few)}
    for around in ("data", "inputs"):
        cases |= {
            f"{around}: {named(lists)}": {"version": 3, around: lists}
            for lists in (wholes[0], *uneven(wholes[0]))
        }
    for each in ENTRIES:
        lists = lists_of(each, VALUES, [0.9, 0.5, 0.1])
        beside = (
            {"relevant": ["d1"]} if each.endswith(("retrieved_texts", "retrieved scores")) else {}
        )
        entries = [*[lists] * 5, *uneven(lists)]
        several = [{"query": f"query {at}", **entry, **beside} for at, entry in enumerate(entries)]
        cases[f"entries of {each}"] = several
    cases["entries by query"] = {f"a{at}": entry for at, entry in enumerate(several)}
    contents = {name: {"x.json": json.dumps(value)} for name, value in cases.items()}
    approved("readers/uneven.en", shown(contents))


def test_which_lists_belong_together(approved):
    frame = {field: dict(zip("012", values, strict=True)) for field, values in ROWS.items()}
    turned = {**frame, "label": dict(reversed(frame["label"].items()))}
    lacking = {**frame, "label": {"0": 1, "2": 1}}
    sides = {"query": "how", "pos": ["a b", "c d"], "neg": ["e f"]}
    graded = {"query": "how", "relevant_docs": ["d1", "d9"]}
    row = {"query_id": "q1", "query": "how", "doc_id": "d1", "document": "text", "label": 1}
    rows = [row, {**row, "doc_id": "d2"}]
    a7 = {"retrieved": ["x", "y"], "relevant": [1, 0]}
    lists = {"query": QUERIES, "documents": TEXTS, "labels": GRADES, "kind": ["x", "y"]}
    values = {
        "columns of a data frame are paired by their keys": turned,
        "a key is missing": lacking,
        **{
            f"{beside} are paired with their side": [
                {**sides, f"pos_{beside}": [1], f"neg_{beside}": [2, 3]}
            ]
            for beside in ("ids", "scores")
        },
        **{
            f"a list is no document: {lists}": [{"query": "how", **lists}]
            for lists in (
                {"docs": [["d3", "d1"], ["d3"]], "labels": [1, 0]},
                {"doc_ids": [["d3", "d1"], ["d3"]], "labels": [1, 0]},
                {"retrieved": [["d3", "d1"]], "relevant": ["d1"]},
                {"retrieved": ["d3", "d1"], "relevant": [["d1"]]},
                {"retrieved": ["d3"], "reranked": [["d3"]], "relevant": ["d3"]},
            )
        },
        **{
            f"an entry has one query, not {len(queries)}, {name}": [
                {"query": queries, name: docs, "labels": [1, 0]}
            ]
            for name, docs in (("docs", ["a b", "c d"]), ("retrieved", ["d1", "d2"]))
            for queries in (["how"], ["how", "what"], ["how", "what", "why"])
        },
        "numbers called relevant are grades in all entries or in none": {
            "a7": a7, "b8": {**a7, "relevant": [1]}
        },
        **{
            f"as many {name} as relevant documents are theirs, {len(docs)} retrieved": [
                {**graded, "retrieved": docs, name: [2, 1]}
            ]
            for name in ("grades", "relevance_scores")
            for docs in (["d1", "d3"], ["d1", "d3", "d4"])
        },
        "other lengths of a list that no reader knows are noted": lists,
        **{
            f"the {key} {value}": [*rows, {**row, key: value}]
            for key in ("query_id", "doc_id")
            for value in ({"id": "d1"}, ["d1", "d2"], [], ["d3"])
        },
    }  # fmt: skip
    approved(
        "readers/lists.en",
        shown({name: {"x.json": json.dumps(value)} for name, value in values.items()}),
    )
