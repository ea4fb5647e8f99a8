"""Runs over time: what is drawn where, what is joined, and what is said of the rest."""

import itertools
import math
from dataclasses import replace

import pytest

from rankdash.charts import style
from rankdash.charts.quality import trend

INK = style.INKS["dark"]
BASE = [trend.Across("First stage (baseline)", 0.3)]


def point(number: int, mean: float, **changes: object) -> trend.TrendPoint:
    usual = trend.TrendPoint(
        number=number,
        name=f"run {number}",
        when="",
        day="Nov 1",
        series=None,
        mean=mean,
        low=mean - 0.05,
        high=mean + 0.1,
        n=60,
        compared=True,
        p95_ms=math.nan,
        failed=0,
    )
    return replace(usual, **changes)


def traces(figure) -> dict[str, object]:
    return {trace.name: trace for trace in figure.data if trace.name}


def test_runs_of_one_series_are_joined_and_the_others_are_points():
    points = [point(1, 0.4, series=0), point(2, 0.5), point(3, 0.45, series=0)]
    drawn = traces(trend.figure(points, "NDCG@10", BASE, INK, series=["BM25, 2 runs"]))
    joined, others = drawn["BM25, 2 runs"], drawn["other runs"]
    assert (list(joined.x), list(joined.y), joined.mode) == ([1, 3], [0.4, 0.45], "lines+markers")
    assert (list(others.x), others.mode) == ([2], "markers")
    assert joined.marker.symbol != others.marker.symbol


def test_the_interval_reaches_from_low_to_high():
    (line,) = [
        trace
        for trace in trend.figure([point(1, 0.4)], "NDCG@10", BASE, INK).data
        if trace.name == "runs"
    ]
    assert line.error_y.array[0] == pytest.approx(0.1)
    assert line.error_y.arrayminus[0] == pytest.approx(0.05)


def test_a_run_over_few_queries_is_marked_below_and_its_mean_stretches_nothing():
    points = [point(1, 0.4), point(2, 0.95, compared=False, n=5), point(3, 0.5)]
    figure = trend.figure(points, "NDCG@10", BASE, INK)
    apart = traces(figure)["too few queries: not compared"]
    assert list(apart.x) == [2]
    low, high = figure.layout.yaxis.range
    assert low < apart.y[0] < 0.3
    assert high < 0.7
    assert "over 5 queries" in apart.hovertext[0]
    assert 2 not in traces(figure)["runs"].x


def test_the_baseline_is_a_line_across_named_with_its_value():
    points = [point(n, 0.4) for n in (1, 2)]
    figure = trend.figure(points, "NDCG@10", [*BASE, trend.Across("X (pinned)", 0.5)], INK)
    across = traces(figure)["First stage (baseline) 0.300"]
    assert set(across.y) == {0.3}
    assert across.x[0] < 1
    assert across.x[-1] > 2
    assert traces(figure)["X (pinned) 0.500"].line.dash != across.line.dash


def test_a_line_without_a_value_is_not_drawn():
    figure = trend.figure([point(1, 0.4)], "NDCG@10", [trend.Across("Empty", math.nan)], INK)
    assert not any("Empty" in name for name in traces(figure))


def test_times_and_failures_have_a_panel_only_where_there_are_any():
    plain = trend.figure([point(1, 0.4)], "NDCG@10", BASE, INK)
    assert "yaxis2" not in plain.layout
    failed = trend.figure([point(1, 0.4, failed=3), point(2, 0.4)], "NDCG@10", BASE, INK)
    (bars,) = [trace for trace in failed.data if trace.type == "bar"]
    assert (list(bars.y), bars.yaxis) == ([3, 0], "y2")
    both = trend.figure([point(1, 0.4, failed=3, p95_ms=12.0)], "NDCG@10", BASE, INK)
    assert [trace.yaxis for trace in both.data if trace.yaxis] == ["y2", "y3"]
    tops = [axis.domain for axis in (both.layout.yaxis, both.layout.yaxis2, both.layout.yaxis3)]
    assert all(upper[0] > lower[1] for upper, lower in itertools.pairwise(tops))
    assert both.layout.xaxis.anchor == "y3"


def test_a_run_that_was_not_timed_is_a_gap_and_no_zero():
    points = [point(1, 0.4, p95_ms=20.0), point(2, 0.4), point(3, 0.4, p95_ms=40.0)]
    (times,) = [trace for trace in trend.figure(points, "M", BASE, INK).data if trace.yaxis == "y2"]
    assert (list(times.x), list(times.y)) == ([1, 3], [20.0, 40.0])


def test_the_note_of_a_run_is_told_where_one_points_at_it():
    points = [point(1, 0.4, note="new tokenizer <b>"), point(2, 0.4)]
    (runs,) = [t for t in trend.figure(points, "M", [], INK).data if t.name == "runs"]
    assert list(runs.hovertext) == [
        "1 · <b>run 1</b><br><br>M 0.400 (0.350…0.500) over 60 queries<br>new tokenizer &lt;b&gt;",
        "2 · <b>run 2</b><br><br>M 0.400 (0.350…0.500) over 60 queries",
    ]


def test_each_day_is_named_once_and_numbers_are_thinned():
    points = [point(n, 0.4, day=f"Nov {(n + 1) // 2}") for n in range(1, 31)]
    texts = trend.figure(points, "M", BASE, INK).layout.xaxis.ticktext
    assert len(texts) <= 12
    days = [text.partition("<br>")[2] for text in texts if "<br>" in text]
    assert 1 < len(days) <= 4
    assert len(set(days)) == len(days)
    assert texts[0] == "1<br>Nov 1"


def test_the_words_give_the_ends_the_best_and_what_is_not_compared():
    points = [point(1, 0.4), point(2, 0.9, compared=False), point(3, 0.6), point(4, 0.5)]
    said = trend.alt(points, "NDCG@10", BASE)
    assert said == (
        "NDCG@10 of 4 runs over time. Horizontal lines: First stage (baseline) 0.300. First run "
        "1: 0.400; last run 4: 0.500; highest run 3: 0.600. Not compared, with too few queries: "
        "1."
    )


def test_without_a_value_there_is_nothing_to_say_but_the_number_of_runs():
    points = [point(1, math.nan, low=math.nan, high=math.nan)]
    figure = trend.figure(points, "NDCG@10", [], INK)
    assert list(figure.layout.yaxis.range) == [0.0, 1.0]
    assert "nan" not in trend.alt(points, "NDCG@10", []).lower()
