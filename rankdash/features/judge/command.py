"""`judge`: a language model's grades, and how far they can be trusted."""

from __future__ import annotations

import argparse

from rankdash.core.rerankers.remote.chat import JUDGE_SETTINGS, MOST_REPEATS
from rankdash.core.rerankers.remote.prompts import JUDGE
from rankdash.features.judge import command_agreement, command_run
from rankdash.kit.commands.arguments import (
    NAMES,
    Parser,
    add_first_stage,
    add_label_rules,
    add_labels,
    add_settings,
    settings_lines,
)

# Options of their own.
_APART = ("prompt", "guidelines", "repeats")


def add(parser: Parser) -> None:
    parser.description = (
        "Have a language model grade how relevant documents are. Its grades are kept apart from "
        "people's labels and never become labels."
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=Parser)
    _add_run(actions.add_parser("run", help="ask a chat endpoint for the grades of a pool"))
    _add_agreement(
        actions.add_parser("agreement", help="say how far judges agree with people's labels")
    )


def _add_run(parser: Parser) -> None:
    parser.description = (
        "Ask a chat endpoint for the grade of each document in the first ranks of the rankings, "
        "with its reason, and write them as CSV or JSON lines. What fails has no grade and its "
        "reason, never 0, and makes the exit code 1. Run again with the same file, it asks for the "
        "grades that are missing."
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.closing = lambda: "\n".join(
        [
            "settings of the endpoint and of the judge (--set key=value):",
            *settings_lines((spec for spec in JUDGE_SETTINGS if spec.name not in _APART), "  "),
        ]
    )
    parser.several(
        "--data",
        "PATH",
        f"the files, folder or archive with the texts of queries and documents{NAMES}",
        required=True,
    )
    parser.several(
        "--run",
        "FILE",
        "the rankings whose first documents are graded (default: those of the data)",
        also=("--runs",),
    )
    parser.number(
        "--depth", "how many documents of each ranking (default: %(default)s)", kind=int, default=10
    )
    parser.number(
        "--sample",
        "this many queries, with all their documents: first those with labels, then others, each "
        "drawn at random",
        kind=int,
    )
    parser.number(
        "--seed", "the same seed draws the same queries (default: %(default)s)", kind=int, default=0
    )
    parser.option(
        "--template",
        "NAME",
        f"the prompt: {' or '.join(JUDGE)}, or a text file with a prompt of your own that contains "
        "{query} and {document}, may contain {guidelines}, and asks for the reason first and then "
        "for a last line such as Grade: 2 (default: %(default)s)",
        default="graded",
    )
    parser.option("--guidelines", "FILE", "a text file with what people who label go by")
    parser.number(
        "--repeats",
        f"how often each pair is asked, up to {MOST_REPEATS}; more than once shows how far the "
        "judge agrees with itself (default: %(default)s)",
        kind=int,
        default=1,
    )
    add_settings(parser, "a setting of the endpoint or the judge; may be repeated")
    parser.option("--name", "NAME", "what the judge is called (default: its model)", default="")
    parser.flag("--yes", "start without asking, once the cost is shown")
    parser.option(
        "--out",
        "FILE",
        "the grades: CSV where the name ends in .csv, JSON lines where it ends in .jsonl; one "
        "that is there goes on",
        also=("-o",),
        required=True,
    )
    add_first_stage(parser)
    add_label_rules(parser)
    parser.set_defaults(command=command_run.run)


def _add_agreement(parser: Parser) -> None:
    parser.description = (
        "Say how far judges agree with people's labels, and which way they err. High agreement "
        "alone is no licence: a judge that errs in favour of one system turns a verdict around, "
        "which the rankings (--run) show. For the verdict that people's labels make of a judge's "
        "grades, see `compare --judge`."
    )
    parser.several(
        "--judge",
        "FILE",
        "the grades of each judge: CSV or JSON lines of query_id, doc_id and grade, as `judge run` "
        "writes them",
        required=True,
    )
    add_labels(parser)
    parser.several(
        "--data",
        "PATH",
        "the files with the texts: also by script and length of the query and by length of the "
        f"document, and the pairs whose text speaks to a judge{NAMES}",
    )
    parser.several(
        "--run",
        "FILE",
        "rankings, the first as the baseline: also by kind of query and by which of them ranks a "
        "document higher, on what these show",
        also=("--runs",),
    )
    parser.number(
        "--depth", "how many documents of each ranking (default: %(default)s)", kind=int, default=10
    )
    parser.number(
        "--threshold", "the lowest label that is relevant (default: %(default)g)", default=1.0
    )
    add_label_rules(parser)
    parser.formats(("text", "json"))
    parser.set_defaults(command=command_agreement.run)
