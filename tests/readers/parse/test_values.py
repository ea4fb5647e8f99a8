"""Labels: numbers as they are, words by a stated table, the rest refused by line."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.errors import FormatError
from rankdash.readers import Source, WordsNeeded, read
from rankdash.readers.parse.values import looks_like_ids, words_in


def rows(labels: list[str]) -> str:
    return "query,document,label\n" + "".join(
        f"a,text {i},{label}\n" for i, label in enumerate(labels)
    )


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["Exact", "Partial", "Irrelevant"], [2, 1, 0]),
        (["E", "S", "C", "I"], [3, 2, 1, 0]),
        (["exact", "substitute", "complement", "irrelevant"], [3, 2, 1, 0]),
        (["4-Excellent", "3-Incomplete", "2-Related", "1-Incorrect"], [4, 3, 2, 1]),
        (["2: good", "0 = bad", "1.5 – so so", "1、一般"], [2, 0, 1.5, 1]),
        (["relevant", "irrelevant"], [1, 0]),
        (["Relevant", "not relevant"], [1, 0]),
        (["highly relevant", "partially relevant", "not relevant"], [2, 1, 0]),
        (["true", "FALSE"], [1, 0]),
        (["yes", "no"], [1, 0]),
        (["Perfect", "Excellent", "Good", "Fair", "Bad"], [4, 3, 2, 1, 0]),
        (["相关", "不相关"], [1, 0]),
        (["高度相关", "部分相关", "无关"], [2, 1, 0]),
        (["是", "否"], [1, 0]),
    ],
)
def test_words_are_read_by_a_table_that_is_told(parse, found, words, values):
    parsed = parse({"x": rows(words)})

    assert parsed.qrels["label"].tolist() == values
    finding = found(parsed, "word_labels")
    assert finding.severity == "warning"
    assert f"{words[0]} = {values[0]:g}" in finding.text


@pytest.mark.parametrize(
    "labels",
    [
        ["100", "10", "1", "0"],
        ["0.5", "0.25", "1", "0"],
        ["-1", "0", "2", "1"],
        ["1e-3", "2.", "+1"],
    ],
)
def test_numbers_stay_what_they_are(parse, codes, labels):
    parsed = parse({"x": rows(labels)})

    assert parsed.qrels["label"].tolist() == [float(label) for label in labels]
    assert "word_labels" not in codes(parsed)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=9))
def test_no_number_is_floored_or_rounded(labels):
    parsed = read([Source("x", rows([repr(label) for label in labels]).encode())])

    assert parsed.qrels["label"].tolist() == labels


def test_unknown_words_are_refused_with_file_line_reason_and_remedy(parse, found):
    parsed = parse({"x.csv": rows(["Exact", "Partial", "Quelque", "Exact", "Irrelevant"])})

    finding = found(parsed, "bad_label")
    assert (finding.file, finding.line, finding.examples) == ("x.csv", 4, ("a | text 2 | Quelque",))
    assert "neither a number nor a known word" in finding.text
    assert finding.remedy
    assert len(parsed.qrels) == 4


@pytest.mark.parametrize("word", ["good", "bad", "E", "yes", "relevant", "0,5", "1_000", "0x1"])
def test_a_stray_word_among_numbers_is_no_grade(parse, found, word):
    parsed = parse({"x": rows(["1", "0", "2", f'"{word}"'])})

    assert found(parsed, "bad_label").line == 5


def test_yes_and_no_among_other_grades_are_no_labels(parse, found):
    assert found(parse({"x": rows(["1", "2", "0", "yes"])}), "bad_label").line == 5
    assert parse({"x": rows(["1", "yes"])}).qrels["label"].tolist() == [1, 1]


@pytest.mark.parametrize("bad", ["nan", "NaN", "inf", "-inf", "1e999"])
def test_labels_that_are_not_finite_are_refused(parse, found, bad):
    parsed = parse({"x": rows(["1", bad, "0"])})

    assert found(parsed, "bad_label").line == 3


def test_an_empty_label_is_refused_by_line(parse, found):
    assert found(parse({"x": rows(["1", "", " ", "0", "1"])}), "no_label").params["lines"] == "3, 4"


def test_an_empty_label_beside_a_score_is_a_candidate_that_nobody_judged(parse, found):
    text = "query,document,label,bm25\na,b,1,9\na,c,,8\na,d,0,7\n"

    parsed = parse({"x": text})

    assert len(parsed.candidates) == 3
    assert len(parsed.qrels) == 2
    assert found(parsed, "unlabelled_rows").severity == "note"


def test_many_refused_lines_are_counted_and_the_first_twenty_named(parse, found):
    parsed = parse({"x": rows(["1", "?"] * 30 + ["1"])})

    finding = found(parsed, "bad_label")
    assert finding.count == 30
    assert finding.params["lines"].count(",") == 19
    assert finding.params["lines"].endswith("41 …")


@pytest.mark.parametrize(("yes", "no"), [("yes", "no"), ("True", "False"), ("是", "否")])
def test_yes_and_no_among_ones_and_zeros_are_labels(parse, found, yes, no):
    parsed = parse({"x": rows([yes, no, "1", "0"])})

    assert parsed.qrels["label"].tolist() == [1, 0, 1, 0]
    assert f"{yes} = 1" in found(parsed, "word_labels").text


def asked(parse, labels: list[str], **options: object) -> dict[str, float | None]:
    with pytest.raises(WordsNeeded) as needed:
        parse({"x": rows(labels)}, ask=True, **options)
    assert needed.value.file == "x"
    return {word.text: word.grade for word in needed.value.words}


@pytest.mark.parametrize("words", ["ESCI", ["Exact", "Substitute", "Complement", "Irrelevant"]])
def test_words_of_the_esci_task_have_its_gains(words):
    assert [word.gain for word in words_in(np.array([*words], dtype=object))] == [1, 0.1, 0.01, 0]


def test_a_person_is_asked_for_words_with_the_scale_filled_in(parse):
    assert asked(parse, ["Partial", "Exact", "Meh", "Exact"]) == {
        "Exact": 2,
        "Partial": 1,
        "Meh": None,
    }
    assert asked(parse, ["4-Excellent", "1-Bad"]) == {"4-Excellent": 4, "1-Bad": 1}


def test_words_are_asked_for_from_the_best_to_those_without_a_grade(parse):
    labels = ["Meh", "Irrelevant", "Partial", "Exact", "Hm"] * 2
    assert list(asked(parse, labels).items()) == [
        ("Exact", 2), ("Partial", 1), ("Irrelevant", 0), ("Meh", None), ("Hm", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "labels", [["1", "0", "good"], ["yes", "no"], ["TRUE", "false"], ["1", "0"]]
)
def test_nobody_is_asked_where_the_words_leave_nothing_open(parse, labels):
    assert len(parse({"x": rows(labels)}, ask=True).qrels) >= 2


def test_unknown_words_are_asked_for_where_they_repeat_as_grades_do(parse):
    assert asked(parse, ["great", "awful"] * 2) == {"great": None, "awful": None}
    with pytest.raises(FormatError, match="neither a number nor a known word"):
        parse({"x": rows(["an answer", "another answer"])}, ask=True)


@pytest.mark.parametrize(("words", "rows_of_each", "asks"), [(20, 2, True), (21, 2, False)])
def test_more_than_twenty_words_are_no_grades(parse, words, rows_of_each, asks):
    labels = [f"word{chr(97 + n)}" for n in range(words)] * rows_of_each
    if asks:
        assert len(asked(parse, labels)) == words
    else:
        with pytest.raises(FormatError, match="neither a number nor a known word"):
            parse({"x": rows(labels)}, ask=True)


def test_unknown_words_of_which_fewer_than_half_repeat_are_texts(parse):
    with pytest.raises(FormatError, match="neither a number nor a known word"):
        parse({"x": rows(["great", "awful", "great"])}, ask=True)


@pytest.mark.parametrize(("bad", "kept"), [(1, True), (2, False)])
def test_a_file_of_which_just_half_is_refused_is_read(parse, bad, kept):
    labels = ["1", *"?" * bad]
    if kept:
        assert parse({"x": rows(labels)}).qrels["label"].tolist() == [1.0]
    else:
        with pytest.raises(FormatError, match="Rows that cannot be used: 2 of 3"):
            parse({"x": rows(labels)})


def test_nobody_is_asked_about_a_column_of_texts(parse):
    with pytest.raises(FormatError, match="neither a number nor a known word"):
        parse({"x": rows([f"word{chr(97 + n)}" for n in range(24)])}, ask=True)


def test_what_a_person_says_of_words_counts_and_is_told(parse, found):
    words = {"x": {"Exact": 1.0, "Partial": 0.5, "Meh": None}}
    parsed = parse({"x": rows(["Partial", " Exact", "Meh", "Exact"])}, words=words, ask=True)

    assert parsed.qrels["label"].tolist() == [0.5, 1, 1]
    finding = found(parsed, "word_labels")
    assert "Partial = 0.5" in finding.text
    # Who answered needs no warning of the answer.
    assert (finding.severity, finding.remedy) == ("note", "")
    assert found(parsed, "bad_label").line == 4


def test_words_for_a_file_that_is_not_there_are_refused(parse):
    with pytest.raises(FormatError, match="not among the files"):
        parse({"x": rows(["1", "0"])}, words={"y": {"a": 1.0}})


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from("ABCDEF"), st.floats(-9, 9), min_size=1))
def test_every_word_is_the_grade_it_was_given(words):
    labels = list(words) * 2
    parsed = read([Source("x", rows(labels).encode())], words={"x": words}, ask=True)

    assert parsed.qrels["label"].tolist() == [words[label] for label in labels]


@pytest.mark.parametrize(("length", "ids"), [(100, True), (101, False)])
def test_a_token_of_up_to_a_hundred_characters_is_an_id(length, ids):
    assert looks_like_ids(pd.Series(["q1", "7" * length, None, " "])) == ids
