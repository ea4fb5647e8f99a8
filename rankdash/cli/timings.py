"""What became of each query of a run and how long it took, as a file."""

from __future__ import annotations

import json
import math
from pathlib import Path

from rankdash.ranking.ranking import Run
from rankdash.words.spreadsheet import csv_bytes

_COLUMNS = ["query_id", "state", "reason", "latency_ms", "pairs"]


def write_timings(run: Run, target: Path) -> None:
    """A row for each query: CSV for a spreadsheet where the name ends in .csv, JSON else. A latency
    that was not measured is empty, or null.

    Raises OSError where nothing can be written.
    """
    frame = run.queries[_COLUMNS]
    if target.suffix.lower() == ".csv":
        target.write_bytes(csv_bytes(frame))
        return
    rows = [
        {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in row.items()
        }
        for row in frame.to_dict("records")
    ]
    target.write_text(json.dumps(rows, indent=1, allow_nan=False) + "\n", encoding="utf-8")
