"""The ladder: same document, one line; relevance, direction and focus without colour."""

import itertools
from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import pytest

from rankdash.analysis.ranks.ladder import Ladder
from rankdash.charts import style
from rankdash.charts.ranks import ladder, ladder_places

INK = style.INKS["light"]
TITLES = {"first": "BM25", "small": "MiniLM", "large": "Fusion"}


def drawn(moves: Ladder, **settings) -> go.Figure:
    return ladder.figure(moves, INK, titles=TITLES, **settings)


def nodes(figure: go.Figure, doc: str) -> dict[int, tuple]:
    """column → (height, trace, place in the trace) for the nodes of a document."""
    return {
        int(x): (float(y), trace, place)
        for trace in figure.data
        if trace.customdata is not None
        for place, (x, y, found) in enumerate(zip(trace.x, trace.y, trace.customdata, strict=True))
        if found == doc
    }


def line_of(figure: go.Figure, doc: str, column: int = 0) -> go.Scatter:
    """The trace of the line of a document from a column to the next."""
    at = nodes(figure, doc)
    ends = [column, column + 1], [at[column][0], at[column + 1][0]]
    for trace in figure.data:
        if trace.mode == "lines" and len(trace.x) % 3 == 0:
            x, y = (
                np.asarray(each, dtype=float).reshape(-1, 3)[:, :2] for each in (trace.x, trace.y)
            )
            if any(list(a) == ends[0] and list(b) == ends[1] for a, b in zip(x, y, strict=True)):
                return trace
    raise AssertionError(doc)


def said(figure: go.Figure, doc: str, column: int) -> str:
    _, trace, place = nodes(figure, doc)[column]
    return trace.text[place]


def test_there_is_a_column_for_each_system_and_one_for_the_ideal_order(moves: Ladder):
    figure = drawn(moves)
    heads = figure.layout.annotations
    assert [head.x for head in heads] == [0, 1, 2, 3]
    assert [head.text for head in heads] == [
        "<b>BM25</b>",
        "<b>MiniLM</b>",
        "<b>Fusion</b>",
        "<b>ideal</b>",
    ]
    assert sorted(nodes(figure, "up")) == [0, 1, 2, 3]
    assert sorted(nodes(figure, "bad")) == [0, 1, 2], "what is not relevant has no ideal place"
    assert line_of(figure, "up", 0).name == "risen"
    assert line_of(figure, "up", 1).name == "fallen"


def test_every_node_says_its_rank(moves: Ladder):
    figure = drawn(moves)
    assert [said(figure, "up", column) for column in range(4)] == ["9", "1", "2", "1"]
    assert said(figure, "new", 0) == "–"


def test_above_the_cut_equal_ranks_stand_at_equal_heights_and_better_ones_higher(moves: Ladder):
    figure = drawn(moves)
    heights: dict[int, set[float]] = {}
    for place, doc in enumerate(moves.doc_ids):
        for column, (height, _, _) in nodes(figure, doc).items():
            rank = moves.ranks[place, column] if column < 3 else moves.ideal[place]
            if rank <= 5:
                heights.setdefault(int(rank), set()).add(height)
    assert all(len(each) == 1 for each in heights.values())
    ordered = [min(heights[rank]) for rank in sorted(heights)]
    assert ordered == sorted(ordered)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert figure.layout.yaxis.range == figure.layout.yaxis2.range


def test_no_two_nodes_of_a_column_share_a_place(moves: Ladder, wide: Callable[..., Ladder]):
    for found in (moves, wide(60, 10), wide(100, 50), wide(400, 400)):
        places = [
            (float(x), float(y))
            for trace in ladder.figure(found, INK).data
            if trace.customdata is not None
            for x, y in zip(trace.x, trace.y, strict=True)
        ]
        assert len(places) == len(set(places))


LOOKS = {
    ("relevant", "risen"): "up",
    ("relevant", "same"): "hold",
    ("relevant", "fallen"): "down",
    ("not", "risen"): "rising",
    ("not", "same"): "rising",
    ("not", "fallen"): "bad",
}


def test_direction_and_relevance_differ_in_more_than_colour(moves: Ladder):
    """Up, down and unchanged, relevant and not: told apart with every colour taken away."""
    figure = drawn(moves, every=True)
    looks = {}
    for (relevance, direction), doc in LOOKS.items():
        column = 1 if (relevance, direction) == ("not", "risen") else 0
        line = line_of(figure, doc, column).line
        marker = nodes(figure, doc)[column][1].marker
        looks[relevance, direction] = (line.dash, line.width > 2, marker.symbol)
    for one, other in itertools.combinations(looks, 2):
        assert looks[one] != looks[other], (one, other)
    for relevance in ("relevant", "not"):
        dashes = {looks[relevance, direction][0] for direction in ("risen", "same", "fallen")}
        assert len(dashes) == 3
    for direction in ("risen", "same", "fallen"):
        relevant, other = looks["relevant", direction], looks["not", direction]
        assert relevant[1] and not other[1]
        assert relevant[2] != other[2]
    unjudged = nodes(figure, "unjudged")[0][1].marker.symbol
    assert unjudged not in {look[2] for look in looks.values()}


def test_the_legend_names_every_kind_of_line_and_node_once(moves: Ladder):
    names = [t.name for t in drawn(moves, every=True).data if t.name and t.showlegend is not False]
    assert len(names) == len(set(names))
    assert {
        "risen",
        "fallen",
        "same rank",
        "relevant",
        "not relevant",
        "no label",
        "cutoff 5",
    } <= set(names)


def test_the_cut_runs_between_the_last_rank_inside_and_the_first_outside(moves: Ladder):
    figure = drawn(moves)
    cut = next(trace for trace in figure.data if trace.name == "cutoff 5").y[0]
    assert nodes(figure, "bad")[1][0] < cut < nodes(figure, "up")[0][0]
    assert nodes(figure, "down")[1][0] > cut


def test_entrants_carry_the_rank_they_came_from_and_leavers_where_they_went(moves: Ladder):
    figure = drawn(moves)
    beside = {
        text: (x, y)
        for trace in figure.data
        if trace.mode == "markers+text" and trace.customdata is None
        for x, y, text in zip(trace.x, trace.y, trace.text, strict=True)
    }
    assert set(beside) >= {"▲9", "▲8", "▲–", "▼12", "▼6"}
    assert beside["▲9"][1] in {nodes(figure, "up")[column][0] for column in (1, 2)}
    assert 0 < beside["▼12"][0] < 1
    assert beside["▼12"][1] == nodes(figure, "down")[0][0]


def test_a_document_that_a_system_lacks_stands_below_all_others_there(moves: Ladder):
    figure = drawn(moves)
    lowest = max(at[0][0] for doc in moves.doc_ids if (at := nodes(figure, doc)))
    assert nodes(figure, "new")[0][0] == lowest
    assert line_of(figure, "gone").name == "fallen"


def test_by_default_only_documents_that_are_relevant_cross_or_move_far_are_drawn(moves: Ladder):
    told = set(ladder_places.shown(moves).doc_ids)
    assert "far" not in told
    assert "rising" not in told
    assert {"up", "hold", "down", "gone", "bad", "new"} <= told
    every = set(ladder_places.shown(moves, every=True).doc_ids)
    assert told <= every
    assert "rising" in every
    assert "far" not in every
    assert not nodes(drawn(moves), "rising")
    assert nodes(drawn(moves, every=True), "rising")


def test_what_is_looked_at_is_strong_and_the_rest_faint(moves: Ladder):
    figure = drawn(moves)
    assert line_of(figure, "up", 0).opacity == 1
    assert line_of(figure, "up", 1).opacity < 0.5
    followed = drawn(moves, focus="down")
    assert line_of(followed, "down", 0).opacity == line_of(followed, "down", 1).opacity == 1
    assert line_of(followed, "up", 0).opacity < 0.5

    def strength(doc: str) -> float:
        _, trace, place = nodes(followed, doc)[0]
        return trace.marker.opacity[place]

    assert strength("down") == 1
    assert strength("up") < 0.5


@pytest.mark.parametrize(
    ("every", "most"), [(False, ladder_places.MOST_NOTABLE), (True, ladder_places.MOST_DOCUMENTS)]
)
def test_a_long_list_keeps_the_relevant_documents(wide: Callable[..., Ladder], every, most):
    found = wide(150, 50)
    kept = ladder_places.shown(found, every=every)
    assert len(kept) == most
    assert set(found.doc_ids[found.relevant]) <= set(kept.doc_ids)


@pytest.mark.parametrize(("documents", "k", "tallest"), [(60, 10, 900), (100, 50, 1500)])
def test_it_stays_of_a_height_that_can_be_read(wide: Callable[..., Ladder], documents, k, tallest):
    assert ladder.figure(wide(documents, k), INK).layout.height <= tallest


def test_an_empty_ladder_draws_nothing(moves: Ladder):
    figure = drawn(moves.picked(np.zeros(len(moves), dtype=bool)))
    assert not [1 for trace in figure.data for y in trace.y if y is not None and y == y]


def test_one_system_alone_is_drawn(moves: Ladder):
    alone = Ladder(
        ("first",), moves.doc_ids, moves.ranks[:, :1], moves.label, moves.relevant, moves.ideal, 5
    )
    assert nodes(ladder.figure(alone, INK), "up")
    assert "1 rose" not in ladder.alt(alone)


def test_the_words_count_what_the_lines_show(moves: Ladder):
    assert ladder.alt(moves, titles=TITLES) == (
        "Ranks of 9 documents in BM25, MiniLM, Fusion. From BM25 to MiniLM, of the relevant ones 1 "
        "rose, 2 fell and 1 kept their rank; 3 entered the first 5 and 3 left it."
    )


def test_the_hover_text_gives_every_rank_and_the_label(moves: Ladder):
    texts = {text for t in drawn(moves).data for text in t.hovertext or ()}
    assert "new<br>BM25: –<br>MiniLM: 4<br>Fusion: –<br>ideal: –<br>no label" in texts
    assert "up<br>BM25: 9<br>MiniLM: 1<br>Fusion: 2<br>ideal: 1<br>label 3" in texts


def of_two(before: list[float], after: list[float], relevant: list[bool], k: int = 10) -> Ladder:
    n = len(before)
    return Ladder(
        systems=("base", "run"),
        doc_ids=np.array([f"d{place}" for place in range(n)], dtype=object),
        ranks=np.column_stack([before, after]).astype(np.float64),
        label=np.array(relevant, dtype=np.float64),
        relevant=np.array(relevant),
        ideal=np.full(n, np.nan),
        k=k,
    )


def test_of_too_many_documents_the_relevant_then_the_crossing_then_the_farthest_are_shown():
    most = ladder_places.MOST_NOTABLE
    # All moved 5 ranks within the first 1,000; the last three are farther, crossing and relevant.
    before = [float(place) for place in range(1, most + 4)]
    after = [rank + 5 for rank in before]
    after[-3], after[-2], after[-1] = before[-3] + 9, 2000.0, before[-1] + 3
    every = of_two(before, after, [False] * (most + 2) + [True], k=1000)
    picked = set(ladder_places.shown(every).doc_ids)
    assert len(picked) == most
    assert {f"d{most}", f"d{most + 1}", f"d{most + 2}"} <= picked
    # Of two that neither cross nor count, the one that moved farther.
    near = of_two(before, [rank + 3 + place for place, rank in enumerate(before)],
                  [False] * (most + 3), k=1000)  # fmt: skip
    assert "d0" not in set(ladder_places.shown(near).doc_ids)
    assert f"d{most + 2}" in set(ladder_places.shown(near).doc_ids)


def test_the_cut_stands_only_between_what_is_inside_and_what_is_below():
    inside = ladder_places.placed(of_two([1, 2], [2, 1], [True, False]))
    assert np.isnan(inside.cut) and inside.rows == 2
    below = ladder_places.placed(of_two([11, 12], [12, 11], [True, False]))
    assert np.isnan(below.cut)
    both = ladder_places.placed(of_two([1, 12], [12, 1], [True, False]))
    assert both.cut == 0.5 and both.rows == 2


@pytest.mark.parametrize(("rows", "close"), [(24, False), (25, True)])
def test_many_rows_stand_close(rows, close):
    ranks = [float(place + 1) for place in range(rows)]
    assert ladder_places.placed(of_two(ranks, ranks, [True] * rows, k=100)).close is close


def test_documents_at_one_rank_stand_at_one_height_as_long_as_the_ranks_are_few():
    few = ladder_places.placed(of_two([1, 5], [5, 9], [True, True]))
    assert few.heights.tolist() == [[0.0, 1.0], [1.0, 2.0]]
    many = [float(place) for place in range(1, 92)]
    full = ladder_places.placed(of_two(many, many[::-1], [True] * 91, k=100))
    assert full.heights[0].tolist() == [0.0, 90.0]
