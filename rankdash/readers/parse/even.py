"""Text of which every line has as many fields: Arrow reads it, without a Python object a cell."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

# Large enough for any row but one with a very long text; small enough that what is read of a block
# takes the place of the last one in memory, which is faster than fresh memory.
_BLOCK_BYTES = 1 << 20


def even_columns(
    data: bytes, delimiter: str, width: int, wanted: Collection[int], *, filled: bool = False
) -> dict[int, Any] | None:
    """Place → column as Arrow text in chunks, of those that are wanted, of a text in UTF-8 in which
    `delimiter` separates `width` fields in every line and every line is a row; None for any other.
    Quotation marks are characters like others.

    filled: None too where a cell is empty, whether or not its column is wanted.
    """
    # Only "\n" and "\r\n" end lines in the same way for everyone.
    if width < 2 or not delimiter.isascii():
        return None
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return None
    names = [str(place) for place in range(width)]
    blocks: dict[int, list[Any]] = {place: [] for place in wanted}
    rows = 0
    try:
        for block in pa_csv.open_csv(
            pa.BufferReader(data),
            read_options=pa_csv.ReadOptions(
                column_names=names, block_size=_BLOCK_BYTES, use_threads=False
            ),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, quote_char=False),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        ):
            if filled and any(map(has_empty, block.columns)):
                return None
            rows += block.num_rows
            for place, kept in blocks.items():
                kept.append(block.column(place))
    except pa.ArrowInvalid:
        return None
    # Arrow skips blank lines, which would shift the numbers of those behind them.
    if rows != data.count(b"\n") + (not data.endswith(b"\n")):
        return None
    return {place: pa.chunked_array(kept) for place, kept in blocks.items()}


def has_empty(column: Any) -> bool:
    """Whether a cell of (N,) Arrow text without missing cells is empty."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)
    inside = offsets[column.offset : column.offset + len(column) + 1]
    return bool((inside[1:] == inside[:-1]).any())
