"""Tables for a spreadsheet, in which no cell runs as a formula.

Spreadsheets run a cell that begins with one of = + - @ (or a tab or line break before it) as a
formula, and texts and ids come from elsewhere. So in CSV such a cell, unless it is a number, gets
an apostrophe in front, and a cell that begins with apostrophes before such a character gets one
more: that can be taken back without doubt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_STARTS_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WAS_DEFUSED = re.compile(r"'+[=+\-@\t\r\n＝＋－＠]")


def defused(cell: str) -> str:
    """The text as a cell that no spreadsheet runs as a formula. A number stays as it is."""
    runs = _STARTS_FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if runs else cell


def restored(cell: str) -> str:
    """The text that `defused` was given."""
    return cell[1:] if _WAS_DEFUSED.match(cell) else cell


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """A frame as CSV: UTF-8 with a byte-order mark, as spreadsheets want it; cells and headings
    that would run as formulas defused."""
    # What only writes a cell, as the command line does, needs neither.
    import numpy as np
    import pandas as pd

    safe = frame.rename(columns=defused)
    for place in range(frame.shape[1]):
        # By place: two columns may have one name.
        column = frame.iloc[:, place]
        if not pd.api.types.is_numeric_dtype(column):
            cells = [defused(cell) if isinstance(cell, str) else cell for cell in column]
            safe.isetitem(place, np.array(cells, dtype=object))
    return safe.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig", "replace")
