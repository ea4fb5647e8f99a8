"""Reader of learning-to-rank files: LETOR, SVMlight with `qid`, exports of search-engine plugins.

    2 qid:10 1:0.031 2:0.666 … #docid = GX000-00-0000000 inc = 1 prob = 0.024

A label, the query and numbered features; the comment contains the document id, after `docid =` or
as its first word. A comment line `# qid:10: rambo` contains the query's text. Any feature may be
the first-stage score: the user chooses it.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice

import numpy as np

from rankdash.core.base.errors import Finding
from rankdash.core.readers.parse.limits import ReadLimits, Refusals, counted
from rankdash.core.readers.parse.table import (
    Table,
    frame_of,
    refuse_long_fields,
    refuse_many_columns,
    refuse_many_rows,
)

_LINE = re.compile(r"\s*+(\S++)\s++qid:(\S++)((?:\s++[^\s:#]++:[^\s:#]++)*+)\s*+(?:#(.*))?$")
_WITHOUT_QUERY = re.compile(r"^\s*+\S++(?:\s++\d++:[^\s:#]++)++\s*+(?:#.*)?$")
_QUERY = re.compile(r"\s*#\s*qid:([^\s:]+):?\s+(\S.*)$")
_NAMED = re.compile(r"docid\s*=\s*(\S+)", re.IGNORECASE)
_SAMPLE_CHARS = 1 << 18
_SAMPLE_LINES = 200
# No other format looks like this, so half of the lines are enough.
_ENOUGH = 0.5


def matches(text: str) -> bool:
    lines = text[:_SAMPLE_CHARS].split("\n")
    lines = lines[:-1] if len(text) > _SAMPLE_CHARS else lines
    rows = (line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    sample = list(islice(rows, _SAMPLE_LINES))
    return bool(sample) and any(
        sum(map(bool, map(form.match, sample))) >= _ENOUGH * len(sample)
        for form in (_LINE, _WITHOUT_QUERY)
    )


def read(text: str, file: str, limits: ReadLimits) -> Table:
    """Read one row per line: query_id, doc_id, label, the query's text if comments contain it, and
    the features. A feature missing in a line is 0.

    Lines in another format are refused. Documents without an id in a comment are named by their
    query and position.
    """
    refusals = Refusals(file)
    columns: dict[str, list[str | None]] = {"query_id": [], "doc_id": [], "label": []}
    query_ids, documents, labels = columns.values()
    lines: list[int] = []
    features: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    # The last line of a truncated file may look valid, with an incomplete query id.
    unfinished = 0 if text.endswith("\n") else text.count("\n") + 1
    # Features repeat few values, so each is stored once.
    interned: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            titled = _QUERY.match(line)
            if titled:
                texts.setdefault(titled[1], titled[2].strip())
            continue
        match = _LINE.match(line)
        if not match or (number == unfinished and features and not match[3]):
            refusals.add("bad_line", [number], [line])
            continue
        label, query, vector, comment = match.groups()
        for pair in vector.split():
            name, value = pair.split(":")
            column = features.get(name)
            if column is None:
                column = features[name] = []
                refuse_many_columns(len(features), file, limits)
            column.extend(["0"] * (len(lines) - len(column)))
            # Of a feature that occurs twice in a line, the first value counts.
            if len(column) == len(lines):
                column.append(interned.setdefault(value, value))
        query_ids.append(interned.setdefault(query, query))
        called = _NAMED.search(comment or "")
        documents.append(called[1] if called else next(iter((comment or "").split()), None))
        labels.append(interned.setdefault(label, label))
        lines.append(number)
        if number % 10_000 == 0:
            refuse_many_rows(len(lines), file, limits)
    refuse_many_rows(len(lines), file, limits)
    generated = _name_the_rest(query_ids, documents)
    fields = {name: name for name in columns}
    if texts:
        columns["query"] = [texts.get(query or "") for query in query_ids]
        fields["query"] = "query"
    for name in sorted(features, key=lambda name: (not name.isdigit(), len(name), name)):
        rest = len(lines) - len(features[name])
        columns[f"feature {name}"] = [*features[name], *["0"] * rest]
    numbers = np.array(lines, dtype=np.int64)
    for name in fields:
        refuse_long_fields(columns[name], numbers, file, limits)
    return Table(
        file,
        "LETOR",
        frame_of(columns),
        numbers,
        refusals,
        fields,
        findings=_made(file, generated),
        wants=("score",) if features else (),
    )


def _name_the_rest(query_ids: list[str | None], documents: list[str | None]) -> int:
    """Name the documents without a name, in place. Return their number."""
    seen: Counter[str | None] = Counter()
    generated = 0
    for position, query in enumerate(query_ids):
        seen[query] += 1
        if documents[position] is None:
            documents[position] = f"{query}-{seen[query]}"
            generated += 1
    return generated


def _made(file: str, generated: int) -> tuple[Finding, ...]:
    template = (
        "Lines without a document id: {count}. Their documents are named by query and position."
    )
    return (counted("note", "made_doc_id", template, generated, file=file),) if generated else ()
