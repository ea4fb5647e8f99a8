"""`policy`: the steps to deploy, with their expected quality and latency, and `policy.json`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TypeVar

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.study.labelling import TOLERANCE
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.policy.floor import ALPHA, floor_refusal
from rankdash.features.policy.policy import Choices, expected
from rankdash.features.policy.policy_file import document, written
from rankdash.features.policy.skipping import MARGINS
from rankdash.features.policy.words import basis, effect, section_titles, steps
from rankdash.kit.commands.arguments import (
    DONE,
    Parser,
    add_conventions,
    add_label_rules,
    add_labels,
    add_statistics,
    metrics_of,
    rules,
)
from rankdash.kit.commands.output import (
    aligned,
    one_line,
    place_name,
    spare_the_input,
    target_of,
    write,
)
from rankdash.kit.commands.rankings import Files, names_of, study_of
from rankdash.kit.commands.timings import Timings

T = TypeVar("T")


def add(parser: Parser) -> None:
    parser.description = (
        "Measure a serving policy on stored rankings: how many documents to rerank, for which "
        "queries, until when, and which documents to show. All steps are applied together, query "
        "by query. A step that is chosen on the labels is evaluated on held-out queries."
    )
    add_labels(parser)
    parser.option("--baseline", "FILE", "the ranking of the first stage", required=True)
    parser.option("--challenger", "FILE", "the ranking of the reranker", required=True)
    parser.option(
        "--timings",
        "FILE",
        "the latencies of the challenger's queries, as written by `rerank --timings`; needed for "
        "--deadline",
    )
    parser.metrics("the metric (default: ndcg@10)")
    parser.number("--depth", "rerank only the first N documents of the first stage", kind=int)
    parser.number(
        "--skip-loss",
        "skip queries with a large margin of the first stage, at an acceptable loss of this share "
        f"of the mean, such as {TOLERANCE:g}",
    )
    parser.choice(
        "--skip-margin",
        MARGINS,
        "the margin of --skip-loss: first is between ranks 1 and 2, edge at the cutoff (default: "
        "%(default)s)",
        default=MARGINS[0],
    )
    parser.number("--deadline", "show the first stage's order if reranking takes more than N ms")
    parser.flag(
        "--fuse",
        "fuse the orders of the challenger and the first stage, with tuned weights; the weights "
        "are evaluated on held-out queries",
    )
    parser.number(
        "--floor-alpha",
        "show no documents below the score at which this share of the answerable queries loses "
        f"all relevant documents, such as {ALPHA:g}",
    )
    add_statistics(parser)
    add_conventions(parser)
    parser.formats(("text", "json"), "json is the content of policy.json")
    parser.option("--output", "FILE", "write policy.json", also=("-o",))
    add_label_rules(parser)
    parser.set_defaults(command=_policy)


def _policy(arguments: argparse.Namespace) -> int:
    metrics = metrics_of(arguments.metrics or ["ndcg@10"])
    if len(metrics.specs) > 1:
        raise SpecError("A policy is measured with one metric.", remedy="Pass one --metric.")
    inputs = [arguments.qrels, arguments.baseline, arguments.challenger]
    target = None if arguments.output is None else target_of(arguments.output)
    if target is not None:
        spare_the_input(target, inputs)
    timed = None if arguments.timings is None else Timings.read(arguments.timings)
    files = Files(
        qrels=arguments.qrels,
        baseline=arguments.baseline,
        challengers=[arguments.challenger],
        timings=[timed],
    )
    study = study_of(files, rules(arguments, metrics.threshold), metrics.specs[0], ())
    # A file may contain other rankings too.
    _baseline, name = names_of([arguments.baseline, arguments.challenger])
    system = next(each for each, called in study.names.items() if called == name)
    study = replace(study, challengers=(system,))
    choices = Choices(
        system,
        depth=_above(arguments.depth, "--depth"),
        skip_loss=arguments.skip_loss,
        margin=arguments.skip_margin,
        deadline_ms=_above(arguments.deadline, "--deadline"),
        weights=(FIRST_STAGE, system) if arguments.fuse else (),
        floor_alpha=arguments.floor_alpha,
    )
    refusal = None if choices.floor_alpha is None else floor_refusal(study, system)
    if refusal is not None:
        raise refusal
    found = expected(study, choices)
    if found is None:
        raise DataError(
            "No query has a metric value with this policy.",
            remedy="Provide latencies for a deadline, and labels of the ranked queries.",
        )
    content = written(document(study, choices, found, None))
    if target is not None:
        write(content, target)
        sys.stderr.write(f"Written: {place_name(target)}\n")
    if arguments.format == "json":
        sys.stdout.write(content.decode())
        return DONE
    titles = section_titles()
    made = steps(study, choices, found.policy)
    rows = [[titles[step], words] for step, words in made.items()]
    rows.insert(0, ["First stage", study.name(FIRST_STAGE)])
    rows.insert(1, ["Reranker", name])
    sys.stdout.write(aligned(rows, left=2) + "\n")
    for sentence in [*effect(study, choices, found, None), *basis(study, choices, found)]:
        sys.stdout.write(f"{one_line(sentence.replace('**', ''))}\n")
    return DONE


def _above(value: T, option: str) -> T:
    """Return the value. Raises SpecError if it is not above 0."""
    if isinstance(value, int | float) and not value > 0:
        raise SpecError("{option} must be above 0.", option=option)
    return value
