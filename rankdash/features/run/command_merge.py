"""`merge`: the shards of a run put together into the TREC run."""

from __future__ import annotations

import argparse
from pathlib import Path

from rankdash.core.runs.combining import complete, merge
from rankdash.kit.commands.arguments import DONE, INCOMPLETE, Parser
from rankdash.kit.commands.output import spare_the_input, target_of, writing
from rankdash.kit.commands.rankings import no_result, tell_queries, write_table


def add(parser: Parser) -> None:
    parser.description = (
        "Put the files of `rerank --shard` together into the TREC run that one run would have "
        "written. Refused where a shard is missing, twice, or of other data, another first stage "
        "or other settings. Exit code 1 where queries failed."
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
        "also write what became of each query and its latency, as `rerank --timings` does; each "
        "was measured on the machine of its shard",
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
