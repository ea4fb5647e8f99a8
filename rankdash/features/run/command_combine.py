"""`merge` and `fuse`: combine the shards of a run, or several rankings, into one TREC run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rankdash.core.base.errors import DataError, SettingError
from rankdash.core.metrics import Conventions
from rankdash.core.readers import read_beside
from rankdash.core.rerankers.fusion import FUSION_SETTINGS, Fusion, fuse
from rankdash.core.runs.combining import complete, merge
from rankdash.core.words.queries import query_count
from rankdash.kit.commands.arguments import DONE, INCOMPLETE, Parser, chosen_settings
from rankdash.kit.commands.output import (
    aligned,
    place_name,
    printable,
    spare_the_input,
    target_of,
    warn,
    write_ranking,
    writing,
)
from rankdash.kit.commands.rankings import Rules, scores_of
from rankdash.kit.commands.timings import no_result, tell_queries, write_table


def add_merge(parser: Parser) -> None:
    parser.description = (
        "Combine the files of `rerank --shard` into the TREC run that a single run would have "
        "written. Fails if a shard is missing or duplicate, or if data, first stage or settings "
        "differ. Exit code 1 if queries failed."
    )
    parser.add_argument(
        "shards", nargs="+", metavar="FILE", help="the files of all shards, in any order"
    )
    parser.option(
        "--out",
        "FILE",
        "the run to write; replaced if it exists; - is standard output",
        also=("-o",),
        required=True,
    )
    parser.option(
        "--timings",
        "FILE",
        "also write the state and the latency of each query, as `rerank --timings` does; latency "
        "is measured on the machine of the shard",
    )
    parser.set_defaults(command=_merge)


def _merge(arguments: argparse.Namespace) -> int:
    target = target_of(arguments.out)
    table = None if arguments.timings is None else target_of(arguments.timings)
    for written in filter(None, (target, table)):
        spare_the_input(written, arguments.shards)
    parts = complete([Path(path) for path in arguments.shards])
    with writing(target) as file:
        queries = merge(parts, file)
        if not (queries["state"] == "done").any():
            raise no_result(queries)
    if table is not None:
        write_table(
            queries.drop(columns="repeated_ms"),
            dict(zip(queries["query_id"], queries["repeated_ms"], strict=True)),
            table,
        )
    return DONE if tell_queries(queries, target) else INCOMPLETE


_NAMED = 3


def add_fuse(parser: Parser) -> None:
    parser.description = (
        "Fuse rankings of the same queries and write a TREC run. Only queries that every ranking "
        "has are written. A ranking contributes nothing to a document that it lacks."
    )
    parser.several(
        "--run",
        "FILE",
        "a ranking in any supported format; at least two. Documents with equal sums stay in the "
        "order of the first",
        also=("--runs",),
        required=True,
    )
    parser.settings(FUSION_SETTINGS)
    parser.several(
        "--weight",
        "N",
        "a weight for each ranking, in the same order (default: 1 each)",
        type=float,
    )
    parser.option(
        "--out",
        "FILE",
        "the run to write; replaced if it exists; - is standard output",
        also=("-o",),
    )
    parser.option(
        "--tune",
        "QRELS",
        "write no run; print the gain of tuned weights over equal RRF for two to four rankings, on "
        "the queries used for tuning and on held-out queries (nested cross-validation)",
    )
    parser.option("--metric", "SPEC", "of --tune (default: %(default)s)", default="ndcg@10")
    parser.set_defaults(command=_fuse)


def _fuse(arguments: argparse.Namespace) -> int:
    """Fuse and write; name excluded queries on standard error."""
    if arguments.tune is not None:
        return _tune(arguments)
    if arguments.out is None:
        raise SettingError("--out or --tune is missing.", remedy="For example: --out fused.trec")
    how = Fusion(weights=tuple(arguments.weight), **chosen_settings(arguments, FUSION_SETTINGS))
    target = target_of(arguments.out)
    spare_the_input(target, arguments.run)
    # The same text is the same query or document in all files.
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


def _tune(arguments: argparse.Namespace) -> int:
    """Print the gains of tuned weights; store nothing."""
    from rankdash.features.policy.words import tuned_text

    study = scores_of(arguments.tune, arguments.run, Rules(Conventions()), arguments.metric, ())
    sys.stdout.write(tuned_text(study, aligned))
    return DONE
