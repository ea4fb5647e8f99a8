"""JSON and JSON lines: rows and entries that hold lists, with the true line of each."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.errors import FormatError
from rankdash.readers import Source, read


def test_numbers_as_ids_become_their_decimal_text(parse):
    parsed = parse(
        {"x": '{"query_id": 7, "query": "a", "doc_id": 12345678901234567890, "label": 1}'}
    )

    assert parsed.queries["query_id"].tolist() == ["7"]
    assert parsed.documents["doc_id"].tolist() == ["12345678901234567890"]


def test_ids_that_are_digits_keep_their_zeros(parse):
    rows = [
        '{"query_id": "007", "doc_id": "0042", "label": 1}',
        '{"query_id": "7", "doc_id": "42", "label": 0}',
    ]

    assert parse({"x": "\n".join(rows)}).qrels["query_id"].tolist() == ["007", "7"]


def test_lines_of_json_lines_are_true_also_with_blank_lines_and_line_separators(parse, found):
    rows = [
        '{"query": "a\u2028b", "document": "\\n\\n", "label": 1}',
        '{"query": "a", "document": "b", "label": 1}',
        "",
        '{"query": "a", "document": "c", "label": "?"}',
        '{"query": "a", "document": "d", "label": 1}',
        '{"query": "a", "document": "e", "label": 1}',
    ]

    parsed = parse({"x": "\n".join(rows)})

    assert found(parsed, "no_document").line == 1
    assert found(parsed, "bad_label").line == 4


def test_lines_of_a_json_list_are_true(parse, found):
    text = """[
  {"query": "a", "document": "b", "label": 1},

  {
    "query": "a",
    "document": "c",
    "label": null
  }, {"query": "a", "document": "d", "label": 1}, {"query": "a", "document": "e", "label": NaN}
]"""

    parsed = parse({"x": text})

    assert found(parsed, "no_label").line == 4
    assert found(parsed, "bad_label").line == 8
    assert len(parsed.qrels) == 2


def test_lines_of_a_list_inside_an_object_are_true(parse, found):
    text = """{
"meta": {"n": [1, 2]},
"rows": [
{"query": "a", "document": "b", "label": 1},
{"query": "a", "document": "c", "label": 1},
{"query": "", "document": "c", "label": 1}]
}"""

    assert found(parse({"x": text}), "no_query").line == 6


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"query": "a", "document": "b", "label": 1}\n{"query": "a", "docu', 2),
        ('{"query": "a"}\n\n{"query": "b",}\n{"query": "c"}', 3),
        ('[\n{"query": "a"},\n{"query": "b"\n', 3),
        ('[\n{"query": "a"}\n', 3),
        ('{"query": "a"}\n"text"\n', 2),
    ],
)
def test_broken_json_is_refused_as_a_whole_by_its_line(parse, text, line):
    with pytest.raises(FormatError, match="Nothing was read from the file") as refused:
        parse({"x.jsonl": text})
    assert (refused.value.file, refused.value.line) == ("x.jsonl", line)
    assert refused.value.remedy


def test_half_a_surrogate_pair_is_replaced_and_told(parse, found):
    parsed = parse({"x": '{"query": "a \\ud83d b", "document": "\\ud83d\\ude00", "label": 1}'})

    assert parsed.queries["text"].tolist() == ["a \ufffd b"]
    assert parsed.documents["text"].tolist() == ["😀"]
    assert found(parsed, "half_characters").count == 1


def test_nested_entries_of_a_reranker_tutorial(parse):
    entries = [
        {
            "query": "capital of France",
            "docs": ["Paris is", "Lyon is", "Rome is"],
            "true_scores": [3, 0.5, 0],
            "pred_scores": [0.2, 0.9, 0.1],
            "type": "geo",
        },
        {"query": "2 + 2", "docs": ["4", "Paris is"], "true_scores": [1, 0], "pred_scores": [9, 1]},
    ]

    parsed = parse({"tutorial.json": json.dumps(entries)})

    assert parsed.queries["text"].tolist() == ["capital of France", "2 + 2"]
    assert parsed.queries["type"].tolist() == ["geo", None]
    documents = dict(zip(parsed.documents["doc_id"], parsed.documents["text"], strict=True))
    assert documents == {"d1": "Paris is", "d2": "Lyon is", "d3": "Rome is", "d4": "4"}
    assert parsed.qrels["label"].tolist() == [3, 0.5, 0, 1, 0]
    # The scores are a system's; the order of `docs` is no first stage.
    assert parsed.candidates is None
    assert parsed.rankings["tutorial"].documents_of("q1")[0] == ["d2", "d1", "d3"]
    assert parsed.rankings["tutorial"].documents_of("q2")[0] == ["d4", "d1"]


def test_nested_documents_and_queries_as_objects(parse):
    entry = {
        "query": {"id": 4, "text": "gift"},
        "documents": [{"id": "x", "title": "T", "text": "one"}, {"id": "y", "text": "two"}],
        "labels": [1, 0],
        "initial_scores": [1, 2],
    }

    parsed = parse({"x": json.dumps({"data": [entry]})})

    assert parsed.queries.iloc[0].to_dict() == {"query_id": "4", "text": "gift"}
    assert parsed.documents["title"].tolist() == ["T", None]
    assert parsed.candidates.documents_of("4")[0] == ["y", "x"]


def test_nested_lists_of_different_length_are_refused_by_line(parse, found):
    good = '{"query": "a", "docs": ["x", "y"], "true_scores": [1, 0]}'
    bad = '{"query": "b", "docs": ["x", "y"], "true_scores": [1]}'
    empty = '{"query": "c", "docs": [], "true_scores": []}'

    parsed = parse({"x": "\n".join([good, bad, good.replace("a", "d"), empty])})

    assert parsed.queries["text"].tolist() == ["a", "d"]
    refused = found(parsed, "not_paired")
    assert (refused.line, refused.examples) == (2, ("docs 2, true_scores 1: b",))
    assert found(parsed, "no_documents").line == 4


def test_no_scores_at_all_are_none_for_each_document_and_no_labels_are_refused(parse, found):
    scored = '{"query": "a", "docs": ["x", "y"], "true_scores": [1, 0], "pred_scores": [0.1, 0.2]}'
    empty = '{"query": "b", "docs": ["x", "z"], "true_scores": [0, 1], "pred_scores": []}'
    bare = '{"query": "c", "docs": ["x", "z"], "true_scores": [], "pred_scores": [0.3, 0.1]}'

    parsed = parse({"x": "\n".join([scored, empty, bare])})

    assert parsed.queries["text"].tolist() == ["a", "b"]
    assert parsed.qrels["label"].tolist() == [1, 0, 0, 1]
    assert list(parsed.rankings["x"].query_ids) == ["q1"]
    assert (found(parsed, "not_paired").line, found(parsed, "not_paired").count) == (3, 1)


def test_a_null_among_nested_scores_refuses_only_its_row(parse, found):
    entry = '{"query": "a", "docs": ["x", "y", "z"], "true_scores": [1, null, 0]}'

    parsed = parse({"x": entry})

    assert found(parsed, "no_label").count == 1
    assert len(parsed.qrels) == 2


def test_booleans_are_labels(parse):
    parsed = parse(
        {
            "x": '{"query": "a", "document": "b", "relevant": true}\n'
            '{"query": "a", "document": "c", "relevant": false}'
        }
    )

    assert parsed.qrels["label"].tolist() == [1.0, 0.0]


def test_an_object_in_a_cell_is_kept_as_json(parse):
    parsed = parse({"x": '{"query": "a", "document": "b", "label": 1, "user": {"age": 3}}'})

    assert parsed.queries["user"].tolist() == ['{"age": 3}']


json_text = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text.strip())


@given(
    st.lists(st.tuples(json_text, st.floats(-5, 5)), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from([None, 2]),
)
def test_any_json_comes_back_as_it_was(rows, ascii_only, indent):
    records = [
        {"query_id": "q", "doc_id": f"id {i}", "document": text, "label": label}
        for i, (text, label) in enumerate(rows)
    ]
    data = json.dumps(records, ensure_ascii=ascii_only, indent=indent).encode()

    parsed = read([Source("x", data)])

    assert parsed.documents["text"].tolist() == [text for text, _ in rows]
    assert parsed.qrels["label"].tolist() == [label for _, label in rows]


def test_a_score_beside_a_label_inside_a_document_is_the_first_stage(parse, codes):
    docs = [{"text": "a", "label": 0, "score": 1}, {"text": "b", "label": 1, "score": 3}]

    parsed = parse({"x": json.dumps([{"query": "x", "docs": docs}])})

    assert parsed.candidates.documents_of("q1")[0] == ["d2", "d1"]
    assert parsed.qrels["label"].tolist() == [0, 1]
    assert "read_as" not in codes(parsed)


def test_a_lone_score_inside_a_document_is_settled_by_its_values_and_told(parse, found):
    docs = [{"text": "a", "score": 0}, {"text": "b", "score": 2}]

    parsed = parse({"x": json.dumps([{"query": "x", "docs": docs}])})

    assert parsed.qrels["label"].tolist() == [0, 2]
    assert found(parsed, "read_as").params == {"column": "score", "field": "label"}


def test_predictions_inside_documents_are_a_system(parse):
    docs = [
        {"text": "a", "label": 0, "pred_score": 0.1},
        {"text": "b", "label": 1, "pred_score": 0.9},
    ]

    parsed = parse({"x": json.dumps([{"query": "x", "docs": docs}])})

    assert parsed.rankings["x"].documents_of("q1")[0] == ["d2", "d1"]


@pytest.mark.parametrize("key", ["scores", "score"])
def test_a_list_of_scores_beside_a_list_of_labels_is_the_first_stage(parse, key):
    entry = {"query": "x", "docs": ["a", "b"], key: [1, 3], "labels": [0, 1]}

    parsed = parse({"x": json.dumps([entry])})

    assert parsed.candidates.documents_of("q1")[0] == ["d2", "d1"]
    assert parsed.qrels["label"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("relevant", "other"),
    [
        ("pos", "neg"),
        ("positive", "negative"),
        ("positives", "negatives"),
        ("positive_passages", "negative_passages"),
    ],
)
@pytest.mark.parametrize("form", [str, lambda text: {"docid": f"id {text}", "text": text}])
def test_training_data_with_a_list_for_each_side(parse, relevant, other, form):
    entries = [
        {"query": "x", other: [form("c")], relevant: [form("a"), form("b")], "kind": "k"},
        {"query": "y", other: [form("a")], relevant: [form("c")], "kind": "k"},
    ]

    parsed = parse({"x.jsonl": "\n".join(map(json.dumps, entries))})

    texts = parsed.documents.set_index("doc_id")["text"]
    labels = list(zip(parsed.qrels["doc_id"].map(texts), parsed.qrels["label"], strict=True))
    assert labels == [("a", 1), ("b", 1), ("c", 0), ("c", 1), ("a", 0)]
    assert parsed.queries["kind"].tolist() == ["k", "k"]
    assert parsed.candidates is None


def test_scores_of_training_data_go_through_the_relevant_documents_first(parse):
    together = {"query": "x", "neg": ["c"], "pos": ["a", "b"], "pred_scores": [0.1, 0.3, 0.2]}
    apart = {"query": "y", "pos": ["a"], "neg": ["c"], "pos_scores": [1.5], "neg_scores": [2.5]}

    by_text = {}
    for entry in (together, apart):
        parsed = parse({"x.json": json.dumps([entry])})
        texts = parsed.documents.set_index("doc_id")["text"]
        ranked, _ = parsed.rankings["x"].documents_of("q1")
        by_text[entry["query"]] = [texts[doc] for doc in ranked]

    assert by_text == {"x": ["b", "c", "a"], "y": ["c", "a"]}


def test_triplets_of_single_texts(parse):
    entry = {"query": "x", "positive": "a", "negative": "b"}

    assert parse({"x.json": json.dumps([entry])}).qrels["label"].tolist() == [1, 0]


def test_a_list_is_never_a_rank(parse):
    rows = [{"query": "x", "document": text, "label": 1, "pos": [1, 2]} for text in ("a", "b", "c")]

    parsed = parse({"x.json": json.dumps(rows)})

    assert len(parsed.qrels) == 3
    assert parsed.candidates is None


def test_a_line_is_named_once_for_all_its_entries(parse, found):
    docs = [{"text": f"t{i}", "label": "?" if i < 3 else 1} for i in range(9)]

    parsed = parse({"x.json": json.dumps([{"query": "x", "docs": docs}])})

    assert found(parsed, "bad_label").params == {"count": 3, "lines": "1", "rows": 9}
