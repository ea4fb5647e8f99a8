"""`Coded`: a column of ids as whole numbers, and the text that each number stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Integers = npt.NDArray[np.int64]
# A column of text, in one piece or in several.
ArrowText = pa.Array | pa.ChunkedArray

# Comparing each id with the one before pays when ids come in runs of several rows; a sample of
# shorter runs means that rows are mixed, and each is looked up.
_ROWS_A_RUN = 4
_SAMPLE = 4096


@dataclass(frozen=True, eq=False)
class Coded:
    """N ids.

    codes: (N,) int32, the place of each in `texts`; -1 where it is missing.
    texts: (D,) Arrow text, the distinct ids in the order of first appearance.
    """

    codes: npt.NDArray[np.int32]
    texts: Any

    @classmethod
    def of(cls, ids: Any) -> Self:
        """ids: (N,) Arrow text, also in chunks."""
        if not come_in_runs(ids):
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
    def none(cls) -> Self:
        """No ids."""
        nothing = pa.py_buffer(np.zeros(1, dtype=np.int64))
        texts = pa.Array.from_buffers(pa.large_string(), 0, [None, nothing, pa.py_buffer(b"")])
        return cls(np.zeros(0, dtype=np.int32), texts)

    @classmethod
    def joined(cls, several: Sequence[Self]) -> Self:
        """The ids of one after those of the other, none of them missing."""
        return cls.of(pa.concat_arrays([each.texts_of(np.arange(len(each))) for each in several]))

    def __len__(self) -> int:
        return len(self.codes)

    def taken(self, rows: npt.NDArray[Any]) -> Self:
        """Those of some rows, given as (R,) places or (N,) flags; none of them is missing."""
        return type(self).of(self.texts_of(rows))

    def texts_of(self, rows: npt.NDArray[Any]) -> Any:
        """As `taken`, as Arrow text."""
        return self.texts.take(arrow_integers(self.codes[rows]))

    def objects(self) -> npt.NDArray[np.object_]:
        """(N,) str, None where missing."""
        return np.append(objects(self.texts), [None])[self.codes]


def arrow_text(ids: Sequence[str] | npt.NDArray[Any]) -> Any:
    """Ids as Arrow text, like the texts of a `Coded`."""
    return pa.array(ids, type=pa.large_string())


def alike(texts: Any) -> Any:
    """Arrow text with wide offsets, as pandas gives it: Arrow compares none with others."""
    return texts if texts.type == pa.large_string() else texts.cast(pa.large_string())


# `pyarrow.array` and `to_numpy` do as much as these four, but import pandas, which takes longer
# than to read a hundred thousand rows.


def objects(texts: Any) -> npt.NDArray[np.object_]:
    """An Arrow text array as an object array of str, None where missing."""
    result = np.empty(len(texts), dtype=object)
    result[:] = texts.to_pylist()
    return result


def numbers_of(values: Any, missing: int = -1) -> npt.NDArray[Any]:
    """Arrow numbers as a read-only array, which shares their memory where they are in one piece and
    none is missing."""
    if isinstance(values, pa.ChunkedArray):
        # Of nothing there are no pieces.
        chunks = values.chunks or [values.combine_chunks()]
        return np.concatenate([numbers_of(chunk, missing) for chunk in chunks])
    if values.null_count:
        kind = values.type.to_pandas_dtype()
        values = values.fill_null(arrow_integers(np.array([missing], dtype=kind))[0])
    return np.from_dlpack(values)


def flags_of(values: Any) -> npt.NDArray[np.bool_]:
    """Arrow flags, none of them missing, as an array."""
    return numbers_of(values.cast(pa.uint8())).view(np.bool_)


def arrow_integers(values: npt.NDArray[Any]) -> Any:
    """Whole numbers as an Arrow array, which shares their memory."""
    values = np.ascontiguousarray(values)
    kind = pa.int32() if values.dtype == np.int32 else pa.int64()
    values = values.astype(kind.to_pandas_dtype(), copy=False)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def places_in(known: Any, wanted: Any) -> Integers:
    """(len(wanted),) the place of each in `known`, -1 where it is not there. Both are Arrow arrays
    of distinct values."""
    # The hash table is the costly part, so the smaller side goes into it.
    if len(known) <= len(wanted):
        return numbers_of(pc.index_in(wanted, value_set=known)).astype(np.int64)
    found = numbers_of(pc.index_in(known, value_set=wanted))
    places = np.full(len(wanted), -1, dtype=np.int64)
    there = np.flatnonzero(found >= 0)
    places[found[there]] = there
    return places


def is_plain(texts: Any) -> bool:
    """Whether no text of a `Coded` holds white space or anything but ASCII, so that none can be
    spelled in two ways that look the same."""
    data = texts.buffers()[2]
    if data is None:
        return True
    start, stop = np.frombuffer(texts.buffers()[1], dtype=np.int64)[
        [texts.offset, texts.offset + len(texts)]
    ]
    characters = np.frombuffer(data, dtype=np.uint8)[start:stop]
    return bool(((characters > ord(" ")) & (characters < 0x7F)).all())


def come_in_runs(texts: Any) -> bool:
    """Whether the same text stands in several rows together, as far as the first rows tell."""
    return (
        len(texts) <= _SAMPLE or len(run_starts(texts.slice(0, _SAMPLE))) * _ROWS_A_RUN <= _SAMPLE
    )


def run_starts(texts: Any) -> Integers:
    """The rows of Arrow text that differ from the row before, the first row among them."""
    changes = pc.not_equal(texts.slice(1), texts.slice(0, max(len(texts) - 1, 0)))
    first = np.zeros(min(len(texts), 1), dtype=np.int64)
    changes = changes.fill_null(True) if changes.null_count else changes
    return np.concatenate([first, np.flatnonzero(flags_of(changes)) + 1])
