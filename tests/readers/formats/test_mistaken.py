"""Rows that look like the entries of a tool, and entries in which documents repeat."""

import json

import pytest

from rankdash.core.base.errors import DataError
from tests.readers.reading import parse

QRELS = [("d1", 1), ("d2", 0)]


def rows(**values: object) -> str:
    entries = [{"query": "a", "doc_id": doc, "label": label, **values} for doc, label in QRELS]
    return json.dumps(entries)


def span(kind: str, **lists: list[dict[str, object]]) -> dict[str, object]:
    attributes: dict[str, object] = {"openinference.span.kind": kind, "input.value": "a"}
    for name, documents in lists.items():
        for at, document in enumerate(documents):
            for field, value in document.items():
                attributes[f"{name.replace('__', '.')}.{at}.document.{field}"] = value
    return {"name": "model", "span_id": kind, "attributes": attributes}


def ranked(parsed, system: str) -> list[str]:
    (query,) = parsed.rankings[system].query_ids
    return list(parsed.rankings[system].documents_of(query)[0])


@pytest.mark.parametrize(
    "values",
    [
        {"spans": [{"start": 1, "end": 3}]},
        {"ratings": {"helpful": 5, "clear": 3}},
        {"user_query": "a", "query_attributes": {}},
    ],
)
def test_rows_with_labels_are_no_entries_of_a_tool(values: dict[str, object]):
    qrels = parse({"a.json": rows(**values)}).qrels
    assert list(zip(qrels["doc_id"], qrels["label"], strict=True)) == QRELS


def test_documents_of_a_retriever_with_labels_are_not_read_without_them():
    text = "context.span_id,document_position,input,document,document_score,label\n"
    rows = "1,0,a,text a,0.9,1\n1,1,a,text b,0.8,0\n"
    with pytest.raises(DataError, match="label = label"):
        parse({"a.csv": text + rows})


def test_an_index_beside_an_id_is_a_position():
    results = [{"index": at, "doc_id": f"d{at}", "score": 1 / (at + 1)} for at in range(2)]
    parsed = parse({"a.json": json.dumps({"query": "a", "results": results})})
    assert set(parsed.documents["doc_id"]) == {"d0", "d1"}


@pytest.mark.parametrize("cell", ["['d1' 'd2']", "['d1'\n 'd2']", "['d1', 'd2' \"d3\"]"])
def test_an_array_without_commas_is_refused(cell: str):
    quoted = cell.replace('"', '""')
    with pytest.raises(DataError, match="a document id is neither a text nor a number"):
        parse({"qa.csv": f'qid,query,retrieval_gt\n1,a,"{quoted}"\n'})


def test_a_reranked_text_is_the_document_with_this_text():
    before = [{"id": "d1", "content": "x"}, {"id": "d2", "content": "y"}]
    after = [{"content": "y"}, {"content": "x"}]
    lists = {"reranker__input_documents": before, "reranker__output_documents": after}
    parsed = parse({"a.json": json.dumps([span("RERANKER", **lists)])})
    assert ranked(parsed, "a/model") == ["d2", "d1"]


@pytest.mark.parametrize(
    "entry",
    [
        span("RETRIEVER", retrieval__documents=[{"id": each} for each in ("d1", "d1", "d2")]),
        {"query": "a", "retrieved_ids": ["d1", "d1", "d2"], "retrieve_scores": [3, 2, 1]},
        {"user_query": "a", "query_response_hit_ids": ["d1", "d1", "d2"]},
        {"queryText": "a", "snapshots": [{"docIds": ["d1", "d1", "d2"]}]},
    ],
)
def test_a_document_that_a_ranking_repeats_is_named(entry: dict[str, object]):
    parsed = parse({"a.json": json.dumps([entry])})
    (query,) = parsed.candidates.query_ids
    assert list(parsed.candidates.documents_of(query)[0]) == ["d1", "d2"]
    (finding,) = [each for each in parsed.findings if each.code == "repeated_documents"]
    assert finding.count == 1


def test_a_retriever_with_the_name_of_a_reranker_is_another_system():
    found = [{"id": "d1"}, {"id": "d3"}]
    lists = {"reranker__input_documents": [{"id": "d1"}, {"id": "d2"}]}
    lists["reranker__output_documents"] = [{"id": "d2"}, {"id": "d1"}]
    entries = [span("RERANKER", **lists), span("RETRIEVER", retrieval__documents=found)]
    parsed = parse({"a.json": json.dumps(entries)})
    assert ranked(parsed, "a/model") == ["d2", "d1"]
    assert ranked(parsed, "a/model retriever") == ["d1", "d3"]


def test_a_configuration_with_the_id_of_another_as_its_name_is_not_renamed():
    snapshots = [
        {"searchConfigurationId": each, "docIds": docs}
        for each, docs in (("a", ["d1"]), ("b", ["d2"]))
    ]
    results = [{"queryText": "q", "snapshots": snapshots}]
    configurations = [{"id": "a", "name": "b", "index": "i", "query": "x"}]
    parsed = parse({"e.json": json.dumps(results), "c.json": json.dumps(configurations)})
    assert ranked(parsed, "e/b") == ["d2"]


def test_spans_with_a_name_for_each_query_are_refused():
    first = span("RETRIEVER", retrieval__documents=[{"id": "d1"}])
    entries = [{**first, "name": f"search {at}", "span_id": str(at)} for at in range(101)]
    for at, each in enumerate(entries):
        each["attributes"] = {**first["attributes"], "input.value": f"query {at}"}
    with pytest.raises(DataError, match="have 101 names") as refused:
        parse({"a.json": json.dumps(entries)})
    assert refused.value.file == "a.json"
    assert len(parse({"a.json": json.dumps(entries[:100])}).rankings) == 99


def test_rerankers_with_different_inputs_are_reported():
    def reranker(name: str, *documents: str) -> dict[str, object]:
        listed = [{"id": each} for each in documents]
        lists = {"reranker__input_documents": listed, "reranker__output_documents": listed[::-1]}
        return {**span("RERANKER", **lists), "name": name, "span_id": name}

    def warned(*entries: dict[str, object]) -> list[str]:
        findings = parse({"a.json": json.dumps(entries)}).findings
        return [each.code for each in findings if each.severity == "warning"]

    assert warned(reranker("m", "d1", "d2"), reranker("n", "d1", "d3")) == ["different_inputs"]
    assert warned(reranker("m", "d1", "d2"), reranker("n", "d2", "d1")) == []
