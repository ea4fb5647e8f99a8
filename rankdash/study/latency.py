"""How long the systems of a study take: latencies, what they grow with, and their throughput."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from rankdash.analysis import latency
from rankdash.analysis.latency import Apart, Fit, LatencySummary, Ratio, summarize
from rankdash.analysis.statistics.bootstrap import FloatArray
from rankdash.analysis.token_lengths import TokenLengths
from rankdash.analysis.token_lengths import token_lengths as lengths_of
from rankdash.ranking.ranking import Run
from rankdash.study.study import Study

Against = Literal["documents", "tokens"]
_COLUMN: dict[Against, str] = {"documents": "pairs", "tokens": "tokens"}


@dataclass(frozen=True, eq=False)
class Times:
    """The latencies of a run, ascending, and what comes of them. steps: as from
    `analysis.latency.ecdf`. documents: the fewest and the most of a timed query.
    repeats_deviation: as from `analysis.latency.repeats_deviation`."""

    run: Run
    ordered: FloatArray
    summary: LatencySummary
    steps: pd.DataFrame
    apart: Apart
    documents: tuple[int, int]
    repeats_deviation: float


def times(study: Study, system: str) -> Times | None:
    """None for the first stage, whose latency nobody measures."""
    run = study.run(system)
    if run is None:
        return None

    level = study.statistics.level

    def make() -> Times:
        ordered = latency.latencies(run.queries)
        timed = run.queries.loc[np.isfinite(run.queries["latency_ms"]), "pairs"].dropna()
        return Times(
            run=run,
            ordered=ordered,
            summary=summarize(run.queries, level),
            steps=latency.ecdf(ordered),
            apart=latency.apart(run),
            documents=(int(timed.min()), int(timed.max())) if len(timed) else (0, 0),
            repeats_deviation=latency.repeats_deviation(run),
        )

    return study.once(("times", system, level), make)


def timed(study: Study) -> dict[str, Times]:
    """The chosen systems of which a latency was measured, in their order."""
    found = {system: times(study, system) for system in study.chosen}
    return {system: each for system, each in found.items() if each is not None and each.summary.n}


def summary(study: Study, system: str) -> LatencySummary | None:
    """None for the first stage, and where nothing was measured."""
    found = times(study, system)
    return found.summary if found is not None and found.summary.n else None


def cloud(study: Study, system: str, against: Against) -> tuple[pd.DataFrame, Fit | None]:
    """x and ms of every timed query whose x is known, and the line through them."""
    run = study.run(system)
    if run is None:
        return pd.DataFrame({"x": [], "ms": []}, dtype=np.float64), None
    rules = study.statistics

    def make() -> tuple[pd.DataFrame, Fit | None]:
        rows = run.queries[[_COLUMN[against], "latency_ms"]]
        points = rows.set_axis(["x", "ms"], axis="columns").dropna().reset_index(drop=True)
        x, ms = points["x"].to_numpy(), points["ms"].to_numpy()
        return points, latency.fit(x, ms, level=rules.level, seed=rules.seed)

    return study.once(("latency cloud", system, against, rules.level, rules.seed), make)


def ratio(study: Study, before: str, after: str) -> Ratio | None:
    """How many times as long the second system takes, on the queries timed in both."""
    one, other = study.run(before), study.run(after)
    if one is None or other is None:
        return None
    rules = study.statistics
    return study.once(
        ("latency ratio", before, after, rules),
        lambda: latency.paired_ratio(one.queries, other.queries, rules),
    )


def token_lengths(study: Study, system: str) -> TokenLengths | None:
    """None where the system reads no tokens."""
    run = study.run(system)
    reading = None if run is None else run.reading
    if reading is None:
        return None
    return study.once(("token lengths", system), lambda: lengths_of(reading))
