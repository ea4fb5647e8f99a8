"""`fuse`: rankings from files into one TREC run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rankdash.cli.target import spare_the_input, target_of
from rankdash.cli.writing import printable, warn
from rankdash.errors import DataError
from rankdash.readers import read_beside
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
    # A text that stands for a query or document is the same one in all files.
    paths = {str(place): Path(path) for place, path in enumerate(runs)}
    joined = read_beside((), paths)
    warn(joined.findings)
    rankings = [joined.rankings[place].ranking for place in paths]
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
