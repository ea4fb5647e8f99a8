from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers import Request, Scored, base
from rankdash.core.rerankers.neural import shared, tokenizer
from rankdash.core.rerankers.neural.runtimes import (
    Batching,
    Frame,
    compute,
    compute_each,
    plan_batches,
)
from tests.results import results

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=80)


@given(LENGTHS, st.integers(1, 300), st.integers(1, 16))
def test_a_plan_holds_every_row_once_within_the_budget(lengths, budget, rounding):
    array = np.array(lengths, dtype=np.int64)
    found = plan_batches(array, budget, rounding, limit=60)
    assert sorted(row for batch in found.batches for row in batch) == list(range(len(lengths)))
    for rows, width in zip(found.batches, found.widths, strict=True):
        assert array[rows].max() <= width <= 60
        assert len(rows) == 1 or len(rows) * width <= budget


def test_rows_of_many_queries_are_computed_almost_without_padding():
    lengths = np.random.default_rng(0).integers(20, 512, size=500)
    assert plan_batches(lengths, 1024).slots <= 1.02 * lengths.sum()


def weighted(ids, mask, types):
    """Return scores that depend on every token that is not padding, and on its type."""
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


def test_plans_frames_and_prompts_are_as_approved(approved):
    """Rows are padded to a multiple, up to the model's limit; a batch ends before padding exceeds a
    fiftieth; a prompt is before a text or around it."""

    def planned(lengths, budget, *how):
        found = plan_batches(np.array(lengths), budget, *how)
        return [batch.tolist() for batch in found.batches], found.widths, found.slots

    def framed(frame, *texts):
        return frame.around([np.array(text) for text in texts]), frame.size

    def around_text(prompt):
        return tokenizer.prompted(prompt, "text"), list(tokenizer.around(prompt))

    one_row = [([length], 100, *how) for length, *how in (
        (5, 1, None), (5, 4, None), (8, 4, None), (5, 4, 6), (7, 4, 6), (5, 4, 9))]  # fmt: skip
    rows = [*one_row, ([3, 3, 9, 3, 3], 6), ([100, 100, 97, 97], 400), ([100, 100, 96, 96], 400)]
    one, two = Frame((1,), (), (3, 4), (0, 1, 2)), Frame((1,), (2, 2), (3,), (0, 0, 0, 1, 1))
    errors = ValueError("\n \nwhy\nmore"), ValueError(" \n"), KeyError()
    cases = {f"plan {row}": partial(planned, *row) for row in rows}
    cases |= {"a text": partial(framed, one, [7, 8]), "a pair": partial(framed, two, [7, 8], [9])}
    for prompt in ("", "query: ", "<{text}>", "{text} of {text}"):
        cases[f"prompt {prompt!r}"] = partial(around_text, prompt)
    cases["half of a character"] = tokenizer.prompted("\ud800 ", "\udfffx")
    cases["vectors of length 1"] = shared.unit(np.array([[[3.0, 4.0]], [[0.0, 0.0]]]))
    cases |= {f"said of {error!r}": partial(base.first_line, error) for error in errors}
    tokens, full = np.array([3, 4]), np.array([3, 9])
    cases["finite"] = partial(shared.checked, np.array([1.0, -2.0]), tokens, full, 0.5)
    cases["one is not"] = partial(shared.checked, np.array([1.0, np.inf, 2.0]), None, None, 0.5)
    approved("rerankers/batches", results(cases))


def answered(error, bad):
    def together(asked):
        if bad in [request.query for request in asked]:
            raise error("\nno memory\nand a long trace")
        return [Scored(np.ones(1)) for _ in asked]

    requests = [Request(name, name, ["d"], ["text"]) for name in ("one", "bad", "two")]
    return [answer.error for answer in shared.answer_each(requests, together)]


def test_only_the_query_that_breaks_the_model_fails_and_no_error_of_ours():
    for error in (RuntimeError, ValueError, TypeError, LookupError, MemoryError):
        assert answered(error, "bad") == ["", "no memory", ""]
    for error in (UnavailableError, KeyboardInterrupt):
        with pytest.raises(error):
            answered(error, "bad")


@given(st.text(st.characters(blacklist_categories=())))
def test_readable_text_can_be_encoded_and_keeps_its_length(text):
    assert len(tokenizer.readable(text)) == len(text)
    tokenizer.readable(text).encode("utf-8")
