"""One object with the texts by their ids and what is relevant to each query."""

import json

import pytest

from rankdash.errors import LimitError
from rankdash.readers.formats import collection
from rankdash.readers.parse.limits import ReadLimits

LIMITS = ReadLimits()
WHOLE = {
    "queries": {"q1": "a b", "q2": {"text": "c d"}},
    "corpus": {"d1": "one", "d2": {"title": "Two", "text": "two"}},
    "relevant_docs": {"q1": ["d1", "d2"], "q2": {"d2": 2, "d1": None}},
    "notes": {"of": "no interest"},
    "version": 1,
}


@pytest.mark.parametrize(
    ("changed", "matches"),
    [
        ({}, True),
        ({"queries": {}, "corpus": {}}, False),
        ({"relevant_docs": {}}, False),
        ({"relevant_docs": {"q1": "d1"}}, False),
        ({"qrels": {"q1": ["d1"]}}, False),
        ({"queries": {"q1": 1}}, False),
        ({"corpus": {"d1": "one", "d2": ["two"]}}, False),
        ({"queries": {}}, True),
    ],
)
def test_texts_stand_beside_what_is_relevant(changed, matches):
    assert collection.matches({**WHOLE, **changed}) == matches


def test_a_list_is_none_and_an_object_may_begin_with_blanks():
    assert not collection.matches([WHOLE])
    assert collection.may_match(' \n{"queries"')
    assert not collection.may_match("[{")


def test_a_table_for_each_key_that_is_known():
    queries, documents, labels = collection.read(json.dumps(WHOLE, indent=1), "x.json", LIMITS)
    assert [queries.file, documents.file, labels.file] == [
        "x.json/queries",
        "x.json/corpus",
        "x.json/relevant_docs",
    ]
    assert queries.frame.to_dict("list") == {"query_id": ["q1", "q2"], "query": ["a b", "c d"]}
    assert documents.frame.to_numpy().tolist() == [["d1", None, "one"], ["d2", "Two", "two"]]
    assert labels.frame.to_numpy().tolist() == [
        ["q1", "d1", "1"],
        ["q1", "d2", "1"],
        ["q2", "d2", "2"],
        ["q2", "d1", "1"],
    ]
    assert queries.lines.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("retrieved", "field", "cells"),
    [
        ({"q": ["d1", "d2"]}, "rank", ["1", "2"]),
        ({"q": {"d1": 0.5, "d2": 2}}, "score", ["0.5", "2"]),
        ({"q": ["d1"], "p": {"d2": 0.5}}, "score", [None, "0.5"]),
    ],
)
def test_what_was_retrieved_has_places_in_lists_and_scores_in_objects(retrieved, field, cells):
    found = {"corpus": {"d1": "one"}, "qrels": {"q": ["d1"]}, "run": retrieved}
    run = collection.read(json.dumps(found), "x", LIMITS)[-1]
    assert run.frame[field].tolist() == cells
    assert run.columns == ["query_id", "doc_id", field]


def test_what_was_retrieved_for_nothing_is_no_table():
    found = {"corpus": {"d1": "one"}, "qrels": {"q": ["d1"]}, "run": {"q": []}}
    names = [table.file for table in collection.read(json.dumps(found), "x", LIMITS)]
    assert names == ["x/corpus", "x/qrels"]


@pytest.mark.parametrize("most", [3, 4])
def test_more_labels_than_rows_are_allowed_are_refused(most):
    text, limits = json.dumps(WHOLE), ReadLimits(rows=most)
    if most == 4:
        assert len(collection.read(text, "x", limits)) == 3
    else:
        with pytest.raises(LimitError, match="more than 3 rows"):
            collection.read(text, "x", limits)
