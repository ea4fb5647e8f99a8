"""The charts of cost and return: which side pays, what swings most, what no option beats."""

import itertools
import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from rankdash.charts import style
from rankdash.charts.cost import break_even, crossover, depth, frontier, tornado

INK = style.INKS["light"]


def money(amount: float) -> str:
    return f"${amount:,.2f}"


ROWS = [
    tornado.Row("Gain", -50.0, 150.0, "5 %", "30 %"),
    tornado.Row("Price", 90.0, 10.0, "$0.50", "$1.50"),
]


def test_better_and_worse_differ_in_side_and_pattern():
    figure = tornado.figure(ROWS, 40.0, INK, money=money)
    better, worse = figure.data
    # The widest assumption comes last, which is on top.
    ticks = list(figure.layout.yaxis.ticktext)
    assert ticks == ["Price<br>$0.50 … $1.50", "Gain<br>5 % … 30 %"]
    assert list(better.x) == [50.0, 110.0]
    assert list(worse.x) == [-30.0, -90.0]
    assert better.base == worse.base == 40.0
    assert better.marker.pattern.shape != worse.marker.pattern.shape
    # A higher price is the worse end, and says so.
    assert list(worse.hovertext) == ["Price = $1.50: $10.00", "Gain = 5 %: $-50.00"]


def test_an_assumption_that_only_helps_has_no_bar_on_the_other_side():
    _, worse = tornado.figure([tornado.Row("Share", 50.0, 60.0, "1", "2")], 40.0, INK).data
    assert list(worse.x) == [0.0]


def test_the_words_of_a_tornado_give_every_swing():
    said = tornado.alt(ROWS, 40.0, money=money)
    assert said == (
        "Net value a month, now $40.00, when one assumption changes. Gain from 5 % to 30 %: "
        "$-50.00 to $150.00. Price from $0.50 to $1.50: $90.00 to $10.00."
    )


XS, YS = [1.0, 2.0, 3.0], [10.0, 20.0]
ACROSS = break_even.Axis("Searches", XS, 2.0, logarithmic=True)
UPWARD = break_even.Axis("Elasticity", YS, 10.0)
NET = np.array([[-1.0, 0.5, 2.0], [-3.0, -2.0, 4.0]])


def test_the_line_where_nothing_is_won_and_the_present_point_are_drawn():
    figure = break_even.figure(NET, ACROSS, UPWARD, INK, money=money)
    heat, line, now = figure.data
    # Nothing won and nothing lost is the middle of the scale.
    assert heat.zmin == -heat.zmax
    assert (line.contours.start, line.contours.end) == (0, 0)
    assert (list(now.x), list(now.y)) == ([2.0], [10.0])
    assert figure.layout.xaxis.type == "log"
    assert "$4.00" in heat.hovertext[1][2]


def test_colours_show_the_side_and_the_size_near_the_present_point():
    net = np.array([[-0.5, 1.0, 1000.0], [-1000.0, -1.0, 1e6]])
    heat = break_even.figure(net, ACROSS, UPWARD, INK, now=1.0, money=money).data[0]
    z = np.asarray(heat.z, dtype=float) / heat.zmax
    # A far corner takes the whole of the scale, and still the present point is told from nothing.
    assert z[1, 2] == 1
    assert 0.1 < z[0, 1] < 0.3
    assert np.array_equal(np.sign(z), np.sign(net))
    below, above = heat.colorscale[1], heat.colorscale[2]
    assert below[0] == above[0] == 0.5
    assert below[1] != above[1]
    assert "$0.00" in heat.colorbar.ticktext


@pytest.mark.parametrize("net", [np.zeros((2, 3)), np.full((2, 3), -7.0)])
def test_a_map_of_nothing_or_of_one_value_is_drawn(net):
    heat = break_even.figure(net, ACROSS, UPWARD, INK).data[0]
    assert np.isfinite(np.asarray(heat.z, dtype=float)).all()
    assert np.isfinite(heat.colorbar.tickvals).all()


def test_where_everything_pays_there_is_no_line():
    figure = break_even.figure(np.abs(NET), ACROSS, UPWARD, INK)
    assert [trace.type for trace in figure.data] == ["heatmap", "scatter"]
    off = break_even.Axis("Searches", XS, None)
    assert [t.type for t in break_even.figure(np.abs(NET), off, UPWARD, INK).data] == ["heatmap"]


def test_the_words_tell_how_much_of_the_chart_pays():
    said = break_even.alt(NET, ACROSS, UPWARD, money=money)
    assert said == (
        "Net value a month over Searches (across) and Elasticity (upward). It pays in 50% of the "
        "chart, from $-3.00 to $4.00."
    )


MARKS = style.marks_in_order(["none", "beaten", "fast", "slow", "unpriced"], "none")


def point(name: str, *given: float | bool) -> frontier.FrontierPoint:
    return frontier.FrontierPoint(name, MARKS.get(name, MARKS["none"]), *given)


POINTS = [
    point("none", 0.0, 0.5, True, 0.45, 0.55),
    point("beaten", 3.0, 0.55, False),
    point("fast", 1.0, 0.6, True),
    point("slow", 9.0, 0.7, True),
    point("unpriced", math.nan, 0.9, False),
]


def named(figure: go.Figure) -> dict[str, go.Scatter]:
    """Name beside a mark, as it is written → its trace."""
    return {trace.text[0]: trace for trace in figure.data if trace.text}


def test_each_system_has_its_own_mark_and_pareto_optimal_ones_a_bold_name_and_a_line():
    figure = frontier.figure(POINTS, "NDCG@10", "p95", INK)
    assert list(figure.data[0].x) == [0.0, 1.0, 9.0]
    assert {*named(figure)} == {"<b>none</b>", "<b>fast</b>", "beaten", "<b>slow</b>"}
    for text, trace in named(figure).items():
        mark = MARKS[text.removeprefix("<b>").removesuffix("</b>")]
        assert (trace.marker.symbol, trace.marker.color) == (mark.symbol, mark.colour)
    assert list(named(figure)["<b>none</b>"].error_y.array) == pytest.approx([0.05])


def test_what_is_over_the_target_is_crossed_out():
    figure = frontier.figure(POINTS, "NDCG@10", "p95", INK, target=5.0)
    [crossed] = [trace for trace in figure.data if trace.marker.symbol == "x-thin"]
    assert list(crossed.x) == [9.0]
    assert "5.0" in figure.data[-1].name
    assert [shape.x0 for shape in figure.layout.shapes] == [5.0]


@pytest.mark.parametrize(("most", "kind"), [(20.0, None), (20.1, "log")])
def test_values_far_apart_have_a_logarithmic_axis_with_a_place_for_0(most, kind):
    points = [point("none", 0.0, 0.5, True), point("fast", 1.0, 0.6, True)]
    figure = frontier.figure([*points, point("slow", most, 0.7, True)], "NDCG@10", "ms", INK)
    axis = figure.layout.xaxis
    assert axis.type == kind
    at = figure.data[0].x[0]
    if kind is None:
        assert at == 0
        return
    assert 0 < at < 1
    assert (axis.tickvals[0], axis.ticktext[0]) == (at, "0")
    low, high = axis.range
    assert low < math.log10(at) < math.log10(most) < high


def test_names_of_options_that_lie_close_take_different_corners():
    close = [
        point("No reranker", 0.0, 0.500, True),
        point("BM25 reranker", 0.1, 0.501, False),
        point("a long name at the edge", 2.0, 0.6, True),
    ]
    figure = frontier.figure(close, "NDCG@10", "cost", INK)
    corner = {text: trace.textposition[0] for text, trace in named(figure).items()}
    assert corner["<b>No reranker</b>"] == "bottom right"
    assert corner["BM25 reranker"] == "top right"
    assert "left" in corner["<b>a long name at the edge</b>"]
    # No name begins left of the plot.
    assert "left" not in corner["<b>No reranker</b>"]


def test_of_two_marks_above_each_other_the_upper_has_its_name_above_the_lower():
    crowded = [
        point("First stage", 0.0, 0.666, True),
        point("bge-small", 8.4, 0.748, True),
        point("First stage + bge-small (RRF)", 8.4, 0.730, False),
        point("MiniLM cross-encoder", 1262.0, 0.759, True),
        point("BM25 without stemming", 0.046, 0.615, False),
    ]
    figure = frontier.figure(crowded, "NDCG@10", "ms", INK, size=frontier.BESIDE)
    corner = {trace.y[0]: trace.textposition[0] for trace in named(figure).values()}
    assert (corner[0.748].split()[0], corner[0.730].split()[0]) == ("top", "bottom")


@pytest.mark.parametrize(("x", "most"), [(0.0, 9.0), (9.0, 9.0), (1.0, 30.0)])
def test_marks_that_overlap_are_drawn_at_their_own_values_and_the_better_one_on_top(x, most):
    alike = [point("fast", x, 0.651, True), point("beaten", x, 0.650, False)]
    ends = [point("none", 0.0, 0.5, False), point("slow", most, 0.8, True)]
    figure = frontier.figure([*alike, *ends], "NDCG@10", "ms", INK)
    drawn = named(figure)
    assert drawn["<b>fast</b>"].x == drawn["beaten"].x
    assert x in (0.0, drawn["beaten"].x[0])
    traces = list(figure.data)
    assert traces.index(drawn["<b>fast</b>"]) > traces.index(drawn["beaten"])


def test_an_option_without_a_price_is_neither_drawn_nor_told():
    said = frontier.alt(POINTS, "NDCG@10", "cost", written=money)
    assert said == (
        "NDCG@10 against cost. none: 0.500 at $0.00, Pareto-optimal. beaten: 0.550 at $3.00, "
        "dominated. fast: 0.600 at $1.00, Pareto-optimal. slow: 0.700 at $9.00, Pareto-optimal."
    )


def test_one_own_length_is_marked_on_every_price():
    lengths = [10.0, 200.0, 500.0]
    costs = {"a": [1.0, 1.0, 1.0], "b": [0.1, 2.0, 5.0]}
    figure = crossover.figure(lengths, costs, 200.0, INK, money=money)
    assert [list(trace.marker.size) for trace in figure.data] == [[0, 11, 0]] * 2
    assert len({trace.line.dash for trace in figure.data}) == 2
    assert figure.layout.shapes[0].x0 == 200.0
    assert "b: $0.10 at 10 tokens, $5.00 at 500, $2.00 at yours." in crossover.alt(
        lengths, costs, 200.0, money=money
    )


TABLE = pd.DataFrame(
    {
        "depth": [0, 10, 50],
        "mean": [0.5, 0.6, 0.59],
        "low": [0.4, 0.5, 0.5],
        "high": [0.6, 0.7, 0.7],
    }
)


def test_quality_waiting_and_cost_share_the_axis_of_depth():
    figure = depth.figure(
        TABLE, "NDCG@10", {"best": 10, "enough": 10}, INK,
        latency=[0, 40, 200], cost=[0, 0.5, 2.0], money=money,
    )  # fmt: skip
    by_axis = {trace.yaxis or "y": trace for trace in figure.data}
    assert list(by_axis["y2"].y) == [0, 40, 200]
    assert list(by_axis["y3"].y) == [0, 0.5, 2.0]
    rings = [trace for trace in figure.select_traces("scatter") if trace.mode == "markers"]
    # Both marks lie on one depth, and both can be seen.
    assert [trace.x[0] for trace in rings] == [1, 1]
    assert len({(trace.marker.symbol, trace.marker.size) for trace in rings}) == 2
    assert list(figure.layout.xaxis.ticktext) == ["not reranked", "10", "50"]
    domains = [figure.layout[axis].domain for axis in ("yaxis", "yaxis2", "yaxis3")]
    assert all(low[0] > high[1] for low, high in itertools.pairwise(domains))


def test_what_was_not_measured_has_no_panel():
    figure = depth.figure(TABLE, "NDCG@10", {}, INK, latency=[0.0, math.nan, math.nan])
    assert {trace.yaxis or "y" for trace in figure.data} == {"y"}
    assert "best: 10" in depth.alt(TABLE, "NDCG@10", {"best": 10})
