"""`fuse`: rankings from files into one TREC run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from rankdash.cli.rankings import no_ranking
from rankdash.cli.target import spare_the_input, target_of
from rankdash.cli.writing import printable, warn
from rankdash.errors import DataError
from rankdash.ranking.ranking import Ranking
from rankdash.readers import Parsed, Source
from rankdash.readers.beside import read_ranking, refuse_chance
from rankdash.readers.join.parsed_file import empty
from rankdash.reporting.exports.trec import write_run
from rankdash.rerankers.fusion import Fusion, fuse

_NAMED = 3


def fuse_files(runs: Sequence[str], how: Fusion, out: str) -> None:
    """Combine and write; queries that are left out are named on standard error.

    Raises DataError where a file holds no ranking or there is no query in common, and where `out`
    would replace one of `runs`.
    """
    target = target_of(out)
    spare_the_input(target, runs)
    rankings = _rankings([Path(path) for path in runs])
    fused = fuse(rankings, how)
    if not len(fused.query_ids):
        raise DataError(
            "The rankings have no query in common.",
            remedy="Combine runs over the same queries.",
        )
    write_run(fused, target, f"fusion-{how.method}")
    for path, ranking in zip(runs, rankings, strict=True):
        lost = [query for query in ranking.query_ids if query not in fused.positions]
        if lost:
            named = ", ".join(printable(query) for query in lost[:_NAMED])
            sys.stderr.write(
                f"left out, because not every ranking has them: {len(lost):,} of the queries of "
                f"{printable(path)}, such as {named}\n"
            )
    sys.stderr.write(
        f"{len(fused.query_ids):,} queries combined. Written: {printable(str(target))}\n"
    )


def _rankings(paths: Sequence[Path]) -> list[Ranking]:
    """The ranking of each file. A text that stands for a query or document is the same one in all
    of them."""
    found: list[Ranking] = []
    read: list[tuple[Parsed, Path]] = []
    queries, documents = empty("query_id", "text"), empty("doc_id", "text")
    for path in paths:
        parsed = read_ranking(Source.from_path(path), queries, documents)
        warn(parsed.findings)
        if parsed.candidates is None:
            raise no_ranking(path)
        for earlier, file in read:
            refuse_chance(earlier, parsed.queries, parsed.documents, str(file))
        read.append((parsed, path))
        found.append(parsed.candidates)
        queries = _more(queries, parsed.queries, "query_id")
        documents = _more(documents, parsed.documents, "doc_id")
    return found


def _more(table: pd.DataFrame, found: pd.DataFrame, key: str) -> pd.DataFrame:
    """The ids so far and those of one file more, with their texts."""
    both = pd.concat([table, found[[key, "text"]]], ignore_index=True)
    return both.groupby(key, sort=False).first().reset_index()
