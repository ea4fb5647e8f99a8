"""Exports of AutoRAG, OpenSearch, UBI, Quepid and OpenInference: the values that are read, and the
errors of broken ones by file, line and remedy."""

import json

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.errors import DataError
from rankdash.core.readers import Source
from rankdash.core.readers.loading import load
from rankdash.core.readers.logs import Log
from tests.readers.reading import shown, sources, zipped
from tests.readers.samples import lines, parquet, shape

RATED = "query,doc_id,label\nlaptop,d1,2\nlaptop,d2,0\nshoes,d3,1\n"

QA = [
    {
        "qid": "a7",
        "query": "laptop",
        "retrieval_gt": [["d1", "d3"], ["d2"]],
        "generation_gt": ["x"],
    },
    {"qid": "b8", "query": "shoes", "retrieval_gt": [["d3"]], "generation_gt": ["y"]},
]
CORPUS = [
    {"doc_id": f"d{at}", "contents": f"text {at}", "metadata": {"next_id": None, "year": "2024"}}
    for at in (1, 2, 3)
]
RESULTS = [
    {"retrieved_contents": ["text 2", "text 1"], "retrieved_ids": ["d2", "d1"],
     "retrieve_scores": [0.9, 0.1], "retrieval_f1": 0.5},
    {"retrieved_contents": ["text 3"], "retrieved_ids": ["d3"], "retrieve_scores": [0.8],
     "retrieval_f1": 1.0},
]  # fmt: skip
BEST = [{**question, **result} for question, result in zip(QA, RESULTS, strict=True)]
NODES = [
    {**each, **{
        f"{name}_{node}": each[name][:: 1 if node == "lexical" else -1]
        for node in ("lexical", "semantic")
        for name in ("retrieved_contents", "retrieved_ids", "retrieve_scores")
    }}
    for each in BEST
]  # fmt: skip


def broken(rows, at=0, **cells):
    """Return the rows with other cells in one row."""
    return [{**row, **cells} if place == at else row for place, row in enumerate(rows)]


def test_autorag(approved):
    data = {"data/qa.parquet": parquet(QA), "data/corpus.parquet": parquet(CORPUS)}
    texts = pd.DataFrame(QA).assign(retrieval_gt=["d1", "d3"], generation_gt="x")
    cases = {
        "labels of questions, and a corpus": data,
        "results with their questions": {**data, "bm25/best_0.parquet": parquet(BEST)},
        "results without questions have those of the rows of qa": {
            **data, "retrieval/0.parquet": parquet(RESULTS), "reranker/0.parquet": parquet(RESULTS)
        },
        "results of several nodes": {"best_0.parquet": parquet(NODES)},
        "one id is a text, in Parquet and CSV": {
            "qa.parquet": parquet(texts.to_dict("records")), "qa.csv": texts.to_csv(index=False)
        },
        "a CSV file with lists": {"qa.csv": pd.DataFrame(QA).to_csv(index=False)},
        "ids that are numbers": {"qa.parquet": parquet([{**QA[0], "retrieval_gt": [[1, 2]]}])},
        "scores that rise with the ranks are not used": {
            "best.parquet": parquet(broken(BEST, retrieve_scores=[0.1, 0.9]))
        },
        "a question without relevant documents": {
            "best.parquet": parquet(broken(BEST, retrieval_gt=[]))
        },
    }  # fmt: skip
    approved("readers/autorag.en", shown(cases))


def test_broken_files_of_autorag(approved):
    data = {"qa.parquet": parquet(QA), "corpus.parquet": parquet(CORPUS)}
    numbered = pd.DataFrame({"qid": ["a"] * 5, "query": list("abcde"), "retrieval_gt": [["d"]] * 5})
    infinite = [np.inf, 0.1]
    cases = {
        "results without any questions": {"0.parquet": parquet(RESULTS)},
        "results in JSON": {"0.json": shape(RESULTS)},
        "results with fewer rows": {**data, "0.parquet": parquet(RESULTS[:1])},
        "two files of questions": {
            **data, "0.parquet": parquet(RESULTS),
            "qa_2.parquet": parquet([{**each, "qid": f"{each['qid']}x"} for each in QA]),
        },
        "a score that is not finite": {
            "best.parquet": parquet(broken(NODES, retrieve_scores=[np.nan, 0.5]))
        },
        "an infinite score in one of three rows": {
            "best.parquet": parquet(broken([*BEST, BEST[0]], 2, qid="c", retrieve_scores=infinite))
        },
        "scores of another number": {"best.parquet": parquet(broken(BEST, retrieve_scores=[1.0]))},
        "texts of another number": {"best.parquet": parquet(broken(BEST, retrieved_contents=[]))},
        "objects in place of ids": {
            "qa.parquet": parquet([{**each, "retrieval_gt": [[{"id": "d1"}]]} for each in QA])
        },
        "objects in place of texts": {
            "best.parquet": parquet([{**BEST[0], "retrieved_contents": [{"a": 1}, {"a": 2}]}])
        },
        "lists of lists of lists": {
            "qa.parquet": parquet([{**each, "retrieval_gt": [[["d1"]]]} for each in QA])
        },
        "a list that no program wrote": {
            "qa.csv": "qid,query,retrieval_gt\na,laptop,[array(['d1'])]\nb,shoes,['d1']\n"
            "c,boots,['d1']\n"
        },
        "the same id for every question": {"qa.parquet": parquet(numbered.to_dict("records"))},
        "no id and no text of the question": {
            "qa.parquet": parquet([*QA, *QA, {**QA[0], "query": None, "qid": None}])
        },
    }  # fmt: skip
    approved("readers/autorag_broken.en", shown(cases))


def snapshots(**ids):
    return [{"searchConfigurationId": name, "docIds": docs} for name, docs in ids.items()]


PAIRWISE = {
    "id": "e1", "type": "PAIRWISE_COMPARISON", "status": "COMPLETED", "querySetId": "s",
    "searchConfigurationList": ["c1", "c2"], "judgmentList": [], "size": 10,
    "results": [
        {"queryText": "laptop", "snapshots": snapshots(c1=["d1", "d2"], c2=["d2", "d1"]),
         "metrics": [{"metric": "jaccard", "value": 1.0}]},
        {"query_text": "shoes", "snapshots": snapshots(c1=["d3"], c2=[]), "metrics": []},
    ],
}  # fmt: skip
JUDGED = {
    "name": "J", "judgmentRatings": [
        {"query": "laptop", "ratings": [{"docId": "d1", "rating": "2.0"}],
         "failures": [{"docId": "d2"}, {"docId": "d3"}]},
        {"query": "shoes", "ratings": [{"docId": "d3", "rating": "1.0"}]},
    ],
}  # fmt: skip
CONFIGURATIONS = [
    {"id": "c1", "name": "BM25", "index": "i", "query": "{}"},
    {"id": "c2", "name": "hybrid / 2", "index": "i", "query": "{}"},
]


def hits(*documents):
    return {"took": 1, "hits": {"hits": [{"_id": "x", "_source": each} for each in documents]}}


def evaluation(query, name, ids, **more):
    return {"id": f"{query}{name}", "timestamp": "2026-01-01", "searchConfigurationId": name,
            "searchText": query, "documentIds": ids, "metrics": [], **more}  # fmt: skip


def test_opensearch(approved):
    rated = {"judgments.json": shape(JUDGED)}
    results = [
        evaluation("laptop", "c1", ["d1", "d2"]), evaluation("shoes", "c1", ["d3"]),
        evaluation("laptop", "c1", ["d2", "d1"], timestamp="2026-02-01"),
    ]  # fmt: skip
    pointwise = {**PAIRWISE, "type": "POINTWISE_EVALUATION", "results": [
        {"evaluationId": "x", "searchConfigurationId": "c1", "queryText": "laptop"}]}  # fmt: skip
    wrong = {**PAIRWISE, "results": [
        {"queryText": {"text": "laptop"}, "snapshots": snapshots(c1=["d1"])},
        {"queryText": "shoes", "snapshots": [{"docIds": {"d1": 1}}, "c1"]},
    ]}  # fmt: skip
    cases = {
        "documents that a judge could not rate": rated,
        "a pairwise experiment": {"e.json": shape(PAIRWISE), **rated},
        "the answer of the plugin": {"e.json": shape(hits(PAIRWISE)), **rated},
        "with the names of search configurations": {
            "e.json": shape(PAIRWISE), "c.json": shape(hits(*CONFIGURATIONS)), **rated
        },
        "evaluation results of one configuration, the latest of each": {
            "e.json": shape(hits(*results)), **rated
        },
        "evaluation results as lines": {
            "e.jsonl": lines([{"_source": each} for each in results]), **rated
        },
        "a query set": {
            "q.json": shape({"name": "Q", "sampling": "manual", "querySetQueries": [
                {"queryText": "laptop"}, {"queryText": "boots", "referenceAnswer": "x"}]}),
            **rated,
        },
        "a pointwise experiment has no documents": {"e.json": shape(pointwise), **rated},
        "a failed experiment": {
            "e.json": shape({**PAIRWISE, "status": "ERROR", "results": [{"error": "no index"}]})
        },
        "objects in place of the query and of the ids": {"e.json": shape(wrong)},
        "search configurations alone": {"c.json": shape(CONFIGURATIONS)},
    }  # fmt: skip
    approved("readers/opensearch.en", shown(cases))


SEARCHES = [
    {"application": "a", "query_id": "u1", "client_id": "c", "user_query": "laptop",
     "query_attributes": {"a": 1}, "timestamp": "2026-01-01T00:00:00Z", "query": "{}",
     "query_response_hit_ids": ["d1", "d2"]},
    {"query_id": "u2", "user_query": "shoes", "timestamp": "2026-01-01T00:00:00Z",
     "query_response_hit_ids": ["d3"]},
    {"query_id": "u3", "user_query": "laptop", "timestamp": "2026-01-02T00:00:00Z",
     "query_response_hit_ids": ["d2", "d1"]},
]  # fmt: skip
CLICKS = [
    {"action_name": "click", "query_id": "u1", "user_query": "laptop", "timestamp": "t",
     "event_attributes": {"object": {"object_id": "d2"}, "position": {"ordinal": 1}}},
]  # fmt: skip


def test_searches_and_events_of_users(approved):
    rated = {"labels.csv": RATED}
    searches, clicks = {"ubi_queries.ndjson": lines(SEARCHES)}, {"events.ndjson": lines(CLICKS)}
    bulk = [{"index": {"_index": "ubi_queries", "_id": "x"}}, SEARCHES[0],
            {"index": {"_index": "ubi_events"}}, CLICKS[0]]  # fmt: skip
    flat = "action_name,query_id,user_query,object_id,position\nclick,u1,laptop,d2,1\n"
    without = [{**each, "query_response_hit_ids": []} for each in SEARCHES]
    cases = {
        "the hits are a ranking, the latest of a query": {**searches, **rated},
        "an index as an answer": {"q.json": shape(hits(*SEARCHES)), **rated},
        "a bulk request": {"bulk.ndjson": lines(bulk), **rated},
        "events are not read": {**searches, **clicks, **rated},
        "nor in CSV": {**searches, "events.csv": flat, **rated},
        "events alone": clicks,
        "events in CSV alone": {"events.csv": flat},
        "searches without hits are queries": {"q.ndjson": lines(without), **rated},
        "a search without hits among others": {
            "q.ndjson": lines([*SEARCHES, {**without[0], "user_query": "boots"}]), **rated
        },
        "objects in place of the query and of an id": {
            "q.ndjson": lines([
                *SEARCHES, {**SEARCHES[1], "user_query": {"a": 1}},
                {**SEARCHES[1], "user_query": "hat", "query_response_hit_ids": [{"id": 1}]},
            ]),
            **rated,
        },
    }  # fmt: skip
    approved("readers/ubi.en", shown(cases))


def test_events_are_not_searches_of_a_log(tmp_path):
    file = tmp_path / "log.ndjson"
    file.write_bytes(lines([*SEARCHES, *CLICKS, {"_source": CLICKS[0]}]))
    log = Log(file)
    queries = [query for piece in log.pieces() for query in piece.queries.to_pylist()]
    assert (queries, log.skipped) == (["laptop", "shoes", "laptop"], 2)


def pair(doc, *ratings, **more):
    given = [{"rating": rating, "user_email": email} for email, rating in ratings]
    return {"query_text": "laptop", "doc_id": doc, "position": 1, "judgements": given, **more}


def test_quepid_in_json(approved):
    ratings = {"queries": [
        {"query": "laptop", "ratings": {"d1": 3.0, "d2": 0}}, {"query": "shoes", "ratings": {}}
    ]}  # fmt: skip
    case = {"case_name": "C", "scorer": {"scale": [0, 1]}, "queries": [
        {"query_text": "laptop", "information_need": "a cheap one", "options": {},
         "ratings": [{"doc_id": "d1", "rating": 3.0}, {"doc_id": "d2", "rating": None}]},
        {"query_text": "shoes", "ratings": [{"doc_id": "d3", "rating": 1.0}]},
    ]}  # fmt: skip
    snapshot = {
        "id": 1, "name": "S", "time": "2026",
        "docs": {"7": [
            {"id": "d2", "rated_only": False, "fields": {"title": "Two", "b": "b", "n": {"a": 1}}},
            {"id": "d1", "rated_only": False, "fields": None},
            {"id": "d3", "rated_only": True, "fields": {"title": "Three"}},
        ]},
        "queries": [{"query_id": 7, "query_text": "laptop", "ratings": {"d1": 3, "d3": 1}}],
        "scores": [{"query_id": 7, "score": 1}],
    }  # fmt: skip
    book = {"name": "B", "query_doc_pairs": [
        pair("d1", ("a@x", 3), ("b@x", 1), document_fields='{"title": "One", "text": "a laptop"}'),
        pair("d2", ("a@x", 0), document_fields="{broken"),
        pair("d3", ("a@x", None), document_fields={"title": "Three"}),
    ]}  # fmt: skip
    listed = {"query": "a", "ratings": [{"doc_id": {"x": 1}, "rating": 1}]}
    cases = {
        "ratings": {"ratings.json": shape(ratings)},
        "ratings of which most are missing, in CSV": {
            "basic.csv": "query,docid,rating\nlaptop,d1,3.0\nshoes,,\nhat,,\nboots,,\nsocks,,"
        },
        "a case": {"case.json": shape(case)},
        "a snapshot has results, and rated documents that are not results": {
            "snapshot.json": shape(snapshot)
        },
        "a book has several raters": {"book.json": shape(book)},
        "a book in its archive": {"book.json.zip": zipped({"book.json": shape(book)})},
        "queries without ratings": {"case.json": shape({"queries": [{**case["queries"][0],
            "ratings": []}]})},
        "a book without ratings": {"book.json": shape({"query_doc_pairs": [pair("d1")]})},
        "words in place of ratings": {
            "r.json": shape({"queries": [
                {"query": f"query {at}", "ratings": {"d1": rating}}
                for at, rating in enumerate((1, "good", {"x": 1}, 0, 2))
            ]})
        },
        "objects in place of ids": {"r.json": shape({"queries": [listed, listed]})},
        "a rating of a book that is an object": {
            "b.json": shape({"query_doc_pairs": [pair("d1", ("a", {})), pair("d2", ("a", 1))]})
        },
    }  # fmt: skip
    approved("readers/quepid.en", shown(cases))


def documents(name, *docs):
    """Return attributes of OpenInference: (id, content, score) of each document."""
    return {
        f"{name}.{at}.document.{field}": value
        for at, doc in enumerate(docs)
        for field, value in zip(("id", "content", "score"), doc, strict=False)
        if value is not None
    }


def span(identity, kind, query, error="", seconds=1.0, name="", **attributes):
    """Return a span as the exporter of OpenTelemetry writes it to the console."""
    asked = {"reranker.query" if kind == "RERANKER" else "input.value": query}
    return {
        "name": name or kind.title(), "context": {"trace_id": f"t{identity}", "span_id": identity},
        "start_time": f"2026-01-01T00:00:{identity[-1]}0Z",
        "end_time": f"2026-01-01T00:00:{identity[-1]}{seconds:.6f}Z",
        "status": {"status_code": "ERROR", "description": error} if error else {},
        "attributes": {"openinference.span.kind": kind, **asked, **attributes},
    }  # fmt: skip


def otlp(*spans):
    def value(each):
        return {"doubleValue": each} if isinstance(each, float) else {"stringValue": each}

    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [
        {
            "traceId": each["context"]["trace_id"], "spanId": each["context"]["span_id"],
            "name": each["name"], "startTimeUnixNano": "1700000000000000000",
            "endTimeUnixNano": "1700000000250000000",
            "attributes": [{"key": k, "value": value(v)} for k, v in each["attributes"].items()],
            "status": {"code": 2, "message": "late"} if each["status"] else {},
        }
        for each in spans
    ]}]}]}  # fmt: skip


FOUND, BEFORE, AFTER = (
    "retrieval.documents", "reranker.input_documents", "reranker.output_documents"
)  # fmt: skip
TWO = (("d1", "one", 0.9), ("d2", "two", 0.8))
SPANS = [
    span("s1", "RETRIEVER", "laptop", **documents(FOUND, *TWO)),
    span("s2", "RERANKER", "laptop", **{"reranker.model_name": "bge"},
         **documents(BEFORE, *TWO), **documents(AFTER, ("d2", "two", 0.7), ("d1", "one", 0.2))),
    span("s3", "RETRIEVER", "shoes", **documents(FOUND, ("d3", "three", 0.5))),
    span("s4", "RERANKER", "shoes", "timeout", **{"reranker.model_name": "bge"},
         **documents(BEFORE, ("d3", "three", 0.5))),
    span("s5", "LLM", "laptop"),
]  # fmt: skip


def frame(*spans):
    """Return rows as in a data frame of Phoenix."""
    rows = []
    for each in spans:
        attributes = dict(each["attributes"])
        rows.append({
            "context.span_id": each["context"]["span_id"], "name": each["name"],
            "span_kind": attributes["openinference.span.kind"],
            "start_time": pd.Timestamp("2026-01-01T00:00:00Z"),
            "end_time": pd.Timestamp("2026-01-01T00:00:00.2Z"),
            "status_code": each["status"].get("status_code", "OK"), "events": [],
            "attributes.input.value": attributes.get("input.value"),
            "attributes.reranker.query": attributes.get("reranker.query"),
            **{f"attributes.{name}": [
                {f"document.{field}": attributes.get(f"{name}.{at}.document.{field}")
                 for field in ("id", "content", "score")}
                for at in range(9) if f"{name}.{at}.document.id" in attributes
            ] or None for name in (FOUND, BEFORE, AFTER)},
        })  # fmt: skip
    return rows


def test_spans(approved):
    rated = {"labels.csv": RATED}
    texts = [span("s1", "RETRIEVER", "laptop", **documents(FOUND, (None, "one"), (None, "two")))]
    named = [
        span("s1", "RETRIEVER", "laptop", name=name, **documents(FOUND, *docs))
        | {"context": {"span_id": name}}
        for name, docs in (("bm25", TWO), ("dense", TWO[::-1]))
    ]
    asked = [json.dumps({"query_str": "laptop"}), "[laptop]"]
    exploded = (
        "context.span_id,document_position,context.trace_id,input,document,document_score\n"
        "s1,1,t,laptop,two,0.8\ns1,0,t,laptop,one,0.9\ns2,0,t,shoes,three,\n"
    )
    cases = {
        "the input of a reranker is the first stage, its output a system": {
            "spans.json": shape(SPANS), **rated
        },
        "one after the other": {"spans.json": b"\n".join(map(shape, SPANS)), **rated},
        "OTLP": {"otlp.json": shape(otlp(*SPANS)), **rated},
        "OTLP as lines": {"otlp.jsonl": lines([otlp(*SPANS[:2]), otlp(*SPANS[2:])]), **rated},
        "a page of Phoenix": {"p.json": shape({"data": SPANS, "next_cursor": None}), **rated},
        "a data frame of Phoenix": {"spans.parquet": parquet(frame(*SPANS)), **rated},
        "and as CSV": {"spans.csv": pd.DataFrame(frame(*SPANS)).to_csv(index=False), **rated},
        "a retriever alone is the first stage": {"spans.json": shape(SPANS[:1]), **rated},
        "two retrievers are two systems": {"spans.json": shape(named), **rated},
        "documents without ids are known by their texts": {"spans.json": shape(texts)},
        "rows of documents": {"documents.csv": exploded, **rated},
        "a query in the JSON of an input": {"spans.json": shape([
            span(f"s{at}", "RETRIEVER", each, **documents(FOUND, *TWO))
            for at, each in enumerate(asked, 1)
        ])},
        "a span twice, and a query twice": {"spans.json": shape([
            *SPANS[:1], *SPANS[:1], span("s6", "RETRIEVER", "laptop", **documents(FOUND, *TWO[1:]))
        ])},
    }  # fmt: skip
    approved("readers/spans.en", shown(cases))


def test_broken_spans(approved):
    other = span("s7", "RETRIEVER", "shoes", **documents(FOUND, ("d3", "three")))
    more = [other, span("s8", "RETRIEVER", "boots", **documents(FOUND, ("d3", "three")))]

    def among(**attributes):
        return {"s.json": shape([span("s1", "RETRIEVER", "laptop", **attributes), *more])}

    cases = {
        "no span of a retriever or reranker": {"s.json": shape([SPANS[4]])},
        "all failed": {"s.json": shape([span("s1", "RETRIEVER", "laptop", "no index"), SPANS[4]])},
        "a failed retriever": {
            "s.json": shape([span("s1", "RETRIEVER", "laptop", "no index"), *more])
        },
        **{
            f"the score {score}": among(**documents(FOUND, ("d1", "one", score)))
            for score in (float("nan"), float("inf"), "Infinity")
        },
        "a score that is a word": among(**documents(FOUND, ("d1", "one", "high"))),
        "no id and no text": among(**documents(FOUND, (None, None, 0.5))),
        "an object in place of the text": among(**documents(FOUND, ("d1", {"a": 1}))),
        "an object in place of the documents": among(**{FOUND: {"a": 1}}),
        "texts in place of documents": among(**{FOUND: ["one", "two"]}),
        "an object in place of the query": {
            "s.json": shape([span("s1", "RETRIEVER", {"a": 1}, **documents(FOUND, *TWO)), *more])
        },
        "no query": {
            "s.json": shape([span("s1", "RETRIEVER", None, **documents(FOUND, *TWO)), *more])
        },
        "no documents": among(),
        "a cell that is no list": {
            "s.csv": "span_kind,attributes.input.value,attributes.retrieval.documents\n"
            "RETRIEVER,laptop,[array({'document.id': 'd1'})]\n"
            "RETRIEVER,shoes,\"[{'document.id': 'd1'}]\"\n"
            "RETRIEVER,boots,\"[{'document.id': 'd1'}]\"\n"
        },
        "scopes nested without end": {
            "s.json": json.dumps({"resourceSpans": [{"scopeSpans": [{"scopeSpans": []}]}]})
        },
    }  # fmt: skip
    approved("readers/spans_broken.en", shown(cases))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("spans.json", shape(SPANS)),
        ("spans.parquet", parquet(frame(*SPANS))),
        ("spans.json", shape(otlp(*SPANS))),
    ],
)
def test_a_reranker_has_latencies_and_a_failed_span_is_a_failed_query(name, content):
    [run] = load(sources({name: content, "labels.csv": RATED})).runs
    queries = run.queries.set_index("query_id")
    texts = load(sources({name: content, "labels.csv": RATED})).dataset.queries
    ids = dict(zip(texts["text"], texts["query_id"], strict=True))
    assert queries["state"].to_dict() == {ids["laptop"]: "done", ids["shoes"]: "failed"}
    assert round(queries["latency_ms"][ids["laptop"]]) in (1000, 200, 250)
    assert run.ranking.query_ids == [ids["laptop"]]


def test_a_file_of_spans_is_read_in_its_archive():
    archive = zipped({"spans.json": shape(SPANS), "labels.csv": RATED.encode()})
    loaded = load([Source("export.zip", archive)])
    assert list(loaded.rankings) == ["spans/bge"]
    assert loaded.report.labels == 3


@pytest.mark.parametrize(
    "more",
    [
        {"context": "x", "attributes": {"color": "red"}},
        {"action_name": "click", "query_id": "q1"},
        {"id": 1, "name": "x", "index": 0},
        {"searchText": "x", "timestamp": "2026"},
        {"user_query": "x"},
    ],
)
def test_rows_with_a_column_of_a_tool_are_rows(more):
    rows = [{"query": "a b", "document": f"x {at}", "label": at, **more} for at in (0, 1)]
    assert load([Source("rows.jsonl", lines(rows))]).report.labels == 2


def test_other_lists_beside_retrieval_gt_are_not_ignored():
    rows = [{"query": "a", "retrieval_gt": [["d1"]], "retrieved": ["d1"]}]
    with pytest.raises(DataError):
        load([Source("rows.jsonl", lines(rows))])


def test_the_retriever_of_a_first_stage_has_latencies_and_failures():
    failed = span("s6", "RETRIEVER", "boots", "no index")
    found = span("s1", "RETRIEVER", "laptop", seconds=0.5, **documents(FOUND, *TWO))
    rated = f"{RATED}boots,d1,1\n"
    loaded = load(sources({"spans.json": shape([found, failed]), "labels.csv": rated}))
    timings = loaded.dataset.timings.merge(loaded.dataset.queries, on="query_id")
    states = timings.set_index("text")["state"]
    assert states.to_dict() == {"laptop": "done", "boots": "failed"}
    assert round(timings.set_index("text")["latency_ms"]["laptop"]) == 500
