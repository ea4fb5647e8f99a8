"""Rankings from files, read together with the labels and held against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from rankdash.analysis.labels.matching import match_labels
from rankdash.errors import DataError
from rankdash.findings import Finding
from rankdash.ranking.ranking import Ranking
from rankdash.readers import Conflict, Parsed, Source, read

# What a reader notes when a file names queries or documents by their text only.
_NAMED_BY_TEXT = {"made_query_id", "made_doc_id"}


def names_of(runs: Sequence[str]) -> dict[str, Path]:
    """System name → file: its stem, with as many folders before it as tell two files apart.

    Raises DataError where a file is given twice.
    """
    paths = [Path(run) for run in runs]
    folders = [path.resolve().parts[1:-1] for path in paths]
    twice = [path for path, n in Counter(path.resolve() for path in paths).items() if n > 1]
    if twice:
        raise DataError("The ranking is given twice.", remedy="Name it once.", file=str(twice[0]))
    stems = [
        (*folder, Source(path.name, b"").stem) for folder, path in zip(folders, paths, strict=True)
    ]
    # Two endings of one name in one folder, such as a.trec and a.csv: only the whole name tells
    # them apart.
    wholes = [(*folder, path.name) for folder, path in zip(folders, paths, strict=True)]
    named: dict[str, Path] = {}
    for path, stem, whole in zip(paths, stems, wholes, strict=True):
        name = _telling(stem, stems) or _telling(whole, wholes) or str(path)
        named[str(path) if name in named else name] = path
    return named


def _telling(parts: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> str | None:
    """The shortest end of the parts that no other has; None where another is the same."""
    for length in range(1, len(parts) + 1):
        if [other[-length:] for other in others].count(parts[-length:]) == 1:
            return "/".join(parts[-length:])
    return None


def with_run(path: Path, others: Sequence[Source]) -> tuple[list[Source], str]:
    """The others and the file of a ranking, which may be one of them; and what it is called there,
    which none of the others is."""
    source = Source.from_path(path)
    for other in others:
        if other.data == source.data:
            return list(others), other.name
    if any(source.name == other.name for other in others):
        source = replace(source, name=f"{path.resolve().parent.name}/{source.name} (run)")
    return [*others, source], source.name


def read_run(path: Path, labels: Sequence[Source], conflict: Conflict) -> Parsed:
    """The ranking in a file, read together with the labels, so that queries and documents which
    both give by their text only are the same ones. Raises DataError where it holds none."""
    sources, name = with_run(path, labels)
    own = any(name == source.name for source in labels)
    try:
        parsed = read(
            sources, conflict=conflict, first_stage=name, unlabelled=None if own else name
        )
    except DataError as problem:
        if problem.params.get("wanted") != name:
            raise
        raise no_ranking(path) from problem
    return parsed


def no_ranking(path: Path) -> DataError:
    """What to raise for a file that ranks nothing."""
    return DataError(
        "The file holds no ranking: there are neither scores nor ranks in it.",
        remedy="A ranking has a score or a rank for each query and document, as a TREC run does.",
        file=str(path),
    )


def made_ids(parsed: Parsed) -> bool:
    """Whether queries or documents are named by their text."""
    return any(finding.code in _NAMED_BY_TEXT for finding in parsed.findings)


def matching(
    name: str, ranking: Ranking, labels: pd.DataFrame, path: Path, by_text: bool
) -> list[Finding]:
    """What is odd about ranking and labels together. Raises DataError where they have no query in
    common."""
    found = match_labels(name, ranking, labels, made_ids=by_text)
    for finding in found:
        if finding.code == "queries_match_nothing":
            raise finding.as_error(str(path))
    return found
