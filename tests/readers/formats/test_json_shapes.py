"""Where one shape of JSON ends and the next begins, and what a value becomes."""

import json
from types import ModuleType

import pytest

from rankdash.readers.formats import cast, collection, json_layouts, json_records, nested, ranx
from rankdash.readers.parse.columns import MOST_GRADES
from rankdash.readers.parse.limits import ReadLimits
from tests.readers.reading import shown
from tests.results import results

WHOLE = {
    "queries": {"q1": "a b", "q2": {"text": "c d"}},
    "corpus": {"d1": "one", "d2": {"title": "Two", "text": "two"}},
    "relevant_docs": {"q1": ["d1", "d2"], "q2": {"d2": 2, "d1": None}},
    "notes": {"of": "no interest"},
    "version": 1,
}
TURNS = [{"number": 1, "utterance": "a"}]
SHAPES: list[tuple[ModuleType, bool, list[object]]] = [
    # A pair is what was retrieved and what is relevant, a list of few numbers are grades.
    (json_layouts, True, [
        [[["d1", "d2"], ["d1"]]], [[["d1", "d2"], {"d1": 1}]], [[[111, 222], [222]]],
        [1, 0, 2.5], [0, 1] * MOST_GRADES, [[0, 1], [100, 0]], [[0, 1], [-100, 0]],
        [[0, 1], [*range(12)]], {"q1": {"retrieved": ["d1"]}},
        {"query": ["a", "b"], "documents": [["x"], ["y"]]},
        {"query": ["a", "b"], "documents": [["x"]]},
        {"retrieved": [["d1"], ["d2"], ["d3"]], "queries": ["a", "b", "c"]},
    ]),
    (json_layouts, False, [
        [[[1, 0], [0]]], [[["d1"], ["d1"], ["d2"]]], [[["d1"]]], [[["d1"], "d1"]],
        [[["d1"], [1.5]]], [{"a": 1, "b": 2}], {}, [], "x", [1, "d"], [[0, 1], [101, 0]],
        [[0, 1], [*range(13)]], [[0, 1], []], {"q1": [1, 0], "q2": "text"},
        {"q1": {"other": ["d1"]}},
        {"query": ["a b"], "documents": ["x", "y"], "labels": [1, 0]},
        {"query": ["a", "b"], "documents": [{"id": 1}, {"id": 2}]},
        {"query": ["a", "b"]}, {"retrieved": [["d1"], ["d2"], ["d3"]]},
    ]),
    # More than half of ranx are numbers, less than half names.
    (ranx, True, [{"q": {"a": 1, "b": 2, "c": "x"}}, {"q": {"a": 1, "b": 1, "label": 1}}]),
    (ranx, False, [{"q": {"a": 1, "b": "x"}}, {"q": {"a": True, "b": 1}},
                   {"q": {"a": 1, "label": 1}}]),
    # Texts stand beside what is relevant, which is said once.
    (collection, True, [WHOLE, {**WHOLE, "queries": {}}]),
    (collection, False, [
        {**WHOLE, "queries": {}, "corpus": {}}, {**WHOLE, "relevant_docs": {}}, [WHOLE],
        {**WHOLE, "relevant_docs": {"q1": "d1"}}, {**WHOLE, "qrels": {"q1": ["d1"]}},
        {**WHOLE, "queries": {"q1": 1}}, {**WHOLE, "corpus": {"d1": "one", "d2": ["two"]}},
    ]),
    # Topics are a list in which one has a number and turns.
    (cast, True, [
        [{"number": 1, "turn": TURNS}], [{"number": 1, "turns": TURNS}],
        ["not", "a topic", {"number": 1, "turn": TURNS}, {"number": 2}],
    ]),
    (cast, False, [
        [{"turn": TURNS}], [{"number": 1, "turn": "left"}], ["number"], [],
        {"number": 1, "turn": TURNS}, None,
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reader", "matches", "value"),
    [(reader, matches, value) for reader, matches, values in SHAPES for value in values],
)
def test_a_shape_is_told_from_its_neighbours(reader, matches, value):
    assert reader.matches(value) == matches


def test_the_first_characters_rule_a_shape_out_and_a_word_under_pos_is_no_document():
    assert [json_layouts.may_match(each) for each in ("{", " [1", "[[1")] == [True] * 3
    assert [json_layouts.may_match(each) for each in ("[ {", "[\n{")] == [False] * 2
    assert [collection.may_match(each) for each in (' \n{"queries"', "[{")] == [True, False]
    words = ({"pos": "NOUN"}, {"positive": "a text"}, {"pos": ["a text"]})
    sides = [nested.holds_lists([{"query": "a gift", **each}]) for each in words]
    assert sides == [False, True, True]


def test_texts_and_turns_are_read_under_the_ids_of_their_labels(approved):
    throat = {
        "number": 31, "title": "Throat cancer", "description": "A search about one illness.",
        "turn": [{"number": 1, "raw_utterance": "What is throat cancer?"},
                 {"number": 2, "raw_utterance": "Is it treatable?"}],
    }  # fmt: skip
    sharks = {"number": 32, "title": "Sharks",
              "turn": [{"number": 1, "raw_utterance": "Tell me of sharks"}]}  # fmt: skip
    rewritten = {
        "number": "31",
        "turn": [
            {"number": "1-1", "participant": "User", "utterance": "What is throat cancer?"},
            {"number": "1-2", "participant": "System", "response": "An illness."},
            {"number": "1-3", "utterance": "Is it treatable?",
             "manual_rewritten_utterance": "Is throat cancer treatable?"},
        ],
    }  # fmt: skip
    said = ["raw_utterance", "utterance", "resolved_utterance", "manual_rewritten_utterance"]
    all_said = [{"number": n, **{name: name for name in said[:n]}} for n in range(1, 5)]
    odd = ["x", {"number": 3, "turn": ["y", {"number": 1, "utterance": ""}, *TURNS]}, 4]
    numbered = [{"number": 1, "query": "a b", "document": "c d", "label": 1, "turn": "left"}]

    def topics(value: object, *queries: str) -> dict[str, str]:
        qrels = "".join(f"{query} 0 M1 2\n" for query in queries)
        return {"topics.json": json.dumps(value, indent=1), "qrels.txt": qrels}

    def retrieved(run: object) -> dict[str, str]:
        found = {"corpus": {"d1": "one"}, "qrels": {"q": ["d1"]}, "run": run}
        return {"x.json": json.dumps(found)}

    cases = {
        "CAsT: each turn is a query": topics([throat, sharks], "31_1", "31_2", "32_1"),
        "CAsT: what a user said, rewritten": topics([rewritten], "31_1-1", "31_1-3"),
        "CAsT: what stands alone goes before what was said": topics(
            [{"number": 1, "turns": all_said}], "1_1", "1_2", "1_3", "1_4"
        ),
        "CAsT: what is no topic or turn is passed over": topics(odd, "3_1"),
        "CAsT: other numbered objects are rows": {"rows.json": json.dumps(numbered)},
        "a table for each key that is known": {"x.json": json.dumps(WHOLE, indent=1)},
        "lists that were retrieved have places": retrieved({"q": ["d1", "d2"]}),
        "objects have scores": retrieved({"q": {"d1": 0.5, "d2": 2}}),
        "a list beside them has none": retrieved({"q": ["d1"], "p": {"d2": 0.5}}),
        "nothing retrieved is no table": retrieved({"q": []}),
        **{
            f"labels by query, of documents that nobody named: {value}": {"x": json.dumps(value)}
            for value in (
                {"q1": [1, 0], "q2": [0, 1]}, {"where is it": [1, 0], "退货": [0]}, [[1, 0], [0, 1]]
            )
        },
    }  # fmt: skip
    approved("readers/whole_sets.en", shown(cases))


def test_what_a_value_becomes_and_which_rows_are_read_with_their_lines(approved):
    values = (None, "a", True, False, 1, 0.5, b"a\xff", ["a", None, 1], [], {"é": 1})
    cases = {f"the value {value!r}": repr(json_records.cell(value)) for value in values}
    texts = (
        *('{"a": 1}', '\n{"a": 1}\n', '{"a": 1}\n\n{"a": 2}', '[{"a": 1},\n{"a": 2}]'),
        '{"few": [{"a": 1}],\n"many": [{"a": 2},\n{"a": 3}]}',
        '{"one": [{"a": 1}],\n"other": [{"a": 2}]}',
        '{"none": [],\n"words": ["b", "c"], "all": [{"a": 2}]}',
        '[{"number": 1, "turn":\n[{"utterance": "a"},\n{"number": 2, "utterance": "b"}]}]',
    )
    for text in texts:
        table = (cast if "turn" in text else json_records).read(text, "x", ReadLimits())
        cases[repr(text)] = f"{table.format}, lines {table.lines.tolist()}"
    approved("readers/json_values", results(cases))
