"""Text of which every line has as many fields: Arrow reads it, without a Python object a cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

_BLOCK_BYTES = 1 << 24


def even_columns(text: str, delimiter: str, width: int) -> list[Any] | None:
    """The columns of a text in which `delimiter` separates `width` fields in every line and every
    line is a row, as Arrow text; None for any other. Quotation marks are characters like others."""
    # Only "\n" and "\r\n" end lines in the same way for everyone.
    if width < 2 or not delimiter.isascii() or text.count("\r") != text.count("\r\n"):
        return None
    names = [str(position) for position in range(width)]
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(text.encode("utf-8")),
            read_options=pa_csv.ReadOptions(column_names=names, block_size=_BLOCK_BYTES),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, quote_char=False),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except (pa.ArrowInvalid, UnicodeEncodeError):
        return None
    # Arrow skips blank lines, which would shift the numbers of those behind them.
    if table.num_rows != text.count("\n") + (not text.endswith("\n")):
        return None
    return [column.combine_chunks() for column in table.columns]


def has_empty(column: Any) -> bool:
    """Whether a cell of (N,) Arrow text without missing cells is empty."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)
    inside = offsets[column.offset : column.offset + len(column) + 1]
    return bool((inside[1:] == inside[:-1]).any())
