"""`retrieve`: retrieve from all documents of a data set into a TREC run."""

from __future__ import annotations

import argparse
import sys

from rankdash.core.data.dataset import Dataset
from rankdash.core.readers import read, sources_at
from rankdash.core.readers.loading import checked, usable
from rankdash.core.runs.retrieving import RETRIEVAL_SETTINGS, Retrieval, retrieved
from rankdash.core.words.queries import query_count
from rankdash.kit.commands.arguments import (
    DONE,
    INCOMPLETE,
    NAMES,
    Parser,
    add_label_rules,
    add_match,
    chosen_settings,
    columns_of,
)
from rankdash.kit.commands.output import (
    place_name,
    printable,
    spare_the_input,
    target_of,
    warn,
    write_ranking,
)
from rankdash.kit.commands.timings import write_timings


def add(parser: Parser) -> None:
    parser.description = (
        "Retrieve the best of all documents of a data set for each query, and write a TREC run, "
        "best first. To rerank these candidates, pass the file to `rerank` twice: to --data, and "
        "its name to --first-stage. Exit code 1 if a query has no text."
    )
    parser.several(
        "--data", "PATH", f"the files, folder or archive of the data set{NAMES}", required=True
    )
    parser.settings(RETRIEVAL_SETTINGS)
    parser.option(
        "--out",
        "FILE",
        "the run to write; an existing file is replaced, but never a file of the data set; - is "
        "standard output",
        also=("-o",),
        required=True,
    )
    parser.option(
        "--timings",
        "FILE",
        "also write the state of each query, as `rerank --timings` does; latency is not measured",
    )
    add_label_rules(parser)
    add_match(parser)
    parser.set_defaults(command=_command)


def _command(arguments: argparse.Namespace) -> int:
    """Retrieve and write; name failed queries on standard error."""
    how = Retrieval(**chosen_settings(arguments, RETRIEVAL_SETTINGS))
    target = target_of(arguments.out)
    table = None if arguments.timings is None else target_of(arguments.timings)
    for written in filter(None, (target, table)):
        spare_the_input(written, arguments.data)
    run = retrieved(without_first_stage(arguments), how, how.how)
    write_ranking(run.ranking, target, run.name)
    if table is not None:
        write_timings(run, table)
    failed = run.queries[run.queries["state"] == "failed"]
    for query, reason in zip(failed["query_id"], failed["reason"], strict=True):
        sys.stderr.write(f"failed: query {printable(query)}: {printable(reason)}\n")
    done, found = len(run.queries) - len(failed), len(run.ranking.query_ids)
    without = f", {done - found:,} of them without a match" if found < done else ""
    sys.stderr.write(
        f"{query_count(done)} retrieved{without}, {len(failed):,} failed. "
        f"Written: {place_name(target)}\n"
    )
    return DONE if failed.empty else INCOMPLETE


def without_first_stage(arguments: argparse.Namespace) -> Dataset:
    """Return the data set in --data, whose first stage is not used; print its warnings."""
    parsed = read(
        sources_at(arguments.data),
        conflict=arguments.conflict,
        worst_label=arguments.worst_label,
        match=arguments.match,
        columns=columns_of(arguments.columns),
    )
    loaded = usable(
        checked(parsed, retrieval="bm25" if parsed.candidates is None else None, retrieved=1)
    )
    warn(each for each in loaded.report.warnings if each.code != "made_first_stage")
    return loaded.dataset
