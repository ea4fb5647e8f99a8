"""Parts of a JSON document, each with its line."""

import json

import pytest

from rankdash.infile import whole_characters
from rankdash.readers.parse.json_lines import RecordPlaces


def test_of_a_key_that_stands_twice_the_last_is_meant_as_a_decoder_means_it():
    places = RecordPlaces('{"a": 1,\n "b": 2,\n "a": 3}')
    found = places.member(places.outermost(), "a")
    assert (found.value, found.line) == (3, 3)
    assert places.member(places.outermost(), "c") is None


@pytest.mark.parametrize(
    ("text", "expected", "count"),
    [
        (r'"x\ud800y\udfff"', r'"x\ufffdy\ufffd"', 2),
        (r'{"\uDC00k": "\uD83D\uDE00"}', r'{"\ufffdk": "\uD83D\uDE00"}', 1),
        (r'"\ud83d\ud83d\ude00"', r'"\ufffd\ud83d\ude00"', 1),
        (r'"\\ud800 \\\ud800"', r'"\\ud800 \\\ufffd"', 1),
        (r'"\u00d8\\"', r'"\u00d8\\"', 0),
    ],
)
def test_half_a_pair_becomes_a_mark_where_it_stands(text, expected, count):
    assert whole_characters(text) == (expected, count)
    json.loads(expected).__repr__().encode()


@pytest.mark.parametrize("wrap", ["[{}]", '{{"data": [{}]}}', "{}"])
def test_half_characters_in_texts_and_names_are_a_finding(parse, found, wrap):
    row = r'{"query": "a\ud800", "document": "b", "label": 1, "k\udc00": 2, "\ud83d\ude00": 3}'
    parsed = parse({"x": wrap.format(row) if wrap != "{}" else row + "\n" + row})
    assert parsed.queries["text"].tolist() == ["a\ufffd"]
    assert found(parsed, "half_characters").count == (4 if wrap == "{}" else 2)
