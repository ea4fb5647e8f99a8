"""Tables for a spreadsheet."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rankdash.analysis.labels.labelling import defused


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """A frame as CSV: UTF-8 with a byte-order mark, as spreadsheets want it; cells and headings
    that would run as formulas defused."""
    safe = frame.rename(columns=defused)
    for place in range(frame.shape[1]):
        # By place: two columns may have one name.
        column = frame.iloc[:, place]
        if not pd.api.types.is_numeric_dtype(column):
            cells = [defused(cell) if isinstance(cell, str) else cell for cell in column]
            safe.isetitem(place, np.array(cells, dtype=object))
    return safe.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig", "replace")
