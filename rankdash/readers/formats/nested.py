"""Entries that hold a list: `{"query": …, "docs": […], "true_scores": […], "pred_scores": […]}`.

An entry becomes one row a document. The order of `docs` is no ranking: tutorials list documents in
any order, some worst first. `pred_scores` is the ranking of a system that was run elsewhere.

Training data, `{"query": …, "pos": […], "neg": […]}`, has a list for each side: documents under
`pos` are relevant (label 1), those under `neg` are not (label 0); scores follow that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankdash.readers.parse.columns import (
    PLAIN_ID,
    PLAIN_SCORE,
    SYSTEM,
    plain,
    recognise,
    systems_in,
)
from rankdash.readers.parse.skipped_rows import Refusals

Record = dict[str, Any]

# The scores of a system, which is named by the list's own key.
_SYSTEM = "system"
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
    "corpusids": "doc_id",
    "documentids": "doc_id",
    "passageids": "doc_id",
    "truescores": "label",
    "labels": "label",
    "relevance": "label",
    "relevances": "label",
    "grades": "label",
    "gtrels": "label",
    "rels": "label",
    "relevancelabels": "label",
    "truelabels": "label",
    "truerelevance": "label",
    "ytrue": "label",
    "gains": "label",
    "标签": "label",
    "相关性": "label",
    "predictions": _SYSTEM,
    "yscore": _SYSTEM,
    "initialscores": "initial_score",
    "firststagescores": "initial_score",
    "retrievalscores": "initial_score",
    "bm25scores": "initial_score",
    "ranks": "rank",
}
_SIDES = {
    1: ("pos", "positive", "positives", "positivepassages", "positivedocs", "正例"),
    0: (
        "neg",
        "negative",
        "negatives",
        "hardnegatives",
        "negativepassages",
        "negativedocs",
        "负例",
    ),
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


def holds_lists(records: Sequence[Record]) -> bool:
    """Whether the first entry holds a list of documents."""
    return bool(records) and _holds_documents(_one_list(records[0]))


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
    documents: list[Any] = []
    labels: list[int] = []
    for label, names in sides.items():
        for name in names:
            side = record[name] if isinstance(record[name], list) else [record[name]]
            documents += side
            labels += [label] * len(side)
    joined = {"docs": documents, "labels": labels}
    used = {*sides[1], *sides[0]}
    for (relevant, other), field in _BESIDE_SIDES.items():
        first, second = (record.get(keys.get(name, "")) for name in (relevant, other))
        if isinstance(first, list) and (isinstance(second, list) or not sides[0]):
            joined[field] = [*first, *(second or [])]
            used |= {keys[relevant], keys.get(other, "")}
    return {**{key: value for key, value in record.items() if key not in used}, **joined}


def _side(value: object, name: str) -> bool:
    """Whether it is a list of documents, or one text under a name that can mean nothing else."""
    if isinstance(value, list):
        return all(isinstance(item, str | dict) for item in value)
    return isinstance(value, str) and name not in ("pos", "neg")


def _lists_of(record: Record) -> dict[str, str]:
    """Column of a row → key, for the keys of `record` that hold a list of known meaning."""
    found: dict[str, str] = {}
    for key, value in record.items():
        column = _LISTS.get(plain(key), _SYSTEM if systems_in([key]) else None)
        if column and isinstance(value, list):
            found.setdefault(_column_of(key) if column == _SYSTEM else column, key)
    scores = {
        key: value
        for key, value in record.items()
        if isinstance(value, list) and plain(key) in PLAIN_SCORE
    }
    if scores:
        # Alone a list of scores is one of labels; beside labels it is the first stage's.
        found.setdefault("initial_score" if "label" in found else "label", next(iter(scores)))
    documents = next((len(record[found[name]]) for name in _DOCUMENT if name in found), 0)
    for key, value in record.items():
        if key not in found.values() and _scores_each(key, value, documents):
            found[_column_of(key)] = key
    return found


def documents_in(record: Record) -> list[Any] | None:
    """The documents that the entry lists, by text or by id; None where it lists none."""
    named = {_LISTS.get(plain(key)): value for key, value in record.items() if value}
    lists = (named.get(name) for name in sorted(_DOCUMENT))
    return next((value for value in lists if isinstance(value, list)), None)


def names_scores(key: str) -> bool:
    """Whether a list under the key is one of scores, by its name alone."""
    return plain(key) in PLAIN_SCORE or plain(key) in _LISTS or bool(systems_in([key]))


def _column_of(key: str) -> str:
    """The column of a system's scores, from which its name can be told."""
    return key if systems_in([key]) else SYSTEM + key


def _scores_each(key: str, value: object, documents: int) -> bool:
    """Whether the list has a score for each of some documents, such as `minilm_scores`."""
    return (
        plain(key).endswith(PLAIN_SCORE)
        and isinstance(value, list)
        and len(value) == documents > 0
        and all(score is None or isinstance(score, int | float) for score in value)
    )


def side_alone(record: Record) -> str | None:
    """The key under which an entry lists documents that are not relevant, where it has neither
    relevant ones nor documents with labels."""
    if _holds_documents(_one_list(record)) or recognise(list(record)).keys() & _DOCUMENT:
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
        lengths = {len(record[key]) for key in lists.values()}
        if len(lengths) != 1 or not _DOCUMENT & lists.keys():
            refusals.add("not_paired", [line], [str(record.get("query", record))])
            continue
        if lengths == {0}:
            refusals.add("no_documents", [line], [str(record.get("query", record))])
            continue
        documents = record[lists["document"]] if "document" in lists else ()
        if any(map(_has_unknown_text, documents)):
            refusals.add("no_text", [line], [str(record.get("query", record))])
            continue
        shared = _query_of(
            {key: value for key, value in record.items() if key not in lists.values()}
        )
        for position in range(lengths.pop()):
            row = dict(shared)
            for field, key in lists.items():
                value = record[key][position]
                row.update(document_row(value) if field == "document" else {field: value})
            rows.append(row)
            row_lines.append(line)
    return rows, row_lines


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
    own = next((key for key in shared if plain(key) in PLAIN_ID), None)
    if own and "query_id" not in fields:
        return {"query_id" if key == own else key: value for key, value in shared.items()}
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
        found = _row_of(around)
        texts = ((field, found.get(field)) for field in ("document", "title"))
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


def _has_unknown_text(value: object) -> bool:
    """Whether a document is given as an object around an object in which no text is known."""
    if not isinstance(value, dict) or document_row(value).keys() & {"document", "title"}:
        return False
    return any(isinstance(inner, dict) and inner for inner in _row_of(value).values())
