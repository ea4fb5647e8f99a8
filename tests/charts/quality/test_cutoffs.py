"""Curves: the metric at each k, a line for each system."""

import numpy as np
import pandas as pd
import pytest

from rankdash.charts import style
from rankdash.charts.quality import cutoffs

INK = style.INKS["dark"]


def test_each_line_holds_its_system_values(curve: pd.DataFrame):
    figure = cutoffs.figure(curve, "NDCG", "BM25", INK)
    mini = next(trace for trace in figure.data if trace.name == "MiniLM")
    own = curve[curve["system"] == "MiniLM"]
    assert list(mini.x) == own["k"].tolist()
    assert list(mini.y) == own["mean"].tolist()
    assert figure.data[0].name == "BM25 (baseline)"


def test_lines_differ_in_colour_dash_and_symbol(curve: pd.DataFrame):
    traces = cutoffs.figure(curve, "NDCG", "BM25", INK).data
    for looks in (
        [trace.line.color for trace in traces],
        [trace.line.dash for trace in traces],
        [trace.marker.symbol for trace in traces],
    ):
        assert len(set(looks)) == len(traces)


def test_a_system_looks_the_same_as_in_the_dumbbells(curve: pd.DataFrame):
    marks = style.marks_in_order(pd.unique(curve["system"]), "BM25")
    traces = {trace.name: trace for trace in cutoffs.figure(curve, "NDCG", "BM25", INK).data}
    assert traces["MiniLM"].line.color == marks["MiniLM"].colour
    assert traces["MiniLM"].marker.symbol == marks["MiniLM"].symbol


def test_the_chosen_cutoff_is_marked_on_the_axis_and_by_a_line(curve: pd.DataFrame):
    figure = cutoffs.figure(curve, "NDCG", "BM25", INK, k=10)
    assert [text for text in figure.layout.xaxis.ticktext if "<b>" in text] == ["<b>10</b>"]
    assert [shape.x0 for shape in figure.layout.shapes] == [10]
    assert not cutoffs.figure(curve, "NDCG", "BM25", INK, k=7).layout.shapes


def test_noise_is_not_stretched_to_the_whole_height():
    flat = pd.DataFrame({"system": "a", "k": [1, 10], "mean": [0.5, 0.5001], "n": 5})
    low, high = cutoffs.figure(flat, "NDCG", "a", INK).layout.yaxis.range
    assert high - low >= 0.05


@pytest.mark.parametrize(
    ("means", "end"), [([1.0], 1.0), ([0.9, 0.99], 1.0), ([0.4, 0.5], 0.525), ([1.0, 3.0], 3.16)]
)
def test_the_axis_ends_at_one_unless_a_sum_of_gains_lies_beyond(means, end):
    curve = pd.DataFrame({"system": "a", "k": range(1, len(means) + 1), "mean": means, "n": 5})
    assert cutoffs.figure(curve, "NDCG", "a", INK).layout.yaxis.range[1] == pytest.approx(end)


def test_without_values_the_axes_stay_empty():
    none = pd.DataFrame({"system": "a", "k": [1, 10], "mean": [np.nan, np.nan], "n": 0})
    assert list(cutoffs.figure(none, "NDCG", "a", INK).layout.yaxis.range) == [0.0, 1.0]


def test_the_words_give_both_ends_of_each_curve(curve: pd.DataFrame):
    text = cutoffs.alt(curve[curve["system"] == "BM25"], "NDCG", names={"BM25": "First stage"})
    assert text == "NDCG by the cutoff k. First stage: 0.200 at 1, 0.400 at 100."


def test_the_axis_is_logarithmic_with_every_cutoff_named(curve: pd.DataFrame):
    axis = cutoffs.figure(curve, "NDCG", "BM25", INK).layout.xaxis
    assert axis.type == "log"
    assert list(axis.ticktext) == [str(k) for k in sorted(set(curve["k"]))]
    assert list(axis.tickvals) == pytest.approx(sorted(set(curve["k"])))


def bands(figure) -> list:
    return [trace for trace in figure.data if trace.fill == "toself"]


def test_bands_hold_the_intervals_and_lie_behind_every_line(banded: pd.DataFrame):
    figure = cutoffs.figure(banded, "NDCG", "BM25", INK)
    found = bands(figure)
    assert list(figure.data[: len(found)]) == found
    assert len(found) == banded["system"].nunique()
    own = banded[banded["system"] == "MiniLM"]
    mini = next(each for each in found if each.line.dash == "solid")
    corners = set(zip(mini.x, mini.y, strict=True))
    ends = [
        (k, each) for end in ("low", "high") for k, each in zip(own["k"], own[end], strict=True)
    ]
    assert corners == set(ends)


def test_a_band_has_its_line_s_dash_and_lets_the_lines_through(banded: pd.DataFrame):
    figure = cutoffs.figure(banded, "NDCG", "BM25", INK)
    lines = [trace for trace in figure.data if trace.mode == "lines+markers"]
    for band, line in zip(bands(figure), lines, strict=True):
        assert band.line.dash == line.line.dash
        assert band.fillcolor == style.faded(line.line.color, 0.13)
        assert band.hoverinfo == "skip" and band.showlegend is False


def test_the_axis_reaches_around_the_bands(banded: pd.DataFrame):
    low, high = cutoffs.figure(banded, "NDCG", "BM25", INK).layout.yaxis.range
    assert low < banded["low"].min() and high > banded["high"].max()


def test_only_intervals_that_exist_are_drawn_and_told(banded: pd.DataFrame, curve: pd.DataFrame):
    some = banded.copy()
    some.loc[some["system"] != "MiniLM", ["low", "high"]] = np.nan
    figure = cutoffs.figure(some, "NDCG", "BM25", INK)
    assert len(bands(figure)) == 1
    texts = {trace.name: trace.hovertext for trace in figure.data if trace.hovertext}
    assert texts["MiniLM"][0] == "0.250 (0.190…0.330)"
    assert texts["BM25 (baseline)"][0] == "0.200"
    key = "90% interval of the mean"
    assert key in [t.name for t in cutoffs.figure(some, "NDCG", "BM25", INK, level=0.9).data]
    assert len(cutoffs.figure(curve, "NDCG", "BM25", INK).data) == curve["system"].nunique()


def test_the_words_give_the_intervals_at_both_ends(banded: pd.DataFrame):
    text = cutoffs.alt(banded[banded["system"] == "BM25"], "NDCG")
    assert text == (
        "NDCG by the cutoff k. BM25: 0.200 (0.140 to 0.280) at 1, 0.400 (0.340 to 0.480) at 100."
    )
