import functools
import shutil

import numpy as np
import pytest

from tests.rerankers.models import DOCUMENTS, LONG, QUERY, score
from tests.rerankers.models import prepared as of_kind

prepared = functools.partial(of_kind, "cross-encoder")


def reference(folder, query, documents, dtype="float32"):
    """Return the logits of plain transformers, one pair at a time."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=getattr(torch, dtype))
    values = []
    for document in documents:
        pair = tokenizer(
            [(query, document)],
            truncation="only_second",
            max_length=64,
            return_tensors="pt",
        )
        with torch.inference_mode():
            values.append(model(**pair).logits[0, 0].item())
    return np.array(values)


@pytest.fixture(scope="module")
def reranker(cross_folder):
    return prepared(cross_folder, batch_tokens=40)


def test_scores_are_the_raw_logits_of_the_model(reranker, cross_folder):
    found = score(reranker, QUERY, [*DOCUMENTS, LONG]).scores
    np.testing.assert_allclose(found, reference(cross_folder, QUERY, [*DOCUMENTS, LONG]), atol=1e-5)
    assert found.min() < 0 or found.max() > 1


def test_only_the_document_is_cut(reranker):
    query = "refund order return item " * 10
    scored = score(reranker, query, [LONG])
    assert (scored.full > scored.tokens).tolist() == [True]
    same = score(reranker, query, [LONG + "delivery"])
    other = score(reranker, "refund order return item " * 9 + "cat dog sofa card", [LONG])
    assert same.scores[0] == pytest.approx(scored.scores[0], abs=1e-6)
    assert other.scores[0] != pytest.approx(scored.scores[0], abs=1e-4)


def test_a_query_that_leaves_no_room_is_cut_and_the_documents_still_count(reranker):
    query = "refund " * 200
    scored = score(reranker, query, ["return item", "cat dog", LONG])
    assert (scored.full > scored.tokens).tolist() == [True, True, True]
    assert scored.tokens.max() <= 64
    assert len(set(scored.scores)) == 3
    kept = 64 - 3 - 16
    expected = score(reranker, "refund " * kept, ["return item", "cat dog", LONG]).scores
    np.testing.assert_allclose(scored.scores, expected, atol=1e-6)


def test_weights_stored_in_16_bits_are_computed_in_32(cross_folder, tmp_path):
    from transformers import AutoModelForSequenceClassification

    half = shutil.copytree(cross_folder, tmp_path / "half")
    AutoModelForSequenceClassification.from_pretrained(cross_folder).half().save_pretrained(half)
    exact = reference(half, QUERY, DOCUMENTS, dtype="float32")
    found = score(prepared(half), QUERY, DOCUMENTS).scores
    np.testing.assert_allclose(found, exact, atol=1e-5)
    rough = score(prepared(half, runtime="torch-bf16"), QUERY, DOCUMENTS).scores
    assert np.abs(rough - exact).max() > 1e-4
