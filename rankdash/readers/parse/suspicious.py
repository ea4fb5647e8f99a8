"""What looks wrong about the columns of a file of rows: their names and cells contradict their use.

A column that looks like labels and is not used, a label column whose name says that 1 is the best
grade, and a document column that repeats so often that it is likely one of kinds of documents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from rankdash.findings import Finding
from rankdash.i18n import plain as number
from rankdash.readers.parse.columns import can_be_labels, looks_like_label, plain
from rankdash.readers.parse.table import Table
from rankdash.readers.parse.values import labels

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
