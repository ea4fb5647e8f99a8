"""Metrics of files that memory cannot hold, piece by piece: the same numbers as of the whole."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rankdash.analysis.labels.matching import match_labels
from rankdash.errors import DataError
from rankdash.findings import Finding
from rankdash.metrics import Conventions, Evaluation, Measure, evaluate, judge
from rankdash.ranking.ranking import Ranking
from rankdash.readers import Conflict, ReadLimits, Source
from rankdash.readers.files import parts_of
from rankdash.readers.join.combine import rankings_in
from rankdash.readers.join.conflicts import join_labels
from rankdash.readers.join.parsed_file import Pairs
from rankdash.readers.split import UnevenError, is_plain, order_of, pieces_for, split

LARGE_BYTES = 100_000_000
"""Files of more than this in all are split; smaller ones are faster read as a whole."""

# Their scale ends at the highest label of all, which no piece knows.
_SCALED = ("err", "map_graded", "map_graded_norm")
_LIMITS = ReadLimits(rows=2**31)


def evaluate_large(
    qrels: Path,
    runs: Mapping[str, Path],
    measures: Sequence[Measure],
    conventions: Conventions,
    conflict: Conflict,
    worst_label: float | None,
) -> tuple[dict[str, Evaluation], list[Finding]] | None:
    """System → evaluation of its file, and what is odd about the files; None where the files are
    not large, or are not plain TREC files, which are read as a whole.

    Raises DataError where a file cannot be used or there is no room to split it, OSError.
    """
    paths = [qrels, *runs.values()]
    size = sum(path.stat().st_size for path in paths if path.is_file())
    shapes = ["qrels", *["run"] * len(runs)]
    if size <= LARGE_BYTES or not all(map(is_plain, paths, shapes)):
        return None
    if not conventions.err_top_label and any(each.metric.name in _SCALED for each in measures):
        return None
    with tempfile.TemporaryDirectory(prefix="rankdash-") as made:
        room = shutil.disk_usage(made).free
        if room < size:
            raise DataError(
                "To evaluate files of {size:.1f} GB, as much room is needed in {folder}, where "
                "{room:.1f} GB are free.",
                remedy="Make room, or name another folder in TMPDIR.",
                size=size / 1e9,
                room=room / 1e9,
                folder=tempfile.gettempdir(),
            )
        folders = [Path(made) / str(place) for place in range(len(paths))]
        pieces = pieces_for(size)
        queries = []
        for path, folder in zip(paths, folders, strict=True):
            folder.mkdir()
            try:
                queries.append(split(path, folder, pieces))
            except UnevenError:
                return None
        found: dict[str, list[Evaluation]] = {name: [] for name in runs}
        noticed: list[Finding] = []
        matched: dict[str, list[list[Finding]]] = {name: [] for name in runs}
        for piece in range(pieces):
            contents = [folder / str(piece) for folder in folders]
            labels = _labels(qrels.name, contents[0], conflict, worst_label, noticed)
            for (name, path), content in zip(runs.items(), contents[1:], strict=True):
                ranking = _ranking(path.name, content, noticed)
                if len(labels["label"]) and len(ranking):
                    matched[name].append(match_labels(name, ranking, labels, made_ids=False))
                found[name].append(
                    evaluate(judge(ranking, labels, conventions), measures, conventions)
                )
            for content in contents:
                content.unlink()
    for name, path in runs.items():
        noticed += _of_all(matched[name], path)
    return (
        {name: _joined(each, queries[0]) for name, each in found.items()},
        _together(noticed, len(queries[0])),
    )


def _of_all(pieces: Sequence[Sequence[Finding]], path: Path) -> Iterator[Finding]:
    """What holds of the whole, of what is odd about ranking and labels in each piece. Raises
    DataError where they have no query in common."""
    none = [each for piece in pieces for each in piece if each.code == "queries_match_nothing"]
    if none and len(none) == len(pieces):
        raise _together(none, 0)[0].as_error(str(path))
    errors = Counter(each.code for piece in pieces for each in piece if each.severity == "error")
    for each in chain.from_iterable(pieces):
        whole = errors[each.code] == len(pieces) - len(none)
        if each.severity != "error" or (whole and each not in none):
            yield each


def _labels(
    name: str,
    content: Path,
    conflict: Conflict,
    worst_label: float | None,
    noticed: list[Finding],
) -> dict[str, Any]:
    pairs = Pairs.none()
    if content.stat().st_size:
        parts, findings = parts_of([Source(name, content.read_bytes())], limits=_LIMITS)
        pairs, more = join_labels(parts, conflict, worst_label)
        noticed += [*findings, *more]
        for part in parts:
            noticed += [*part.findings, *part.refusals.findings()]
    return {"query_id": pairs.queries, "doc_id": pairs.documents, "label": pairs.values}


def _ranking(name: str, content: Path, noticed: list[Finding]) -> Ranking:
    if not content.stat().st_size:
        return Ranking.from_lists([])
    parts, findings = parts_of([Source(name, content.read_bytes())], limits=_LIMITS)
    noticed += findings
    for part in parts:
        noticed += [*part.findings, *part.refusals.findings()]
    return rankings_in(parts, name)[""]


def _joined(pieces: Sequence[Evaluation], queries: Any) -> Evaluation:
    """One evaluation of all, its queries in the order of the labels."""
    ids = np.concatenate([each.query_ids for each in pieces])
    order = order_of(queries, ids.tolist())
    counts = {key: sum(each.counts[key] for each in pieces) for key in pieces[0].counts}
    return replace(
        pieces[0],
        query_ids=ids[order],
        values=np.concatenate([each.values for each in pieces])[order],
        states=np.concatenate([each.states for each in pieces])[order],
        cell_states=np.concatenate([each.cell_states for each in pieces])[order],
        counts=counts,
    )


def _together(findings: Iterable[Finding], labelled: int) -> list[Finding]:
    """What was found in several pieces, once, with the counts of all. Lines are those of a piece,
    which say nothing of the file."""
    found: dict[tuple[str, str, str], Finding] = {}
    for each in findings:
        key = (each.code, each.file, each.template)
        before = found.get(key)
        if before is None:
            found[key] = replace(each, line=None)
            continue
        sums = {name: _sum(value, each.params.get(name)) for name, value in before.params.items()}
        found[key] = replace(before, params=sums, count=before.count + each.count)
    return [
        replace(each, params={**each.params, "labelled": labelled})
        if "labelled" in each.params
        else each
        for each in found.values()
    ]


def _sum(one: object, other: object) -> object:
    return one + other if isinstance(one, int) and isinstance(other, int) else one
