"""`fuse` and its arguments."""

from __future__ import annotations

import argparse

from rankdash.cli.commands.parsing import DONE, Commands, Parser


def add(commands: Commands[Parser]) -> None:
    parser = commands.add_parser(
        "fuse",
        help="combine rankings into one, without scoring anything",
        description="Combine rankings of the same queries and write a TREC run. Only queries that "
        "every ranking has are written. A document that a ranking does not hold counts as its "
        "worst there.",
    )
    argument = parser.add_argument
    argument(
        "--run",
        required=True,
        nargs="+",
        action="extend",
        metavar="FILE",
        help="a ranking, in any form that is read; at least two. Equal sums keep the order of the "
        "first",
    )
    argument(
        "--method",
        choices=("rrf", "minmax", "z"),
        default="rrf",
        help="rrf: by ranks, 1 / (k + rank). minmax, z: by scores, stretched to 0 … 1 or in "
        "standard deviations for each query (default: %(default)s)",
    )
    argument(
        "--weight",
        type=float,
        nargs="+",
        action="extend",
        default=[],
        metavar="N",
        help="one for each ranking, in their order (default: 1 each)",
    )
    argument(
        "--k",
        type=float,
        default=60.0,
        metavar="N",
        help="for rrf: the larger, the less the very top counts (default: 60)",
    )
    argument("--out", required=True, metavar="FILE", help="the run to write; replaced if it exists")
    parser.set_defaults(command=_fuse)


def _fuse(arguments: argparse.Namespace) -> int:
    from rankdash.cli.fuse import fuse_files
    from rankdash.rerankers.fusion import Fusion

    how = Fusion(arguments.method, tuple(arguments.weight), arguments.k)
    fuse_files(arguments.run, how, arguments.out)
    return DONE
