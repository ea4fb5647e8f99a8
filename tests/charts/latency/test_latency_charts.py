"""Curves, boxes, lines, throughput and lengths: each says what its numbers say."""

import math

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.latency import ecdf, fit, summarize
from rankdash.analysis.token_lengths import token_lengths as lengths_of
from rankdash.charts import style
from rankdash.charts.latency import (
    latency_ecdf,
    latency_fit,
    latency_spread,
    throughput,
    token_lengths,
)
from rankdash.i18n import brief
from rankdash.ranking.measured import Level
from rankdash.ranking.ranking import Reading

INK = style.INKS["light"]
MARKS = style.marks_in_order(["a", "b"], "a")


def curve(values, system="a", name="Alpha") -> latency_ecdf.Curve:
    ordered = np.sort(np.asarray(values, dtype=float))
    summary = summarize(pd.DataFrame({"latency_ms": ordered}))
    return latency_ecdf.Curve(system, name, ecdf(ordered), summary)


def notes(figure) -> dict[str, dict]:
    return {each["text"]: each for each in figure.to_plotly_json()["layout"]["annotations"]}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (0.0678, "0.068"),
        (0.001, "0.001"),
        (0.0, "0"),
        (0.0412, "0.041"),
        (8.4, "8.4"),
        (84.04, "84"),
        (1240.4, "1,240"),
        (math.nan, "–"),
    ],
)
def test_times_have_three_digits(value, wanted):
    assert brief(value) == wanted


def test_a_curve_climbs_from_nothing_to_all_and_its_percentiles_lie_on_it():
    drawn = latency_ecdf.figure([curve(range(1, 101))], MARKS, INK, target_ms=500.0)
    line, *_, on_curve, below = drawn.data
    assert (line.y[0], line.y[-1]) == (0, 1)
    assert line.line.shape == "hv"
    assert on_curve.y == (0.5, 0.95)
    assert on_curve.x == below.x == (50.5, 95.05)
    assert set(notes(drawn)) == {"p50 <b>50.5</b>", "p95 <b>95</b>", "target 500 ms"}
    assert latency_ecdf.alt([curve(range(1, 101))]).endswith(
        "Alpha: p50 50.5 ms, p95 95 ms, 100 queries."
    )


@pytest.mark.parametrize(("n", "bars"), [(1, 0), (2, 0), (200, 2)])
def test_a_bar_shows_an_interval_of_which_an_end_is_known(n, bars):
    drawn = latency_ecdf.figure([curve(range(1, n + 1))], MARKS, INK, target_ms=500.0)
    assert sum(trace.line.width == 9 for trace in drawn.data) == bars


def test_p99_is_marked_from_1000_queries_on_and_never_before():
    few, many = (
        latency_ecdf.figure([curve(np.arange(1.0, n))], MARKS, INK, target_ms=9.0)
        for n in (1000, 1001)
    )
    assert not any("p99" in text for text in notes(few))
    assert any("p99" in text for text in notes(many))


def test_labels_lie_inside_the_axis_and_never_on_each_other():
    """p50 ends at its mark, p95 begins there, p99 stands below; the axis has room on both sides."""
    same = curve(np.full(2000, 20.0))
    drawn = latency_ecdf.figure([same, curve([5.0, 700.0], "b")], MARKS, INK, target_ms=20.0)
    by_name = {text[:3]: each for text, each in notes(drawn).items() if "<b>20</b>" in text}
    assert by_name["p50"]["xanchor"] == "right"
    assert by_name["p95"]["xanchor"] == by_name["p99"]["xanchor"] == "left"
    assert by_name["p50"]["xshift"] < by_name["p95"]["xshift"]
    assert by_name["p95"]["yshift"] > 0 > by_name["p99"]["yshift"]
    low, high = drawn.layout.xaxis.range
    assert low < math.log10(5) - 0.12 * (high - low)
    assert high > math.log10(700) + 0.12 * (high - low)
    assert {each["yref"] for text, each in notes(drawn).items() if "<b>" in text} == {"y2"}
    assert drawn.layout.yaxis2.domain[1] < drawn.layout.yaxis.domain[0], "a strip of their own"


def test_a_box_holds_half_and_its_whiskers_nine_in_ten():
    spread = latency_spread.Spread("a", "Alpha", np.arange(1.0, 102.0))
    drawn = latency_spread.figure([spread], MARKS, INK, target_ms=200.0)
    box, ends = drawn.data
    assert (box.lowerfence[0], box.q1[0], box.median[0], box.q3[0], box.upperfence[0]) == (
        6, 26, 51, 76, 96,
    )  # fmt: skip
    assert list(ends.x[:2]) == [1, 101]
    assert drawn.layout.shapes[0].x0 == 200
    assert "half between 26 and 76, 90% between 6 and 96" in latency_spread.alt([spread])


def cloud(n: int) -> latency_fit.Cloud:
    points = pd.DataFrame({"x": np.arange(1.0, n + 1), "ms": 5 + 2 * np.arange(1.0, n + 1)})
    line = fit(points["x"].to_numpy(), points["ms"].to_numpy())
    return latency_fit.Cloud("b", "Beta", points, line)


def test_the_line_and_the_rules_of_thumb_are_told_apart_and_labelled():
    drawn = latency_fit.figure([cloud(60)], MARKS, "documents", INK, rules=True)
    marks, line, p50, p95 = drawn.data
    assert len(marks.x) == 60
    assert line.y[0] == pytest.approx(7)
    assert line.y[-1] == pytest.approx(125)
    assert p50.name == "rules of thumb from tutorials, p50"
    assert dict(zip(p95.x, p95.y, strict=True)) == {20: 120, 50: 300, 100: 600}
    assert "about 7 ms at 1 and 125 ms at 60." in latency_fit.alt([cloud(60)], "documents")
    assert len(latency_fit.figure([cloud(60)], MARKS, "tokens", INK, rules=True).data) == 2


def test_few_points_have_no_line_and_many_are_thinned():
    assert len(latency_fit.figure([cloud(9)], MARKS, "documents", INK).data) == 1
    assert "9 queries, no line" in latency_fit.alt([cloud(9)], "documents")
    drawn = latency_fit.figure([cloud(5000)], MARKS, "documents", INK)
    assert len(drawn.data[0].x) == latency_fit.MOST_MARKS


def level(n: int, rate: float, p95: float, failed: int = 0) -> Level:
    return Level(n, 2.0, int(2 * rate), failed, p95 / 2, p95, rate, 20 * rate, 1.5)


def test_the_ring_is_around_the_best_rate_that_meets_the_target_as_measured():
    """Trap 17: at 1 / mean latency 4 clients would seem to serve 80 a second."""
    levels = [level(1, 50.0, 20.0), level(2, 70.0, 40.0), level(4, 75.0, 90.0)]
    measured = [throughput.Measurement("b", "Beta", levels)]
    drawn = throughput.figure(measured, MARKS, INK, target_ms=50.0)
    rates, p50, p95, ring = drawn.data
    assert rates.y == (50, 70, 75)
    assert (p50.y, p95.y) == ((10, 20, 45), (20, 40, 90))
    assert (ring.x, ring.y) == ((2,), (70,))
    assert drawn.layout.shapes[0].y0 == 50
    assert drawn.layout.shapes[0].yref == "y2"
    assert len(throughput.figure(measured, MARKS, INK, target_ms=5.0).data) == 3, "none meets it"
    assert "concurrency 2: 70/s, p95 40 ms" in throughput.alt(measured)


def test_cut_pairs_are_hatched_and_add_up_with_the_others():
    full = np.array([10, 20, 30, 600, 700], dtype=np.int32)
    found = lengths_of(Reading(np.minimum(full, 512), full))
    drawn = token_lengths.figure(found, INK, name="Beta")
    whole, cut, limit = drawn.data
    assert (sum(whole.y), sum(cut.y)) == (pytest.approx(0.6), pytest.approx(0.4))
    assert (whole.marker.pattern.shape, cut.marker.pattern.shape) == (None, "/")
    assert limit.x == (512, 512)
    assert "2 are cut; at most 512 tokens are read." in token_lengths.alt(found, "Beta")
    short = lengths_of(Reading(full, full))
    assert len(token_lengths.figure(short, INK, name="Beta").data) == 1
    assert token_lengths.alt(short, "Beta").endswith("None is cut.")
