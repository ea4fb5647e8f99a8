import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.rerankers import Corpus, Request, create
from rankdash.core.rerankers.kinds.bm25 import Tokenizer, order_candidates
from tests.results import results
from tests.sets import ROOT

DOCUMENTS = {
    "d1": "How to return an item and get a refund",
    "d2": "Delivery times for every country",
    "d3": "退货需要在签收后七天内申请",
    "d4": "配送时间与运费说明",
    "d5": "",
}


def prepared(settings=None, documents=DOCUMENTS):
    reranker = create("bm25", settings)
    reranker.prepare(Corpus(list(documents), list(documents.values())))
    return reranker


def scores_of(reranker, query, documents=DOCUMENTS):
    request = Request("q", query, list(documents), list(documents.values()))
    return dict(zip(documents, reranker.score([request])[0].scores, strict=True))


@pytest.mark.parametrize("language", ["auto", "en", "zh", "none"])
def test_words_are_those_of_the_language_that_is_set(language):
    scores = scores_of(prepared({"language": language}), "returning 退货")
    assert (scores["d1"] > 0) == (language in ("auto", "en")) and scores["d3"] > 0 == scores["d5"]


def test_word_rarity_comes_from_the_corpus_and_not_from_the_candidates():
    rare = {"a": "alpha beta", "b": "beta gamma"} | {f"x{n}": "alpha omega" for n in range(20)}
    request = Request("q", "alpha gamma", ["a", "b"], ["alpha beta", "beta gamma"])
    scores = prepared(documents=rare).score([request])[0].scores
    assert scores[1] > scores[0] * 2


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire", "bm25l", "bm25+"])
def test_a_changed_text_is_scored_as_an_indexed_one_would_be(method):
    reranker = prepared({"method": method})
    query = "refund item delivery 退货"
    indexed = scores_of(reranker, query)
    # A space at the end makes it a different text with the same words.
    changed = {doc: f"{text} " for doc, text in DOCUMENTS.items()}
    assert scores_of(reranker, query, changed) == pytest.approx(indexed, rel=1e-5)
    assert len(set(indexed.values())) > 2
    assert set(sorted(indexed, key=indexed.get)[-2:]) == {"d1", "d3"}
    # A word that the query repeats counts equally for both.
    twice = scores_of(reranker, f"{query} refund")
    assert twice["d1"] > indexed["d1"]
    assert scores_of(reranker, f"{query} refund", changed) == pytest.approx(twice, rel=1e-5)
    # The length of a new text is relative to the corpus, independent of the other documents.
    for doc in DOCUMENTS:
        alone = scores_of(reranker, query, DOCUMENTS | {doc: changed[doc]})
        assert alone == pytest.approx(indexed, rel=1e-5)
    without = scores_of(reranker, query, DOCUMENTS | {"d1": "How to return an item"})
    assert without["d1"] < indexed["d1"]
    assert without["d3"] == indexed["d3"]


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0, 0.75), (1.2, 0)])
def test_scores_are_those_of_the_published_formula(k1, b):
    texts = {"a": "tea tea cup", "b": "cup", "c": "milk jug pan"}
    scores = scores_of(prepared({"k1": k1, "b": b}, texts), "tea", texts)
    idf = np.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2 / (2 + k1 * (1 - b + b * 3 / (7 / 3)))
    assert scores["a"] == pytest.approx(expected, rel=1e-6)
    assert scores["b"] == scores["c"] == 0


def test_a_document_outside_the_corpus_fails_the_query_and_only_that_one():
    requests = [
        Request("q1", "refund", ["d1", "nowhere"], [DOCUMENTS["d1"], "refund"]),
        Request("q2", "refund", ["d1"], [DOCUMENTS["d1"]]),
    ]
    failed, fine = prepared().score(requests)
    assert "nowhere" in failed.error and np.isnan(failed.scores).all()
    assert fine.error == "" and fine.scores[0] > 0


@pytest.mark.parametrize("texts", [{}, {"d": ""}, {"d": "?!"}])
def test_a_corpus_without_words_scores_zero(texts):
    assert all(score == 0 for score in scores_of(prepared(documents=texts), "tea", texts).values())


def test_candidates_are_ordered_with_ties_as_given_and_those_without_a_known_text_last(approved):
    lists = {"q1": ["lost", "d2", "d4", "d1"], "q2": ["d5", "d3"], "q9": ["d1"]}
    rows = [(query, doc) for query, docs in lists.items() for doc in docs]
    candidates = pd.DataFrame(rows, columns=["query_id", "doc_id"])
    queries, texts = pd.Series({"q1": "refund", "q2": "unknown words"}), pd.Series(DOCUMENTS)
    ranking = order_candidates(queries, texts, candidates)
    cases = {query: ranking.documents_of(query) for query in lists}
    cases["no candidates"] = len(order_candidates(queries, texts, candidates[:0]))
    approved("rerankers/ordered", results(cases))


# Words.


def words(text, language="auto"):
    return Tokenizer(language)([text])[0]


TEXTS = {
    "auto": [
        *("Returning returned RETURNS", "iPhone手机的charging问题", "ＡＢＣ１２３", "配送时间"),
        *("中华人民共和国", "退货运费", "退货需要七天"),
        *("", "   \n", "?!……《》", "\x00\ufeff", "🎁🎁"),
    ],
    **{language: ["refunds退货"] for language in ("en", "zh", "none")},
}


def test_words_by_language_are_as_approved(approved):
    """Chinese yields its characters, words and the words within them, so that texts that are
    segmented differently still have words in common."""
    rows = [(language, text) for language, texts in TEXTS.items() for text in texts]
    cases = {f"{language} {text!r}": words(text, language) for language, text in rows}
    approved("rerankers/words", results(cases))


@given(st.text())
def test_any_text_is_taken_and_no_word_is_empty(text):
    assert all(words(text))


@pytest.mark.parametrize(
    ("missing", "language", "text", "works"),
    [("Stemmer", "en", "refunds", "zh"), ("rjieba", "zh", "退货", "en")],
)
def test_a_language_needs_its_own_package_alone_which_is_silent_and_leaves_no_file(
    tmp_path, missing, language, text, works
):
    code = f"""
import sys
sys.modules[{missing!r}] = None
from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers.kinds.bm25 import Tokenizer
print(Tokenizer("none")([{text!r}]), Tokenizer({works!r})(["退货"]))
try:
    Tokenizer({language!r})([{text!r}])
except UnavailableError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8"},
    )
    plain, refused = done.stdout.splitlines()
    assert plain.endswith("[['退', '货', '退货']]" if works == "zh" else "[['退', '货']]")
    assert not plain.startswith("[[]]")
    assert missing.lower() in refused.lower() and "is not installed" in refused
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []
