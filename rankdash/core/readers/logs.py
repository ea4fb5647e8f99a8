"""Logs of searches, read in pieces: a text with one query per line, a table with a column of
queries and optionally their counts, or JSON lines such as an export of a UBI index."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from rankdash.core.base.errors import DataError, FormatError
from rankdash.core.data.arrays import ArrowText, Floats
from rankdash.core.readers.formats.delimited import sniff
from rankdash.core.readers.parse.columns import plain, recognise
from rankdash.core.readers.parse.source import decode

Kind = Literal["text", "table", "JSON lines"]

_COUNTS = frozenset(
    (
        *("frequency", "freq", "count", "counts", "searches", "volume"),
        *("searchcount", "querycount", "searchvolume"),
        *("频次", "次数", "搜索次数", "查询次数", "搜索量"),
    )
)
HEAD_BYTES, PIECE_BYTES = 1 << 18, 1 << 24
_LONGEST_LINE = 1 << 20


class Searches(NamedTuple):
    """A piece of a log. queries: (N,) Arrow text, never missing. counts: (N,) searches of each."""

    queries: ArrowText
    counts: Floats


class Log:
    """A file of searches, compressed or not.

    kind: its format. column, count: the names of its columns of queries and of counts; "" if it has
        none. skipped: the number of lines or rows without a query, once all pieces are read.

    Raises DataError if the file cannot be read, FormatError if it contains no queries.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.skipped = path, 0
        with self._opened() as stream:
            head = stream.read(HEAD_BYTES)
        self._start = start_of(head, path.name)
        first = self._start.content.lstrip()[:1]
        self.kind: Kind = "text"
        self.column = self.count = ""
        self._delimiter = ","
        if first == "[":
            raise FormatError(
                "The log is one JSON list.",
                remedy="Write one JSON object per line, for example with: jq -c '.[]' FILE",
                file=path.name,
            )
        if first == "{":
            self.kind = "JSON lines"
            return
        lines = self._start.content.lstrip().splitlines()
        self._delimiter = sniff(self._start.content) or ","
        raw = lines[0].split(self._delimiter) if lines else []
        names = [each.strip('" ') for each in raw]
        # As Arrow names the columns: a quotation mark is part of a name unless it starts it.
        self._names = {
            name: each.replace('"', "") if each.startswith('"') else each
            for name, each in reversed([*zip(names, raw, strict=True)])
        }
        self.column = recognise(names).get("query", "")
        if self.column and len(names) > 1:
            self.kind = "table"
            self.count = next((each for each in names if plain(each) in _COUNTS), "")

    def pieces(self) -> Iterator[Searches]:
        """Yield the log in pieces of a few megabytes. Raises the errors of the class."""
        read = {"text": self._texts, "table": self._rows, "JSON lines": self._entries}
        with readable(self._path.name):
            yield from read[self.kind]()

    def _opened(self) -> Any:
        try:
            return pa.input_stream(str(self._path), compression="detect")
        except OSError as problem:
            raise DataError(
                "The file cannot be read: {problem}.",
                remedy="Check that the file exists and that you have permission to read it.",
                file=str(self._path),
                problem=problem.strerror or type(problem).__name__,
            ) from problem

    def _texts(self) -> Iterator[Searches]:
        heading = self.column
        for lines in self._lines():
            queries = [line for line in map(str.strip, lines) if line]
            self.skipped += len(lines) - len(queries)
            if heading and queries:
                heading = queries.pop(0) and ""
            yield Searches(pa.array(queries, pa.string()), np.ones(len(queries)))

    def _lines(self) -> Iterator[list[str]]:
        decoder = codecs.getincrementaldecoder(self._start.encoding)(errors="replace")
        rest = ""
        with self._opened() as stream:
            stream.read(self._start.mark)
            while piece := stream.read(PIECE_BYTES):
                *lines, rest = (rest + decoder.decode(piece)).split("\n")
                if len(rest) > _LONGEST_LINE:
                    raise FormatError(
                        "A line of the log has more than {limit:,} characters.",
                        remedy="Write one query per line.",
                        file=self._path.name,
                        limit=_LONGEST_LINE,
                    )
                yield lines
        yield [rest] if rest else []

    def _rows(self) -> Iterator[Searches]:
        def skip(_row: Any) -> str:
            self.skipped += 1
            return "skip"

        columns = [self._names[each] for each in (self.column, self.count) if each]
        with self._opened() as stream:
            stream.read(self._start.mark)
            reader = pa_csv.open_csv(
                stream,
                pa_csv.ReadOptions(block_size=PIECE_BYTES, encoding=self._start.encoding),
                pa_csv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=skip
                ),
                pa_csv.ConvertOptions(
                    include_columns=columns,
                    column_types=dict(zip(columns, (pa.string(), pa.float64()), strict=False)),
                    strings_can_be_null=True,
                    null_values=[""],
                ),
            )
            for batch in reader:
                yield self._valid(batch.column(0), batch.column(1) if self.count else None)

    def _entries(self) -> Iterator[Searches]:
        decoder = msgspec.json.Decoder(_Entry)
        any_query = False
        for lines in self._lines():
            queries: list[str] = []
            counts: list[float] = []
            for line in filter(str.strip, lines):
                try:
                    entry = decoder.decode(line)
                except (msgspec.DecodeError, RecursionError):
                    self.skipped += 1
                    continue
                query, searches = (entry.source or entry).searched()
                if query is None:
                    self.skipped += 1
                    continue
                queries.append(query)
                counts.append(searches)
            any_query |= bool(queries)
            yield self._valid(pa.array(queries, pa.string()), pa.array(counts, pa.float64()))
        if not any_query:
            raise FormatError(
                "No line of the log is a JSON object with the field user_query or query.",
                remedy="Export the index ubi_queries with one JSON object per line.",
                file=self._path.name,
            )

    def _valid(self, queries: Any, counts: Any) -> Searches:
        """Return the rows with a query. Raises DataError for a count that is not above 0."""
        filled = pc.greater(pc.binary_length(pc.utf8_trim_whitespace(queries)), 0)
        present = np.asarray(filled.fill_null(False))
        self.skipped += len(present) - int(present.sum())
        queries = queries.filter(pa.array(present))
        numbers: Floats = np.ones(len(queries))
        if counts is not None:
            numbers = counts.to_numpy(zero_copy_only=False)[present]
        wrong = np.flatnonzero(~((numbers > 0) & np.isfinite(numbers)))
        if len(wrong):
            raise DataError(
                "The count of the query {query!r} is not above 0.",
                remedy="Correct the column {column}, or remove the row.",
                file=self._path.name,
                query=queries[int(wrong[0])].as_py(),
                column=self.count or "frequency",
            )
        return Searches(queries, numbers)


class _Fields(msgspec.Struct):
    """The fields of a search in JSON. Other fields, and their types, do not matter."""

    user_query: Any = None
    query: Any = None
    frequency: Any = None
    count: Any = None
    action_name: Any = None

    def searched(self) -> tuple[str | None, float]:
        """Return the query and its number of searches; None without a query, and for an event such
        as a click."""
        if self.action_name is not None:
            return None, 1.0
        texts = (each for each in (self.user_query, self.query) if isinstance(each, str))
        query = next(filter(str.strip, texts), None)
        numbers = (self.frequency, self.count)
        return query, next((float(each) for each in numbers if isinstance(each, int | float)), 1.0)


class _Entry(_Fields):
    """A search, or a document of an index that contains it."""

    source: _Fields | None = msgspec.field(default=None, name="_source")


class Start(NamedTuple):
    """The beginning of a file. mark: the length of its byte-order mark."""

    content: str
    encoding: str
    mark: int


def start_of(head: bytes, name: str) -> Start:
    """Return the beginning of a file, which may end within a character. Raises FormatError if it is
    not text."""
    problem: DataError | None = None
    for cut in range(4 if len(head) == HEAD_BYTES else 1):
        try:
            start = decode(head[: len(head) - cut], name)
        except FormatError as error:
            problem = problem or error
            continue
        marks: Iterable[bytes] = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF8,
                                  codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # fmt: skip
        mark = next((len(each) for each in marks if head.startswith(each)), 0)
        return Start(start.text, start.encoding, mark)
    raise problem or FormatError("The file is not text.", file=name)


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Raise FormatError for errors of Arrow."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowKeyError, EOFError, UnicodeError) as problem:
        # The text of a KeyError is in quotation marks.
        message = problem.args[0] if isinstance(problem, KeyError) else problem
        raise FormatError(
            "The file cannot be read: {problem}.",
            remedy="Correct the file, or write it as a table in CSV.",
            file=name,
            problem=str(message).partition("\n")[0].rstrip("."),
        ) from problem
