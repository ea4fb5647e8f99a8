"""`sample-log`: sample queries of a log by frequency, with known probabilities."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rankdash.core.base.i18n import plain
from rankdash.core.base.rules import SEED
from rankdash.features.overview.command_evaluate import import_late
from rankdash.kit.commands.arguments import DONE, Parser
from rankdash.kit.commands.output import (
    aligned,
    csv_line,
    place_name,
    printable,
    spare_the_input,
    target_of,
    write,
)


def add(parser: Parser) -> None:
    import_late("pandas")
    parser.description = (
        "Sample queries of a log by frequency. Head, torso and tail contain about a third of the "
        "searches each; within them, the probability of a query is proportional to its frequency. "
        "The output is a table of queries for the other commands and the page Data: query_id, "
        "text, frequency, stratum and probability."
    )
    parser.add_argument(
        "log",
        metavar="LOG",
        help="a text file with one query per line; a table (CSV, TSV) with a column query and "
        "optionally frequency or count; or UBI queries. UBI queries are JSON lines or a table with "
        "user_query. A log may be compressed with gzip, bzip2 or Zstandard",
    )
    parser.number("--queries", "the number of queries to sample", kind=int, required=True)
    parser.number(
        "--seed",
        "random seed; the same seed gives the same sample (default: %(default)s)",
        kind=int,
        default=SEED,
    )
    parser.option(
        "--out",
        "FILE",
        "the CSV file to write; an existing file is replaced; - is standard output",
        also=("-o",),
        required=True,
    )
    parser.set_defaults(command=_command)


def _command(arguments: argparse.Namespace) -> int:
    """Write the sample; describe the log and its strata on standard error."""
    from rankdash.core.readers.logs import Log
    from rankdash.core.sampling.log_sample import sample_log

    target = target_of(arguments.out)
    spare_the_input(target, [arguments.log])
    log = Log(Path(arguments.log))
    sample = sample_log(log.pieces(), arguments.queries, arguments.seed)
    rows = sample.table.itertuples(index=False)
    lines = [
        csv_line(sample.table.columns),
        *(
            csv_line([query, text, plain(frequency), stratum, repr(probability)])
            for query, text, frequency, stratum, probability in rows
        ),
    ]
    write("".join(lines).encode(), target)
    counts = f", counts from the column {printable(log.count)}" if log.count else ""
    sys.stderr.write(
        f"Log: {log.kind}{counts}, {plain(sample.searches)} searches, "
        f"{sample.queries:,} distinct queries.\n"
    )
    if log.skipped:
        sys.stderr.write(f"Lines without a query, skipped: {log.skipped:,}\n")
    sys.stderr.write(
        aligned(
            [
                ["stratum", "queries", "searches", "share", "sampled"],
                *(
                    [
                        each.name,
                        f"{each.queries:,}",
                        plain(each.searches),
                        f"{each.searches / sample.searches:.1%}",
                        f"{each.sampled:,}",
                    ]
                    for each in sample.strata
                ),
            ]
        )
    )
    sys.stderr.write(f"Queries sampled: {len(sample.table):,}. Written: {place_name(target)}\n")
    return DONE
