"""The forest: a group of queries a row, with interval, size and proof."""

import numpy as np
import pandas as pd
import pytest

from rankdash.charts import style
from rankdash.charts.quality import query_groups

INK = style.INKS["dark"]


def marks(figure) -> dict[str, dict[str, object]]:
    """Group → its mark."""
    found = {}
    for trace in figure.data:
        if trace.mode == "markers" and trace.customdata is not None:
            items = zip(trace.customdata, trace.x, trace.y, trace.marker.symbol, strict=True)
            for group, x, y, symbol in items:
                found[group] = {"x": x, "y": y, "symbol": symbol, "kind": trace.name}
    return found


def ticks(axis) -> dict[float, str]:
    return dict(zip(axis.tickvals, axis.ticktext, strict=True))


def test_every_group_has_a_mark_at_its_change(groups: pd.DataFrame):
    found = marks(query_groups.figure(groups, "NDCG@10", INK))
    assert [found[value]["x"] for value in groups["value"]] == pytest.approx(
        groups["delta"].tolist(), nan_ok=True
    )
    rows = [found[value]["y"] for value in groups["value"]]
    assert rows == sorted(set(rows))


def test_whiskers_run_from_low_to_high_in_the_row_of_their_mark(groups: pd.DataFrame):
    figure = query_groups.figure(groups, "NDCG@10", INK)
    drawn = {}
    for trace in figure.data:
        if trace.mode == "lines+markers":
            ends = np.asarray(trace.x, dtype=float).reshape(-1, 3)
            rows = np.asarray(trace.y, dtype=float).reshape(-1, 3)
            drawn |= {row[0]: tuple(end[:2]) for row, end in zip(rows, ends, strict=True)}
    known = groups.dropna(subset="low")
    places = marks(figure)
    assert drawn == {places[row.value]["y"]: (row.low, row.high) for row in known.itertuples()}


def test_proof_is_told_by_shape_and_star(groups: pd.DataFrame):
    figure = query_groups.figure(groups, "NDCG@10", INK)
    found = marks(figure)
    assert found["other script"] | {"x": 0, "y": 0} == {
        "x": 0,
        "y": 0,
        "symbol": "circle",
        "kind": "proven gain",
    }
    assert found[groups["value"][1]]["symbol"] == "square"
    assert (found["mixed"]["symbol"], found["mixed"]["kind"]) == ("diamond", "not proven")
    side = ticks(figure.layout.yaxis2)
    assert side[found["other script"]["y"]] == "<b>+0.120\u00a0*</b> (1,204)"
    assert side[found["mixed"]["y"]] == "+0.030 (88)"
    assert side[found["empty"]["y"]] == "– (0)"
    assert "corrected p ≤ 0.05" in [trace.name for trace in figure.data]


def test_proof_follows_the_level(groups: pd.DataFrame):
    figure = query_groups.figure(groups, "NDCG@10", INK, level=0.999)
    kinds = {mark["kind"] for value, mark in marks(figure).items() if value != "other script"}
    assert kinds == {"not proven"}
    assert {"99.9% interval", "corrected p ≤ 0.001"} <= {trace.name for trace in figure.data}


def test_small_groups_are_hollow_and_the_legend_says_so(groups: pd.DataFrame):
    figure = query_groups.figure(groups, "NDCG@10", INK)
    hollow = {value for value, mark in marks(figure).items() if "open" in mark["symbol"]}
    assert hollow == set(groups[groups["small"]]["value"])
    assert "few queries" in [trace.name for trace in figure.data]
    large = query_groups.figure(groups[~groups["small"]], "NDCG@10", INK)
    assert "few queries" not in [trace.name for trace in large.data]


def test_several_segments_stand_under_their_names(groups: pd.DataFrame):
    figure = query_groups.figure(groups, "NDCG@10", INK, names={"language": "Language"})
    left, places = ticks(figure.layout.yaxis), marks(figure)
    assert left[places["other script"]["y"] - 1] == "<b>Language</b>"
    assert sum(text.startswith("<b>") for text in left.values()) == 2
    alone = query_groups.figure(groups[:3], "NDCG@10", INK)
    assert list(alone.layout.yaxis.ticktext) == ["other script", "急性淋巴细…治疗与预后", "mixed"]


def test_rows_of_a_segment_stand_together_in_the_order_given(groups: pd.DataFrame):
    mixed = groups.iloc[[3, 0, 4, 1]]
    places = marks(query_groups.figure(mixed, "NDCG@10", INK))
    ordered = sorted(places, key=lambda value: places[value]["y"])
    assert ordered == groups["value"].iloc[[3, 4, 0, 1]].tolist()


def test_zero_is_marked_and_always_within_the_axis(groups: pd.DataFrame):
    figure = query_groups.figure(groups[:1], "NDCG@10", INK)
    assert [shape.x0 for shape in figure.layout.shapes] == [0]
    low, high = figure.layout.xaxis.range
    assert low < 0 < 0.15 < high


def test_height_grows_with_the_groups(groups: pd.DataFrame):
    def height(n: int) -> float:
        many = pd.concat([groups[:1].assign(value=str(place)) for place in range(n)])
        return query_groups.figure(many, "NDCG@10", INK).layout.height

    assert height(20) - height(15) == 5 * (height(21) - height(20)) >= 5 * 20


def test_hover_gives_change_size_interval_and_p(groups: pd.DataFrame):
    figure = query_groups.figure(groups, "NDCG@10", INK, names={"mixed": "both <scripts>"})
    texts = [text for trace in figure.data for text in trace.hovertext or ()]
    assert (
        "both &lt;scripts&gt;<br>+0.030 (88 queries)"
        "<br>95% interval −0.020…+0.090<br>corrected p 0.3"
    ) in texts
    assert "empty<br>– (0 queries)" in texts


def test_the_words_give_every_group(groups: pd.DataFrame):
    assert query_groups.alt(groups.iloc[[0, 2, 5]], "NDCG@10", names={"empty": "none"}) == (
        "Mean change in NDCG@10 by group of queries. "
        "other script: +0.120 (95% interval +0.080…+0.150, proven), 1,204 queries. "
        "mixed: +0.030 (95% interval −0.020…+0.090), 88 queries. none: –, 0 queries."
    )


def test_without_any_change_the_words_say_so(groups: pd.DataFrame):
    assert query_groups.alt(groups[5:], "NDCG@10") == "No group of queries can be compared."
    assert query_groups.alt(groups[:0], "NDCG@10") == "No group of queries can be compared."
    assert marks(query_groups.figure(groups[:0], "NDCG@10", INK)) == {}
