import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.errors import UnavailableError
from rankdash.rerankers import Request, Scored
from rankdash.rerankers.neural.batches import Batching, Frame, compute, compute_each, plan
from rankdash.rerankers.neural.shared import (
    answer_each,
    around,
    checked,
    first_line,
    prompted,
    readable,
    unit,
)

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=80)


@given(LENGTHS, st.integers(1, 300), st.integers(1, 16))
def test_a_plan_holds_every_row_once_within_the_budget(lengths, budget, rounding):
    array = np.array(lengths, dtype=np.int64)
    found = plan(array, budget, rounding, limit=60)
    assert sorted(row for batch in found.batches for row in batch) == list(range(len(lengths)))
    for rows, width in zip(found.batches, found.widths, strict=True):
        assert array[rows].max() <= width <= 60
        assert len(rows) == 1 or len(rows) * width <= budget


def test_rows_of_many_queries_are_computed_almost_without_padding():
    lengths = np.random.default_rng(0).integers(20, 512, size=500)
    assert plan(lengths, 1024).slots <= 1.02 * lengths.sum()


def weighted(ids, mask, types):
    """A model whose answer depends on every token that is not padding, and on its type."""
    places = np.arange(1, ids.shape[1] + 1)
    return ((ids * 3 + types) * mask * places).sum(axis=1, keepdims=True).astype(np.float32)


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=12), max_size=30), st.data())
def test_each_row_gets_its_own_answer_whatever_the_batches(rows, data):
    rows = [np.array(row, dtype=np.int64) for row in rows]
    types = [row % 2 for row in rows]
    budget = data.draw(st.integers(1, 40))
    found = compute(rows, types, weighted, Batching(budget, padding=7, rounding=4, limit=12))
    expected = [
        weighted(row[None], np.ones((1, len(row))), kinds[None])[0, 0]
        for row, kinds in zip(rows, types, strict=True)
    ]
    assert found.reshape(-1).tolist() == expected


def test_equal_rows_are_computed_once_and_rows_of_other_types_are_not_equal():
    seen = []

    def noting(ids, mask, types):
        seen.extend(ids.tolist())
        return weighted(ids, mask, types)

    row, zeros, ones = np.array([4, 5]), np.array([0, 0]), np.array([0, 1])
    found = compute([row, row, row], [zeros, ones, zeros], noting, Batching(100, padding=0))
    assert len(seen) == 2
    assert found[0] == found[2] != found[1]


def test_a_model_of_tokens_has_an_answer_for_each_that_is_no_padding():
    rows = [np.array(row) for row in ([4, 5, 6], [7], [4, 5, 6], [8, 9])]
    shapes = []

    def doubled(ids, mask, types):
        shapes.append(ids.shape)
        return np.stack([ids * 2, types + mask], axis=2).astype(np.float32)

    how = Batching(100, padding=99, rounding=2, limit=4)
    found = compute_each(rows, [row * 0 + 3 for row in rows], doubled, how)
    assert [each.tolist() for each in found] == [
        [[2.0 * token, 4.0] for token in row] for row in rows
    ]
    assert found[0] is found[2]
    assert sum(lines for lines, _ in shapes) == 3, "equal rows once"
    assert {width for _, width in shapes} <= {2, 4}
    assert compute_each([], [], doubled, how) == []


@pytest.mark.parametrize(
    ("length", "rounding", "limit", "width"),
    [(5, 1, None, 5), (5, 4, None, 8), (8, 4, None, 8), (5, 4, 6, 6), (7, 4, 6, 7), (5, 4, 9, 8)],
)
def test_rows_are_as_wide_as_a_multiple_and_no_wider_than_a_model_reads(
    length, rounding, limit, width
):
    assert plan(np.array([length]), 100, rounding, limit).widths == (width,)


def test_a_batch_is_filled_to_its_budget_and_a_longer_row_stands_alone():
    found = plan(np.array([3, 3, 9, 3, 3]), 6)
    assert [batch.tolist() for batch in found.batches] == [[2], [0, 1], [3, 4]]
    assert (found.widths, found.slots) == ((9, 3, 3), 21)


@pytest.mark.parametrize(
    ("frame", "texts", "ids", "types"),
    [
        (Frame((1,), (), (3, 4), (0, 1, 2)), [[7, 8]], [1, 7, 8, 3, 4], [0, 1, 1, 2, 2]),
        (Frame((1,), (2, 2), (3,), (0, 0, 0, 1, 1)), [[7, 8], [9]], [1, 7, 8, 2, 2, 9, 3],
         [0, 0, 0, 0, 0, 1, 1]),
    ],
)  # fmt: skip
def test_a_frame_puts_special_tokens_and_types_around_texts(frame, texts, ids, types):
    found = frame.around([np.array(text) for text in texts])
    assert [each.tolist() for each in found] == [ids, types]
    assert frame.size == len(ids) - sum(map(len, texts))


@pytest.mark.parametrize(("shorter", "batches"), [(97, 1), (96, 2)])
def test_a_batch_ends_before_it_wastes_a_fiftieth_on_padding(shorter, batches):
    """Two rows of 100 and two shorter ones, in a budget for all of them."""
    lengths = np.array([100, 100, shorter, shorter])
    found = plan(lengths, 400)
    assert len(found.batches) == batches


# What the neural kinds share.


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
    ("error", "fails"),
    [
        *((each, True) for each in (RuntimeError, ValueError, TypeError, LookupError, MemoryError)),
        *((each, False) for each in (UnavailableError, KeyboardInterrupt)),
    ],
)
def test_errors_of_models_fail_a_query_and_ours_and_what_ends_a_program_do_not(error, fails):
    def together(asked):
        raise error("no")

    if fails:
        found = answer_each(requests("one", "two"), together)
        assert [answer.error for answer in found] == ["no", "no"]
    else:
        with pytest.raises(error):
            answer_each(requests("one", "two"), together)


@given(st.text(st.characters(blacklist_categories=())))
def test_readable_text_can_be_encoded_and_keeps_its_length(text):
    assert len(readable(text)) == len(text)
    readable(text).encode("utf-8")
