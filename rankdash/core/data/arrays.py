"""Id columns encoded as integers (`Coded`), and operations on concatenated lists (segments)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Integers = npt.NDArray[np.int64]
# A text column, contiguous or chunked.
ArrowText = pa.Array | pa.ChunkedArray

# Run-length encoding is faster if equal ids follow each other in runs of at least this mean length;
# otherwise each row is looked up. The mean is measured on the first rows.
_ROWS_A_RUN = 4
_SAMPLE = 4096
# Ids longer than this many 8-byte words are encoded by Arrow.
_MOST_WORDS = 8
_ROWS = 1 << 14
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Coded:
    """A dictionary-encoded column of N ids.

    codes: (N,) int32, the index of each id in `texts`; -1 if it is missing.
    texts: (D,) Arrow text, the distinct ids in the order of first appearance.
    """

    codes: npt.NDArray[np.int32]
    texts: Any

    @classmethod
    def of(cls, ids: Any) -> Self:
        """Encode (N,) Arrow text, contiguous or chunked."""
        if not come_in_runs(ids):
            first = _first_rows(ids)
            if first is not None:
                return cls._by_first(ids, first)
            encoded = ids.dictionary_encode()
            chunks = encoded.chunks if isinstance(ids, pa.ChunkedArray) else [encoded]
            codes = np.concatenate([numbers_of(chunk.indices) for chunk in chunks])
            return cls(codes, alike(chunks[0].dictionary))
        ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
        starts = run_starts(ids)
        encoded = ids.take(arrow_integers(starts)).dictionary_encode()
        lengths = np.diff(np.append(starts, len(ids)))
        return cls(np.repeat(numbers_of(encoded.indices), lengths), alike(encoded.dictionary))

    @classmethod
    def of_dictionary(cls, ids: Any) -> Self:
        """Convert (N,) chunked, dictionary-encoded Arrow text."""
        whole = ids.unify_dictionaries().combine_chunks()
        codes, texts = numbers_of(whole.indices), alike(whole.dictionary)
        highest = np.maximum.accumulate(np.append(np.int32(-1), codes))
        if highest[-1] + 1 < len(texts) or (codes > highest[:-1] + 1).any():
            # Not in the order of first appearance.
            return cls.of(whole.dictionary_decode())
        return cls(codes, texts)

    @classmethod
    def _by_first(cls, ids: Any, first: npt.NDArray[np.int32]) -> Self:
        """Encode ids; first: (N,) the first row with the same id."""
        pieces = _slices(ids)
        codes = np.empty(len(first), dtype=np.int32)
        texts: list[Any] = []
        count = 0
        for rows, piece in zip(_rows_of(pieces), pieces, strict=True):
            new = np.flatnonzero(first[rows] >= np.arange(rows.start, rows.stop))
            texts.append(piece.take(arrow_integers(new)))
            codes[new + rows.start] = np.arange(count, count + len(new))
            count += len(new)
            # Each id's first row is in this piece or an earlier one.
            codes[rows] = codes[first[rows]]
        return cls(codes, alike(pa.concat_arrays(texts)))

    @classmethod
    def none(cls) -> Self:
        """Return a column without ids."""
        nothing = pa.py_buffer(np.zeros(1, dtype=np.int64))
        texts = pa.Array.from_buffers(pa.large_string(), 0, [None, nothing, pa.py_buffer(b"")])
        return cls(np.zeros(0, dtype=np.int32), texts)

    @classmethod
    def joined(cls, several: Sequence[Self]) -> Self:
        """Concatenate columns without missing ids."""
        return cls.of(pa.concat_arrays([each.texts_of(np.arange(len(each))) for each in several]))

    def extended(self, ids: Any) -> Self:
        """Return these ids followed by `ids`, Arrow text without missing values."""
        if not len(ids):
            return self
        added = type(self).of(ids)
        place = places_in(self.texts, added.texts).astype(np.int32)
        new = np.flatnonzero(place < 0)
        place[new] = len(self.texts) + np.arange(len(new))
        texts = pa.concat_arrays([self.texts, added.texts.take(arrow_integers(new))])
        return type(self)(np.append(self.codes, place[added.codes]), texts)

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def names(self) -> npt.NDArray[np.object_]:
        """(D,) `texts` as a read-only array of str, shared by all callers."""
        names = objects(self.texts)
        names.setflags(write=False)
        return names

    def taken(self, rows: npt.NDArray[Any]) -> Self:
        """Return the ids of some rows, (R,) indices or (N,) flags, none of them missing."""
        return type(self).of(self.texts_of(rows))

    def texts_of(self, rows: npt.NDArray[Any]) -> Any:
        """Return the ids of some rows as Arrow text; see `taken`."""
        return self.texts.take(arrow_integers(self.codes[rows]))

    def objects(self) -> npt.NDArray[np.object_]:
        """Return an (N,) array of str, None if missing."""
        return np.append(objects(self.texts), [None])[self.codes]


def arrow_text(ids: Sequence[str] | npt.NDArray[Any]) -> Any:
    """Convert ids to Arrow text of the type that `Coded.texts` has."""
    return pa.array(ids, type=pa.large_string())


def alike(texts: Any) -> Any:
    """Cast Arrow text to 64-bit offsets (as pandas uses); Arrow cannot compare the two types."""
    return texts if texts.type == pa.large_string() else texts.cast(pa.large_string())


# These four do the same as `pyarrow.array` and `to_numpy`, which import pandas: that takes longer
# than reading 100,000 rows.


def objects(texts: Any) -> npt.NDArray[np.object_]:
    """Convert an Arrow text array to an object array of str, None if missing."""
    result = np.empty(len(texts), dtype=object)
    result[:] = texts.to_pylist()
    return result


def numbers_of(values: Any, missing: int = -1) -> npt.NDArray[Any]:
    """Convert Arrow numbers to a read-only array, which shares their memory if they are contiguous
    and complete."""
    if isinstance(values, pa.ChunkedArray):
        # An empty column may have no chunks.
        chunks = values.chunks or [values.combine_chunks()]
        return np.concatenate([numbers_of(chunk, missing) for chunk in chunks])
    if values.null_count:
        kind = values.type.to_pandas_dtype()
        values = values.fill_null(arrow_integers(np.array([missing], dtype=kind))[0])
    return np.from_dlpack(values)


def _flags_of(values: Any) -> npt.NDArray[np.bool_]:
    """Convert Arrow booleans without missing values to an array."""
    return numbers_of(values.cast(pa.uint8())).view(np.bool_)


def arrow_integers(values: npt.NDArray[Any]) -> Any:
    """Convert integers to an Arrow array, which shares their memory."""
    values = np.ascontiguousarray(values)
    kind = pa.int32() if values.dtype == np.int32 else pa.int64()
    values = values.astype(kind.to_pandas_dtype(), copy=False)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def places_in(known: Any, requested: Any) -> Integers:
    """Return (len(requested),) the index of each in `known`, -1 if it is missing there.
    Both are Arrow arrays of distinct values."""
    # Building the hash table is the expensive part, so it is built from the smaller side.
    if len(known) <= len(requested):
        return numbers_of(pc.index_in(requested, value_set=known)).astype(np.int64)
    indices = numbers_of(pc.index_in(known, value_set=requested))
    places = np.full(len(requested), -1, dtype=np.int64)
    matches = np.flatnonzero(indices >= 0)
    places[indices[matches]] = matches
    return places


def _slices(texts: Any) -> list[Any]:
    """Split Arrow text into pieces whose intermediate arrays fit the processor's cache."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    return [chunk.slice(start, _ROWS) for chunk in chunks for start in range(0, len(chunk), _ROWS)]


def _first_rows(texts: Any) -> npt.NDArray[np.int32] | None:
    """Return for each row of (N,) Arrow text the first row with the same text, or None if texts are
    missing, few or long. Arrow's dictionary encoding needs twice the time and four times the
    memory."""
    size = len(texts)
    if texts.null_count or not _SAMPLE < size < 2**31:
        return None
    pieces = _slices(texts)
    longest = max(int(np.diff(_offsets(piece)).max(initial=0)) for piece in pieces)
    words = range(-(-longest // 8))
    if len(words) > _MOST_WORDS:
        return None
    # Hash and row share one integer, so that one plain sort groups equal hashes, each group's first
    # row in front.
    row = np.uint64((1 << (size - 1).bit_length()) - 1)
    keys = np.empty(size, dtype=np.uint64)
    for rows, piece in zip(_rows_of(pieces), pieces, strict=True):
        hashed = np.diff(_offsets(piece)).astype(np.uint64)
        for at in words:
            hashed ^= _word(piece, at)
            hashed *= _FACTOR
            hashed ^= hashed >> np.uint64(32)
            hashed *= _FACTOR
        keys[rows] = (hashed & ~row) | np.arange(rows.start, rows.stop, dtype=np.uint64)
    keys.sort()
    ordered = np.empty(size, dtype=np.int32)
    np.bitwise_and(keys, row, out=ordered, casting="unsafe")
    keys &= ~row
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    del keys
    firsts, counts = ordered[starts], np.diff(starts, append=size)
    del starts
    first = np.empty(size, dtype=np.int32)
    first[ordered] = np.repeat(firsts, counts)
    del ordered, firsts, counts
    # Different texts may have the same hash: rows that differ from their first row are redone.
    odd = np.zeros(size, dtype=bool)
    word = np.empty(size, dtype=np.uint64)
    for at in (None, *words):
        for rows, piece in zip(_rows_of(pieces), pieces, strict=True):
            word[rows] = _word(piece, at)
        for rows in _rows_of(pieces):
            odd[rows] |= word[rows] != word[first[rows]]
    if odd.any():
        collided = np.flatnonzero(odd)
        whole = pa.concat_arrays([alike(piece) for piece in pieces])
        codes = numbers_of(whole.take(arrow_integers(collided)).dictionary_encode().indices)
        first[collided] = collided[np.unique(codes, return_index=True)[1]][codes]
    return first


def _rows_of(pieces: Sequence[Any]) -> list[slice]:
    """Return the row range of each piece in the whole column."""
    stops = np.cumsum([len(piece) for piece in pieces]).tolist()
    return [slice(stop - len(piece), stop) for stop, piece in zip(stops, pieces, strict=True)]


def _offsets(texts: Any) -> npt.NDArray[Any]:
    """Return the (N + 1,) byte offsets of (N,) Arrow texts in their buffer."""
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    offsets = np.frombuffer(texts.buffers()[1], dtype=kind)
    return offsets[texts.offset : texts.offset + len(texts) + 1]


def _word(texts: Any, at: int | None) -> npt.NDArray[np.uint64]:
    """Return for each of (N,) texts its `at`-th 8 bytes as one integer, zero-padded; the lengths of
    the texts if `at` is None."""
    offsets = _offsets(texts)
    if at is None or not len(texts):
        return np.diff(offsets).astype(np.uint64)
    start, stop = int(offsets[0]), int(offsets[-1])
    data = np.zeros(stop - start + 8, dtype=np.uint8)
    data[:-8] = np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)[start:stop]
    every = np.ndarray((len(data) - 7,), np.dtype("<u8"), data, strides=(1,))
    word: npt.NDArray[np.uint64] = every[np.minimum(offsets[:-1] - start + 8 * at, stop - start)]
    word &= _FIRST_BYTES[np.clip(np.diff(offsets) - 8 * at, 0, 8)]
    return word


def is_plain(texts: Any) -> bool:
    """Return whether the texts of a `Coded` contain only printable ASCII without spaces, so that
    two different ids cannot look the same."""
    data = texts.buffers()[2]
    if data is None:
        return True
    start, stop = np.frombuffer(texts.buffers()[1], dtype=np.int64)[
        [texts.offset, texts.offset + len(texts)]
    ]
    characters = np.frombuffer(data, dtype=np.uint8)[start:stop]
    return bool(((characters > ord(" ")) & (characters < 0x7F)).all())


def come_in_runs(texts: Any) -> bool:
    """Return whether equal texts follow each other in runs, judged by the first rows."""
    return (
        len(texts) <= _SAMPLE or len(run_starts(texts.slice(0, _SAMPLE))) * _ROWS_A_RUN <= _SAMPLE
    )


def run_starts(texts: Any) -> Integers:
    """Return the rows of Arrow text that start a run of equal texts, the first row included."""
    changes = pc.not_equal(texts.slice(1), texts.slice(0, max(len(texts) - 1, 0)))
    first = np.zeros(min(len(texts), 1), dtype=np.int64)
    changes = changes.fill_null(True) if changes.null_count else changes
    return np.concatenate([first, np.flatnonzero(_flags_of(changes)) + 1])


# Arithmetic on concatenated lists: segment `i` is `values[offsets[i]:offsets[i + 1]]`.
#
# Segments are processed as rows of a padded 2-D block, which is many times faster than a sort by
# (segment, value). Lists of similar length share a block, so one very long list adds no padding to
# the others.

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# The largest ratio of lengths in a block. A larger one wastes padding; a smaller one makes more
# blocks, each with a fixed cost.
_WIDENING = 1.25
# The largest size of a block, which limits the memory of intermediate arrays.
_MOST_CELLS = 65_536


def offsets_from(counts: npt.NDArray[Any]) -> Integers:
    """Return the (G + 1,) offsets of segments with (G,) counts."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def owners(offsets: Integers) -> Integers:
    """Return the (N,) segment index of each element."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def places(offsets: Integers) -> Integers:
    """Return the (N,) position of each element in its segment, from 1."""
    counts = np.diff(offsets)
    return np.arange(1, int(offsets[-1]) + 1) - np.repeat(offsets[:-1], counts)


def rearranged(counts: npt.NDArray[Any], order: Integers) -> tuple[Integers, Integers]:
    """Reorder segments of (G,) counts: return their offsets and the (N,) old rows of elements."""
    before = offsets_from(counts)[:-1][order]
    offsets = offsets_from(counts[order])
    shifts = np.repeat(before - offsets[:-1], np.diff(offsets))
    return offsets, shifts + np.arange(offsets[-1])


def sort_codes(codes: npt.NDArray[Any], bound: int) -> Integers:
    """Return the (N,) stable order that sorts integer codes in [0, bound).

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
    """Sort (segment, code) pairs. Return the integers segment * bounds[1] + code in ascending
    order, and the index of each pair in the input. Both (N,); the sort is stable.

    bounds: exclusive upper bounds of segments and codes. Input with ascending segments is sorted
        several times faster.
    """
    size = len(codes)
    shift = max(size - 1, 0).bit_length()
    # In place, because allocating memory for each step takes longer than the step.
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
    """A padded matrix of segments of similar length, one per row.

    positions: (S, W) the index of each cell in the concatenated values; None if the block is the
               whole array in order, so that a reshape is enough.
    width:     W.
    inside:    (S, W) False in the padding; None if there is no padding.
    """

    positions: Integers | None
    width: int
    inside: Flags | None

    def take(self, values: npt.NDArray[Any], padding: float) -> npt.NDArray[Any]:
        """Return the (S, W) values, with `padding` outside the segments."""
        if self.positions is None:
            return values.reshape(-1, self.width)
        cells = values[self.positions]
        return cells if self.inside is None else np.where(self.inside, cells, padding)

    def put(self, cells: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
        """Write (S, W) cells back to their positions in `target`, without the padding."""
        if self.positions is None:
            target[:] = cells.reshape(-1)
        elif self.inside is None:
            target[self.positions] = cells
        else:
            target[self.positions[self.inside]] = cells[self.inside]


def blocks(offsets: Integers) -> Iterator[Block]:
    """Yield the non-empty segments in blocks of similar length."""
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
    """Return whether no segment contains a value that is above its predecessor or follows NaN."""
    rises = ~(values[1:] <= values[:-1]) & ~np.isnan(values[1:])
    rises[_borders(offsets, len(values)) - 1] = False
    return not rises.any()


def argsort_descending(values: Floats, offsets: Integers) -> Integers:
    """Return (N,) positions that sort every segment in descending order; ties in any order.

    Values are finite. Positions refer to the whole array, so `values[result]` is sorted.
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
    """Return (N,) the values with every segment in descending order; values are finite."""
    result = np.empty_like(values)
    for block in blocks(offsets):
        negated = -block.take(values, -np.inf)
        negated.sort(axis=1)
        block.put(-negated, result)
    return result


def products_before(values: Floats, offsets: Integers) -> Floats:
    """Return (N,) the product of the elements before each one in its segment; 1 for the first."""
    result = np.ones_like(values)
    for block in blocks(offsets):
        cells = np.ones((block.take(values, 1.0)).shape)
        np.cumprod(block.take(values, 1.0)[:, :-1], axis=1, out=cells[:, 1:])
        block.put(cells, result)
    return result


def has_repeats(codes: npt.NDArray[Any], offsets: Integers) -> bool:
    """Return whether a segment contains the same non-negative code twice."""
    for block in blocks(offsets):
        cells = np.sort(block.take(codes, -1), axis=1)
        if bool(((cells[:, 1:] == cells[:, :-1]) & (cells[:, 1:] >= 0)).any()):
            return True
    return False


def _borders(offsets: Integers, size: int) -> Integers:
    """Return the segment starts that lie strictly between the first and last of `size` elements."""
    borders = offsets[1:-1]
    return borders[(borders > 0) & (borders < size)]


def equal_runs(values: npt.NDArray[Any], offsets: Integers) -> tuple[Integers, Integers]:
    """Return the positions whose value equals a neighbour's in the segment, and their run numbers.

    Both (T,); runs are numbered from 0. NaN equals nothing. Empty if no two neighbours are equal.
    """
    equal = values[1:] == values[:-1]
    equal[_borders(offsets, len(values)) - 1] = False
    if not equal.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    follows = np.concatenate([[False], equal])
    positions = np.flatnonzero(follows | np.concatenate([equal, [False]]))
    return positions, np.cumsum(~follows[positions]) - 1


def descending_ids(texts: Any) -> Integers:
    """Return (N,) the position of each id when ids are sorted by their bytes, descending."""
    order = numbers_of(pc.array_sort_indices(texts, order="descending"))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def tied_groups(positions: Integers, offsets: Integers) -> Flags:
    """Return (G,) flags: True if a group contains one of the tied positions."""
    tied = np.zeros(len(offsets) - 1, dtype=bool)
    tied[np.searchsorted(offsets, positions, side="right") - 1] = True
    return tied


def best_places(scores: npt.NDArray[Any], count: int) -> npt.NDArray[np.intp]:
    """Return the indices of the `count` highest of (n,) scores, best first, ties in their order.
    Only those are sorted."""
    candidates = np.arange(len(scores))
    if len(scores) > count:
        candidates = np.flatnonzero(scores >= np.partition(scores, -count)[-count])
    best: npt.NDArray[np.intp] = candidates[np.argsort(-scores[candidates], kind="stable")][:count]
    return best
