"""`read`: all files of one data set, from bytes to `Parsed`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Unpack

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError, Finding, refused
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers.detect import PREPARERS, UnknownFormError, tables_of
from rankdash.core.readers.join.combine import combine, identified, rankings_in
from rankdash.core.readers.join.conflicts import RULES, Conflict, Match, join_labels, matched
from rankdash.core.readers.join.interpret import FileChoices, interpret, refuse_lacking
from rankdash.core.readers.join.parsed_file import Pairs, Parsed, ParsedFile, noticed
from rankdash.core.readers.parse.annotators import refuse_rule
from rankdash.core.readers.parse.limits import ReadLimits, Refusals, reading
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.unpack import unpack


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


class Choices(FileChoices, total=False):
    """What may be settled of how files are read and joined, as `read` says."""

    conflict: Conflict
    worst_label: float | None
    first_stage: str | None
    match: Match


def read(
    sources: Sequence[Source],
    *,
    conflict: Conflict = "highest",
    worst_label: float | None = None,
    first_stage: str | None = None,
    match: Match = "id",
    **choices: Unpack[FileChoices],
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
    # Of many files none alone is at fault.
    names = [source.name for source in sources[:3]] + ["…"] * (len(sources) > 3)
    with reading(", ".join(names)):
        parts, findings = parts_of(sources, **choices)
        refuse_lacking(choices.get("columns"), parts)
        parts, counted = matched(parts, match)
        selected, _, notes = identified(parts)
        parsed = combine(
            selected,
            read=parts,
            conflict=conflict,
            worst_label=worst_label,
            first_stage=first_stage,
        )
        if choices.get("ask") and parsed.open_choice:
            raise BaselineNeeded(parsed.open_choice)
    return told(parsed, [*findings, *counted, *notes])


def told(parsed: Parsed, findings: Sequence[Finding]) -> Parsed:
    """With what each file was read as, and what was noticed before the parts were joined."""
    read_as = []
    for file, name in parsed.formats.items():
        kind, _comma, holds = name.rpartition(", ")
        kind, template = (kind, _HOLDS[holds]) if holds in _HOLDS else (name, "Read as: {format}.")
        read_as.append(Finding("note", "format", template, {"format": kind}, file=file))
    return replace(parsed, findings=(*read_as, *findings, *parsed.findings))


def parts_of(
    sources: Sequence[Source],
    *,
    beside: Sequence[ParsedFile] = (),
    **choices: Unpack[FileChoices],
) -> tuple[list[ParsedFile], list[Finding]]:
    """What each file holds, read and checked by itself; settings and errors as for `read`.

    beside: the parts of a data set of which the files are rankings.
    """
    refuse_rule(choices.get("annotators", "majority"))
    limits = choices.get("limits") or ReadLimits()
    if not sources:
        raise DataError(
            "No files were given.", remedy="Choose the files of a data set, or a folder of them."
        )
    names = Counter(source.name for source in sources)
    for name in sorted(name for name in names if names[name] > 1):
        raise DataError(
            "Two files are called {name!r}.",
            remedy="Give every file a name of its own.",
            name=name,
        )
    unpacked, broken = unpack(sources, limits)
    papers = [source for source in unpacked if source.is_readme]
    papers = papers if len(papers) < len(unpacked) else []
    template = "Not read: a licence, a notice or a hidden file."
    findings = [Finding("note", "paper", template, file=source.name) for source in papers]
    errors: list[DataError] = [*broken]
    findings += [note for source in sources for note in source.notes]
    tables: list[tuple[Table, Source]] = []
    unknown: UnknownFormError | None = None
    for source in (source for source in unpacked if source not in papers):
        try:
            parsed = tables_of(source, limits)
            origin = source.origin or (source.name if len(parsed) > 1 else "")
            tables += [(table, replace(source, origin=origin)) for table in parsed]
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
        for prepare in PREPARERS:
            tables = prepare(tables)
    except DataError as problem:
        raise refused([*errors, problem]) from problem
    return interpret(tables, choices, beside=beside, errors=errors), findings


# What the rows of a file are called behind its format → how that is said.
_HOLDS = {
    "rows with texts": "Read as: {format}, rows with texts.",
    "labels": "Read as: {format}, labels.",
    "a ranking": "Read as: {format}, a ranking.",
    "queries": "Read as: {format}, queries.",
    "documents": "Read as: {format}, documents.",
}


# Rankings from files, read beside labels or beside a data set: every file once.


@dataclass(frozen=True, eq=False)
class Beside:
    """A ranking of a file. by_text: ids were made for it or for what it is held against."""

    ranking: Ranking
    path: Path
    by_text: bool


@dataclass(frozen=True, eq=False)
class Joined:
    """Files of rankings and what they rank, under the same ids.

    rankings: name → ranking; what else a file ranks is "name/its own name". findings: what was
    noticed about the files of the rankings, and about ids.
    """

    rankings: Mapping[str, Beside]
    findings: tuple[Finding, ...]
    _read: Sequence[ParsedFile]
    _kept: Sequence[ParsedFile]
    _others: Sequence[ParsedFile]
    _start: Ranking | None

    @property
    def draws(self) -> pd.DataFrame | None:
        """In which draw the labels came that the rankings were read beside, as from `draws_of`;
        None where no file says it."""
        frames = [part.draws for part in self._kept if part.draws is not None]
        return pd.concat(frames, ignore_index=True) if frames else None

    def labels(
        self, *, conflict: Conflict, worst_label: float | None = None
    ) -> tuple[Pairs, list[Finding]]:
        """The labels that the rankings were read beside, one a pair, and what `parsed` notices too:
        without tables of queries and documents. Settings and errors as for `read`."""
        labels, findings = join_labels(self._kept, conflict, worst_label)
        return labels, [*self.findings, *findings, *noticed(self._kept, self._others)]

    def parsed(
        self,
        *,
        conflict: Conflict,
        worst_label: float | None = None,
        first_stage: str | None = None,
    ) -> Parsed:
        """The data set that the rankings were read beside. Settings and errors as for `read`."""
        parsed = combine(
            self._kept,
            read=self._read,
            conflict=conflict,
            worst_label=worst_label,
            first_stage=first_stage,
            start=self._start,
            beside=self._others,
        )
        return told(parsed, self.findings)


def read_beside(
    known: Sequence[Source] | Dataset,
    files: Mapping[str, Path],
    *,
    start: bool = False,
    columns: Mapping[str, str] | None = None,
    limits: ReadLimits | None = None,
) -> Joined:
    """Read rankings. Queries and documents that a file gives by their text only are the ones that
    have this text in the other files; labels that stand in the file of a ranking do not count.

    known: the files of labels, or of a data set, of which a ranking may be one; or a data set; or
    nothing, where rankings are held against each other. files: name → file. start: the data set
    starts from the first ranking, whose documents and texts are its own. columns: as for `read`; of
    the files of rankings all but the label, and of labels alone not what orders documents. limits:
    as for `read`.

    Raises DataError where a file holds no ranking, or an id that would be made for a text is that
    of something else; and what `read` raises.
    """
    sources = [] if isinstance(known, Dataset) else list(known)
    parts: list[ParsedFile] = []
    findings: list[Finding] = []
    named: Iterable[tuple[str, Source, bool]] = _named(files, sources)
    if isinstance(known, Dataset):
        parts = [_part(known)]
    elif sources:
        apart = bool(start and columns)
        if apart:
            named = list(named)
            apart = not any(in_sources for _, _, in_sources in named)
        parts, findings = parts_of(
            sources, columns=_without(columns, _ORDERS if apart else ()), limits=limits
        )
    keyed = any(part.keyed_by_text for part in parts)
    called: dict[str, str] = {}
    by_text: dict[str, bool] = {}
    parts_by_name: dict[str, list[ParsedFile]] = {}
    ranked: dict[str, dict[str, Ranking]] = {}
    problems: list[DataError] = []
    columned: list[ParsedFile] = []
    for name, source, in_sources in named:
        called[name], by_text[name] = source.name, keyed
        if in_sources:
            continue
        try:
            read, notes = parts_of(
                [source], beside=parts, columns=_without(columns, ("label",)), limits=limits
            )
        except DataError as problem:
            problems.append(problem)
            continue
        findings += notes
        columned += read
        by_text[name] = keyed or any(part.keyed_by_text for part in read)
        if parts and not by_text[name]:
            # Its ids are what they are, so its rows need not be held until all files are read.
            ranked[name] = rankings_in(read, source.name)
            read = [replace(part, scores=()) for part in read]
        parts_by_name[name] = [replace(part, labels=Pairs.none()) for part in read]
    if problems:
        raise refused(problems)
    refuse_lacking(columns, [*parts, *columned])
    selected, beside, notes = identified(
        parts, [part for read in parts_by_name.values() for part in read]
    )
    findings += notes
    placed = iter(beside)
    parts_by_name = {name: list(islice(placed, len(read))) for name, read in parts_by_name.items()}
    # The data set counts the rows that it refuses for its own rankings itself.
    known_parts = selected if start else [_counted_apart(part) for part in selected]
    rankings: dict[str, Beside] = {}
    for name, path in files.items():
        if name not in ranked:
            ranked[name] = rankings_in(parts_by_name.get(name, known_parts), called[name])
        if not ranked[name]:
            raise DataError(
                "The file holds no ranking: there are neither scores nor ranks in it.",
                remedy="A ranking has a score or a rank for each query and document, like a TREC "
                "run.",
                file=str(path),
            )
        for other, ranking in ranked[name].items():
            if other and name not in parts_by_name:
                continue
            system = f"{name}/{other}" if other else name
            while system in rankings or (other and system in files):
                system += " (2)"
            rankings[system] = Beside(ranking, path, by_text[name])
    for part in beside:
        findings += [*part.findings, *part.refusals.findings()]
    first = next(iter(files), "")
    starting = parts_by_name.get(first, []) if start else []
    return Joined(
        rankings=rankings,
        findings=tuple(findings),
        _read=[*parts, *starting],
        _kept=[*selected, *(_counted_apart(part) for part in starting)],
        _others=beside,
        _start=rankings[first].ranking if start else None,
    )


_ORDERS = ("score", "rank", "reranked")


def _without(columns: Mapping[str, str] | None, fields: Sequence[str]) -> dict[str, str]:
    return {field: column for field, column in (columns or {}).items() if field not in fields}


def _named(
    files: Mapping[str, Path], sources: Sequence[Source]
) -> Iterator[tuple[str, Source, bool]]:
    """name, its file under a name that no other has, or the one of the sources that it is; and
    whether it is one of them."""
    taken = {source.name for source in sources}
    for name, path in files.items():
        source = Source.from_path(path)
        same = next((each for each in sources if each.same_as(source)), None)
        if same is not None:
            yield name, same, True
            continue
        spellings = chain(
            (source.name, f"{path.resolve().parent.name}/{source.name} (run)"),
            (f"{path} (run {n})" for n in count(1)),
        )
        unused = next(each for each in spellings if each not in taken)
        taken.add(unused)
        yield name, replace(source, name=unused), False


def _part(data: Dataset) -> ParsedFile:
    """The tables of a data set as if a file held them."""

    def without_nan(table: pd.DataFrame) -> pd.DataFrame:
        return table.astype(object).where(table.notna(), None)

    return ParsedFile(
        data.name,
        "",
        "",
        Refusals(data.name),
        queries=without_nan(data.queries),
        documents=without_nan(data.documents),
        labels=Pairs.of(
            data.qrels,
            data.qrels["label"].to_numpy(dtype=np.float64),
            np.zeros(len(data.qrels), dtype=np.int64),
        ),
    )


def _counted_apart(part: ParsedFile) -> ParsedFile:
    """The part without what was noticed about it so far."""
    return replace(part, findings=(), refusals=Refusals(part.file))
