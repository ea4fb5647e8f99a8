"""Latency: every number by hand, properties for any values, and known errors of other tools."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, ttest_1samp

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import Ranking, Reading, Run
from rankdash.core.study import latency
from rankdash.core.study.latency import lengths_of
from tests.results import results, several

PLAIN_T = StatisticsSettings(interval="t")
times = st.lists(st.floats(0.01, 1e5), min_size=1, max_size=60)


def table(ms, pairs=10.0, state="done") -> pd.DataFrame:
    ids = [f"q{n}" for n in range(len(ms))]
    frame = pd.DataFrame({"query_id": ids, "latency_ms": np.array(ms, dtype=float)})
    return frame.assign(pairs=pairs, state=state)


def run_of(queries: pd.DataFrame, calls: pd.DataFrame | None = None, **measured) -> Run:
    return Run(
        id="r", name="r", dataset_id="d", ranking=Ranking.from_lists([]), reranker="endpoint",
        queries=queries, calls=calls, measured=Measured(**measured),
    )  # fmt: skip


def target(within: int, late: int = 0, level: float = 0.95, timed_out: int = 0):
    """Return the verdict on a target of 10 ms, for queries that took 9 or 11 ms."""
    ms = np.array([*[9.0] * within, *[11.0] * late])
    return latency.on_target(ms, 10.0, level=level, timed_out=timed_out)


def read_of(read: list[int], full: list[int]):
    reading = Reading(*(np.array(each, dtype=np.int32) for each in (read, full)))
    found = lengths_of(reading)
    if found is None:
        return None
    numbers = {name: getattr(found, name) for name in ("pairs", "cut", "limit", "unread", "p50")}
    return numbers, found.table[found.table[["whole", "cut"]].any(axis=1)]


def up_to(longest: int):
    """Return the last two bins. Bins of 10 tokens end at 300, the 99th percentile; the last bin is
    open."""
    lengths = np.arange(1, longest + 1, dtype=np.int32)
    return lengths_of(Reading(lengths, lengths)).table.tail(2)


def states(ms: list[float], *named: str) -> pd.DataFrame:
    return table(ms).assign(state=named)


def repeated(times: dict[str, tuple[float, ...]]):
    return latency.repeats_deviation(run_of(table([1.0]), repeated_ms=times))


def fitted(x: np.ndarray, ms: np.ndarray, seed: int = 0):
    return latency.fit(np.asarray(x, dtype=float), np.asarray(ms, dtype=float), seed=seed)


CALLS = ["query_id", "attempts", "retry_wait_ms", "ms", "error"]
LATE = pd.DataFrame(
    [
        ("q0", 1, 0.0, 50.0, ""),
        ("q1", 3, 250.0, 400.0, ""),
        ("q2", 1, 0.0, 20.0, "the service said 500"),
        ("q3", 2, 100.0, 30_000.0, "time-out: no answer within 30 seconds"),
        ("q3", 1, 0.0, 1_000.0, "time-out: query time limit reached"),
    ],
    columns=CALLS,
)
# An answer after a time-out is not late.
ANSWERED = pd.DataFrame(
    [
        ("q0", 1, 0.0, 900.0, "time-out: no answer"),
        ("q0", 1, 0.0, 10.0, ""),
        ("q1", 2, 5.0, 20.0, "refused after a time-out"),
    ],
    columns=CALLS,
)
SERVED = pd.DataFrame(
    [
        ("q0", 100.0, 0.0, 60.0, 10.0, ""),
        ("q1", 500.0, 380.0, 70.0, math.nan, ""),
        ("q2", 9000.0, 0.0, math.nan, math.nan, "time-out"),
    ],
    columns=["query_id", "ms", "retry_wait_ms", "server_ms", "queue_ms", "error"],
)
FIVE = states([10.0, *[math.nan] * 4], "done", "done", "failed", "failed", "skipped")
TWO = states([10.0, math.nan], "done", "failed")
BEFORE = table([10.0, 20.0, 40.0, 1.0, 2.0, 3.0, math.nan])
AFTER = table([20.0, 40.0, 80.0, 2.0, 4.0, 6.0, 5.0]).iloc[::-1]
NO_TIME = (table([0.0, 10.0, 10.0, 20.0]), table([5.0, 0.0, 40.0, 20.0]))
MANY, MORE = np.arange(600.0), np.arange(5000.0)
CASES = {
    "equal times are one step": lambda: latency.ecdf(
        latency.latencies(table([30.0, 10.0, math.nan, 10.0, 20.0]))
    ),
    "no curve": lambda: latency.ecdf(np.zeros(0)),
    # 59 of 59 is the minimum that proves 95 %: 0.95^59 = 0.0485, 0.95^58 = 0.0510.
    **{
        f"in time: {within}, late: {late}, level {level}": lambda each=(within, late, level): (
            target(*each)
        )
        for within, late, level in (
            (59, 0, 0.95), (58, 0, 0.95), (0, 5, 0.95), (17, 2, 0.95), (45, 0, 0.9), (44, 0, 0.9),
            # Without a p95 there is no verdict.
            (0, 0, 0.95), (0, 1, 0.95), (4, 0, 0.95), (0, 4, 0.95),
        )
    },
    "just in time": lambda: latency.on_target(np.full(5, 10.0), 10.0),
    "two of five timed out": lambda: target(3, timed_out=2),
    "what timed out is not in time": lambda: target(59, timed_out=9),
    # 19 of 20 are in time in both cases; p95 is a twentieth of the way to the slowest.
    **several(
        "too few to be sure, the slowest at {}",
        lambda slowest: latency.on_target(np.array([*[9.0] * 19, slowest]), 500.0),
        (9_000.0, 11_000.0),
    ),
    "too few points": lambda: fitted(*[np.arange(latency.FEWEST_FITTED - 1)] * 2),
    "one depth": lambda: fitted(np.full(50, 100.0), np.arange(50)),
    "two depths": lambda: fitted(np.arange(12) % 2, 2 * (np.arange(12) % 2)),
    "three depths": lambda: fitted(np.arange(12) % 3, 2 * (np.arange(12) % 3)),
    "gaps": lambda: fitted(np.arange(30), np.where(np.arange(30) % 3 > 0, np.nan, 1.0)),
    "as many points as may be": lambda: (fitted(MANY, MANY, 1), fitted(MANY, MANY, 2)),
    "of more some are drawn": lambda: (fitted(MORE, 3 * MORE), fitted(MORE, 3 * MORE)),
    # Trap 12: by position q1 would be compared with q0.
    "a ratio of the same queries": lambda: latency.paired_ratio(BEFORE, AFTER, PLAIN_T),
    "of another number of documents": lambda: latency.paired_ratio(
        BEFORE, table([1.0], pairs=5.0), PLAIN_T
    ),
    "of none measured": lambda: latency.paired_ratio(BEFORE[6:], AFTER, PLAIN_T),
    "of one query": lambda: latency.paired_ratio(BEFORE[:1], AFTER, PLAIN_T),
    "what took no time has no ratio": lambda: latency.paired_ratio(
        NO_TIME[0], NO_TIME[1].assign(pairs=[1, 1, 10.0, 99]), PLAIN_T
    ),
    # Trap 10: a failed call is not a latency of 0.
    "apart": lambda: latency.apart(run_of(FIVE, LATE, cached_pairs=7)),
    "their latencies": lambda: latency.latencies(FIVE),
    "without calls": lambda: latency.apart(run_of(FIVE)),
    "answered after a time-out": lambda: latency.apart(run_of(TWO, ANSWERED)),
    "not measured": lambda: latency.apart(replace(run_of(TWO), measured=None)),
    "the network and the model": lambda: latency.call_parts(run_of(table([1.0]), SERVED)),
    "a silent server": lambda: latency.call_parts(
        run_of(table([1.0]), SERVED.assign(server_ms=math.nan))
    ),
    "only time-outs": lambda: latency.call_parts(run_of(table([1.0]), SERVED[2:])),
    "no calls": lambda: latency.call_parts(run_of(table([1.0]))),
    "lengths": lambda: read_of([100, 512, 512, -1, 40], [100, 512, 1024, -1, 40]),
    "no lengths": lambda: read_of([-1], [-1]),
    "lengths up to 299": lambda: up_to(299),
    "lengths up to 300": lambda: up_to(300),
    "six times, one unknown": lambda: latency.summarize(table([*np.arange(10.0, 51, 10), np.nan])),
    **several(
        "a handful of {}", lambda n: latency.summarize(table(np.arange(1.0, n + 1))), (1, 2, 4, 5)
    ),
    # The number of ten values below the median is binomial: 2 to 8 at 95 %, 3 to 7 at 80 %.
    "ten": lambda: latency.summarize(table(np.arange(1.0, 11.0))),
    "ten at 80 %": lambda: latency.summarize(table(np.arange(1.0, 11.0)), 0.8),
    "999 have no 99th percentile": lambda: latency.summarize(table(np.arange(999.0))),
    "1000 have one": lambda: latency.summarize(table(np.arange(1000.0))),
    "nothing measured is not zero": lambda: latency.summarize(table([np.nan])),
    **{
        f"repeats of {times}": lambda times=times: repeated(times)
        for times in ({"a": (1.0, 3.0), "b": (500.0,), "c": (2.0, 6.0)}, {}, {"b": (500.0,)})
    },
    "repeats of nothing measured": lambda: latency.repeats_deviation(
        replace(run_of(table([1.0])), measured=None)
    ),
}  # fmt: skip


def test_every_number_by_hand(approved):
    approved("analysis/latency", results(CASES))


@given(times, st.integers(2, 20))
def test_a_thinned_curve_has_only_true_points_and_both_ends(values, most):
    ordered = np.sort(values)
    curve = latency.ecdf(ordered, most)
    assert len(curve) <= most
    summary, slack = latency.summarize(table(values)), 1e-9 * max(values)
    found = [each for each in (summary.p50, summary.p90, summary.p95) if each is not None]
    assert (np.diff([min(values) - slack, *found, max(values) + slack]) >= -slack).all()
    assert summary.mean is None or min(values) - slack <= summary.mean <= max(values) + slack
    for row in curve.itertuples():
        assert row.share == np.mean(ordered <= row.ms)
    assert curve["ms"].iloc[-1] == ordered[-1]
    assert curve["share"].iloc[-1] == 1
    if len(set(values)) > 1:
        assert curve["ms"].iloc[0] == ordered[0]


@given(
    st.lists(st.floats(0.01, 1e5), min_size=5, max_size=60),
    st.floats(0.01, 1e5),
    st.floats(0.01, 1e5),
)
def test_a_later_target_is_never_harder(values, one, other):
    ranks = ["misses", "unlikely", "likely", "meets"]
    early, late = (latency.on_target(np.sort(values), each).kind for each in sorted((one, other)))
    assert ranks.index(early) <= ranks.index(late)


@given(st.floats(-5, 5), st.floats(0, 100))
def test_a_line_is_found_whatever_a_few_points_do(slope, intercept):
    x = np.arange(40.0)
    ms = intercept + slope * x
    ms[[3, 17, 29]] = 1e6
    found = latency.fit(x, ms)
    assert found.slope == pytest.approx(slope, abs=1e-6)
    assert found.at(10) == pytest.approx(intercept + 10 * slope, abs=1e-5)
    assert found.low <= found.slope <= found.high
    assert (found.n, found.first, found.last) == (40, 0, 39)


@pytest.mark.parametrize("n", [6, 40])
def test_the_interval_of_a_ratio_is_that_of_a_mean_of_logarithms(n):
    """A percentile bootstrap contained the truth in 84 to 91 % of sets of 5 to 20 queries."""
    rng = np.random.default_rng(n)
    one = rng.lognormal(4, 0.5, n)
    other = one * rng.lognormal(0.2, 0.3, n)
    found = latency.paired_ratio(table(one), table(other), PLAIN_T)
    expected = ttest_1samp(np.log(other / one), 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((np.exp(expected.low), np.exp(expected.high)))
    skewed = latency.paired_ratio(table(one), table(other), StatisticsSettings())
    assert skewed.low <= found.low * (1 + 1e-12) and skewed.high >= found.high * (1 - 1e-12)


@settings(max_examples=30)
@given(times)
def test_turned_around_the_ratio_is_its_inverse(values):
    rng = np.random.default_rng(len(values))
    one, other = table(values), table(np.array(values) * rng.uniform(0.5, 2, len(values)))
    settings = StatisticsSettings()
    there, back = (latency.paired_ratio(*each, settings) for each in ((one, other), (other, one)))
    assert there.ratio * back.ratio == pytest.approx(1)
    if math.isfinite(there.low):
        assert there.low <= there.ratio * (1 + 1e-9)
        assert there.ratio <= there.high * (1 + 1e-9)
        assert there.low * back.high == pytest.approx(1)


@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 500)), min_size=1, max_size=80))
def test_every_pair_is_in_the_bin_of_its_length(pairs):
    full = np.array([sum(each) for each in pairs], dtype=np.int32)
    read = np.array([each[0] for each in pairs], dtype=np.int32)
    found = lengths_of(Reading(read, full))
    bins = found.table
    assert len(bins) <= 33
    assert (bins["start"].iloc[1:].to_numpy() == bins["stop"].iloc[:-1].to_numpy()).all()
    for row in bins.itertuples():
        inside = (full >= row.start) & (full < row.stop)
        assert row.cut == (inside & (full > read)).sum()
        assert row.whole == (inside & (full == read)).sum()
    assert found.limit is None or found.limit < full.max()


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.99])
def test_the_quantiles_of_a_binomial_count_are_those_of_scipy(share):
    levels = [0.0005, 0.025, 0.11, 0.41, 0.91, 0.975, 0.9995]
    for n in (1, 2, 19, 84, 168, 1_000, 9_999):
        expected = binom.ppf(levels, n, share)
        assert latency.binomial_quantiles(levels, n, share) == expected.tolist()
