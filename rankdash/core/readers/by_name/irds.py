"""Data sets of the package `ir_datasets`, which knows where hundreds of them lie and how to read
them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from rankdash.core.base.errors import DataError, Finding, LimitError
from rankdash.core.readers.by_name.start import MOST_DOCUMENTS, Fetched, partly_read
from rankdash.core.readers.parse.limits import ReadLimits

EXTRA = "ir_datasets"
_BATCH = 10_000
_HOST = re.compile(r"host='([^']+)'")
# What a query says beside its text describes it only where few say different things.
_MOST_VALUES = 20
_NEAR = 3
_ELSEWHERE = (
    "Check the connection, or download the data set on a machine that reaches it and load its "
    "files."
)


def fetch(name: str, folder: Path) -> list[Fetched]:
    """Write queries, documents, labels and the ranking of the data set as Parquet files.

    Raises DataError where the package is missing, has no such data set, or cannot get it.
    """
    try:
        import ir_datasets
    except ModuleNotFoundError as error:
        raise DataError(
            "{name} needs the package ir_datasets, which is not installed.",
            remedy="Install it with: pip install {extra}. Then load the data set again.",
            name=f"ir_datasets:{name}",
            extra=EXTRA,
        ) from error
    try:
        dataset = ir_datasets.load(name)
    except KeyError as error:
        raise _unknown(name, list(ir_datasets.registry)) from error
    if not dataset.has_queries() or not (dataset.has_qrels() or dataset.has_scoreddocs()):
        raise _without_labels(name, list(ir_datasets.registry))
    try:
        return list(_written(name, dataset, folder))
    except DataError:
        raise
    except Exception as error:
        raise _failed(name, error) from error


def _written(name: str, dataset: Any, folder: Path) -> Iterator[Fetched]:
    wanted: dict[str, None] = {}
    asked: dict[str, None] = {}

    def pairs(rows: Iterable[Any], value: str) -> Iterator[dict[str, object]]:
        for row in rows:
            wanted[row.doc_id] = None
            asked[row.query_id] = None
            yield {
                "query_id": row.query_id,
                "doc_id": row.doc_id,
                value: float(getattr(row, "relevance" if value == "label" else "score")),
            }

    queries = {query.query_id: query for query in dataset.queries_iter()}
    if dataset.has_qrels():
        yield _table(folder / "qrels.parquet", name, pairs(dataset.qrels_iter(), "label"))
    if dataset.has_scoreddocs():
        rows = pairs(dataset.scoreddocs_iter(), "first_stage_score")
        yield _table(folder / "first stage.parquet", name, rows)
    told = [query for key, query in queries.items() if key in asked]
    yield _table(folder / "queries.parquet", name, _queries(told))
    if not dataset.has_docs():
        return
    count = (dataset.docs_metadata() or {}).get("count") or dataset.docs_count()
    if count is None:
        # A store counts its documents once it was asked for one.
        next(iter(dataset.docs_store().get_many_iter(list(wanted)[:1])), None)
        count = dataset.docs_count()
    if count is not None and count <= MOST_DOCUMENTS:
        yield _table(folder / "documents.parquet", name, map(_document, dataset.docs_iter()))
        return
    documents = map(_document, dataset.docs_store().get_many_iter(list(wanted)))
    fetched = _table(folder / "documents.parquet", name, documents)
    read = pq.read_metadata(fetched.path).num_rows
    note = partly_read(name, read, count or read, fetched.name)
    yield Fetched(fetched.path, fetched.name, fetched.origin, (note,))


def _table(file: Path, name: str, rows: Iterable[dict[str, object]]) -> Fetched:
    """The rows as a Parquet file. Raises LimitError as soon as there are more than are read."""
    most = ReadLimits().rows
    source = file.name
    writer: pq.ParquetWriter | None = None
    written = 0
    remaining = iter(rows)
    while batch := list(islice(remaining, _BATCH)):
        written += len(batch)
        if written > most:
            raise LimitError(
                "{name} has more than {limit:,} rows of {what}.",
                remedy="Open a smaller subset of the data set; names with a further / often are "
                "one.",
                name=f"ir_datasets:{name}",
                what=file.stem,
                limit=most,
            )
        table = pa.Table.from_pylist(batch, schema=None if writer is None else writer.schema)
        if writer is None:
            writer = pq.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer is None:
        raise DataError(
            "{name} holds no {what}.",
            remedy="Open another subset of the data set.",
            name=f"ir_datasets:{name}",
            what=file.stem,
        )
    writer.close()
    note = Finding(
        "note",
        "by_name",
        "Loaded by its name from ir_datasets: {name}.",
        {"name": name},
        file=source,
    )
    return Fetched(file, source, name.replace("/", " "), (note,) if file.stem == "queries" else ())


def _queries(queries: list[Any]) -> Iterator[dict[str, object]]:
    if not queries:
        return
    fields = [field for field in queries[0]._fields if field not in ("query_id", "text", "title")]
    values = {field: {str(getattr(query, field)) for query in queries} for field in fields}
    kept = [field for field in fields if len(values[field]) <= _MOST_VALUES]
    for query in queries:
        text = getattr(query, "text", None) or getattr(query, "title", None)
        yield {
            "query_id": query.query_id,
            "query": str(text or query.default_text()),
            **{field: str(getattr(query, field)) for field in kept},
        }


def _document(document: Any) -> dict[str, object]:
    title = getattr(document, "title", None)
    text = getattr(document, "text", None) or getattr(document, "body", None)
    if text is None:
        title, text = None, document.default_text()
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return {"doc_id": document.doc_id, "title": str(title or ""), "document": str(text)}


def _unknown(name: str, names: list[str]) -> DataError:
    near = difflib.get_close_matches(name, names, n=_NEAR, cutoff=0.5)
    return DataError(
        "ir_datasets has no data set {name!r}.",
        remedy="Near it are: {near}." if near else "Its documentation lists them all.",
        name=name,
        near=", ".join(near),
    )


def _without_labels(name: str, names: list[str]) -> DataError:
    import ir_datasets

    below = [
        other
        for other in names
        if other.startswith(f"{name}/")
        and (part := ir_datasets.load(other)).has_queries()
        and part.has_qrels()
    ]
    return DataError(
        "{name!r} of ir_datasets has no labelled queries.",
        remedy="Open a subset of it: {parts}." if below else "Open another data set.",
        name=name,
        parts=", ".join(below[:8]),
    )


def _failed(name: str, error: Exception) -> DataError:
    asked = f"ir_datasets:{name}"
    if isinstance(error, FileNotFoundError):
        return DataError(
            "{name} needs a file that cannot be downloaded without asking for it: {path}.",
            remedy="Put it there as the documentation of ir_datasets says, and open the data set "
            "again.",
            name=asked,
            path=str(error.filename or error),
        )
    if isinstance(error, EOFError):
        return DataError(
            "{name} needs a password.",
            remedy="Store your password as the documentation of ir_datasets says, and load the "
            "data set again.",
            name=asked,
        )
    answer = _answer(error)
    if answer is None:
        return DataError(
            "{name} cannot be read: {reason}.",
            remedy=_ELSEWHERE,
            name=asked,
            reason=(str(error) or type(error).__name__)[:300].rstrip("."),
        )
    host, reason = answer
    return DataError(
        "{name} cannot be fetched from {host}: {reason}.",
        remedy=_ELSEWHERE,
        name=asked,
        host=host,
        reason=reason,
    )


def _answer(error: BaseException) -> tuple[str, str] | None:
    """The server that a download failed at, and how; None where the error is of another kind."""
    import requests

    # Where several servers were tried, their errors are an argument of the last.
    tried = [item[1] for argument in error.args if isinstance(argument, list) for item in argument]
    for each in (error, *tried):
        if isinstance(each, requests.RequestException):
            named = _HOST.search(str(each))
            asked = each.request.url if each.request is not None else None
            host = urlsplit(str(asked)).netloc if asked else named[1] if named else "its server"
            return host, _reason(each)
    return None


def _reason(error: Exception) -> str:
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP {error.response.status_code} {error.response.reason}".strip()
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return type(error).__name__
