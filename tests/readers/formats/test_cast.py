"""Conversations of TREC CAsT: each turn is a query, under the id that the labels give it."""

import json

import pytest

from rankdash.errors import LimitError
from rankdash.loading import load
from rankdash.readers import Source
from rankdash.readers.formats import cast
from rankdash.readers.parse.limits import ReadLimits

SAID = [
    {
        "number": 31,
        "title": "Throat cancer",
        "description": "A search about one illness.",
        "turn": [
            {"number": 1, "raw_utterance": "What is throat cancer?"},
            {"number": 2, "raw_utterance": "Is it treatable?"},
        ],
    },
    {
        "number": 32,
        "title": "Sharks",
        "turn": [{"number": 1, "raw_utterance": "Tell me of sharks"}],
    },
]
REWRITTEN = [
    {
        "number": "31",
        "turn": [
            {"number": "1-1", "participant": "User", "utterance": "What is throat cancer?"},
            {"number": "1-2", "participant": "System", "response": "An illness."},
            {
                "number": "1-3",
                "utterance": "Is it treatable?",
                "manual_rewritten_utterance": "Is throat cancer treatable?",
            },
        ],
    }
]


def loaded(topics: object, qrels: str):
    run = "".join(
        f"{query} Q0 {doc} {rank} {3 - rank} bm25\n"
        for query in dict.fromkeys(line.split()[0] for line in qrels.splitlines())
        for rank, doc in enumerate(("MARCO_1", "CAR_2"), 1)
    )
    files = {"topics.json": json.dumps(topics, indent=1), "qrels.txt": qrels, "bm25.run": run}
    return load([Source(name, text.encode()) for name, text in files.items()])


@pytest.mark.parametrize(
    ("topics", "texts"),
    [
        (
            SAID,
            {
                "31_1": "What is throat cancer?",
                "31_2": "Is it treatable?",
                "32_1": "Tell me of sharks",
            },
        ),
        (REWRITTEN, {"31_1-1": "What is throat cancer?", "31_1-3": "Is throat cancer treatable?"}),
    ],
)
def test_the_turns_are_the_queries_of_the_labels(topics, texts):
    qrels = "".join(f"{query} 0 MARCO_1 2\n{query} 0 CAR_2 0\n" for query in texts)
    data = loaded(topics, qrels).dataset
    assert dict(zip(data.queries["query_id"], data.queries["text"], strict=True)) == texts


def test_topic_and_turn_are_kinds_of_queries():
    queries = loaded(SAID, "31_1 0 MARCO_1 2\n31_2 0 CAR_2 1\n32_1 0 CAR_2 1\n").dataset.queries
    assert list(queries["topic"]) == ["Throat cancer", "Throat cancer", "Sharks"]
    assert list(queries["turn"]) == ["1", "2", "1"]


def test_other_lists_of_numbered_objects_are_no_topics():
    rows = [{"number": 1, "query": "a b", "document": "c d", "label": 1, "turn": "left"}]
    data = load([Source("rows.json", json.dumps(rows).encode())]).dataset
    assert list(data.queries["text"]) == ["a b"]


TURNS = [{"number": 1, "utterance": "a"}]


@pytest.mark.parametrize(
    ("outer", "matches"),
    [
        ([{"number": 1, "turn": TURNS}], True),
        ([{"number": 1, "turns": TURNS}], True),
        (["not", "a topic", {"number": 1, "turn": TURNS}, {"number": 2}], True),
        ([{"turn": TURNS}], False),
        ([{"number": 1, "turn": "left"}], False),
        (["number"], False),
        ([], False),
        ({"number": 1, "turn": TURNS}, False),
        (None, False),
    ],
)
def test_topics_are_a_list_in_which_one_has_a_number_and_turns(outer, matches):
    assert cast.matches(outer) == matches


def test_what_is_no_topic_or_no_turn_is_passed_over():
    topics = ["x", {"number": 3, "turn": ["y", {"number": 1, "utterance": ""}, *TURNS]}, 4]
    table = cast.read(json.dumps(topics, indent=1), "x", ReadLimits())
    assert table.frame.to_numpy().tolist() == [["3_1", "a", None, "1"]]
    assert table.lines.tolist() == [11]


def test_what_stands_alone_is_taken_before_what_was_said():
    said = ["raw_utterance", "utterance", "resolved_utterance", "manual_rewritten_utterance"]
    turns = [{"number": n, **{name: name for name in said[:n]}} for n in range(1, 5)]
    table = cast.read(json.dumps([{"number": 1, "turns": turns}]), "x", ReadLimits())
    assert table.frame["query"].tolist() == said


@pytest.mark.parametrize("most", [2, 1])
def test_turns_are_rows(most):
    text = json.dumps([{"number": n, "turn": TURNS} for n in (1, 2)])
    if most == 2:
        assert len(cast.read(text, "x", ReadLimits(rows=most))) == 2
    else:
        with pytest.raises(LimitError, match="more than 1 row"):
            cast.read(text, "x", ReadLimits(rows=most))
