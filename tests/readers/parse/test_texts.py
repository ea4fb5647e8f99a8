"""Tables of an id and a text: which side they are, and ids that come again; JSON's own places."""

import json

import pytest

from rankdash.infile import whole_characters
from rankdash.readers.parse.json_lines import RecordPlaces
from tests.readers.reading import shown

QRELS = "q1 0 d1 1\nq2 0 d2 1\n"


def test_the_side_of_a_table_is_told_by_its_ids_then_its_name_then_what_is_missing(approved):
    documents = {"d.csv": "doc_id,document\nd1,words\n"}
    queries = {"q.csv": "query_id,query\nq1,words\n"}
    again = "d1,One,words\nd1,One,words\nd1,Two,words\nd1,One,more\nd2,One,words\nd3,,a\nd4,,b\n"

    def table(name: str, ids: str, beside: dict[str, str]) -> dict[str, str]:
        rows = "".join(f"{identity},words of {identity}\n" for identity in ids.split())
        return {name: f"id,text\n{rows}", "qrels": QRELS, **beside}

    cases = {
        **{
            f"{name} with {ids}": table(name, ids, {})
            for name, ids in (
                ("passages.csv", "q1 q2"), ("questions.csv", "d1 d2"), ("questions.csv", "x y"),
                ("passages.csv", "x y"), ("questions.csv", "q1 d1"), ("passages.csv", "q1 d1"),
                ("passages.csv", "q1 q2 d1"),
            )
        },
        "documents are there": table("table.csv", "x", documents),
        "queries are there": table("table.csv", "x", queries),
        "neither is": table("table.csv", "x", {}),
        "both are": table("table.csv", "x", documents | queries),
        "an id that comes again": {"docs.csv": f"doc_id,title,document\n{again}", "qrels": QRELS},
    }  # fmt: skip
    approved("readers/sides.en", shown(cases))


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
