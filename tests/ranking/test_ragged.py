from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankdash.core.data import arrays

LISTS = st.lists(st.lists(st.integers(-3, 3), max_size=9), max_size=8)
EVEN = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.lists(st.integers(-3, 3), min_size=width, max_size=width), max_size=5)
)


def laid_out(lists):
    values = np.array([value for each in lists for value in each], dtype=np.float64)
    return values, arrays.offsets_from(np.array([len(each) for each in lists], dtype=np.int64))


def split(values, offsets):
    return [list(values[a:b]) for a, b in pairwise(offsets)]


@pytest.mark.parametrize("lists", [LISTS, EVEN])
def test_arithmetic_by_segment_is_that_of_each_list(lists):
    @given(lists)
    def check(lists):
        values, offsets = laid_out(lists)
        best_first = [sorted(each, reverse=True) for each in lists]
        assert split(values[arrays.argsort_descending(values, offsets)], offsets) == best_first
        assert split(arrays.sort_descending(values, offsets), offsets) == best_first
        products = [[float(np.prod(each[:i])) for i in range(len(each))] for each in lists]
        assert split(arrays.products_before(values, offsets), offsets) == products
        assert split(arrays.places(offsets), offsets) == [
            list(range(1, len(each) + 1)) for each in lists
        ]
        owners = [[number] * len(each) for number, each in enumerate(lists)]
        assert split(arrays.owners(offsets), offsets) == owners
        repeats = any(len(set(each)) < len(each) for each in lists)
        assert arrays.has_repeats((values + 3).astype(np.int32), offsets) == repeats

    check()


@given(LISTS)
@example([[], [1, 1]])
@example([[1, 1], []])
@example([[1], [], [1]])
def test_equal_neighbours_are_found_within_segments_only(lists):
    values, offsets = laid_out(lists)
    positions, runs = arrays.equal_runs(values, offsets)
    expected = []
    for start, each in zip(offsets[:-1], lists, strict=True):
        for place, value in enumerate(each):
            beside = each[max(place - 1, 0) : place] + each[place + 1 : place + 2]
            if value in beside:
                expected.append(start + place)
    assert list(positions) == expected
    for left, right, same in zip(positions[:-1], positions[1:], np.diff(runs) == 0, strict=True):
        joined = right == left + 1 and right not in offsets and values[left] == values[right]
        assert same == joined


@pytest.mark.parametrize("bound", [5, 2**52, 2**53 + 1, 2**60])
def test_codes_are_sorted_stably(bound):
    codes = np.random.default_rng(0).integers(0, 5, 1000)
    codes[3] = bound - 1
    assert np.array_equal(arrays.sort_codes(codes, bound), np.argsort(codes, kind="stable"))


def test_one_very_long_list_costs_the_short_ones_no_padding():
    offsets = arrays.offsets_from(np.array([1] * 1000 + [100_000]))
    cells = sum(block.take(np.zeros(101_000), 0.0).size for block in arrays.blocks(offsets))
    assert cells == 101_000


PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=40)


@pytest.mark.parametrize("bounds", [(7, 10), (2**20, 2**43)], ids=["narrow", "wide"])
@pytest.mark.parametrize("grouped", [True, False], ids=["segment by segment", "mixed"])
def test_pairs_are_sorted_by_segment_and_code_and_keep_their_order(grouped, bounds):
    @given(PAIRS)
    @example([(0, 3), (0, 1), (1, 5), (1, 5), (3, 0)])
    @example([(2, 1), (0, 9)])
    def check(pairs):
        given_so = sorted(pairs, key=lambda pair: pair[0]) if grouped else pairs
        segments = np.array([segment for segment, _ in given_so], dtype=np.int64)
        codes = np.array([code for _, code in given_so], dtype=np.int32)
        found, places = arrays.sort_pairs(segments, codes, bounds)
        order = sorted(range(len(pairs)), key=given_so.__getitem__)
        assert places.tolist() == order
        assert found.tolist() == [given_so[at][0] * bounds[1] + given_so[at][1] for at in order]

    check()


@given(LISTS, st.randoms(use_true_random=False))
def test_segments_are_laid_out_in_another_order(lists, random):
    values, offsets = laid_out(lists)
    order = list(range(len(lists)))
    random.shuffle(order)
    after, lay = arrays.rearranged(np.diff(offsets), np.array(order, dtype=np.int64))
    assert split(values[lay], after) == [lists[at] for at in order]
