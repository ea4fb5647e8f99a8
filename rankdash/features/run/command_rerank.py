"""`rerank`: rerank a data set into a TREC run. `rerankers`: the list of rerankers."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from rankdash import __version__
from rankdash.core.base.errors import DataError, SettingError
from rankdash.core.base.i18n import brief, level_percent, percent, signed
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import WithoutText
from rankdash.core.data.ranking import Run
from rankdash.core.metrics import parse_measure
from rankdash.core.readers import sources_at
from rankdash.core.readers.loading import load
from rankdash.core.rerankers import (
    Reranker,
    RerankerKind,
    add_plugins,
    create,
    get,
    kinds,
    problems,
    unknown_kind,
)
from rankdash.core.rerankers.base import Detailed, Step
from rankdash.core.rerankers.catalogue import MANY, loaded
from rankdash.core.rerankers.defaults import kind_of, with_model
from rankdash.core.rerankers.kinds.endpoint import Endpoint
from rankdash.core.rerankers.kinds.precomputed import Precomputed
from rankdash.core.rerankers.neural import runtimes
from rankdash.core.rerankers.neural.packaged import misfit
from rankdash.core.runs.combining import Shard, part_bytes
from rankdash.core.runs.on_ray.cluster import ACTOR_SETTINGS, Actors, apart, needed, run_apart
from rankdash.core.runs.on_ray.reranker import on_ray
from rankdash.core.runs.plan import Plan, Timing, plan
from rankdash.core.runs.results import QueryResult, ResultsFile, still_good, usage, with_runtime
from rankdash.core.runs.runner import rerank
from rankdash.core.runs.stopping import StopRule, Watch
from rankdash.core.statistics.anytime import FEWEST_CHANGED, FEWEST_SCORED
from rankdash.core.study.latency import summarize
from rankdash.core.words.queries import (
    licence_of,
    provenance,
    query_count,
    unknown_tokens,
    without_text,
)
from rankdash.kit.commands.arguments import (
    DONE,
    INCOMPLETE,
    NAMES,
    Parser,
    add_first_stage,
    add_label_rules,
    add_match,
    add_plugin,
    add_settings,
    columns_of,
    settings_lines,
    settings_of,
)
from rankdash.kit.commands.output import (
    one_line,
    printable,
    spare_the_input,
    target_of,
    used_lines,
    warn,
    write_ranking,
    writing,
)
from rankdash.kit.commands.timings import no_result, tell_queries, write_timings
from rankdash.kit.html.tables import run_bytes

_REPORT_SECONDS = 5.0
_ONCE: dict[Step, str] = {
    "converting": "Converting the packaged weights",
    "exporting": "Exporting the model to ONNX",
    "choosing": "Measuring which runtime is fastest here",
}


def add(parser: Parser) -> None:
    parser.description = (
        "Rerank the candidates of a data set and write a TREC run, best first, with strictly "
        "decreasing scores. Failed queries are listed on standard error and are not in the file; "
        "the exit code is then 1. If all queries fail, no file is written (exit code 2)."
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.closing = describe_rerankers
    parser.several(
        "--data", "PATH", f"the files, folder or archive of the data set{NAMES}", required=True
    )
    parser.option("--reranker", "NAME", "one of the rerankers below", required=True)
    add_settings(parser, "a setting of the reranker; may be repeated")
    parser.number(
        "--depth",
        "rerank the first N candidates of each query; the others follow below them in first-stage "
        "order, with decreasing scores (default: all)",
        kind=int,
        also=("--top-k",),
    )
    add_first_stage(parser)
    parser.choice(
        "--without-text",
        get_args(WithoutText),
        "candidates without a text: exclude (they follow below the reranked ones, in first-stage "
        "order) or empty (scored as empty texts; some services reject them) (default: "
        "%(default)s)",
        default="exclude",
    )
    parser.option(
        "--out",
        "FILE",
        "the run to write; an existing file is replaced, but never a file of the data set; - is "
        "standard output",
        also=("-o",),
        required=True,
    )
    parser.option(
        "--shard",
        "I/N",
        "rerank only part I of N, for a job of a cluster; `merge` combines the files of all "
        "parts. Each query is scored individually, with runtime=onnx if it is auto, and on a CPU "
        "text by text, so that its scores do not depend on N",
    )
    parser.option(
        "--resume",
        "FILE",
        "store the results of each query in FILE during the run. A stopped run that is started "
        "again with the same data and options resumes from FILE, with the same runtime and "
        "device. The file is deleted when all queries are done",
    )
    parser.number(
        "--repeats",
        "how often a query is timed individually; its latency is the median (default: %(default)s)",
        kind=int,
        default=1,
    )
    parser.option(
        "--clients",
        "N",
        "also measure the throughput at these numbers of concurrent clients, such as 1 2 4",
        also=("--concurrency",),
        type=int,
        nargs="+",
        default=[],
    )
    parser.option(
        "--timings",
        "FILE",
        "time every query individually, and write its state, its latency and the latency of each "
        "repeat. The file is CSV if its name ends in .csv, else JSON; `gate` reads it",
    )
    parser.option(
        "--stop-when-conclusive",
        "SPEC",
        "score the queries in random order, and stop when the change of this metric, such as "
        "ndcg@10, against the first stage is conclusive. Needs labels in --data, and --timings: "
        "with this file, other commands use anytime-valid intervals",
    )
    parser.option(
        "--on",
        "ADDRESS",
        "score on a Ray cluster: ray (a local cluster), ray://HOST:PORT (through the Ray client), "
        "or HOST:PORT (from a machine of the cluster)",
    )
    parser.settings(ACTOR_SETTINGS, hints=dict.fromkeys(("number", "cpus", "gpus"), "with --on"))
    add_plugin(parser)
    add_label_rules(parser)
    add_match(parser)
    parser.set_defaults(command=_command)


def _command(arguments: argparse.Namespace) -> int:
    if arguments.on is not None and needed(arguments.on):
        return run_apart(arguments.typed, arguments.on)
    with apart():
        return _rerank(arguments)


def _rerank(arguments: argparse.Namespace) -> int:
    """Rerank and write the run. Progress, failures and measurements go to standard error."""
    use_plugins(arguments.plugin)
    timing = Timing(
        # A file of timings contains all queries, not a sample. In a batch, the last digits of a
        # score can depend on the other queries.
        latency="auto" if arguments.timings is None and arguments.shard is None else "every",
        repeats=arguments.repeats,
        concurrency=tuple(arguments.clients),
    )
    shard = None if arguments.shard is None else Shard.parse(arguments.shard)
    kind = reranker_kind(arguments.reranker)
    # Wrong settings are refused before the data are read.
    reranker = create(arguments.reranker, settings_of(arguments.settings))
    actors = _actors(arguments)
    target = target_of(arguments.out)
    spare_the_input(target, arguments.data)
    table = None if arguments.timings is None else target_of(arguments.timings)
    if table is not None:
        spare_the_input(table, arguments.data)
        if table.resolve() == target.resolve():
            raise DataError(
                "--out and --timings name the same file.",
                remedy="Use another name for --timings.",
                file=str(table),
            )
    loaded = load(
        sources_at(arguments.data),
        first_stage=arguments.first_stage,
        retrieval=arguments.retrieval,
        retrieved=arguments.retrieved,
        conflict=arguments.conflict,
        worst_label=arguments.worst_label,
        match=arguments.match,
        columns=columns_of(arguments.columns),
    )
    warn(loaded.report.warnings)
    reranker = create(
        reranker.name, with_model(kind, settings_of(arguments.settings), loaded.dataset)
    )
    settings = reranker.settings
    warn(misfit(reranker.settings, loaded.dataset.language))
    shard_ids = None if shard is None else shard.queries(loaded.dataset)
    able = kind.able(reranker.settings)
    planned = plan(
        loaded.dataset,
        arguments.depth,
        shard_ids,
        needs_text=able.needs_text,
        without_text=arguments.without_text,
    )
    watch = _watch(arguments, loaded.dataset, planned)
    checkpoint = _checkpoint(arguments, loaded.dataset, reranker)
    done = () if checkpoint is None else checkpoint.results
    if checkpoint is not None and checkpoint.computed:
        reranker = create(reranker.name, with_runtime(settings, checkpoint.computed))
        how = ", ".join(f"{name}={value}" for name, value in checkpoint.computed.items())
        sys.stderr.write(f"Resuming with {printable(how)}, as in the file of --resume.\n")
    progress = _Progress(len(planned.documents) - len(still_good(done, planned)))

    def scored(results: list[QueryResult]) -> None:
        if checkpoint is not None:
            checkpoint.add(results)
        progress.scored(results)

    def prepared() -> None:
        if checkpoint is not None and isinstance(ready, Detailed):
            checkpoint.begin(ready.details())

    with (
        runtimes.one_by_one() if shard else nullcontext(),
        on_ray(reranker, kind, arguments.on, actors)
        if arguments.on
        else nullcontext(reranker) as ready,
    ):
        run = rerank(
            loaded.dataset,
            ready,
            depth=arguments.depth,
            query_ids=shard_ids,
            done=done,
            without_text=arguments.without_text,
            capabilities=able,
            timing=timing,
            watch=watch,
            on_step=progress.begun,
            on_prepared=prepared,
            on_loaded=progress.loaded,
            on_batch=scored,
        )
    if shard is not None:
        queries = run.queries[run.queries["query_id"].isin(shard_ids or ())]
        run = replace(run, queries=queries, settings=settings)
        lines = run_bytes(run.ranking, run.name)
        # If nothing was scored, no weights were loaded.
        weights = "" if math.isnan(run.load_ms) else reranker.fingerprint()
        content = part_bytes(shard, loaded.dataset, run, weights, __version__, lines)
        with writing(target) as file:
            file.write(content)
    elif (run.queries["state"] == "done").any():
        write_ranking(run.ranking, target, run.name)
    else:
        raise no_result(run.queries)
    complete = _report(run, target)
    if watch is not None:
        sys.stderr.write(f"{_result(watch)}\n")
    if table is not None:
        write_timings(run, table)
    if checkpoint is not None and complete:
        checkpoint.remove()
    return DONE if complete else INCOMPLETE


def _watch(arguments: argparse.Namespace, dataset: Dataset, planned: Plan) -> Watch | None:
    """Return the watch of a run that may stop by its result; None for other runs. Raises
    SettingError if it cannot stop."""
    if arguments.stop_when_conclusive is None:
        return None
    if arguments.timings is None or arguments.shard is not None:
        raise SettingError(
            "--stop-when-conclusive needs --timings, and cannot be used with --shard.",
            remedy="Add --timings FILE, and remove --shard.",
        )
    if dataset.labelled_queries < FEWEST_SCORED:
        raise SettingError(
            "--stop-when-conclusive needs at least {fewest} labelled queries, not {n}.",
            remedy="Add labels to --data, or remove the option.",
            fewest=FEWEST_SCORED,
            n=dataset.labelled_queries,
        )
    rule = StopRule(arguments.stop_when_conclusive, by_itself=True)
    return Watch(dataset, planned, rule, Timing().seed)


def _result(watch: Watch) -> str:
    """Return the result of a run that might have stopped."""
    look, title = watch.look, parse_measure(watch.rule.metric).title
    conclusive = "Conclusive" if look.conclusive else "Not conclusive"
    if math.isnan(look.low):
        return f"Not conclusive: fewer than {FEWEST_CHANGED} queries changed."
    return (
        f"{conclusive} after {look.done:,} of {query_count(len(watch.order))}: {title} "
        f"{signed(look.change)} ({level_percent(watch.rule.level)} {signed(look.low)} … "
        f"{signed(look.high)}, anytime-valid)"
    )


def _checkpoint(
    arguments: argparse.Namespace, dataset: Dataset, reranker: Reranker
) -> ResultsFile | None:
    """Return the results to resume from, or None. Raise DataError if they are of another run."""
    if arguments.resume is None:
        return None
    target = target_of(arguments.resume)
    written = [each for each in (arguments.out, arguments.timings) if each is not None]
    if target.resolve() in {Path(each).resolve() for each in written}:
        raise DataError(
            "--resume names the same file as --out or --timings.",
            remedy="Use another name for --resume.",
            file=str(target),
        )
    wish = {
        "version": __version__,
        "data": dataset.id,
        "reranker": reranker.name,
        "settings": dict(reranker.settings),
        "depth": arguments.depth,
        "shard": arguments.shard,
        "repeats": arguments.repeats,
        "without-text": arguments.without_text,
    }
    return ResultsFile(target, wish)


def _actors(arguments: argparse.Namespace) -> Actors:
    """Return the number and resources of the scoring processes on a Ray cluster, from the options.

    Raises SettingError if they are set without a cluster, or if one shard is to be scored on a
    cluster.
    """
    actors = Actors(arguments.number, arguments.cpus, arguments.gpus)
    if arguments.on is None and actors != Actors():
        raise SettingError(
            "--actors, --actor-cpus and --actor-gpus need a Ray cluster.",
            remedy="Add its address, such as --on ray for a local cluster.",
        )
    if arguments.on is not None and arguments.shard is not None:
        raise SettingError(
            "A shard cannot be scored on a cluster.",
            remedy="Remove --shard or --on.",
        )
    return actors


class _Progress:
    """Progress on standard error: when the model is loaded, and every few seconds after."""

    def __init__(self, queries: int) -> None:
        self._queries = queries
        self._done = 0
        self._reported = time.monotonic()

    def begun(self, step: Step) -> None:
        if step in _ONCE:
            sys.stderr.write(f"{_ONCE[step]}, once for each model …\n")

    def loaded(self, load_ms: float) -> None:
        sys.stderr.write(
            f"Ready after {load_ms / 1000:.1f} s; {query_count(self._queries)} to do.\n"
        )
        self._reported = time.monotonic()

    def scored(self, results: list[QueryResult]) -> None:
        self._done += len(results)
        if time.monotonic() - self._reported >= _REPORT_SECONDS:
            self._reported = time.monotonic()
            sys.stderr.write(f"{self._done:,} of {query_count(self._queries)}\n")


def _report(run: Run, target: Path) -> bool:
    """Report the measurements; return True if no query failed."""
    complete = tell_queries(run.queries, target)
    if run.measured is not None and run.measured.illiterate:
        warning = unknown_tokens(printable(run.name), run.measured.unknown_tokens)
        sys.stderr.write(f"warning: {warning}\n")
    weights = provenance(run.machine)
    lines = (*([weights] if weights else []), *_measured(run), *_used(run))
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return complete


def _used(run: Run) -> Iterator[str]:
    """Return lines on the calls to services, with their tokens and price."""
    used = usage(run)
    return iter(()) if used is None else used_lines(used)


def _measured(run: Run) -> Iterator[str]:
    """Yield latency and throughput separately: neither can be derived from the other."""
    latency, measured = summarize(run.queries), run.measured
    on_cluster = run.machine.get("ray_actors")
    if latency.n:
        shares = ("p90", latency.p90), ("p95", latency.p95), ("p99", latency.p99)
        tail = "".join(f", {name} {brief(value)} ms" for name, value in shares if value is not None)
        spread = f" ± {brief(latency.deviation)}" if math.isfinite(latency.deviation) else ""
        where = "" if on_cluster is None else f", on {run.machine['node']} of the Ray cluster"
        yield (
            f"Latency of single queries after warm-up{where}: p50 {brief(latency.p50)} ms{tail}, "
            f"mean {brief(latency.mean)}{spread} ms ({query_count(latency.n)})"
        )
    if measured is None:
        return
    if textless := without_text(measured):
        yield textless
    if measured.pairs:
        tokens = measured.tokens_per_second
        read = "" if math.isnan(tokens) else f", {tokens:,.0f} tokens per second"
        how = "one query" if measured.together == 1 else f"up to {measured.together:,} queries"
        actors = "" if on_cluster is None else f" by each of {on_cluster} Ray actors"
        yield (
            f"Throughput: {measured.pairs_per_second:,.1f} pairs per second{read} ({how} at a time"
            f"{actors})"
        )
    if measured.refused:
        yield (
            f"Requests refused by a rate limit (429): {measured.refused:,} of "
            f"{measured.requests:,} ({percent(measured.refused_share)})"
        )
    for level in measured.throughput:
        clients = "1 client" if level.in_flight == 1 else f"{level.in_flight} clients"
        failed = f", {level.failed:,} failed" if level.failed else ""
        tail = f", p95 {brief(level.p95_ms)} ms" if math.isfinite(level.p95_ms) else ""
        yield (
            f"With {clients}: {level.queries_per_second:,.2f} queries per second, "
            f"p50 {brief(level.p50_ms)} ms{tail}{failed}"
        )
    if measured.contended:
        threads = "1 thread" if measured.threads == 1 else f"{measured.threads} threads"
        yield (
            f"The machine was busy: {measured.cpu_per_wall:.1f} of "
            f"{threads} were active, so these times are too long."
        )


# `rerankers`: every reranker with its settings.


def add_rerankers(parser: Parser) -> None:
    parser.description = (
        "List every reranker with its settings and their defaults, and the known models and "
        "services with their facts. The environment variable RANKDASH_CATALOGUE names a file that "
        "replaces the facts."
    )
    add_plugin(parser)
    parser.formats(("text", "json"))
    parser.set_defaults(command=_rerankers)


def _rerankers(arguments: argparse.Namespace) -> int:
    use_plugins(arguments.plugin)
    if arguments.format == "json":
        sys.stdout.write(json.dumps(rerankers_by_name(), indent=2) + "\n")
    else:
        sys.stdout.write(f"{describe_rerankers()}\n\n{_describe_models()}\n")
    return DONE


def use_plugins(files: Sequence[str]) -> None:
    """Add plugins from files, and report on standard error which plugins are not loaded."""
    add_plugins(files)
    for problem in problems():
        sys.stderr.write(f"warning: {one_line(str(problem))}\n")


def reranker_kind(name: str) -> RerankerKind:
    """Return the kind of this name; the error for an unknown name lists only rerankers that can
    run."""
    try:
        return get(name)
    except SettingError as problem:
        raise unknown_kind(name, [kind.name for kind in _makeable()]) from problem


def _makeable() -> list[RerankerKind]:
    """Return the kinds of rerankers that can be run: all but rankings from files."""
    return [kind for kind in kinds() if kind.name != Precomputed.name]


def describe_rerankers() -> str:
    """Return every reranker with its settings, for the help text."""
    lines = ["rerankers and their settings (--set key=value):"]
    for kind in _makeable():
        lines.append(f"  {kind.name}: {kind.meaning}")
        lines += settings_lines(kind.settings, "    ")
    return "\n".join(lines)


def _describe_models() -> str:
    """Return every known model that exists, one per line."""
    today, lines = datetime.now(UTC).date(), ["known models (--json: all facts):"]
    for model in loaded().models:
        facts = [
            "many languages" if MANY in model.languages else ", ".join(model.languages),
            f"{model.size / 1e6:,.0f} M parameters" if model.size else "",
            f"{model.max_length:,} tokens" if model.max_length else "",
            licence_of(model),
            "ended" if model.ended(today) else model.status.replace("current", ""),
        ]
        name = f"{model.service}: {model.id}" if model.service else model.id
        lines.append(f"  {name}: {'; '.join(filter(None, facts))}")
    return "\n".join(lines)


def _models_of(kind: str) -> list[dict[str, object]]:
    """Return the known models that a reranker runs, with all their facts."""
    today = datetime.now(UTC).date()
    return [
        {**each.facts(today), "licence": licence_of(each)}
        for each in loaded().models
        if kind == kind_of(each).name
    ]


def rerankers_by_name() -> dict[str, object]:
    """Return reranker → title, meaning, settings and known models, ready for JSON."""
    today = datetime.now(UTC).date()
    services = [each.facts(today) for each in loaded().services]
    return {
        kind.name: {
            "title": kind.title,
            "meaning": kind.meaning,
            "settings": {
                spec.name: {
                    "default": spec.default,
                    "help": spec.help,
                    "choices": list(spec.choices),
                    "range": spec.range,
                }
                for spec in kind.settings
            },
            "models": _models_of(kind.name),
            "services": services if kind.name == Endpoint.name else [],
        }
        for kind in _makeable()
    }
