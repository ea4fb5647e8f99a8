"""JSON and JSON lines: rows and entries that hold lists, with the true line of each."""

import json

from tests.readers.reading import shown

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
        "half a surrogate pair is replaced": {
            "x": '{"query": "a \\ud83d b", "document": "\\ud83d\\ude00", "label": 1}'
        },
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
        "of several lists in an object the longest holds the rows": {
            "x.json": json.dumps({"authors": [{"name": "n"}], "rows": [row(), row(document="c")]})
        },
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
    """A line of rank_llm's JSON lines for each of two queries."""
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
