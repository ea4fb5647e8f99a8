"""`read`: all files of one data set, from bytes to `Parsed`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from rankdash.core.base.errors import DataError, Finding, refused
from rankdash.core.readers import detect
from rankdash.core.readers.detect import UnknownFormError, tables_of
from rankdash.core.readers.join.combine import combine, identified
from rankdash.core.readers.join.conflicts import RULES, Conflict, Match, matched
from rankdash.core.readers.join.interpret import interpret, refuse_lacking
from rankdash.core.readers.join.parsed_file import Parsed, ParsedFile
from rankdash.core.readers.parse import skipped_rows
from rankdash.core.readers.parse.annotators import Together, refuse_rule
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.unpack import unpack

# Of many files, where none alone is at fault.
_NAMED = 3


class BaselineNeeded(DataError):  # noqa: N818 - it asks, and is mended by an answer
    """No name says which of several rankings is the search of today.

    rankings: their names.
    """

    def __init__(self, rankings: Sequence[str]) -> None:
        self.rankings = list(rankings)
        super().__init__(
            "No name says which ranking is your search today: {rankings}.",
            remedy="Choose it.",
            rankings=", ".join(rankings),
        )


class Choices(TypedDict, total=False):
    """What may be settled of how files are read, as `read` says."""

    mapping: Mapping[str, Mapping[str, str]]
    columns: Mapping[str, str] | None
    conflict: Conflict
    worst_label: float | None
    first_stage: str | None
    limits: ReadLimits | None
    words: Mapping[str, Mapping[str, float | None]]
    annotators: Together
    match: Match
    ask: bool


def read(
    sources: Sequence[Source],
    *,
    mapping: Mapping[str, Mapping[str, str]] | None = None,
    columns: Mapping[str, str] | None = None,
    conflict: Conflict = "highest",
    worst_label: float | None = None,
    first_stage: str | None = None,
    limits: ReadLimits | None = None,
    words: Mapping[str, Mapping[str, float | None]] | None = None,
    annotators: Together = "majority",
    match: Match = "id",
    ask: bool = False,
) -> Parsed:
    """Read and join the files of one data set.

    mapping:     file → field (of `FIELDS`) → column, for files whose columns are not recognised.
    columns:     field → column, "" for none: said of every file that has all of these columns, or,
                 where none has, of each file for those that it has. Its others are as guessed.
    conflict:    which label is kept where a pair has several that differ: "highest", "lowest",
                 "mean"; "refuse" raises.
    worst_label: the grade that means not relevant, where the lowest grade of the files is the best:
                 the labels are reversed, each to `worst_label` minus itself. Those below 0 stay.
    first_stage: the ranking (its file's name or stem) that rerankers start from.
    words:       file → word → label, for labels written as words; None where a word is no label.
                 Without it known words are read by the scales of `values.WORD_SCALES`.
    annotators:  what the columns of several annotators come to, "majority" or "mean".
    match:       how the queries of labels are found: by "id", or by "order", where the labels count
                 them 1, 2, 3 … in the order of their file.
    ask:         a person is there: ask also what could be left open, the grades of words, which
                 of many features is the score, and which ranking is the search of today.

    Raises MappingNeeded where columns are not recognised; if `ask` is set, WordsNeeded where labels
    are words, and BaselineNeeded where no name says which ranking is the search of today;
    FormatError where a file is broken or of no known form, LimitError where it is too large,
    DataError otherwise; all name the file.
    """
    if conflict not in (*RULES, "refuse"):
        raise DataError(
            "There is no rule {conflict!r} for labels that disagree.",
            remedy="The rules are: highest, lowest, mean, refuse.",
            conflict=conflict,
        )
    with skipped_rows.told(_names(sources)):
        parts, findings = parts_of(
            sources,
            mapping=mapping,
            columns=columns,
            limits=limits,
            words=words,
            annotators=annotators,
            ask=ask,
        )
        refuse_lacking(columns, parts)
        parts, counted = matched(parts, match)
        kept, _, notes = identified(parts)
        parsed = combine(
            kept, read=parts, conflict=conflict, worst_label=worst_label, first_stage=first_stage
        )
        if ask and parsed.open_choice:
            raise BaselineNeeded(parsed.open_choice)
    return told(parsed, [*findings, *counted, *notes])


def told(parsed: Parsed, findings: Sequence[Finding]) -> Parsed:
    """With what each file was read as, and what was noticed before the parts were joined."""
    read_as = [_read_as(file, name) for file, name in parsed.formats.items()]
    return replace(parsed, findings=(*read_as, *findings, *parsed.findings))


def parts_of(
    sources: Sequence[Source],
    *,
    mapping: Mapping[str, Mapping[str, str]] | None = None,
    columns: Mapping[str, str] | None = None,
    limits: ReadLimits | None = None,
    words: Mapping[str, Mapping[str, float | None]] | None = None,
    annotators: Together = "majority",
    ask: bool = False,
    beside: Sequence[ParsedFile] = (),
) -> tuple[list[ParsedFile], list[Finding]]:
    """What each file holds, read and checked by itself; settings and errors as for `read`.

    beside: the parts of a data set of which the files are rankings.
    """
    refuse_rule(annotators)
    limits = limits or ReadLimits()
    if not sources:
        raise DataError(
            "No files were given.", remedy="Choose the files of a data set, or a folder of them."
        )
    names = [source.name for source in sources]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(
            "Two files are called {name!r}.",
            remedy="Give every file a name of its own.",
            name=repeated[0],
        )
    unpacked, broken = unpack(sources, limits)
    files, findings = _without_papers(unpacked)
    errors: list[DataError] = [*broken]
    findings += [note for source in sources for note in source.notes]
    tables: list[tuple[Table, Source]] = []
    unknown: UnknownFormError | None = None
    for source in files:
        try:
            found = tables_of(source, limits)
            origin = source.origin or (source.name if len(found) > 1 else "")
            tables += [(table, replace(source, origin=origin)) for table in found]
        except UnknownFormError as problem:
            if not source.origin:
                errors.append(problem)
                continue
            unknown = unknown or problem
            findings.append(
                Finding(
                    "warning",
                    "not_data",
                    "Not read: the form of the file is not known.",
                    remedy="If it holds data, load it alone to see why.",
                    file=source.name,
                )
            )
        except DataError as problem:
            errors.append(problem)
    if unknown and not tables:
        errors.append(unknown)
    limits.joining()
    try:
        for preparer in detect.PREPARERS:
            tables = preparer.prepare(tables)
    except DataError as problem:
        raise refused([*errors, problem]) from problem
    parts = interpret(
        tables,
        mapping or {},
        words=words or {},
        annotators=annotators,
        ask=ask,
        columns=columns,
        beside=beside,
        errors=errors,
    )
    return parts, findings


def _names(sources: Sequence[Source]) -> str:
    names = [source.name for source in sources]
    return ", ".join([*names[:_NAMED], *["…"] * (len(names) > _NAMED)])


def _without_papers(files: Sequence[Source]) -> tuple[list[Source], list[Finding]]:
    """The data files, and notes on the licences, readmes and hidden files among them."""
    data = [source for source in files if not source.is_readme]
    if not data:
        return list(files), []
    notes = [
        Finding(
            "note", "paper", "Not read: a licence, a notice or a hidden file.", file=source.name
        )
        for source in files
        if source.is_readme
    ]
    return data, notes


# What the rows of a file are called behind its format → how that is said.
_HOLDS = {
    "rows with texts": "Read as: {format}, rows with texts.",
    "labels": "Read as: {format}, labels.",
    "a ranking": "Read as: {format}, a ranking.",
    "queries": "Read as: {format}, queries.",
    "documents": "Read as: {format}, documents.",
}


def _read_as(file: str, name: str) -> Finding:
    kind, _comma, holds = name.rpartition(", ")
    if holds in _HOLDS:
        return Finding("note", "format", _HOLDS[holds], {"format": kind}, file=file)
    return Finding("note", "format", "Read as: {format}.", {"format": name}, file=file)
