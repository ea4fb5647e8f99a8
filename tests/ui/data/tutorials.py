"""Worked examples of tutorials and documentation of other tools, as files that users drop on Data.

An example contains the values that its tutorial shows, or that follow from its labels and ranks.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Example:
    """files: name → content. values: metric → the mean of the first stage. queries, documents: the
    ids in the data set, or the texts if the files have no ids. other: system → metric → mean of a
    second ranking."""

    tool: str
    files: Mapping[str, str]
    values: Mapping[str, float] = field(default_factory=dict)
    queries: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    other: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(*rows: Any) -> str:
    return "".join(_json(row) + "\n" for row in rows)


GRADES, FIRST, SECOND = [[10, 0, 0, 1, 5]], [[0.1, 0.2, 0.3, 4, 70]], [[0.05, 1.1, 1.0, 0.5, 0.0]]
RANX = (
    {"q_1": {"d_12": 5, "d_25": 3}, "q_2": {"d_11": 6, "d_22": 1}},
    {
        "q_1": {"d_12": 0.9, "d_23": 0.8, "d_25": 0.7, "d_36": 0.6, "d_32": 0.5, "d_35": 0.4},
        "q_2": {"d_12": 0.9, "d_11": 0.8, "d_25": 0.7, "d_36": 0.6, "d_22": 0.5, "d_35": 0.4},
    },
)
CAPITALS = (
    "Carson City is the capital city of the American state of Nevada.",
    "The Commonwealth of the Northern Mariana Islands is a group of islands in the Pacific Ocean.",
    "Capitalization in English grammar is the use of a capital letter at the start of a word.",
    "Washington, D.C. is the capital of the United States.",
    "Capital punishment has existed in the United States since before it was a country.",
)
CAPITAL = "What is the capital of the United States?"
SKIN = (
    "Organic skincare for sensitive skin with aloe vera and chamomile.",
    "New makeup trends focus on bold colors and innovative techniques.",
    "Bio-Hautpflege für empfindliche Haut mit Aloe Vera und Kamille.",
)
APPLES = (
    "Apple is a popular fruit known for its sweetness and crisp texture.",
    "Many people enjoy eating apples as a healthy snack.",
    "Apple Inc. has revolutionized the tech industry with its sleek designs.",
)
DIET = (
    "The Mediterranean diet emphasizes fish, olive oil, and vegetables.",
    "Photosynthesis in plants converts light energy into glucose.",
    "Apple's conference call to discuss fourth fiscal quarter results is scheduled.",
)


def _pairs(query: str, texts: tuple[str, ...], relevant: int) -> str:
    """Return a table of labels, which services do not return."""
    rows = "".join(f'"{query}","{text}",{int(at == relevant)}\n' for at, text in enumerate(texts))
    return "query,document,label\n" + rows


def _service(query: str, texts: tuple[str, ...], **answer: Any) -> str:
    return _json({"query": query, "documents": list(texts), **answer})


SHOES = {
    "judgmentRatings": [
        {"query": "red dress", "ratings": [{"docId": "B077ZJXCTS", "rating": "3.000"},
                                           {"docId": "B071S6LTJJ", "rating": "2.000"}]},
        {"query": "blue jeans", "ratings": [{"docId": "B07L9V4Y98", "rating": "0.000"},
                                            {"docId": "B01N0DSRJC", "rating": "1.000"}]},
    ]
}  # fmt: skip


def _span(query: str, documents: list[tuple[str, str, float]]) -> dict[str, Any]:
    """Return a retriever span in the names of OpenInference."""
    attributes: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": query}
    for at, (name, text, score) in enumerate(documents):
        start = f"retrieval.documents.{at}.document"
        attributes |= {f"{start}.id": name, f"{start}.content": text, f"{start}.score": score}
    return {
        "name": "retrieve",
        "context": {"trace_id": f"0x{hash(query) & 0xFF:032x}", "span_id": f"0x{len(query):016x}"},
        "start_time": "2026-01-01T00:00:00.000000Z",
        "end_time": "2026-01-01T00:00:00.050000Z",
        "attributes": attributes,
    }


EXAMPLES = (
    Example(
        "scikit-learn, ndcg_score",
        {"ndcg.json": _json({"true_relevance": GRADES, "scores": FIRST})},
        {"ndcg": 0.6956940443813076},
    ),
    Example(
        "scikit-learn, two rankings",
        {"ndcg.json": _json({"true_relevance": GRADES, "initial_scores": FIRST,
                             "rerank_scores": SECOND})},
        {"ndcg": 0.6956940443813076},
        other={"ndcg/rerank_scores": {"ndcg": 0.4936801913773761}},
    ),
    Example(
        "ranx, usage",
        {"qrels.json": _json(RANX[0]), "run.json": _json(RANX[1])},
        {"ndcg@5": 0.7861261099276952, "map@5": 0.6416666666666667, "mrr": 0.75},
        ("q_1", "q_2"),
        ("d_12", "d_36"),
    ),
    Example(
        "ir_measures, getting started",
        {"qrels.txt": "Q0 0 D0 0\nQ0 0 D1 1\nQ1 0 D0 0\nQ1 0 D3 2\n",
         "run.txt": "Q0 0 D0 0 1.2 runid\nQ0 0 D1 1 1.0 runid\nQ1 0 D0 0 2.4 runid\n"
                    "Q1 0 D3 1 3.6 runid\n"},
        {"map": 0.75, "ndcg": 0.8154648767857288, "mrr": 0.75},
        ("Q0", "Q1"),
        ("D0", "D1", "D3"),
    ),
    Example(
        "pytrec_eval, simple.py",
        {"qrel.json": _json({"q1": {"d1": 0, "d2": 1, "d3": 0}, "q2": {"d2": 1, "d3": 1}}),
         "run.json": _json({"q1": {"d1": 1.0, "d2": 0.0, "d3": 1.5},
                            "q2": {"d1": 1.5, "d2": 0.2, "d3": 0.5}})},
        {"map": (1 / 3 + 7 / 12) / 2, "ndcg": (0.5 + 0.6934264036172708) / 2},
        ("q1", "q2"),
        ("d1", "d2", "d3"),
    ),
    Example(
        "BEIR, a data set of your own",
        {"corpus.jsonl": _lines(
            {"_id": "doc1", "title": "Albert Einstein",
             "text": "Albert Einstein developed the mass-energy equivalence formula."},
            {"_id": "doc2", "title": "", "text": "Wheat beer is brewed with much wheat."}),
         "queries.jsonl": _lines(
            {"_id": "q1", "text": "Who developed the mass-energy equivalence formula?"},
            {"_id": "q2", "text": "Which beer is brewed with a large proportion of wheat?"}),
         "test.tsv": "query-id\tcorpus-id\tscore\nq1\tdoc1\t1\nq2\tdoc2\t1\n"},
        {"mrr": 1.0},
        ("q1", "q2"),
        ("doc1", "doc2"),
    ),
    Example(
        "MTEB, predictions",
        {"qrels.json": _json(RANX[0]),
         "Task_predictions.json": _json(
             {"mteb_model_meta": {"model_name": "baseline/bm25s", "revision": "0_1_10"},
              "default": {"test": RANX[1]}})},
        {"ndcg@5": 0.7861261099276952},
        ("q_1", "q_2"),
        ("d_12", "d_36"),
    ),
    Example(
        "sentence-transformers, CrossEncoderRerankingEvaluator",
        {"samples.jsonl": _lines(
            {"query": "how to return an item", "positive": ["Send it back within 30 days."],
             "negative": ["Our shops and opening hours"]},
            {"query": "track my parcel", "positive": ["Parcels can be tracked online."],
             "negative": ["Gift cards"]})},
        queries=("how to return an item", "track my parcel"),
        documents=("Gift cards", "Send it back within 30 days."),
    ),
    Example(
        "sentence-transformers, InformationRetrievalEvaluator",
        {"evaluator.json": _json(
            {"queries": {"q1": "how to return an item", "q2": "track my parcel"},
             "corpus": {"d1": "Return an item within 30 days.", "d2": "Track each parcel online."},
             "relevant_docs": {"q1": ["d1"], "q2": ["d2"]}})},
        {"mrr": 1.0},
        ("q1", "q2"),
        ("d1", "d2"),
    ),
    Example(
        "LlamaIndex, RetrieverEvaluator",
        {"results.jsonl": _lines(
            {"query": "What did the author do?", "expected_ids": ["node_1", "node_2"],
             "retrieved_ids": ["node_1", "node_3"], "mode": "text",
             "metric_dict": {"mrr": {"score": 1.0, "metadata": {}},
                             "hit_rate": {"score": 1.0, "metadata": {}}}},
            {"query": "Where did he go?", "expected_ids": ["node_4"],
             "retrieved_ids": ["node_3", "node_4"], "mode": "text",
             "metric_dict": {"mrr": {"score": 0.5, "metadata": {}},
                             "hit_rate": {"score": 1.0, "metadata": {}}}})},
        {"mrr": 0.75, "recall@10": 0.75, "hit@10": 1.0},
        documents=("node_1", "node_2", "node_3", "node_4"),
    ),
    Example(
        "Ragas, IDBasedContextRecall",
        {"samples.jsonl": _lines(
            {"user_input": "Which documents?", "retrieved_context_ids": ["doc_1", "doc_2", "doc_3"],
             "reference_context_ids": ["doc_1", "doc_4", "doc_5", "doc_6"]})},
        {"recall": 0.25},
        documents=("doc_1", "doc_6"),
    ),
    Example(
        "Ragas, NonLLMContextRecall",
        {"samples.jsonl": _lines(
            {"user_input": "What is in Paris?",
             "retrieved_contexts": ["Paris is the capital of France."],
             "reference_contexts": ["Paris is the capital of France.",
                                    "The Eiffel Tower is one of its most famous landmarks."]})},
        {"recall": 0.5},
        queries=("What is in Paris?",),
    ),
    Example(
        "Haystack, DocumentNDCGEvaluator",
        {"report.json": _json(
            {"questions": ["What is the capital?"],
             "ground_truth_documents": [[{"content": "France", "score": 1.0},
                                         {"content": "Paris", "score": 0.5}]],
             "retrieved_documents": [[{"content": "France"}, {"content": "Germany"},
                                      {"content": "Paris"}]]})},
        {"mrr": 1.0, "recall": 1.0},
        documents=("France", "Germany", "Paris"),
    ),
    Example(
        "LangChain, documents in an example of LangSmith",
        {"examples.jsonl": _lines(
            {"id": "a7", "inputs": {"question": "how to return an item"},
             "outputs": {"documents": [
                 {"page_content": "Our shops", "metadata": {"id": "d3"}, "type": "Document"},
                 {"page_content": "Send it back.", "metadata": {"id": "d1"}, "type": "Document"}]},
             "reference_outputs": {"documents": ["d1"]}})},
        {"mrr": 0.5},
        ("a7",),
        ("d1", "d3"),
    ),
    Example(
        "Cohere, rerank",
        {"labels.csv": _pairs(CAPITAL, CAPITALS, 3),
         "cohere.json": _service(CAPITAL, CAPITALS, results=[
             {"index": 3, "relevance_score": 0.999071}, {"index": 4, "relevance_score": 0.7867867},
             {"index": 0, "relevance_score": 0.32713068}],
             id="07734bd2-2473-4f07-94e1-0d9f0e6843cf", meta={"api_version": {"version": "2"}})},
        queries=(CAPITAL,),
        documents=CAPITALS,
        other={"cohere": {"mrr": 1.0}},
    ),
    Example(
        "Jina, rerank",
        {"labels.csv": _pairs("Organic skincare products for sensitive skin", SKIN, 2),
         "jina.json": _service("Organic skincare products for sensitive skin", SKIN, results=[
             {"index": 0, "relevance_score": 0.8783, "document": {"text": SKIN[0]}},
             {"index": 2, "relevance_score": 0.7624, "document": {"text": SKIN[2]}}],
             model="jina-reranker-v2-base-multilingual", usage={"total_tokens": 815})},
        documents=SKIN,
        other={"jina": {"mrr": 0.5}},
    ),
    Example(
        "Voyage, rerank",
        {"labels.csv": _pairs("When is Apple's conference call scheduled?", DIET, 2),
         "voyage.json": _service("When is Apple's conference call scheduled?", DIET,
             object="list", data=[{"relevance_score": 0.9296875, "index": 2},
                                  {"relevance_score": 0.40625, "index": 0}], model="rerank-2")},
        documents=DIET,
        other={"voyage": {"mrr": 1.0}},
    ),
    Example(
        "Pinecone, rerank",
        {"labels.csv": _pairs("The tech company Apple is known for its products.", APPLES, 2),
         "pinecone.json": _service("The tech company Apple is known for its products.", APPLES,
             model="bge-reranker-v2-m3", data=[
                 {"index": 2, "score": 0.48357219, "document": {"id": "vec4", "text": APPLES[2]}},
                 {"index": 0, "score": 0.048405956, "document": {"id": "vec1", "text": APPLES[0]}}],
             usage={"rerank_units": 1})},
        other={"pinecone": {"mrr": 1.0}},
    ),
    Example(
        "DeepEval, goldens",
        {
            "goldens.json": _json(
                [
                    {
                        "input": "What if these shoes do not fit?",
                        "actual_output": None,
                        "expected_output": "A full refund within 30 days.",
                        "context": ["All customers are eligible for a 30 day full refund."],
                        "retrieval_context": [
                            "Shoes are made of leather.",
                            "All customers are eligible for a 30 day full refund.",
                        ],
                    }
                ]
            )
        },
        {"mrr": 0.5, "recall": 1.0},
        documents=("Shoes are made of leather.",),
    ),
    Example(
        "TruLens, a golden set",
        {
            "golden.json": _json(
                [
                    {
                        "query": "Who invented the lightbulb?",
                        "query_id": "1",
                        "expected_response": "Thomas Edison",
                        "expected_chunks": [
                            {"text": "Thomas Edison invented the lightbulb.", "expect_score": 2},
                            {"text": "Light is a wave.", "expect_score": 0},
                        ],
                    }
                ]
            )
        },
        {"mrr": 1.0, "dcg@10": 2.0},
        ("1",),
        ("Light is a wave.",),
    ),
    Example(
        "Weaviate, objects with their scores by query",
        {"labels.csv": "query,doc_id,label\nflying,e1,1\nflying,e2,0\n",
         "weaviate.jsonl": _lines(
             {"query": "flying", "results": [
                 {"id": "e2", "text": "A stone", "score": 0.9},
                 {"id": "e1", "text": "A sparrow flies", "score": 0.4}]})},
        {"mrr": 0.5},
        ("flying",),
        ("e1", "e2"),
    ),
    Example(
        "Elasticsearch, _rank_eval",
        {"rank_eval.json": _json({"requests": [
            {"id": "amsterdam_query", "request": {"query": {"match": {"text": "amsterdam"}}},
             "ratings": [{"_index": "my-index-000001", "_id": "doc1", "rating": 0},
                         {"_index": "my-index-000001", "_id": "doc2", "rating": 3},
                         {"_index": "my-index-000001", "_id": "doc3", "rating": 1}]},
            {"id": "berlin_query", "request": {"query": {"match": {"text": "berlin"}}},
             "ratings": [{"_index": "my-index-000001", "_id": "doc1", "rating": 1}]}],
            "metric": {"precision": {"k": 20}}}),
         "initial.trec": "amsterdam_query Q0 doc1 1 2.5 es\namsterdam_query Q0 doc2 2 1.5 es\n"
                         "berlin_query Q0 doc1 1 3.5 es\n"},
        {"mrr": 0.75, "recall": 0.75},
        ("amsterdam_query", "berlin_query"),
        ("doc1", "doc2", "doc3"),
    ),
    Example(
        "Elasticsearch, the answer of _rank_eval",
        {"answer.json": _json({"metric_score": 0.4, "details": {"my_query_id1": {
            "metric_score": 0.5, "unrated_docs": [{"_index": "my-index", "_id": "1960795"}],
            "hits": [{"hit": {"_index": "my-index", "_id": "1960795", "_score": 8.1},
                      "rating": None},
                     {"hit": {"_index": "my-index", "_id": "1528558", "_score": 7.0556192},
                      "rating": 1}],
            "metric_details": {"precision": {"relevant_docs_retrieved": 1,
                                             "docs_retrieved": 2}}}}, "failures": {}})},
        {"mrr": 0.5, "precision@2": 0.5},
        ("my_query_id1",),
        ("1528558", "1960795"),
    ),
    Example(
        "OpenSearch, imported judgments",
        {"judgments.json": _json({"name": "Imported", "type": "IMPORT_JUDGMENT", **SHOES}),
         "initial.csv": "query,doc_id,rank\nred dress,B071S6LTJJ,1\nred dress,B077ZJXCTS,2\n"
                        "blue jeans,B07L9V4Y98,1\nblue jeans,B01N0DSRJC,2\n"},
        {"mrr": 0.75},
        ("red dress", "blue jeans"),
        ("B077ZJXCTS", "B01N0DSRJC"),
    ),
    Example(
        "Vespa, VespaEvaluator with retrieved documents",
        {"evaluator.json": _json(
            {"queries": {"q1": "What is the best GPU for gaming?",
                         "q2": "How to bake sourdough bread?"},
             "relevant_docs": {"q1": ["d12", "d99"], "q2": ["d101"]},
             "retrieved": {"q1": ["d99", "d5"], "q2": ["d7", "d101"]}})},
        {"mrr": 0.75, "recall": 0.75},
        ("q1", "q2"),
        ("d12", "d5"),
    ),
    Example(
        "Quepid, basic ratings with a snapshot",
        {"ratings.csv": "query,docid,rating\nstar wars,11,3\nstar wars,12,0\n",
         "snapshot.csv": "Snapshot Name,Snapshot Time,Case ID,Query Text,Doc ID,Doc Position\n"
                         "one,2026-01-01,1,star wars,12,1\none,2026-01-01,1,star wars,11,2\n"},
        {"mrr": 0.5},
        ("star wars",),
        ("11", "12"),
    ),
    Example(
        "Phoenix, retriever spans with labels",
        {"spans.jsonl": _lines(
            _span("How do I delete a model?", [("n1", "Billing of accounts", 0.8),
                                               ("n2", "Delete a model in Settings", 0.7)])),
         "labels.csv": "query,doc_id,label\nHow do I delete a model?,n2,1\n"},
        {"mrr": 0.5},
        ("How do I delete a model?",),
        ("n1", "n2"),
    ),
    Example(
        "rank_llm, requests",
        {"requests.jsonl": _lines(
            {"query": {"text": "how long is life cycle of flea", "qid": "264014"},
             "candidates": [
                 {"docid": "4834547", "score": 14.97, "doc": {"contents": "The life of a flea."}},
                 {"docid": "6641238", "score": 15.09, "doc": {"contents": "Fleas of cats."}}]}),
         "qrels.txt": "264014 0 4834547 1\n264014 0 6641238 0\n"},
        {"mrr": 0.5},
        ("264014",),
        ("4834547", "6641238"),
    ),
    Example(
        "FlagEmbedding, data for a reranker",
        {"train.jsonl": _lines(
            {"query": "Five women walk along a beach.", "pos": ["Women are walking on the beach."],
             "neg": ["They are in an airplane.", "A man is by a campfire."]})},
        {"mrr": 1.0},
        ("Five women walk along a beach.",),
        ("They are in an airplane.",),
    ),
)  # fmt: skip
