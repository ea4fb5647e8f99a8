"""Labels: numbers as they are, words by a stated table, the rest refused by line; several labels of
a pair resolved to one, with the agreement of the annotators."""

import numpy as np
import pandas as pd
import pytest

from rankdash.core.readers.parse.annotators import kappa
from rankdash.core.readers.parse.values import looks_like_ids, words_in
from tests.readers.reading import shown

NAN = float("nan")


def rows(labels: list[str], names: str = "label") -> str:
    return f"query,document,{names}\n" + "".join(
        f"a,text {i},{label}\n" for i, label in enumerate(labels)
    )


WORDS = (
    *("Exact,Partial,Irrelevant", "E,S,C,I", "exact,substitute,complement,irrelevant"),
    *("4-Excellent,3-Incomplete,2-Related,1-Incorrect", "2: good,0 = bad,1.5 – so so,1、一般"),
    *("relevant,irrelevant", "Relevant,not relevant"),
    *("highly relevant,partially relevant,not relevant", "true,FALSE", "yes,no", "yes,no,1,0"),
    *("-1: harmful,+2: relevant,0: neither", "Perfect,Excellent,Good,Fair,Bad", "1,yes"),
    *("True,False,1,0", "是,否,1,0", "相关,不相关"),
    *("高度相关,部分相关,无关", "是,否", "100,10,1,0", "0.5,0.25,1,0", "-1,0,2,1", "1e-3,2.,+1"),
)


def test_what_is_no_label_is_refused_by_line_and_words_are_asked_for(approved):
    def asked(labels: list[str]):
        return {"x": rows(labels)}, {"ask": True}

    person = {"x": {"Exact": 1.0, "Partial": 0.5, "Meh": None}}
    many = [f"g{letter}" for letter in "abcdefghijklm"]
    told = {"x": {word: float(at) for at, word in enumerate(many)}}
    letters = [f"word{chr(97 + n)}" for n in range(24)]
    drawn = "query_id,doc_id,label,draw,probability\nq1,d1,2,1,0.25\nq1,d2,0,2,0.5\nq1,d3,1,,\n"
    cases = {
        **{f"the labels {words}": {"x": rows(words.split(","))} for words in WORDS},
        "an unknown word": {"x": rows(["Exact", "Partial", "Quelque", "Exact", "Irrelevant"])},
        **{
            f"{word} among numbers": {"x": rows(["1", "0", "2", f'"{word}"'])}
            for word in ("good", "bad", "E", "yes", "relevant", "0,5", "1_000", "0x1")
        },
        **{
            f"{bad} is not finite": {"x": rows(["1", bad, "0"])}
            for bad in ("nan", "NaN", "inf", "-inf", "1e999")
        },
        "empty labels": {"x": rows(["1", "", " ", "0", "1"])},
        "an empty label beside a score": {
            "x": "query,document,label,bm25\na,b,1,9\na,c,,8\na,d,0,7\n"
        },
        "just half of the rows are refused": {"x": rows(["1", "?"])},
        "more than half are": {"x": rows(["1", "?", "?"])},
        "of 30 lines twenty are named": {"x": rows(["1", "?"] * 30 + ["1"])},
        **{
            f"{word} is no label and no bad row": {"x": rows(["2", word, "0"])}
            for word in ("cannot tell", "Cannot Tell", "cannot_tell", "无法判断")
        },
        "known words are asked for with their scale": asked(["Partial", "Exact", "Meh", "Exact"]),
        "from the best to those without a grade": asked(
            ["Meh", "Irrelevant", "Partial", "Exact", "Hm"] * 2
        ),
        **{
            f"{', '.join(labels)} leave nothing open": asked(labels)
            for labels in (["1", "0", "good"], ["yes", "no"], ["TRUE", "false"], ["1", "0"])
        },
        "unknown words that repeat": asked(["great", "awful"] * 2),
        "words of which fewer than half repeat are texts": asked(["great", "awful", "great"]),
        "twenty words": asked(letters[:20] * 2),
        "twenty-one are no grades": asked(letters[:21] * 2),
        "many that do not repeat": asked(letters),
        "what a person says counts": (
            {"x": rows(["Partial", " Exact", "Meh", "Exact"])}, {"words": person, "ask": True}
        ),
        "of many words the first twelve are told": ({"x": rows(many)}, {"words": told}),
        "words for a file that is not there": (
            {"x": rows(["1", "0"])}, {"words": {"y": {"a": 1.0}}}
        ),
        "draws are noticed where both columns are filled, and the row was not refused": {
            "a.csv": drawn + "q1,,1,4,0.5\n"
        },
        "a probability alone": {"a.csv": "query_id,doc_id,label,probability\nq1,d1,2,0.5\n"},
    }  # fmt: skip
    approved("readers/labels.en", shown(cases))


@pytest.mark.parametrize("words", ["ESCI", ["Exact", "Substitute", "Complement", "Irrelevant"]])
def test_words_of_the_esci_task_have_its_gains(words):
    assert [word.gain for word in words_in(np.array([*words], dtype=object))] == [1, 0.1, 0.01, 0]


@pytest.mark.parametrize(("length", "ids"), [(100, True), (101, False)])
def test_a_token_of_up_to_a_hundred_characters_is_an_id(length, ids):
    assert looks_like_ids(pd.Series(["q1", "7" * length, None, " "])) == ids


def test_several_annotators_come_to_one_label(approved):
    def two(*labels: str, names: str = "label_1,label_2"):
        return {"x": rows(list(labels), names)}

    alike, three = ("1,1", "0,0", "1,0"), "label_1,label_2,label_3"
    mixed = ("1,2,2", "2,2,1", "0,1,2", "2,1,0", "2,1,", ",0,1", ",,0", ",,")
    # The example of Cohen's paper: exactly 0.4. With one agreement less it is below.
    paper = ["1,1"] * 20 + ["0,0"] * 14 + ["1,0"] * 5 + ["0,1"] * 10
    cases = {
        **{
            rule: (two(*mixed, names=three), {"annotators": rule})
            for rule in ("majority", "mean", "median")
        },
        **{
            f"known by {names}": two(*alike, names=names)
            for names in ("annotator A,annotator B", "Rater1,Rater2", "标注员1,标注员2")
        },
        "called by people": two("1,0", "0,0", names="label_anna,label_bob"),
        "words": two("Exact,Partial", "Irrelevant,Irrelevant", "Exact,Exact"),
        "a label beside them decides": two("1,1,0", "0,0,0", names="label_1,label_2,label"),
        "of no mind": two("1,0", "0,1", "1,1", "0,0"),
        "a kappa of just 0.4 is enough": two("0,0", *paper),
        "and less is not": two(*paper),
        "twelve grades": two(*(f"{n},{n}" for n in range(12))),
        "thirteen are none": two(*(f"{n},{n}" for n in range(13))),
        "a cell that is no label": two("1,1", "0,inf", "2,2", "1,0"),
    }  # fmt: skip
    approved("readers/annotators.en", shown(cases))


def test_kappa_of_the_published_examples():
    # Cohen, 50 proposals: both yes 20, both no 15, yes and no 5, no and yes 10; κ = 0.4.
    values = np.repeat([[1.0, 1], [0, 0], [1, 0], [0, 1]], [20, 15, 5, 10], axis=0)
    assert kappa(values) == pytest.approx(0.4)
    assert kappa(np.array([[1.0, 1], [0, 0], [2, NAN]])) == pytest.approx(1)
    assert kappa(np.array([[1.0, 1]] * 9 + [[1, 0]])) == pytest.approx(0, abs=1e-9)
    # Fleiss 1971, the example of textbooks: 14 raters, 10 subjects, 5 grades; κ = 0.210.
    counts = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    values = np.array([np.repeat(np.arange(5.0), row) for row in counts])
    assert kappa(values) == pytest.approx(0.210, abs=5e-4)
