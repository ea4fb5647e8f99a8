"""Which reader a file needs, found from its content."""

from __future__ import annotations

import re
from dataclasses import replace
from types import ModuleType

from rankdash.core.base.errors import Finding, FormatError
from rankdash.core.base.files import whole_characters
from rankdash.core.readers.formats import (
    arrow,
    cast,
    collection,
    delimited,
    esci,
    huggingface,
    json_layouts,
    json_records,
    letor,
    opensearch,
    parquet,
    quepid,
    ranx,
    rre,
    trec,
    trec_markup,
    workbook,
)
from rankdash.core.readers.parse import json_lines
from rankdash.core.readers.parse.encoding import Decoded, decode
from rankdash.core.readers.parse.gauge import refuse_long_lines, refuse_vast_json
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.skipped_rows import told
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table

_KNOWN_FORMS = "Known are: {formats}. A CSV file needs a first line with column names."

_PLAN = '{"kind": "rankdash label plan '
_SAMPLE_CHARS = 1 << 16
_START_CHARS = 60
_FOREIGN = re.compile(r"[^\x00-\x7f]")


class UnknownFormError(FormatError):
    """Text that has no form of a data file; beside other files it is set aside."""


def tables_of(source: Source, limits: ReadLimits) -> list[Table]:
    """Read one unpacked file as a table, or as several where it holds several.

    Raises UnknownFormError where no reader knows the form, FormatError where the file is broken,
    and LimitError.
    """
    with told(source.name):
        return _tables_of(source, limits)


def _tables_of(source: Source, limits: ReadLimits) -> list[Table]:
    if source.on_disk:
        in_pieces = _read_pieces(source, limits)
        if in_pieces is not None:
            return [in_pieces]
    data = source.data
    if source.on_disk:
        refuse_long_lines(data, source.name, limits)
    if data.startswith(workbook.MAGIC):
        return workbook.read(data, source.name, limits)
    if data.startswith(parquet.MAGIC):
        return [parquet.read(data, source.name, limits)]
    if arrow.matches(data):
        return [arrow.read(data, source.name, limits)]
    decoded = decode(data, source.name)
    if not decoded.start.strip():
        raise FormatError(
            "The file is empty.",
            remedy="Check that the file was written to its end.",
            file=source.name,
        )
    notes = _encoding(decoded, source.name)
    if decoded.start.startswith(_PLAN):
        raise FormatError(
            "This is a label plan. Its labels are a file of their own.",
            remedy="Write it with: rankdash label status PLAN --out labels.csv",
            file=source.name,
        )
    if decoded.start.lstrip()[0] in "[{":
        refuse_vast_json(decoded, source.name, limits)
        tables = _read_json(decoded.text, source.name, limits)
    else:
        tables = [_read_text(decoded, source.name, limits)]
    return [replace(table, findings=(*notes, *table.findings)) for table in tables]


def _read_pieces(source: Source, limits: ReadLimits) -> Table | None:
    """The table of a large TREC file in ASCII; None for any other, which is read as a whole."""
    head = source.head[: source.head.rfind(b"\n") + 1]
    # UTF-16 is ASCII with zeros.
    if not head.isascii() or b"\0" in head:
        return None
    start = head.decode("ascii")
    if any(reader.matches(start) for reader in TEXT):
        return None
    shape = trec.shape_of(start)
    return None if shape is None else trec.read_pieces(source, start, shape, limits)


def _read_text(decoded: Decoded, file: str, limits: ReadLimits) -> Table:
    text = decoded.start
    for reader in TEXT:
        if reader.matches(text):
            table: Table = reader.read(decoded.text, file, limits)
            return table
    shape = trec.shape_of(text)
    if shape:
        return trec.read(decoded, shape, file, limits)
    if text.lstrip().startswith("<"):
        begins = len(text) - len(text.lstrip())
        raise UnknownFormError(
            "The file is markup, but of no known form: it begins with {start}.",
            remedy="Known markup is that of TREC: <DOC> with <DOCNO> and <TEXT>, <top> with <num> "
            'and <title>, or <topic number="1"> with <query>.',
            file=file,
            line=text.count("\n", 0, begins) + 1,
            start=" ".join(text[begins : begins + _START_CHARS].split()),
        )
    delimiter = delimited.sniff(text)
    if delimiter is None:
        raise UnknownFormError(
            "The form of the file is not known.",
            remedy=_KNOWN_FORMS,
            file=file,
            formats=", ".join(NAMES),
        )
    return delimited.read(decoded.text, delimiter, file, limits)


def _read_json(text: str, file: str, limits: ReadLimits) -> list[Table]:
    text, mended = whole_characters(text)
    tables = _json_tables(text, file, limits)
    if not mended:
        return tables
    finding = Finding(
        "warning",
        "half_characters",
        "Texts with half a character (a lone surrogate), replaced by \ufffd: {count}.",
        {"count": mended},
        "Look at the program that wrote the file: it cuts text in the middle of a character.",
        file,
        count=mended,
    )
    return [replace(table, findings=(finding, *table.findings)) for table in tables]


def _json_tables(text: str, file: str, limits: ReadLimits) -> list[Table]:
    # A list of rows may be long, and is decoded once only where it can be something else.
    readers = [reader for reader in JSON if reader.may_match(text[:_SAMPLE_CHARS])]
    text = json_lines.as_one(text) if readers else text
    outer = json_lines.whole(text) if readers else None
    for reader in readers:
        if reader.matches(outer):
            read: Table | list[Table] = reader.read(text, file, limits)
            first, *others = read if isinstance(read, list) else [read]
            noticed = (*first.findings, *_repeated_keys(text, file))
            return [replace(first, findings=noticed), *others]
    return [json_records.read(text, file, limits)]


def _repeated_keys(text: str, file: str) -> list[Finding]:
    decoder = json_lines.RepeatedKeys()
    decoder.decode(text)
    return [json_lines.repeated_keys(file, decoder.names, [1])] if decoder.names else []


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


# What is read, and the readers of formats that have one: a line each.
#
# Text, JSON and Arrow readers make a `Table` of a file whose content they recognise, `collection`
# several of one that holds a whole data set. Preparers look at all tables of a call, and change
# those whose columns they recognise. Everything else is told by its columns alone.

TEXT: tuple[ModuleType, ...] = (letor, trec_markup)
JSON: tuple[ModuleType, ...] = (opensearch, rre, cast, collection, json_layouts, ranx)
PREPARERS: tuple[ModuleType, ...] = (huggingface, quepid, esci)

# As people look for them; the pages, the README and messages list these.
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
    "WANDS",
    "ESCI",
    "OpenSearch judgments",
    "RRE",
    "ranx",
    "LETOR (SVMlight)",
)
# Shapes of JSON that say what was retrieved and what is relevant: `formats.retrieved` and
# `formats.json_layouts` read them.
SHAPES = ("LlamaIndex", "Ragas", "LangChain and LangSmith", "Haystack")
