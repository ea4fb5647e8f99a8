"""What looks wrong about the columns of a file of rows: their names and cells contradict their use.

A column that looks like labels and is not used, a label column whose name says that 1 is the best
grade, and a document column that repeats so often that it is likely one of kinds of documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from rankdash.core.base.findings import Finding
from rankdash.core.base.i18n import plain as number
from rankdash.core.data.coded import numbers_of, objects
from rankdash.core.readers.parse.columns import can_be_labels, looks_like_label, plain, recognise
from rankdash.core.readers.parse.skipped_rows import named_lines
from rankdash.core.readers.parse.table import Columns, Table
from rankdash.core.readers.parse.values import labels

# Rows for each document from which, in so many rows, the documents are likely kinds of documents.
_ROWS_PER_DOCUMENT = 50
_ROWS = 1000
_ONE_IS_BEST = re.compile(r"(^|\D)1(is|being|为|是|表示|代表|isthe)*(best|highest|most|perfect|最)")


def suspicious(table: Table, fields: Mapping[str, str]) -> list[Finding]:
    """The findings on a table of rows with these fields."""
    if not table.names:
        return []
    found = [_unused(table, fields), _reversed(table, fields), _few_documents(table, fields)]
    return [each for each in found if each is not None]


def trimmed_ids(table: Table, columns: Iterable[str]) -> Table:
    """The table without blanks around the ids in the columns, and a warning for each column that
    has such ids."""
    # Only programs write the formats that say themselves which column is which.
    if table.fields is not None:
        return table
    for column in columns:
        cells = table.arrow(column)
        trimmed = pc.utf8_trim_whitespace(cells)
        length = numbers_of(pc.binary_length(trimmed), missing=0)
        rows = np.flatnonzero(
            (length > 0) & (numbers_of(pc.binary_length(cells), missing=0) > length)
        )
        if not len(rows):
            continue
        if isinstance(table.cells, Columns):
            changed: Any = Columns({**table.cells, column: trimmed})
        else:
            changed = table.cells.assign(**{column: objects(trimmed)})
        lines = table.lines[rows].tolist()
        finding = Finding(
            "warning",
            "blanks_around_ids",
            "Ids in the column {column} with blanks around them, which are removed: {count}. "
            "Lines: {lines}.",
            {"column": column, "count": len(rows), "lines": named_lines(lines)},
            "Remove the blanks from the file if other programs read it.",
            table.file,
            lines[0],
            len(rows),
            tuple(repr(cells[int(row)].as_py()) for row in rows[:5]),
        )
        table = replace(table, cells=changed, findings=(*table.findings, finding))
    return table


def several_labels(table: Table, fields: Mapping[str, str]) -> list[Finding]:
    """A warning where another column of labels than the one that is used says something else."""
    used = fields.get("label")
    names = [column for column in table.columns if recognise([column]).keys() == {"label"}]
    if used is None or used not in names or len(names) < 2:
        return []
    own = labels(table.arrow(used)).values
    others = {column: labels(table.arrow(column)).values for column in names if column != used}
    differ = [np.isfinite(values) & (values != own) for values in others.values()]
    rows = np.flatnonzero(np.any(differ, axis=0))
    if not len(rows):
        return []
    lines = table.lines[rows].tolist()
    return [
        Finding(
            "warning",
            "several_labels",
            "The labels are those of the column {column}. Rows in which {others} has another "
            "label: {count}. Lines: {lines}.",
            {
                "column": used,
                "others": ", ".join(others),
                "count": len(rows),
                "lines": named_lines(lines),
            },
            "Choose the column on the page Data, or with --columns label=…. If each column is of "
            "one annotator, name them label_1, label_2 ….",
            table.file,
            lines[0],
            len(rows),
            tuple(table.row_text(int(row)) for row in rows[:5]),
        )
    ]


def _unused(table: Table, fields: Mapping[str, str]) -> Finding | None:
    if table.fields is not None or "label" in fields:
        return None
    free = [column for column in table.columns if column not in fields.values()]
    column = next(
        (name for name in free if looks_like_label(name) and can_be_labels(table.frame[name])),
        None,
    )
    if column is None:
        return None
    return Finding(
        "warning",
        "unused_labels",
        "The column {column} looks like relevance labels and is not used; the file has no other "
        "label column.",
        {"column": column},
        "Load the file again and choose it as the label (--columns label=…).",
        table.file,
    )


def _reversed(table: Table, fields: Mapping[str, str]) -> Finding | None:
    column = fields.get("label")
    if column is None or not _ONE_IS_BEST.search(plain(column)):
        return None
    values = labels(table.arrow(column), None).values
    values = values[np.isfinite(values) & (values >= 0)]
    if not len(values):
        return None
    return Finding(
        "warning",
        "label_direction",
        "The name of the label column, {column}, says that the lowest grade is the best: {best}.",
        {"column": column, "best": number(float(values.min()))},
        "A higher label must be better. Reverse the labels: on the page Data, or with "
        "--reverse-labels N, where N is the grade that means not relevant.",
        table.file,
    )


def _few_documents(table: Table, fields: Mapping[str, str]) -> Finding | None:
    column = fields.get("document", fields.get("title"))
    if column is None or "doc_id" in fields or len(table) < _ROWS:
        return None
    documents = int(table.frame[column].nunique())
    if documents * _ROWS_PER_DOCUMENT > len(table):
        return None
    return Finding(
        "warning",
        "few_documents",
        "Only {documents:,} different documents in {rows:,} rows: the column {column} may name "
        "kinds of documents, not documents.",
        {"documents": documents, "rows": len(table), "column": column},
        "Choose the column that contains the text of the documents, or add one with their ids.",
        table.file,
    )
