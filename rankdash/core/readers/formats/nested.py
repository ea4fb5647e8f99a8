"""Entries that hold a list: `{"query": …, "docs": […], "true_scores": […], "pred_scores": […]}`.

An entry becomes one row a document. The order of `docs` is no ranking: tutorials list documents in
any order, some worst first. `pred_scores` is the ranking of a system that was run elsewhere.

Training data, `{"query": …, "pos": […], "neg": […]}`, has a list for each side: documents under
`pos` are relevant (label 1), those under `neg` are not (label 0); scores follow that order.
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

# The scores of a system, which is named by the list's own key.
_SYSTEM = "system"
# The plural forms, and what they are called in a row.
_LISTS = {
    name: column
    for column, names in {
        "document": "docs documents passages candidates contexts paragraphs answers texts "
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
# What belongs to the documents of a side: (of the relevant ones, of the others) → field.
_BESIDE_SIDES = {
    ("posids", "negids"): "doc_ids",
    ("posid", "negid"): "doc_ids",
    ("posscores", "negscores"): "pred_scores",
}
_DOCUMENT = frozenset({"document", "doc_id"})
_NEEDED = _DOCUMENT | {"label"}
# Names that say the field again when the rows are read by their columns.
_FIELD_NAMES = {"score": "initial_score", "reranked": "pred_scores"}


class RefusedEntry(Record):
    """An entry that cannot be read: for which reason, and an example of it."""

    def __init__(self, record: Record, code: str, lengths: Mapping[str, int] | None = None) -> None:
        super().__init__(record)
        query = str(record.get("query", dict(record)))
        self.code = code
        self.example = f"{named_lengths(lengths)}: {query}" if lengths else query


def named_lengths(lengths: Mapping[str, int]) -> str:
    """The names of lists with their lengths, in one line."""
    return ", ".join(f"{name} {length}" for name, length in lengths.items())


def holds_lists(records: Sequence[Record]) -> bool:
    """Whether the first entry holds a list of documents."""
    first = _one_list(records[0]) if records else {}
    return isinstance(first, RefusedEntry) or _holds_documents(first)


def _holds_documents(record: Record) -> bool:
    return bool(_DOCUMENT & _lists_of(record).keys())


def _one_list(record: Record) -> Record:
    """An entry with a list for each side as one with a list of documents and a list of labels;
    any other entry as it is."""
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
    """Whether it is a list of documents, or one text under a name that can mean nothing else."""
    if isinstance(value, list):
        return all(item is None or isinstance(item, str | dict) for item in value)
    return isinstance(value, str) and name not in ("pos", "neg")


def _lists_of(record: Record) -> dict[str, str]:
    """Column of a row → key, for the keys of `record` that hold a list of known meaning."""
    keys: dict[str, str] = {}
    for key, value in record.items():
        column = _LISTS.get(plain(key), _SYSTEM if systems_in([key]) else None)
        if column and isinstance(value, list):
            existing = keys.setdefault(_column_of(key) if column == _SYSTEM else column, key)
            if column == "label" and existing != key and len(record[existing]) == len(value):
                # Other labels, which a row keeps under their own name.
                keys[key] = key
    scores = {
        key: value
        for key, value in record.items()
        if isinstance(value, list) and plain(key) in PLAIN_SCORE
    }
    if scores:
        # Alone a list of scores is one of labels; beside labels it is the first stage's.
        keys.setdefault("initial_score" if "label" in keys else "label", next(iter(scores)))
    documents = next((len(record[keys[name]]) for name in _DOCUMENT if name in keys), 0)
    for key, value in record.items():
        if key not in keys.values() and _scores_each(key, value, documents):
            keys[_column_of(key)] = key
    return keys


def documents_in(record: Record) -> list[Any] | None:
    """The documents that the entry lists, by text or by id; None where it lists none."""
    named = {_LISTS.get(plain(key)): value for key, value in record.items() if value}
    lists = (named.get(name) for name in sorted(_DOCUMENT))
    return next((value for value in lists if isinstance(value, list)), None)


def names_scores(key: str) -> bool:
    """Whether a list under the key is one of scores, by its name alone."""
    return plain(key) in PLAIN_SCORE or plain(key) in _LISTS or bool(systems_in([key]))


def names_a_list(key: str) -> bool:
    """Whether a list under the key is one of documents, labels or scores, by its name alone."""
    sides = chain(*_SIDES.values(), *_BESIDE_SIDES)
    return names_scores(key) or plain(key) in sides or plain(key).endswith(PLAIN_SCORE)


def _column_of(key: str) -> str:
    """The column of a system's scores, from which its name can be told."""
    return key if systems_in([key]) else SYSTEM + key


def _scores_each(key: str, value: object, documents: int) -> bool:
    """Whether the list has a score for each of some documents, such as `minilm_scores`."""
    return (
        plain(key).endswith(PLAIN_SCORE)
        and isinstance(value, list)
        and len(value) == documents > 0
        and all(map(_is_number, value))
    )


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def side_alone(record: Record) -> str | None:
    """The key under which an entry lists documents that are not relevant, where it has neither
    relevant ones nor documents with labels."""
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
    """One row a document: the query's own values beside the document, its label and its scores.

    Entries whose lists differ in length, or that hold no list of documents, are refused.
    """
    rows: list[Record] = []
    row_lines: list[int] = []
    for entry, line in zip(records, lines, strict=True):
        record = _one_list(entry)
        lists = _lists_of(record)
        if any(record[lists[name]] for name in _DOCUMENT & lists.keys()):
            # No scores at all are none for each document.
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
    """The entry with the reason why it cannot be read; None if it can."""
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
    if any(map(_is_no_document, chain.from_iterable(named))):
        return RefusedEntry(record, "no_text")
    return None


def scores_in(key: str, value: object) -> bool:
    """Whether the value is a list of numbers that is called scores."""
    called = plain(key).endswith(PLAIN_SCORE) or bool(systems_in([key]))
    return called and isinstance(value, list) and bool(value) and all(map(_is_number, value))


def uneven(record: Record, keys: Iterable[str]) -> RefusedEntry | None:
    """The entry as one that is refused because its lists under the keys differ in length; None if
    they do not."""
    lengths = {key: len(record[key]) for key in keys}
    return RefusedEntry(record, "not_paired", lengths) if len(set(lengths.values())) > 1 else None


def _query_of(shared: Record) -> Record:
    """The query's own values: one given as an object is an id and a text, and the `id` of the entry
    is that of its query."""
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
    """Columns of a row for a document: a text, or an object, also as LangChain, LlamaIndex,
    Haystack and rank_llm write theirs. An object without a text under a known name has none."""
    if not isinstance(value, dict):
        return {"document": value}
    inner = value.get("kwargs", value.get("node"))
    row = _row_of(inner if isinstance(inner, dict) else value)
    around = row.get("document")
    if isinstance(around, dict):
        # rank_llm and Pyserini put the texts into an object beside the id and the score.
        del row["document"]
        inner_row = _row_of(around)
        texts = ((field, inner_row.get(field)) for field in ("document", "title"))
        row |= {field: text for field, text in texts if isinstance(text, str)}
    return row


def _row_of(value: Record) -> Record:
    named = {plain(key): item for key, item in value.items()}
    fields = recognise(list(value))
    row = {_FIELD_NAMES.get(field, field): value[key] for field, key in fields.items()}
    # Beside a label it is the first stage's; alone its values say which of the two it is.
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


def _is_no_document(value: object) -> bool:
    """Whether a document is given as a list, or as an object around an object in which no text is
    known."""
    row = document_row(value)
    if any(isinstance(row.get(field), list) for field in ("document", "doc_id")):
        return True
    if not isinstance(value, dict) or row.keys() & {"document", "title"}:
        return False
    return any(isinstance(inner, dict) and inner for inner in _row_of(value).values())
