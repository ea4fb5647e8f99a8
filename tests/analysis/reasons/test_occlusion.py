"""Omission of parts: no text is lost, and effects of a made-up scorer are exact."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.data.explanation import Explanation, Stage
from rankdash.features.queries import occlusion
from tests.results import results, several, shown

TEXTS = st.text(
    st.one_of(st.characters(), st.sampled_from("ab .,!?\n'-。退货款的，\u0301\u202e")), max_size=300
)
HOSTILE = [
    "<script>alert(1)</script> & \x00\x07 \ud800 \u202e abc",
    "." * 30_000,
    "'" * 9_000 + "a-" * 9_000,
    "x" * 30_000,
    "退" * 30_000,
    "a\u0301" * 5_000,
    "word " * 5_000 + "。" * 3_000,
    " \n\t ",
]


class Worth:
    """A score that is the sum of the weights of its words, each counted once, at any position."""

    def __init__(self, worth, bias=0.0):
        self.worth, self.bias, self.asked = worth, bias, []

    def __call__(self, variants):
        self.asked += variants
        return np.array([self.bias + self._of(each) for each in variants])

    def _of(self, variant):
        text = f"{variant.query} | {variant.document}"
        return sum(value for word, value in self.worth.items() if word in text)


def effects(found, text, stage=-1):
    own = found.stages[stage]
    return dict(zip([part.shown(text) for part in own.parts], own.effects, strict=True))


@given(TEXTS, TEXTS)
def test_pieces_joined_are_the_text(text, query):
    for spans in (occlusion.word_pieces(text, query), occlusion.sentence_pieces(text)):
        assert "".join(text[start:end] for start, end in spans) == text
        assert all(start < end for start, end in spans)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_cut_within_its_limit(text):
    for spans in (occlusion.word_pieces(text, text[:50]), occlusion.sentence_pieces(text)):
        assert (
            "".join(text[start:end] for start, end in spans) == text[: occlusion.LONGEST_LOOKED_AT]
        )
    assert len(occlusion.sentences(text)) <= occlusion.MOST_PARTS
    for part in [*occlusion.terms(text, ""), *occlusion.sentences(text)]:
        assert len(part.without(text)) == len(text) - sum(end - at for at, end in part.places)
        assert part.shown(text)
    for level in ("term", "sentence", "query"):
        told = occlusion.cost("a query", text, level)
        found = occlusion.explain("a query", text, level, lambda each: np.ones(len(each)))
        asked = 1 + sum(np.isfinite(stage.effects).sum() for stage in found.stages)
        assert asked == told.variants if told.sure and told.variants else True
        assert asked <= max(told.variants, 1)


def cut(spans, text):
    return [text[start:end] for start, end in spans]


def named(parts, text):
    return [part.shown(text) for part in parts]


def asked(query, text, level, worth, bias=0.0):
    """Return per stage the effect of each part, and the numbers of variants: scored, predicted."""
    scorer = Worth(worth, bias)
    found = occlusion.explain(query, text, level, scorer)
    of = query if level == "query" else text
    stages = [f"{stage.level}: {shown(effects(found, of, at))}"
              for at, stage in enumerate(found.stages)]  # fmt: skip
    return found.score, *stages, len(scorer.asked), occlusion.cost(query, text, level)


def words(count, sentence):
    return " ".join(f"w{n}" for n in range(count)) + sentence


def best(text, effects, most):
    stage = Stage("sentence", tuple(occlusion.sentences(text)), effects)
    return named(occlusion.strongest(occlusion.terms(text, ""), stage, most), text)


MARKS = "<b>Cafe\u0301</b> = 5 € 🙂"
READER = 'It costs 3.5 euros. "Really?" Yes! 可以退货。七天内。\nLast one'
TWICE = "Don't pay 3.5 twice; PAY once."
GIFT = "A gift has a refund. Never a refund, never."
DULL = [" ".join(f"w{n}x{k}" for k in range(30)) + "." for n in range(20)]
LONG = " ".join([*DULL[:7], "The refund is due.", *DULL[7:]])
SIGNS = "'tis a-b 3.5. x--y don’t e,f 退-货"
LETTERS = "甲乙丙丁戊己庚辛壬癸"
CASES = {
    **several(
        "{} sentences go together", lambda n: len(occlusion.sentences("One ends. " * n)),
        (150, 151, 299, 300, 301),
    ),
    "a word is one term with all its places": lambda: named(occlusion.terms(TWICE, ""), TWICE),
    "without a term": lambda: [part.without(TWICE) for part in occlusion.terms(TWICE, "")],
    "wide letters are the same word": lambda: occlusion.terms("ＡＢＣ abc", ""),
    "signs are no words, accents and emoji are": lambda: named(occlusion.terms(MARKS, ""), MARKS),
    "a sign joins what it stands between": lambda: [
        each for each in cut(occlusion.word_pieces(SIGNS), SIGNS) if any(map(str.isalnum, each))
    ],
    "sentences end where a reader ends them": lambda: named(occlusion.sentences(READER), READER),
    **{
        f"too long for a sentence: {name}": lambda text=text: [
            end for _start, end in occlusion.sentence_pieces(text)
        ]
        for name, text in {"400": "x" * 400, "401": "x" * 401,
                           "at the last blank": "a" * 300 + " " + "b" * 200}.items()
    },
    **{
        f"{text} along {query}": lambda text=text, query=query: (
            named(occlusion.terms(text, query), text),
            list(effects(occlusion.explain(query, text, "term", Worth({})), text)),
        )
        for text, query in (
            ("退货申请需要在签收后七天内提交。", "如何申请退货"), ("退货申请表", "如何退货申请"),
            # One common character is not a word.
            ("我退货", "退货"), ("退货单", "退"),
        )
    },
    **{
        f"without blanks: {text}": lambda text=text: cut(occlusion.word_pieces(text), text)
        for text in ("签收后的七天", "的了退", "退货单", "退货and单据3")
    },
    **{
        f"{length} characters in common": lambda text=LETTERS[:length]: cut(
            occlusion.word_pieces(text, text), text
        )
        for length in (8, 9, 10)
    },
    "what each word is worth, wherever it stands": lambda: asked(
        "how", GIFT, "term", {"refund": 2.0, "gift": 0.5, "never": -1.25}, bias=7.0
    ),
    "of sentences": lambda: asked(
        "q", "A gift. No refund. The end.", "sentence", {"refund": 2.0, "gift": 0.5}
    ),
    "of terms of the query": lambda: asked(
        "refund my gift", "nothing", "query", {"refund": 2.0, "gift": 0.5}
    ),
    "long: by sentence, then into the strongest": lambda: [
        each if not isinstance(each, str) else sorted(
            (part for part in each.split(", ") if not part.endswith("=0")), key=len
        )[:4]
        for each in asked("q", LONG, "term", {"refund": 2.0, "w3x4 ": 1.0})
    ],
    **several(
        "{} terms and a sentence",
        lambda count: asked("q", words(count, ". w1 w0 w2."), "term", {})[-2:],
        (150, 151),
    ),
    **{
        f"{level} of {document!r}": lambda level=level, document=document: asked(
            "q", document, level, {}
        )
        for level in ("term", "sentence")
        for document in ("", " \n", "alone", "孤", " \n alone", " \n alone again")
    },
    **{
        f"room for {most} of 12": lambda most=most: best(words(10, ". A pair."), (3.0, 1.0), most)
        for most in (12, 11, 10, 9)
    },
    "as far as there is room": lambda: best(words(60, ". Two words."), (-3.0, math.nan), 10),
    "the other sentence": lambda: best(words(60, ". Two words."), (math.nan, 0.1), 10),
    **several(
        "a term of two sentences, {}, {}",
        lambda effects, most: best("a b. c a. d.", effects, most),
        (((0.0, -2.0, 1.0), 3), ((0.0, -2.0, 1.0), 2), ((1.0, 1.0, 1.0), 2)),
    ),
    "a variant that failed has no effect": lambda: effects(occlusion.explain(
        "q", "a b", "term",
        lambda variants: np.array([1.0 if "b" in each.document else math.nan for each in variants]),
    ), "a b"),
    "a pair that cannot be scored": lambda: occlusion.explain(
        "q", "a b", "term", lambda variants: np.full(len(variants), np.nan)
    ),
}  # fmt: skip


def test_texts_are_cut_and_their_parts_left_out(approved):
    approved("analysis/occlusion", results(CASES))


def test_what_is_kept_is_what_was_found():
    found = occlusion.explain("q", "a b c", "term", Worth({"a": 1.0}))
    with_gap = Explanation(
        0.25, (Stage("query", found.stages[0].parts, (math.nan, 1e-9, -2.5)),), 4, 9
    )
    assert Explanation.from_json(found.to_json()) == found
    again = Explanation.from_json(with_gap.to_json())
    assert str(again) == str(with_gap)
    assert "NaN" not in with_gap.to_json()


@pytest.mark.parametrize(
    "change", [{"effects": [0.5, 0.5]}, {"level": "word"}, {"parts": [[[-1, 2]]]}]
)
def test_what_was_not_kept_by_an_explanation_is_none(change):
    stage = {"level": "term", "parts": [[[0, 2]]], "effects": [0.5]}
    kept = {"score": 1.0, "stages": [stage], "read": None, "full": None}
    assert Explanation.from_json(json.dumps(kept)).stages[0].effects == (0.5,)
    with pytest.raises(ValueError):
        Explanation.from_json(json.dumps({**kept, "stages": [{**stage, **change}]}))
