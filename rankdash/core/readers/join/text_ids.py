"""Ids for queries and documents that a file gives by their text only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pandas as pd

from rankdash.core.base.errors import DataError, Finding
from rankdash.core.data.ranking import coded
from rankdash.core.readers.join.parsed_file import Pairs, ParsedFile, empty, texts

Key = Literal["query_id", "doc_id"]
KEYS: tuple[Key, ...] = ("query_id", "doc_id")
_PREFIX = {"query_id": "q", "doc_id": "d"}
_TABLES = {"query_id": "queries", "doc_id": "documents"}
_EXAMPLES = 5


def with_ids(
    parts: Sequence[ParsedFile], key: Key, *, strict: bool = False
) -> tuple[list[ParsedFile], list[Finding]]:
    """The parts, all keyed by ids.

    A text that another file lists under an id gets that id; the rest are named q1, q2 … (d1, d2 …
    for documents) in the order of first appearance, the same text always the same id, but never
    an id under which another file lists a text. So a ranking that was made elsewhere from these
    ids finds its queries again. Where a column of "texts" holds ids that another file knows, it
    is read as ids.

    Raises DataError where a file of labels or of texts (strict: any file) knows only an id, and
    that id would be made for a text of a file without labels: nothing says that they are the same.
    """
    named = [part for part in parts if key not in part.keyed_by_text]
    if len(named) == len(parts):
        return list(parts), []
    known = {identity for part in named for identity in _ids(part, key)}
    listed = [pair for part in named for pair in _texts_and_ids(part, key)]
    taken = {identity for _, identity in listed}
    # The first id of a text wins.
    id_of = dict(reversed(listed))
    findings: list[Finding] = []
    made: dict[str, str] = {}
    found: list[ParsedFile] = []
    number = 0
    for part in parts:
        if key not in part.keyed_by_text:
            found.append(part)
            continue
        given = list(_table(part, key)[key])
        if _are_ids(given, known, id_of):
            findings.append(_read_as_ids(part, key))
            found.append(_forget_texts(part, key))
            continue
        for text in given:
            if text in id_of or text in made:
                continue
            number += 1
            while f"{_PREFIX[key]}{number}" in taken:
                number += 1
            made[text] = f"{_PREFIX[key]}{number}"
        found.append(_renamed(part, key, {**made, **id_of}))
    if made:
        _refuse_chance(parts, key, made, taken, strict=strict)
        findings += [_made(key, made), *_alike(key, made)]
    return found, findings


def _refuse_chance(
    parts: Sequence[ParsedFile],
    key: Key,
    made: Mapping[str, str],
    taken: Collection[str],
    *,
    strict: bool,
) -> None:
    unnamed = {
        identity
        for part in parts
        if key not in part.keyed_by_text
        for identity in (
            _ids(part, key)
            if strict
            else [*part.labels.ids(key).texts.to_pylist(), *_table(part, key)[key]]
        )
    }.difference(taken)
    own = {
        text
        for part in parts
        if key in part.keyed_by_text and len(part.labels)
        for text in _table(part, key)[key]
    }
    for part in parts:
        if key not in part.keyed_by_text or len(part.labels):
            continue
        for text in _table(part, key)[key]:
            if text not in own and made.get(text) in unnamed:
                raise no_texts(key, made[text], part.file)


def no_texts(key: Key, example: str, file: str) -> DataError:
    """What to raise where a file says only a text and the others only ids."""
    return DataError(
        "The file names its queries by their text, but the queries it is compared with have no "
        "text, such as {example!r}."
        if key == "query_id"
        else "The file names its documents by their text, but the documents it is compared with "
        "have no text, such as {example!r}.",
        remedy="Add a column query_id or doc_id to it, with the ids of the other files.",
        file=file,
        example=example,
    )


def _table(part: ParsedFile, key: Key) -> pd.DataFrame:
    """The queries or the documents of a part; where it is keyed by text, all of them."""
    table: pd.DataFrame | None = getattr(part, _TABLES[key])
    return empty(key, "text") if table is None else table


def _ids(part: ParsedFile, key: Key) -> Iterable[str]:
    for frame in (_table(part, key), part.pairs):
        if frame is not None:
            yield from pd.unique(frame[key])
    for pairs in (part.labels, *(scores.pairs for scores in part.scores)):
        yield from pairs.ids(key).texts.to_pylist()


def _texts_and_ids(part: ParsedFile, key: Key) -> list[tuple[str, str]]:
    table = _table(part, key)
    pairs = zip(table["text"], table[key], strict=True)
    return [(text, identity) for text, identity in pairs if text]


def _are_ids(texts: Sequence[str], known: set[str], id_of: dict[str, str]) -> bool:
    as_ids = sum(text in known for text in texts)
    as_texts = sum(text in id_of for text in texts)
    return as_ids > len(texts) / 2 and as_ids > as_texts


def _read_as_ids(part: ParsedFile, key: Key) -> Finding:
    return Finding(
        "note",
        "texts_are_ids",
        "The column of queries holds ids of another file, so it is read as ids."
        if key == "query_id"
        else "The column of documents holds ids of another file, so it is read as ids.",
        file=part.file,
    )


def _forget_texts(part: ParsedFile, key: Key) -> ParsedFile:
    table = _table(part, key)
    forgotten: Any = table.assign(text=texts([None] * len(table)))
    left = part.keyed_by_text - {key}
    return replace(part, keyed_by_text=left, **{_TABLES[key]: forgotten})


def _renamed(part: ParsedFile, key: Key, id_of: dict[str, str]) -> ParsedFile:
    def rename(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(**{key: texts(map(id_of.__getitem__, frame[key].to_numpy()))})

    def rename_pairs(pairs: Pairs) -> Pairs:
        side = "queries" if key == "query_id" else "documents"
        ids = texts(map(id_of.__getitem__, pairs.ids(key).objects()))
        named: dict[str, Any] = {side: coded(ids)}
        return replace(pairs, **named)

    scores = tuple(replace(scores, pairs=rename_pairs(scores.pairs)) for scores in part.scores)
    renamed: dict[str, Any] = {_TABLES[key]: rename(_table(part, key))}
    return replace(
        part,
        labels=rename_pairs(part.labels),
        pairs=None if part.pairs is None else rename(part.pairs),
        scores=scores,
        keyed_by_text=part.keyed_by_text - {key},
        **renamed,
    )


def _alike(key: Key, made: Mapping[str, str]) -> list[Finding]:
    """A warning of queries that are told apart by the blanks around their texts."""
    first = {text.strip(): text for text in reversed([*made])}
    others = [text for text in made if first[text.strip()] != text]
    if key != "query_id" or not others:
        return []
    return [
        Finding(
            "warning",
            "queries_alike",
            "Queries whose text is that of another query but for blanks around it: {count}. They "
            "count as different queries.",
            {"count": len(others)},
            "Remove the blanks, or give the queries ids.",
            count=len(others),
            examples=tuple(f"{made[text]}: {text!r}" for text in others[:_EXAMPLES]),
        )
    ]


def _made(key: Key, made: dict[str, str]) -> Finding:
    names = list(made.values())
    return Finding(
        "note",
        f"made_{key}",
        "The queries have no ids; they are named {first} to {last} in the order they first appear. "
        "The same text is the same id."
        if key == "query_id"
        else "The documents have no ids; they are named {first} to {last} in the order they first "
        "appear. The same text is the same id.",
        {"first": names[0], "last": names[-1]},
        count=len(made),
        examples=tuple(f"{name}: {text}" for text, name in list(made.items())[:_EXAMPLES]),
    )
