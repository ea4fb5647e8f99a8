"""`report`: a comparison from files as one HTML file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from rankdash.analysis.labels.labelling import restored
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.cli.assumptions import read_money
from rankdash.cli.rankings import made_ids, matching, names_of, no_ranking, read_run, with_run
from rankdash.cli.target import spare_the_input, target_of
from rankdash.cli.writing import printable, warn
from rankdash.errors import DataError, SpecError
from rankdash.i18n import speaking
from rankdash.loading import Loaded, load
from rankdash.metrics import Conventions, parse_measure
from rankdash.ranking.ranking import Run
from rankdash.readers import Conflict, Source, sources_at
from rankdash.readers.timings import read_timings
from rankdash.reporting.report import ALL, SECTIONS, Front, html
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, first_stage_name, systems_of
from rankdash.value.assumptions import ASSUMPTIONS


@dataclass(frozen=True)
class Asked:
    """What a report is asked for; paths as they were typed.

    data: of a data set, or else qrels: of its labels. timings: of the challengers, in their order.
    sections: ids; empty for all.
    """

    data: tuple[str, ...]
    qrels: str | None
    baseline: str | None
    challengers: tuple[str, ...]
    timings: tuple[str, ...] = ()
    first_stage: str | None = None
    metric: str = "ndcg@10"
    title: str = ""
    note: str = ""
    logo: str | None = None
    sections: tuple[str, ...] = ()
    language: str = "en"
    assumptions: str | None = None

    @property
    def files(self) -> list[str]:
        """Everything that is read."""
        given = (self.qrels, self.baseline, self.logo, self.assumptions)
        named = [file for file in given if file is not None]
        return [*self.data, *self.challengers, *self.timings, *named]


def write_report(
    asked: Asked,
    out: str,
    conventions: Conventions,
    statistics: StatisticsSettings,
    *,
    conflict: Conflict,
) -> None:
    """Read, compare and write. What the readers find odd goes to standard error.

    Raises DataError where a file cannot be used or would be replaced, and SpecError for a metric,
    a section or a language that does not exist.
    """
    target = target_of(out)
    spare_the_input(target, asked.files)
    front = Front(
        title=asked.title,
        note=asked.note,
        logo=None if asked.logo is None else Path(asked.logo).read_bytes(),
        sections=asked.sections or ALL,
        language=asked.language,
    )
    parse_measure(asked.metric)
    with speaking(front.language):
        study = _study(asked, conventions, statistics, conflict)
    if asked.assumptions is not None:
        names = {system: study.name(system) for system in study.challengers}
        study = replace(study, money=read_money(Path(asked.assumptions), names))
    content = html(study, front)
    target.write_bytes(content)
    sys.stderr.write(
        f"Written: {printable(str(target))} ({len(content) / 1e6:.1f} MB, it opens in a browser "
        "without a network)\n"
    )


def describe() -> str:
    """The sections and the assumptions by their names, for the help text."""
    sections = [f"  {section.id}: {section.title}" for section in SECTIONS]
    assumptions = [
        f"  {each.name} = {each.default:g}: {each.title}"
        + ("" if each.unit.casefold() == each.title.casefold() else f" ({each.unit})")
        for each in ASSUMPTIONS
    ]
    return "\n".join(
        [
            "sections (--sections ID …):", *sections,
            "", "what --assumptions may say, and what is taken without it:", *assumptions,
        ]
    )  # fmt: skip


def _study(
    asked: Asked, conventions: Conventions, statistics: StatisticsSettings, conflict: Conflict
) -> Study:
    if asked.qrels is not None and (asked.baseline is None or not asked.challengers):
        raise SpecError("With --qrels, --baseline and --challenger are needed too.")
    if asked.timings and len(asked.timings) != len(asked.challengers):
        raise SpecError(
            "There are {timings} --timings for {challengers} --challenger.",
            remedy="Give one for each, in the same order.",
            timings=len(asked.timings),
            challengers=len(asked.challengers),
        )
    sources = sources_at(asked.data or (asked.qrels or "",))
    named = names_of([*([asked.baseline] if asked.baseline else []), *asked.challengers])
    loaded = _loaded(asked, sources, conflict)
    warn(loaded.report.warnings)
    first = first_stage_name(loaded.dataset) if asked.qrels is None else next(iter(named))
    timed = dict(zip(list(named)[-len(asked.timings) :], asked.timings, strict=False))
    runs = [
        _run(name, path, timed.get(name), sources, loaded, conflict)
        for name, path in named.items()
        if asked.qrels is None or name != first
    ]
    ids = [run.id for run in runs]
    baseline = ids.pop(0) if asked.qrels is None and asked.baseline is not None else FIRST_STAGE
    if not asked.challengers:
        ids = [run.id for run in loaded.runs if run.id != baseline]
    return Study.on(
        asked.metric,
        dataset=loaded.dataset,
        systems=systems_of(
            loaded.dataset, {run.id: run for run in (*loaded.runs, *runs)}.values(), first
        ),
        baseline=baseline,
        challengers=tuple(ids),
        conventions=conventions,
        statistics=statistics,
        check=loaded.report,
    )


def _loaded(asked: Asked, sources: Sequence[Source], conflict: Conflict) -> Loaded:
    """The data set; of labels alone, the documents are those that the baseline ranks."""
    if asked.qrels is None or asked.baseline is None:
        return load(sources, first_stage=asked.first_stage, conflict=conflict)
    together, name = with_run(Path(asked.baseline), sources)
    # Whatever labels the file of the ranking holds, those of --qrels count.
    own = any(name == source.name for source in sources)
    try:
        return load(
            together,
            first_stage=name,
            conflict=conflict,
            name=Path(asked.qrels).stem,
            unlabelled=None if own else name,
        )
    except DataError as problem:
        if problem.params.get("wanted") != name:
            raise
        raise no_ranking(Path(asked.baseline)) from problem


def _run(
    name: str,
    path: Path,
    timings: str | None,
    sources: Sequence[Source],
    loaded: Loaded,
    conflict: Conflict,
) -> Run:
    together = read_run(path, sources, conflict)
    if together.candidates is None:
        raise no_ranking(path)
    run = run_from_ranking(name, loaded.dataset.id, together.candidates, path.name)
    labels = loaded.dataset.qrels
    if timings is not None:
        run = _timed(run, timings)
        # What failed is left out: the ranking does not lack it.
        labels = labels[~labels["query_id"].isin(run.left_out)]
    warn(matching(name, together.candidates, labels, path, made_ids(together)))
    return run


def _timed(run: Run, file: str) -> Run:
    """The run with its latencies, and with what failed or was skipped, so that it counts as left
    out and not as ranked nothing."""
    table, noticed = read_timings(Source.from_path(Path(file)))
    warn(noticed)
    known = set(run.queries["query_id"])
    # A CSV for a spreadsheet may spell an id with an apostrophe in front.
    ids = [query if query in known else restored(query) for query in table["query_id"]]
    table = table.assign(query_id=ids)
    ranked = table[table["query_id"].isin(known)]
    if ranked.empty:
        raise DataError(
            "None of the queries that were timed is in the ranking {name}.",
            remedy="Give the timings of each --challenger, in their order.",
            file=file,
            name=run.name,
        )
    times = dict(zip(ranked["query_id"], ranked["latency_ms"], strict=True))
    queries = run.queries.assign(latency_ms=[times.get(q, np.nan) for q in run.queries["query_id"]])
    lost = table[(table["state"] != "done") & ~table["query_id"].isin(known)]
    return replace(run, queries=pd.concat([queries, _without_result(lost)], ignore_index=True))


def _without_result(lost: pd.DataFrame) -> pd.DataFrame:
    unknown: Mapping[str, float] = dict.fromkeys(
        ("latency_ms", "index_ms", "pairs", "tokens", "truncated"), np.nan
    )
    return lost[["query_id", "state", "reason"]].assign(**unknown)
