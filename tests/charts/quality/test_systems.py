"""Dumbbells: each system against the named baseline, on the values of the table."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.charts import style
from rankdash.charts.quality import systems
from rankdash.metrics import parse_measure

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


def changes_of(figure, system: str) -> list[tuple[float, str, str]]:
    """Where each change of a system is written, on which side of that, and what."""
    rows = set(by_name(figure)[system].y)
    written = next(trace for trace in figure.data if trace.mode == "text")
    items = zip(written.y, written.x, written.textposition, written.text, strict=True)
    return [(x, side, text.strip()) for y, x, side, text in items if y in rows]


def test_the_change_is_written_beside_the_mark_on_its_outer_side(table: pd.DataFrame):
    figure = systems.figure(table, "BM25", INK)
    after = table[table["system"] == "MiniLM"]["after"]
    assert changes_of(figure, "MiniLM") == [(x, "middle right", "+0.140") for x in after]
    worse = next(name for name in by_name(figure) if name.startswith("BAAI"))
    assert {each[1:] for each in changes_of(figure, worse)} == {("middle left", "−0.020")}


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
    assert {text for *_, text in changes_of(systems.figure(lost, "BM25", INK), "MiniLM")} == {"–"}


def test_alone_the_baseline_has_a_row_for_each_metric(table: pd.DataFrame):
    figure = systems.figure(table[table["system"] == "BM25"], "BM25", INK)
    assert len(by_name(figure)["BM25 (baseline)"].x) == 4


def test_the_axis_speaks_of_both_systems_only_where_there_are_two(table: pd.DataFrame):
    alone = systems.figure(table[table["system"] == "BM25"], "BM25", INK)
    assert alone.layout.xaxis.title.text == "mean"
    both = systems.figure(table, "BM25", INK)
    assert both.layout.xaxis.title.text == "mean over the queries that both systems have"


def test_the_words_name_baseline_system_and_change(table: pd.DataFrame):
    two = table[table["system"].isin(["BM25", "MiniLM"]) & table["metric"].isin(["map"])]
    assert systems.alt(two, "BM25", names={"MiniLM": "Mini"}, titles={"map": "MAP"}) == (
        "Means of each system against the baseline BM25. Mini: MAP 0.500 to 0.640 (+0.140)."
    )


def whiskers(figure, colour: str) -> np.ndarray:
    """(rows, 2): low and high of each whisker in a colour."""
    found = [
        trace
        for trace in figure.data
        if trace.mode == "lines+markers" and trace.line.color == colour
    ]
    ends = [np.asarray(trace.x, dtype=float).reshape(-1, 3)[:, :2] for trace in found]
    return np.vstack(ends) if ends else np.empty((0, 2))


def test_whiskers_run_from_the_baseline_plus_the_interval_of_the_change(compared: pd.DataFrame):
    figure = systems.figure(compared, "BM25", INK)
    own = compared[compared["system"] == "MiniLM"]
    drawn = whiskers(figure, by_name(figure)["MiniLM"].marker.color)
    assert drawn == pytest.approx(
        np.column_stack([own["before"] + own["delta_low"], own["before"] + own["delta_high"]])
    )
    assert len(whiskers(figure, style.FIRST_STAGE)) == 0


def test_no_whisker_leads_to_what_a_metric_cannot_have(compared: pd.DataFrame):
    table = compared.assign(delta_low=-2.0, delta_high=2.0)
    figure = systems.figure(table, "BM25", INK)
    drawn = whiskers(figure, by_name(figure)["MiniLM"].marker.color)
    assert {*drawn[:, 0]} == {0.0}
    assert {*drawn[:, 1]} == {1.0}


def test_all_whiskers_and_changes_are_within_the_axis(compared: pd.DataFrame):
    wide = compared.assign(delta_high=compared["delta"] + 0.4)
    low, high = systems.figure(wide, "BM25", INK).layout.xaxis.range
    assert high > (wide["before"] + wide["delta_high"]).max()
    assert low < (wide["before"] + wide["delta_low"]).min()


def test_changes_are_written_outside_their_whiskers(compared: pd.DataFrame):
    figure = systems.figure(compared, "BM25", INK)
    gain = compared[compared["system"] == "MiniLM"]
    assert [x for x, *_ in changes_of(figure, "MiniLM")] == pytest.approx(
        (gain["before"] + gain["delta_high"]).tolist()
    )
    worse = next(name for name in by_name(figure) if name.startswith("BAAI"))
    loss = compared[compared["delta"] == -0.02]
    assert [x for x, *_ in changes_of(figure, worse)] == pytest.approx(
        (loss["before"] + loss["delta_low"]).tolist()
    )


def starred(figure) -> set[str]:
    written = next(trace for trace in figure.data if trace.mode == "text")
    return {text.strip() for text in written.text if "*" in text}


def test_proven_changes_are_starred_and_bold_and_the_star_explained(compared: pd.DataFrame):
    figure = systems.figure(compared, "BM25", INK)
    assert starred(figure) == {"<b>+0.140\u00a0*</b>", "<b>−0.020\u00a0*</b>"}
    keys = {trace.name: trace.marker.symbol for trace in figure.data if list(trace.x) == [None]}
    assert keys["corrected p ≤ 0.05"] == "asterisk-open"
    assert "95% interval of the change" in keys
    strict = systems.figure(compared, "BM25", INK, level=0.99)
    assert starred(strict) == {"<b>+0.140\u00a0*</b>"}
    assert "corrected p ≤ 0.01" in by_name(strict)


@pytest.mark.parametrize(
    ("changed", "proven"),
    [
        ({"p_corrected": 0.05}, True),
        ({"p_corrected": 0.051}, False),
        ({"p_corrected": np.nan}, False),
        ({"delta_low": -0.001}, False),
        ({"delta_low": np.nan, "delta_high": np.nan}, False),
    ],
)
def test_proven_is_what_the_verdict_calls_proven(
    compared: pd.DataFrame, changed: dict[str, float], proven: bool
):
    mini = compared[compared["system"].isin(["BM25", "MiniLM"])].assign(**changed)
    assert bool(starred(systems.figure(mini, "BM25", INK))) is proven


def test_an_interval_is_never_drawn_past_what_a_metric_can_reach(compared: pd.DataFrame):
    high = compared.assign(before=0.95, after=0.97, delta=0.02, delta_low=-0.98, delta_high=0.08)
    figure = systems.figure(high, "BM25", INK)
    drawn = [x for trace in figure.data if trace.mode == "lines+markers" for x in trace.x]
    ends = [x for x in drawn if np.isfinite(x)]
    assert (min(ends), max(ends)) == (0.0, 1.0)
    assert any(
        "-0.980…+0.080".replace("-", "−") in text
        for trace in figure.data
        for text in trace.hovertext or ()
    )


def test_a_metric_without_a_highest_value_has_its_intervals_and_ticks_whole(compared, monkeypatch):
    measure = parse_measure("ndcg@10")
    endless = replace(measure, metric=replace(measure.metric, range=(0.0, math.inf)))
    monkeypatch.setattr(systems, "parse_measure", lambda spec: endless)
    high = compared.assign(before=12.0, after=14.0, delta=2.0, delta_low=-0.5, delta_high=4.5)
    figure = systems.figure(high, "BM25", INK)
    drawn = [x for trace in figure.data if trace.mode == "lines+markers" for x in trace.x]
    ends = [x for x in drawn if np.isfinite(x)]
    assert (min(ends), max(ends)) == (11.5, 16.5)
    assert list(figure.layout.xaxis.tickvals) == [12, 14, 16]


def test_without_intervals_nothing_is_said_of_them(table: pd.DataFrame):
    figure = systems.figure(table, "BM25", INK)
    assert not starred(figure)
    assert not [trace for trace in figure.data if list(trace.x) == [None]]
    assert not any("interval" in text for trace in figure.data for text in trace.hovertext or ())
    assert "interval" not in systems.alt(table, "BM25")


def test_hover_and_words_give_the_interval(compared: pd.DataFrame):
    figure = systems.figure(compared, "BM25", INK)
    assert by_name(figure)["MiniLM"].hovertext[0] == (
        "MiniLM<br>ndcg@10: 0.300 → 0.440 (+0.140), 58 queries"
        "<br>95% interval +0.090…+0.200<br>corrected p 0.002"
    )
    two = compared[compared["system"].isin(["BM25", "MiniLM"]) & (compared["metric"] == "map")]
    assert systems.alt(two, "BM25") == (
        "Means of each system against the baseline BM25. "
        "MiniLM: map 0.500 to 0.640 (+0.140, 95% interval +0.090…+0.200, proven)."
    )


def test_a_tiny_p_is_never_shown_as_zero_and_none_not_at_all(compared: pd.DataFrame):
    def hovers(p: float) -> tuple[str, ...]:
        return by_name(systems.figure(compared.assign(p_corrected=p), "BM25", INK))[
            "MiniLM"
        ].hovertext

    assert hovers(0.0001)[0].endswith("corrected p 0.0001")
    assert not any("corrected" in text for text in hovers(np.nan))
