"""Command `label`: sample documents to label, add labels, and report the current result."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base import files
from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.base.i18n import paragraph
from rankdash.core.data.arrays import Integers
from rankdash.core.readers import read, read_beside, sources_at
from rankdash.core.readers.rated import read_rated
from rankdash.core.sampling.label_plan import (
    ADDITIVE,
    CANNOT_TELL,
    COLUMNS,
    LEVEL,
    MODES,
    VALUE_SHARE,
    Additive,
    Answered,
    LabelPlan,
    labels_table,
    next_pairs,
    pool_of,
)
from rankdash.core.sampling.status import (
    DEFAULT_CUTOFF,
    SIMULATED_CUTOFFS,
    LabelStatus,
    status,
    usual_effort,
)
from rankdash.core.study.labelling import as_in, sampled_to_label
from rankdash.core.words.labelling import effort_sentence, estimate_sentences
from rankdash.features.label.trail import read_plan, write_answers, write_plan
from rankdash.kit.commands.arguments import DONE, Parser, add_label_rules, columns_of
from rankdash.kit.commands.output import (
    csv_line,
    one_line,
    place_name,
    spare_the_input,
    target_of,
    warn,
    write,
)
from rankdash.kit.commands.rankings import labels_of, names_of
from rankdash.kit.html.tables import qrels_bytes


def add(parser: Parser) -> None:
    parser.description = (
        "Find the better of two rankings with few labels: choose the documents to label next, add "
        "the labels, and report the result with its uncertainty. All actions except plan read the "
        "plan: one file with the sample and all answers. Answers are only appended."
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=Parser)
    for name, help_line, put in (
        ("plan", "make a plan from rankings", _add_plan),
        ("next", "list the pairs to label next", _add_next),
        ("add", "add labels to a plan", _add_add),
        ("status", "report the current result", _add_status),
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
        "Pool the rankings and sample the order in which to label pairs of query and document, "
        "each with a known sampling probability."
    )
    parser.several(
        "--run",
        "FILE",
        "at least two rankings, in any supported format. Each is compared with the first",
        also=("--runs",),
        required=True,
    )
    parser.option(
        "--metric",
        "SPEC",
        f"additive metric with a cutoff: {', '.join(ADDITIVE)} (default: %(default)s)",
        default=f"dcg@{DEFAULT_CUTOFF}",
    )
    parser.number("--top", "highest label of the scale, such as 3 for grades 0 to 3")
    parser.number(
        "--threshold", "lowest label that counts as relevant (default: %(default)g)", default=1.0
    )
    parser.option("--qrels", "FILE", "existing labels; they are used and not requested again")
    parser.choice(
        "--mode",
        MODES,
        "sampling mode. weight: pairs, in proportion to their weight in the difference, which "
        "needs the fewest labels. random: pairs, all equally likely. query: queries, all equally "
        "likely, each with all of its documents (default: %(default)s)",
        default="weight",
    )
    parser.flag("--all-pairs", "compare all pairs of rankings")
    parser.number(
        "--confidence",
        "joint confidence of all anytime-valid intervals (default: %(default)s)",
        default=LEVEL,
    )
    parser.number("--seed", "random seed of the sample (default: %(default)s)", kind=int, default=1)
    parser.option(
        "--out", "FILE", "the plan to write; an existing file is never overwritten", required=True
    )
    parser.set_defaults(command=make)


def _add_next(parser: Parser) -> None:
    parser.description = (
        "List the pairs to label next. The list does not reveal which system ranks a document, or "
        "at which rank. Until an answer is added, every call returns the same pairs."
    )
    parser.option("--rater", "NAME", "name of the annotator (default: anonymous)", default="")
    parser.number("--count", "maximum number of pairs (default: %(default)s)", kind=int, default=1)
    parser.number(
        "--double",
        "share of pairs that a second annotator also labels, from 0 to 1 (default: 0)",
        default=0.0,
    )
    parser.several("--data", "PATH", "files with the texts of queries and documents")
    parser.choice(
        "--order",
        ORDERS,
        "draws: in sampling order, so that each label counts in the estimate immediately. effect: "
        "pairs with the largest possible effect on the difference first. Such labels are not a "
        "random sample: they count only after all pairs sampled before them have labels "
        "(default: %(default)s)",
        default=ORDERS[0],
    )
    parser.option(
        "--out",
        "FILE",
        "write the pairs as CSV with an empty label, the draw and its sampling probability; fill "
        "it in for label add. An existing file is replaced; - is standard output",
    )
    parser.set_defaults(command=draw_actions)


def _add_add(parser: Parser) -> None:
    parser.description = (
        "Add the labels of a file, or one label. Without --rater, annotators are read from a "
        "column rater, annotator or who. A later label by the same annotator replaces an earlier "
        "one."
    )
    parser.add_argument(
        "labels",
        metavar="LABELS",
        nargs="?",
        help="a file of labels, in any supported format; - is standard input",
    )
    parser.option("--query", "ID", "for one label: the id of its query")
    parser.option("--doc", "ID", "for one label: the id of its document")
    parser.number("--label", "for one label: the label")
    parser.flag("--cannot-tell", 'for one label: the answer "cannot tell"')
    parser.option("--rater", "NAME", "name of the annotator (default: anonymous)", default="")
    parser.set_defaults(command=take)


def _add_status(parser: Parser) -> None:
    parser.description = (
        "Report the current result: the difference (also relative to the baseline) with an "
        "anytime-valid interval, whether it is conclusive, and how many more labels are needed. "
        "Queries without a relevant document count as 0."
    )
    parser.option(
        "--judge",
        "FILE",
        "grades of an LLM judge on the same scale, used as predictions; they reduce how many "
        "labels are needed and cannot bias the result",
    )
    parser.option(
        "--out",
        "FILE",
        "also write the labels: as TREC qrels if the name ends in .qrels, else as CSV with draw, "
        "sampling probability, rater and time. An existing file is replaced; - is standard output",
    )
    parser.set_defaults(command=tell)


# Implementation of `label plan`, `next`, `add` and `status`.

ORDERS = ("draws", "effect")

_NAMELESS = "(no name)"


def make(arguments: argparse.Namespace) -> int:
    target = target_of(arguments.out)
    if target.exists():
        raise DataError(
            "This file exists; a plan may contain labels.",
            remedy="Pass another name to --out, or move the file.",
            file=arguments.out,
        )
    joined = read_beside((), names_of(arguments.run), columns=columns_of(arguments.columns))
    warn(joined.findings)
    qrels = None if arguments.qrels is None else labels_of(arguments.qrels, arguments)
    if arguments.top is None and qrels is None:
        raise SpecError(
            "The highest label of the scale is missing.",
            remedy="Add --top, such as 3 for grades 0 to 3, or 1 for relevant or not.",
        )
    top = arguments.top if qrels is None or arguments.top is not None else qrels["label"].max()
    if not 0 < arguments.confidence < 1:
        raise SpecError("--confidence must be between 0 and 1, such as 0.95.")
    metric = Additive.of(arguments.metric, top=float(top), threshold=arguments.threshold)
    pool = pool_of({name: each.ranking for name, each in joined.rankings.items()}, metric.k)
    systems = range(len(pool.systems))
    known = None if qrels is None else pool.aligned(qrels)
    if known is not None:
        metric.gains(known)
    plan = LabelPlan.make(
        pool,
        metric,
        seed=arguments.seed,
        contrasts=[(a, b) for a in systems for b in systems if a < b]
        if arguments.all_pairs
        else (),
        known=known,
        level=arguments.confidence,
        mode=arguments.mode,
        share=VALUE_SHARE,
    )
    # Never overwrite a plan that another process wrote in between.
    files.create(target, write_plan(plan))
    numbers = {
        "mode": plan.mode,
        "systems": list(pool.systems),
        "queries": len(pool.query_ids),
        "excluded_queries": list(pool.excluded),
        "pairs": len(pool),
        "to_label": len(plan.order),
        "known": int((~np.isnan(plan.known)).sum()),
    }
    if arguments.format == "json":
        return _json(numbers)
    sys.stdout.write(
        f"{len(plan.order):,} of the {len(pool):,} pairs in the top {metric.k} of "
        f"{len(pool.systems)} rankings can change the result and have no label. "
        f"Written: {place_name(target)}\n{_usual(plan)}"
    )
    if pool.excluded:
        sys.stderr.write(
            f"warning: {len(pool.excluded):,} queries (such as "
            f"{one_line(', '.join(pool.excluded[:3]))}) excluded: they are not in every ranking\n"
        )
    return DONE


def _usual(plan: LabelPlan) -> str:
    """Return how many labels are usually needed, with the cutoff of the plan and the simulated
    ones; "" if that was not simulated."""
    lines, best = [], plan.pool.ranks[:, plan.order].min(axis=0)
    for cutoff in dict.fromkeys((plan.metric.k, *SIMULATED_CUTOFFS)):
        effort = usual_effort(cutoff, plan.mode)
        # With a larger cutoff, there are more pairs.
        if effort is not None and effort.most_high < (best <= cutoff).sum():
            lines.append(
                f"cutoff {cutoff}: usually {effort.half_low:,} to {effort.half_high:,} labels, "
                f"{effort.most_high:,} in nine of ten cases"
            )
    return f"Until the result is conclusive, in simulations: {'; '.join(lines)}.\n" if lines else ""


def draw_actions(arguments: argparse.Namespace) -> int:
    plan, answers = read_plan(Path(arguments.plan).read_bytes(), arguments.plan)
    if not 0 <= arguments.double <= 1:
        raise SpecError("--double must be from 0 to 1, such as 0.1.")
    done, most = Answered.of(plan.pool, answers), max(arguments.count, 0)
    largest = arguments.order == "effect"
    pairs = next_pairs(plan, done, arguments.rater, most, doubled=arguments.double, largest=largest)
    if largest:
        sys.stderr.write(
            "warning: These labels are not a random sample: a difference computed from them alone "
            "is biased. A label counts in the estimate once all pairs sampled before it have "
            "labels.\n"
        )
    if arguments.out is not None:
        return _fill_in(plan, pairs, arguments)
    ids = plan.pool.index[pairs]
    cards = [{"query_id": query, "doc_id": doc} for query, doc in ids]
    if arguments.data:
        cards = _with_texts(cards, arguments.data)
    if arguments.format == "json":
        return _json(cards)
    for card in cards:
        sys.stdout.write("\t".join(one_line(text) for text in card.values()) + "\n")
    if not cards:
        sys.stderr.write("All pairs that can change the result have labels.\n")
    return DONE


def _fill_in(plan: LabelPlan, pairs: Integers, arguments: argparse.Namespace) -> int:
    """Write the pairs as a CSV file with empty labels."""
    target = target_of(arguments.out)
    spare_the_input(target, [arguments.plan, *arguments.data])
    none = pd.Series(dtype=object)
    queries, documents = none, none
    if arguments.data:
        parsed = read(sources_at(arguments.data))
        queries = parsed.queries.set_index("query_id")["text"]
        table = parsed.documents.set_index("doc_id").fillna("")
        documents = (table["title"] + " " + table["text"]).str.strip()
        bare = int((documents.reindex(plan.pool.doc_ids[pairs]).fillna("") == "").sum())
        _say_bare(bare, len(pairs))
    write(_csv(sampled_to_label(plan, pairs, queries, documents)), target)
    if arguments.out != "-":
        sys.stdout.write(f"Pairs to label: {len(pairs):,}. Written: {place_name(target)}\n")
    return DONE


def _say_bare(bare: int, pairs: int) -> None:
    if bare:
        sys.stderr.write(f"warning: {bare:,} of {pairs:,} documents have no text in these files.\n")


def _with_texts(cards: list[dict[str, str]], data: Sequence[str]) -> list[dict[str, str]]:
    parsed = read(sources_at(data))
    queries = parsed.queries.set_index("query_id")["text"]
    documents = parsed.documents.set_index("doc_id")
    titles, texts = documents.get("title"), documents["text"]

    def text(table: pd.Series[str] | None, name: str) -> str:
        cell = None if table is None else table.get(name)
        return cell if isinstance(cell, str) else ""

    bare = sum(not text(documents["text"], card["doc_id"]) for card in cards)
    _say_bare(bare, len(cards))
    return [
        {
            "query_id": card["query_id"],
            "query": text(queries, card["query_id"]),
            "doc_id": card["doc_id"],
            "title": text(titles, card["doc_id"]),
            "document": text(texts, card["doc_id"]),
        }
        for card in cards
    ]


def take(arguments: argparse.Namespace) -> int:
    plan, answers = read_plan(Path(arguments.plan).read_bytes(), arguments.plan)
    new = _as_in(plan, _new_answers(arguments))
    inside = _inside(plan, new, arguments.labels or "")
    added = _without_known(plan, new[inside])
    # Check before any write: all labels of a plan must be on its scale.
    plan.metric.gains(added["label"].to_numpy(dtype=np.float64))
    files.append(Path(arguments.plan), [write_answers(added)])
    progress = status(plan, Answered.of(plan.pool, pd.concat([answers, added], ignore_index=True)))
    numbers = {"added": len(added), "ignored": len(new) - len(added), **progress.numbers()}
    if arguments.format == "json":
        return _json(numbers)
    ignored = (
        f", {numbers['ignored']:,} ignored (for other pairs, or already in the plan)"
        if numbers["ignored"]
        else ""
    )
    sys.stdout.write(f"Labels added: {len(added):,}{ignored}.\n")
    _say(progress)
    return DONE


def _as_in(plan: LabelPlan, table: pd.DataFrame) -> pd.DataFrame:
    """Return the labels with ids as spelled in the plan: a spreadsheet may have changed them."""
    respelled = table.copy()
    for at, name in enumerate(("query_id", "doc_id")):
        spellings = as_in(table[name], set(plan.pool.index.levels[at]))
        respelled[name] = np.array(
            [new or old for new, old in zip(spellings, table[name], strict=True)], dtype=object
        )
    return respelled


def _without_known(plan: LabelPlan, table: pd.DataFrame) -> pd.DataFrame:
    """Return the labels that differ from those known before the plan, or that have an annotator.
    Exported files contain the known labels too."""
    places = plan.pool.index.get_indexer(pd.MultiIndex.from_frame(table[["query_id", "doc_id"]]))
    changed = (plan.known[places] != table["label"]) | (table["rater"] != "")
    selected: pd.DataFrame = table[changed]
    return selected


def _inside(plan: LabelPlan, table: pd.DataFrame, file: str) -> npt.NDArray[np.bool_]:
    """Return which rows match a pair of the plan. Raises DataError if none match."""
    pairs = pd.MultiIndex.from_frame(table[["query_id", "doc_id"]])
    matches: npt.NDArray[np.bool_] = pairs.isin(plan.pool.index)
    if not matches.any():
        raise DataError(
            "None of the {count} labels match a pair of this plan.",
            remedy="Check that the query and document ids match those in the rankings.",
            file=file,
            count=len(table),
        )
    return matches


def _new_answers(arguments: argparse.Namespace) -> pd.DataFrame:
    pair = [arguments.query, arguments.doc]
    choices = (arguments.label is not None) + arguments.cannot_tell
    one = None not in pair and choices == 1 and arguments.labels is None
    if not one and (arguments.labels is None or choices or pair != [None, None]):
        raise SpecError(
            "`label add` takes a file of labels, or --query and --doc with either --label or "
            "--cannot-tell."
        )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    if one:
        if not arguments.cannot_tell and not math.isfinite(arguments.label):
            raise SpecError(
                "--label is not a number: {label}.",
                remedy="Use a grade on the plan's scale, or --cannot-tell.",
                label=str(arguments.label),
            )
        label = np.nan if arguments.cannot_tell else arguments.label
        table = pd.DataFrame([[*pair, label]], columns=list(COLUMNS[:3]))
        return table.assign(rater=arguments.rater, time=now)
    sources = sources_at([arguments.labels])
    rated = read_rated(sources[0], rater=arguments.rater) if len(sources) == 1 else None
    if rated is None:
        table = labels_of(arguments.labels, arguments, sources)
        return table.assign(rater=arguments.rater, time=now)
    table, findings = rated
    if arguments.rater or not table["rater"].any():
        # With one annotator, conflicting labels are resolved as in any file of labels.
        unsure = table[table["label"].isna()]
        labels = [labels_of(arguments.labels, arguments, sources)] * (len(unsure) < len(table))
        once = pd.concat([*labels, unsure], ignore_index=True).drop_duplicates(list(COLUMNS[:2]))
        return once.assign(rater=arguments.rater, time=now)
    warn(findings)
    return table


def tell(arguments: argparse.Namespace) -> int:
    plan, answers = read_plan(Path(arguments.plan).read_bytes(), arguments.plan)
    judge = None
    if arguments.judge is not None:
        grades = labels_of(arguments.judge, arguments)
        judge = plan.pool.aligned(grades[_inside(plan, grades, arguments.judge)])
    answered = Answered.of(plan.pool, answers)
    progress = status(plan, answered, judge)
    if arguments.out is not None:
        target = target_of(arguments.out)
        spare_the_input(target, [arguments.plan, *filter(None, [arguments.judge])])
        write(_file_of(labels_table(plan, answered), target.suffix), target)
        if arguments.out == "-":
            return DONE
    if arguments.format == "json":
        return _json(progress.numbers())
    _say(progress)
    return DONE


def _file_of(labels: pd.DataFrame, ending: str) -> bytes:
    """Return the labels as CSV, or as TREC qrels, without draws and "cannot tell" answers."""
    if ending != ".qrels":
        return _csv(labels)
    decided = labels[labels["label"] != CANNOT_TELL]
    return qrels_bytes(decided.astype({"label": np.float64}))


def _csv(table: pd.DataFrame) -> bytes:
    rows = table.astype(object).where(table.notna(), "").itertuples(index=False)
    lines = [csv_line(table.columns), *(csv_line(map(str, row)) for row in rows)]
    return "".join(lines).encode("utf-8", "replace")


def _say(progress: LabelStatus) -> None:
    for each in progress.estimates:
        sys.stdout.write(one_line(paragraph(estimate_sentences(each))) + "\n")
    sys.stdout.write(one_line(effort_sentence(progress)) + "\n")
    if progress.saved:
        sys.stdout.write(
            f"The judge has saved about {progress.saved:,} labels; the result still rests on human "
            "labels.\n"
            if progress.saved > 0
            else f"The judge has added about {-progress.saved:,} labels.\n"
        )
    for rater in progress.raters:
        sys.stdout.write(
            f"{one_line(rater.name) or _NAMELESS}: {rater.answers:,} answers, "
            f'{rater.cannot_tell:,} of them "cannot tell"\n'
        )
    for agreement in progress.agreements:
        kappa = agreement.unweighted
        names = " and ".join(one_line(name) or _NAMELESS for name in agreement.raters)
        value = (
            "no kappa (both used only one grade)"
            if math.isnan(kappa.kappa)
            else f"kappa {kappa.kappa:.2f} ({kappa.low:.2f} to {kappa.high:.2f})"
        )
        pairs = "1 pair" if kappa.pairs == 1 else f"{kappa.pairs:,} pairs"
        sys.stdout.write(f"{names}: {value} on {pairs}, the same label on {kappa.agree:.0%}\n")


def _json(value: dict[str, Any] | Iterable[Any]) -> int:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")
    return DONE
