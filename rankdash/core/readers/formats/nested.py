"""Entries with lists: `{"query": …, "docs": […], "true_scores": […], "pred_scores": […]}`.

An entry becomes one row per document. The order of `docs` is not a ranking: tutorials list
documents in any order, some worst first. `pred_scores` is the ranking of a precomputed system.

Training data, `{"query": …, "pos": […], "neg": […]}`, has one list per label: documents in `pos`
are relevant (label 1), documents in `neg` are not (label 0); scores follow that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from rankdash.core.readers.parse.columns import (
    PLAIN_ID,
    PLAIN_SCORE,
    SYSTEM,
    plain,
    recognise,
    systems_in,
)
from rankdash.core.readers.parse.limits import Refusals

Record = dict[str, Any]

# The scores of a system, named by the key of the list.
_SYSTEM = "system"
# Plural name of a list → column of a row.
_LISTS = {
    name: column
    for column, names in {
        "document": "docs documents passages candidates hits contexts paragraphs answers texts "
        "文档 文档列表 候选",
        "doc_id": "docids corpusids documentids passageids",
        "label": "truescores labels relevance relevances grades gtrels rels relevancelabels "
        "truelabels truerelevance ytrue gains 标签 相关性",
        _SYSTEM: "predictions yscore",
        "initial_score": "initialscores firststagescores retrievalscores bm25scores",
        "rank": "ranks",
    }.items()
    for name in names.split()
}
_SIDES = {
    label: tuple(names.split())
    for label, names in (
        (1, "pos positive positives positivepassages positivedocs 正例"),
        (0, "neg negative negatives hardnegatives negativepassages negativedocs 负例"),
    )
}
# Lists parallel to `pos` and `neg`: (of relevant documents, of others) → field.
_BESIDE_SIDES = {
    ("posids", "negids"): "doc_ids",
    ("posid", "negid"): "doc_ids",
    ("posscores", "negscores"): "pred_scores",
}
_DOCUMENT = frozenset({"document", "doc_id"})
_TEXTS = ("document", "title")
_NEEDED = _DOCUMENT | {"label"}
# Field → a column name that is recognised as this field.
_FIELD_NAMES = {"score": "initial_score", "reranked": "pred_scores"}


class RefusedEntry(Record):
    """An entry that cannot be read, with the code of the reason and an example."""

    def __init__(
        self,
        record: Record,
        code: str,
        lengths: Mapping[str, int] | None = None,
        *,
        place: str = "",
    ) -> None:
        """lengths: of its lists. place: the path of the value that cannot be read."""
        super().__init__(record)
        query = str(record.get("query", dict(record)))
        place = place or (named_lengths(lengths) if lengths else "")
        self.code = code
        self.example = f"{place}: {query}" if place else query


def named_lengths(lengths: Mapping[str, int]) -> str:
    """Return the names of lists with their lengths in one line."""
    return ", ".join(f"{name} {length}" for name, length in lengths.items())


def holds_lists(records: Sequence[Record]) -> bool:
    """Return whether the first entry contains a list of documents."""
    first = _one_list(records[0]) if records else {}
    return isinstance(first, RefusedEntry) or _holds_documents(first)


def _holds_documents(record: Record) -> bool:
    return bool(_DOCUMENT & _lists_of(record).keys())


def _one_list(record: Record) -> Record:
    """Convert an entry with lists such as `pos` and `neg` to one with a list of documents and a
    list of labels; return any other entry unchanged."""
    keys = {plain(key): key for key in record}
    sides = {
        label: [keys[name] for name in names if name in keys and _side(record[keys[name]], name)]
        for label, names in _SIDES.items()
    }
    if not sides[1] or _holds_documents(record) or recognise(list(record)).keys() & _DOCUMENT:
        return record
    by_label: dict[int, list[Any]] = {1: [], 0: []}
    for label, names in sides.items():
        for name in names:
            by_label[label] += record[name] if isinstance(record[name], list) else [record[name]]
    labels = [label for label, documents in by_label.items() for _ in documents]
    joined = {"docs": [*by_label[1], *by_label[0]], "labels": labels}
    used = {*sides[1], *sides[0]}
    for beside, field in _BESIDE_SIDES.items():
        first, second = (record.get(keys.get(name, "")) for name in beside)
        if not isinstance(first, list) or not (isinstance(second, list) or not sides[0]):
            continue
        joined[field] = [*first, *(second or [])]
        used |= {keys.get(name, "") for name in beside}
        if joined[field] and (len(first), len(second or [])) != (
            len(by_label[1]),
            len(by_label[0]),
        ):
            lengths = {
                " + ".join(sides[label]): len(by_label[label]) for label in sides if sides[label]
            }
            lengths |= {keys[name]: len(record[keys[name]]) for name in beside if name in keys}
            return RefusedEntry(record, "not_paired", lengths)
    return {**{key: value for key, value in record.items() if key not in used}, **joined}


def _side(value: object, name: str) -> bool:
    """Return whether a value contains documents: a list of documents, or one text, except under
    `pos` and `neg`."""
    if isinstance(value, list):
        return all(item is None or isinstance(item, str | dict) for item in value)
    return isinstance(value, str) and name not in ("pos", "neg")


def _lists_of(record: Record) -> dict[str, str]:
    """Return column → key of `record`, for its recognised lists: documents, labels and scores."""
    keys: dict[str, str] = {}
    for key, value in record.items():
        column = _LISTS.get(plain(key), _SYSTEM if systems_in([key]) else None)
        if column and isinstance(value, list):
            existing = keys.setdefault(_column_of(key) if column == _SYSTEM else column, key)
            if column == "label" and existing != key and len(record[existing]) == len(value):
                # Further labels become a separate column.
                keys[key] = key
    scores = {
        key: value
        for key, value in record.items()
        if isinstance(value, list) and plain(key) in PLAIN_SCORE
    }
    if scores:
        # A list of scores without labels contains labels; with labels, first-stage scores.
        keys.setdefault("initial_score" if "label" in keys else "label", next(iter(scores)))
    documents = next((len(record[keys[name]]) for name in _DOCUMENT if name in keys), 0)
    for key, value in record.items():
        if key not in keys.values() and _scores_each(key, value, documents):
            keys[_column_of(key)] = key
    return keys


def documents_in(record: Record) -> list[Any] | None:
    """Return the list of documents (texts or ids) of the entry, or None."""
    named = {_LISTS.get(plain(key)): value for key, value in record.items() if value}
    lists = (named.get(name) for name in sorted(_DOCUMENT))
    return next((value for value in lists if isinstance(value, list)), None)


def names_scores(key: str) -> bool:
    """Return whether the key is a name for a list of scores."""
    return plain(key) in PLAIN_SCORE or plain(key) in _LISTS or bool(systems_in([key]))


def names_a_list(key: str) -> bool:
    """Return whether the key is a name for a list of documents, labels or scores."""
    sides = chain(*_SIDES.values(), *_BESIDE_SIDES)
    return names_scores(key) or plain(key) in sides or plain(key).endswith(PLAIN_SCORE)


def _column_of(key: str) -> str:
    """Return the column for a system's scores, which contains its name."""
    return key if systems_in([key]) else SYSTEM + key


def _scores_each(key: str, value: object, documents: int) -> bool:
    """Return whether the list, such as `minilm_scores`, has one score per document."""
    return (
        plain(key).endswith(PLAIN_SCORE)
        and isinstance(value, list)
        and len(value) == documents > 0
        and all(map(_is_number, value))
    )


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def side_alone(record: Record) -> str | None:
    """Return the key of the non-relevant documents in an entry that lists no other documents; None
    for any other entry."""
    if holds_lists([record]) or recognise(list(record)).keys() & _DOCUMENT:
        return None
    return next(
        (
            key
            for key, value in record.items()
            if plain(key) in _SIDES[0] and isinstance(value, list)
        ),
        None,
    )


def flatten(
    records: Sequence[Record], lines: Sequence[int], refusals: Refusals
) -> tuple[list[Record], list[int]]:
    """Return one row per document, with the query's values, the document, its label and scores,
    and the line of each row.

    Entries with lists of different lengths, or without a list of documents, are refused.
    """
    rows: list[Record] = []
    row_lines: list[int] = []
    for entry, line in zip(records, lines, strict=True):
        record = _one_list(entry)
        lists = _lists_of(record)
        if any(record[lists[name]] for name in _DOCUMENT & lists.keys()):
            # An empty list of scores means that documents have none.
            lists = {name: key for name, key in lists.items() if record[key] or name in _NEEDED}
        refused = _refused(record, lists)
        if refused:
            refusals.add(refused.code, [line], [refused.example])
            continue
        shared = _query_of(
            {key: value for key, value in record.items() if key not in lists.values()}
        )
        for values in zip(*(record[key] for key in lists.values()), strict=True):
            row = dict(shared)
            for field, value in zip(lists, values, strict=True):
                row.update(document_row(value) if field == "document" else {field: value})
            rows.append(row)
            row_lines.append(line)
    return rows, row_lines


def _refused(record: Record, lists: Mapping[str, str]) -> RefusedEntry | None:
    """Return the entry with the reason why it cannot be read, or None if it can."""
    if isinstance(record, RefusedEntry):
        return record
    fields = recognise(list(record))
    queries = [fields[field] for field in ("query", "query_id") if field in fields]
    queries = [key for key in queries if isinstance(record[key], list) and len(record[key]) > 1]
    if queries:
        paired = [*queries, *lists.values()]
        return RefusedEntry(record, "not_paired", {key: len(record[key]) for key in paired})
    scores = [key for key, value in record.items() if scores_in(key, value)]
    refusal = uneven(record, [*lists.values(), *scores])
    if refusal or not _DOCUMENT & lists.keys():
        return refusal or RefusedEntry(record, "not_paired")
    named = [record[lists[name]] for name in lists if name in _DOCUMENT]
    if not named[0]:
        return RefusedEntry(record, "no_documents")
    return without_text(record, (lists[name] for name in lists if name in _DOCUMENT))


def scores_in(key: str, value: object) -> bool:
    """Return whether the value is a list of numbers under a name for scores."""
    called = plain(key).endswith(PLAIN_SCORE) or bool(systems_in([key]))
    return called and isinstance(value, list) and bool(value) and all(map(_is_number, value))


def uneven(record: Record, keys: Iterable[str]) -> RefusedEntry | None:
    """Return the entry as refused if its lists under the keys differ in length, or None."""
    lengths = {key: len(record[key]) for key in keys}
    return RefusedEntry(record, "not_paired", lengths) if len(set(lengths.values())) > 1 else None


def _query_of(shared: Record) -> Record:
    """Normalise the values of the query: an object becomes an id and a text, and the `id` of the
    entry becomes the query's id."""
    fields = recognise(list(shared))
    column = fields.get("query")
    query = shared.get(column) if column else None
    if column and isinstance(query, dict):
        named = {plain(key): value for key, value in query.items()}
        inner = {field: query[key] for field, key in recognise(list(query)).items()}
        rest = {key: value for key, value in shared.items() if key != column}
        identity = named.get("id", inner.get("query_id"))
        if identity is not None:
            rest["query_id"] = identity
        return {**rest, "query": named.get("text", inner.get("query"))}
    id_key = next((key for key in shared if plain(key) in PLAIN_ID), None)
    if id_key and "query_id" not in fields:
        return {"query_id" if key == id_key else key: value for key, value in shared.items()}
    return shared


def document_row(value: object) -> Record:
    """Return the columns of a row for a document: a text, or an object, also in the formats of
    LangChain, LlamaIndex, Haystack and rank_llm. A text under an unknown name is not read."""
    if not isinstance(value, dict):
        return {"document": value}
    inner = value.get("kwargs", value.get("node"))
    row = _row_of(inner if isinstance(inner, dict) else value)
    around = row.get("document")
    if isinstance(around, dict):
        # rank_llm and Pyserini store the texts in a separate object, next to the id and the score.
        del row["document"]
        inner_row = _row_of(around)
        texts = ((field, inner_row.get(field)) for field in ("document", "title"))
        row |= {field: text for field, text in texts if isinstance(text, str)}
        if "score" in row:
            # Whole numbers are scores here, not labels.
            row["initial_score"] = row.pop("score")
    return row


def _row_of(value: Record) -> Record:
    named = {plain(key): item for key, item in value.items()}
    fields = recognise(list(value))
    row = {_FIELD_NAMES.get(field, field): value[key] for field, key in fields.items()}
    # With a label, a score is the first stage's; else its values decide if it is a label.
    score = next((name for name in PLAIN_SCORE if name in named), None)
    if score:
        row.setdefault("initial_score" if "label" in row else "score", named[score])
    about = named.get("metadata", named.get("meta"))
    if isinstance(about, dict):
        named = {plain(key): item for key, item in about.items()} | named
    for field, name in (("doc_id", "id"), ("document", "text"), ("document", "segment")):
        if name in named:
            row.setdefault(field, named[name])
    return row


def without_text(record: Record, keys: Iterable[str]) -> RefusedEntry | None:
    """Return the entry as refused if a document in its lists under the keys has no known text or
    id, or None."""
    for key in keys:
        for at, value in enumerate(record[key]):
            if _is_no_document(value):
                return RefusedEntry(record, "no_text", place=f"{key}[{at}]")
    return None


def _is_no_document(value: object) -> bool:
    """Return whether a document is a list, or an object without a known text or id, or with inner
    objects but without a known text."""
    row = document_row(value)
    if any(isinstance(row.get(field), list | dict) for field in ("doc_id", *_TEXTS)):
        return True
    if not isinstance(value, dict) or row.keys() & {*_TEXTS}:
        return False
    inner = any(isinstance(each, dict) and each for each in _row_of(value).values())
    return inner or "doc_id" not in row


def opened(record: Record, fields: Mapping[str, str]) -> Record:
    """Convert objects in the fields of texts of a row to texts and ids. A row with an object
    without a known text is refused. fields: field → key."""
    for field in ("query", *_TEXTS):
        key = fields.get(field)
        value = record.get(key) if key else None
        if key is None or not (isinstance(value, dict) or _holds_objects(value)):
            continue
        if field == "query":
            query = _query_of({key: value})
            inner = {key: query.get("query"), "query_id": query.get("query_id")}
        else:
            row = document_row(value) if isinstance(value, dict) else {}
            inner = {**row, key: row.get("document", row.get("title"))}
            inner.pop("document" if key != "document" else "", None)
        if not isinstance(inner[key], str):
            return RefusedEntry(record, "no_text", place=key)
        names = {fields.get(name, name): each for name, each in inner.items() if each is not None}
        record = {**names, **record, key: inner[key]}
    return record


def _holds_objects(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict | list) for each in value)
