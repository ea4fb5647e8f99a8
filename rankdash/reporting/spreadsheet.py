"""Tables for a spreadsheet."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rankdash.analysis.labelling import defused


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """A frame as CSV: UTF-8 with a byte-order mark, as spreadsheets want it; cells and headings
    that would run as formulas defused."""
    safe = frame.rename(columns=defused)
    for place, column in enumerate(frame.columns):
        if not pd.api.types.is_numeric_dtype(frame[column]):
            cells = [defused(cell) if isinstance(cell, str) else cell for cell in frame[column]]
            safe.isetitem(place, np.array(cells, dtype=object))
    return safe.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig", "replace")
