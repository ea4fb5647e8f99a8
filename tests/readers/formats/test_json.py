"""JSON and JSON lines: rows and entries with lists, each with its true line, and the limits between
the shapes."""

import json
from collections.abc import Callable

from rankdash.core.base.files import whole_characters
from rankdash.core.readers.formats import json_layouts, json_records, json_tools, nested
from rankdash.core.readers.formats.json_records import RecordPlaces
from rankdash.core.readers.parse.columns import MOST_GRADES
from rankdash.core.readers.parse.limits import ReadLimits
from tests.readers.reading import shown
from tests.results import results

Q = {"query": "a gift"}
HALF = r'{"query": "a\ud800", "document": "b", "label": 1, "k\udc00": 2, "\ud83d\ude00": 3}'


def entries(*given: object) -> dict[str, str]:
    return {"x.json": json.dumps(given)}


def lines(*given: object) -> dict[str, str]:
    return {"x": "\n".join(each if isinstance(each, str) else json.dumps(each) for each in given)}


def row(**values: object) -> dict[str, object]:
    return {"query": "a", "document": "b", "label": 1, **values}


def test_rows_and_entries_are_read_with_their_lines(approved):
    tutorial = {
        "query": "capital of France", "docs": ["Paris is", "Lyon is", "Rome is"],
        "true_scores": [3, 0.5, 0], "pred_scores": [0.2, 0.9, 0.1], "type": "geo",
    }  # fmt: skip
    other = {"query": "2 + 2", "docs": ["4", "Paris is"], "true_scores": [1, 0],
             "pred_scores": [9, 1]}  # fmt: skip
    objects = {
        "query": {"id": 4, "text": "gift"},
        "documents": [{"id": "x", "title": "T", "text": "one"}, {"id": "y", "text": "two"}],
        "labels": [1, 0], "initial_scores": [1, 2],
    }  # fmt: skip
    pair = {"query": "a", "docs": ["x", "y"], "true_scores": [1, 0]}
    bare = {"query": "c", "docs": ["x", "z"], "true_scores": [], "pred_scores": [0.3, 0.1]}
    cases = {
        "numbers as ids become their decimal text": lines(
            {"query_id": 7, "query": "a", "doc_id": 12345678901234567890, "label": 1}
        ),
        "ids that are digits keep their zeros": lines(
            {"query_id": "007", "doc_id": "0042", "label": 1},
            {"query_id": "7", "doc_id": "42", "label": 0},
        ),
        "lines of JSON lines, behind blank ones and line separators": lines(
            '{"query": "a\u2028b", "document": "\\n\\n", "label": 1}', row(), "",
            row(document="c", label="?"), row(document="d"), row(document="e"),
        ),
        "lines of a list": {
            "x": '[\n  {"query": "a", "document": "b", "label": 1},\n\n  {\n    "query": "a",\n'
            '    "document": "c",\n    "label": null\n  }, {"query": "a", "document": "d", '
            '"label": 1}, {"query": "a", "document": "e", "label": NaN}\n]'
        },
        "lines of a list inside an object": {
            "x": '{\n"meta": {"n": [1, 2]},\n"rows": [\n{"query": "a", "document": "b", "label": '
            '1},\n{"query": "a", "document": "c", "label": 1},\n{"query": "", "document": "c", '
            '"label": 1}]\n}'
        },
        "a line is named once for all its entries": entries(
            Q | {"docs": [{"text": f"t{i}", "label": "?" if i < 3 else 1} for i in range(9)]}
        ),
        "a text that is cut": lines(row(), '{"query": "a", "docu'),
        "a comma too many": lines({"query": "a"}, "", '{"query": "b",}', {"query": "c"}),
        "a list that is not closed": {"x": '[\n{"query": "a"},\n{"query": "b"\n'},
        "a list that ends behind an entry": {"x": '[\n{"query": "a"}\n'},
        "a line that is no entry": lines({"query": "a"}, '"text"', ""),
        "a break on the line of the entry": {"x": '[{"query": "a" "b"}]'},
        "a break below it": {"x": '[{"query": "a"\n "b"}]'},
        **{
            f"half a pair in texts and names, {shape}": {"x": shape.replace("ROW", HALF)}
            for shape in ("[ROW]", '{"data": [ROW]}', "ROW\nROW")
        },
        "booleans are labels": lines(
            *({"query": "a", "document": text, "relevant": text == "b"} for text in "bc")
        ),
        "an object in a cell is kept": lines(row(user={"age": 3})),
        "several labels of one document are none": entries(row(label=[2, 1])),
        "one in a list is one": entries(row(label=[1])),
        "metadata takes no value of the row away": entries(
            row(lang="en", year=8, metadata={"lang": "de", "query": "q", "text": "t", "year": 7})
        ),
        "metadata that is no object": entries(row(metadata="b")),
        "entries of a tutorial: scores are a system's, the order is no first stage": {
            "tutorial.json": json.dumps([tutorial, other])
        },
        "documents and queries as objects": {"x": json.dumps({"data": [objects]})},
        "a query's own id under another name": entries(
            pair | {"query": {"query_id": 7, "text": "gift"}}
        ),
        "lists of other lengths, and none": lines(
            pair, pair | {"query": "b", "true_scores": [1]}, pair | {"query": "d"},
            {"query": "c", "docs": [], "true_scores": []},
        ),
        "no scores are none for each document, no labels are refused": lines(
            pair | {"pred_scores": [0.1, 0.2]}, pair | {"query": "b", "pred_scores": []}, bare
        ),
        "a null among labels refuses its row": lines(
            {"query": "a", "docs": ["x", "y", "z"], "true_scores": [1, None, 0]}
        ),
        "a score beside a label in a document is the first stage": entries(
            Q | {"docs": [{"text": t, "label": n, "score": s} for t, n, s in ("a01", "b13")]}
        ),
        "a lone score in a document is told by its values": entries(
            Q | {"docs": [{"text": "a", "score": 0}, {"text": "b", "score": 2}]}
        ),
        "predictions in documents are a system": entries(
            Q | {"docs": [{"text": t, "label": n, "pred_score": n} for t, n in ("a0", "b1")]}
        ),
        **{
            f"a list of {key} beside labels is the first stage": entries(
                Q | {"docs": ["a", "b"], key: [1, 3], "labels": [0, 1]}
            )
            for key in ("scores", "score")
        },
        **{
            f"minilm_scores of {scores}": entries(
                Q | {"docs": ["a", "b", "c"], "labels": [1, 0, 0], "minilm_scores": scores}
            )
            for scores in ([1, 2, None], ["x"] * 3)
        },
        "triplets": entries(Q | {"positive": "a", "negative": "b"}),
        "scores go through the relevant documents first": entries(
            Q | {"neg": ["c"], "pos": ["a", "b"], "pred_scores": [0.1, 0.3, 0.2]}
        ),
        "scores of each side": entries(
            Q | {"pos": ["a"], "neg": ["c"], "pos_scores": [1.5], "neg_scores": [2.5]}
        ),
        **{
            f"{side[0]} and {side[1]}": lines(
                *(
                    {"query": query, side[1]: [bad], side[0]: good, "kind": "k"}
                    for query, good, bad in (("x", texts[:2], texts[2]), ("y", texts[2:], texts[0]))
                )
            )
            for side, texts in (
                (("pos", "neg"), ["a", "b", "c"]), (("positive", "negative"), ["a", "b", "c"]),
                (("positives", "negatives"), ["a", "b", "c"]),
                (("positive_docs", "negative_docs"), ["a", "b", "c"]),
                (("positive_passages", "negative_passages"),
                 [{"docid": f"id {text}", "text": text} for text in "abc"]),
            )
        },
        "a list is never a rank": entries(*(row(document=text, pos=[1, 2]) for text in "abc")),
    }  # fmt: skip
    approved("readers/json.en", shown(cases))


def rank_llm(document: object) -> dict[str, str]:
    """Return two queries as lines of rank_llm's JSON lines."""
    candidates = [
        {"docid": "d9", "score": 9.5, "doc": document},
        {"docid": "d1", "score": 8.25, "doc": {"contents": "more words"}},
    ]
    shop = [{"docid": "d2", "score": 1.5, "doc": {"text": "hours"}}]
    return {
        **lines(
            {"query": {"text": "a gift", "qid": "31"}, "candidates": candidates},
            {"query": {"text": "a shop", "qid": 32}, "candidates": shop},
        ),
        "q.qrels": "31 0 d1 1\n32 0 d2 2\n",
    }


def test_what_was_retrieved_and_is_relevant_is_read(approved):
    graded = Q | {"retrieved": ["d1", "d2"], "relevance": [0, 1]}
    data = {"queries": {"q1": "a gift"}, "corpus": {"d1": "words", "d2": "more"}}
    titled = {"title": "A title", "url": "u"}
    cases = {
        **{
            f"of {retrieved} is relevant {relevant}: {what}": entries(
                Q | {"retrieved": retrieved, "relevant": relevant}
            )
            for retrieved, relevant, what in (
                (["d3", "d1"], [0, 2], "grades"),
                ([3, 1], [0, 0], "grades beside numbers"),
                ([3, 1], [1, 7], "numbers as ids"),
                (["d3", "d1"], "d9", "an id alone"),
                (["two words", "word"], ["word"], "texts, where one is more than a token"),
                (["words", "word"], ["word"], "tokens are ids"),
            )
        },
        "a list that was reranked is a ranking": entries(
            Q | {"retrieved": ["d1", "d2"], "reranked": ["d2", "d1"], "relevant": ["d1"]}
        ),
        "grades that are not one for each": entries(
            graded, graded | {"query": "c"}, graded | {"query": "b", "relevance": [1]}
        ),
        "a whole data set with an empty grade": {
            "x": json.dumps({**data, "relevant_docs": {"q1": {"d1": 1, "d2": ""}}}, indent=1)
        },
        "rank_llm": rank_llm({"segment": "some words", **titled}),
        **{
            f"rank_llm: a text under {name}": rank_llm({name: "some words", "title": "T"})
            for name in ("text", "contents", "content", "body", "passage")
        },
        "rank_llm: a text of no known name is refused": rank_llm({"inhalt": "some words"}),
        **{
            f"ranx: {values} are {kind}": {"x": json.dumps({"q": dict(enumerate(values))})}
            for kind, several in (
                ("grades", ([1.0, 1.0, 0.0, 0.0], [2, 1, 0], [*range(12)])),
                ("scores", ([1.0, 1.0, 0.0], [0.5, 0.5], [*range(13)])),
            )
            for values in several
        },
    }
    approved("readers/retrieved.en", shown(cases))


WHOLE = {
    "queries": {"q1": "a b", "q2": {"text": "c d"}},
    "corpus": {"d1": "one", "d2": {"title": "Two", "text": "two"}},
    "relevant_docs": {"q1": ["d1", "d2"], "q2": {"d2": 2, "d1": None}},
    "notes": {"of": "no interest"},
    "version": 1,
}
TURNS = [{"number": 1, "utterance": "a"}]
SHAPES: dict[str, tuple[Callable[[object], bool], list[object]]] = {
    "json_layouts": (json_layouts.matches, [
        # A pair: the retrieved documents and the relevant ones.
        [[["d1", "d2"], ["d1"]]], [[["d1", "d2"], {"d1": 1}]], [[[111, 222], [222]]],
        [[[1, 0], [0]]], [[["d1"], ["d1"], ["d2"]]], [[["d1"]]], [[["d1"], "d1"]],
        [[["d1"], [1.5]]],
        # Short lists of numbers are grades.
        [1, 0, 2.5], [0, 1] * MOST_GRADES, [1, "d"], [[0, 1], [100, 0]], [[0, 1], [-100, 0]],
        [[0, 1], [101, 0]], [[0, 1], [*range(12)]], [[0, 1], [*range(13)]], [[0, 1], []],
        {"q1": [1, 0], "q2": "text"}, {"a": 1, "b": 2}, {}, [], "x",
        {"q1": {"retrieved": ["d1"]}}, {"q1": {"other": ["d1"]}},
        {"query": ["a", "b"], "documents": [["x"], ["y"]]}, {"query": ["a", "b"]},
        {"query": ["a", "b"], "documents": [["x"]]},
        {"query": ["a b"], "documents": ["x", "y"], "labels": [1, 0]},
        {"query": ["a", "b"], "documents": [{"id": 1}, {"id": 2}]},
        {"retrieved": [["d1"], ["d2"], ["d3"]], "queries": ["a", "b", "c"]},
        {"retrieved": [["d1"], ["d2"], ["d3"]]},
    ]),
    # ranx: more than half of the values are numbers, less than half are names.
    "ranx": (json_tools.is_ranx, [
        {"q": {"a": 1, "b": 2, "c": "x"}}, {"q": {"a": 1, "b": "x"}}, {"q": {"a": True, "b": 1}},
        {"q": {"a": 1, "b": 1, "label": 1}}, {"q": {"a": 1, "label": 1}},
    ]),
    # Texts next to the list of relevant documents, which occurs once.
    "collection": (json_layouts.is_collection, [
        WHOLE, {**WHOLE, "queries": {}}, {**WHOLE, "queries": {}, "corpus": {}}, [WHOLE],
        {**WHOLE, "relevant_docs": {}}, {**WHOLE, "relevant_docs": {"q1": "d1"}},
        {**WHOLE, "qrels": {"q1": ["d1"]}}, {**WHOLE, "queries": {"q1": 1}},
        {**WHOLE, "corpus": {"d1": "one", "d2": ["two"]}},
    ]),
    # Topics are a list with an entry that has a number and turns.
    "cast": (json_tools.is_cast, [
        [{"number": 1, "turn": TURNS}], [{"number": 1, "turns": TURNS}], [{"turn": TURNS}],
        ["not", "a topic", {"number": 1, "turn": TURNS}, {"number": 2}], ["number"], [], None,
        [{"number": 1, "turn": "left"}], {"number": 1, "turn": TURNS},
    ]),
}  # fmt: skip


def test_a_shape_is_told_from_its_neighbours(approved):
    cases = {
        f"{name}: {value}": matches(value)
        for name, (matches, values) in SHAPES.items()
        for value in values
    }
    approved("readers/json_matches", results(cases))


def test_a_list_of_objects_is_no_layout_and_a_word_under_pos_is_no_document():
    assert not json_layouts.matches([{"retrieved": ["d1"], "relevant": ["d1"]}])
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
    cases: dict[str, object] = {
        f"the value {value!r}": repr(json_records.cell(value)) for value in values
    }
    # Half of a surrogate pair is replaced by a mark.
    halves = (
        *(r'"x\ud800y\udfff"', r'{"\uDC00k": "\uD83D\uDE00"}', r'"\ud83d\ud83d\ude00"'),
        *(r'"\\ud800 \\\ud800"', r'"\u00d8\\"'),
    )
    cases |= {f"the characters {text}": whole_characters(text) for text in halves}
    texts = (
        *('{"a": 1}', '\n{"a": 1}\n', '{"a": 1}\n\n{"a": 2}', '[{"a": 1},\n{"a": 2}]'),
        '{"few": [{"a": 1}],\n"many": [{"a": 2},\n{"a": 3}]}',
        '{"one": [{"a": 1}],\n"other": [{"a": 2}]}',
        '{"none": [],\n"words": ["b", "c"], "all": [{"a": 2}]}',
        '[{"number": 1, "turn":\n[{"utterance": "a"},\n{"number": 2, "utterance": "b"}]}]',
    )
    for text in texts:
        read = json_tools.read_cast if "turn" in text else json_records.read
        table = read(text, "x", ReadLimits())
        cases[repr(text)] = f"{table.format}, lines {table.lines.tolist()}"
    approved("readers/json_values", results(cases))


def test_of_a_key_that_stands_twice_the_last_is_meant_as_a_decoder_means_it():
    places = RecordPlaces('{"a": 1,\n "b": 2,\n "a": 3}')
    found = places.member(places.outermost(), "a")
    assert (found.value, found.line) == (3, 3)
    assert places.member(places.outermost(), "c") is None
