"""Downloads of data sets by name, from the Hugging Face hub or with `ir_datasets`, as files.

`start` runs `python -m rankdash.core.readers.by_name.fetching FOLDER NAME …`.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from rankdash.core.base.allowed import hub_token
from rankdash.core.base.errors import DataError, Finding, LimitError
from rankdash.core.base.files import FULL
from rankdash.core.readers.by_name.start import (
    DONE,
    FAILED,
    IR_DATASETS,
    MOST_DOCUMENTS,
    Fetched,
    partly_read,
)
from rankdash.core.readers.by_name.thinning import thinned
from rankdash.core.readers.formats.exports import other_splits
from rankdash.core.readers.parse.limits import MEGABYTE, ReadLimits
from rankdash.core.readers.parse.source import Source

# Data sets of the Hugging Face hub: the data files of a repository, without code.

_NAME = re.compile(
    r"(?P<repository>[\w.\-]+/[\w.\-]+)(?:/(?P<inside>[^@]+?))?/?(?:@(?P<revision>.+))?"
)
_DATA = re.compile(
    r"\.(parquet|arrow|jsonl?|ndjson|csv|tsv|trec|qrels?|run|txt)(\.gz)?$|\.zip$", re.IGNORECASE
)
# The largest download, because of small disks. Large corpora are thinned afterwards.
_MOST_BYTES = 5_000 * MEGABYTE
_ELSEWHERE = (
    "Check the connection, or download the data set on a machine that reaches it "
    "(hf download {name} --repo-type dataset) and load its files."
)
_ASK = (
    "Load its files, or ask the server administrator to allow the token of the hub: --allow-key "
    "HF_TOKEN."
)


@dataclass(frozen=True)
class _Asked:
    """A parsed name of a hub data set. repository: organization/name. inside: a folder or file in
    it, or "". revision: a branch, a tag or a commit; None for the newest."""

    repository: str
    inside: str
    revision: str | None

    def called(self, file: str) -> str:
        """Return the name of a source, which is unique across repositories."""
        return f"{self.repository.split('/')[1]}/{file}"


def fetch_from_hub(name: str, folder: Path) -> list[Fetched]:
    """Download the data files of a repository into the hub's own cache; `folder` is not used.

    Raises DataError if the name is invalid, the hub cannot be reached or denies access, or the
    repository contains no data or too much.
    """
    del folder
    reference = _asked(name)
    try:
        import huggingface_hub as hub
        import huggingface_hub.constants
        import huggingface_hub.errors
    except ModuleNotFoundError as error:
        raise DataError(
            "{name} needs the package huggingface_hub, which is not installed.",
            remedy="Install it with: pip install huggingface_hub. Then load the data set again.",
            name=f"hf:{name}",
        ) from error
    info = _info(hub, reference)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
    files, notes = _chosen(reference, list(sizes))
    _refuse_much(reference, {file: sizes[file] for file in files})
    try:
        home = hub.snapshot_download(
            reference.repository,
            repo_type="dataset",
            revision=info.sha,
            token=hub_token(),
            # Patterns that match exactly these files.
            allow_patterns=[re.sub(r"([*?\[])", r"[\1]", file) for file in files],
        )
    except Exception as error:
        raise DataError(
            "The download of {name} stopped: {reason}.",
            remedy="Free space on the disk, or set HF_HOME to a folder on another disk. Then load "
            "it again: downloaded parts are reused."
            if getattr(error, "errno", None) in FULL
            else "Load it again: downloaded parts are reused.",
            name=f"hf:{name}",
            reason=_reason(error),
        ) from error
    opened = Finding(
        "note",
        "by_name",
        "Loaded by name from the hub at {hub}: {name}, revision {revision}.",
        {
            "hub": hub.constants.ENDPOINT,
            "name": reference.repository,
            "revision": str(info.sha)[:12],
        },
        file=reference.called(files[0]),
    )
    return [
        Fetched(
            Path(home) / file,
            reference.called(file),
            reference.repository.split("/")[1],
            (*((opened,) if file == files[0] else ()), *((notes[file],) if file in notes else ())),
        )
        for file in files
    ]


def _asked(name: str) -> _Asked:
    match = _NAME.fullmatch(name)
    if not match or ".." in name:
        raise DataError(
            "{name!r} is not a name of a data set of the hub.",
            remedy="Write hf:ORGANIZATION/NAME, such as hf:BeIR/scifact, if needed with a "
            "folder (hf:ORGANIZATION/NAME/FOLDER) or a revision (hf:ORGANIZATION/NAME@REVISION).",
            name=f"hf:{name}",
        )
    return _Asked(match["repository"], match["inside"] or "", match["revision"])


def _info(hub: Any, reference: _Asked) -> Any:
    name, token = reference.repository, hub_token()
    try:
        return hub.HfApi(token=token).dataset_info(
            name,
            revision=reference.revision,
            files_metadata=True,
            timeout=hub.constants.HF_HUB_ETAG_TIMEOUT,
        )
    except Exception as error:
        if isinstance(error, hub.errors.GatedRepoError):
            template = "The hub requires that you accept the terms of the data set {name!r}."
            remedy = "Accept the terms on its page and set HF_TOKEN, or load its files."
            remedy = remedy if token is None else _ASK
        elif isinstance(error, hub.errors.RevisionNotFoundError):
            template = "The data set {name!r} has no revision {revision!r}."
            remedy = "Remove @ and the revision to load the newest one."
        elif isinstance(error, hub.errors.RepositoryNotFoundError):
            template = "The hub at {hub} has no data set {name!r}, or it is private."
            remedy = "Check the name. For a private data set, set HF_TOKEN."
            remedy = remedy if token is None else _ASK
        else:
            # The hub's HTTP client and its connection errors differ between releases.
            template = "The hub at {hub} cannot be reached ({reason}), so {name} cannot be opened."
            remedy = _ELSEWHERE
        params = {"name": name, "revision": reference.revision, "hub": hub.constants.ENDPOINT}
        raise DataError(template, remedy=remedy, reason=_reason(error), **params) from error


def _chosen(reference: _Asked, names: Sequence[str]) -> tuple[list[str], dict[str, Finding]]:
    """Return the files to download, one split per folder, in order, and notes by file."""
    inside = [
        name
        for name in names
        if not reference.inside
        or name == reference.inside
        or name.startswith(f"{reference.inside}/")
    ]
    if not inside:
        folders = _folders(names)
        raise DataError(
            "{name} has no folder or file {inside!r}.",
            remedy="Folders: {folders}." if folders else "The data set has no folders.",
            name=reference.repository,
            inside=reference.inside,
            folders=folders,
        )
    data = [name for name in inside if _DATA.search(name) and not Source(name, b"").is_readme]
    if not data:
        raise DataError(
            "{name} contains no supported data file. Files: {files}.",
            remedy="If the hub has converted it, load hf:{name}@refs/convert/parquet.",
            name=reference.repository,
            files=", ".join(inside[:8]),
        )
    excluded, notes = other_splits(data)
    selected = sorted(name for name in data if name not in excluded)
    return selected, {
        name: replace(
            note,
            remedy="To use another split, name its folder or file: hf:ORGANIZATION/NAME/FOLDER.",
            file=reference.called(name),
        )
        for name, note in notes.items()
    }


def _refuse_much(reference: _Asked, sizes: dict[str, int]) -> None:
    if sum(sizes.values()) <= _MOST_BYTES:
        return
    folders = _folders(sizes)
    raise DataError(
        "{name} has {size:,.0f} MB of data; the limit for downloads is {limit:,.0f} MB.",
        remedy="Load one of its folders as hf:{name}/FOLDER: {folders}."
        if folders
        else "Download the files that you need, and load them.",
        name=reference.repository,
        size=sum(sizes.values()) / MEGABYTE,
        limit=_MOST_BYTES / MEGABYTE,
        folders=folders,
    )


def _folders(names: Iterable[str]) -> str:
    """Return the first folders of some files in one line."""
    return ", ".join(sorted({str(PurePosixPath(name).parent) for name in names} - {"."})[:12])


def _reason(error: Exception) -> str:
    return (str(error).split("\n")[0] or type(error).__name__)[:300].rstrip(".")


# Data sets of the package `ir_datasets`, which can download and read hundreds of them.

_BATCH = 10_000
_HOST = re.compile(r"host='([^']+)'")
# The most distinct values of a query attribute that is used as a segment.
_MOST_VALUES = 20
_NEAR = 3
_IRDS_ELSEWHERE = (
    "Check the connection, or download the data set on a machine that reaches it and load its "
    "files."
)


def fetch_from_ir_datasets(name: str, folder: Path) -> list[Fetched]:
    """Write queries, documents, labels and the ranking of the data set as Parquet files.

    Raises DataError if the package is missing, has no such data set, or cannot download it.
    """
    try:
        import ir_datasets
    except ModuleNotFoundError as error:
        raise DataError(
            "{name} needs the package ir_datasets, which is not installed.",
            remedy="Install it with: pip install {extra}. Then load the data set again.",
            name=f"ir_datasets:{name}",
            extra="ir_datasets",
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
    doc_ids: dict[str, None] = {}
    query_ids: dict[str, None] = {}

    def pairs(rows: Iterable[Any], value: str) -> Iterator[dict[str, object]]:
        for row in rows:
            doc_ids[row.doc_id] = None
            query_ids[row.query_id] = None
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
    selected = [query for key, query in queries.items() if key in query_ids]
    yield _table(folder / "queries.parquet", name, _queries(selected))
    if not dataset.has_docs():
        return
    count = (dataset.docs_metadata() or {}).get("count") or dataset.docs_count()
    if count is None:
        # The count is known only after the document store was used.
        next(iter(dataset.docs_store().get_many_iter(list(doc_ids)[:1])), None)
        count = dataset.docs_count()
    if count is not None and count <= MOST_DOCUMENTS:
        yield _table(folder / "documents.parquet", name, map(_document, dataset.docs_iter()))
        return
    documents = map(_document, dataset.docs_store().get_many_iter(list(doc_ids)))
    fetched = _table(folder / "documents.parquet", name, documents)
    read = pq.read_metadata(fetched.path).num_rows
    note = partly_read(name, read, count or read, fetched.name)
    yield Fetched(fetched.path, fetched.name, fetched.origin, (note,))


def _table(file: Path, name: str, rows: Iterable[dict[str, object]]) -> Fetched:
    """Write rows to a Parquet file. Raises LimitError if there are more than the limit of rows."""
    most = ReadLimits().rows
    source = file.name
    remaining = iter(rows)
    batch = list(islice(remaining, _BATCH))
    if not batch:
        raise DataError(
            "{name} contains no {what}.",
            remedy="Load another subset of the data set.",
            name=f"ir_datasets:{name}",
            what=file.stem,
        )
    table, written = pa.Table.from_pylist(batch), 0
    with pq.ParquetWriter(file, table.schema) as writer:
        while batch:
            written += len(batch)
            if written > most:
                raise LimitError(
                    "{name} has more than {limit:,} rows of {what}.",
                    remedy="Load a smaller subset of the data set. Subsets often have a longer "
                    "name, with another part after a /.",
                    name=f"ir_datasets:{name}",
                    what=file.stem,
                    limit=most,
                )
            writer.write_table(pa.Table.from_pylist(batch, schema=table.schema))
            batch = list(islice(remaining, _BATCH))
    template = "Loaded by name from ir_datasets: {name}."
    note = Finding("note", "by_name", template, {"name": name}, file=source)
    return Fetched(file, source, name.replace("/", " "), (note,) if file.stem == "queries" else ())


def _queries(queries: list[Any]) -> Iterator[dict[str, object]]:
    if not queries:
        return
    fields = [field for field in queries[0]._fields if field not in ("query_id", "text", "title")]
    values = {field: {str(getattr(query, field)) for query in queries} for field in fields}
    segments = [field for field in fields if len(values[field]) <= _MOST_VALUES]
    for query in queries:
        text = getattr(query, "text", None) or getattr(query, "title", None)
        yield {
            "query_id": query.query_id,
            "query": str(text or query.default_text()),
            **{field: str(getattr(query, field)) for field in segments},
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
        remedy="Similar names: {near}." if near else "The documentation of ir_datasets lists all.",
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
        remedy="Load one of its subsets: {parts}." if below else "Load another data set.",
        name=name,
        parts=", ".join(below[:8]),
    )


def _failed(name: str, error: Exception) -> DataError:
    full_name = f"ir_datasets:{name}"
    if isinstance(error, FileNotFoundError):
        return DataError(
            "{name} needs a file that must be requested from its owner: {path}.",
            remedy="Copy the file there, as described in the documentation of ir_datasets, and "
            "load the data set again.",
            name=full_name,
            path=str(error.filename or error),
        )
    if isinstance(error, EOFError):
        return DataError(
            "{name} needs a password.",
            remedy="Store your password as described in the documentation of ir_datasets, and load "
            "the data set again.",
            name=full_name,
        )
    answer = _answer(error)
    if answer is None:
        return DataError(
            "{name} cannot be read: {reason}.",
            remedy=_IRDS_ELSEWHERE,
            name=full_name,
            reason=(str(error) or type(error).__name__)[:300].rstrip("."),
        )
    host, reason = answer
    return DataError(
        "{name} cannot be fetched from {host}: {reason}.",
        remedy=_IRDS_ELSEWHERE,
        name=full_name,
        host=host,
        reason=reason,
    )


def _answer(error: BaseException) -> tuple[str, str] | None:
    """Return the server and the reason of a failed download; None for any other error."""
    import requests

    # If several servers were tried, their errors are an argument of the last error.
    tried = [item[1] for argument in error.args if isinstance(argument, list) for item in argument]
    for each in (error, *tried):
        if isinstance(each, requests.RequestException):
            named = _HOST.search(str(each))
            url = each.request.url if each.request is not None else None
            host = urlsplit(str(url)).netloc if url else named[1] if named else "its server"
            return host, _failure(each)
    return None


def _failure(error: Exception) -> str:
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP {error.response.status_code} {error.response.reason}".strip()
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return type(error).__name__


def main(arguments: Sequence[str]) -> int:
    folder, names = Path(arguments[0]), arguments[1:]
    try:
        fetched: list[Fetched] = []
        for position, name in enumerate(names):
            collection, _, identifier = name.partition(":")
            place = folder / str(position)
            place.mkdir()
            fetch = fetch_from_ir_datasets if collection == IR_DATASETS else fetch_from_hub
            fetched += fetch(identifier, place)
        files = thinned(fetched, folder)
    except DataError as problem:
        _write(
            folder / FAILED,
            {
                "template": problem.template,
                "remedy": problem.remedy,
                "file": problem.file,
                "line": problem.line,
                **problem.params,
            },
        )
        return 0
    entries = [
        {
            "file": os.path.relpath(file.path, folder),
            "name": file.name,
            "origin": file.origin,
            "notes": [asdict(note) for note in file.notes],
        }
        for file in files
    ]
    _write(folder / DONE, {"sources": entries})
    return 0


def _write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, ensure_ascii=False, default=str), "utf-8")


def _end_with_parent(folder: Path) -> None:
    """Delete the folder and exit when the parent process has ended (end of standard input)."""
    os.read(0, 1)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, args=(Path(sys.argv[1]),), daemon=True).start()
    sys.exit(main(sys.argv[1:]))
