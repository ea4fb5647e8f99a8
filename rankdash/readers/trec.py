"""TREC files, and BEIR qrels without a header: fields between white space, no header.

run:   query Q0 document rank score tag   (the tag may be left out)
qrels: query iteration document label
plain: query document label               (three fields; also a run where the third is a rank)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from rankdash.readers.columns import known
from rankdash.readers.limits import Limits
from rankdash.readers.refusals import Refusals
from rankdash.readers.table import Table, frame_of, refuse_long_fields, refuse_many_rows
from rankdash.readers.values import numbers

_SAMPLE_CHARS = 1 << 16
_SAMPLE_LINES = 200
# Share of the sample that must look like the format. The rest are bad lines of that format.
_ENOUGH = 0.8
# A first line with this many known names is a header, and then the names say what is what.
_HEADER_NAMES = 2
_ITERATION = re.compile(r"[Qq]?\d+")
# Not `str.split()`: an id may hold a no-break or an ideographic space, and trec_eval splits at
# ASCII white space only.
_ASCII_SPACE = re.compile(r"[ \t\r\v\f]+")

# Three fields with spaces or Chinese characters in them may be a text, not an id.
_TOKEN = re.compile(r"[!-~]{1,100}")

_COLUMNS = {
    "run": {"query_id": 0, "doc_id": 2, "rank": 3, "score": 4},
    "qrels": {"query_id": 0, "doc_id": 2, "label": 3},
    "plain": {"query_id": 0, "doc_id": 1, "label": 2},
}
_WIDTHS = {"run": (5, 6), "qrels": (4,), "plain": (3,)}
_FORMATS = {"run": "TREC run", "qrels": "TREC qrels", "plain": "labels without a header"}


def shape_of(text: str) -> str | None:
    """ "run", "qrels" or "plain" where the first lines look like one of them, else None."""
    sample = text[:_SAMPLE_CHARS]
    lines = sample.split("\n")
    if len(sample) < len(text):
        lines = lines[:-1]
    kept = [line for line in lines if line and not line.isspace()][:_SAMPLE_LINES]
    split = _splitter(sample)
    rows = [split(line) for line in kept]
    if rows and known(rows[0]) >= _HEADER_NAMES:
        return None
    for shape, looks in (("run", _is_run), ("qrels", _is_qrels), ("plain", _is_plain)):
        if rows and sum(map(looks, rows)) >= _ENOUGH * len(rows):
            return shape
    return None


def read(text: str, shape: str, file: str, limits: Limits) -> Table:
    """A table with its fields known. Lines with another number of fields are refused."""
    split = _splitter(text)
    refusals = Refusals(file)
    widths = _WIDTHS[shape]
    lines: list[int] = []
    rows: list[list[str]] = []
    bad: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        cells = split(line)
        if len(cells) in widths:
            lines.append(number)
            rows.append(cells)
        elif cells:
            bad.append((number, line))
    refuse_many_rows(len(rows) + len(bad), file, limits)
    refusals.add("field_count", [number for number, _ in bad], [line for _, line in bad])
    positions = dict(_COLUMNS[shape])
    columns = {field: [row[at] for row in rows] for field, at in positions.items()}
    line_numbers = np.array(lines, dtype=np.int64)
    for field in ("query_id", "doc_id"):
        refuse_long_fields(columns[field], line_numbers, file, limits)
    name = _FORMATS[shape]
    if shape == "plain" and _counts_ranks(columns["query_id"], columns["label"]):
        columns["rank"] = columns.pop("label")
        name = "ranked lists without a header"
    frame = frame_of(columns)
    return Table(
        file, name, frame, line_numbers, refusals, {field: field for field in frame.columns}
    )


def _splitter(text: str) -> Callable[[str], list[str]]:
    """Tabs where every line has enough of them (ids may then hold spaces), else white space."""
    lines = [line for line in text[:_SAMPLE_CHARS].split("\n")[:_SAMPLE_LINES] if line.strip()]
    if lines and sum(line.count("\t") >= 2 for line in lines) >= _ENOUGH * len(lines):
        return lambda line: line.rstrip("\r").split("\t") if line.strip() else []
    return lambda line: (
        _ASCII_SPACE.split(stripped) if (stripped := line.strip(" \t\r\v\f")) else []
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_run(cells: Sequence[str]) -> bool:
    if len(cells) == 6:
        return _is_number(cells[3]) and _is_number(cells[4])
    return len(cells) == 5 and cells[1].upper() in ("Q0", "0") and _is_number(cells[4])


def _is_qrels(cells: Sequence[str]) -> bool:
    return len(cells) == 4 and bool(_ITERATION.fullmatch(cells[1])) and _is_number(cells[3])


def _is_plain(cells: Sequence[str]) -> bool:
    ids = all(_TOKEN.fullmatch(cell) for cell in cells[:2])
    return len(cells) == 3 and ids and _is_number(cells[2])


def _counts_ranks(queries: Sequence[str], values: Sequence[str]) -> bool:
    """Whether the third field counts 1, 2, 3 … within the queries, as MS MARCO runs do."""
    ranks = numbers(np.array(values, dtype=object))
    if not len(ranks) or np.isnan(ranks).any() or ranks.max() < 5:
        return False
    by_query = pd.Series(ranks).groupby(np.array(queries, dtype=object))
    highest, distinct, rows = by_query.max(), by_query.nunique(), by_query.size()
    return bool(((highest == rows) & (distinct == rows) & (by_query.min() == 1)).all())
