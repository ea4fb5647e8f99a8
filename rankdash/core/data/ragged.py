"""Arithmetic on lists laid end to end: segment `i` is `values[offsets[i]:offsets[i + 1]]`.

Segments are handled as rows of a padded 2-D block, which is many times faster than a sort by
(segment, value). Lists of similar length share a block, so one very long list costs no padding to
the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# A block holds lists up to this much longer than its shortest: more wastes padding, less makes
# more blocks, each with a fixed cost.
_WIDENING = 1.25
# Of one block: what is made beside it stays small.
_MOST_CELLS = 65_536


def offsets_from(counts: npt.NDArray[Any]) -> Integers:
    """(G + 1,) offsets of segments with (G,) counts."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def owners(offsets: Integers) -> Integers:
    """(N,) the segment that each element lies in."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def places(offsets: Integers) -> Integers:
    """(N,) the place of each element in its segment, from 1."""
    counts = np.diff(offsets)
    return np.arange(1, int(offsets[-1]) + 1) - np.repeat(offsets[:-1], counts)


def rearranged(counts: npt.NDArray[Any], order: Integers) -> tuple[Integers, Integers]:
    """Offsets of segments of (G,) counts in another order, and (N,) where their elements lay."""
    before = offsets_from(counts)[:-1][order]
    offsets = offsets_from(counts[order])
    shifts = np.repeat(before - offsets[:-1], np.diff(offsets))
    return offsets, shifts + np.arange(offsets[-1])


def sort_codes(codes: npt.NDArray[Any], bound: int) -> Integers:
    """(N,) the stable order that sorts integer codes in [0, bound).

    Code and row share one 64-bit key, because a plain integer sort is vectorised and a stable
    argsort is not.
    """
    size = len(codes)
    shift = max(size - 1, 0).bit_length()
    if max(bound - 1, 0).bit_length() + shift > 62:
        return np.argsort(codes, kind="stable").astype(np.int64)
    keys = (codes.astype(np.int64) << shift) | np.arange(size)
    keys.sort()
    return keys & ((1 << shift) - 1)


def sort_pairs(
    segments: Integers, codes: npt.NDArray[Any], bounds: tuple[int, int]
) -> tuple[Integers, Integers]:
    """Pairs of a segment and a code in ascending order, as numbers segment * codes' bound + code,
    and the places they came from. Both (N,); the order is stable.

    bounds: what both are below. Segment after segment is several times faster than anyhow.
    """
    size = len(codes)
    shift = max(size - 1, 0).bit_length()
    # In place: fresh memory for each step takes longer than the step.
    keys = segments * bounds[1]
    keys += codes
    if max(bounds[0] * bounds[1] - 1, 0).bit_length() + shift > 62:
        order = np.argsort(keys, kind="stable")
        return keys[order], order
    keys <<= shift
    keys |= np.arange(size)
    if (segments[1:] < segments[:-1]).any():
        keys.sort()
    else:
        for block in blocks(offsets_from(np.bincount(segments, minlength=bounds[0]))):
            cells = block.take(keys, np.iinfo(np.int64).max)
            cells.sort(axis=1)
            block.put(cells, keys)
    order = keys & ((1 << shift) - 1)
    keys >>= shift
    return keys, order


@dataclass(frozen=True)
class Block:
    """Segments of similar length as rows of one matrix.

    positions: (S, W) where each cell lies in the laid-out values; None when the block is the
               whole array in order and can be had by a reshape.
    width:     W.
    inside:    (S, W) False in the padding; None when there is no padding.
    """

    positions: Integers | None
    width: int
    inside: Flags | None

    def take(self, values: npt.NDArray[Any], padding: float) -> npt.NDArray[Any]:
        """(S, W) the values, `padding` outside the segments."""
        if self.positions is None:
            return values.reshape(-1, self.width)
        cells = values[self.positions]
        return cells if self.inside is None else np.where(self.inside, cells, padding)

    def put(self, cells: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
        """Write (S, W) cells back to their positions in `target`, the padding left out."""
        if self.positions is None:
            target[:] = cells.reshape(-1)
        elif self.inside is None:
            target[self.positions] = cells
        else:
            target[self.positions[self.inside]] = cells[self.inside]


def blocks(offsets: Integers) -> Iterator[Block]:
    """The non-empty segments, in blocks of similar length."""
    counts = np.diff(offsets)
    if len(counts) and counts[0] and (counts == counts[0]).all():
        yield Block(None, int(counts[0]), None)
        return
    by_length = sort_codes(counts, int(counts.max(initial=0)) + 1)
    lengths = counts[by_length]
    start = int(np.searchsorted(lengths, 1))
    while start < len(lengths):
        longest = int(lengths[start] * _WIDENING)
        stop = int(np.searchsorted(lengths, longest, side="right"))
        stop = min(stop, start + max(_MOST_CELLS // int(lengths[stop - 1]), 1))
        block_lengths = lengths[start:stop, None]
        width = int(block_lengths[-1, 0])
        columns = np.arange(width)
        positions = offsets[by_length[start:stop], None] + columns
        if block_lengths[0, 0] == width:
            yield Block(positions, width, None)
        else:
            inside = columns < block_lengths
            yield Block(np.where(inside, positions, 0), width, inside)
        start = stop


def descend(values: Floats, offsets: Integers) -> bool:
    """Whether no value is above the one before it in its segment."""
    rises = values[1:] > values[:-1]
    rises[_borders(offsets, len(values)) - 1] = False
    return not rises.any()


def argsort_descending(values: Floats, offsets: Integers) -> Integers:
    """(N,) positions that put every segment in descending order; equal values in any order.

    Values are finite. Positions refer to the laid-out array, so `values[result]` is sorted.
    """
    order = np.empty(len(values), dtype=np.int64)
    for block in blocks(offsets):
        negated = -block.take(values, -np.inf)
        columns = np.argsort(negated, axis=1)
        if block.positions is None:
            columns += np.arange(0, len(values), block.width)[:, None]
            return columns.reshape(-1)
        block.put(np.take_along_axis(block.positions, columns, axis=1), order)
    return order


def sort_descending(values: Floats, offsets: Integers) -> Floats:
    """(N,) every segment in descending order; values are finite."""
    result = np.empty_like(values)
    for block in blocks(offsets):
        negated = -block.take(values, -np.inf)
        negated.sort(axis=1)
        block.put(-negated, result)
    return result


def products_before(values: Floats, offsets: Integers) -> Floats:
    """(N,) for each element, the product of those before it in its segment; 1 for the first."""
    result = np.ones_like(values)
    for block in blocks(offsets):
        cells = np.ones((block.take(values, 1.0)).shape)
        np.cumprod(block.take(values, 1.0)[:, :-1], axis=1, out=cells[:, 1:])
        block.put(cells, result)
    return result


def has_repeats(codes: npt.NDArray[Any], offsets: Integers) -> bool:
    """Whether a segment holds the same non-negative code twice."""
    for block in blocks(offsets):
        cells = np.sort(block.take(codes, -1), axis=1)
        if bool(((cells[:, 1:] == cells[:, :-1]) & (cells[:, 1:] >= 0)).any()):
            return True
    return False


def _borders(offsets: Integers, size: int) -> Integers:
    """The starts of segments between elements, of which there are so many."""
    borders = offsets[1:-1]
    return borders[(borders > 0) & (borders < size)]


def equal_runs(values: npt.NDArray[Any], offsets: Integers) -> tuple[Integers, Integers]:
    """Positions that share their value with a neighbour in the segment, and their run.

    Both (T,); runs are numbered from 0. NaN equals nothing. Empty when no two neighbours are equal.
    """
    equal = values[1:] == values[:-1]
    equal[_borders(offsets, len(values)) - 1] = False
    if not equal.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    follows = np.concatenate([[False], equal])
    positions = np.flatnonzero(follows | np.concatenate([equal, [False]]))
    return positions, np.cumsum(~follows[positions]) - 1
