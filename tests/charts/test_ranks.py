"""The documents of a ladder and their positions; groups in charts of many queries."""

import re

import numpy as np
import pytest

from rankdash.features.policy import charts_skipping
from rankdash.features.queries import charts_ladder
from rankdash.features.queries.ladder import Ladder
from rankdash.features.rank_shifts import charts as rank_shifts_charts
from rankdash.kit.drawing import style
from tests.approved import table
from tests.charts.examples import counts, margined, moves, wide
from tests.charts.test_style import contrast

INK = style.INKS["light"]


def test_text_is_readable_on_every_shade_of_a_cell(ink: style.Ink):
    for trace in rank_shifts_charts.transitions_chart(counts(), "A", "B").draw(ink).data:
        if trace.type == "heatmap":
            assert all(contrast(colour, ink.text) >= 4.5 for _, colour in trace.colorscale)


def test_many_queries_are_gathered_and_none_is_lost_or_changes_direction():
    figure = charts_skipping.margins_chart(**margined(9000), metric="M").draw(INK)
    for name, wanted in (("helped", 0.2), ("same", 0.0), ("hurt", -0.1)):
        trace = next(each for each in figure.data if each.name == name)
        assert len(trace.x) < 100
        assert trace.y == pytest.approx([wanted] * len(trace.y))
        told = [re.match(r"(\d+) queries", text) for text in trace.hovertext]
        assert sum(int(each[1]) if each else 1 for each in told) == 3000
        single = [query for query in trace.customdata if query is not None]
        assert len(single) == told.count(None)


def nodes(found: Ladder) -> list[tuple[str, int, float]]:
    """Return (document, column, height) of every node that is drawn."""
    return [
        (doc, int(x), float(y))
        for trace in charts_ladder.ladder_chart(found).draw(INK).data
        if trace.customdata is not None
        for x, y, doc in zip(trace.x, trace.y, trace.customdata, strict=True)
    ]


@pytest.mark.parametrize("found", [moves(), wide(60, 10), wide(100, 50), wide(400, 400)])
def test_no_two_nodes_of_a_column_share_a_place_and_it_can_be_read(found):
    places = [(column, height) for _, column, height in nodes(found)]
    assert len(places) == len(set(places))
    assert charts_ladder.ladder_chart(found).draw(INK).layout.height <= (
        900 if len(found) < 100 else 1500
    )


@pytest.mark.parametrize(
    ("every", "most"),
    [(False, charts_ladder.MOST_NOTABLE), (True, charts_ladder.MOST_DOCUMENTS)],
)
def test_a_long_list_keeps_the_relevant_documents(every, most):
    found = wide(150, 50)
    kept = charts_ladder.shown(found, every=every)
    assert len(kept) == most
    assert set(found.doc_ids[found.relevant]) <= set(kept.doc_ids)


def of_two(before: list[float], after: list[float], relevant: list[bool], k: int = 10) -> Ladder:
    ids = np.array([f"d{place}" for place in range(len(before))], dtype=object)
    ranks, label = np.column_stack([before, after]).astype(float), np.array(relevant, dtype=float)
    return Ladder(("a", "b"), ids, ranks, label, label > 0, np.full(len(ids), np.nan), k)


def test_of_too_many_documents_the_relevant_then_the_crossing_then_the_farthest_are_shown():
    most = charts_ladder.MOST_NOTABLE
    # All moved 5 ranks within the first 1,000; the last three are farther, crossing and relevant.
    before = [float(place) for place in range(1, most + 4)]
    after = [rank + 5 for rank in before]
    after[-3], after[-2], after[-1] = before[-3] + 9, 2000.0, before[-1] + 3
    every = of_two(before, after, [False] * (most + 2) + [True], k=1000)
    picked = set(charts_ladder.shown(every).doc_ids)
    assert len(picked) == most
    assert {f"d{most}", f"d{most + 1}", f"d{most + 2}"} <= picked
    # Of two documents that do not cross the cutoff and are not relevant, the farther move is shown.
    farther = [rank + 3 + place for place, rank in enumerate(before)]
    near = set(charts_ladder.shown(of_two(before, farther, [False] * len(before), k=1000)).doc_ids)
    assert "d0" not in near and f"d{most + 2}" in near


def test_where_documents_stand_is_approved(approved):
    """Equal ranks have equal heights if there are few ranks; a gap separates inside and below k."""
    ranks = {n: [float(place) for place in range(1, n + 1)] for n in (24, 25, 91)}
    cases = {
        "all inside": ([1, 2], [2, 1], 10), "all below": ([11, 12], [12, 11], 10),
        "one inside": ([1, 12], [12, 1], 10), "few ranks": ([1, 5], [5, 9], 10),
        "24 rows are not close": (ranks[24], ranks[24], 100),
        "25 are": (ranks[25], ranks[25], 100),
        "many ranks": (ranks[91], ranks[91][::-1], 100),
    }  # fmt: skip
    said = {}
    for name, (before, after, k) in cases.items():
        placed = charts_ladder.placed(of_two(before, after, [True] * len(before), k=k))
        heights = placed.heights[:2].tolist()
        said[name] = f"heights {heights} cut {placed.cut} rows {placed.rows} close {placed.close}"
    approved("charts/ladder_places", table(said))
