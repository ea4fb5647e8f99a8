"""Curves: the metric at each k, a line for each system."""

import numpy as np
import pandas as pd
import pytest

from rankdash.charts import cutoffs, style

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
    marks = style.marks(list(pd.unique(curve["system"])), "BM25")
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


def test_without_values_the_axes_stay_empty():
    none = pd.DataFrame({"system": "a", "k": [1, 10], "mean": [np.nan, np.nan], "n": 0})
    assert list(cutoffs.figure(none, "NDCG", "a", INK).layout.yaxis.range) == [0.0, 1.0]


def test_the_words_give_both_ends_of_each_curve(curve: pd.DataFrame):
    text = cutoffs.alt(curve[curve["system"] == "BM25"], "NDCG", names={"BM25": "First stage"})
    assert text == "NDCG against the cutoff k. First stage: 0.200 at 1, 0.400 at 100."


def test_the_axis_is_logarithmic_with_every_cutoff_named(curve: pd.DataFrame):
    axis = cutoffs.figure(curve, "NDCG", "BM25", INK).layout.xaxis
    assert axis.type == "log"
    assert list(axis.ticktext) == [str(k) for k in sorted(set(curve["k"]))]
    assert list(axis.tickvals) == pytest.approx(sorted(set(curve["k"])))
