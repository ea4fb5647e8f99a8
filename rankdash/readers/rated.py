"""Labels of several people, a row for each person and pair, as annotation tools export them and
`rankdash label status --out` writes them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rankdash.errors import DataError
from rankdash.findings import Finding
from rankdash.readers.detect import tables_of
from rankdash.readers.parse.columns import fields_of, plain
from rankdash.readers.parse.limits import ReadLimits
from rankdash.readers.parse.source import Source
from rankdash.readers.parse.values import blank, labels

_RATERS = (
    "rater",
    "annotator",
    "assessor",
    "labeler",
    "labeller",
    "who",
    "标注员",
    "标注人",
    "标注者",
)
_TIMES = ("time", "made", "timestamp", "createdat", "updatedat", "submittedat", "时间")
_CANNOT_TELL = (
    "cannottell",
    "canttell",
    "unknown",
    "unsure",
    "notsure",
    "skip",
    "无法判断",
    "不确定",
)


def read_rated(
    source: Source, *, limits: ReadLimits | None = None
) -> tuple[pd.DataFrame, list[Finding]] | None:
    """Every row with a label or "cannot tell" (also "unsure", "unknown" or "skip"): query_id,
    doc_id, label (NaN for "cannot tell"), rater, time (ISO 8601 in UTC; "" where there is none).
    None for a file without a column of raters, or of ids and labels.

    Raises FormatError and LimitError as the other readers do, and DataError with the line for a row
    without an id, or whose label is no label.
    """
    table = tables_of(source, limits or ReadLimits())[0]
    frame = table.frame
    names = {plain(str(name)): name for name in reversed(frame.columns)} if table.names else {}
    rater = next((names[name] for name in _RATERS if name in names), None)
    time = next((names[name] for name in _TIMES if name in names), None)
    fields = dict(table.fields) if table.fields is not None else fields_of(frame)
    if rater is None or not {"query_id", "doc_id", "label"} <= set(fields):
        return None
    cells = frame[fields["label"]].to_numpy(dtype=object)
    unsure = np.array([plain(cell or "") in _CANNOT_TELL for cell in cells], dtype=bool)
    filled = ~blank(cells)
    told = cells.copy()
    told[unsure] = None
    values = labels(told).values
    for row in np.flatnonzero(filled & ~unsure & np.isnan(values))[:1]:
        raise DataError(
            "A label is not a number: {label!r}.",
            remedy="Write numbers into the label column, such as 0, 1 and 2.",
            file=source.name,
            line=int(table.lines[row]),
            label=str(cells[row]),
        )
    for field in ("query_id", "doc_id"):
        lacking = np.flatnonzero(filled & blank(frame[fields[field]].to_numpy(dtype=object)))
        if len(lacking):
            raise DataError(
                "A label has no {field}.",
                remedy="Give each label its query and its document.",
                file=source.name,
                line=int(table.lines[lacking[0]]),
                field=field,
            )
    found = pd.DataFrame(
        {
            "query_id": frame[fields["query_id"]].to_numpy(dtype=object),
            "doc_id": frame[fields["doc_id"]].to_numpy(dtype=object),
            "label": values,
            "rater": [(cell or "").strip() for cell in frame[rater]],
            "time": _moments(frame[time]) if time is not None else "",
        }
    )
    return found[filled].reset_index(drop=True), [*table.findings, *table.refusals.findings()]


def _moments(cells: pd.Series[str]) -> list[str]:
    moments = pd.to_datetime(cells, utc=True, format="ISO8601", errors="coerce")
    return ["" if pd.isna(each) else each.isoformat() for each in moments]
