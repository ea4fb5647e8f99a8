"""`label`: which documents to label, and what the labels say so far, for any front end."""

from __future__ import annotations

from rankdash.core.sampling.additive import ADDITIVE
from rankdash.core.sampling.draws import LEVEL, MODES
from rankdash.features.label import command_actions
from rankdash.kit.commands.arguments import Parser, add_label_rules


def add(parser: Parser) -> None:
    parser.description = (
        "Label to the verdict: say which documents to label next so that few labels settle which "
        "ranking is better, take the labels, and say how sure the answer is. Every action but plan "
        "reads the plan, one file with all draws and answers; answers are only ever appended."
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=Parser)
    for name, help_line, put in (
        ("plan", "make a plan from rankings", _add_plan),
        ("next", "say which pairs to label next", _add_next),
        ("add", "add labels to a plan", _add_add),
        ("status", "say what the labels say so far", _add_status),
    ):
        action = actions.add_parser(name, help=help_line)
        if name != "plan":
            action.add_argument("plan", metavar="PLAN", help="the file that `label plan` wrote")
        put(action)
        if name != "next":
            add_label_rules(action)
        action.formats(("text", "json"))


def _add_plan(parser: Parser) -> None:
    parser.description = (
        "Pool the rankings and draw the order in which pairs of query and document are to be "
        "labelled, each with a known probability."
    )
    parser.several(
        "--run",
        "FILE",
        "the rankings, in any form that is read; at least two. Each is compared with the first",
        also=("--runs",),
        required=True,
    )
    parser.option(
        "--metric",
        "SPEC",
        f"a sum over documents with a cutoff: {', '.join(ADDITIVE)} (default: %(default)s)",
        default="dcg@10",
    )
    parser.number("--top", "the highest label of the scale, such as 3 for grades 0 to 3")
    parser.number(
        "--threshold", "the lowest label that is relevant (default: %(default)g)", default=1.0
    )
    parser.option("--qrels", "FILE", "labels that are there already; they are not asked for again")
    parser.choice(
        "--mode",
        MODES,
        "what is drawn. weight: pairs, each in proportion to what it weighs in the difference, "
        "which takes the fewest labels; random: pairs, all equally likely; query: queries, all "
        "equally likely, each with all of its documents (default: %(default)s)",
        default="weight",
    )
    parser.flag("--all-pairs", "compare every ranking with every other")
    parser.number(
        "--confidence",
        "the confidence of all intervals together, at every look (default: %(default)s)",
        default=LEVEL,
    )
    parser.number(
        "--seed", "the same seed draws the same order (default: %(default)s)", kind=int, default=1
    )
    parser.option("--out", "FILE", "the plan to write; an existing file is kept", required=True)
    parser.set_defaults(command=command_actions.make)


def _add_next(parser: Parser) -> None:
    parser.description = (
        "Say which pairs to label next. Nothing in it tells which system ranks a document, or "
        "where. All who ask before an answer is added get the same pairs."
    )
    parser.option("--rater", "NAME", "who labels (default: nobody's name)", default="")
    parser.number("--count", "how many pairs at most (default: %(default)s)", kind=int, default=1)
    parser.number(
        "--double",
        "the share of pairs that a second rater gets too, from 0 to 1 (default: 0)",
        default=0.0,
    )
    parser.several("--data", "PATH", "files with the texts of queries and documents")
    parser.choice(
        "--order",
        command_actions.ORDERS,
        "draws: as they were drawn, so that the estimate counts each label at once. effect: those "
        "first that can move the difference most; such labels are no random sample, so they wait "
        "in the estimate until the draws before them have one (default: %(default)s)",
        default=command_actions.ORDERS[0],
    )
    parser.option(
        "--out",
        "FILE",
        "write them as CSV to fill in, with an empty label, the draw and its probability, for "
        "label add; replaced if it exists; - is standard output",
    )
    parser.set_defaults(command=command_actions.draw)


def _add_add(parser: Parser) -> None:
    parser.description = (
        "Add the labels of a file, or one label. Without --rater, a column rater, annotator or who "
        "says whose each is. A later label of a rater replaces an earlier one for the same pair."
    )
    parser.add_argument(
        "labels",
        metavar="LABELS",
        nargs="?",
        help="a file of labels, in any form that is read; - is standard input",
    )
    parser.option("--query", "ID", "for one label: the id of its query")
    parser.option("--doc", "ID", "for one label: the id of its document")
    parser.number("--label", "for one label: the label")
    parser.flag("--cannot-tell", "for one label: that it cannot be told")
    parser.option("--rater", "NAME", "who labelled (default: nobody's name)", default="")
    parser.set_defaults(command=command_actions.take)


def _add_status(parser: Parser) -> None:
    parser.description = (
        "Report what the labels say so far: the difference, also relative to the baseline, with an "
        "interval that is valid however often one looks, whether it is conclusive, and how many "
        "more labels it takes. Queries without a relevant document count as 0."
    )
    parser.option(
        "--judge",
        "FILE",
        "grades of a judge, such as a language model, on the same scale; they lower how many "
        "labels are needed, and cannot make the answer wrong",
    )
    parser.option(
        "--out",
        "FILE",
        "also write the labels as CSV, with the draw, its probability, rater and time, or as TREC "
        "qrels where the name ends in .qrels; replaced if it exists; - is standard output",
    )
    parser.set_defaults(command=command_actions.tell)
