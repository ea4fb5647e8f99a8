"""Detection of file formats from their content, and guesses of columns."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rankdash.core.base.errors import Finding, FormatError, RankdashError
from rankdash.core.base.files import whole_characters
from rankdash.core.readers.formats import (
    binary,
    delimited,
    exports,
    grades,
    json_layouts,
    json_records,
    json_tools,
    letor,
    quepid,
    services,
    trec,
    trec_markup,
)
from rankdash.core.readers.parse.annotators import raters_of
from rankdash.core.readers.parse.columns import can_be_labels, fields_of
from rankdash.core.readers.parse.limits import ReadLimits, counted, reading
from rankdash.core.readers.parse.source import Decoded, Source, decode
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.unpack import refuse_long_lines, refuse_vast_json, unpack
from rankdash.core.readers.parse.values import numbers

_PLAN = '{"kind": "rankdash label plan '
_SAMPLE_CHARS = 1 << 16
_START_CHARS = 60
# JSON that may be more than a list of rows. A long list of rows is decoded only once.
_MAY_NEST = re.compile(r'\s*+(?:\{|\[\s*+[^\s{])|.*(?:docId|"turn|"index|"corpus_id)', re.DOTALL)
_FOREIGN = re.compile(r"[^\x00-\x7f]")


class UnknownFormError(FormatError):
    """Text in an unknown format. If other files are readable, the file is skipped."""


def tables_of(source: Source, limits: ReadLimits) -> list[Table]:
    """Read the tables of one unpacked file, usually one.

    Raises UnknownFormError if no reader supports the format, FormatError if the file is broken, and
    LimitError.
    """
    with reading(source.name):
        return _tables_of(source, limits)


def _tables_of(source: Source, limits: ReadLimits) -> list[Table]:
    if source.on_disk and (in_pieces := _read_pieces(source, limits)) is not None:
        return [in_pieces]
    data = source.data
    if source.on_disk:
        refuse_long_lines(data, source.name, limits)
    if data.startswith(binary.WORKBOOK):
        return binary.read_workbook(data, source.name, limits)
    if data.startswith(binary.PARQUET):
        return [binary.read_parquet(data, source.name, limits)]
    if binary.is_arrow(data):
        return [binary.read_arrow(data, source.name, limits)]
    decoded = decode(data, source.name)
    if not decoded.start.strip():
        raise FormatError(
            "The file is empty.",
            remedy="Check that the file is complete.",
            file=source.name,
        )
    notes = _encoding(decoded, source.name)
    if decoded.start.startswith(_PLAN):
        raise FormatError(
            "This is a labelling plan. Its labels are in a separate file.",
            remedy="Write it with: rankdash label status PLAN --out labels.csv",
            file=source.name,
        )
    if decoded.start.lstrip()[0] in "[{":
        refuse_vast_json(decoded, source.name, limits)
        tables = _read_json(decoded.text, source.name, limits)
    else:
        read = _read_text(decoded, source.name, limits)
        tables = read if isinstance(read, list) else [read]
    return [replace(table, findings=(*notes, *table.findings)) for table in tables]


def _read_pieces(source: Source, limits: ReadLimits) -> Table | None:
    """Read a large ASCII TREC file piece by piece; return None for any other file."""
    head = source.head[: source.head.rfind(b"\n") + 1]
    # ASCII text in UTF-16 contains zero bytes.
    if not head.isascii() or b"\0" in head:
        return None
    start = head.decode("ascii")
    if any(reader.matches(start) for reader in TEXT):
        return None
    shape = trec.shape_of(start)
    return None if shape is None else trec.read_pieces(source, start, shape, limits)


def _read_text(decoded: Decoded, file: str, limits: ReadLimits) -> Table | list[Table]:
    text = decoded.start
    for reader in TEXT:
        if reader.matches(text):
            return reader.read(decoded.text, file, limits)
    shape = trec.shape_of(text)
    if shape:
        return trec.read(decoded, shape, file, limits)
    if text.lstrip().startswith("<"):
        begins = len(text) - len(text.lstrip())
        raise UnknownFormError(
            "Unknown markup format: the file begins with {start}.",
            remedy="Supported TREC markup: <DOC> with <DOCNO> and <TEXT>, <top> with <num> "
            'and <title>, or <topic number="1"> with <query>.',
            file=file,
            line=text.count("\n", 0, begins) + 1,
            start=" ".join(text[begins : begins + _START_CHARS].split()),
        )
    delimiter = delimited.sniff(text)
    if delimiter is None:
        raise UnknownFormError(
            "Unknown file format.",
            remedy="Supported formats: {formats}. A CSV file needs a first line with column names.",
            file=file,
            formats=", ".join(NAMES),
        )
    return delimited.read(decoded.text, delimiter, file, limits)


def _read_json(text: str, file: str, limits: ReadLimits) -> list[Table]:
    text, mended = whole_characters(text)
    tables = _json_tables(text, file, limits)
    if not mended:
        return tables
    finding = counted(
        "warning",
        "half_characters",
        "Texts with half a character (a lone surrogate), replaced by \ufffd: {count}.",
        mended,
        "The program that wrote the file splits characters; fix it there.",
        file,
    )
    return [replace(table, findings=(finding, *table.findings)) for table in tables]


def _json_tables(text: str, file: str, limits: ReadLimits) -> list[Table]:
    if not _MAY_NEST.match(text[:_SAMPLE_CHARS]):
        return [json_records.read(text, file, limits)]
    text, outer = json_records.whole(text)
    for reader in JSON:
        if reader.matches(outer):
            read = reader.read(text, file, limits)
            first, *others = read if isinstance(read, list) else [read]
            decoder = json_records.RepeatedKeys()
            decoder.decode(text)
            noticed = (*first.findings, *json_records.repeated_keys(file, decoder.names, [1]))
            return [replace(first, findings=noticed), *others]
    return [json_records.read(text, file, limits)]


def _encoding(decoded: Decoded, file: str) -> tuple[Finding, ...]:
    if not decoded.guessed:
        return ()
    wide = _FOREIGN.search(decoded.text)
    line = wide and decoded.text[decoded.text.rfind("\n", 0, wide.start()) + 1 :][:80]
    return (
        Finding(
            "note",
            "encoding",
            "The file is not UTF-8; it is read as {encoding}.",
            {"encoding": decoded.encoding.upper()},
            "If the example shows wrong characters, save the file as UTF-8.",
            file,
            examples=(line.partition("\n")[0],) if line else (),
        ),
    )


# The supported formats and their readers.
#
# Text and JSON readers convert a file with recognised content to a `Table`, or to several if the
# file contains a whole data set. Preparers receive all tables of a call and change those with
# recognised columns. All other tables are interpreted by their columns only.


class Reader(NamedTuple):
    """A reader of one format. matches: returns whether a text, or the value of a JSON document, has
    the format."""

    matches: Callable[[Any], bool]
    read: Callable[[str, str, ReadLimits], Table | list[Table]]


TEXT = (Reader(letor.matches, letor.read), Reader(trec_markup.matches, trec_markup.read))
JSON = (
    Reader(exports.is_opensearch, exports.read_opensearch),
    Reader(exports.is_rre, exports.read_rre),
    Reader(json_tools.is_cast, json_tools.read_cast),
    Reader(exports.is_wrapped, exports.read_wrapped),
    Reader(json_tools.is_predictions, json_tools.read_predictions),
    Reader(json_tools.is_rank_eval, json_tools.read_rank_eval),
    Reader(services.is_answered, json_tools.read_answered),
    Reader(json_layouts.is_collection, json_layouts.read_collection),
    Reader(json_layouts.matches, json_layouts.read),
    Reader(json_tools.is_ranx, json_tools.read_ranx),
)
PREPARERS = (
    exports.one_split,
    exports.tools,
    quepid.prepared,
    exports.esci,
    json_tools.rank_eval,
    grades.numbered,
)

# The names of formats in pages, README and messages.
NAMES = (
    "CSV",
    "TSV",
    "JSON",
    "JSON lines",
    "Parquet",
    "Arrow",
    "TREC runs and qrels",
    "TREC documents and topics",
    "BEIR",
    "MTEB reranking",
    "Hugging Face folders",
    "Quepid",
    "Releval",
    "WANDS",
    "ESCI",
    "OpenSearch judgments",
    "OpenSearch experiments",
    "UBI",
    "OpenInference spans",
    "AutoRAG",
    "RRE",
    "ranx",
    "LETOR (SVMlight)",
    "rank_llm",
    "MTEB predictions",
    "FlagEmbedding",
    "Elasticsearch _rank_eval",
    "rerank APIs",
)
# JSON formats with retrieved and relevant documents, read by `formats.retrieved` and
# `formats.json_layouts`.
SHAPES = ("LlamaIndex", "Ragas", "LangChain and LangSmith", "Haystack")


# Guesses of the columns of a table from the beginning of its file.

_ROWS = 5
_TRIES = 100
_NO_LABELS = ("query_id", "query", "doc_id", "document", "title")


@dataclass(frozen=True, eq=False)
class Guess:
    """The columns of a file and their guessed fields.

    fields: field → column. labels: the columns whose cells can be labels. rows: the first rows, as
    text. highest: label column → its highest number in the rows read.
    """

    file: str
    columns: tuple[str, ...]
    fields: dict[str, str]
    labels: tuple[str, ...]
    rows: pd.DataFrame
    highest: Mapping[str, float] = field(default_factory=dict)


def guesses(
    sources: Sequence[Source], most_bytes: int, limits: ReadLimits | None = None
) -> list[Guess]:
    """Guess the columns of each table of queries and documents without a fixed layout. Files that
    cannot be read are ignored here; `read` raises their errors.

    most_bytes: the number of bytes read of larger files. A truncated archive cannot be read, so
    there is no guess for it.
    """
    limits = limits or ReadLimits()
    tables: list[tuple[Table, Source]] = []
    try:
        files, _broken = unpack([beginning(source, most_bytes) for source in sources], limits)
        for source in files:
            with contextlib.suppress(RankdashError):
                tables += [(table, source) for table in tables_of(source, limits)]
        for prepare in PREPARERS:
            tables = prepare(tables)
    except RankdashError:
        return []
    return [likely for table, _ in tables if (likely := _guess(table)) is not None]


def beginning(source: Source, most_bytes: int) -> Source:
    """Truncate a source to complete lines of at most `most_bytes`, outside quotation marks."""
    if source.size <= most_bytes:
        return source
    ends = most_bytes
    with source.open() as file:
        data = file.read(most_bytes)
    for _ in range(_TRIES):
        ends = data.rfind(b"\n", 0, ends)
        if ends < 0 or data.count(b'"', 0, ends) % 2 == 0:
            break
    return replace(source, content=data[: max(ends, 0)])


def _guess(table: Table) -> Guess | None:
    if table.doubt or not table.names or table.fields is not None:
        return None
    if not len(table.frame) or raters_of(table):
        return None
    fields = fields_of(table.frame)
    if not {"query", "query_id"} & fields.keys() or not {"document", "doc_id"} & fields.keys():
        return None
    columns = tuple(map(str, table.frame.columns))
    texts = {column for field, column in fields.items() if field in _NO_LABELS}
    labels = tuple(
        name for name in columns if name not in texts and can_be_labels(table.frame[name])
    )
    if "label" in fields and fields["label"] not in labels:
        # The column named label contains no labels: `read` raises the error, with the line.
        return None
    rows = table.frame.head(_ROWS).fillna("").astype("str")
    numeric = ((name, numbers(table.frame[name].to_numpy(dtype=object))) for name in labels)
    highest = {
        name: float(np.nanmax(values)) for name, values in numeric if np.isfinite(values).any()
    }
    return Guess(table.file, columns, fields, labels, rows, highest)
