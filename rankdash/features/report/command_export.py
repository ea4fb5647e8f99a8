"""`export`: a data set with its rankings in the format of another tool."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from rankdash.core.base.errors import DataError
from rankdash.core.metrics import Conventions
from rankdash.features.report.report_formats import FORMATS
from rankdash.kit.commands.arguments import (
    DONE,
    NAMES,
    Parser,
    add_first_stage,
    add_label_rules,
    columns_of,
    metrics_of,
)
from rankdash.kit.commands.output import STANDARD, place_name, spare_the_input, target_of, write
from rankdash.kit.commands.rankings import Files, Rules, study_of


def add(parser: Parser) -> None:
    listed = " ".join(f"{each.name} ({each.title}): {each.purpose}" for each in FORMATS.values())
    parser.description = (
        "Write a data set with its rankings in the format of another tool. IDs are never changed: "
        "an ID, a label or a text that the format cannot carry is refused with its name. "
        f"Formats: {listed}"
    )
    parser.add_argument("format", choices=tuple(FORMATS), help="the format to write")
    parser.several(
        "--data", "PATH", f"the files, folder or archive of the data set{NAMES}", required=True
    )
    parser.several(
        "--run",
        "FILE",
        "a ranking to write in addition to the first stage; may be repeated (default: the "
        "rankings in --data)",
        also=("--runs",),
    )
    single = ", ".join(each.name for each in FORMATS.values() if not each.folder)
    parser.option(
        "--out",
        "PATH",
        f"a new or empty folder; for the formats {single}: a file, which is replaced if it "
        "exists, or - for standard output",
        also=("-o",),
        required=True,
    )
    parser.option(
        "--name",
        "NAME",
        "the index of rank-eval, the task of mteb, or the data set of model-card (default: the "
        "name of the data set)",
    )
    parser.metrics("the metrics of model-card; may be repeated (default: ndcg@10 and others)")
    add_first_stage(parser)
    add_label_rules(parser)
    parser.set_defaults(command=_export)


def _export(arguments: argparse.Namespace) -> int:
    """Read and write. Warnings of the readers go to standard error."""
    form = FORMATS[arguments.format]
    target = target_of(arguments.out)
    if form.folder and str(target) == STANDARD:
        raise DataError(
            "The format {name} consists of several files.",
            remedy="Use the name of a folder for --out.",
            name=form.name,
        )
    if not form.folder:
        spare_the_input(target, [*arguments.data, *arguments.run])
    metrics = metrics_of(arguments.metrics or ["ndcg@10"])
    first, *others = metrics.specs
    study = study_of(
        Files(
            data=arguments.data,
            challengers=arguments.run,
            first_stage=arguments.first_stage,
            retrieval=arguments.retrieval,
            retrieved=arguments.retrieved,
        ),
        Rules(
            Conventions()
            if metrics.threshold is None
            else Conventions(threshold=metrics.threshold),
            conflict=arguments.conflict,
            worst_label=arguments.worst_label,
            columns=columns_of(arguments.columns),
        ),
        first,
        tuple(others) if arguments.metrics else None,
        check=True,
    )
    if arguments.name is not None:
        study = replace(study, dataset=study.dataset.named(arguments.name))
    if form.folder:
        form.save(study, target)
    else:
        (content,) = form.files(study).values()
        write(content, target)
    sys.stderr.write(f"Written: {place_name(Path(target))} ({form.title})\n")
    return DONE
