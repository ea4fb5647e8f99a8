"""Latency: every number by hand, what must hold for any, and the traps of other tools."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, ttest_1samp

from rankdash.analysis.latency import (
    FEWEST_FITTED,
    apart,
    binomial_quantiles,
    call_parts,
    ecdf,
    fit,
    latencies,
    on_target,
    paired_ratio,
    repeats_deviation,
    summarize,
)
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.analysis.token_lengths import token_lengths
from rankdash.ranking.measured import Measured
from rankdash.ranking.ranking import Ranking, Reading, Run

PLAIN_T = StatisticsSettings(interval="t")
times = st.lists(st.floats(0.01, 1e5), min_size=1, max_size=60)


def table(ms, pairs=10.0, state="done") -> pd.DataFrame:
    ids = [f"q{n}" for n in range(len(ms))]
    frame = pd.DataFrame({"query_id": ids, "latency_ms": np.array(ms, dtype=float)})
    return frame.assign(pairs=pairs, state=state)


def test_the_curve_by_hand_counts_equal_times_as_one_step():
    curve = ecdf(latencies(table([30.0, 10.0, math.nan, 10.0, 20.0])))
    assert curve["ms"].tolist() == [10.0, 20.0, 30.0]
    assert curve["share"].tolist() == [0.5, 0.75, 1.0]
    assert ecdf(np.zeros(0)).empty


@given(times, st.integers(2, 20))
def test_a_thinned_curve_has_only_true_points_and_both_ends(values, most):
    ordered = np.sort(values)
    curve = ecdf(ordered, most)
    assert len(curve) <= most
    for row in curve.itertuples():
        assert row.share == np.mean(ordered <= row.ms)
    assert curve["ms"].iloc[-1] == ordered[-1]
    assert curve["share"].iloc[-1] == 1
    if len(set(values)) > 1:
        assert curve["ms"].iloc[0] == ordered[0]


def test_the_target_is_met_only_where_the_queries_prove_it():
    """59 of 59 is the least that proves 95 %: 0.95^59 = 0.0485, 0.95^58 = 0.0510."""
    assert on_target(np.full(59, 9.0), 10.0).kind == "meets"
    assert on_target(np.full(58, 9.0), 10.0).kind == "likely"
    assert on_target(np.full(5, 11.0), 10.0).kind == "misses"
    assert on_target(np.array([*[9.0] * 17, 11.0, 11.0]), 10.0).kind == "unlikely"
    assert on_target(np.full(45, 9.0), 10.0, level=0.9).kind == "meets"
    assert on_target(np.full(44, 9.0), 10.0, level=0.9).kind == "likely"
    found = on_target(np.full(5, 10.0), 10.0)
    assert (found.within, found.n, found.kind) == (5, 5, "likely")
    assert on_target(np.full(3, 10.0), 10.0, timed_out=2).n == 5


@pytest.mark.parametrize("n", [0, 1, 4])
def test_nothing_is_said_of_a_target_where_there_is_no_p95(n):
    assert on_target(np.full(n, 11.0), 10.0) is None
    assert on_target(np.full(n, 9.0), 10.0) is None


@pytest.mark.parametrize(("slowest", "kind"), [(9_000.0, "likely"), (11_000.0, "unlikely")])
def test_too_few_queries_to_be_sure_go_by_the_quantile_that_is_shown(slowest, kind):
    """19 of 20 are in time both times; p95 lies a twentieth of the way to the slowest."""
    ordered = np.array([*[9.0] * 19, slowest])
    found = on_target(ordered, 500.0)
    assert (found.within, found.kind) == (19, kind)
    assert (np.quantile(ordered, 0.95) <= 500.0) is np.bool_(kind == "likely")


def test_a_query_that_timed_out_is_not_in_time():
    ordered = np.full(59, 9.0)
    found = on_target(ordered, 10.0, timed_out=9)
    assert (found.within, found.n) == (59, 68)
    assert found.kind == "misses"


@given(
    st.lists(st.floats(0.01, 1e5), min_size=5, max_size=60),
    st.floats(0.01, 1e5),
    st.floats(0.01, 1e5),
)
def test_a_later_target_is_never_harder(values, one, other):
    ranks = ["misses", "unlikely", "likely", "meets"]
    early, late = (on_target(np.sort(values), each).kind for each in sorted((one, other)))
    assert ranks.index(early) <= ranks.index(late)


@given(st.floats(-5, 5), st.floats(0, 100))
def test_a_line_is_found_whatever_a_few_points_do(slope, intercept):
    x = np.arange(40.0)
    ms = intercept + slope * x
    ms[[3, 17, 29]] = 1e6
    found = fit(x, ms)
    assert found.slope == pytest.approx(slope, abs=1e-6)
    assert found.at(10) == pytest.approx(intercept + 10 * slope, abs=1e-5)
    assert found.low <= found.slope <= found.high
    assert (found.n, found.first, found.last) == (40, 0, 39)


def test_no_line_through_too_few_points_or_one_depth():
    few = np.arange(float(FEWEST_FITTED - 1))
    assert fit(few, few) is None
    assert fit(np.full(50, 100.0), np.arange(50.0)) is None
    gaps = np.where(np.arange(30) % 3 > 0, np.nan, 1.0)
    assert fit(np.arange(30.0), gaps).n == 10


def test_many_points_are_drawn_from_and_the_draw_repeats():
    x = np.arange(5000.0)
    noisy = 3 * x + np.random.default_rng(1).normal(0, 50, len(x))
    assert fit(x, noisy) == fit(x, noisy)
    assert fit(x, noisy).n == 600
    assert fit(x, noisy).slope == pytest.approx(3, abs=0.02)


def test_a_ratio_is_of_the_same_queries_joined_by_id():
    """Trap 12: by position q1 would be compared with q0."""
    before = table([10.0, 20.0, 40.0, 1.0, 2.0, 3.0, math.nan])
    after = table([20.0, 40.0, 80.0, 2.0, 4.0, 6.0, 5.0]).iloc[::-1]
    found = paired_ratio(before, after, PLAIN_T)
    assert found.ratio == pytest.approx(2.0)
    assert (found.low, found.high) == (pytest.approx(2.0), pytest.approx(2.0))
    assert (found.n, found.unlike) == (6, 0)
    assert paired_ratio(before, table([1.0], pairs=5.0), PLAIN_T).unlike == 1
    assert paired_ratio(before[6:], after, PLAIN_T) is None
    assert math.isnan(paired_ratio(before[:1], after, PLAIN_T).low)


@pytest.mark.parametrize("n", [6, 40])
def test_the_interval_of_a_ratio_is_that_of_a_mean_of_logarithms(n):
    """A percentile bootstrap contained the truth in 84 to 91 % of sets of 5 to 20 queries."""
    rng = np.random.default_rng(n)
    one = rng.lognormal(4, 0.5, n)
    other = one * rng.lognormal(0.2, 0.3, n)
    found = paired_ratio(table(one), table(other), PLAIN_T)
    expected = ttest_1samp(np.log(other / one), 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((np.exp(expected.low), np.exp(expected.high)))
    skewed = paired_ratio(table(one), table(other), StatisticsSettings())
    assert skewed.low <= found.low * (1 + 1e-12) and skewed.high >= found.high * (1 - 1e-12)


@given(times)
def test_turned_around_the_ratio_is_its_inverse(values):
    rng = np.random.default_rng(len(values))
    one, other = table(values), table(np.array(values) * rng.uniform(0.5, 2, len(values)))
    settings = StatisticsSettings()
    there, back = (paired_ratio(*each, settings) for each in ((one, other), (other, one)))
    assert there.ratio * back.ratio == pytest.approx(1)
    if math.isfinite(there.low):
        assert there.low <= there.ratio * (1 + 1e-9)
        assert there.ratio <= there.high * (1 + 1e-9)
        assert there.low * back.high == pytest.approx(1)


def run_of(queries: pd.DataFrame, calls: pd.DataFrame | None = None, **measured) -> Run:
    return Run(
        id="r", name="r", dataset_id="d", ranking=Ranking.from_lists([]), reranker="endpoint",
        queries=queries, calls=calls, measured=Measured(**measured),
    )  # fmt: skip


def test_what_failed_was_late_or_retried_is_apart_and_no_latency():
    """Trap 10: a failed call is no latency of 0."""
    queries = table([10.0, math.nan, math.nan, math.nan, math.nan])
    queries["state"] = ["done", "done", "failed", "failed", "skipped"]
    calls = pd.DataFrame(
        [
            ("q0", 1, 0.0, 50.0, ""),
            ("q1", 3, 250.0, 400.0, ""),
            ("q2", 1, 0.0, 20.0, "the service said 500"),
            ("q3", 2, 100.0, 30_000.0, "time-out: no answer within 30 seconds"),
            ("q3", 1, 0.0, 1_000.0, "time-out: the time for this query was over"),
        ],
        columns=["query_id", "attempts", "retry_wait_ms", "ms", "error"],
    )
    found = apart(run_of(queries, calls, cached_pairs=7))
    assert (found.timed, found.untimed, found.failed, found.timed_out) == (1, 1, 1, 1)
    assert (found.skipped, found.retried, found.cached_pairs) == (1, 2, 7)
    assert (found.retry_wait_ms, found.limit_ms) == (350.0, 30_000.0)
    assert latencies(queries).tolist() == [10.0]
    alone = apart(run_of(queries))
    assert (alone.failed, alone.timed_out, alone.retried) == (2, 0, 0)


def test_time_in_the_network_is_told_from_the_time_in_the_model():
    calls = pd.DataFrame(
        [
            ("q0", 100.0, 0.0, 60.0, 10.0, ""),
            ("q1", 500.0, 380.0, 70.0, math.nan, ""),
            ("q2", 9000.0, 0.0, math.nan, math.nan, "time-out"),
        ],
        columns=["query_id", "ms", "retry_wait_ms", "server_ms", "queue_ms", "error"],
    )
    found = call_parts(run_of(table([1.0]), calls))
    assert (found.calls, found.whole, found.server) == (2, 110.0, 65.0)
    assert (found.queue, found.rest) == (10.0, 40.0)
    silent = call_parts(run_of(table([1.0]), calls.assign(server_ms=math.nan)))
    assert math.isnan(silent.rest)
    assert call_parts(run_of(table([1.0]), calls[2:])) is None
    assert call_parts(run_of(table([1.0]))) is None


def test_lengths_by_hand():
    read, full = np.array([100, 512, 512, -1, 40]), np.array([100, 512, 1024, -1, 40])
    found = token_lengths(Reading(read.astype(np.int32), full.astype(np.int32)))
    assert (found.pairs, found.cut, found.limit) == (4, 1, 512)
    assert found.unread == pytest.approx(512 / 1676)
    assert found.p50 == 306
    assert found.table["cut"].sum() == 1
    cut = found.table[found.table["cut"] > 0].iloc[0]
    assert cut["start"] <= 1024 < cut["stop"]
    assert token_lengths(Reading(np.array([-1], np.int32), np.array([-1], np.int32))) is None


@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 500)), min_size=1, max_size=80))
def test_every_pair_is_in_the_bin_of_its_length(pairs):
    full = np.array([sum(each) for each in pairs], dtype=np.int32)
    read = np.array([each[0] for each in pairs], dtype=np.int32)
    found = token_lengths(Reading(read, full))
    bins = found.table
    assert len(bins) <= 33
    assert (bins["start"].iloc[1:].to_numpy() == bins["stop"].iloc[:-1].to_numpy()).all()
    for row in bins.itertuples():
        inside = (full >= row.start) & (full < row.stop)
        assert row.cut == (inside & (full > read)).sum()
        assert row.whole == (inside & (full == read)).sum()
    assert found.limit is None or found.limit < full.max()


def test_quantiles():
    summary = summarize(table([10.0, 20.0, 30.0, 40.0, 50.0, np.nan]))
    assert summary.n == 5
    assert summary.p50 == pytest.approx(30.0)
    assert summary.p90 == pytest.approx(46.0)
    assert summary.p95 == pytest.approx(48.0)
    assert (summary.mean, summary.deviation) == (30.0, pytest.approx(250**0.5))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_handful_of_latencies_has_no_95th_percentile(n):
    summary = summarize(table(np.arange(1.0, n + 1)))
    assert (summary.n, summary.p50, summary.mean) == (n, (n + 1) / 2, (n + 1) / 2)
    assert (summary.p90, summary.p95, summary.p99) == (None, None, None)
    assert np.isnan(summary.p95_interval).all()
    assert math.isnan(summary.deviation) == (n == 1)


def test_an_interval_is_as_wide_as_its_confidence_asks_for():
    # Of ten values, how many lie below the median is binomial: 2 to 8 at 95 %, 3 to 7 at 80 %.
    ten = table(np.arange(1.0, 11.0))
    assert summarize(ten).p50_interval == (2.0, 9.0)
    assert summarize(ten, 0.8).p50_interval == (3.0, 8.0)


def test_no_99th_percentile_from_less_than_1000_latencies():
    assert summarize(table(np.arange(999.0))).p99 is None
    assert summarize(table(np.arange(1000.0))).p99 == pytest.approx(989.01)


def test_nothing_measured_is_not_zero():
    summary = summarize(table([np.nan]))
    assert summary.n == 0
    assert (summary.p90, summary.p95, summary.p99) == (None, None, None)
    assert all(math.isnan(v) for v in (summary.p50, summary.mean, *summary.p50_interval))


@given(st.lists(st.floats(0.001, 1e6), min_size=5, max_size=50))
def test_quantiles_rise_and_stay_between_the_extremes(latencies):
    summary = summarize(table(latencies))
    slack = 1e-9 * max(latencies)
    assert min(latencies) - slack <= summary.p50 <= summary.p90 + slack
    assert summary.p90 <= summary.p95 + slack <= max(latencies) + 2 * slack
    assert min(latencies) - slack <= summary.mean <= max(latencies) + slack


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.99])
def test_the_quantiles_of_a_binomial_count_are_those_of_scipy(share):
    levels = [0.0005, 0.025, 0.11, 0.41, 0.91, 0.975, 0.9995]
    for n in (1, 2, 19, 84, 168, 1_000, 9_999):
        expected = binom.ppf(levels, n, share)
        assert binomial_quantiles(levels, n, share) == expected.tolist()


def test_an_interval_holds_the_true_quantile_19_times_in_20():
    """And says nothing of a side that so few latencies cannot tell."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        low, high = summarize(table(rng.exponential(size=60))).p50_interval
        inside += low <= math.log(2) <= high
    assert 0.95 <= inside / 400 <= 0.995
    low, high = summarize(table([1.0, 2.0, 3.0, 4.0, 5.0])).p95_interval
    assert low == 4.0
    assert math.isnan(high)


def test_how_much_repeats_differ_is_within_a_query_and_of_those_timed_several_times():
    repeated = {"a": (1.0, 3.0), "b": (500.0,), "c": (2.0, 6.0)}
    assert repeats_deviation(run_of(table([1.0]), repeated_ms=repeated)) == pytest.approx(5**0.5)
    for none in ({}, {"b": (500.0,)}):
        assert math.isnan(repeats_deviation(run_of(table([1.0]), repeated_ms=none)))
    assert math.isnan(repeats_deviation(replace(run_of(table([1.0])), measured=None)))


def test_a_query_that_was_answered_after_a_time_out_was_not_late():
    queries = table([10.0, math.nan])
    queries["state"] = ["done", "failed"]
    calls = pd.DataFrame(
        [
            ("q0", 1, 0.0, 900.0, "time-out: no answer"),
            ("q0", 1, 0.0, 10.0, ""),
            ("q1", 2, 5.0, 20.0, "refused after a time-out"),
        ],
        columns=["query_id", "attempts", "retry_wait_ms", "ms", "error"],
    )
    found = apart(run_of(queries, calls))
    assert (found.timed, found.failed, found.timed_out, found.retried) == (1, 1, 0, 1)
    assert math.isnan(found.limit_ms)
    bare = apart(replace(run_of(queries), measured=None))
    assert (bare.cached_pairs, bare.failed) == (0, 1)


@pytest.mark.parametrize(("values", "fits"), [(2, False), (3, True)])
def test_a_line_needs_three_different_numbers_of_documents(values, fits):
    x = np.arange(12.0) % values
    assert (fit(x, 2 * x) is not None) == fits


def test_a_line_goes_through_as_many_points_as_may_be_without_a_draw():
    x = np.arange(600.0)
    assert fit(x, x, seed=1) == fit(x, x, seed=2)
    assert (fit(x, x).n, fit(x, x).first, fit(x, x).last) == (600, 0, 599)


def test_a_query_that_took_no_time_has_no_ratio():
    before, after = table([0.0, 10.0, 10.0, 20.0]), table([5.0, 0.0, 40.0, 20.0])
    found = paired_ratio(before, after.assign(pairs=[1, 1, before["pairs"][2], 99]), PLAIN_T)
    assert (found.n, found.ratio, found.unlike) == (2, pytest.approx(2.0), 1)


@pytest.mark.parametrize(("longest", "beyond"), [(299, 0), (300, 1)])
def test_the_longest_texts_are_gathered_in_a_last_bin_without_an_end(longest, beyond):
    """Bins of 10 tokens end at 300, where 99 % of the lengths do."""
    full = np.arange(1, longest + 1, dtype=np.int32)
    found = token_lengths(Reading(full, full)).table
    assert np.isinf(found["stop"]).sum() == beyond
    assert (found["start"].iloc[-1], found["whole"].iloc[-1]) == (
        300 if beyond else 290,
        (10, 1)[beyond],
    )
    assert found["whole"].sum() == longest
