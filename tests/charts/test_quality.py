"""Totals of the charts of quality: no query is lost, lengths are right, and steps meet."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.metrics import parse_measure
from rankdash.features.history import charts as history_charts
from rankdash.features.overview import charts as overview_charts
from rankdash.features.overview import charts_systems
from rankdash.features.queries import charts as queries_charts
from rankdash.kit.drawing import changes, style
from tests.charts.examples import SYSTEMS, compared, made_pairs, past, shares, split, splits

INK = style.INKS["light"]


def test_many_queries_share_bars_of_one_direction_and_none_is_lost():
    frame = made_pairs(10_000)
    delta = frame["delta"].dropna()
    hurt, helped, same, _mean = changes.deltas_chart(frame, "M").draw(INK).data
    assert len(hurt.x) + len(helped.x) <= changes.MOST_BARS
    for trace, of in ((hurt, delta < -0.005), (helped, delta > 0.005), (same, abs(delta) <= 0.005)):
        assert sum(point[1] for point in trace.customdata) == of.sum()
    assert sum([*hurt.width, *helped.width]) == (delta.abs() > 0.005).sum()
    assert hurt.customdata[0][0] == frame.loc[delta.idxmin(), "query_id"]
    assert helped.customdata[-1][0] == frame.loc[delta.idxmax(), "query_id"]


KINDS = {
    "baseline": "baseline",
    "potential gain realised": "won",
    "lost by reranking": "lost",
    "potential gain left": "to_win",
    "not in its list": "retriever",
}


def lengths(figure) -> dict[str, float]:
    """Return the total length of the rectangles of each kind."""
    drawn = [trace for trace in figure.data if trace.type == "bar"]
    return {KINDS[trace.name]: pytest.approx(sum(trace.x)) for trace in drawn}


@pytest.mark.parametrize("won", [0.09, 0.0, -0.043, -0.2, -0.588])
@pytest.mark.parametrize("retriever", [0.1, 0.0])
def test_each_number_is_the_length_of_what_is_drawn_in_its_colour(won, retriever):
    to_win = 1 - 0.588 - won - retriever
    figure = overview_charts.headroom_chart(split(0.588, won, to_win, retriever), "M").draw(INK)
    parts = {"baseline": 0.588, "lost" if won < 0 else "won": abs(won)}
    parts |= {"to_win": to_win, "retriever": retriever}
    wanted = {kind: value for kind, value in parts.items() if round(value, 3)}
    assert lengths(figure) == wanted
    written = [abs(float(text.replace("−", "-"))) for text in figure.data[-1].text]
    assert written == pytest.approx(list(wanted.values()), abs=5e-4)


@pytest.mark.parametrize(
    ("parts", "retriever"),
    [
        # As for an uploaded run that lacks relevant documents of the baseline.
        *(((0.6, -0.2, 0.05, 0.55), 0.55), ((0.6, -0.4, 0.0, 0.8), 0.8)),
        # A challenger above the ceiling hides none of the retriever's loss.
        ((0.5, 0.3, -0.05, 0.25), 0.25),
    ],
)
def test_what_a_list_could_not_reach_is_left_to_the_retriever(parts, retriever):
    assert (
        lengths(overview_charts.headroom_chart(split(*parts), "M").draw(INK))["retriever"]
        == retriever
    )


def test_every_part_has_its_number_in_its_order_with_room_between():
    written = overview_charts.headroom_chart(splits(), "M").draw(INK).data[-1]
    for place in range(len(splits())):
        xs = [x for y, x in zip(written.y, written.x, strict=True) if place < y < place + 0.5]
        assert xs == sorted(xs)
        assert all(gap > 0.13 for gap in np.diff(xs))
        assert all(0.06 < x < 0.94 for x in xs)


def whiskers(figure) -> list[float]:
    drawn = [trace for trace in figure.data if trace.mode == "lines+markers"]
    return [x for trace in drawn for x in trace.x if np.isfinite(x)]


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
def test_proven_is_what_the_verdict_calls_proven(changed, proven):
    table = compared()
    mini = table[table["system"].isin(SYSTEMS[:2])].assign(**changed)
    figure = charts_systems.systems_chart(mini, "BM25", SYSTEMS[1:2]).draw(INK)
    dots = next(trace for trace in figure.data if trace.customdata is not None)
    assert dots.marker.color[0] == (style.BETTER if proven else INK.background)
    written = next(trace for trace in figure.data if trace.mode == "text")
    assert any("<b>" in text for text in written.text) is proven


def test_an_interval_is_never_drawn_past_what_a_metric_can_reach(monkeypatch):
    table = compared().assign(before=0.95, after=0.97, delta=0.02, delta_low=-2.0, delta_high=2.0)
    chart = partial(charts_systems.systems_chart, baseline="BM25", order=SYSTEMS[1:])
    ends = whiskers(chart(table).draw(INK))
    assert (min(ends), max(ends)) == pytest.approx((-0.95, 0.05))
    measure = parse_measure("ndcg@10")
    endless = replace(measure, metric=replace(measure.metric, range=(0.0, math.inf)))
    monkeypatch.setattr(charts_systems, "parse_measure", lambda spec: endless)
    high = table.assign(before=12.0, after=14.0, delta=2.0, delta_low=-0.5, delta_high=4.5)
    figure = chart(high).draw(INK)
    assert {*whiskers(figure)} == {-0.5, 4.5}
    assert list(figure.layout.xaxis.ticktext) == ["0", "+2", "+4"]


def test_each_metric_has_an_axis_and_the_rows_are_in_the_order_of_the_leaderboard():
    order = SYSTEMS[:0:-1]
    figure = charts_systems.systems_chart(compared(), "BM25", order, columns=2).draw(INK)
    metrics = list(dict.fromkeys(compared()["metric"]))
    assert len({str(trace.xaxis) for trace in figure.data if trace.mode == "text"}) == len(metrics)
    names = [style.short(name, 24) for name in order]
    assert list(figure.layout.yaxis.ticktext) == names
    assert figure.layout.yaxis2.ticktext == ()
    below = charts_systems.systems_chart(compared(), "BM25", order).draw(INK)
    assert list(below.layout.yaxis2.ticktext) == names


@pytest.mark.parametrize("means", [[0.5] * 16, [0.9, *[0.1] * 12], [0.3, 0.31, 0.8, 0.81]])
def test_the_names_at_the_ends_of_lines_stay_apart_and_in_the_panel(means):
    lines = past(*means)
    layout = history_charts.trend_chart(lines, "M", []).draw(INK).layout
    low, high = layout.yaxis.range
    panel = 290  # Pixels.
    named = [note for note in layout.annotations if note.showarrow]
    places = [(high - note.y) / (high - low) * panel + note.ay for note in named]
    assert {note.text for note in named} == {line.name for line in lines}
    assert all(gap >= 16 - 1e-6 for gap in np.diff(places))
    assert places[0] >= 8 - 1e-6 and places[-1] <= panel - 8 + 1e-6


def test_only_a_name_with_several_runs_has_a_line_to_its_name():
    lines = past(0.5, 0.6, 0.7, name=["twice", "once", "twice"])
    figure = history_charts.trend_chart(lines, "M", []).draw(INK)
    dotted = [trace for trace in figure.data if trace.line.dash == "dot"]
    assert [trace.y[0] for trace in dotted] == [0.7]


PARTS = st.lists(st.tuples(st.floats(0, 0.05), st.floats(0, 0.05)), max_size=20)


@given(parts=PARTS)
def test_the_steps_lead_from_one_value_to_the_other_within_the_range(parts):
    frame = shares(*parts)
    before, after = math.fsum(frame["before"]), math.fsum(frame["after"])
    steps = queries_charts.bars(frame, before)
    values = [before, *(step.end for step in steps)]
    assert values[-1] == pytest.approx(after, abs=1e-11)
    assert [step.start for step in steps] == values[:-1]
    assert min(values) >= -1e-11
    assert max(values) <= max(before, after) + 1e-11
    assert len(steps) <= queries_charts.MOST_BARS_WATERFALL + 1
    assert sum(step.documents for step in steps) == (frame["delta"].abs() > 1e-12).sum()
