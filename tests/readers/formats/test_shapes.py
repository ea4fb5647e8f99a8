"""The shapes of JSON in which tutorials and frameworks write what was retrieved and is relevant: of
each the values, ids and names are those of the file."""

import json

import pytest

from rankdash.errors import FormatError
from tests.readers.reading import shown
from tests.readers.shapes import SHAPES, TEXT


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


def test_the_example_of_a_known_shape_is_one(parse):
    with pytest.raises(FormatError) as refused:
        parse({"x.json": '[{"alpha": [1, 2]}]'})
    example = refused.value.params["example"]
    assert example in str(refused.value)
    assert len(parse({"x.json": str(example)}).qrels) == 1
