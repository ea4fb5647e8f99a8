"""How long the systems of a study take: latencies, what they grow with, and their throughput."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.data.ranking import Reading, Run
from rankdash.core.runs.combining import part_ids
from rankdash.core.statistics.bootstrap import FloatArray
from rankdash.core.study import latency
from rankdash.core.study.cache import Key, part
from rankdash.core.study.latency import Apart, Fit, LatencySummary, Ratio, summarize
from rankdash.core.study.study import Study

Against = Literal["documents", "tokens"]
# A deeper run that takes less than this share of a shallower one's time was not measured alike.
_FASTER = 0.95
_COLUMN: dict[Against, str] = {"documents": "pairs", "tokens": "tokens"}


@dataclass(frozen=True, eq=False)
class Times:
    """The latencies of a run, ascending, and what comes of them. steps: as from
    `study.latency.ecdf`. documents: the fewest and the most of a timed query.
    repeats_deviation: as from `study.latency.repeats_deviation`."""

    run: Run
    ordered: FloatArray
    summary: LatencySummary
    steps: pd.DataFrame
    apart: Apart
    documents: tuple[int, int]
    repeats_deviation: float


def timed_by(study: Study, system: str) -> Key:
    """Return the system and, of a run made of others, those of them that the study has: whatever is
    computed of its latencies depends on them."""

    def ids() -> tuple[str, ...]:
        run = study.run(system)
        return () if run is None else part_ids(run)

    # So that no run is loaded to make a key.
    parts = study.once(("part ids", system), ids)
    return (system, *(timed_by(study, each) for each in parts if each in study.systems))


def times(study: Study, system: str) -> Times | None:
    """None for the first stage, whose latency nobody measures."""
    return None if study.systems[system].load is None else _times(study, timed_by(study, system))


@part("level")
def _times(study: Study, timed: Key) -> Times | None:
    run = study.run(str(timed[0]))
    if run is None:
        return None
    ordered = latency.latencies(run.queries)
    pairs = run.queries.loc[np.isfinite(run.queries["latency_ms"]), "pairs"].dropna()
    return Times(
        run=run,
        ordered=ordered,
        summary=summarize(run.queries, study.statistics.level),
        steps=latency.ecdf(ordered),
        apart=latency.apart(run),
        documents=(int(pairs.min()), int(pairs.max())) if len(pairs) else (0, 0),
        repeats_deviation=latency.repeats_deviation(run),
    )


def busy(study: Study, system: str) -> bool:
    """Whether other programs held the processor while a system, or a part of it, was measured."""
    run = study.run(system)
    if run is None:
        return False
    if run.measured is not None and run.measured.contended:
        return True
    return any(part in study.systems and busy(study, part) for part in part_ids(run))


def least(study: Study, system: str) -> tuple[float, float]:
    """Return the ends of the p95 latency that a repeated measurement may give: its interval, on a
    busy machine down to the share of the processor that the run had. NaN where not known."""
    found = times(study, system)
    if found is None or found.summary.p95 is None:
        return (math.nan, math.nan)
    low, high = (
        found.summary.p95 if math.isnan(end) else end for end in found.summary.p95_interval
    )
    measured = found.run.measured
    share = 1.0
    if measured is not None and measured.threads and measured.contended:
        share = measured.cpu_per_wall / measured.threads
    return (min(low, found.summary.p95 * share), high)


@dataclass(frozen=True)
class Inversion:
    """Two runs of one reranker with the same settings, of which the deeper one was measured faster.

    documents, fewer: that each reranks for a query, on average.
    """

    deeper: str
    shallower: str
    documents: float
    fewer: float


def inversions(study: Study) -> tuple[Inversion, ...]:
    """Return every pair of chosen runs of different depths whose latency falls with depth, which no
    machine does."""
    found = []
    known = {
        system: (run, float(run.queries["pairs"].mean()), each.summary.p95 or each.summary.p50)
        for system, each in timed(study).items()
        for run in [each.run]
    }
    for deeper, (run, documents, ms) in known.items():
        for shallower, (other, fewer, longer) in known.items():
            same = (run.reranker, run.settings) == (other.reranker, other.settings)
            same &= run.depth != other.depth and not part_ids(run)
            if same and documents > fewer and ms < _FASTER * longer:
                found.append(Inversion(deeper, shallower, documents, fewer))
    return tuple(found)


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
    return _cloud(study, timed_by(study, system), against)


@part("level", "seed")
def _cloud(study: Study, timed: Key, against: Against) -> tuple[pd.DataFrame, Fit | None]:
    run = study.run(str(timed[0]))
    if run is None:
        return pd.DataFrame({"x": [], "ms": []}, dtype=np.float64), None
    rows = run.queries[[_COLUMN[against], "latency_ms"]]
    points = rows.set_axis(["x", "ms"], axis="columns").dropna().reset_index(drop=True)
    x, ms = points["x"].to_numpy(), points["ms"].to_numpy()
    return points, latency.fit(x, ms, level=study.statistics.level, seed=study.statistics.seed)


def ratio(study: Study, before: str, after: str) -> Ratio | None:
    """How many times as long the second system takes, on the queries timed in both."""
    return _ratio(study, timed_by(study, before), timed_by(study, after))


@part("statistics")
def _ratio(study: Study, before: Key, after: Key) -> Ratio | None:
    one, other = study.run(str(before[0])), study.run(str(after[0]))
    if one is None or other is None:
        return None
    return latency.paired_ratio(one.queries, other.queries, study.statistics)


def token_lengths(study: Study, system: str) -> TokenLengths | None:
    """None where the system reads no tokens."""
    run = study.run(system)
    reading = None if run is None else run.reading
    if reading is None:
        return None
    return study.once(("token lengths", system), lambda: lengths_of(reading))


# How long the texts are that a model read, in tokens.


@dataclass(frozen=True)
class TokenLengths:
    """How long pairs are in tokens, and what a model left unread.

    table: start, stop (tokens, stop not included; inf for the last where longer ones are gathered),
        whole (pairs read to the end), cut (pairs that were not).
    pairs: with a known length. limit: the most tokens that were read of a cut pair; None where no
        pair was cut. unread: share of all tokens. p50, p95: of the full lengths.
    """

    table: pd.DataFrame
    pairs: int
    cut: int
    limit: int | None
    unread: float
    p50: float
    p95: float


def lengths_of(reading: Reading, bins: int = 30) -> TokenLengths | None:
    """None where no length is known."""
    known = (reading.read >= 0) & (reading.full >= 0)
    read = reading.read[known].astype(np.int64)
    full = reading.full[known].astype(np.int64)
    if not len(full):
        return None
    cut = full > read
    p50, p95, most = (float(each) for each in np.quantile(full, [0.5, 0.95, 0.99]))
    limit = int(read[cut].max()) if cut.any() else None
    edges = _edges(max(most, limit or 0), bins)
    beyond = bool(full.max() >= edges[-1])
    places = np.minimum(np.searchsorted(edges, full, side="right") - 1, len(edges) - 1)
    count = len(edges) - 1 + beyond
    table = pd.DataFrame(
        {
            "start": edges[:count],
            "stop": np.append(edges[1:], math.inf)[:count],
            "whole": np.bincount(places[~cut], minlength=count),
            "cut": np.bincount(places[cut], minlength=count),
        }
    )
    return TokenLengths(
        table=table,
        pairs=len(full),
        cut=int(cut.sum()),
        limit=limit,
        unread=float((full - read).sum() / max(int(full.sum()), 1)),
        p50=p50,
        p95=p95,
    )


def _edges(most: float, bins: int) -> npt.NDArray[np.int64]:
    """Bins of a round width from 0 to beyond `most`."""
    width = max(most / bins, 1.0)
    unit = 10 ** math.floor(math.log10(width))
    step = next(unit * each for each in (1, 2, 4, 5, 10) if unit * each >= width)
    return np.arange(0, math.floor(most / step) + 2, dtype=np.int64) * int(step)
