"""Lists that belong together and differ in length are refused with their names and lengths, and
never read as queries or documents that are not in the file."""

import json
from itertools import product

import pytest

from rankdash.cli import main
from rankdash.errors import FormatError

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


def wrapped(lists):
    return {"version": 3, "data": lists}


def inputs(lists):
    return {"run_name": "hybrid", "inputs": lists, "results": {}}


@pytest.mark.parametrize("around", [dict, wrapped, inputs])
@pytest.mark.parametrize("fields", LAYOUTS, ids=", ".join)
def test_lists_of_a_whole_file_are_refused_with_their_lengths(parse, fields, around):
    whole = {field: LISTS[field] for field in fields}
    expected = {"query", "questions"} & set(fields)
    parsed = parse({"x.json": json.dumps(around(whole))})
    assert len(parsed.queries) == 3
    assert parsed.queries["text"].dropna().tolist() == (QUERIES if expected else [])

    for lengths in uneven(fields):
        lists = {field: whole[field][:length] for field, length in lengths.items()}
        said = ", ".join(f"{field} {length}" for field, length in lengths.items())
        refused = refusal(parse, json.dumps(around(lists)))
        # One query and nothing else is an entry that is empty.
        empty = sorted(lengths.values())[-2:] == [0, 1]
        assert empty or f"differ in length: {said}." in refused, lengths


ROWS = {"query_id": ["a7", "a7", "b8"], "doc_id": ["d1", "d2", "d3"], "label": [1, 0, 1]}


@pytest.mark.parametrize("rank", [{}, {"rank": [1, 2, 1]}])
def test_lists_of_rows_are_refused_with_their_lengths(parse, rank):
    rows = {**ROWS, **rank}
    assert len(parse({"x.json": json.dumps(rows)}).qrels) == 3
    for lengths in uneven(rows):
        if lengths["query_id"] > 1:
            lists = {field: rows[field][:length] for field, length in lengths.items()}
            said = ", ".join(f"{field} {length}" for field, length in lengths.items())
            assert f"differ in length: {said}." in refusal(parse, json.dumps(lists)), lengths


def test_the_columns_of_a_data_frame_are_paired_by_their_keys(parse):
    frame = {field: dict(zip("012", values, strict=True)) for field, values in ROWS.items()}
    turned = {**frame, "label": dict(reversed(frame["label"].items()))}
    whole, other = (parse({"x.json": json.dumps(each)}).qrels for each in (frame, turned))
    assert whole["label"].tolist() == other["label"].tolist() == [1, 0, 1]

    del frame["label"]["1"]
    said = refusal(parse, json.dumps(frame))
    assert "differ in length: query_id 3, doc_id 3, label 2." in said


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


def listed(entries):
    return json.dumps(entries)


def lines(entries):
    return "\n".join(map(json.dumps, entries))


def by_query(entries):
    return json.dumps({f"a{at}": each for at, each in enumerate(entries)})


@pytest.mark.parametrize("written", [listed, lines, by_query])
@pytest.mark.parametrize("fields", ENTRIES, ids=", ".join)
def test_lists_of_an_entry_are_refused_with_their_lengths(parse, found, fields, written):
    even = dict.fromkeys(fields, 3)
    good = [entry(f"good {at}", even) for at in range(2)]
    assert parse({"x.json": written(good)}).queries["text"].tolist() == ["good 0", "good 1"]

    # A list without a value is none.
    for lengths in uneven(fields, least=len(fields) // 2, most=3):
        parsed = parse({"x.json": written([*good, entry("other", lengths)])})
        refused = found(parsed, "not_paired")
        assert (refused.count, refused.severity) == (1, "warning"), lengths
        (example,) = refused.examples
        said = dict(each.split() for each in example.split(":")[0].split(", "))
        assert said.items() <= {field: str(length) for field, length in lengths.items()}.items()
        assert len(set(said.values())) > 1, lengths
        assert parsed.queries["text"].tolist() == ["good 0", "good 1"]


@pytest.mark.parametrize("beside", ["ids", "scores"])
def test_what_is_beside_a_side_is_paired_with_that_side(parse, beside):
    values = {"pos": ["a b", "c d"], "neg": ["e f"]}
    values |= {f"pos_{beside}": [1], f"neg_{beside}": [2, 3]}
    said = refusal(parse, json.dumps([{"query": "how", **values}]))
    assert f"First: pos 2, neg 1, pos_{beside} 1, neg_{beside} 2: how." in said


@pytest.mark.parametrize(
    "lists",
    [
        {"docs": [["d3", "d1"], ["d3"]], "labels": [1, 0]},
        {"doc_ids": [["d3", "d1"], ["d3"]], "labels": [1, 0]},
        {"retrieved": [["d3", "d1"]], "relevant": ["d1"]},
        {"retrieved": ["d3", "d1"], "relevant": [["d1"]]},
        {"retrieved": ["d3"], "reranked": [["d3"]], "relevant": ["d3"]},
    ],
    ids=str,
)
def test_a_list_is_no_document(parse, lists):
    assert "a document is a list" in refusal(parse, json.dumps([{"query": "how", **lists}]))


@pytest.mark.parametrize("documents", [{"docs": ["a b", "c d"]}, {"retrieved": ["d1", "d2"]}])
def test_an_entry_with_lists_of_documents_has_one_query(parse, documents):
    one = {"query": ["how"], **documents, "labels": [1, 0]}
    assert parse({"x.json": json.dumps([one])}).queries["text"].tolist() == ["how"]
    for queries in (["how", "what"], ["how", "what", "why"]):
        said = refusal(parse, json.dumps([{**one, "query": queries}]))
        assert f"First: query {len(queries)}," in said


def test_numbers_that_are_called_relevant_are_grades_in_all_entries_or_in_none(parse, found):
    retrieved = {"retrieved": ["x", "y"]}
    entries = {"a7": {**retrieved, "relevant": [1, 0]}, "b8": {**retrieved, "relevant": [1]}}
    parsed = parse({"x.json": json.dumps(entries)})
    assert set(parsed.documents["doc_id"]) == {"x", "y"}
    assert found(parsed, "not_paired").count == 1


@pytest.mark.parametrize("grades", ["grades", "relevance_scores"])
@pytest.mark.parametrize("retrieved", [["d1", "d3"], ["d1", "d3", "d4"]])
def test_grades_as_many_as_the_relevant_documents_are_theirs(parse, grades, retrieved):
    entry = {"query": "how", "retrieved": retrieved, "relevant_docs": ["d1", "d9"], grades: [2, 1]}
    qrels = parse({"x.json": json.dumps([entry])}).qrels
    assert dict(zip(qrels["doc_id"], qrels["label"], strict=True)) == {"d1": 2, "d9": 1}


def test_lists_of_other_lengths_that_no_reader_knows_are_noted(parse, found):
    lists = {"query": QUERIES, "documents": TEXTS, "labels": GRADES, "kind": ["x", "y"]}
    assert found(parse({"x.json": json.dumps(lists)}), "lists_ignored").params["lists"] == "kind 2"


@pytest.mark.parametrize("key", ["query_id", "doc_id"])
@pytest.mark.parametrize("value", [{"id": "d1"}, ["d1", "d2"], []])
def test_an_id_is_one_text_or_number(parse, found, key, value):
    good = {"query_id": "q1", "query": "how", "doc_id": "d1", "document": "text", "label": 1}
    rows = [good, {**good, "doc_id": "d2"}, {**good, key: value}]
    parsed = parse({"x.json": json.dumps(rows)})
    assert set(parsed.queries["query_id"]) == {"q1"}
    assert set(parsed.documents["doc_id"]) == {"d1", "d2"}
    assert found(parsed, "no_query" if key == "query_id" else "no_document").count == 1
    # One id in a list is this id.
    assert len(parse({"x.json": json.dumps([good, {**good, key: ["d3"]}])}).qrels) == 2


def test_a_command_refuses_lists_of_unequal_length(tmp_path, capsys):
    file = tmp_path / "x.json"
    lists = {"query": QUERIES[:1], "retrieved": IDS, "relevant": RELEVANT}
    file.write_text(json.dumps(lists))

    assert main(["evaluate", str(file), "--metrics", "ndcg@10"]) == 2

    written = capsys.readouterr()
    assert "query 1, retrieved 3, relevant 3" in written.err
    assert not written.out
