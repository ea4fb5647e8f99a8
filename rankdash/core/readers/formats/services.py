"""Requests to reranking services with their responses, which refer to documents by index.

    {"query": …, "documents": ["…", "…"], "results": [{"index": 1, "relevance_score": 0.9}]}
    {"request": {"query": …, "texts": […]}, "response": [{"index": 1, "score": 0.9}]}
    [[request, response], [request, response]], or an object of one of these forms per line

Cohere, Jina, Voyage, Mixedbread, NVIDIA NIM, TEI, vLLM and sentence-transformers use such results.
Each request is converted to an entry with its documents and their scores, which `nested` reads.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from rankdash.core.base.errors import FormatError
from rankdash.core.readers.parse.columns import SYSTEM, lacking, plain, recognise, unexpected

Record = dict[str, Any]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_QUERY = ("query", "text1", "q", "question")
_TEXTS = ("documents", "texts", "passages", "docs", "input", "inputs", "text2", "candidates")
_RESULTS = ("results", "data", "rankings", "output", "response", "scores", "ranking")
_INDEX = ("index", "corpusid", "documentindex")
_SCORE = ("relevancescore", "score", "logit")
# Settings of requests and responses, which are not about the query.
_SETTINGS = _names(
    "model modelid modelname usage meta object topn topk returndocuments returntext rankfields "
    "maxchunksperdoc maxtokensperdoc truncation truncate rawscores created latency"
)
_AROUND = ("request", "input", "body", "payload", "result", "answer")
# The keys of a result.
_RESULT = {*_INDEX, *_SCORE, "document", "text", "input", "passage", "object"}
_EXAMPLE = '{"query": "…", "documents": ["…"], "results": [{"index": 0, "relevance_score": 0.9}]}'
_DEPTH = 3


class _Within(NamedTuple):
    """An inner value with its path and its keys, the outermost first."""

    value: Any
    keys: tuple[str, ...]

    @property
    def path(self) -> str:
        return ".".join(self.keys)


def is_answered(outer: object) -> bool:
    """Return whether a value contains requests with their responses: an object, pairs in a list, or
    objects by query; or a response without its request."""
    if isinstance(outer, list):
        return bool(in_pairs(outer))
    if not isinstance(outer, dict) or not outer:
        return False
    values = list(outer.values())
    return bool(places_in(outer)) or _is_response(outer) or all(map(places_in, values))


def in_pairs(outer: list[Any]) -> list[Record]:
    """Return the pairs of a request and a response in a list, which may be one such pair; [] if
    there are other values."""
    if [type(each) for each in outer] == [dict, list]:
        outer = [outer]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in outer):
        return []
    records = [{"request": request, "response": response} for request, response in outer]
    return records if all(map(places_in, records)) else []


def answered(
    records: Sequence[Record], lines: Sequence[int], file: str
) -> tuple[list[Record], list[int]]:
    """Convert records with a request and its response to entries with a list of documents and a
    list of scores; other records are unchanged. A response may also follow its request. Return the
    records and their lines.

    Raises FormatError with the path of an index that is missing, occurs twice or is not an index of
    a document, and for a response without its request.
    """
    names = {plain(key) for key in set(chain.from_iterable(records))}
    if names <= _RESULT and names.intersection(_INDEX) and names.intersection(_SCORE):
        raise _alone(file, lines[0])
    # A table may have a million rows, and their cells need no look.
    if not names.intersection((*_RESULTS, *_AROUND)):
        return list(records), list(lines)
    joined, at_lines = _joined(records, lines, file)
    places = {at: place for at, record in enumerate(joined) if (place := places_in(record))}
    results = {at: _results(places[at], file, at_lines[at]) for at in places}
    ends = [each for each in results.values() if len(each.documents) in each.scores]
    from_one = bool(ends) and not any(0 in each.scores for each in results.values())
    for at, each in results.items():
        for index in each.scores:
            if index not in each.documents:
                raise _bad_index(each, index, file, at_lines[at], from_one=from_one)
    entries = [
        _entry(record, places[at], results[at]) if at in results else record
        for at, record in enumerate(joined)
    ]
    return entries, at_lines


def _joined(
    records: Sequence[Record], lines: Sequence[int], file: str
) -> tuple[list[Record], list[int]]:
    """Join each request with the response that follows it."""
    if not any(map(_is_response, records)):
        return list(records), list(lines)
    joined: list[Record] = []
    at_lines: list[int] = []
    request: Record | None = None
    for record, line in zip(records, lines, strict=True):
        if request is not None and _is_response(record):
            joined.append({"request": request, "response": record})
            request = None
            continue
        if request is not None or _is_response(record):
            raise _alone(file, line if request is None else at_lines[-1], response=request is None)
        at_lines.append(line)
        if places_in(record):
            joined.append(record)
        else:
            request = record
    if request is not None:
        raise _alone(file, at_lines[-1], response=False)
    return joined, at_lines


def _alone(file: str, line: int, *, response: bool = True) -> FormatError:
    return FormatError(
        "The results of a reranker refer to documents by index, and the request with these "
        "documents is missing."
        if response
        else "The response to this request is missing.",
        remedy="Write each request with its response: {example}.",
        file=file,
        line=line,
        example=_EXAMPLE,
    )


def _is_response(record: object) -> bool:
    """Return whether a record contains results without a request."""
    if not isinstance(record, dict) or places_in(record):
        return False
    return any(
        all(_RESULT.issuperset(map(plain, each)) for each in inner.value)
        for inner in _within(record)
        if _are_results(inner.value)
    )


def places_in(record: object) -> tuple[_Within, _Within] | None:
    """Return the inner values of a record with a query and with results, or None."""
    if not isinstance(record, dict):
        return None
    response = next((each for each in _within(record) if _are_results(each.value)), None)
    request = response and next((each for each in _within(record) if _asks(each.value)), None)
    if not request or not response:
        return None
    documents = _first(request.value, _TEXTS)[1]
    listed = isinstance(documents, list) and documents is not response.value
    # With ids of documents, and without a list of documents, an index is only a position.
    return (request, response) if listed or not any(map(_names_ids, response.value)) else None


def _within(value: Any, keys: tuple[str, ...] = ()) -> Iterator[_Within]:
    """Yield a value and the inner values of objects."""
    yield _Within(value, keys)
    if isinstance(value, dict) and len(keys) < _DEPTH:
        for key, inner in value.items():
            yield from _within(inner, (*keys, key))


def _asks(value: object) -> bool:
    """Return whether an object has a query, and documents or results."""
    if not isinstance(value, dict):
        return False
    query = _first(value, _QUERY)[1]
    listed = any(isinstance(_first(value, (name,))[1], list) for name in (*_TEXTS, *_RESULTS))
    return isinstance(query, str | dict) and listed


def _are_results(value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return False
    # The predictions of InformationRetrievalEvaluator have ids of documents there.
    if value and all(isinstance(_first(each, ("corpusid",))[1], str) for each in value):
        return False
    names = [{plain(key) for key in each} for each in value]
    return any(each.intersection(_INDEX) and each.intersection(_SCORE) for each in names)


def _names_ids(result: Record) -> bool:
    return "doc_id" in recognise([key for key in result if plain(key) not in _INDEX])


def _first(value: Record, names: Sequence[str]) -> tuple[str, Any]:
    """Return (key, value) of the first of the names; ("", None) if there is none."""
    keys = {plain(key): key for key in reversed(value)}
    key = next((keys[name] for name in names if name in keys), "")
    return key, value.get(key)


class _Results(NamedTuple):
    """The results of one request, by index. documents: in the request, or else in the response.
    paths: of the indexes."""

    documents: dict[int, Any]
    scores: dict[int, Any]
    paths: dict[int, str]


def _results(places: tuple[_Within, _Within], file: str, line: int) -> _Results:
    request, response = places
    documents = _first(request.value, _TEXTS)[1]
    if not isinstance(documents, list) or documents is response.value:
        documents = None
    scores: dict[int, Any] = {}
    paths: dict[int, str] = {}
    texts: dict[int, Any] = {}
    for place, result in enumerate(response.value):
        around = f"{response.path}[{place}]"
        key, index = _first(result, _INDEX)
        path = f"{around}.{key or 'index'}"
        if index is None:
            raise lacking(path, file, line)
        if not isinstance(index, int) or isinstance(index, bool):
            raise unexpected(path, int, index, file, line)
        if index in scores:
            raise _bad_index(_Results({}, {}, {index: path}), index, file, line, twice=True)
        scores[index], paths[index] = _score(result, around, file, line), path
        texts[index] = _text(_first(result, ("document", "text", "input", "passage"))[1])
        asked = _text(documents[index]) if documents and 0 <= index < len(documents) else None
        if asked and texts[index] and not asked.startswith(texts[index]):
            raise FormatError(
                "The text of {path} is not the text of the document with its index.",
                remedy=_FROM_ZERO,
                file=file,
                line=line,
                path=around,
            )
    if documents is not None:
        return _Results(dict(enumerate(documents)), scores, paths)
    if None in texts.values():
        raise _alone(file, line)
    return _Results(texts, scores, paths)


def _score(result: Record, path: str, file: str, line: int) -> float:
    key, score = _first(result, _SCORE)
    if score is None:
        raise lacking(f"{path}.{key or 'relevance_score'}", file, line)
    number = isinstance(score, int | float) and not isinstance(score, bool)
    # A whole number may have more digits than a float.
    if not number or not abs(score) <= sys.float_info.max:
        raise unexpected(f"{path}.{key}", float, score, file, line)
    return float(score)


def _text(document: Any) -> str | None:
    """Return the text of a document, also of an object with only a text."""
    if isinstance(document, dict):
        document = _first(document, ("text",))[1]
    return document if isinstance(document, str) else None


_FROM_ZERO = "An index is the position of a document in the request, and the first has the index 0."


def _bad_index(
    results: _Results,
    index: int,
    file: str,
    line: int,
    *,
    twice: bool = False,
    from_one: bool = False,
) -> FormatError:
    template = "The index {index} of {path} is outside the {count} documents of the request."
    if twice:
        template = "The index {index} of {path} occurs twice."
    elif from_one:
        template = (
            "The index {index} of {path} is outside the {count} documents of the request. The "
            "indexes of the file count from 1."
        )
    return FormatError(
        template,
        remedy=_FROM_ZERO,
        file=file,
        line=line,
        index=index,
        path=results.paths[index],
        count=len(results.documents),
    )


class Entry(Record):
    """An entry from a request and its response."""


def _entry(record: Record, places: tuple[_Within, _Within], results: _Results) -> Entry:
    """Convert a record to an entry that `nested` reads: its other values, the query, the documents
    and their scores."""
    request = places[0]
    query, texts = _first(request.value, _QUERY)[0], _first(request.value, _TEXTS)[0]
    around = {place.keys[0] for place in places if place.keys}
    shared = {key: value for key, value in record.items() if key not in around} | request.value
    rest = {
        key: value
        for key, value in shared.items()
        if key not in (query, texts) and key not in around and plain(key) not in _SETTINGS
    }
    listed = sorted(results.documents)
    return Entry(
        **rest,
        query=request.value[query],
        **{
            texts if plain(texts) in _TEXTS[:4] else "documents": [
                results.documents[at] for at in listed
            ],
            f"{SYSTEM}results": [results.scores.get(at) for at in listed],
        },
    )
