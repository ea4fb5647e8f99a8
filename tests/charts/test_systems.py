"""Dumbbells: each system against the named baseline, on the values of the table."""

import numpy as np
import pandas as pd
import pytest

from rankdash.charts import style, systems

INK = style.INKS["light"]


def by_name(figure) -> dict[str, object]:
    return {trace.name: trace for trace in figure.data if trace.showlegend is not False}


def test_marks_stand_at_the_means(table: pd.DataFrame):
    traces = by_name(systems.figure(table, "BM25", INK))
    mini = table[table["system"] == "MiniLM"]
    assert list(traces["MiniLM"].x) == mini["after"].tolist()
    assert set(traces["BM25 (baseline)"].x) == set(mini["before"])


def test_the_baseline_stands_in_every_row_of_a_challenger(table: pd.DataFrame):
    traces = by_name(systems.figure(table, "BM25", INK))
    rows = sorted(traces.pop("BM25 (baseline)").y)
    assert rows == sorted(y for trace in traces.values() for y in trace.y)
    assert len(set(rows)) == len(rows)


def test_the_baseline_is_grey_and_hollow_and_no_other_system_is(table: pd.DataFrame):
    traces = by_name(systems.figure(table, "MiniLM", INK))
    baseline = traces.pop("MiniLM (baseline)")
    assert (baseline.marker.color, baseline.marker.symbol) == (style.FIRST_STAGE, "circle-open")
    symbols = [trace.marker.symbol for trace in traces.values()]
    assert len({*symbols, "circle-open"}) == len(symbols) + 1
    assert style.FIRST_STAGE not in [trace.marker.color for trace in traces.values()]


def test_the_change_is_written_beside_the_mark_on_its_outer_side(table: pd.DataFrame):
    traces = by_name(systems.figure(table, "BM25", INK))
    assert {text.strip() for text in traces["MiniLM"].text} == {"+0.140"}
    assert set(traces["MiniLM"].textposition) == {"middle right"}
    worse = next(trace for name, trace in traces.items() if name.startswith("BAAI"))
    assert {text.strip() for text in worse.text} == {"−0.020"}
    assert set(worse.textposition) == {"middle left"}


def test_a_loss_has_a_line_of_another_dash(table: pd.DataFrame):
    figure = systems.figure(table, "BM25", INK)
    gain, loss = (trace for trace in figure.data if trace.mode == "lines")
    assert gain.line.dash != loss.line.dash
    assert np.isfinite(np.asarray(loss.x, dtype=float)).sum() == 2 * 4
    assert np.isfinite(np.asarray(gain.x, dtype=float)).sum() == 2 * 8


def test_metrics_are_named_in_the_order_of_the_table(table: pd.DataFrame):
    axis = systems.figure(table, "BM25", INK, titles={"ndcg@10": "NDCG@10"}).layout.yaxis
    assert list(axis.ticktext) == ["NDCG@10", "mrr@10", "map", "recall@10"]
    assert list(axis.tickvals) == sorted(axis.tickvals)
    assert axis.range[0] > axis.range[1]


def test_ticks_are_values_that_a_metric_can_have(table: pd.DataFrame):
    high = table.assign(before=table["before"].clip(0.97, 0.97), after=1.0, delta=0.03)
    figure = systems.figure(high, "BM25", INK)
    assert max(figure.layout.xaxis.tickvals) == pytest.approx(1.0)
    assert figure.layout.xaxis.range[1] > 1.0
    assert len(figure.layout.xaxis.tickvals) >= 3


def test_a_system_without_a_common_query_is_left_blank(table: pd.DataFrame):
    lost = table.copy()
    lost.loc[lost["system"] == "MiniLM", ["before", "after", "delta"]] = np.nan
    traces = by_name(systems.figure(lost, "BM25", INK))
    assert np.isnan(np.asarray(traces["MiniLM"].x, dtype=float)).all()
    assert {text.strip() for text in traces["MiniLM"].text} == {"–"}


def test_alone_the_baseline_has_a_row_for_each_metric(table: pd.DataFrame):
    figure = systems.figure(table[table["system"] == "BM25"], "BM25", INK)
    assert len(by_name(figure)["BM25 (baseline)"].x) == 4


def test_the_words_name_baseline_system_and_change(table: pd.DataFrame):
    two = table[table["system"].isin(["BM25", "MiniLM"]) & table["metric"].isin(["map"])]
    assert systems.alt(two, "BM25", names={"MiniLM": "Mini"}, titles={"map": "MAP"}) == (
        "Means of each system against the baseline BM25. Mini: MAP 0.500 to 0.640 (+0.140)."
    )
