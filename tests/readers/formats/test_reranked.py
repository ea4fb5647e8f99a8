"""Files of rerankers and evaluation tools: ids, texts and scores as written, and the metrics of the
reference implementations."""

import itertools
import json

import pytest
import pytrec_eval
from sklearn.metrics import ndcg_score

from rankdash.core.base.errors import FormatError
from rankdash.core.metrics import Conventions, evaluate, judge
from tests.readers.reading import parse

QRELS = {"q1": {"d1": 2, "d3": 1}, "q2": {"d4": 2}}
SCORES = {"q1": {"d1": 0.35, "d2": 0.91, "d3": 0.52}, "q2": {"d2": 0.41, "d4": 0.38}}
QRELS_FILE = "".join(f"{q} 0 {d} {g}\n" for q, docs in QRELS.items() for d, g in docs.items())
MTEB = {"mteb_model_meta": {"model_name": "m", "revision": "r"}}
FLAG = {"eval_name": "e", "reranker_name": "NoReranker", "split": "test", "dataset_name": None}


def values(parsed, ranking=None, metrics=("ndcg", "ndcg_exp", "map", "mrr")):
    """Return query → metric → value under the conventions of trec_eval."""
    conventions = Conventions.trec_eval()
    judged = judge(ranking or parsed.candidates, parsed.qrels, conventions)
    return evaluate(judged, list(metrics), conventions).wide().to_dict("index")


def by_pytrec_eval(scores):
    found = pytrec_eval.RelevanceEvaluator(QRELS, {"ndcg", "map", "recip_rank"}).evaluate(scores)
    return {
        query: {"ndcg": each["ndcg"], "map": each["map"], "mrr": each["recip_rank"]}
        for query, each in found.items()
    }


def expect_values(parsed, scores=SCORES, ranking=None):
    read = values(parsed, ranking)
    for query, expected in by_pytrec_eval(scores).items():
        assert {name: read[query][name] for name in expected} == pytest.approx(expected, abs=1e-9)


def rank_llm(scores):
    return "".join(
        json.dumps(
            {
                "query": {"text": f"the text of {query}", "qid": query},
                "candidates": [
                    {"docid": doc, "score": score, "doc": {"title": doc, "segment": f"text {doc}"}}
                    for doc, score in sorted(docs.items(), key=lambda each: -each[1])
                ],
            }
        )
        + "\n"
        for query, docs in scores.items()
    )


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ({**MTEB, "default": {"test": SCORES}}, "MTEB predictions"),
        ({**MTEB, "en": {"train": {"q9": {"d9": 1.0}}, "test": SCORES}}, "MTEB predictions"),
        (SCORES, "ranx run"),
        ({**FLAG, "search_results": SCORES}, "FlagEmbedding"),
        (rank_llm(SCORES), "nested JSON lines, rows with texts"),
    ],
)
def test_scores_by_query_have_the_values_of_pytrec_eval(content, name):
    text = content if isinstance(content, str) else json.dumps(content, indent=1)
    parsed = parse({"run.json": text, "qrels": QRELS_FILE})

    assert parsed.formats["run.json"] == name
    assert [f.code for f in parsed.findings if f.severity == "warning"] == (
        ["one_split"] if "train" in text else []
    )
    expect_values(parsed)


def test_whole_scores_of_rank_llm_are_no_labels():
    scores = {"q1": {"d2": 2, "d3": 1, "d1": 0}, "q2": {"d2": 1, "d4": 0}}
    parsed = parse({"run.jsonl": rank_llm(scores), "qrels": QRELS_FILE})
    assert len(parsed.qrels) == 3
    expect_values(parsed, scores)


def test_hits_of_rank_gpt_have_ids_texts_and_order():
    hits = [
        {"qid": 7, "docid": f"d{at}", "content": f"text {at}", "rank": at, "score": 9.5 - at}
        for at in (1, 2, 3)
    ]
    text = json.dumps([{"query": "how to", "hits": hits}])
    parsed = parse({"x.json": text, "qrels": "7 0 d2 1\n"})
    assert parsed.queries.to_dict("list") == {"query_id": ["7"], "text": ["how to"]}
    assert parsed.candidates.documents_of("7")[0] == ["d1", "d2", "d3"]
    assert set(parsed.documents["text"]) == {"text 1", "text 2", "text 3"}


ANSWER = {
    "metric_score": 0.7138,
    "details": {
        query: {
            "hits": [
                {
                    "hit": {"_index": "i", "_id": doc, "_score": score},
                    "rating": QRELS[query].get(doc),
                }
                for doc, score in sorted(docs.items(), key=lambda each: -each[1])
            ],
        }
        for query, docs in SCORES.items()
    },
    "failures": {"q3": {"error": {}}},
}


def rank_eval(**request):
    return {
        "requests": [
            {
                "id": query,
                "ratings": [{"_index": "i", "_id": d, "rating": g} for d, g in docs.items()],
                **request,
            }
            for query, docs in QRELS.items()
        ],
        "metric": {"dcg": {"k": 10, "normalize": True}},
    }


def test_rank_eval_has_the_values_of_pytrec_eval_and_of_its_answer():
    files = {"request.json": json.dumps(rank_eval()), "answer.json": json.dumps(ANSWER)}
    parsed = parse(files)

    expect_values(parsed)
    assert len(parsed.qrels) == 3
    codes = [each.code for each in parsed.findings if each.severity == "warning"]
    assert codes == ["failed_queries"]
    # Elasticsearch has exponential gains.
    expected = [
        ndcg_score([[0, 1, 3]], [[3, 2, 1]]), ndcg_score([[0, 3]], [[2, 1]])
    ]  # fmt: skip
    assert [each["ndcg_exp"] for each in values(parsed).values()] == pytest.approx(expected)

    alone = parse({"answer.json": json.dumps(ANSWER)})
    assert {"failed_queries", "only_hits"} <= {each.code for each in alone.findings}
    assert dict(zip(alone.qrels["doc_id"], alone.qrels["label"], strict=True)) == {
        "d3": 1, "d1": 2, "d4": 2
    }  # fmt: skip

    changed = json.loads(json.dumps(ANSWER).replace('"rating": 1', '"rating": 3'))
    both = parse({**files, "answer.json": json.dumps(changed)})
    assert "conflicting_labels" in {each.code for each in both.findings}


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"request": {"query": {"match": {"body": "to boot"}}}}, "to boot"),
        ({"request": {"query": {"match": {"body": {"query": "to boot"}}}}}, "to boot"),
        (
            {
                "request": {
                    "query": {
                        "bool": {
                            "must": [{"multi_match": {"query": "to boot", "fields": ["a", "b"]}}],
                            "should": {"match_phrase": {"title": "to boot"}},
                            "filter": {"term": {"lang": "en"}},
                        }
                    }
                }
            },
            "to boot",
        ),
        ({"template_id": "t", "params": {"query_string": "to boot", "size": 10}}, "to boot"),
        ({"params": {"q": "to boot", "lang": "en"}}, None),
        ({"request": {"query": [{"match": {"a": "x"}}, {"match": {"b": "y"}}]}}, None),
        ({"request": {"query": {"match_all": {}}}}, None),
    ],
)  # fmt: skip
def test_a_request_has_a_text_if_it_searches_for_exactly_one(request_, text):
    parsed = parse({"r.json": json.dumps(rank_eval(**request_)), "run": "q1 Q0 d1 1 1 x\n"})
    assert {None if each != each else each for each in parsed.queries["text"]} == {text}


# Results that refer to the documents of a request.
DOCS = ["shops and hours", "send it back", "refunds"]
GRADES = [0, 2, 1]
FOUND = [0.11, 0.93, 0.78]


def results(key="relevance_score", index="index", **more):
    order = sorted(range(3), key=lambda at: -FOUND[at])
    return [{index: at, key: FOUND[at], **more} for at in order]


def asked(documents="documents", docs=DOCS, query="how to"):
    return {"query": query, documents: docs, "labels": GRADES}


SERVICES = {
    "Cohere, one object": {**asked(), "results": results(), "meta": {"api_version": {}}},
    "Jina": {"model": "j", **asked(), "usage": {"total_tokens": 3}, "results": results()},
    "Voyage": {**asked(), "object": "list", "data": results(), "usage": {}},
    "Mixedbread": {**asked("input"), "data": results("score", object="rank_result")},
    "NIM": {
        **asked("passages", [{"text": each} for each in DOCS], {"text": "how to"}),
        "rankings": results("logit"),
    },
    "DashScope": {"model": "g", "input": asked(), "output": {"results": results()}},
    "vLLM": {"text_1": "how to", "text_2": DOCS, "labels": GRADES, "data": results("score")},
    "CrossEncoder.rank": {**asked(), "results": results("score", "corpus_id")},
    "the texts in the response": {
        "query": "how to",
        "data": [{**each, "document": {"text": DOCS[each["index"]]}} for each in results()],
    },
    "request and response": {"request": asked(), "response": {"id": "x", "results": results()}},
    "a pair, TEI": [[asked("texts"), results("score")]],
    "pairs": [[asked(), {"results": results()}]],
    "by query": {"q1": {**asked(), "results": results()}},
    "entries": [{**asked(), "results": results()}],
    "a response after its request": [asked(), {"results": results()}],
    "a line each": f"{json.dumps(asked())}\n{json.dumps({'results': results()})}\n",
    "a pair in each line": f"{json.dumps([asked('texts'), results('score')])}\n",
    "a pair with an object": [asked(), {"results": results()}],
}


@pytest.mark.parametrize("name", SERVICES)
def test_results_have_the_documents_of_their_indexes_and_the_value_of_scikit_learn(name):
    content = SERVICES[name]
    text = content if isinstance(content, str) else json.dumps(content)
    parsed = parse({"reranked.json": text})

    assert parsed.queries.to_dict("list") == {"query_id": ["q1"], "text": ["how to"]}
    texts = dict(zip(parsed.documents["doc_id"], parsed.documents["text"], strict=True))
    ((system, ranking),) = parsed.rankings.items()
    docs, scores = ranking.documents_of("q1")
    assert system == "reranked"
    assert {texts[doc]: score for doc, score in zip(docs, scores, strict=True)} == dict(
        zip(DOCS, FOUND, strict=True)
    )
    if name != "the texts in the response":
        expected = ndcg_score([GRADES], [FOUND])
        assert values(parsed, ranking)["q1"]["ndcg"] == pytest.approx(expected, abs=1e-9)


def test_a_document_that_a_response_omits_is_a_candidate_without_a_rank():
    record = {"query": "how to", "documents": DOCS, "results": results()[:1]}
    parsed = parse(
        {"x.json": json.dumps(record), "qrels.csv": "query,document,label\nhow to,refunds,1\n"}
    )
    assert set(parsed.documents["text"]) == set(DOCS)
    assert parsed.rankings["x"].documents_of("q1")[0] == ["d2"]
    assert not [each for each in parsed.findings if each.severity != "note"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ([{"index": 3, "score": 1}], r"x.json, line 1: .* index 3 of results\[0\].index"),
        ([{"index": -1, "score": 1}], "index -1 of"),
        ([{"index": 1, "score": 1}, {"index": 3, "score": 2}], "count from 1"),
        ([{"index": 1, "score": 1}, {"index": 1, "score": 2}], r"results\[1\].index occurs twice"),
        ([{"index": 1, "score": 1}, {"score": 2}], r"results\[1\].index is missing"),
        ([{"index": 1, "score": 1}, {"index": 0}], r"results\[1\].relevance_score is missing"),
        ([{"index": True, "score": 1}], "whole number, not true"),
        ([{"index": 1, "score": float("nan")}], "finite number, not NaN"),
        ([{"index": 1, "score": "high"}], 'finite number, not "high"'),
        ([{"index": 1, "score": 1, "document": {"text": DOCS[0]}}], r"text of results\[0\]"),
    ],
)
def test_results_that_cannot_be_assigned_are_refused(changed, message):
    whole = {**asked(), "results": changed}
    for content in (whole, {"request": asked(), "response": {"results": changed}}):
        with pytest.raises(FormatError) as refused:
            parse({"x.json": json.dumps(content)})
        assert (refused.value.file, refused.value.line) == ("x.json", 1)
        assert refused.value.remedy
    with pytest.raises(FormatError, match=message):
        parse({"x.json": json.dumps(whole)})


def test_results_without_documents_are_refused():
    for content in ({"query": "how to", "results": results()}, results(), {"results": results()}):
        with pytest.raises(FormatError, match="the request with these documents is missing"):
            parse({"x.json": json.dumps(content)})
    content = {"query": "how to", "results": [{"index": 10**200, "score": 1, "text": "a"}]}
    assert len(parse({"x.json": json.dumps(content)}).documents) == 1


def test_one_wrong_entry_of_several_refuses_the_file_with_its_line():
    good = {**asked(), "results": results()}
    lines = [good, {**good, "query": "x", "results": [{"index": 9, "score": 1}]}]
    text = "".join(f"{json.dumps(each)}\n" for each in lines)
    with pytest.raises(FormatError, match=r"x.jsonl, line 2: .*outside the 3 documents"):
        parse({"x.jsonl": text})


# An object is never a text.
TEXTS = ("query", "document", "title")


@pytest.mark.parametrize("field", TEXTS)
@pytest.mark.parametrize("value", [{"inhalt": "x"}, [{"text": "x"}], {"text": {"a": "x"}}])
def test_an_object_is_no_text(field, value):
    rows = [
        {"query": "how to", "document": f"text {at}", "title": "a", "label": at} for at in range(4)
    ]
    rows[1] = {**rows[1], field: value}
    parsed = parse({"x.jsonl": "".join(f"{json.dumps(each)}\n" for each in rows)})

    (refused,) = [each for each in parsed.findings if each.code == "no_text"]
    assert (refused.line, refused.count) == (2, 1)
    assert refused.examples[0].startswith(f"{field}: ")
    texts = itertools.chain(parsed.documents["text"], parsed.documents["title"])
    assert not any("{" in str(text) for text in (*texts, *parsed.queries["text"]))
    with pytest.raises(FormatError, match=rf"line 1: .* First: {field}: "):
        parse({"x.json": json.dumps([rows[1]])})


def test_an_object_with_a_known_text_is_read_by_its_fields():
    row = {
        "query": {"id": "7", "text": "how to"},
        "document": {"id": "d1", "title": "a", "text": "text 1"},
        "label": 1,
    }
    parsed = parse({"x.json": json.dumps([row])})
    assert parsed.queries.to_dict("list") == {"query_id": ["7"], "text": ["how to"]}
    assert parsed.documents.to_dict("list") == {
        "doc_id": ["d1"], "title": ["a"], "text": ["text 1"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"),
    [("queries", {"q1": {"frage": "x"}}), ("corpus", {"d1": {"text": {"a": "x"}}})],
)
def test_an_object_in_a_collection_is_refused_with_its_path(key, value):
    whole = {"queries": {"q1": "x"}, "corpus": {"d1": "y"}, "relevant_docs": {"q1": ["d1"]}}
    with pytest.raises(FormatError, match=rf"line 1: The object {key}.[qd]1 has no text"):
        parse({"x.json": json.dumps({**whole, key: value})})


@pytest.mark.parametrize("lists", [{"docs": [{"a": "x"}]}, {"retrieved": [{"a": "x"}]}])
def test_a_document_without_a_known_text_or_id_is_refused(lists):
    entry = {"query": "how to", **lists, "relevant": ["d1"]}
    with pytest.raises(FormatError, match=r"First: \w+\[0\]: how to"):
        parse({"x.json": json.dumps([entry])})


def test_a_column_of_objects_cannot_be_mapped_to_a_text():
    rows = [{"query": "how to", "wort": {"foo": at}, "label": at} for at in range(2)]
    with pytest.raises(FormatError, match=r"x.json, line 1: The column wort contains objects"):
        parse({"x.json": json.dumps(rows)}, columns={"document": "wort"})
