"""Lists that belong together and differ in length are refused with their names and lengths, and
never read as queries or documents that are not in the file."""

import json
from itertools import product

import pytest

from rankdash.cli import main
from rankdash.errors import FormatError
from tests.readers.reading import shown
from tests.readers.samples import lines

QUERIES = ["how to return", "track my parcel", "gift cards"]
IDS = [["d1", "d2"], ["d3", "d4"], ["d5", "d6"]]
TEXTS = [["text a", "text b"], ["text c", "text d"], ["text e", "text f"]]
GRADES = [[1, 0], [0, 1], [1, 1]]
SCORES = [[0.9, 0.1], [0.5, 0.6], [0.3, 0.2]]
RELEVANT = [["d1"], ["d4"], ["d5", "d6"]]
LISTS = {
    **dict.fromkeys(("query", "questions"), QUERIES),
    **dict.fromkeys(("doc_ids", "retrieved", "retrieved_docs"), IDS),
    **dict.fromkeys(("documents", "pos", "neg"), TEXTS),
    **dict.fromkeys(("labels", "ground_truth", "y_true"), GRADES),
    **dict.fromkeys(("scores", "initial_scores", "minilm_scores", "y_score"), SCORES),
    **dict.fromkeys(("relevant", "relevant_docs"), RELEVANT),
    "query_ids": ["a7", "b8", "c9"],
}
LAYOUTS = [
    ("query", "documents", "labels"),
    ("query", "documents", "labels", "scores"),
    ("query", "documents", "labels", "minilm_scores"),
    ("query", "doc_ids", "labels"),
    ("query", "retrieved", "relevant"),
    ("questions", "retrieved_docs", "relevant_docs"),
    ("query_ids", "retrieved", "relevant"),
    ("retrieved", "relevant"),
    ("query", "labels"),
    ("query", "ground_truth", "initial_scores"),
    ("query", "pos", "neg"),
    ("y_true", "y_score"),
]


def uneven(fields, least=0, most=2):
    """Every choice of lengths of the fields' lists of which not all are the same."""
    return [
        dict(zip(fields, lengths, strict=True))
        for lengths in product(range(least, most + 1), repeat=len(fields))
        if len(set(lengths)) > 1
    ]


def refusal(parse, content):
    with pytest.raises(FormatError) as refused:
        parse({"x.json": content})
    return str(refused.value)


@pytest.mark.parametrize("fields", LAYOUTS, ids=", ".join)
def test_lists_of_a_whole_file_are_refused_with_their_lengths(parse, fields):
    whole = {field: LISTS[field] for field in fields}
    asked = not {"query", "questions"}.isdisjoint(fields)
    ways = (dict, lambda lists: {"version": 3, "data": lists}, lambda lists: {"inputs": lists})
    for at, around in enumerate(ways):
        parsed = parse({"x.json": json.dumps(around(whole))})
        assert len(parsed.queries) == 3
        assert parsed.queries["text"].dropna().tolist() == (QUERIES if asked else [])
        # One way of wrapping is enough for each choice of lengths.
        for lengths in uneven(fields)[at :: 7 if at else 1]:
            # One query and nothing else is an entry that is empty.
            if sorted(lengths.values())[-2:] != [0, 1]:
                lists = {field: whole[field][:length] for field, length in lengths.items()}
                assert named(lengths) in refusal(parse, json.dumps(around(lists))), lengths


def named(lengths):
    return f"differ in length: {', '.join(f'{field} {n}' for field, n in lengths.items())}."


ROWS = {"query_id": ["a7", "a7", "b8"], "doc_id": ["d1", "d2", "d3"], "label": [1, 0, 1]}


def test_lists_of_rows_are_refused_with_their_lengths(parse):
    for rows in (ROWS, {**ROWS, "rank": [1, 2, 1]}):
        assert len(parse({"x.json": json.dumps(rows)}).qrels) == 3
        for lengths in uneven(rows):
            if lengths["query_id"] > 1:
                lists = {field: rows[field][:length] for field, length in lengths.items()}
                assert named(lengths) in refusal(parse, json.dumps(lists)), lengths


ENTRIES = [
    ("docs", "labels"),
    ("docs", "labels", "pred_scores"),
    ("docs", "labels", "minilm_scores"),
    ("docs", "doc_ids", "labels"),
    ("retrieved", "relevance"),
    ("retrieved_ids", "retrieved_texts"),
    ("retrieved", "scores"),
    ("documents", "relevance", "before", "after"),
    ("labels", "scores"),
    ("ground_truth", "initial_scores", "rerank_scores"),
]
VALUES = {
    **{field: ["a b", "c d", "e f"] for field in ("docs", "retrieved_texts", "documents")},
    **{field: ["d1", "d2", "d3"] for field in ("doc_ids", "retrieved", "retrieved_ids")},
    **{field: [2, 0, 1] for field in ("labels", "relevance", "ground_truth")},
}
REST = {"retrieved_texts": {"relevant": ["d1"]}, "scores": {"relevant": ["d1"]}}


def entry(query, lengths):
    fields = tuple(lengths)
    lists = {
        field: VALUES.get(field, [0.9, 0.5, 0.1])[:length] for field, length in lengths.items()
    }
    rest = REST.get(fields[-1], {}) if fields[0].startswith("retrieved") else {}
    return {"query": query, **lists, **rest}


@pytest.mark.parametrize("fields", ENTRIES, ids=", ".join)
def test_lists_of_an_entry_are_refused_with_their_lengths(parse, found, fields):
    good = [entry(f"good {at}", dict.fromkeys(fields, 3)) for at in range(2)]
    # A list without a value is none.
    choices = uneven(fields, least=len(fields) // 2, most=3)
    for lengths in choices[:: len(choices) // 12 or 1]:
        for written in (json.dumps, lines, by_query)[: 3 if lengths == choices[0] else 1]:
            parsed = parse({"x.json": written([*good, entry("other", lengths)])})
            refused = found(parsed, "not_paired")
            assert (refused.count, refused.severity) == (1, "warning"), lengths
            (example,) = refused.examples
            said = dict(each.split() for each in example.split(":")[0].split(", "))
            assert said.items() <= {field: str(n) for field, n in lengths.items()}.items()
            assert len(set(said.values())) > 1, lengths
            assert parsed.queries["text"].tolist() == ["good 0", "good 1"]


def by_query(entries):
    return json.dumps({f"a{at}": each for at, each in enumerate(entries)})


def test_which_lists_belong_together(approved):
    frame = {field: dict(zip("012", values, strict=True)) for field, values in ROWS.items()}
    turned = {**frame, "label": dict(reversed(frame["label"].items()))}
    lacking = {**frame, "label": {"0": 1, "2": 1}}
    sides = {"query": "how", "pos": ["a b", "c d"], "neg": ["e f"]}
    graded = {"query": "how", "relevant_docs": ["d1", "d9"]}
    row = {"query_id": "q1", "query": "how", "doc_id": "d1", "document": "text", "label": 1}
    rows = [row, {**row, "doc_id": "d2"}]
    a7 = {"retrieved": ["x", "y"], "relevant": [1, 0]}
    lists = {"query": QUERIES, "documents": TEXTS, "labels": GRADES, "kind": ["x", "y"]}
    values = {
        "columns of a data frame are paired by their keys": turned,
        "a key is missing": lacking,
        **{
            f"{beside} are paired with their side": [
                {**sides, f"pos_{beside}": [1], f"neg_{beside}": [2, 3]}
            ]
            for beside in ("ids", "scores")
        },
        **{
            f"a list is no document: {lists}": [{"query": "how", **lists}]
            for lists in (
                {"docs": [["d3", "d1"], ["d3"]], "labels": [1, 0]},
                {"doc_ids": [["d3", "d1"], ["d3"]], "labels": [1, 0]},
                {"retrieved": [["d3", "d1"]], "relevant": ["d1"]},
                {"retrieved": ["d3", "d1"], "relevant": [["d1"]]},
                {"retrieved": ["d3"], "reranked": [["d3"]], "relevant": ["d3"]},
            )
        },
        **{
            f"an entry has one query, not {len(queries)}, {name}": [
                {"query": queries, name: docs, "labels": [1, 0]}
            ]
            for name, docs in (("docs", ["a b", "c d"]), ("retrieved", ["d1", "d2"]))
            for queries in (["how"], ["how", "what"], ["how", "what", "why"])
        },
        "numbers called relevant are grades in all entries or in none": {
            "a7": a7, "b8": {**a7, "relevant": [1]}
        },
        **{
            f"as many {name} as relevant documents are theirs, {len(docs)} retrieved": [
                {**graded, "retrieved": docs, name: [2, 1]}
            ]
            for name in ("grades", "relevance_scores")
            for docs in (["d1", "d3"], ["d1", "d3", "d4"])
        },
        "other lengths of a list that no reader knows are noted": lists,
        **{
            f"the {key} {value}": [*rows, {**row, key: value}]
            for key in ("query_id", "doc_id")
            for value in ({"id": "d1"}, ["d1", "d2"], [], ["d3"])
        },
    }  # fmt: skip
    approved(
        "readers/lists.en",
        shown({name: {"x.json": json.dumps(value)} for name, value in values.items()}),
    )


def test_a_command_refuses_lists_of_unequal_length(tmp_path, capsys):
    file = tmp_path / "x.json"
    lists = {"query": QUERIES[:1], "retrieved": IDS, "relevant": RELEVANT}
    file.write_text(json.dumps(lists))

    assert main(["evaluate", str(file), "--metrics", "ndcg@10"]) == 2

    written = capsys.readouterr()
    assert "query 1, retrieved 3, relevant 3" in written.err
    assert not written.out
