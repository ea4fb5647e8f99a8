"""`fuse`: rankings from files into one TREC run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rankdash.core.base.errors import DataError
from rankdash.core.readers import read_beside
from rankdash.core.rerankers.fusion import FUSION_SETTINGS, Fusion, fuse
from rankdash.core.words.queries import query_count
from rankdash.kit.commands.arguments import DONE, Parser, chosen_settings
from rankdash.kit.commands.output import (
    place_name,
    printable,
    spare_the_input,
    target_of,
    warn,
    write_ranking,
)

_NAMED = 3


def add(parser: Parser) -> None:
    parser.description = (
        "Fuse rankings of the same queries and write a TREC run. Only queries that every ranking "
        "has are written. A ranking adds nothing to a document that it lacks."
    )
    parser.several(
        "--run",
        "FILE",
        "a ranking, in any form that is read; at least two. Equal sums keep the order of the first",
        also=("--runs",),
        required=True,
    )
    parser.settings(FUSION_SETTINGS)
    parser.several(
        "--weight", "N", "one for each ranking, in their order (default: 1 each)", type=float
    )
    parser.option(
        "--out",
        "FILE",
        "the run to write; replaced if it exists; - is standard output",
        also=("-o",),
        required=True,
    )
    parser.set_defaults(command=_fuse)


def _fuse(arguments: argparse.Namespace) -> int:
    """Fuse and write; excluded queries are named on standard error."""
    how = Fusion(weights=tuple(arguments.weight), **chosen_settings(arguments, FUSION_SETTINGS))
    target = target_of(arguments.out)
    spare_the_input(target, arguments.run)
    # A text that stands for a query or document is the same one in all files.
    paths = {str(place): Path(path) for place, path in enumerate(arguments.run)}
    joined = read_beside((), paths)
    warn(joined.findings)
    rankings = [joined.rankings[place].ranking for place in paths]
    fused = fuse(rankings, how)
    if not len(fused.query_ids):
        raise DataError(
            "The rankings have no query in common.",
            remedy="Fuse runs over the same queries.",
        )
    write_ranking(fused, target, f"fusion-{how.method}")
    for path, ranking in zip(arguments.run, rankings, strict=True):
        lost = [query for query in ranking.query_ids if query not in fused.positions]
        if lost:
            named = ", ".join(printable(query) for query in lost[:_NAMED])
            sys.stderr.write(
                f"excluded, because not every ranking has them: {len(lost):,} of the queries of "
                f"{printable(path)}, such as {named}\n"
            )
    sys.stderr.write(f"{query_count(len(fused.query_ids))} fused. Written: {place_name(target)}\n")
    return DONE
