"""Numbers in JSON entries that could be grades or ids, and rows of grades without documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from rankdash.core.base.errors import Finding
from rankdash.core.readers.formats import nested, retrieved
from rankdash.core.readers.parse.columns import (
    HIGHEST_GRADE,
    MOST_GRADES,
    fields_of,
    plain,
    systems_in,
)
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table

Record = dict[str, Any]

_NUMBER = re.compile(r"[0-9]{1,100}")
_ONLY_QUERY = "q1"
# Names of a column without a name, in which pandas numbers the rows.
_INDEX = ("column1", "unnamed0", "index")
_AS_GRADES = "relevance_labels"


def doubtful(records: Sequence[Record]) -> str | None:
    """Return the key for relevant documents if its numbers could be the grades of the retrieved
    documents or the ids of some, in each entry; else None.

    They could be grades if each document has one and they are few small whole numbers, and ids if
    they do not repeat in an entry and its documents are numbers, too.
    """
    keys = list(dict.fromkeys(chain.from_iterable(records)))
    # A table may have a million rows, and their cells need no look.
    named = [
        key
        for key in keys
        if plain(key) in retrieved.RELEVANT and not retrieved.GRADED.search(plain(key))
    ]
    if len(named) != 1 or any(plain(key) in retrieved.GRADES for key in keys):
        return None
    key, grades = named[0], set[int]()
    for record in records:
        numbers, documents = record.get(key), _numbered(record)
        if not isinstance(numbers, list) or documents is None or len(numbers) != len(documents):
            return None
        if not all(_is_grade(number) for number in numbers) or len({*numbers}) < len(numbers):
            return None
        grades.update(numbers)
    return key if len(grades) <= MOST_GRADES else None


def _is_grade(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= HIGHEST_GRADE


def _numbered(record: Record) -> list[Any] | None:
    """Return the documents of an entry if they are numbers, else None."""
    lists = [record[key] for key in record if plain(key) in retrieved.RETRIEVED]
    documents = next((each for each in lists if isinstance(each, list)), None)
    documents = nested.documents_in(record) if documents is None else documents
    if not documents or not all(_NUMBER.fullmatch(str(each)) for each in documents):
        return None
    return documents


def as_grades(records: Sequence[Record], key: str) -> list[Record]:
    """Rename the key for relevant documents to a name for grades."""
    return [
        {_AS_GRADES if name == key else name: value for name, value in record.items()}
        for record in records
    ]


def as_ids(records: Sequence[Record], key: str) -> list[Record]:
    """Convert the numbers under the key for relevant documents to ids."""
    return [{**record, key: list(map(str, record[key]))} for record in records]


def numbered(tables: Sequence[tuple[Table, Source]]) -> list[tuple[Table, Source]]:
    """Number the documents of a table that contains only labels and scores, as in examples of
    scikit-learn, for each query. Tables of several files are unchanged."""
    if len(tables) != 1:
        return list(tables)
    table, source = tables[0]
    if not table.names or table.fields is not None or not len(table):
        return [(table, source)]
    fields = fields_of(table.frame)
    others = {*table.columns} - {*fields.values(), *systems_in(table.columns)}
    index = {column for column in others if plain(column) in _INDEX}
    others -= index
    if "label" not in fields or {"query", "doc_id", "document", "title"} & fields.keys() or others:
        return [(table, source)]
    if not {"score", "reranked"} & fields.keys():
        return [(table, source)]
    queries = fields.get("query_id")
    frame = table.frame.drop(columns=list(index))
    frame = frame.assign(query_id=_ONLY_QUERY) if queries is None else frame
    ids = frame[queries or "query_id"]
    places = frame.groupby(ids, sort=False, dropna=False).cumcount() + 1
    frame = frame.assign(doc_id=[f"{query}-{at}" for query, at in zip(ids, places, strict=True)])
    note = Finding(
        "note",
        "numbered_documents",
        "The rows name no documents. rankdash numbered them for each query, as {example}.",
        {"example": str(frame["doc_id"].iloc[0])},
        "If several queries have rows, add a column query_id.",
        table.file,
    )
    return [(replace(table, cells=frame, findings=(*table.findings, note)), source)]
