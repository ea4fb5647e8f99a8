"""Reader of JSON and JSON lines: a list of objects, an object around such a list, or one object per
line.

Every object has the number of its first line. JSON is usually written by programs, so invalid JSON
means a damaged file, which is refused as a whole.
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from rankdash.core.base.errors import Finding, FormatError, Phrase
from rankdash.core.readers.formats import grades, nested, retrieved, services, tools
from rankdash.core.readers.parse.columns import (
    PLAIN_TEXT,
    known,
    names_a_value,
    plain,
    recognise,
    unknown_shape,
)
from rankdash.core.readers.parse.limits import ReadLimits, Refusals, named_lines
from rankdash.core.readers.parse.table import (
    Table,
    frame_of,
    refuse_long_fields,
    refuse_many_columns,
    refuse_many_rows,
)

Record = dict[str, Any]

_BETWEEN = re.compile(r"[ \t\r\n]*")
_BETWEEN_LISTS = re.compile(r"\]([ \t\r]*+\n[ \t\r\n]*+)\[")
_SEEN_CHARS = 80
_IDS = frozenset(("query_id", "doc_id"))
_REMEDY = "Copy or download the file again; if a program wrote it, write it with a JSON library."


def whole(text: str) -> tuple[str, object]:
    """Return the text and its JSON value, None if it is not one valid value. One list per line
    becomes a list of lists, without changes to line numbers."""
    value = _decoded(text)
    if value is None and text.lstrip().startswith("["):
        joined = "[" + _BETWEEN_LISTS.sub(r"],\1[", text) + "]"
        value = _decoded(joined)
        text = text if value is None else joined
    return text, value


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class RepeatedKeys(json.JSONDecoder):
    """A decoder that uses the last value of a duplicate key, and collects the `names` of keys that
    occur in one object with different values."""

    def __init__(self) -> None:
        self.names: list[str] = []
        super().__init__(object_pairs_hook=self._object)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(pairs)
        if len(mapping) != len(pairs):
            self.names += [name for name, value in pairs if value != mapping[name]]
        return mapping


def repeated_keys(file: str, names: Iterable[str], lines: Sequence[int]) -> list[Finding]:
    """Return a warning about duplicate keys with different values. lines: of the entries."""
    keys = ", ".join(dict.fromkeys(names))
    if not keys:
        return []
    return [
        Finding(
            "warning",
            "repeated_keys",
            "Duplicate keys in an entry, for which rankdash uses the last value: {keys}. "
            "Lines: {lines}.",
            {"keys": keys, "lines": named_lines(lines)},
            "The keys of an entry must be unique.",
            file,
            lines[0],
            len(lines),
        )
    ]


def text_of(value: object) -> str | None:
    """Convert a value to the text of a table cell; None stays None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


class RecordPart(NamedTuple):
    """A part of a JSON text. name: its key, "" in a list. value: decoded. line: from 1."""

    name: str
    value: Any
    line: int
    position: int


class RecordPlaces:
    """The parts of a valid JSON text with their first lines, for formats with nested objects."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._decode: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().raw_decode
        self._breaks = [match.start() for match in re.finditer("\n", text)]

    def outermost(self) -> RecordPart:
        start = _skip(self._text, 0)
        return self._part("", start, start)[0]

    def inside(self, outer: RecordPart | None) -> Iterator[RecordPart]:
        """Yield the members of an object or the elements of a list, in their order; nothing for any
        other value."""
        if outer is None or not outer.value or not isinstance(outer.value, dict | list):
            return
        text, keyed = self._text, isinstance(outer.value, dict)
        at = _skip(text, outer.position + 1)
        while text[at] not in "]}":
            name, begin = "", at
            if keyed:
                name, stop = self._decode(text, at)
                at = _skip(text, _skip(text, stop) + 1)
            part, stop = self._part(name, begin, at)
            yield part
            at = _skip(text, stop)
            if text[at] == ",":
                at = _skip(text, at + 1)

    def member(self, outer: RecordPart, name: str) -> RecordPart | None:
        """Return the last member of that name, like a decoder, or None."""
        matches = [part for part in self.inside(outer) if part.name == name]
        return matches[-1] if matches else None

    def _part(self, name: str, begin: int, position: int) -> tuple[RecordPart, int]:
        value, stop = self._decode(self._text, position)
        return RecordPart(name, value, bisect(self._breaks, begin) + 1, position), stop


def read(text: str, file: str, limits: ReadLimits) -> Table:
    """Read one row per object with its keys as columns; one row per document if objects contain
    lists of documents.

    Raises FormatError if the text is not such JSON, LimitError for too many rows, columns or too
    long fields.
    """
    records: list[Record] = []
    lines: list[int] = []
    walker = _Walker(text, file)
    name, entries = _walk(text, walker)
    for line, record in entries:
        records.append(record)
        lines.append(line)
        if len(records) % 10_000 == 0:
            refuse_many_rows(len(records), file, limits)
    refuse_many_rows(len(records), file, limits)
    table = table_of(records, lines, file, name, limits)
    return replace(table, findings=(*table.findings, *walker.findings()))


def table_of(
    records: list[Record],
    lines: list[int],
    file: str,
    name: str,
    limits: ReadLimits,
) -> Table:
    """Convert records to a table of text; to two tables if numbers could be grades or ids."""
    key = grades.doubtful(records)
    if key is None:
        return _table_of(records, lines, file, name, limits)
    graded, by_id = grades.as_grades(records, key), grades.as_ids(records, key)
    table = _table_of(graded, list(lines), file, name, limits)
    return replace(table, doubt=key, ids=_table_of(by_id, list(lines), file, name, limits))


def _table_of(
    records: list[Record],
    lines: list[int],
    file: str,
    name: str,
    limits: ReadLimits,
) -> Table:
    refusals = Refusals(file)
    tool = tools.converted(records, lines, file)
    unranked = False
    if tool:
        records, lines, name = tool.records, tool.lines, tool.name
    else:
        read, lines = services.answered(records, lines, file)
        unranked = any(isinstance(record, services.Entry) for record in read)
        records = retrieved.joined(retrieved.with_grades(read))
    keys_seen = tuple(dict.fromkeys(chain.from_iterable(records)))
    negatives = nested.side_alone(records[0]) if records else None
    if negatives:
        raise FormatError(
            "The entries list documents that are not relevant ({column}), but no relevant ones.",
            remedy="List the relevant documents of each query under positive.",
            file=file,
            line=lines[0],
            column=negatives,
        )
    if nested.holds_lists(records):
        records, lines = nested.flatten(records, lines, refusals)
        refuse_many_rows(len(records), file, limits)
        name = name if tool else f"nested {name}"
    records, lines = _with_texts(records, lines, refusals)
    keys: dict[str, None] = {}
    inner: set[str] = set()
    for record in records:
        metadata = record.get("metadata")
        if isinstance(metadata, dict):
            del record["metadata"]
            for key, value in metadata.items():
                # The keys "query" or "text" of metadata are not the query or the text.
                record["metadata " + key if key in record or known([key]) else key] = value
        nests = [(key, each) for key, each in record.items() if isinstance(each, list | dict)]
        for key, value in nests:
            inner.add(key)
            if recognise([key]).keys() & _IDS:
                # An id is one text or number.
                if isinstance(value, dict) or len(value) != 1:
                    record[key] = None
            elif names_a_value(key) and isinstance(value, list) and len(value) > 1:
                # A list of values is not a label, score or rank.
                inner.add(f"{key} (list)")
                record[f"{key} (list)"] = record.pop(key)
        keys.update(dict.fromkeys(record))
        refuse_many_columns(len(keys), file, limits)
    columns = {key: [cell(record.get(key)) for record in records] for key in keys}
    line_numbers = np.array(lines, dtype=np.int64)
    for cells in columns.values():
        refuse_long_fields(cells, line_numbers, file, limits)
    return Table(
        file,
        name,
        frame_of(columns),
        line_numbers,
        refusals,
        findings=tuple(tool.findings) if tool else (),
        raters=tool.raters if tool else (),
        outcomes=tool.outcomes if tool else (),
        queries=tool.queries if tool else (),
        keys=keys_seen,
        inner=frozenset(inner & columns.keys()),
        unranked=unranked,
    )


def _with_texts(
    records: list[Record], lines: list[int], refusals: Refusals
) -> tuple[list[Record], list[int]]:
    """Convert objects to texts in the columns of texts. Refuse rows with other objects there."""
    columns = list(dict.fromkeys(chain.from_iterable(records)))
    fields = recognise(columns)
    for column in columns:
        if plain(column) in PLAIN_TEXT:
            fields.setdefault("document", column)
    keys = [fields[field] for field in ("query", "document", "title") if field in fields]
    if not any(isinstance(record.get(key), list | dict) for key in keys for record in records):
        return records, lines
    opened = [nested.opened(record, fields) for record in records]
    used: list[Record] = []
    used_lines: list[int] = []
    for record, line in zip(opened, lines, strict=True):
        if isinstance(record, nested.RefusedEntry):
            refusals.add(record.code, [line], [record.example])
        else:
            used.append(record)
            used_lines.append(line)
    return used, used_lines


def _walk(text: str, walker: _Walker) -> tuple[str, Iterator[tuple[int, Record]]]:
    """Return the format, and (line, object) for every object of the outermost list or the lines."""
    start = _skip(text, 0)
    if text[start] == "[":
        return "JSON", walker.whole(start)
    only, stop = walker.value(start)
    if _skip(text, stop) < len(text) or not isinstance(only, dict):
        return "JSON lines", walker.sequence(start)
    lists = {
        key: len(value)
        for key, value in only.items()
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
    }
    wrapped = max(lists, key=lambda key: lists[key], default=None)
    if wrapped is None or (
        # A list such as "results" may contain the documents of one query, or queries.
        not retrieved.is_graded(only[wrapped][0])
        and nested.holds_lists(retrieved.joined(retrieved.with_grades([only])))
    ):
        return "JSON", iter([walker.record(only, start)])
    walker.others = {key: length for key, length in lists.items() if key != wrapped}
    return "JSON", walker.items(walker.start_of(wrapped, start))


class _Walker:
    """A decoder of consecutive values that counts lines."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._decoder = RepeatedKeys()
        self._line = 1
        self._counted = 0
        self._repeated: dict[int, tuple[str, ...]] = {}
        # Lists of objects that are not the rows: key → length.
        self.others: dict[str, int] = {}

    def findings(self) -> list[Finding]:
        """Return the findings about the values that were read."""
        names = chain.from_iterable(self._repeated.values())
        findings = repeated_keys(self._file, names, list(self._repeated))
        if self.others:
            findings.append(
                Finding(
                    "warning",
                    "lists_not_read",
                    "Only the longest list was read as rows. Lists that were not read: {lists}.",
                    {"lists": nested.named_lengths(self.others)},
                    "To read a list, write it to a separate file.",
                    self._file,
                    count=len(self.others),
                )
            )
        return findings

    def line_of(self, position: int) -> int:
        """Return the line of a position. Positions must not decrease from call to call."""
        self._line += self._text.count("\n", self._counted, position)
        self._counted = position
        return self._line

    def value(self, position: int) -> tuple[Any, int]:
        try:
            self._decoder.names.clear()
            return self._decoder.raw_decode(self._text, position)
        except RecursionError as problem:
            raise self._broken(position, Phrase("nested too deeply")) from problem
        except json.JSONDecodeError as problem:
            # The reason contains the position of the error. The error's line is the first of the
            # entry, because an error such as a missing brace is detected lines later.
            place = {"line": problem.lineno, "column": problem.colno}
            reason = Phrase("invalid at line {line}, column {column}", **place)
            raise self._broken(position, reason) from problem
        except ValueError as problem:
            raise self._broken(position, Phrase("a number with too many digits")) from problem

    def items(self, position: int) -> Generator[tuple[int, Record], None, int]:
        """Yield the objects of the list that begins at `position`; return the end of the list."""
        at = _skip(self._text, position + 1)
        while self._text[at : at + 1] != "]":
            item, stop = self.value(at)
            yield self.record(item, at)
            stop = _skip(self._text, stop)
            following = self._text[stop : stop + 1]
            if following not in (",", "]"):
                reason = Phrase("a comma is missing")
                raise self._broken(stop, reason if following else Phrase("the list is not closed"))
            at = _skip(self._text, stop + 1) if following == "," else stop
        return at + 1

    def whole(self, position: int) -> Iterator[tuple[int, Record]]:
        """Yield the objects of the list that begins at `position` and must end the text."""
        stop = yield from self.items(position)
        at = _skip(self._text, stop)
        if at < len(self._text):
            raise self._broken(at, Phrase("text after the end of the list"))

    def sequence(self, position: int) -> Iterator[tuple[int, Record]]:
        """Yield consecutive objects from `position` to the end."""
        at = position
        while at < len(self._text):
            item, stop = self.value(at)
            yield self.record(item, at)
            at = _skip(self._text, stop)

    def start_of(self, key: str, position: int) -> int:
        """Return the position of the value of `key` in the object at `position`."""
        at = position
        name = None
        while name != key:
            name, stop = self.value(_skip(self._text, at + 1))
            at = _skip(self._text, _skip(self._text, stop) + 1)
            if name != key:
                at = _skip(self._text, self.value(at)[1])
        return at

    def record(self, item: object, position: int) -> tuple[int, Record]:
        """Return the line of the last decoded value, and the value. Raises FormatError if it is not
        an object."""
        if not isinstance(item, dict):
            raise unknown_shape(self._file, json.dumps(item)[:_SEEN_CHARS], self.line_of(position))
        line = self.line_of(position)
        if self._decoder.names:
            self._repeated[line] = (*self._repeated.get(line, ()), *self._decoder.names)
        return line, item

    def _broken(self, position: int, problem: Phrase) -> FormatError:
        return FormatError(
            "Invalid JSON in the entry starting here ({problem}). Nothing was read from the file.",
            remedy=_REMEDY,
            file=self._file,
            line=self._text.count("\n", 0, position) + 1,
            problem=problem,
        )


def _skip(text: str, position: int) -> int:
    """Return the next position without white space."""
    match = _BETWEEN.match(text, position)
    return match.end() if match else position


def cell(value: object) -> str | None:
    """Convert a value to the text of a cell; lists are joined by semicolons."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, list):
        return "; ".join(each for each in map(cell, value) if each is not None)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
