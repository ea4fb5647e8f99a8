"""Leaving parts out: nothing of the text is lost, and effects of a made-up scorer are exact."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.analysis.reasons.occlusion import (
    LONGEST_LOOKED_AT,
    MOST_PARTS,
    Explanation,
    Stage,
    cost,
    explain,
    sentence_pieces,
    sentences,
    strongest,
    terms,
    word_pieces,
)
from rankdash.errors import ScoringError

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
    """A score that is the sum of what each word is worth, once, wherever it stands."""

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
    for spans in (word_pieces(text, query), sentence_pieces(text)):
        assert "".join(text[start:end] for start, end in spans) == text
        assert all(start < end for start, end in spans)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_cut_within_its_limit(text):
    for spans in (word_pieces(text, text[:50]), sentence_pieces(text)):
        assert "".join(text[start:end] for start, end in spans) == text[:LONGEST_LOOKED_AT]
    assert len(sentences(text)) <= MOST_PARTS
    for part in [*terms(text, ""), *sentences(text)]:
        assert len(part.without(text)) == len(text) - sum(end - at for at, end in part.places)
        assert part.shown(text)
    for level in ("term", "sentence", "query"):
        told = cost("a query", text, level)
        found = explain("a query", text, level, lambda each: np.ones(len(each)))
        asked = 1 + sum(np.isfinite(stage.effects).sum() for stage in found.stages)
        assert asked == told.variants if told.sure and told.variants else True
        assert asked <= max(told.variants, 1)


def test_a_word_is_one_term_with_all_its_places():
    text = "Don't pay 3.5 twice; PAY once."
    parts = {part.shown(text): part for part in terms(text, "")}
    assert list(parts) == ["Don't", "pay", "3.5", "twice", "once"]
    assert parts["pay"].without(text) == "Don't 3.5 twice; once."
    assert parts["once"].without(text) == "Don't pay 3.5 twice; PAY ."


def test_signs_are_no_words_and_accents_and_emoji_are():
    text = "<b>Cafe\u0301</b> = 5 € 🙂"
    assert [part.shown(text) for part in terms(text, "")] == ["b", "Cafe\u0301", "5", "€", "🙂"]


def test_chinese_is_cut_along_the_query_and_its_particles():
    text = "退货申请需要在签收后七天内提交。"
    shown = [part.shown(text) for part in terms(text, "如何申请退货")]
    assert shown[:2] == ["退货", "申请"]
    assert "在" in shown
    assert all(len(each) <= 2 for each in shown)


def test_sentences_end_where_a_reader_ends_them():
    text = 'It costs 3.5 euros. "Really?" Yes! 可以退货。七天内。\nLast one'
    assert [part.shown(text) for part in sentences(text)] == [
        "It costs 3.5 euros.",
        '"Really?"',
        "Yes!",
        "可以退货。",
        "七天内。",
        "Last one",
    ]


def test_effects_of_an_additive_scorer_are_what_each_word_is_worth():
    scorer = Worth({"refund": 2.0, "gift": 0.5, "never": -1.25}, bias=7.0)
    document = "A gift has a refund. Never a refund, never."
    found = explain("how", document, "term", scorer)
    assert found.score == 7.0 + 2.0 + 0.5 - 1.25
    assert effects(found, document) == {
        "A": 0.0, "gift": 0.5, "has": 0.0, "refund": 2.0, "Never": -1.25
    }  # fmt: skip
    assert len(scorer.asked) == cost("how", document, "term").variants == 6


@pytest.mark.parametrize(
    ("count", "parts"), [(150, 150), (151, 76), (299, 150), (300, 150), (301, 101)]
)
def test_neighbouring_sentences_go_together_where_there_are_too_many(count, parts):
    text = "".join(f"Sentence {number} ends. " for number in range(count))
    found = sentences(text)
    assert len(found) == parts
    assert "".join(text[slice(*place)] for part in found for place in part.places) == text


def test_effects_of_sentences_and_of_query_terms():
    scorer = Worth({"refund": 2.0, "gift": 0.5})
    document = "A gift. No refund. The end."
    assert effects(explain("q", document, "sentence", scorer), document) == {
        "A gift.": 0.5, "No refund.": 2.0, "The end.": 0.0
    }  # fmt: skip
    query = "refund my gift"
    found = explain(query, "nothing", "query", scorer)
    assert effects(found, query) == {"refund": 2.0, "my": 0.0, "gift": 0.5}
    assert {variant.document for variant in scorer.asked[-4:]} == {"nothing"}


def test_a_long_document_goes_by_sentence_and_then_into_the_strongest():
    dull = [" ".join(f"w{n}x{k}" for k in range(30)) + "." for n in range(20)]
    document = " ".join([*dull[:7], "The refund is due.", *dull[7:]])
    scorer = Worth({"refund": 2.0, "w3x4 ": 1.0})
    told = cost("q", document, "term")
    assert (told.by_sentence, told.sure) == (True, False)
    found = explain("q", document, "term", scorer)
    assert [stage.level for stage in found.stages] == ["sentence", "term"]
    by_sentence = effects(found, document, 0)
    assert by_sentence["The refund is due."] == 2.0
    assert sorted(by_sentence.values())[-2:] == [1.0, 2.0]
    by_term = effects(found, document)
    assert by_term["refund"] == 2.0
    assert by_term["w3x4"] == 1.0
    assert len(by_term) <= MOST_PARTS
    assert len(scorer.asked) <= told.variants


def test_the_strongest_sentence_is_judged_as_far_as_there_is_room():
    text = " ".join(f"w{n}" for n in range(60)) + ". Two words."
    parts, found = terms(text, ""), sentences(text)
    stage = Stage("sentence", tuple(found), (-3.0, math.nan))
    assert [part.shown(text) for part in strongest(parts, stage, 10)] == [
        f"w{n}" for n in range(10)
    ]
    stage = Stage("sentence", tuple(found), (math.nan, 0.1))
    assert [part.shown(text) for part in strongest(parts, stage, 10)] == ["Two", "words"]


def test_a_variant_that_failed_has_no_effect_rather_than_none():
    def scorer(variants):
        return np.array([math.nan if "b" not in each.document else 1.0 for each in variants])

    assert str(effects(explain("q", "a b", "term", scorer), "a b")) == "{'a': 0.0, 'b': nan}"


def test_a_pair_that_cannot_be_scored_is_refused():
    with pytest.raises(ScoringError, match="no score for the complete document"):
        explain("q", "a b", "term", lambda variants: np.full(len(variants), np.nan))


@pytest.mark.parametrize("document", ["", " \n", "alone", "孤"])
@pytest.mark.parametrize("level", ["term", "sentence"])
def test_without_a_part_to_spare_nothing_is_asked(document, level):
    assert cost("q", document, level).variants == 0
    scorer = Worth({})
    found = explain("q", document, level, scorer)
    assert len(scorer.asked) == 1
    assert all(math.isnan(effect) for effect in found.stages[0].effects)


def test_what_is_kept_is_what_was_found():
    found = explain("q", "a b c", "term", Worth({"a": 1.0}))
    with_gap = Explanation(
        0.25, (Stage("query", found.stages[0].parts, (math.nan, 1e-9, -2.5)),), 4, 9
    )
    assert Explanation.from_json(found.to_json()) == found
    again = Explanation.from_json(with_gap.to_json())
    assert str(again) == str(with_gap)
    assert "NaN" not in with_gap.to_json()


@pytest.mark.parametrize(("count", "levels"), [(150, ["term"]), (151, ["sentence", "term"])])
def test_a_document_goes_by_sentence_first_where_it_has_more_terms_than_are_tried(count, levels):
    document = " ".join(f"w{n}" for n in range(count)) + ". The w0 ends."
    document = document.replace("The", "w1").replace("ends", "w2")
    found = explain("q", document, "term", Worth({}))
    assert [stage.level for stage in found.stages] == levels
    told = cost("q", document, "term")
    assert (told.sure, told.by_sentence) == (len(levels) == 1, len(levels) == 2)
    # The long sentence is cut in two.
    assert told.variants == (151 if len(levels) == 1 else 1 + 3 + MOST_PARTS)


@pytest.mark.parametrize(("most", "tried"), [(12, 12), (11, 10), (10, 10), (9, 9)])
def test_a_sentence_that_just_fits_is_judged_and_one_that_does_not_is_left(most, tried):
    text = " ".join(f"w{n}" for n in range(10)) + ". Two words."
    stage = Stage("sentence", tuple(sentences(text)), (3.0, 1.0))
    found = [part.shown(text) for part in strongest(terms(text, ""), stage, most)]
    assert found == [*(f"w{n}" for n in range(10)), "Two", "words"][:tried]


def test_a_text_of_blanks_alone_is_asked_about_nothing():
    assert cost("q", " \n alone", "term").variants == 0
    assert cost("q", " \n alone again", "term").variants == 3


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("x" * 400, [400]),
        ("x" * 401, [400, 401]),
        # At the last blank, which stays with what is before it.
        ("a" * 300 + " " + "b" * 200, [301, 501]),
    ],
)
def test_what_is_too_long_for_a_sentence_is_cut_at_a_blank(text, ends):
    assert [end for _start, end in sentence_pieces(text)] == ends


@pytest.mark.parametrize(
    ("text", "query", "pieces"),
    [
        ("退货申请表", "如何退货申请", ["退货申请", "表"]),
        ("我退货", "退货", ["我", "退货"]),
        # One character in common is no word.
        ("退货单", "退", ["退货", "单"]),
    ],
)
def test_the_longest_stretch_in_common_stays_together(text, query, pieces):
    assert [part.shown(text) for part in terms(text, query)] == pieces
    assert list(effects(explain(query, text, "term", Worth({})), text)) == pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("签收后的七天", ["签收", "后", "的", "七天"]),
        ("的了退", ["的", "了", "退"]),
        ("退货单", ["退货", "单"]),
        ("退货and单据3", ["退货", "and", "单据", "3"]),
    ],
)
def test_text_without_blanks_goes_by_two_and_a_particle_stands_alone(text, pieces):
    assert [text[slice(*place)] for place in word_pieces(text)] == pieces


@pytest.mark.parametrize(("length", "pieces"), [(8, [8]), (9, [8, 1]), (10, [8, 2])])
def test_at_most_eight_characters_in_common_stay_together(length, pieces):
    text = "甲乙丙丁戊己庚辛壬癸"[:length]
    assert [end - start for start, end in word_pieces(text, text)] == pieces


def test_a_sign_joins_what_it_stands_between_and_nothing_else():
    text = "'tis a-b 3.5. x--y don’t e,f 退-货"
    shown = [text[slice(*place)] for place in word_pieces(text)]
    assert [each for each in shown if any(map(str.isalnum, each))] == [
        "tis", "a-b", "3.5", "x", "y", "don’t", "e", "f", "退", "货"
    ]  # fmt: skip


def test_a_term_belongs_to_every_sentence_that_it_stands_in():
    text = "a b. c a. d."
    found, parts = sentences(text), terms(text, "")
    stage = Stage("sentence", tuple(found), (0.0, -2.0, 1.0))
    assert [part.shown(text) for part in strongest(parts, stage, 3)] == ["a", "c", "d"]
    assert [part.shown(text) for part in strongest(parts, stage, 2)] == ["a", "c"]
    equal = Stage("sentence", tuple(found), (1.0, 1.0, 1.0))
    assert [part.shown(text) for part in strongest(parts, equal, 2)] == ["a", "b"]


@pytest.mark.parametrize(
    "change", [{"effects": [0.5, 0.5]}, {"level": "word"}, {"parts": [[[-1, 2]]]}]
)
def test_what_was_not_kept_by_an_explanation_is_none(change):
    stage = {"level": "term", "parts": [[[0, 2]]], "effects": [0.5]}
    kept = {"score": 1.0, "stages": [stage], "read": None, "full": None}
    assert Explanation.from_json(json.dumps(kept)).stages[0].effects == (0.5,)
    with pytest.raises(ValueError):
        Explanation.from_json(json.dumps({**kept, "stages": [{**stage, **change}]}))


def test_a_word_in_wide_letters_is_the_same_word():
    (part,) = terms("ＡＢＣ abc", "")
    assert len(part.places) == 2
