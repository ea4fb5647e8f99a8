"""How long queries took: the curve, the target, what it grows with, two systems side by side.

Latency is that of a query alone, with its own documents, on a warm reranker. Nothing here says how
many queries a second a machine serves: one over a latency is not that (`measured.Level` is).
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
from rankdash.core.data.ranking import Reading, Run
from rankdash.core.runs.combining import part_ids
from rankdash.core.statistics.inference import intervals
from rankdash.core.study.cache import Key, part
from rankdash.core.study.study import Study

MOST_POINTS = 400
"""As many steps of a curve as a screen can show apart."""

FEWEST_FITTED = 10
"""With fewer points a line says more of chance than of the system."""

# Theil and Sen take the slope of every two points: of 600 there are 179,700.
_MOST_FITTED = 600
_TIMED_OUT = "time-out"

# Below this many, fewer than ten queries lie beyond the 99th percentile.
P99_NEEDS = 1000


def latencies(queries: pd.DataFrame) -> Floats:
    """The measured latencies in the table of a `Run`, ascending, in milliseconds."""
    values = queries["latency_ms"].to_numpy(dtype=np.float64)
    return np.sort(values[np.isfinite(values)])


@dataclass(frozen=True)
class LatencySummary:
    """The n measured latencies in milliseconds, NaN where n is 0.

    mean, deviation: their mean and standard deviation (n - 1 in the divisor; NaN for one).
    p90, p95: None under `FEWEST_TIMED` latencies, where they would be the slowest one.
    p99: None under 1,000 latencies, where it would rest on a handful of them.
    p50_interval, p95_interval: the latencies between which the quantile lies with at least the
        confidence `level`, whatever the distribution; NaN for a side on which n is too small to
        tell.
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
    """Sum up the latencies in the table of a `Run`; queries without one are left out, failed ones
    among them, and so are those whose scores came from the cache.

    Quantiles interpolate linearly (Hyndman & Fan 1996, type 7). The throughput is another number,
    measured by itself: `Run.measured`.
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
    """How much the repeats of one query differ: the standard deviation within a query, over all
    that were timed several times (the root of the mean variance); NaN without repeats."""
    repeated = () if run.measured is None else run.measured.repeated_ms.values()
    variances = [np.var(each, ddof=1) for each in repeated if len(each) > 1]
    return float(np.sqrt(np.mean(variances))) if variances else math.nan


def _interval(ordered: Floats, quantile: float, level: float) -> tuple[float, float]:
    """Order statistics around a quantile (David & Nagaraja, Order Statistics, 2003, section 7.1):
    how many of n values lie below it is binomial."""
    n = len(ordered)
    below, high = binomial_quantiles([(1 - level) / 2, (1 + level) / 2], n, quantile)
    low = below - 1
    return (
        float(ordered[low]) if low >= 0 else math.nan,
        float(ordered[high]) if high < n else math.nan,
    )


def binomial_quantiles(levels: Sequence[float], n: int, share: float) -> list[int]:
    """Of n trials that succeed with probability `share`: for each level the smallest number of
    successes that as many or fewer are with at least that probability."""
    # Each probability from the one before it, as SciPy takes longer to load than all of a run.
    counts = np.arange(1, n + 1)
    steps = np.log((n + 1 - counts) / counts) + math.log(share / (1 - share))
    none = n * math.log1p(-share)
    chances = np.exp(none + np.append(0.0, np.cumsum(steps)))
    quantiles: list[int] = np.searchsorted(np.cumsum(chances), levels).tolist()
    return quantiles


def ecdf(ordered: Floats, most: int = MOST_POINTS) -> pd.DataFrame:
    """ms and share (of the queries that took at most so long), a row a step.

    ordered: ascending. Where there are more than `most` steps, every n-th is kept, and the first
    and the slowest always; each row that is kept is exact.
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
    """What became of the queries that a run was asked for, by number.

    timed: have a latency. untimed: done without one, as where they were scored together with
        others. failed: those that timed out not among them. timed_out: took longer than the time
        they were given, `limit_ms` at the most (NaN where none did).
    skipped: not asked for, or nothing to rerank. retried: needed more than one attempt, timed or
        not. retry_wait_ms: waited in all to try again, which is in no latency.
    cached_pairs: scores kept from an earlier run.
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
    """Nothing that failed is a latency of 0, and none is left out without a word."""
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
    """Where the time of one request to another machine goes, medians in milliseconds; NaN where
    the service does not tell. rest: the network, and what the service does not count as either."""

    calls: int
    whole: float
    server: float
    queue: float
    rest: float


def call_parts(run: Run) -> CallParts | None:
    """Over the requests that were answered, waits to try again left out; None without any."""
    if run.calls is None:
        return None
    good = run.calls[run.calls["error"] == ""]
    if good.empty:
        return None
    whole = good["ms"] - good["retry_wait_ms"]
    known = good["server_ms"].notna()
    reported = good["server_ms"] + good["queue_ms"].fillna(0.0)
    return CallParts(
        calls=len(good),
        whole=float(whole.median()),
        server=float(good["server_ms"].median()),
        queue=float(good["queue_ms"].median()),
        rest=float((whole - reported)[known].median()),
    )


@dataclass(frozen=True)
class OnTarget:
    """Whether 95 % of queries are answered in time.

    within: of n queries, those in time; a query that timed out is not. kind: "meets" and "misses"
    where the n queries prove it with the confidence asked for, else "likely" and "unlikely", by
    the quantile that was seen.
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
    """Count, and test the count exactly: of queries that are in time with probability `share`, how
    many are is binomial (Clopper & Pearson 1934, one-sided). None under `FEWEST_TIMED` queries,
    which have no p95 either."""
    from scipy.special import bdtr, bdtrc

    n = len(ordered) + timed_out
    if n < FEWEST_TIMED:
        return None
    within = bisect_left(ordered, True, key=lambda ms: not meets(ms, target_ms))
    if bdtrc(within - 1, n, share) <= 1 - level:
        return OnTarget(within, n, "meets")
    if bdtr(within, n, share) <= 1 - level:
        return OnTarget(within, n, "misses")
    # One that timed out took longer than any target.
    seen = np.quantile(np.append(ordered, [sys.float_info.max] * timed_out), share)
    return OnTarget(within, n, "likely" if meets(float(seen), target_ms) else "unlikely")


@dataclass(frozen=True)
class Fit:
    """A line through latencies: ms = intercept + slope × x, with the interval of the slope.

    n: points it rests on. first, last: the smallest and the largest x among them.
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
    """The median of the slopes of every two points, which a quarter of outliers does not move.

    Of more than 600 points as many are sampled by chance. None under `FEWEST_FITTED` points, or
    where x has fewer than three values. Sources: Theil (1950); Sen (1968), interval included.
    """
    from scipy.stats import theilslopes

    known = np.isfinite(x) & np.isfinite(ms)
    x, ms = x[known], ms[known]
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
    """How many times as long one system takes as another on the same queries: the geometric mean
    of the ratios, with its interval (NaN for too few queries). unlike: of the n queries, those
    with another number of documents."""

    ratio: float
    low: float
    high: float
    n: int
    unlike: int


def paired_ratio(
    before: pd.DataFrame, after: pd.DataFrame, settings: StatisticsSettings
) -> Ratio | None:
    """Return `after` over `before`, two tables of `Run`s, joined by query id; None if no query was
    timed in both. The interval is that of the mean logarithm, by the rule of all means."""
    columns = ["query_id", "latency_ms", "pairs"]
    both = before[columns].merge(after[columns], on="query_id", suffixes=("_0", "_1"))
    both = both[(both["latency_ms_0"] > 0) & (both["latency_ms_1"] > 0)]
    if both.empty:
        return None
    logs = np.log(both["latency_ms_1"].to_numpy() / both["latency_ms_0"].to_numpy())
    low, high = (float(np.exp(end[0])) for end in intervals(logs[:, None], settings))
    unlike = int((both["pairs_0"] != both["pairs_1"]).sum())
    return Ratio(float(np.exp(logs.mean())), low, high, len(logs), unlike)


# How long the systems of a study take: latencies, what they grow with, and their throughput.

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
    ordered: Floats
    summary: LatencySummary
    steps: pd.DataFrame
    apart: Apart
    documents: tuple[int, int]
    repeats_deviation: float


def timed_by(study: Study, system: str) -> Key:
    """Return the system and, of a run made of others, those of them that the study has: whatever is
    computed of its latencies depends on them."""

    return (
        system,
        *(timed_by(study, each) for each in _parts(study, system) if each in study.systems),
    )


@part()
def _parts(study: Study, system: str) -> tuple[str, ...]:
    """The systems that a run was made of, for a key without the run itself."""
    run = study.run(system)
    return () if run is None else part_ids(run)


def times(study: Study, system: str) -> Times | None:
    """None for the first stage, whose latency nobody measures."""
    return None if study.systems[system].load is None else _times(study, timed_by(study, system))


@part("level")
def _times(study: Study, timed: Key) -> Times | None:
    run = study.run(str(timed[0]))
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
    inversions = []
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
                inversions.append(Inversion(deeper, shallower, documents, fewer))
    return tuple(inversions)


def timed(study: Study) -> dict[str, Times]:
    """The chosen systems of which a latency was measured, in their order."""
    latencies = {system: times(study, system) for system in study.chosen}
    return {
        system: each for system, each in latencies.items() if each is not None and each.summary.n
    }


def summary(study: Study, system: str) -> LatencySummary | None:
    """None for the first stage, and where nothing was measured."""
    latencies = times(study, system)
    return latencies.summary if latencies is not None and latencies.summary.n else None


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
    return points, fit(x, ms, level=study.statistics.level, seed=study.statistics.seed)


def ratio(study: Study, before: str, after: str) -> Ratio | None:
    """How many times as long the second system takes, on the queries timed in both."""
    return _ratio(study, timed_by(study, before), timed_by(study, after))


@part("statistics")
def _ratio(study: Study, before: Key, after: Key) -> Ratio | None:
    one, other = study.run(str(before[0])), study.run(str(after[0]))
    if one is None or other is None:
        return None
    return paired_ratio(one.queries, other.queries, study.statistics)


@part()
def token_lengths(study: Study, system: str) -> TokenLengths | None:
    """None where the system reads no tokens."""
    run = study.run(system)
    reading = None if run is None else run.reading
    return None if reading is None else lengths_of(reading)


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
