"""Objects of JSON as rows: which list is read, what becomes of values that are several, limits."""

import json

import pytest

from rankdash.errors import LimitError
from rankdash.readers.formats import json_records
from rankdash.readers.parse.limits import ReadLimits


def read(text: str, **limits: int):
    return json_records.read(text, "x", ReadLimits(**limits))


def rows(*records: object) -> list[dict[str, object]]:
    return read(json.dumps(records)).frame.to_dict("records")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("a", "a"),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (0.5, "0.5"),
        (b"a\xff", "a\ufffd"),
        (["a", None, 1], "a; 1"),
        ([], ""),
        ({"é": 1}, '{"é": 1}'),
    ],
)
def test_a_value_is_a_text(value, text):
    assert json_records.cell(value) == text


@pytest.mark.parametrize(
    ("text", "name", "lines"),
    [
        ('{"a": 1}', "JSON", [1]),
        ('\n{"a": 1}\n', "JSON", [2]),
        ('{"a": 1}\n\n{"a": 2}', "JSON lines", [1, 3]),
        ('[{"a": 1},\n{"a": 2}]', "JSON", [1, 2]),
        ('{"few": [{"a": 1}],\n"many": [{"a": 2},\n{"a": 3}]}', "JSON", [2, 3]),
        ('{"one": [{"a": 1}],\n"other": [{"a": 2}]}', "JSON", [1]),
        ('{"none": [],\n"words": ["b", "c"], "all": [{"a": 2}]}', "JSON", [2]),
    ],
)
def test_rows_are_those_of_the_longest_list_and_know_their_lines(text, name, lines):
    table = read(text)
    assert (table.format, table.lines.tolist()) == (name, lines)


def test_what_metadata_calls_as_the_row_does_is_kept_apart():
    (row,) = rows({"query": "a", "metadata": {"query": "b", "text": "c", "year": 7}, "year": 8})
    assert row == {
        "query": "a",
        "year": "8",
        "metadata query": "b",
        "metadata text": "c",
        "metadata year": "7",
    }
    assert rows({"query": "a", "metadata": {"year": 7}}) == [{"query": "a", "year": "7"}]
    assert rows({"query": "a", "metadata": "b"}) == [{"query": "a", "metadata": "b"}]


@pytest.mark.parametrize(
    ("value", "row"),
    [([1], {"label": "1"}), ([1, 2], {"label (list)": "1; 2"}), (1, {"label": "1"})],
)
def test_several_values_are_no_label(value, row):
    assert rows({"query": "a", "document": "b", "label": value}) == [
        {"query": "a", "document": "b"} | row
    ]


@pytest.mark.parametrize(("limit", "most"), [("rows", 2), ("columns", 2), ("field_chars", 4)])
def test_as_much_as_allowed_is_read(limit, most):
    text = '{"a": "abcd", "b": 1}\n{"a": "b"}'
    assert read(text, **{limit: most}).columns == ["a", "b"]
    with pytest.raises(LimitError):
        read(text, **{limit: most - 1})
