import math
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.rerankers import Capabilities
from rankdash.runs.timing import machine, summarize, threads_of


def table(latencies, pairs=10.0):
    return pd.DataFrame({"latency_ms": np.array(latencies, dtype=float), "pairs": pairs})


def test_quantiles():
    summary = summarize(table([10.0, 20.0, 30.0, 40.0, np.nan]))
    assert summary.n == 4
    assert summary.p50 == pytest.approx(25.0)
    assert summary.p90 == pytest.approx(37.0)
    assert summary.p95 == pytest.approx(38.5)


def test_no_99th_percentile_from_less_than_1000_latencies():
    assert summarize(table(np.arange(999.0))).p99 is None
    assert summarize(table(np.arange(1000.0))).p99 == pytest.approx(989.01)


def test_nothing_measured_is_not_zero():
    summary = summarize(table([np.nan]))
    assert summary.n == 0
    assert summary.p99 is None
    assert all(math.isnan(v) for v in (summary.p50, summary.p95, *summary.p50_interval))


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=50))
def test_quantiles_rise_and_stay_between_the_extremes(latencies):
    summary = summarize(table(latencies))
    slack = 1e-9 * max(latencies)
    assert min(latencies) - slack <= summary.p50 <= summary.p90 + slack
    assert summary.p90 <= summary.p95 + slack <= max(latencies) + 2 * slack


def test_an_interval_holds_the_true_quantile_19_times_in_20():
    """And says nothing of a side that so few latencies cannot tell."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        low, high = summarize(table(rng.exponential(size=60))).p50_interval
        inside += low <= math.log(2) <= high
    assert 0.95 <= inside / 400 <= 0.995
    low, high = summarize(table([1.0, 2.0, 3.0])).p95_interval
    assert low == 2.0
    assert math.isnan(high)


def test_threads_are_those_that_scoring_keeps_busy(monkeypatch):
    """A graphics card or another machine leaves the processor idle, which is no contention."""

    def threads(reranker=None, **capabilities):
        return threads_of(reranker, Capabilities(**capabilities))

    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert threads() == 1
    assert threads(across_queries=True) == machine()["threads"] >= 1
    assert threads(needs_network=True, across_queries=True) == 0
    assert threads(SimpleNamespace(threads=7), across_queries=True) == 7
    card = SimpleNamespace(
        cuda=SimpleNamespace(is_initialized=lambda: True), get_num_threads=lambda: 4
    )
    monkeypatch.setitem(sys.modules, "torch", card)
    assert threads(across_queries=True) == 0


def test_the_machine_is_described():
    described = machine()
    assert described["cpu"]
    assert described["logical_cpus"] >= described["threads"] >= 1
    assert described["python"] == ".".join(map(str, sys.version_info[:3]))
    assert described["numpy"] == np.__version__
    assert described["os"]
