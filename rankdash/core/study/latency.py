"""Query latencies: distribution, target, growth with documents or tokens, comparison of systems.

A latency is of one query at a time, with its documents, on a warm reranker. The throughput of a
machine cannot be derived from it: see `measured.Level`.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.rules import LEVEL, SEED, StatisticsSettings
from rankdash.core.data.arrays import Floats
from rankdash.core.data.measured import FEWEST_TIMED, meets
from rankdash.core.data.ranking import RETRIEVAL, Reading, Run
from rankdash.core.runs.combining import part_ids
from rankdash.core.statistics.inference import intervals
from rankdash.core.study.cache import Key, part
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE

MOST_POINTS = 400
"""The number of steps of a curve that a screen can show separately."""

FEWEST_FITTED = 10
"""The fewest points for a line; with fewer, chance dominates."""

# The Theil–Sen estimator computes the slope of every two points: 179,700 for 600 points.
_MOST_FITTED = 600
_TIMED_OUT = "time-out"

# With fewer queries, fewer than ten are above the 99th percentile.
P99_NEEDS = 1000


def latencies(queries: pd.DataFrame) -> Floats:
    """Return the measured latencies in the table of a `Run`, ascending, in milliseconds."""
    values = queries["latency_ms"].to_numpy(dtype=np.float64)
    return np.sort(values[np.isfinite(values)])


@dataclass(frozen=True)
class LatencySummary:
    """Statistics of n measured latencies in milliseconds, NaN if n is 0.

    mean, deviation: their mean and standard deviation (divisor n - 1; NaN for n = 1).
    p90, p95: None below `FEWEST_TIMED` latencies: they would be the slowest one.
    p99: None below 1,000 latencies: it would depend on a few of them.
    p50_interval, p95_interval: the interval that covers the quantile with at least the confidence
        `level`, for any distribution; NaN for an end if n is too small.
    """

    n: int
    mean: float
    deviation: float
    p50: float
    p90: float | None
    p95: float | None
    p99: float | None
    p50_interval: tuple[float, float]
    p95_interval: tuple[float, float]


def summarize(queries: pd.DataFrame, level: float = LEVEL) -> LatencySummary:
    """Return statistics of the latencies in the table of a `Run`. Queries without a latency are
    excluded: failed ones, and those with cached scores.

    Quantiles interpolate linearly (Hyndman & Fan 1996, type 7). The throughput is measured
    separately: `Run.measured`.
    """
    values = latencies(queries)
    if not len(values):
        nan = math.nan
        none = (nan, nan)
        return LatencySummary(0, nan, nan, nan, None, None, None, none, none)
    p50, p90, p95, p99 = (float(value) for value in np.quantile(values, [0.5, 0.9, 0.95, 0.99]))
    n = len(values)
    return LatencySummary(
        n=n,
        mean=float(values.mean()),
        deviation=float(values.std(ddof=1)) if n > 1 else math.nan,
        p50=p50,
        p90=p90 if n >= FEWEST_TIMED else None,
        p95=p95 if n >= FEWEST_TIMED else None,
        p99=p99 if n >= P99_NEEDS else None,
        p50_interval=_interval(values, 0.5, level),
        p95_interval=(
            _interval(values, 0.95, level) if n >= FEWEST_TIMED else (math.nan, math.nan)
        ),
    )


def repeats_deviation(run: Run) -> float:
    """Return the standard deviation of repeated timings of one query: the root of the mean variance
    over all queries timed several times; NaN without repeats."""
    repeated = () if run.measured is None else run.measured.repeated_ms.values()
    variances = [np.var(each, ddof=1) for each in repeated if len(each) > 1]
    return float(np.sqrt(np.mean(variances))) if variances else math.nan


def _interval(ordered: Floats, quantile: float, level: float) -> tuple[float, float]:
    """Return an interval of order statistics around a quantile (David & Nagaraja, Order Statistics,
    2003, section 7.1): the number of values below the quantile is binomial."""
    n = len(ordered)
    below, high = binomial_quantiles([(1 - level) / 2, (1 + level) / 2], n, quantile)
    low = below - 1
    return (
        float(ordered[low]) if low >= 0 else math.nan,
        float(ordered[high]) if high < n else math.nan,
    )


def binomial_quantiles(levels: Sequence[float], n: int, share: float) -> list[int]:
    """Return the quantiles of a binomial distribution of n trials with probability `share`."""
    # Recursive, without SciPy, whose import is slower than the whole computation.
    counts = np.arange(1, n + 1)
    steps = np.log((n + 1 - counts) / counts) + math.log(share / (1 - share))
    none = n * math.log1p(-share)
    chances = np.exp(none + np.append(0.0, np.cumsum(steps)))
    quantiles: list[int] = np.searchsorted(np.cumsum(chances), levels).tolist()
    return quantiles


def ecdf(ordered: Floats, most: int = MOST_POINTS) -> pd.DataFrame:
    """Return ms and share (of the queries that took at most this long), one row per step.

    ordered: ascending. Above `most` steps, only every n-th is returned, always with the first and
    the slowest; the returned rows are exact.
    """
    n = len(ordered)
    if not n:
        return pd.DataFrame({"ms": np.zeros(0), "share": np.zeros(0)})
    last = np.flatnonzero(np.append(np.diff(ordered) > 0, True))
    if len(last) > most:
        last = last[np.unique(np.linspace(0, len(last) - 1, most).round().astype(np.intp))]
    return pd.DataFrame({"ms": ordered[last], "share": (last + 1) / n})


@dataclass(frozen=True)
class Apart:
    """Numbers of the queries of a run by outcome.

    timed: with a latency. untimed: done without one, such as queries scored in batches. failed:
        without the timed-out ones. timed_out: exceeded the time limit; the longest took `limit_ms`
        (NaN if none did).
    skipped: not requested, or without documents to rerank. retried: with more than one attempt,
        timed or not. retry_wait_ms: the total wait before retries, which latencies exclude.
    cached_pairs: scores from the cache.
    """

    timed: int
    untimed: int
    failed: int
    timed_out: int
    skipped: int
    retried: int
    retry_wait_ms: float
    cached_pairs: int
    limit_ms: float = math.nan


def apart(run: Run) -> Apart:
    """Return the number of queries by outcome: failed queries have no latency, but are counted."""
    state, latency = run.queries["state"], run.queries["latency_ms"]
    done, failed = state == "done", state == "failed"
    timed = done & np.isfinite(latency)
    late, limit_ms, retried, waited = 0, math.nan, 0, 0.0
    if run.calls is not None:
        over = run.calls[run.calls["error"].str.startswith(_TIMED_OUT)]
        over = over[over["query_id"].isin(run.queries.loc[failed, "query_id"])]
        late = int(over["query_id"].nunique())
        limit_ms = float(over["ms"].max()) if late else math.nan
        again = run.calls[run.calls["attempts"] > 1]
        retried = int(again["query_id"].nunique())
        waited = float(again["retry_wait_ms"].sum())
    return Apart(
        timed=int(timed.sum()),
        untimed=int((done & ~timed).sum()),
        failed=int(failed.sum()) - late,
        timed_out=late,
        skipped=int((state == "skipped").sum()),
        retried=retried,
        retry_wait_ms=waited,
        cached_pairs=run.measured.cached_pairs if run.measured is not None else 0,
        limit_ms=limit_ms,
    )


@dataclass(frozen=True)
class CallParts:
    """Parts of the time of one request to a service, medians in milliseconds; NaN if the service
    does not report it. rest: the network, and all that the service counts as neither."""

    calls: int
    whole: float
    server: float
    queue: float
    rest: float


def call_parts(run: Run) -> CallParts | None:
    """Return the parts over the successful requests, without waits before retries; None without
    any."""
    if run.calls is None:
        return None
    good = run.calls[run.calls["error"] == ""]
    if good.empty:
        return None
    whole = good["ms"] - good["retry_wait_ms"]
    has_server = good["server_ms"].notna()
    reported = good["server_ms"] + good["queue_ms"].fillna(0.0)
    return CallParts(
        calls=len(good),
        whole=float(whole.median()),
        server=float(good["server_ms"].median()),
        queue=float(good["queue_ms"].median()),
        rest=float((whole - reported)[has_server].median()),
    )


@dataclass(frozen=True)
class OnTarget:
    """The test of whether 95 % of queries finish within a target.

    within: how many of n queries are within the target; timed-out queries are not. kind: "meets" or
    "misses" if proven at the confidence level, otherwise "likely" or "unlikely", by the observed
    quantile.
    """

    within: int
    n: int
    kind: Literal["meets", "likely", "unlikely", "misses"]


def on_target(
    ordered: Floats,
    target_ms: float,
    *,
    timed_out: int = 0,
    share: float = 0.95,
    level: float = LEVEL,
) -> OnTarget | None:
    """Test exactly whether a `share` of queries is within the target (binomial test, Clopper &
    Pearson 1934, one-sided). Return None below `FEWEST_TIMED` queries, as for p95."""
    from scipy.special import bdtr, bdtrc

    n = len(ordered) + timed_out
    if n < FEWEST_TIMED:
        return None
    within = bisect_left(ordered, True, key=lambda ms: not meets(ms, target_ms))
    if bdtrc(within - 1, n, share) <= 1 - level:
        return OnTarget(within, n, "meets")
    if bdtr(within, n, share) <= 1 - level:
        return OnTarget(within, n, "misses")
    # A timed-out query took longer than any target.
    seen = np.quantile(np.append(ordered, [sys.float_info.max] * timed_out), share)
    return OnTarget(within, n, "likely" if meets(float(seen), target_ms) else "unlikely")


@dataclass(frozen=True)
class Fit:
    """A line through latencies: ms = intercept + slope × x, with the interval of the slope.

    n: the number of points. first, last: the smallest and the largest x.
    """

    slope: float
    low: float
    high: float
    intercept: float
    n: int
    first: float
    last: float

    def at(self, x: float) -> float:
        return self.intercept + self.slope * x


def fit(x: Floats, ms: Floats, level: float = LEVEL, seed: int = SEED) -> Fit | None:
    """Fit a line by the median of the slopes of every two points, robust to a quarter of outliers.

    If there are more than 600 points, 600 are sampled. None below `FEWEST_FITTED` points, or if x
    has fewer than three values. Sources: Theil (1950); Sen (1968), including the interval.
    """
    from scipy.stats import theilslopes

    finite = np.isfinite(x) & np.isfinite(ms)
    x, ms = x[finite], ms[finite]
    if len(x) > _MOST_FITTED:
        sampled = np.random.default_rng(seed).choice(len(x), _MOST_FITTED, replace=False)
        x, ms = x[sampled], ms[sampled]
    if len(x) < FEWEST_FITTED or len(np.unique(x)) < 3:
        return None
    fitted = theilslopes(ms, x, alpha=level)
    return Fit(
        slope=float(fitted.slope),
        low=float(fitted.low_slope),
        high=float(fitted.high_slope),
        intercept=float(np.median(ms - fitted.slope * x)),
        n=len(x),
        first=float(x.min()),
        last=float(x.max()),
    )


@dataclass(frozen=True)
class Ratio:
    """The latency of one system relative to another on the same queries: the geometric mean of the
    ratios, with its interval (NaN for too few queries). unlike: how many of the n queries have
    different numbers of documents."""

    ratio: float
    low: float
    high: float
    n: int
    unlike: int


def paired_ratio(
    before: pd.DataFrame, after: pd.DataFrame, settings: StatisticsSettings
) -> Ratio | None:
    """Return the ratio of `after` to `before`, two tables of `Run`s, joined by query id; None if no
    query was timed in both. The interval is the one of the mean logarithm, by the settings for
    means."""
    columns = ["query_id", "latency_ms", "pairs"]
    both = before[columns].merge(after[columns], on="query_id", suffixes=("_0", "_1"))
    both = both[(both["latency_ms_0"] > 0) & (both["latency_ms_1"] > 0)]
    if both.empty:
        return None
    logs = np.log(both["latency_ms_1"].to_numpy() / both["latency_ms_0"].to_numpy())
    low, high = (float(np.exp(end[0])) for end in intervals(logs[:, None], settings))
    unlike = int((both["pairs_0"] != both["pairs_1"]).sum())
    return Ratio(float(np.exp(logs.mean())), low, high, len(logs), unlike)


# Latencies of the systems of a study, their growth, and their throughput.

Against = Literal["documents", "tokens"]
# A deeper run below this share of a shallower run's latency was measured under other conditions.
_FASTER = 0.95
_COLUMN: dict[Against, str] = {"documents": "pairs", "tokens": "tokens"}


@dataclass(frozen=True, eq=False)
class Times:
    """The latencies of a run, ascending, and their statistics. steps: as from
    `study.latency.ecdf`. documents: the fewest and the most of a timed query.
    repeats_deviation: as from `study.latency.repeats_deviation`."""

    run: Run
    ordered: Floats
    summary: LatencySummary
    steps: pd.DataFrame
    apart: Apart
    documents: tuple[int, int]
    repeats_deviation: float


def timed_by(study: Study, system: str) -> Key:
    """Return the cache key for results that depend on the latencies of a system: its id, followed,
    for a fused run, by the keys of its parts in the study, and for a fetched first stage, whose id
    is the same in every data set, by its latencies."""
    timings = study.dataset.timings if system == FIRST_STAGE else None
    of_data: Key = ()
    if timings is not None:
        of_data = study.stored_id, hash(timings["latency_ms"].to_numpy().tobytes())
    return (
        system,
        *of_data,
        *(timed_by(study, each) for each in _parts(study, system) if each in study.systems),
    )


@part()
def _parts(study: Study, system: str) -> tuple[str, ...]:
    """Return the ids of the parts of a fused run, cached so that the run need not be loaded."""
    run = study.run(system)
    return () if run is None else part_ids(run)


def times(study: Study, system: str) -> Times | None:
    """Return the latencies of a system; None for a system without a run, except for a first stage
    that was fetched."""
    has_run = study.systems[system].load is not None
    timed = has_run or (system == FIRST_STAGE and study.dataset.timings is not None)
    return _times(study, timed_by(study, system)) if timed else None


@part("level")
def _times(study: Study, timed: Key) -> Times | None:
    run = study.timed_run(str(timed[0]))
    if run is None:
        return None
    ordered = latencies(run.queries)
    pairs = run.queries.loc[np.isfinite(run.queries["latency_ms"]), "pairs"].dropna()
    return Times(
        run=run,
        ordered=ordered,
        summary=summarize(run.queries, study.statistics.level),
        steps=ecdf(ordered),
        apart=apart(run),
        documents=(int(pairs.min()), int(pairs.max())) if len(pairs) else (0, 0),
        repeats_deviation=repeats_deviation(run),
    )


def of_whole_search(study: Study, system: str) -> bool:
    """Return whether a system was timed in whole searches: a retrieval, or a fusion with one. This
    latency is not added to the latency of the first stage.
    """
    run = study.timed_run(system)
    if run is None:
        return False
    parts = [each for each in _parts(study, system) if each in study.systems]
    return run.reranker == RETRIEVAL or any(of_whole_search(study, each) for each in parts)


def busy(study: Study, system: str) -> bool:
    """Return whether other programs used the CPU while a system, or a part of it, was measured."""
    run = study.timed_run(system)
    if run is None:
        return False
    if run.measured is not None and run.measured.contended:
        return True
    return any(part in study.systems and busy(study, part) for part in part_ids(run))


def least(study: Study, system: str) -> tuple[float, float]:
    """Return the range of p95 that a repeated measurement may give: its interval; on a busy
    machine, extended down by the share of the CPU that the run had. NaN if unknown."""
    latencies = times(study, system)
    if latencies is None or latencies.summary.p95 is None:
        return (math.nan, math.nan)
    low, high = (
        latencies.summary.p95 if math.isnan(end) else end for end in latencies.summary.p95_interval
    )
    measured = latencies.run.measured
    share = 1.0
    if measured is not None and measured.threads and measured.contended:
        share = measured.cpu_per_wall / measured.threads
    return (min(low, latencies.summary.p95 * share), high)


@dataclass(frozen=True)
class Inversion:
    """Two runs of one reranker with the same settings, if the deeper one was measured faster.

    documents, fewer: the mean number of reranked documents per query, of the deeper and the
    shallower run.
    """

    deeper: str
    shallower: str
    documents: float
    fewer: float


def inversions(study: Study) -> tuple[Inversion, ...]:
    """Return every pair of chosen runs whose latency falls with depth: a sign of a disturbed
    measurement."""
    inversions = []
    timed_runs = {
        system: (run, float(run.queries["pairs"].mean()), each.summary.p95 or each.summary.p50)
        for system, each in timed(study).items()
        for run in [each.run]
    }
    for deeper, (run, documents, ms) in timed_runs.items():
        for shallower, (other, fewer, longer) in timed_runs.items():
            same = (run.reranker, run.settings) == (other.reranker, other.settings)
            same &= run.depth != other.depth and not part_ids(run)
            if same and documents > fewer and ms < _FASTER * longer:
                inversions.append(Inversion(deeper, shallower, documents, fewer))
    return tuple(inversions)


def timed(study: Study) -> dict[str, Times]:
    """Return the chosen systems with measured latencies, in their order."""
    latencies = {system: times(study, system) for system in study.chosen}
    return {
        system: each for system, each in latencies.items() if each is not None and each.summary.n
    }


def summary(study: Study, system: str) -> LatencySummary | None:
    """Return the statistics of a system's latencies; None for the first stage, and if nothing was
    measured."""
    latencies = times(study, system)
    return latencies.summary if latencies is not None and latencies.summary.n else None


def cloud(study: Study, system: str, against: Against) -> tuple[pd.DataFrame, Fit | None]:
    """Return x and ms of every timed query with a known x, and the line through them."""
    return _cloud(study, timed_by(study, system), against)


@part("level", "seed")
def _cloud(study: Study, timed: Key, against: Against) -> tuple[pd.DataFrame, Fit | None]:
    run = study.timed_run(str(timed[0]))
    if run is None:
        return pd.DataFrame({"x": [], "ms": []}, dtype=np.float64), None
    rows = run.queries[[_COLUMN[against], "latency_ms"]]
    points = rows.set_axis(["x", "ms"], axis="columns").dropna().reset_index(drop=True)
    x, ms = points["x"].to_numpy(), points["ms"].to_numpy()
    return points, fit(x, ms, level=study.statistics.level, seed=study.statistics.seed)


def ratio(study: Study, before: str, after: str) -> Ratio | None:
    """Return the latency of `after` relative to `before`, on the queries timed in both."""
    return _ratio(study, timed_by(study, before), timed_by(study, after))


@part("statistics")
def _ratio(study: Study, before: Key, after: Key) -> Ratio | None:
    one, other = study.timed_run(str(before[0])), study.timed_run(str(after[0]))
    if one is None or other is None:
        return None
    return paired_ratio(one.queries, other.queries, study.statistics)


@part()
def token_lengths(study: Study, system: str) -> TokenLengths | None:
    """Return the lengths of the pairs that a system read; None if it reads no tokens."""
    run = study.run(system)
    reading = None if run is None else run.reading
    return None if reading is None else lengths_of(reading)


# Lengths of the texts that a model read, in tokens.


@dataclass(frozen=True)
class TokenLengths:
    """Lengths of pairs in tokens, and truncation.

    table: start, stop (tokens, stop exclusive; inf for the last bin if it has all longer pairs),
        whole (pairs read completely), cut (truncated pairs).
    pairs: with a known length. cut: the truncated ones. limit: the most tokens read of a truncated
        pair; None without any. unread: share of all tokens. p50, p95: of the full lengths.
    """

    table: pd.DataFrame
    pairs: int
    cut: int
    limit: int | None
    unread: float
    p50: float
    p95: float


def lengths_of(reading: Reading, bins: int = 30) -> TokenLengths | None:
    """Return the distribution of lengths; None if no length is known."""
    valid = (reading.read >= 0) & (reading.full >= 0)
    read = reading.read[valid].astype(np.int64)
    full = reading.full[valid].astype(np.int64)
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
    """Return the edges of bins with a round width, from 0 to above `most`."""
    width = max(most / bins, 1.0)
    unit = 10 ** math.floor(math.log10(width))
    step = next(unit * each for each in (1, 2, 4, 5, 10) if unit * each >= width)
    return np.arange(0, math.floor(most / step) + 2, dtype=np.int64) * int(step)
