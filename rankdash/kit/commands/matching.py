"""The option that says how the queries of labels are found."""

from __future__ import annotations

from rankdash.kit.commands.arguments import Parser


def add_match(parser: Parser) -> None:
    """Add --match."""
    parser.choice(
        "--match",
        ("id", "order"),
        "how the queries of labels are found: by their id, or, if the labels count them 1, 2, "
        "3 …, by their order in the file of queries (default: %(default)s)",
        default="id",
    )
