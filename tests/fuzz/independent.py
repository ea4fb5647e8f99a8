"""A second reader of the simple formats, to find numbers that changed without a warning."""

import csv
import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator

from rankdash.core.readers.loading import Loaded

Pair = tuple[str, str]
# (query, document), value; None for a line that does not follow the format.
Read = Iterator[tuple[Pair, float] | None]


def silently_wrong(name: str, content: bytes, loaded: Loaded) -> str:
    """Return a description of values that were read wrongly without a warning. "" if there are
    none, or if this module does not read the format."""
    if name not in _READERS:
        return ""
    findings = loaded.report.findings
    if any(each.severity != "note" and each.file for each in findings):
        return ""
    field, read = _READERS[name]
    try:
        rows = list(read(content.decode("utf-8")))
    except (ValueError, RecursionError, csv.Error, UnknownContentError):
        # The file has another encoding or another format now.
        return ""
    lost = sum(row is None for row in rows)
    expected = dict(row for row in rows if row is not None)
    found = _labels(loaded) if field == "label" else _scores(loaded)
    if lost:
        return f"{lost} of {len(rows)} rows were lost without a warning"
    if found != expected:
        differing = sorted(found.items() ^ expected.items())[:3]
        return f"{len(found)} for {len(expected)} values, such as {differing!a}"[:300]
    return ""


class UnknownContentError(Exception):
    """A file whose format has changed, so that its content is ambiguous."""


def _labels(loaded: Loaded) -> dict[Pair, float]:
    rows = loaded.dataset.qrels.itertuples(index=False, name=None)
    return {(query, doc): label for query, doc, label, *_ in rows}


def _scores(loaded: Loaded) -> dict[Pair, float]:
    ranking = loaded.dataset.candidates
    if ranking is None:
        return {}
    return {
        (query, doc): score
        for query in ranking.query_ids
        for doc, score in zip(*ranking.documents_of(query), strict=True)
    }


def _lines(text: str) -> list[list[str]]:
    """Return the fields of each line that is not blank, as trec_eval separates them."""
    lines = (line.strip(" \t\r") for line in text.removeprefix("\ufeff").split("\n"))
    return [re.split(r"[ \t]+", line) for line in lines if line]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _columns(fewest: int, most: int, value: int) -> Callable[[str], Read]:
    def read(text: str) -> Read:
        for cells in _lines(text):
            number = _number(cells[value]) if fewest <= len(cells) <= most else None
            yield None if number is None else ((cells[0], cells[2]), number)

    return read


def _row(row: dict[str, object]) -> tuple[Pair, float] | None:
    query, doc, label = (row.get(name) for name in ("query_id", "doc_id", "label"))
    if any(isinstance(each, bool | list | dict) for each in (query, doc, label)):
        raise UnknownContentError
    pair = ("" if query is None else str(query).strip(), "" if doc is None else str(doc).strip())
    number = _number(str(label))
    return (pair, number) if all(pair) and number is not None else None


def _csv(text: str) -> Read:
    table = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    head = next(table, [])
    if len(set(head)) != len(head) or not {"query_id", "doc_id", "label", "score"} <= {*head}:
        raise UnknownContentError
    for cells in table:
        if cells:
            row = dict(zip(head, cells, strict=False))
            yield from _labelled([row]) if len(cells) == len(head) else [None]


def _labelled(rows: Iterable[dict[str, object]]) -> Read:
    """Yield rows, without those with a score and no label, which a note counts."""
    for row in rows:
        if row["label"] not in (None, "") or row.get("score") in (None, ""):
            yield _row(row)


def _json(text: str) -> Read:
    whole = text.lstrip().startswith("[")
    lines = filter(str.strip, [text] if whole else text.split("\n"))
    parts = [json.loads(line) for line in lines]
    rows = parts[0] if whole else parts
    named = {"query_id", "doc_id", "label"}
    if not all(isinstance(row, dict) and named <= row.keys() for row in rows):
        raise UnknownContentError
    yield from _labelled(rows)


_READERS: dict[str, tuple[str, Callable[[str], Read]]] = {
    "qrels": ("label", _columns(4, 4, 3)),
    # Fields after the name of the run are ignored.
    "trec run": ("score", _columns(5, sys.maxsize, 4)),
    "csv": ("label", _csv),
    "csv, even": ("label", _csv),
    "json": ("label", _json),
    "json lines": ("label", _json),
}
