"""Spans of retrievers and rerankers in the conventions of OpenInference, as exported by Phoenix and
OpenTelemetry.

    {"name": …, "spanId": …, "traceId": …, "attributes": [
        {"key": "openinference.span.kind", "value": {"stringValue": "RETRIEVER"}},
        {"key": "input.value", "value": {"stringValue": "how to return an item"}},
        {"key": "retrieval.documents.0.document.id", "value": {"stringValue": "d3"}}, …]}

Attributes are a list as in OTLP, an object, or columns such as `attributes.input.value`. The input
of the rerankers is the first stage; without rerankers, the only retriever is. A span with an error
is a failure: its documents are not read.
"""

from __future__ import annotations

import ast
import json
import math
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from typing import Any

from rankdash.core.base.errors import Finding, FormatError
from rankdash.core.readers.formats.entries import (
    Converted,
    Listed,
    Query,
    Record,
    entries_of,
    finite,
    listed,
    outcomes_of,
    repeated_documents,
    text,
)
from rankdash.core.readers.parse.columns import recognise
from rankdash.core.readers.parse.limits import counted

NAME = "OpenInference spans"
KIND, _INPUT, _QUERY = "openinference.span.kind", "input.value", "reranker.query"
_FOUND, _BEFORE, _AFTER = (
    "retrieval.documents",
    "reranker.input_documents",
    "reranker.output_documents",
)
LISTS = (_FOUND, _BEFORE, _AFTER)
_KINDS = ("RETRIEVER", "RERANKER")
_AROUND = ("resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "spans")
_COLUMN = "attributes."
_DOCUMENT = "document."
# Keys of the query in an input that is JSON.
_QUERIES = ("query", "query_str", "query_text", "question", "input", "text", "str_or_query_bundle")
# An entry of get_retrieved_documents: one document of a retriever's span.
_POSITION = "document_position"
_DEEPEST = 20
_MAY_JOIN = re.compile(r"""['"]\s+[rRuUbBfF]{0,2}['"]""")


def matches(record: Record) -> bool:
    if any(_holds_spans(record.get(name)) for name in _AROUND):
        return True
    attributes = record.get("attributes")
    if isinstance(attributes, list):
        return bool({"spanId", "span_id"} & record.keys())
    if isinstance(attributes, dict):
        context = record.get("context")
        named = isinstance(context, dict) and {"span_id", "trace_id"} & context.keys()
        return bool(named) or "span_kind" in record or KIND in _flat(attributes)
    columns = (f"{_COLUMN}{name}" for name in (KIND, *LISTS))
    return any(name in record for name in columns) or is_exploded(record)


def _holds_spans(value: object) -> bool:
    """Return whether a list contains spans, or the objects of OTLP around them. Lists of other
    objects, such as the places of words in a text, are called spans, too."""
    names = {"attributes", "spanId", "span_id", *_AROUND}
    return any(isinstance(each, dict) and not names.isdisjoint(each) for each in listed(value))


def is_exploded(columns: Iterable[str]) -> bool:
    """Return whether there is a row for each document of a span, without labels."""
    names = list(columns)
    if _POSITION not in names or "input" not in names or "label" in recognise(names):
        return False
    return not {"document", "reference"}.isdisjoint(names)


def literal(cell: str | None) -> object:
    """Return the value of a cell with JSON, or with a list as Python prints it; the text of any
    other cell; [None] if a list or object cannot be parsed, such as an array of numpy, which has no
    commas."""
    if not cell or cell.lstrip()[:1] not in "[{":
        return cell or None
    for parse in (json.loads, _literal):
        try:
            return parse(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
            continue
    return [None]


def _literal(cell: str) -> object:
    """Return the value of a literal of Python. Raises ValueError for texts without a comma between
    them, which Python joins to one."""
    if _MAY_JOIN.search(cell):
        last = None
        for token in tokenize.generate_tokens(StringIO(cell).readline):
            if token.type == last == tokenize.STRING:
                raise ValueError
            last = last if token.type == tokenize.NL else token.type
    return ast.literal_eval(cell)


@dataclass
class _Span:
    """A retriever's or reranker's span. query: the text in its input, or None. system: its name.
    refused: the code of the reason why its documents cannot be read."""

    kind: str
    input: Any
    query: str | None
    system: str
    time: str
    line: int
    error: str | None
    latency_ms: float
    lists: dict[str, Listed] = field(default_factory=dict)
    refused: str = ""


def converted(records: list[Record], lines: list[int], file: str) -> Converted:
    if any(map(is_exploded, records[:1])):
        records, lines = _joined(records, lines)
    spans: dict[str, _Span] = {}
    seen = repeated = 0
    for record, line in _spans(records, lines):
        seen += 1
        attributes = _attributes(record)
        kind = str(attributes.get(KIND) or record.get("span_kind") or "").upper()
        if kind not in _KINDS:
            continue
        identity = _identity(record) or f"span {seen}"
        repeated += identity in spans
        spans[identity] = _span(record, attributes, kind, line)
    if not spans:
        raise FormatError(
            "Spans of retrievers or rerankers: 0 of {count}.",
            remedy="Export the spans with the kind RETRIEVER or RERANKER in the attribute "
            "openinference.span.kind.",
            file=file,
            line=lines[0],
            count=seen,
        )
    if all(span.error is not None for span in spans.values()):
        first = next(iter(spans.values()))
        raise FormatError(
            "All spans of retrievers and rerankers have an error: {count}. The first: {problem}.",
            remedy="Run the queries again, and export their spans.",
            file=file,
            line=first.line,
            count=len(spans),
            problem=(first.error or "").rstrip("."),
        )
    queries, lost, notes = _queries(list(spans.values()), file)
    findings = repeated_documents(queries, file)
    if repeated:
        template = "Spans with a repeated id, of which the last is used: {count}."
        findings.append(counted("warning", "repeated_spans", template, repeated, file=file))
    failed = [span for span in spans.values() if span.error is not None]
    if failed:
        findings.append(_failures(failed, file))
    entries = entries_of(queries, file)
    return Converted(*entries, NAME, [*findings, *notes], outcomes=outcomes_of([*queries, *lost]))


def _failures(failed: Sequence[_Span], file: str) -> Finding:
    return counted(
        "warning",
        "failed_spans",
        "Spans with an error: {count}. Their documents are not read, and the query of a reranker "
        "counts as failed, not as 0.",
        len(failed),
        "Run these queries again to include them.",
        file,
        failed[0].line,
        [f"{span.system}: {span.query}: {span.error}" for span in failed],
    )


def _spans(records: Iterable[Record], lines: Iterable[int]) -> Iterator[tuple[Record, int]]:
    """Yield each span with its line, also from the objects of OTLP around them."""
    for record, line in zip(records, lines, strict=True):
        waiting = [record]
        while waiting:
            each = waiting.pop()
            inner = [
                span
                for name in _AROUND
                for span in listed(each.get(name))
                if isinstance(span, dict)
            ]
            waiting += reversed(inner)
            if not any(name in each for name in _AROUND):
                yield each, line


def _attributes(record: Record) -> dict[str, Any]:
    """Return the attributes of a span by their full names."""
    attributes = record.get("attributes")
    if isinstance(attributes, list):
        pairs = [each for each in attributes if isinstance(each, dict)]
        return {str(each.get("key")): _value(each.get("value")) for each in pairs}
    columns = {
        name.removeprefix(_COLUMN): value
        for name, value in record.items()
        if name.startswith(_COLUMN) and value is not None
    }
    return {**(_flat(attributes) if isinstance(attributes, dict) else {}), **_flat(columns)}


def _value(value: object, depth: int = 0) -> Any:
    """Return a value of OTLP, such as {"stringValue": "x"}, as a plain value."""
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    name, inner = next(iter(value.items()), ("", None))
    name = name.replace("_", "").lower()
    if name == "arrayvalue" and isinstance(inner, dict):
        return [_value(each, depth + 1) for each in listed(inner.get("values"))]
    if name == "kvlistvalue" and isinstance(inner, dict):
        pairs = [each for each in listed(inner.get("values")) if isinstance(each, dict)]
        return {str(each.get("key")): _value(each.get("value"), depth + 1) for each in pairs}
    if name in ("intvalue", "doublevalue"):
        return _score(inner)
    return inner


def _flat(value: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Return the values in nested objects by their names joined with dots."""
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        if isinstance(inner, dict) and depth < _DEEPEST:
            flat |= {f"{name}.{rest}": each for rest, each in _flat(inner, depth + 1).items()}
        else:
            flat[str(name)] = inner
    return flat


def _identity(record: Record) -> str | None:
    context = record.get("context")
    inner = context if isinstance(context, dict) else {}
    names = ("context.span_id", "span_id", "spanId")
    ids = (text(each[name]) for each in (record, inner) for name in names if name in each)
    return next(ids, None)


def _span(record: Record, attributes: Mapping[str, Any], kind: str, line: int) -> _Span:
    reranks = kind == "RERANKER"
    named = attributes.get("reranker.model_name") if reranks else None
    names = ("start_time", "startTimeUnixNano", "start_time_unix_nano")
    time = next((str(record[name]) for name in names if record.get(name) is not None), "")
    words = (_object(attributes, _QUERY) if reranks else None) or _object(attributes, _INPUT)
    span = _Span(
        kind,
        words,
        _query(words),
        text(named) or text(record.get("name")) or kind.lower(),
        time.zfill(30) if time.isdigit() else time,
        line,
        _error(record),
        _latency(record),
    )
    for name in (_BEFORE, _AFTER) if reranks else (_FOUND,):
        listed = _listed(attributes, name)
        if isinstance(listed, str):
            span.refused = span.refused or listed
        else:
            span.lists[name] = listed
    return span


def _latency(record: Record) -> float:
    """Return the time between the start and the end of a span in milliseconds; NaN if unknown."""
    nanoseconds = [
        _score(next((record[name] for name in names if name in record), None))
        for names in (
            ("startTimeUnixNano", "start_time_unix_nano"),
            ("endTimeUnixNano", "end_time_unix_nano"),
        )
    ]
    if all(map(finite, nanoseconds)):
        latency = (nanoseconds[1] - nanoseconds[0]) / 1e6
    else:
        times = [_moment(record.get(name)) for name in ("start_time", "end_time")]
        latency = (times[1] - times[0]) * 1e3 if all(map(math.isfinite, times)) else math.nan
    return latency if latency >= 0 else math.nan


def _moment(value: object) -> float:
    """Return a time in seconds since 1970; NaN if it is not a time."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError, OSError):
        return math.nan


def _object(attributes: Mapping[str, Any], name: str) -> Any:
    """Return an attribute, which may be an object; None without it."""
    start = f"{name}."
    fields = {
        key.removeprefix(start): each for key, each in attributes.items() if key.startswith(start)
    }
    return attributes.get(name, fields or None)


def _error(record: Record) -> str | None:
    """Return the message of a span with an error; None without an error."""
    status = record.get("status")
    inner = status if isinstance(status, dict) else {}
    code = record.get("status_code", inner.get("code", inner.get("status_code")))
    if str(code).upper() not in ("2", "ERROR", "STATUS_CODE_ERROR", "STATUSCODE.ERROR"):
        return None
    message = record.get("status_message", inner.get("message", inner.get("description")))
    return text(message) or "no message"


def _query(value: object) -> str | None:
    """Return the text of a query: a text, or a known field of an object. None for any other
    value."""
    inner = literal(value) if isinstance(value, str) else value
    if isinstance(inner, dict):
        value = next((inner[name] for name in _QUERIES if isinstance(inner.get(name), str)), None)
    return value.strip() or None if isinstance(value, str) else None


def _listed(attributes: Mapping[str, Any], name: str) -> Listed | str:
    """Return the documents under a name of `LISTS`, or the code of the reason why they cannot be
    read."""
    value = attributes.get(name)
    value = literal(value) if isinstance(value, str) else value
    if value is None:
        items = _numbered(attributes, name)
    elif isinstance(value, list) and all(isinstance(each, dict) for each in value):
        items = [_flat(each) for each in value]
    else:
        return "no_text"
    documents: list[Record] = []
    scores: list[float | None] = []
    for item in items:
        fields = {key.removeprefix(_DOCUMENT): each for key, each in item.items()}
        content = fields.get("content")
        inside = any(key.startswith("content.") for key in fields)
        if inside or not isinstance(content, str | None):
            return "no_text"
        document = {"doc_id": text(fields.get("id")), "document": content or None}
        document = {key: each for key, each in document.items() if each is not None}
        score = _score(fields.get("score"))
        if score is not None and not finite(score):
            return "bad_score"
        if not document:
            return "no_document"
        documents.append(document)
        scores.append(score)
    return Listed(documents, scores)


def _score(value: Any) -> Any:
    """Return a number that may be written as a text, such as "NaN"; any other value unchanged."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _numbered(attributes: Mapping[str, Any], name: str) -> list[Record]:
    """Return the documents of attributes such as `retrieval.documents.0.document.id`, in order."""
    pattern = re.compile(rf"{re.escape(name)}\.(\d{{1,6}})\.(.+)")
    items: dict[int, Record] = {}
    for key, value in attributes.items():
        if match := pattern.fullmatch(key):
            items.setdefault(int(match[1]), {})[match[2]] = value
    return [items[at] for at in sorted(items)]


def _joined(records: Iterable[Record], lines: Iterable[int]) -> tuple[list[Record], list[int]]:
    """Return a span for the rows of its documents, from get_retrieved_documents."""
    spans: dict[str, Record] = {}
    first: dict[str, int] = {}
    rows = zip(records, lines, strict=True)
    for record, line in rows:
        identity = str(record.get("context.span_id") or record.get("context.trace_id") or line)
        span = spans.setdefault(
            identity,
            {
                "context.span_id": identity,
                "context.trace_id": record.get("context.trace_id"),
                "span_kind": "RETRIEVER",
                "name": "retriever",
                f"{_COLUMN}{_INPUT}": record.get("input"),
                f"{_COLUMN}{_FOUND}": [],
            },
        )
        first.setdefault(identity, line)
        place = _score(record.get(_POSITION))
        span[f"{_COLUMN}{_FOUND}"].append(
            (
                place if finite(place) else len(span[f"{_COLUMN}{_FOUND}"]),
                {
                    "document.id": record.get("document_id"),
                    "document.content": record.get("document", record.get("reference")),
                    "document.score": record.get("document_score"),
                },
            )
        )
    for span in spans.values():
        listed = sorted(span[f"{_COLUMN}{_FOUND}"], key=lambda each: float(each[0]))
        span[f"{_COLUMN}{_FOUND}"] = [document for _, document in listed]
    return list(spans.values()), [first[identity] for identity in spans]


def _queries(spans: Sequence[_Span], file: str) -> tuple[list[Query], list[Query], list[Finding]]:
    """Return an entry for each query, the queries of which all spans failed, and findings. Of
    several spans of one system for a query, the latest is used."""
    rerankers = {span.system for span in spans if span.kind == "RERANKER"}
    for span in spans:
        if span.kind == "RETRIEVER" and span.system in rerankers:
            span.system = f"{span.system} retriever"
    by_query: dict[str, dict[tuple[str, str], _Span]] = {}
    used: list[Query] = []
    lost: list[Query] = []
    repeated = 0
    for span in spans:
        if span.query is None:
            refused = "no_query" if span.input is None else "bad_query"
            used.append(Query({"query": span.input}, span.line, refused=refused))
            continue
        systems = by_query.setdefault(span.query, {})
        key = span.kind, span.system
        repeated += key in systems
        if key not in systems or span.time >= systems[key].time:
            systems[key] = span
    chosen = [span for systems in by_query.values() for span in systems.values()]
    for systems in by_query.values():
        _identify([each for span in systems.values() for each in span.lists.values()])
    reranks = any(span.lists.get(_BEFORE, Listed([])).documents for span in chosen)
    retrievers = dict.fromkeys(span.system for span in chosen if span.kind == "RETRIEVER")
    different = 0
    same = not reranks or all(map(_starts_from_retriever, by_query.values()))
    for words, systems in by_query.items():
        ordered = sorted(systems.values(), key=lambda span: span.kind)
        query = Query({"query": words}, ordered[0].line)
        for span in ordered:
            first = span.kind == "RETRIEVER" and len(retrievers) == 1 and same
            query.outcomes["" if first else span.system] = span.latency_ms, span.error or ""
            if span.refused:
                query.refused = query.refused or span.refused
            before, after = span.lists.get(_BEFORE), span.lists.get(_AFTER)
            if before and before.documents:
                query.rankings.setdefault("", before)
            if after and after.documents and span.error is None:
                query.rankings[span.system] = after
            found = span.lists.get(_FOUND)
            if not found or not found.documents or span.error is not None:
                continue
            if first:
                query.rankings.setdefault("", found)
            else:
                query.rankings[span.system] = found
        inputs = [span.lists[_BEFORE] for span in ordered if _BEFORE in span.lists]
        different += len({frozenset(each.keys) for each in inputs if each.documents}) > 1
        failed = all(span.error is not None for span in ordered)
        without = failed and not query.rankings and not query.refused
        (lost if without else used).append(query)
    notes = []
    if different:
        notes.append(
            counted(
                "warning",
                "different_inputs",
                "Queries for which rerankers have different input documents: {count}. The input of "
                "the first reranker is the first stage.",
                different,
                "Compare rerankers of the same documents, or load each in a separate file.",
                file,
            )
        )
    if repeated:
        notes.append(
            counted(
                "warning",
                "repeated_searches",
                "Repeated searches for the same query, of which only the latest is used: {count}.",
                repeated,
                file=file,
            )
        )
    return used, lost, notes


def _identify(lists: Iterable[Listed]) -> None:
    """Add ids to documents of a query that have only a text, from documents with the same text."""
    documents = [each for listed in lists for each in listed.documents]
    ids = {
        each["document"]: each["doc_id"]
        for each in reversed(documents)
        if {"doc_id", "document"} <= each.keys()
    }
    for each in documents:
        if "doc_id" not in each and each["document"] in ids:
            each["doc_id"] = ids[each["document"]]


def _starts_from_retriever(systems: Mapping[tuple[str, str], _Span]) -> bool:
    """Return whether the documents of a query's retriever are the input of its rerankers."""
    lists = [
        listed.keys
        for span in systems.values()
        for name, listed in span.lists.items()
        if name != _AFTER and listed.documents
    ]
    return all(keys == lists[0] for keys in lists)
