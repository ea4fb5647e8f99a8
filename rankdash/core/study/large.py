"""Evaluation of files larger than memory, in pieces, with the same results as in one piece."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rankdash.core.base.errors import DataError, Finding
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.overlap import adds_documents, pooled
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.metrics import Conventions, Evaluation, Judged, Measure, evaluate, judge
from rankdash.core.metrics.judged import JudgedPieces
from rankdash.core.readers import Conflict, ReadLimits, Source
from rankdash.core.readers.checks.matching import match_labels
from rankdash.core.readers.files import parts_of
from rankdash.core.readers.formats.trec import (
    UnevenError,
    is_plain,
    order_of,
    pieces_for,
    split,
    unpacked_size,
)
from rankdash.core.readers.join.combine import rankings_in
from rankdash.core.readers.join.conflicts import join_labels
from rankdash.core.readers.join.parsed_file import Pairs
from rankdash.core.study.cache import Made
from rankdash.core.study.headroom import Ceilings
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, systems_of

if TYPE_CHECKING:
    from rankdash.core.base.rules import StatisticsSettings

LARGE_BYTES = 100_000_000
"""The total size above which files are split; smaller ones are faster in one piece."""

# Their scale ends at the highest label of the whole file, which is unknown while pieces are read.
_SCALED = ("err", "map_graded", "map_graded_norm")
_LIMITS = ReadLimits(rows=2**31)
_LINE = re.compile(r", line \d+")
_POOL = ""


@dataclass(frozen=True)
class LargeFiles:
    """Files of labels and rankings (system → file), and rules for labels. lost: system → query
    id → "failed" or "skipped", of the queries to drop from its ranking."""

    qrels: Path
    runs: Mapping[str, Path]
    conflict: Conflict
    worst_label: float | None
    lost: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def evaluate_large(
    files: LargeFiles, measures: Sequence[Measure], conventions: Conventions
) -> tuple[dict[str, Evaluation], list[Finding]] | None:
    """Return system → evaluation, and findings about the files; None if the files are not large or
    not plain TREC files, so that the caller reads them in one piece.

    Raises DataError if a file cannot be used or the disk is too full to split it; OSError.
    """
    if not conventions.err_top_label and any(each.metric.name in _SCALED for each in measures):
        return None
    with _split(files) as pieces:
        if pieces is None:
            return None
        evaluations: dict[str, list[Evaluation]] = {name: [] for name in files.runs}
        for labels, rankings in pieces.read():
            for name, ranking in rankings:
                judged = judge(ranking, labels, conventions)
                lost = files.lost.get(name, {})
                evaluations[name].append(evaluate(judged, measures, conventions, lost))
    return (
        {name: _joined(each, pieces.queries) for name, each in evaluations.items()},
        pieces.findings(),
    )


def study_large(
    files: LargeFiles,
    name: str,
    spec: str,
    others: Sequence[str],
    conventions: Conventions,
    statistics: Callable[[int], StatisticsSettings],
    run_of: Callable[[str, Ranking, Dataset], Run],
) -> tuple[Study, list[Finding]] | None:
    """Return the comparison of the first system with the others, and findings about the files; None
    and errors as for `evaluate_large`.

    The study has only labelled documents of the rankings, and no texts. run_of: makes a run of the
    queries of a ranking, without documents. name: of the data set. spec, others, conventions: as
    for a `Study`. statistics: number of labelled queries → settings.
    """
    baseline, *challengers = files.runs
    stored = JudgedPieces()
    present: dict[str, list[Any]] = {each: [] for each in files.runs}
    unlabelled: dict[str, list[str]] = {each: [] for each in files.runs}
    adding: set[str] = set()
    lacking: set[str] = set()
    with _split(files) as pieces:
        if pieces is None:
            return None
        for labels, read in pieces.read():
            rankings = dict(read)
            judged = {system: judge(each, labels, conventions) for system, each in rankings.items()}
            ids = judged[baseline].query_ids
            for system, each in judged.items():
                present[system].append(each.present)
                unlabelled[system] += each.unlabelled
            new = {
                system
                for system in challengers
                if adds_documents(rankings[system], rankings[baseline], ids)
            }
            adding |= new
            lacking |= {
                system
                for system in challengers
                if adds_documents(rankings[baseline], rankings[system], ids[judged[system].present])
            }
            # If no system ranks other documents than the first one, its documents are the pool.
            every = judge(pooled([*rankings.values()]), labels, conventions) if new else None
            stored.add({**judged, _POOL: judged[baseline] if every is None else every})
    ids = stored.query_ids()
    order = order_of(pieces.queries, ids)
    ids = ids[order]
    dataset = _without_rankings(name, ids)
    runs = {
        system: run_of(
            system,
            _queries_of([*ids[np.concatenate(present[system])[order]], *unlabelled[system]]),
            dataset,
        )
        for system in challengers
    }
    study = _LargeStudy.on(
        spec,
        others=tuple(others),
        dataset=dataset,
        systems=systems_of(dataset, runs.values(), baseline, files.lost.get(baseline)),
        baseline=FIRST_STAGE,
        challengers=tuple(run.id for run in runs.values()),
        conventions=conventions,
        statistics=statistics(len(order)),
        kept=stored,
        files={FIRST_STAGE: baseline, **{run.id: system for system, run in runs.items()}},
        queries=pieces.queries,
        adding=frozenset(adding),
        lacking=frozenset(lacking),
    )
    return study, pieces.findings()


@dataclass(frozen=True, eq=False)
class _LargeStudy(Study):
    """A study of labelled documents that are stored in pieces. files: system → its name among the
    pieces. queries: as from `split`. adding, lacking: names with documents that the first stage
    lacks, and names that lack documents of the first stage."""

    kept: JudgedPieces = field(kw_only=True, repr=False)
    files: Mapping[str, str] = field(kw_only=True, repr=False)
    queries: Any = field(kw_only=True, repr=False)
    adding: frozenset[str] = field(kw_only=True, repr=False)
    lacking: frozenset[str] = field(kw_only=True, repr=False)

    has_rankings = False

    def judged(self, system: str) -> Judged:
        raise KeyError(f"The ranking of {system} was read piece by piece.")

    def adds_documents(self, system: str) -> bool:
        return self.files[system] in self.adding

    def lacks_documents(self, system: str) -> bool:
        return self.files[system] in self.lacking

    def of_judged(self, system: str, make: Callable[[Judged], Made]) -> Made:
        return self._whole(self.files[system], make)

    def of_pool(self, make: Callable[[Judged], Made]) -> Made:
        return self._whole(_POOL, make)

    def _whole(self, name: str, make: Callable[[Judged], Made]) -> Made:
        parts: Any = [make(judged) for judged in self.kept.read(name)]
        first = parts[0]
        if isinstance(first, Evaluation):
            return cast(Made, _joined(parts, self.queries))
        if isinstance(first, Ceilings):
            return cast(Made, _joined_ceilings(parts, self.queries))
        return cast(Made, sum(parts[1:], first))


def _without_rankings(name: str, query_ids: Any) -> Dataset:
    import pandas as pd

    texts = pd.Series([None] * len(query_ids), dtype="str")
    labels = pd.DataFrame({"query_id": [], "doc_id": [], "label": []}, dtype="str")
    return Dataset(
        name,
        pd.DataFrame({"query_id": query_ids, "text": texts}),
        pd.DataFrame({"doc_id": [], "title": [], "text": []}, dtype="str"),
        labels.astype({"label": np.float64}),
        Ranking.from_lists([]),
    )


def _queries_of(ids: Sequence[str]) -> Ranking:
    """Return a ranking with these queries and no documents."""
    return replace(
        Ranking.from_lists([]),
        query_ids=np.array(ids, dtype=object),
        offsets=np.zeros(len(ids) + 1, dtype=np.int64),
        tied=np.zeros(len(ids), dtype=bool),
    )


@contextmanager
def _split(files: LargeFiles) -> Iterator[_Pieces | None]:
    """Yield the pieces of the files, which are deleted at the end; None as for
    `evaluate_large`."""
    paths = [files.qrels, *files.runs.values()]
    size = sum(map(unpacked_size, paths))
    shapes = ["qrels", *["run"] * len(files.runs)]
    if size <= LARGE_BYTES or not all(map(is_plain, paths, shapes)):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="rankdash-") as temporary:
        room = shutil.disk_usage(temporary).free
        if room < size:
            raise DataError(
                "Evaluating files of {size:.1f} GB needs as much free space in {folder}, which "
                "has {room:.1f} GB.",
                remedy="Free disk space, or set TMPDIR to another folder.",
                size=size / 1e9,
                room=room / 1e9,
                folder=tempfile.gettempdir(),
            )
        folders = [Path(temporary) / str(place) for place in range(len(paths))]
        count = pieces_for(size)
        queries = []
        try:
            for path, folder in zip(paths, folders, strict=True):
                folder.mkdir()
                queries.append(split(path, folder, count))
        except UnevenError:
            yield None
            return
        yield _Pieces(files, folders, count, queries[0])


class _Pieces:
    """Files split by query into `count` pieces, a folder for each file. queries: the labelled
    queries, as from `split`."""

    def __init__(
        self, files: LargeFiles, folders: Sequence[Path], count: int, queries: Any
    ) -> None:
        self.queries = queries
        self._files, self._folders, self._count = files, folders, count
        self._noticed: list[Finding] = []
        self._matched: dict[str, list[list[Finding]]] = {name: [] for name in files.runs}

    def read(self) -> Iterator[tuple[dict[str, Any], Iterator[tuple[str, Ranking]]]]:
        """Yield the labels and the rankings of each piece. Read the rankings before the next
        piece."""
        for piece in range(self._count):
            contents = [folder / str(piece) for folder in self._folders]
            labels = self._labels(contents[0])
            yield labels, self._rankings(contents[1:], labels)
            for content in contents:
                content.unlink()

    def _labels(self, content: Path) -> dict[str, Any]:
        pairs = Pairs.none()
        if content.stat().st_size:
            files = self._files
            parts, findings = parts_of(
                [Source(files.qrels.name, content.read_bytes())], limits=_LIMITS
            )
            pairs, more = join_labels(parts, files.conflict, files.worst_label)
            self._noticed += [*findings, *more]
            for part in parts:
                self._noticed += [*part.findings, *part.refusals.findings()]
        return {"query_id": pairs.queries, "doc_id": pairs.documents, "label": pairs.values}

    def _rankings(
        self, contents: Sequence[Path], labels: Mapping[str, Any]
    ) -> Iterator[tuple[str, Ranking]]:
        for (name, path), content in zip(self._files.runs.items(), contents, strict=True):
            ranking = self._ranking(path.name, content)
            lost = self._files.lost.get(name, ())
            if lost:
                ranking = ranking.without(lost)
            if len(labels["label"]) and len(ranking):
                matched = match_labels(name, ranking, labels, made_ids=False, lost=lost)
                self._matched[name].append(matched)
            yield name, ranking

    def _ranking(self, name: str, content: Path) -> Ranking:
        if not content.stat().st_size:
            return Ranking.from_lists([])
        parts, findings = parts_of([Source(name, content.read_bytes())], limits=_LIMITS)
        self._noticed += findings
        for part in parts:
            self._noticed += [*part.findings, *part.refusals.findings()]
        return rankings_in(parts, name)[""].ranking

    def findings(self) -> list[Finding]:
        """Return the findings about the whole files. Raises DataError if a ranking and the labels
        have no query in common."""
        findings = _together(self._noticed)
        for name, path in self._files.runs.items():
            lost = self._files.lost.get(name)
            labelled = len(self.queries)
            if lost:
                labelled -= len({query.encode() for query in lost} & {*self.queries.to_pylist()})
            findings += [
                replace(each, params={**each.params, "labelled": labelled})
                if "labelled" in each.params
                else each
                for each in _together(_of_all(self._matched[name], path))
            ]
        return findings


def _of_all(pieces: Sequence[Sequence[Finding]], path: Path) -> Iterator[Finding]:
    """Yield the findings about ranking and labels that apply to the whole files: errors only if
    every piece has them. Raises DataError if ranking and labels have no query in common."""
    none = [each for piece in pieces for each in piece if each.code == "queries_match_nothing"]
    if none and len(none) == len(pieces):
        raise _together(none)[0].as_error(str(path))
    errors = Counter(each.code for piece in pieces for each in piece if each.severity == "error")
    for each in chain.from_iterable(pieces):
        whole = errors[each.code] == len(pieces) - len(none)
        if each.severity != "error" or (whole and each not in none):
            yield each


def _joined(pieces: Sequence[Evaluation], queries: Any) -> Evaluation:
    """Concatenate evaluations, with queries in the order of the labels."""
    ids = np.concatenate([each.query_ids for each in pieces])
    order = order_of(queries, ids)
    counts = {key: sum(each.counts[key] for each in pieces) for key in pieces[0].counts}
    return replace(
        pieces[0],
        query_ids=ids[order],
        values=np.concatenate([each.values for each in pieces])[order],
        states=np.concatenate([each.states for each in pieces])[order],
        cell_states=np.concatenate([each.cell_states for each in pieces])[order],
        counts=counts,
    )


def _joined_ceilings(pieces: Sequence[Ceilings], queries: Any) -> Ceilings:
    """Concatenate ceilings, with queries in the order of the labels."""
    order = order_of(queries, np.concatenate([each.query_ids for each in pieces]))
    names = ("query_ids", "ceiling", "perfect", "recall")
    return replace(
        pieces[0],
        **{name: np.concatenate([getattr(each, name) for each in pieces])[order] for name in names},
    )


def _together(findings: Iterable[Finding]) -> list[Finding]:
    """Merge equal findings of several pieces and sum their counts. Line numbers are removed: they
    are positions in a piece, not in the file."""
    merged: dict[tuple[str, str, str], Finding] = {}
    for each in findings:
        key = (each.code, each.file, each.template)
        before = merged.get(key)
        if before is None:
            examples = tuple(_LINE.sub("", example) for example in each.examples)
            merged[key] = replace(each, line=None, examples=examples)
            continue
        sums = {name: _sum(value, each.params.get(name)) for name, value in before.params.items()}
        merged[key] = replace(before, params=sums, count=before.count + each.count)
    return list(merged.values())


def _sum(one: object, other: object) -> object:
    return one + other if isinstance(one, int) and isinstance(other, int) else one
