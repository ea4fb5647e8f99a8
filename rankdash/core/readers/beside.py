"""Rankings from files, read beside labels or beside a data set: every file once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError, Finding, refused
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers.files import parts_of, told
from rankdash.core.readers.join.combine import combine, identified, rankings_in
from rankdash.core.readers.join.conflicts import Conflict, join_labels
from rankdash.core.readers.join.interpret import refuse_lacking
from rankdash.core.readers.join.parsed_file import Pairs, Parsed, ParsedFile, noticed
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.skipped_rows import Refusals
from rankdash.core.readers.parse.source import Source


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
        found = [part.draws for part in self._kept if part.draws is not None]
        return pd.concat(found, ignore_index=True) if found else None

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
            apart = not any(own for _, _, own in named)
        parts, findings = parts_of(
            sources, columns=_without(columns, _ORDERS if apart else ()), limits=limits
        )
    keyed = any(part.keyed_by_text for part in parts)
    called: dict[str, str] = {}
    by_text: dict[str, bool] = {}
    found: dict[str, list[ParsedFile]] = {}
    ranked: dict[str, dict[str, Ranking]] = {}
    problems: list[DataError] = []
    columned: list[ParsedFile] = []
    for name, source, own in named:
        called[name], by_text[name] = source.name, keyed
        if own:
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
        found[name] = [replace(part, labels=Pairs.none()) for part in read]
    if problems:
        raise refused(problems)
    refuse_lacking(columns, [*parts, *columned])
    kept, beside, notes = identified(parts, [part for read in found.values() for part in read])
    findings += notes
    placed = iter(beside)
    found = {name: [next(placed) for _ in read] for name, read in found.items()}
    # The data set counts the rows that it refuses for its own rankings itself.
    known_parts = kept if start else [_counted_apart(part) for part in kept]
    rankings: dict[str, Beside] = {}
    for name, path in files.items():
        if name not in ranked:
            ranked[name] = rankings_in(found.get(name, known_parts), called[name])
        if not ranked[name]:
            raise _no_ranking(path)
        for other, ranking in ranked[name].items():
            if other and name not in found:
                continue
            system = f"{name}/{other}" if other else name
            while system in rankings or (other and system in files):
                system += " (2)"
            rankings[system] = Beside(ranking, path, by_text[name])
    for part in beside:
        findings += [*part.findings, *part.refusals.findings()]
    first = next(iter(files), "")
    starting = found.get(first, []) if start else []
    return Joined(
        rankings=rankings,
        findings=tuple(findings),
        _read=[*parts, *starting],
        _kept=[*kept, *(_counted_apart(part) for part in starting)],
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


def _no_ranking(path: Path) -> DataError:
    return DataError(
        "The file holds no ranking: there are neither scores nor ranks in it.",
        remedy="A ranking has a score or a rank for each query and document, like a TREC run.",
        file=str(path),
    )


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
