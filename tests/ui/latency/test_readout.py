"""The sentences on latency: each word from both sides of where it changes."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.latency import LatencySummary, OnTarget, Ratio, on_target
from rankdash.charts.latency.latency_fit import Cloud
from rankdash.runs.combining import KIND as FUSION
from rankdash.study import latency
from rankdash.ui.latency import latency_readout, latency_view

STUDY = SimpleNamespace(
    statistics=SimpleNamespace(level=0.95), name={"a": "A", "b": "B"}.__getitem__
)


@pytest.mark.parametrize(
    ("typed", "target"),
    [
        ("1", "1"),
        ("250 ms", "250"),
        ("1,500 ms", "1500"),
        ("600000", "600000"),
        ("600001", "500"),
        ("0", "500"),
        ("-5", "500"),
        ("1.5", "500"),
        ("0100", "100"),
        ("٣", "500"),
        (None, "500"),
    ],
)
def test_a_target_is_whole_milliseconds_up_to_ten_minutes(typed, target):
    assert latency_readout._target(typed) == target


@pytest.mark.parametrize(
    ("kind", "said", "colour"),
    [
        ("meets", "meets 500 ms", "blue"),
        ("likely", "within 500 ms, too few queries to be sure", "gray"),
        ("unlikely", "over 500 ms, too few queries to be sure", "gray"),
        ("misses", "misses 500 ms", "orange"),
    ],
)
def test_what_is_not_proven_of_the_target_is_grey(kind, said, colour):
    word, _icon, found = latency_readout._badge(OnTarget(1, 2, kind), "500")
    assert (word, found) == (said, colour)


def test_a_query_that_timed_out_is_one_that_is_not_within_the_target():
    within = on_target(np.full(19, 10.0), 10.0)
    assert (within.within, within.n, within.kind) == (19, 19, "likely")
    late = on_target(np.full(18, 10.0), 10.0, timed_out=1)
    assert (late.within, late.n, late.kind) == (18, 19, "unlikely")


def summary(low: float, high: float, n: int = 20) -> LatencySummary:
    return LatencySummary(n=n, mean=1.0, deviation=0.5, p50=1.0, p90=2.0, p95=3.0, p99=None,
                          p50_interval=(1.0, 1.0), p95_interval=(low, high))  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (2.0, 4.0, "20 queries, 95% interval 2 … 4"),
        (2.0, math.nan, "20 queries, 95% interval from 2 up"),
        (math.nan, math.nan, "20 queries, too few for an interval"),
    ],
)
def test_an_interval_that_is_open_says_so(low, high, said):
    plain = latency_readout._interval(summary(low, high), 0.95)
    assert plain.replace(".00", "").replace(".0", "") == said


@pytest.mark.parametrize(
    ("span", "said"),
    [((5, 5), "5 documents each"), ((1, 1), "1 document each"), ((4, 5), "4 to 5 documents each")],
)
def test_documents_are_said_once_where_all_queries_have_as_many(span, said):
    assert latency_readout._documents(span) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "0"), (123.4, "123"), (12.34, "12"), (1.234, "1.2"), (0.01234, "0.012")],
)
def test_a_slope_has_two_digits_that_say_something(value, said):
    assert latency_view._significant(value) == said


def line(slope: float, low: float, high: float) -> object:
    return SimpleNamespace(slope=slope, low=low, high=high, n=40, intercept=0.0)


def cloud(points: int, fit: object) -> Cloud:
    return Cloud("a", "A", pd.DataFrame({"x": [1.0] * points, "ms": [1.0] * points}), fit)


@pytest.mark.parametrize(
    ("points", "fit", "against", "said"),
    [
        (9, None, "documents", "**A**: no line is drawn for fewer than 10 queries."),
        (10, None, "documents",
         "**A**: no line is drawn, because the queries do not differ in it."),
        (40, line(2.0, 1.0, 3.0), "documents", "**A**: 2.0 ms a document (95%: 1.0 … 3.0), by 40 "
         "queries."),
        (40, line(0.002, 0.001, 0.003), "tokens", "**A**: 2.0 ms a thousand tokens (95%: 1.0 … "
         "3.0), by 40 queries."),
        # An interval that ends at 0 proves no growth.
        (40, line(1.0, 0.0, 2.0), "documents", "**A**: 40 queries show no proven growth (0 … 2.0 "
         "ms a document)."),
        (40, line(-1.0, -2.0, 0.0), "documents", "**A**: 40 queries show no proven growth (-2.0 … "
         "0 ms a document)."),
        (40, line(-1.0, -2.0, -0.5), "documents", "**A**: -1.0 ms a document (95%: -2.0 … -0.50), "
         "by 40 queries."),
    ],
)  # fmt: skip
def test_growth_is_said_where_it_is_proven(points, fit, against, said):
    found = latency_view._line_in_words(STUDY, cloud(points, fit), against)
    assert found.replace("−", "-") == said


@pytest.mark.parametrize(
    ("low", "unlike", "said"),
    [
        (1.5, 0, "**B** takes **2 times** as long as A, on the same 8 queries (95%: 1.5 … 2.5)."),
        (math.nan, 0, "**B** takes **2 times** as long as A, on the same 8 queries."),
        (math.nan, 3, "**B** takes **2 times** as long as A, on the same 8 queries. 3 of them had "
         "another number of documents."),
    ],
)  # fmt: skip
def test_a_ratio_names_the_slower_system_and_what_was_unlike(low, unlike, said):
    found = latency_view._ratio_in_words(STUDY, "a", "b", Ratio(2.0, low, 2.5, 8, unlike))
    plain = found.replace("2.00 times", "2 times").replace("1.50", "1.5").replace("2.50", "2.5")
    assert plain == said


@pytest.mark.parametrize(
    ("run", "apart", "why"),
    [
        (None, None, "it is the order of the search before reranking."),
        ({"reranker": FUSION}, {}, "it was fused from other systems, and not each of them has "
         "a latency here."),
        ({"measured": None}, {}, "its ranking was read from a file, or is of an older version."),
        ({}, {"cached_pairs": 1}, "its scores came from the cache, which is not included in "
         "latency. Run it again with the latency measured always."),
        ({}, {"untimed": 0}, "all its queries failed."),
        ({}, {"untimed": 1}, "its queries were scored in batches, none by itself. Run it with the "
         "latency measured."),
    ],
)  # fmt: skip
def test_why_a_system_has_no_latency(monkeypatch, run, apart, why):
    found = None if run is None else SimpleNamespace(
        run=SimpleNamespace(**({"reranker": "bm25", "measured": object()} | run)),
        apart=SimpleNamespace(**({"cached_pairs": 0, "untimed": 0} | apart)),
    )  # fmt: skip
    monkeypatch.setattr(latency, "times", lambda _study, _system: found)
    assert latency_readout._why_not(STUDY, "a") == why
