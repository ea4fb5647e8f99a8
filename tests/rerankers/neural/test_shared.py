import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.errors import UnavailableError
from rankdash.rerankers import Request, Scored
from rankdash.rerankers.neural.shared import (
    answer_each,
    around,
    checked,
    first_line,
    prompted,
    readable,
    unit,
)


def requests(*names):
    return [Request(name, name, ["d"], ["text"]) for name in names]


def test_only_the_query_that_breaks_the_model_fails():
    def together(asked):
        if any(request.query == "bad" for request in asked):
            raise RuntimeError("\nout of memory\nand a long trace")
        return [Scored(np.ones(1)) for _ in asked]

    first, bad, last = answer_each(requests("one", "bad", "two"), together)
    assert first.error == last.error == ""
    assert bad.error == "out of memory"
    assert np.isnan(bad.scores).all()


def test_an_error_that_is_ours_is_not_taken_for_a_failed_query():
    def together(asked):
        raise UnavailableError("gone")

    with pytest.raises(UnavailableError):
        answer_each(requests("one", "two"), together)


def test_one_score_that_is_not_finite_fails_the_query_and_is_never_zero():
    scored = checked(np.array([1.0, np.inf, 2.0]), None, None, 0.5)
    assert "1 of 3" in scored.error
    assert np.isnan(scored.scores).all()


def test_an_answer_that_is_finite_is_kept_as_it_is():
    tokens, full = np.array([3, 4]), np.array([3, 9])
    scored = checked(np.array([1.0, -2.0]), tokens, full, 0.5)
    assert (scored.error, scored.scores.tolist()) == ("", [1.0, -2.0])
    assert (scored.tokens, scored.full, scored.index_seconds) == (tokens, full, 0.5)


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("", "text"),
        ("query: ", "query: text"),
        ("<{text}>", "<text>"),
        ("{text} of {text}", "text of {text}"),
    ],
)
def test_a_prompt_stands_before_a_text_or_around_it(prompt, told):
    assert prompted(prompt, "text") == told
    assert "".join(around(prompt)) == told.replace("text", "", 1)


def test_half_of_a_character_becomes_a_question_mark_in_a_text_and_in_its_prompt():
    assert prompted("\ud800 ", "\udfffx") == "? ?x"


def test_vectors_get_length_1_and_nothing_stays_nothing():
    found = unit(np.array([[[3.0, 4.0]], [[0.0, 0.0]]]))
    assert found.tolist() == [[[0.6, 0.8]], [[0.0, 0.0]]]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("\n \nwhy\nmore"), "why"),
        (ValueError(" \n"), "ValueError"),
        (KeyError(), "KeyError"),
    ],
)
def test_the_first_line_that_says_anything_is_told_or_the_kind_of_error(error, said):
    assert first_line(error) == said


@pytest.mark.parametrize(
    "error", [RuntimeError, ValueError, TypeError, LookupError, MemoryError, KeyboardInterrupt]
)
def test_errors_of_models_fail_a_query_and_what_ends_a_program_ends_it(error):
    def together(asked):
        raise error("no")

    if issubclass(error, Exception):
        assert [answer.error for answer in answer_each(requests("one", "two"), together)] == [
            "no", "no"
        ]  # fmt: skip
    else:
        with pytest.raises(error):
            answer_each(requests("one", "two"), together)


@given(st.text(st.characters(blacklist_categories=())))
def test_readable_text_can_be_encoded_and_keeps_its_length(text):
    assert len(readable(text)) == len(text)
    readable(text).encode("utf-8")
