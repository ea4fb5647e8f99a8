import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.rerankers.neural.batches import Batching, Frame, compute, plan

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


def test_a_frame_puts_special_tokens_and_types_around_texts():
    frame = Frame(before=(1,), between=(2, 2), after=(3,), types=(0, 0, 0, 1, 1))
    ids, types = frame.around([np.array([7, 8]), np.array([9])])
    assert ids.tolist() == [1, 7, 8, 2, 2, 9, 3]
    assert types.tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert frame.size == 4


@pytest.mark.parametrize(("shorter", "batches"), [(97, 1), (96, 2)])
def test_a_batch_ends_before_it_wastes_a_fiftieth_on_padding(shorter, batches):
    """Two rows of 100 and two shorter ones, in a budget for all of them."""
    lengths = np.array([100, 100, shorter, shorter])
    found = plan(lengths, 400)
    assert len(found.batches) == batches
