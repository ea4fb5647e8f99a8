"""Transitions, moves, flows, agreement, margins and skipping: each says what its numbers say."""

import re

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.ranks.transitions import BINS, STEPS, UNRANKED, Flow
from rankdash.charts import style
from rankdash.charts.ranks import agreement, flows, margins, move_sizes, skipping, transitions

INK = style.INKS["light"]


def counts() -> pd.DataFrame:
    """8 of rank 1 stay, 2 fall to 2–3; one rises from > 20 to 1; one is new at 4–5."""
    names = [*BINS, UNRANKED]
    table = pd.DataFrame(0, index=names, columns=list(BINS))
    table.loc["1", "1"], table.loc["1", "2–3"] = 8, 2
    table.loc["> 20", "1"] = table.loc[UNRANKED, "4–5"] = 1
    return table


def cell_texts(figure) -> dict[tuple[int, int], str]:
    trace = next(each for each in figure.data if each.type == "scatter" and each.text)
    return {(y, x): text for y, x, text in zip(trace.y, trace.x, trace.text, strict=True)}


def test_cells_tell_up_down_and_same_by_arrow_and_place_and_not_by_colour_alone():
    texts = cell_texts(transitions.figure(counts(), "A", "B", INK))
    assert texts[0, 0] == "= <b>8</b><br>80%"
    assert texts[0, 1] == "▼ <b>2</b><br>20%"
    assert texts[5, 0] == "▲ <b>1</b><br>100%"
    assert texts[6, 2] == "▲ <b>1</b><br>100%", "what was not ranked stood below everything"
    assert texts[1, 1] == "0"
    assert len(texts) == 42


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = np.array(list(bytes.fromhex(colour.removeprefix("#")))) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_is_readable_on_every_shade_of_a_cell(name):
    ink = style.INKS[name]
    for trace in transitions.figure(counts(), "A", "B", ink).data:
        if trace.type == "heatmap":
            for _, colour in trace.colorscale:
                assert contrast(colour, ink.text) >= 4.5


def test_large_counts_fit_their_cell_and_are_whole_on_hover():
    table = counts()
    table.loc["> 20", "> 20"], table.loc["> 20", "1"] = 652_732, 4832
    figure = transitions.figure(table, "A", "B", INK)
    texts = cell_texts(figure)
    assert texts[5, 5] == "= <b>653k</b><br>99%"
    assert texts[5, 0] == "▲ <b>4.8k</b><br>1%"
    table.loc["> 20", "1"] = 7
    few = cell_texts(transitions.figure(table, "A", "B", INK))[5, 0]
    assert few == "▲ <b>7</b><br>&lt;1%"
    cells = next(each for each in figure.data if each.type == "scatter" and each.text)
    hover = cells.hovertext[list(map(tuple, cells.customdata)).index(("> 20", "> 20"))]
    assert hover == "from &gt; 20 to &gt; 20: 652,732 (99% of those at &gt; 20)"


def test_the_words_count_the_moves():
    assert transitions.alt(counts(), "A", "B") == (
        "Ranks in A (rows) and in B (columns) of 12 documents: 2 moved to a higher band, 8 stayed "
        "in theirs, 2 moved to a lower one."
    )


def sized() -> pd.DataFrame:
    frame = pd.DataFrame({"step": STEPS, "relevant": 0, "other": 0})
    frame.loc[6, "relevant"], frame.loc[0, "other"], frame.loc[5, "other"] = 4, 1, 3
    frame["relevant_share"], frame["other_share"] = frame["relevant"] / 4, frame["other"] / 4
    return frame


def test_bars_of_relevant_and_other_documents_differ_in_pattern_and_add_up():
    figure = move_sizes.figure(sized(), "A", "B", INK)
    other, relevant = figure.data
    assert relevant.name == "relevant (4)"
    assert (relevant.marker.pattern.shape, other.marker.pattern.shape) == (None, "/")
    assert sum(relevant.x) == sum(other.x) == 1
    ticks = figure.layout.yaxis.ticktext
    assert ticks[0] == "−21 …"
    assert ticks[6] == "+1 … +2"
    assert ticks[-1] == "+21 …"
    assert move_sizes.alt(sized(), "A", "B") == (
        "How far documents moved from A to B. Relevant: 4 up, 0 not at all, 0 down. "
        "All others: 0 up, 3 not at all, 1 down."
    )


def way() -> Flow:
    bands = pd.DataFrame(
        {
            "band": ["11–20", "21–50", "> 50", UNRANKED],
            "entered": [5, 2, 0, 1],
            "left": [3, 0, 0, 0],
        }
    )
    return Flow(k=10, stayed=9, entered=8, left=3, outside=4, unranked=2, bands=bands)


def test_what_came_in_goes_right_and_what_dropped_out_goes_left():
    figure = flows.figure(way(), "A", "B", INK)
    came, went = (trace for trace in figure.data if trace.type == "bar")
    assert came.x == (5, 2, 0, 1)
    assert went.x == (-3, 0, 0, 0)
    assert (came.marker.pattern.shape, went.marker.pattern.shape) == (None, "\\")
    assert figure.layout.yaxis.ticktext[2:] == ("rank &gt; 50", "not ranked")
    assert set(figure.layout.xaxis.ticktext) >= {"0"}
    assert not any("-" in text for text in figure.layout.xaxis.ticktext)
    assert flows.alt(way(), "A", "B").startswith(
        "Relevant documents: 26. In the top 10 of A: 12; in that of B: 17. 9 stayed, "
        "8 came in, 3 dropped out. rank 11–20: 5 from there, 3 to there."
    )


def test_agreement_has_a_row_for_each_pair_and_tells_its_two_numbers_apart():
    table = pd.DataFrame(
        [
            ("a", "b", 9, 0.6, 0.5, 0.7, 0.8, 0.75, 0.82),
            ("a", "c", 1, 0.1, *[np.nan] * 2, 0.3, *[np.nan] * 2),
        ],
        columns=["one", "other", "n", "tau", "tau_low", "tau_high", "rbo", "rbo_low", "rbo_high"],
    )
    figure = agreement.figure(table, INK, p=0.9, names={"a": "Alpha"})
    tau, rbo = (trace for trace in figure.data if trace.mode == "markers" and trace.x[0])
    assert tau.x == (0.6, 0.1)
    assert rbo.x == (0.8, 0.3)
    assert tau.marker.symbol != rbo.marker.symbol
    assert "p = 0.9" in rbo.name
    whiskers = [trace for trace in figure.data if trace.mode == "lines+markers"]
    assert len(whiskers) == 2
    assert all(len(trace.x) == 3 for trace in whiskers), "no whisker without an interval"
    said = agreement.alt(table, names={"a": "Alpha"})
    assert "Alpha and b: τ 0.60, RBO 0.80, 9 queries." in said


def pairs(n: int) -> tuple[pd.DataFrame, "pd.Series[float]"]:
    ids = [f"q{place}" for place in range(n)]
    delta = np.resize([0.2, 0.0, -0.1], n)
    return pd.DataFrame({"query_id": ids, "delta": delta}), pd.Series(
        np.linspace(0, 1, n), index=ids
    )


MEANS = pd.DataFrame({"margin": [0.2, 0.8], "n": [3, 3], "delta": [0.1, 0.0]})


def test_a_mark_leads_to_its_query_and_directions_differ_in_shape():
    figure = margins.figure(*pairs(6), MEANS, "NDCG@10", INK, threshold=0.4)
    shapes = {trace.name: trace for trace in figure.data}
    assert shapes["helped"].customdata == ("q0", "q3")
    assert len({shapes[name].marker.symbol for name in ("helped", "same", "hurt")}) == 3
    assert shapes["skip from 0.400 on"].x == (0.4, 0.4)
    assert margins.alt(*pairs(6), MEANS, "M").endswith("largest margin: +0.100, 0.000.")


def test_many_queries_are_gathered_and_none_is_lost_or_changes_direction():
    given, margin = pairs(9000)
    figure = margins.figure(given, margin, MEANS, "M", INK)
    for name, wanted in (("helped", 0.2), ("same", 0.0), ("hurt", -0.1)):
        trace = next(each for each in figure.data if each.name == name)
        assert len(trace.x) < 100
        assert trace.y == pytest.approx([wanted] * len(trace.y))
        told = [re.match(r"(\d+) queries", text) for text in trace.hovertext]
        assert sum(int(each[1]) if each else 1 for each in told) == 3000
        single = [query for query in trace.customdata if query is not None]
        assert len(single) == told.count(None)


def test_without_margins_the_chart_is_empty_but_whole():
    given, margin = pairs(4)
    figure = margins.figure(given, margin * np.nan, MEANS[:0], "M", INK)
    assert not any(trace.x for trace in figure.data)
    assert margins.alt(given, margin * np.nan, MEANS[:0], "M") == (
        "No query has both a change and a margin."
    )


CURVE = pd.DataFrame(
    {
        "threshold": [np.inf, 0.5, 0.1],
        "share": [0.0, 0.4, 1.0],
        "change": [0.0, -0.001, -0.1],
        "low": [0.0, -0.004, -0.2],
        "high": [0.0, 0.002, -0.05],
        "random": [0.0, -0.04, -0.1],
    }
)


def test_the_cost_of_skipping_stands_beside_chance_and_the_tolerance():
    figure = skipping.figure(CURVE, "NDCG@10", 0.005, INK, chosen=0.5)
    traces = {trace.name: trace for trace in figure.data if trace.name}
    assert traces["queries with the largest score margin first"].y == (0.0, -0.001, -0.1)
    assert traces["queries picked at random"].y == (0.0, -0.04, -0.1)
    assert traces["acceptable loss: 0.005"].y == (-0.005, -0.005)
    mark = traces["largest share within it: 40%"]
    assert (mark.x, mark.y) == ((0.4,), (-0.001,))
    assert len({traces[name].line.dash for name in list(traces)[:3]}) == 3
    band = figure.data[0]
    assert list(band.y) == [0.0, 0.002, -0.05, -0.2, -0.004, 0.0]
    said = skipping.alt(CURVE, "NDCG@10", 0.005)
    assert "40%: −0.001 (at random −0.040)." in said


def test_a_curve_without_intervals_has_no_band():
    bare = CURVE.assign(low=np.nan, high=np.nan)
    figure = skipping.figure(bare, "M", 0.005, INK)
    assert not any(trace.fill for trace in figure.data)


def test_blending_ends_at_both_colours():
    assert style.blended("#0072B2", "#FFFFFF", 1) == "#0072B2"
    assert style.blended("#0072B2", "#FFFFFF", 0) == "#FFFFFF"
    assert style.blended("#000000", "#FFFFFF", 0.5) in ("#808080", "#7F7F7F")
