"""`gate`: conditions checked on files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rankdash.core.base.errors import RankdashError, SpecError
from rankdash.core.base.rules import LEVEL, TIE_BAND
from rankdash.core.data.arrays import Floats
from rankdash.core.metrics import one_threshold
from rankdash.core.sampling.bias_corrected import Corrected
from rankdash.core.statistics.alignment import weights_in
from rankdash.core.statistics.comparison import Comparison
from rankdash.core.statistics.verdict import Kind as VerdictKind
from rankdash.core.statistics.weighted import pseudo_values
from rankdash.core.study.costs import figures, verdict_kind
from rankdash.core.study.judged import verdicts
from rankdash.core.study.study import Study
from rankdash.core.value.targets import Goals, is_file
from rankdash.features.gate.gate import (
    Condition,
    GateOutcome,
    confidence_of,
    decide,
    measures_of,
    parse_conditions,
    settings_at,
)
from rankdash.kit.commands.arguments import (
    DONE,
    INCOMPLETE,
    Parser,
    add_conventions,
    add_judge,
    add_label_rules,
    add_labels,
    add_outputs,
    add_profile,
    rules,
)
from rankdash.kit.commands.checks import write_files, write_refusal
from rankdash.kit.commands.output import STANDARD, spare_the_input, target_of
from rankdash.kit.commands.rankings import Files, Rules, names_of, study_of
from rankdash.kit.commands.timings import Timings


def add(parser: Parser) -> None:
    parser.description = (
        "Check a challenger against conditions. For --min and --min-gain, the lower limit of a "
        "one-sided interval decides, not the mean; for --max-hurt and --max, the observed value. "
        "With sampled labels (see label), the lower limit of the anytime-valid interval decides "
        "--min-gain. With --judge, the judge's gain corrected with human labels decides it; a "
        "judge without human labels never passes. Exit code 0: all conditions are met. 1: a "
        "condition is not met, or there are too few queries or labels. 2: the gate could not run."
    )
    add_labels(parser)
    parser.option("--baseline", "FILE", "the ranking to compare with", required=True)
    parser.option("--challenger", "FILE", "the ranking to check", required=True)
    _add_conditions(parser)
    add_profile(
        parser,
        "also check the targets of a profile: --min of each of its metrics and, with --timings, "
        "its p95. Targets that these labels and candidates do not allow are skipped. Profiles",
    )
    add_judge(parser)
    parser.option(
        "--trust-judge",
        "NAME",
        "let the judge of this name decide --min-gain without correction if too few queries have "
        "human labels; its errors then affect the result",
    )
    parser.option(
        "--timings",
        "FILE",
        "the latencies of the challenger's queries, as written by `rerank --timings`; failed "
        "queries are excluded for both systems",
    )
    parser.option(
        "--latency-column",
        "NAME",
        "the column of --timings with milliseconds (default: %(default)s)",
        default="latency_ms",
    )
    parser.number(
        "--confidence",
        "confidence of each one-sided limit (default: %(default)s)",
        also=("--level",),
        default=LEVEL,
    )
    band = f"changes of a query up to this size count as the same (default: {TIE_BAND:g})"
    parser.number("--tie-band", band)
    parser.number("--seed", "random seed; the same seed gives the same p in compare", kind=int)
    add_conventions(parser)
    add_outputs(parser)
    add_label_rules(parser)
    parser.set_defaults(command=_gate)


def _add_conditions(parser: Parser) -> None:
    parser.several("--min", "[SPEC=]N", "the mean of a metric is at least N")
    parser.several(
        "--min-gain", "[SPEC=]N", "the mean gain over the baseline, query by query, is at least N"
    )
    parser.several(
        "--as-good-as",
        "[SPEC=]N",
        "the mean is proven to be less than N below the baseline's (non-inferiority); the same as "
        "--min-gain with -N",
    )
    parser.several(
        "--max-hurt", "[SPEC=]SHARE", "at most this share of the queries gets worse on a metric"
    )
    parser.metrics(
        "the metrics of conditions without SPEC (default: the metrics of --min and --min-gain, or "
        "ndcg@10)"
    )
    parser.several(
        "--max",
        "NAME=N",
        "a latency percentile (p50_ms, p90_ms or p95_ms) or the number of failed queries "
        "(failed) is at most N; needs --timings",
    )


def _gate(arguments: argparse.Namespace) -> int:
    # `command_results` imports this module.
    from rankdash.features.gate.command_results import formats

    overrides = {"tie_band": arguments.tie_band, "seed": arguments.seed}
    changes = {name: value for name, value in overrides.items() if value is not None}
    inputs = [arguments.qrels, arguments.baseline, arguments.challenger]
    inputs += [file for file in (arguments.timings, arguments.judge) if file is not None]
    if arguments.profile is not None and is_file(arguments.profile):
        inputs.append(arguments.profile)
    try:
        for file in arguments.out:
            spare_the_input(target_of(file), inputs)
        conditions = parse_conditions(
            arguments.min,
            arguments.min_gain,
            arguments.max_hurt,
            arguments.max,
            arguments.metrics,
            _of_profile(arguments.profile, timed=arguments.timings is not None),
            arguments.as_good_as,
        )
        threshold = one_threshold(each.threshold for each in conditions)
        checked = check_files(
            arguments.qrels,
            arguments.baseline,
            arguments.challenger,
            conditions,
            rules(arguments, threshold, partial(settings_at, arguments.confidence, **changes)),
            timings=arguments.timings,
            column=arguments.latency_column,
            judge=arguments.judge,
            trusted=arguments.trust_judge,
        )
    except RankdashError as error:
        write_refusal("gate", error, arguments.out, arguments.format, inputs)
        raise
    made = formats(checked)
    write_files(made, arguments.out, arguments.format)
    if STANDARD not in arguments.out:
        sys.stdout.write(made["text" if arguments.out else arguments.format]())
    return DONE if checked.passed else INCOMPLETE


def _of_profile(name: str | None, *, timed: bool) -> list[Condition]:
    """Return the targets of a profile as conditions. Raises DataError if it does not exist."""
    if name is None:
        return []
    profile = Goals.of(name).profile
    conditions = [
        Condition("min", each.metric, each.required, of_profile=True) for each in profile.targets
    ]
    limit = profile.limit("p95_ms")
    if timed and limit is not None:
        conditions.append(Condition("max", limit.what, limit.target, of_profile=True))
    return conditions


@dataclass(frozen=True, eq=False)
class Checked:
    """Result of `gate`: the outcome of every condition. untimed: number of finished queries without
    a latency. compared: spec of a gain → kind of the two-sided verdict of `compare` on the same
    rankings. worst_label: as for `readers.read`."""

    outcomes: tuple[GateOutcome, ...]
    study: Study
    untimed: int
    compared: Mapping[str, VerdictKind]
    worst_label: float | None = None

    @property
    def passed(self) -> bool:
        """True if at least one condition counts and all that count are met."""
        reasons = {outcome.reason for outcome in self.outcomes}
        return "met" in reasons and reasons <= {"met", "unreachable"}

    @property
    def comparison(self) -> Comparison:
        return self.study.comparison

    @property
    def challenger(self) -> str:
        """Id of the challenger."""
        return self.study.challengers[0]

    @property
    def sides(self) -> str:
        """Text that names both systems."""
        baseline, challenger = self.study.names.values()
        return f"{challenger} against {baseline}"


def check_files(
    qrels: str,
    baseline: str,
    challenger: str,
    conditions: Sequence[Condition],
    rules: Rules,
    *,
    timings: str | None,
    column: str,
    judge: str | None = None,
    trusted: str | None = None,
) -> Checked:
    """Read, score, compare and decide. Findings of the readers go to standard error.

    trusted: name of the judge, if it may decide without correction.

    Raises DataError if a file cannot be used, and SpecError if a condition needs timings and there
    are none, or if `trusted` names another judge.
    """
    if rules.conventions.weighted and any(each.kind == "max-hurt" for each in conditions):
        raise SpecError(
            "--max-hurt is a share of queries, which has no version per search.",
            remedy='Leave it out, or use --weights "per query".',
        )
    timed = None if timings is None else Timings.read(timings, column)
    first, *others = measures_of(conditions)
    files = Files(
        qrels=qrels,
        baseline=baseline,
        challengers=[challenger],
        # A plain list of latencies has no query ids.
        timings=[timed if timed is not None and timed.named else None],
        judge=judge,
    )
    study = study_of(files, rules, first, others)
    # A file may contain other rankings too.
    _, name = names_of([baseline, challenger])
    system_id = next(system for system, called in study.names.items() if called == name)
    study = replace(study, challengers=(system_id,))
    table = None if timed is None else timed.table
    subjects = tuple(each.subject for each in conditions if each.of_profile and each.kind == "min")
    reached = figures(study, system_id, subjects)
    most = {spec: each.most for spec, each in reached.items()}
    sampled = None
    if study.labelling is not None:
        sampled = {
            each.metric: each for each in study.labelling.estimates if each.challenger == name
        }
    outcomes = decide(
        conditions,
        study.comparison,
        system_id,
        table,
        most,
        sampled,
        _judged(study, conditions, trusted),
        values=partial(_values, study),
        trusted=trusted is not None,
    )
    untimed = 0
    if table is not None:
        untimed = int(((table["state"] == "done") & table["latency_ms"].isna()).sum())
    return Checked(outcomes, study, untimed, _compared(study, conditions), rules.worst_label)


def _compared(study: Study, conditions: Sequence[Condition]) -> dict[str, VerdictKind]:
    """Return spec of a gain → kind of the verdict of `compare` at the same confidence.

    Empty for sampled labels: both commands then use the same estimate.
    """
    if study.labelling is not None:
        return {}
    statistics = replace(study.statistics, level=confidence_of(study.statistics))
    two_sided = replace(study, statistics=statistics)
    specs = dict.fromkeys(each.subject for each in conditions if each.kind == "min-gain")
    return {
        spec: verdict_kind(replace(two_sided, metric=spec, cutoff=None), study.challengers[0])
        for spec in specs
    }


def _values(study: Study, spec: str) -> tuple[Floats, Floats]:
    """Return the challenger's values of a metric, and its changes from the baseline."""
    evaluation = study.evaluate(study.challengers[0], (spec,))
    pairs = study.pairs(study.challengers[0], spec)
    values, changes = evaluation.values[:, 0], pairs["delta"].to_numpy(dtype=np.float64)
    if evaluation.weights is not None and (weights := weights_in(pairs)) is not None:
        values = pseudo_values(values[:, None], evaluation.weights)[:, 0]
        changes = pseudo_values(changes[:, None], weights)[:, 0]
    return values[~np.isnan(values)], changes[~np.isnan(changes)]


def _judged(
    study: Study, conditions: Sequence[Condition], trusted: str | None
) -> dict[str, Corrected] | None:
    """Return spec of a gain → its estimate from a judge, corrected with human labels; None without
    a judge."""
    judge = study.judge
    if trusted is not None and (judge is None or trusted != judge.name):
        raise SpecError(
            "--trust-judge names {trusted!r}, but {reason}.",
            remedy="Pass the judge's grades with --judge. Use the judge's name in that file, or "
            "the file name if it contains none.",
            trusted=trusted,
            reason="--judge is not set" if judge is None else f"the judge is {judge.name!r}",
        )
    if judge is None:
        return None
    specs = {each.subject for each in conditions if each.kind == "min-gain"}
    by_spec = {spec: verdicts(replace(study, metric=spec, cutoff=None), judge) for spec in specs}
    return {spec: each[study.challengers[0]].three for spec, each in by_spec.items()}
