"""JSON that holds an entry for each query, or parallel lists: which layouts are such."""

import json

import pytest

from rankdash.readers.formats import json_layouts
from rankdash.readers.parse.columns import MOST_GRADES
from rankdash.readers.parse.limits import ReadLimits


@pytest.mark.parametrize(
    ("value", "pair"),
    [
        ([["d1", "d2"], ["d1"]], True),
        ([["d1", "d2"], {"d1": 1}], True),
        ([[111, 222], [222]], True),
        ([[1, 0], [0]], False),
        ([["d1"], ["d1"], ["d2"]], False),
        ([["d1"]], False),
        ([["d1"], "d1"], False),
        ([["d1"], [1.5]], False),
        ({"a": 1, "b": 2}, False),
    ],
)
def test_a_pair_is_what_was_retrieved_and_what_is_relevant(value, pair):
    assert json_layouts.matches([value]) == pair


@pytest.mark.parametrize(
    ("start", "may"), [("{", True), (" [1", True), ("[[1", True), ("[ {", False), ("[\n{", False)]
)
def test_a_list_of_objects_is_no_such_layout(start, may):
    assert json_layouts.may_match(start) == may


def rows(outer: object) -> list[dict[str, object]]:
    table = json_layouts.read(json.dumps(outer), "x", ReadLimits())
    return [
        {name: cell for name, cell in row.items() if cell is not None}
        for row in table.frame.to_dict("records")
    ]


@pytest.mark.parametrize(
    ("outer", "queries"),
    [
        ({"q1": [1, 0], "q2": [0, 1]}, [("query_id", "q1"), ("query_id", "q2")]),
        ({"where is it": [1, 0], "退货": [0]}, [("query", "where is it"), ("query", "退货")]),
        ([[1, 0], [0, 1]], [("query_id", "q1"), ("query_id", "q2")]),
    ],
)
def test_labels_by_query_are_those_of_documents_that_nobody_named_in_order(outer, queries):
    found = rows(outer)
    lists = list(outer.values()) if isinstance(outer, dict) else outer
    told = [
        (field, key, str(label), str(rank))
        for (field, key), labels in zip(queries, lists, strict=True)
        for rank, label in enumerate(labels, 1)
    ]
    assert [
        (field, row[field], row["label"], row["rank"])
        for row in found
        for field in ("query_id", "query")
        if field in row
    ] == told
    assert len({row["doc_id"] for row in found}) == len(found)


@pytest.mark.parametrize(
    ("outer", "matches"),
    [
        ({}, False),
        ([], False),
        ("x", False),
        ([1, 0, 2.5], True),
        ([1, "d"], False),
        ([0, 1] * MOST_GRADES, True),
        ({"q1": [1, 0], "q2": "text"}, False),
        ({"q1": {"retrieved": ["d1"]}}, True),
        ({"q1": {"other": ["d1"]}}, False),
        ({"query": ["a", "b"], "documents": [["x"], ["y"]]}, True),
        ({"query": ["a", "b"], "documents": [["x"]]}, True),
        ({"query": ["a b"], "documents": ["x", "y"], "labels": [1, 0]}, False),
        ({"query": ["a", "b"], "documents": [{"id": 1}, {"id": 2}]}, False),
        ({"query": ["a", "b"]}, False),
        ({"retrieved": [["d1"], ["d2"], ["d3"]]}, False),
        ({"retrieved": [["d1"], ["d2"], ["d3"]], "queries": ["a", "b", "c"]}, True),
    ],
)
def test_which_objects_hold_an_entry_for_each_query(outer, matches):
    assert json_layouts.matches(outer) == matches
