"""`read`: convert all files of one data set from bytes to `Parsed`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from pathlib import Path, PurePosixPath
from typing import Unpack

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError, Finding, refused
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers.detect import PREPARERS, UnknownFormError, tables_of
from rankdash.core.readers.join.combine import Ranked, combine, identified, rankings_in
from rankdash.core.readers.join.conflicts import RULES, Conflict, Match, join_labels, matched
from rankdash.core.readers.join.interpret import FileChoices, interpret, refuse_lacking
from rankdash.core.readers.join.parsed_file import Pairs, Parsed, ParsedFile, noticed
from rankdash.core.readers.parse.annotators import refuse_rule
from rankdash.core.readers.parse.limits import ReadLimits, Refusals, reading
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.unpack import unpack
from rankdash.core.readers.rated import read_timings


class BaselineNeeded(DataError):  # noqa: N818 - a question that the user answers
    """Several rankings of which none is named as the first stage.

    rankings: their names.
    """

    def __init__(self, rankings: Sequence[str]) -> None:
        self.rankings = list(rankings)
        super().__init__(
            "None of these rankings is named as the first stage: {rankings}.",
            remedy="Choose the first-stage ranking.",
            rankings=", ".join(rankings),
        )


class Choices(FileChoices, total=False):
    """Options for reading and joining files, documented in `read`."""

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

    mapping:     file → field (of `FIELDS`) → column, for files with unrecognised columns.
    columns:     field → column, "" for none: applied to every file that has all of these columns,
                 or, if no file has all, to each file for the ones that it has. Other columns are
                 guessed.
    conflict:    the rule for pairs with conflicting labels: "highest", "lowest", "mean"; "refuse"
                 raises.
    worst_label: the grade for "not relevant", if the lowest grade of the files is the best: each
                 label becomes `worst_label` minus itself. Labels below 0 are unchanged.
    first_stage: the ranking (its file's name or stem) that rerankers start from.
    words:       file → word → label, for labels written as words; None if a word is not a label.
                 Without it, known words are read by the scales of `values.WORD_SCALES`.
    annotators:  the rule to combine the columns of several annotators, "majority" or "mean".
    match:       the way to match the queries of labels: by "id", or by "order", if the labels
                 number them 1, 2, 3 … in the order of their file.
    ask:         interactive use: raise errors also for optional questions, which are the grades of
                 words, the score among many features, and the first-stage ranking.

    Raises MappingNeeded if columns are not recognised; if `ask` is set, WordsNeeded if labels are
    words, and BaselineNeeded if no ranking is named as the first stage; FormatError if a file is
    broken or has an unknown format, LimitError if it is too large, DataError otherwise; all name
    the file.
    """
    if conflict not in (*RULES, "refuse"):
        raise DataError(
            "Unknown rule {conflict!r} for conflicting labels.",
            remedy="Allowed rules: highest, lowest, mean, refuse.",
            conflict=conflict,
        )
    # An error that concerns many files names the first three.
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
        limits = choices.get("limits") or ReadLimits()
        parsed = _with_timings(parsed, sources, findings, limits)
    return told(parsed, [*findings, *counted, *notes])


def _with_timings(
    parsed: Parsed, sources: Sequence[Source], findings: Sequence[Finding], limits: ReadLimits
) -> Parsed:
    """Return the content with the states and latencies in files of timings, such as
    `a.timings.json` for the ranking `a`; "" is the first stage. findings: of `parts_of`."""
    names = {each.file for each in findings if each.code == "paper" and _is_timings(each.file)}
    if not names:
        return parsed
    unpacked, _broken = unpack(sources, limits)
    tables = {
        PurePosixPath(each.name).stem.removesuffix(_TIMINGS): read_timings(each, limits=limits)[0]
        for each in unpacked
        if each.name in names
    }
    found = {name: tables.pop(name) for name in parsed.rankings if name in tables}
    # A file whose name only means first stage does not name the ranking.
    first = parsed.candidates_name or (next(iter(tables)) if len(tables) == 1 else "")
    if parsed.candidates is not None and first in tables:
        found[""] = tables[first]
    return replace(parsed, outcomes={**found, **parsed.outcomes})


def _is_timings(name: str) -> bool:
    return PurePosixPath(name).stem.endswith(_TIMINGS)


def told(parsed: Parsed, findings: Sequence[Finding]) -> Parsed:
    """Add findings: the format of each file, and `findings` from before the parts were joined."""
    read_as = []
    for file, name in parsed.formats.items():
        kind, _comma, content = name.rpartition(", ")
        recognised = content in _READ_AS
        template = _READ_AS[content] if recognised else "Read as: {format}."
        params = {"format": kind if recognised else name}
        read_as.append(Finding("note", "format", template, params, file=file))
    return replace(parsed, findings=(*read_as, *findings, *parsed.findings))


def parts_of(
    sources: Sequence[Source],
    *,
    beside: Sequence[ParsedFile] = (),
    **choices: Unpack[FileChoices],
) -> tuple[list[ParsedFile], list[Finding]]:
    """Read and check each file by itself. Options and errors as for `read`.

    beside: the parts of the data set that the files rank.
    """
    refuse_rule(choices.get("annotators", "majority"))
    limits = choices.get("limits") or ReadLimits()
    if not sources:
        raise DataError(
            "No files were provided.", remedy="Choose the files or the folder of a data set."
        )
    names = Counter(source.name for source in sources)
    for name in sorted(name for name in names if names[name] > 1):
        raise DataError(
            "Two files have the name {name!r}.",
            remedy="File names must be unique.",
            name=name,
        )
    unpacked, broken = unpack(sources, limits)
    papers = [source for source in unpacked if source.is_readme]
    papers = papers if len(papers) < len(unpacked) else []
    findings = [
        Finding("note", "paper", _why_not_read(source.name), file=source.name) for source in papers
    ]
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
                    "Not read: unknown file format.",
                    remedy="If it contains data, load it by itself to see the error.",
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


_TIMINGS = ".timings"


def _why_not_read(name: str) -> str:
    """Return the message for a file next to the data. name: with its folders."""
    path = PurePosixPath(name.lower())
    if ".journal" in path.parts:
        return "Not read: answers of a search engine, with which a fetch resumes."
    if path.name == "fetch.json":
        return "Not read: the record of a fetch."
    if _is_timings(path.name):
        return (
            "Not read as data: the state and latency of each query. They apply to the ranking "
            "with this name, and failed queries are excluded."
        )
    return "Not read: a licence, a notice or a hidden file."


# The content of a file, as appended to the name of its format → message.
_READ_AS = {
    "rows with texts": "Read as: {format}, rows with texts.",
    "labels": "Read as: {format}, labels.",
    "a ranking": "Read as: {format}, a ranking.",
    "queries": "Read as: {format}, queries.",
    "documents": "Read as: {format}, documents.",
}


# Rankings from files, read together with labels or a data set; each file is read once.


@dataclass(frozen=True, eq=False)
class Beside:
    """A ranking from a file. by_text: True if ids were generated from texts, for the ranking or for
    the data that it is compared with. outcomes: as in `Parsed`; None if the file contains none."""

    ranking: Ranking
    path: Path
    by_text: bool
    outcomes: pd.DataFrame | None = None


@dataclass(frozen=True, eq=False)
class Joined:
    """Rankings from files and the data that they rank, with common ids.

    rankings: name → ranking; further rankings of the same file are "name/further name".
    findings: about the files of the rankings, and about ids.
    """

    rankings: Mapping[str, Beside]
    findings: tuple[Finding, ...]
    _read: Sequence[ParsedFile]
    _kept: Sequence[ParsedFile]
    _others: Sequence[ParsedFile]
    _start: Ranking | None

    @property
    def draws(self) -> pd.DataFrame | None:
        """The sampling draws of the labels, in the form of `draws_of`; None if no file lists
        them."""
        frames = [part.draws for part in self._kept if part.draws is not None]
        return pd.concat(frames, ignore_index=True) if frames else None

    def labels(
        self, *, conflict: Conflict, worst_label: float | None = None
    ) -> tuple[Pairs, list[Finding]]:
        """Return one label per pair and the findings, without creating tables of queries and
        documents as `parsed` does. Options and errors as for `read`."""
        labels, findings = join_labels(self._kept, conflict, worst_label)
        return labels, [*self.findings, *findings, *noticed(self._kept, self._others)]

    def parsed(
        self,
        *,
        conflict: Conflict,
        worst_label: float | None = None,
        first_stage: str | None = None,
    ) -> Parsed:
        """Return the data set that the rankings belong to. Options and errors as for `read`."""
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
    files: Mapping[str, Path | Source],
    *,
    start: bool = False,
    columns: Mapping[str, str] | None = None,
    limits: ReadLimits | None = None,
) -> Joined:
    """Read rankings. Queries and documents without ids are matched by text with the other files.
    Labels in the file of a ranking are ignored.

    known: the files of labels or of a data set, which may include the rankings; or a data set;
    or empty, to compare rankings with each other. files: name → file, or the path of one. start:
    use the first ranking as the first stage of the data set, with its documents and texts. columns:
    as for `read`; the label is ignored for files of rankings, and score and rank for files that
    contain only labels. limits: as for `read`.

    Raises DataError if a file contains no ranking, or if an id generated for a text already belongs
    to another text; and what `read` raises.
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
    ranked: dict[str, dict[str, Ranked]] = {}
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
            # The ids of this file are final, so its rows need not stay in memory.
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
    # Without `start`, the data set itself counts the rows refused in its own rankings.
    known_parts = selected if start else [_counted_apart(part) for part in selected]
    rankings: dict[str, Beside] = {}
    for name, path in {name: _path(file) for name, file in files.items()}.items():
        if name not in ranked:
            ranked[name] = rankings_in(parts_by_name.get(name, known_parts), called[name])
        if not ranked[name]:
            raise DataError(
                "The file contains no ranking (no scores or ranks).",
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
            rankings[system] = Beside(ranking.ranking, path, by_text[name], ranking.outcomes)
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
    files: Mapping[str, Path | Source], sources: Sequence[Source]
) -> Iterator[tuple[str, Source, bool]]:
    """Yield for each file its name, its source, and whether the file is also in `sources`. Then the
    source is taken from `sources`; otherwise it has a unique file name."""
    used = {source.name for source in sources}
    for name, file in files.items():
        source, path = file if isinstance(file, Source) else Source.from_path(file), _path(file)
        same = next((each for each in sources if each.same_as(source)), None)
        if same is not None:
            yield name, same, True
            continue
        spellings = chain(
            (source.name, f"{path.resolve().parent.name}/{source.name} (run)"),
            (f"{path} (run {n})" for n in count(1)),
        )
        unused = next(each for each in spellings if each not in used)
        used.add(unused)
        yield name, replace(source, name=unused), False


def _path(file: Path | Source) -> Path:
    return Path(file.name) if isinstance(file, Source) else file


def _part(data: Dataset) -> ParsedFile:
    """Convert the tables of a data set to the part of a file."""

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
    """Return the part without its findings and refused rows."""
    return replace(part, findings=(), refusals=Refusals(part.file))
