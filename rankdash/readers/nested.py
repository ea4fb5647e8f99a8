"""Entries that hold a list: `{"query": …, "docs": […], "true_scores": […], "pred_scores": […]}`.

An entry becomes one row a document. The order of `docs` is no ranking: tutorials list documents in
any order, some worst first. `pred_scores` is the ranking of a system that was run elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankdash.readers.columns import plain, recognise
from rankdash.readers.refusals import Refusals

Record = dict[str, Any]

# The plural forms, and what they are called in a row.
_LISTS = {
    "docs": "document",
    "documents": "document",
    "passages": "document",
    "candidates": "document",
    "contexts": "document",
    "paragraphs": "document",
    "answers": "document",
    "texts": "document",
    "文档": "document",
    "文档列表": "document",
    "候选": "document",
    "docids": "doc_id",
    "documentids": "doc_id",
    "passageids": "doc_id",
    "truescores": "label",
    "labels": "label",
    "relevance": "label",
    "relevances": "label",
    "grades": "label",
    "scores": "label",
    "标签": "label",
    "相关性": "label",
    "predscores": "pred_scores",
    "predictedscores": "pred_scores",
    "predictions": "pred_scores",
    "rerankscores": "pred_scores",
    "预测分数": "pred_scores",
    "initialscores": "initial_score",
    "firststagescores": "initial_score",
    "retrievalscores": "initial_score",
    "bm25scores": "initial_score",
    "ranks": "rank",
}


def holds_lists(records: Sequence[Record]) -> bool:
    """Whether the first entry holds a list of documents."""
    return bool(records) and bool({"document", "doc_id"} & _lists_of(records[0]).keys())


def _lists_of(record: Record) -> dict[str, str]:
    """field → key, for the keys of `record` that hold a list of known meaning."""
    found: dict[str, str] = {}
    for key, value in record.items():
        field = _LISTS.get(plain(key))
        if field and isinstance(value, list):
            found.setdefault(field, key)
    return found


def flatten(
    records: Sequence[Record], lines: Sequence[int], refusals: Refusals
) -> tuple[list[Record], list[int]]:
    """One row a document: the query's own values beside the document, its label and its scores.

    Entries whose lists differ in length, or that hold no list of documents, are refused.
    """
    rows: list[Record] = []
    row_lines: list[int] = []
    for record, line in zip(records, lines, strict=True):
        lists = _lists_of(record)
        lengths = {len(record[key]) for key in lists.values()}
        if len(lengths) != 1 or not {"document", "doc_id"} & lists.keys():
            refusals.add("not_paired", [line], [str(record.get("query", record))])
            continue
        if lengths == {0}:
            refusals.add("no_document", [line], [str(record.get("query", record))])
            continue
        shared = _query_of(
            {key: value for key, value in record.items() if key not in lists.values()}
        )
        for position in range(lengths.pop()):
            row = dict(shared)
            for field, key in lists.items():
                value = record[key][position]
                row.update(_document(value) if field == "document" else {field: value})
            rows.append(row)
            row_lines.append(line)
    return rows, row_lines


def _query_of(shared: Record) -> Record:
    """A query given as an object, as an id and a text; other values as they are."""
    column = recognise(list(shared)).get("query")
    query = shared.get(column) if column else None
    if column and isinstance(query, dict):
        named = {plain(key): value for key, value in query.items()}
        rest = {key: value for key, value in shared.items() if key != column}
        identity = named.get("id", named.get("queryid"))
        if identity is not None:
            rest["query_id"] = identity
        return {**rest, "query": named.get("text", named.get("query"))}
    return shared


def _document(value: object) -> Record:
    if not isinstance(value, dict):
        return {"document": value}
    named = {plain(key): item for key, item in value.items()}
    fields = recognise(list(value))
    row = {field: value[key] for field, key in fields.items()}
    for field, name in (("doc_id", "id"), ("document", "text")):
        if name in named:
            row.setdefault(field, named[name])
    return row
