"""The commands, their arguments, and what happens when something goes wrong.

Exit codes: 0 done; 1 the data has errors (`check`) or some queries failed (`rerank`); 2 nothing
could be done, with one line on standard error that says what, where and what to do; 130 stopped by
Ctrl+C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from rankdash.errors import RankdashError

if TYPE_CHECKING:
    from rankdash.metrics import Conventions

DONE, INCOMPLETE, REFUSED, INTERRUPTED = 0, 1, 2, 130
DEFAULT_METRICS = "ndcg@10,mrr@10,map,recall@10,judged@10"


class _UsageError(Exception):
    """The arguments make no sense; the message is argparse's own."""


class _Parser(argparse.ArgumentParser):
    """Refuses with one line; `closing` writes the end of the help text when it is asked for."""

    closing: Callable[[], str] | None = None

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message}. See: {self.prog} --help")

    def format_help(self) -> str:
        if self.closing is not None:
            self.epilog = self.closing()
        return super().format_help()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command (None: the program's own arguments) and give its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not end the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        arguments = _parser().parse_args(argv)
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except _UsageError as problem:
        return _refuse(str(problem))
    except RankdashError as problem:
        return _refuse(str(problem))
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough. Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as problem:
        return _refuse(f"{problem.filename or 'The system'}: {problem.strerror or problem}.")
    except Exception as problem:  # noqa: BLE001 - a user is never shown a traceback
        return _refuse(
            f"This is a fault of rankdash, please report it: {type(problem).__name__}: {problem}"
        )
    return code


def _refuse(message: str) -> int:
    from rankdash.cli.writing import one_line

    sys.stderr.write(f"error: {one_line(message)}\n")
    return REFUSED


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m rankdash",
        description="Does reranking help, for which queries? The dashboard starts with: "
        "streamlit run app.py",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    _add_check(commands)
    _add_evaluate(commands)
    _add_compare(commands)
    _add_rerank(commands)
    return parser


_Commands = argparse._SubParsersAction


def _add_check(commands: _Commands[_Parser]) -> None:
    parser = commands.add_parser(
        "check",
        help="read the files of a data set and say what is in them and what is wrong",
        description="Read the files of one data set as the dashboard would, and report what is in "
        "them. Exit code 0 when they can be used (warnings included), 1 when they hold errors.",
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, folder or archive")
    _add_conflict(parser)
    parser.set_defaults(command=_check)


def _add_evaluate(commands: _Commands[_Parser]) -> None:
    parser = commands.add_parser(
        "evaluate",
        help="score rankings against labels",
        description="Score one or more rankings against labels. Rankings are read by score, and a "
        "system is called after its file.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--qrels", required=True, metavar="FILE", help="the labels, in any form that is read")
    add(
        "--run",
        required=True,
        nargs="+",
        action="extend",
        metavar="FILE",
        help="a ranking, in any form that is read; may be repeated",
    )
    add(
        "--metrics",
        nargs="+",
        default=[DEFAULT_METRICS],
        metavar="LIST",
        help="metrics with commas between, such as ndcg@10,map (default: %(default)s)",
    )
    add(
        "--per-query",
        action="store_true",
        help="write the values of every query as well (json always holds them)",
    )
    _add_conventions(parser)
    add(
        "--format",
        choices=("table", "json", "csv"),
        default="table",
        help="json and csv hold unrounded numbers; in csv a text that a spreadsheet would run as "
        "a formula starts with an apostrophe (default: %(default)s)",
    )
    _add_conflict(parser)
    parser.set_defaults(command=_evaluate)


def _add_conventions(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--conventions",
        choices=("rankdash", "trec_eval"),
        default="rankdash",
        help="rankdash: every labelled query counts, those without a relevant document apart. "
        "trec_eval: as `trec_eval` without -c (default: %(default)s). The options below override "
        "single rules",
    )
    add(
        "--ties",
        choices=("trec", "stable"),
        help="equal scores: by document id descending (the default), or as in the file",
    )
    add("--threshold", type=float, metavar="N", help="the lowest label that is relevant")
    add(
        "--judged-only",
        action="store_true",
        help="take documents without a label out of the rankings",
    )
    add(
        "--missing",
        choices=("zero", "skip"),
        help="a labelled query that a ranking lacks: scores 0, or is left out",
    )
    add(
        "--no-relevant",
        choices=("count", "skip"),
        help="a query without a relevant document: counts as 0, or is left out",
    )


def _add_compare(commands: _Commands[_Parser]) -> None:
    parser = commands.add_parser(
        "compare",
        help="compare rankings with a baseline: is the gain real, and is it worth it",
        description="Compare rankings with a baseline, query by query: the change with its "
        "interval, p values, queries helped and hurt, and a verdict.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--qrels", required=True, metavar="FILE", help="the labels, in any form that is read")
    add("--baseline", required=True, metavar="FILE", help="the ranking to compare with")
    add(
        "--challenger",
        required=True,
        nargs="+",
        action="extend",
        metavar="FILE",
        help="a ranking to compare; may be repeated",
    )
    add(
        "--metric",
        nargs="+",
        action="extend",
        metavar="SPEC",
        help="a metric, such as ndcg@10; may be repeated (default: ndcg@10)",
    )
    _add_statistics(parser)
    _add_conventions(parser)
    add(
        "--format",
        choices=("table", "json", "markdown", "latex"),
        default="table",
        help="json holds unrounded numbers; latex needs booktabs (default: %(default)s)",
    )
    _add_conflict(parser)
    parser.set_defaults(command=_compare)


_STATISTICS = (
    *("level", "interval", "test", "correction", "family"),
    *("resamples", "seed", "tie_band", "worthwhile"),
)


def _add_statistics(parser: argparse.ArgumentParser) -> None:
    """Each is None unless given: the defaults are those of `StatisticsSettings`."""
    add = parser.add_argument
    add("--level", type=float, metavar="N", help="confidence of the intervals (default: 0.95)")
    add("--interval", metavar="KIND", help="bca or percentile (default: bca)")
    add("--test", metavar="NAME", help="sign-flip, t or wilcoxon (default: sign-flip)")
    add("--correction", metavar="NAME", help="holm, bh or none (default: holm)")
    add(
        "--family",
        metavar="SCOPE",
        help="what is corrected together: the challengers of each metric (metric), or all "
        "challengers and metrics (all) (default: metric)",
    )
    add("--resamples", type=int, metavar="N", help="resamples and flips (default: 10000)")
    add("--seed", type=int, metavar="N", help="the same seed gives the same numbers")
    add(
        "--tie-band",
        type=float,
        metavar="N",
        help="changes of a query up to this size count as the same (default: 0.005)",
    )
    add(
        "--worthwhile",
        type=float,
        metavar="SHARE",
        help="the smallest relative gain worth having (default: 0.15)",
    )


def _add_rerank(commands: _Commands[_Parser]) -> None:
    parser = commands.add_parser(
        "rerank",
        help="rerank a data set and write a TREC run",
        description="Rerank the candidates of a data set and write a TREC run, best first, with "
        "strictly decreasing scores. Queries that fail are named on standard error, are not in "
        "the file, and make the exit code 1; where all fail, no file is written (exit code 2).",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.closing = _reranker_help
    add = parser.add_argument
    add(
        "--data",
        required=True,
        nargs="+",
        action="extend",
        metavar="PATH",
        help="the files, folder or archive of the data set",
    )
    add("--reranker", required=True, metavar="NAME", help="one of those below")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="a setting of the reranker; may be repeated",
    )
    add(
        "--depth",
        type=int,
        metavar="N",
        help="rerank the first N candidates of each query; the rest follow below them in "
        "first-stage order, with falling scores (default: all)",
    )
    add(
        "--first-stage",
        metavar="NAME",
        help="the ranking to start from, where the data set holds several",
    )
    add(
        "--out",
        required=True,
        metavar="FILE",
        help="the run to write; replaced if it is there, refused if it is one of the data's files",
    )
    add(
        "--repeats",
        type=int,
        default=1,
        metavar="N",
        help="how often a query is timed alone; its latency is the median (default: %(default)s)",
    )
    add(
        "--clients",
        type=int,
        nargs="+",
        default=[],
        metavar="N",
        help="measure the throughput with so many clients at once too, such as 1 2 4",
    )
    _add_conflict(parser)
    parser.set_defaults(command=_rerank)


def _add_conflict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--conflict",
        choices=("highest", "lowest", "mean", "refuse"),
        default="highest",
        help="which label is kept where a pair has several (default: %(default)s)",
    )


def _check(arguments: argparse.Namespace) -> int:
    from rankdash.cli.check import check_paths

    sound = check_paths(arguments.paths, conflict=arguments.conflict)
    return DONE if sound else INCOMPLETE


def _evaluate(arguments: argparse.Namespace) -> int:
    from rankdash.cli.evaluate import evaluate_files, typed_metrics
    from rankdash.cli.results import FORMATS

    results = evaluate_files(
        arguments.qrels,
        arguments.run,
        typed_metrics(arguments.metrics),
        _conventions(arguments),
        conflict=arguments.conflict,
    )
    sys.stdout.writelines(FORMATS[arguments.format](results, arguments.per_query))
    return DONE


def _conventions(arguments: argparse.Namespace) -> Conventions:
    from rankdash.cli.evaluate import conventions_of

    return conventions_of(
        arguments.conventions,
        ties=arguments.ties,
        threshold=arguments.threshold,
        judged_only=arguments.judged_only or None,
        missing=arguments.missing,
        no_relevant=arguments.no_relevant,
    )


def _compare(arguments: argparse.Namespace) -> int:
    from rankdash.analysis.statistics_settings import StatisticsSettings
    from rankdash.cli.compare import FORMATS, compare_files
    from rankdash.cli.evaluate import typed_metrics

    asked = {name: getattr(arguments, name) for name in _STATISTICS}
    compared = compare_files(
        arguments.qrels,
        arguments.baseline,
        arguments.challenger,
        typed_metrics(arguments.metric or ["ndcg@10"]),
        _conventions(arguments),
        StatisticsSettings(**{name: value for name, value in asked.items() if value is not None}),
        conflict=arguments.conflict,
    )
    sys.stdout.writelines(FORMATS[arguments.format](compared))
    return DONE


def _rerank(arguments: argparse.Namespace) -> int:
    from rankdash.cli.rerank import rerank_to_file
    from rankdash.runs.plan import Timing

    complete = rerank_to_file(
        arguments.data,
        arguments.reranker,
        arguments.settings,
        arguments.out,
        depth=arguments.depth,
        first_stage=arguments.first_stage,
        conflict=arguments.conflict,
        timing=Timing(repeats=arguments.repeats, concurrency=tuple(arguments.clients)),
    )
    return DONE if complete else INCOMPLETE


def _reranker_help() -> str:
    from rankdash.cli.rerank import describe_rerankers

    return describe_rerankers()
