"""The ladder: same document, one line; relevance and direction without colour."""

import numpy as np
import pandas as pd
import pytest

from rankdash.charts import ladder, style

INK = style.INKS["light"]


def drawn(moves: pd.DataFrame, k: int = 5):
    return ladder.figure(moves, k, "BM25", "MiniLM", INK)


def nodes(figure, doc: str) -> list:
    """(side, height, trace) for the two nodes of a document."""
    return sorted(
        (float(x), float(y), trace)
        for trace in figure.data
        if trace.mode == "markers"
        for x, y, found in zip(trace.x, trace.y, trace.customdata, strict=True)
        if found == doc
    )


def line_of(figure, doc: str):
    (_, before, _), (_, after, _) = nodes(figure, doc)
    for trace in figure.data:
        if trace.mode != "lines":
            continue
        ends = np.asarray(trace.y, dtype=float).reshape(-1, 3)[:, :2] if len(trace.y) > 2 else ()
        if any(tuple(pair) == (before, after) for pair in ends):
            return trace
    raise AssertionError(doc)


def test_a_document_has_a_node_on_each_side_joined_by_a_line(moves: pd.DataFrame):
    figure = drawn(moves)
    (left, _, _), (right, _, _) = nodes(figure, "up")
    assert (left, right) == (0.0, 1.0)
    assert line_of(figure, "up").name == "relevant, risen"


def test_the_better_rank_stands_higher(moves: pd.DataFrame):
    figure = drawn(moves)
    heights = [nodes(figure, doc)[1][1] for doc in ("up", "hold", "unjudged", "new", "bad")]
    assert heights == sorted(heights)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert figure.layout.yaxis.range == figure.layout.yaxis2.range


def test_equal_ranks_stand_at_equal_heights(moves: pd.DataFrame):
    (_, before, _), (_, after, _) = nodes(drawn(moves), "hold")
    assert before == after


def test_direction_shows_in_dash_as_well_as_in_colour(moves: pd.DataFrame):
    figure = drawn(moves)
    risen, fallen = line_of(figure, "up"), line_of(figure, "down")
    assert risen.line.dash != fallen.line.dash
    assert risen.line.color != fallen.line.color
    assert line_of(figure, "bad").line.dash == fallen.line.dash


def test_relevance_shows_in_weight_and_in_the_node(moves: pd.DataFrame):
    figure = drawn(moves)
    assert line_of(figure, "up").line.width > line_of(figure, "bad").line.width
    looks = {doc: nodes(figure, doc)[0][2].marker for doc in ("up", "bad", "unjudged")}
    assert len({mark.symbol for mark in looks.values()}) == 3
    assert looks["unjudged"].symbol.endswith("-open")
    assert looks["up"].size > looks["bad"].size
    assert any(text == "<b>1  up</b>" for text in figure.layout.yaxis2.ticktext)


def test_the_cut_runs_between_the_last_rank_inside_and_the_first_outside(moves: pd.DataFrame):
    figure = drawn(moves)
    cut = next(trace for trace in figure.data if trace.name == "cutoff 5").y[0]
    assert nodes(figure, "bad")[1][1] < cut < nodes(figure, "up")[0][1]
    assert nodes(figure, "down")[1][1] > cut


def test_entrants_carry_the_rank_they_came_from(moves: pd.DataFrame):
    figure = drawn(moves)
    assert "<b>up  9</b>" in figure.layout.yaxis.ticktext
    assert "<b>12  down</b>" in figure.layout.yaxis2.ticktext


def test_a_document_that_a_side_lacks_stands_below_all_others_there(moves: pd.DataFrame):
    figure = drawn(moves)
    assert "new  –" in figure.layout.yaxis.ticktext
    lowest = max(
        float(y)
        for trace in figure.data
        if trace.mode == "markers"
        for x, y in zip(trace.x, trace.y, strict=True)
        if x == 0
    )
    assert nodes(figure, "new")[0][1] == lowest
    assert line_of(figure, "gone").name == "relevant, fallen"


def test_what_is_neither_relevant_nor_near_the_top_is_left_out(moves: pd.DataFrame):
    assert "far" not in set(ladder.shown(moves, 5)["doc_id"])
    assert not nodes(drawn(moves), "far")


def test_a_long_list_keeps_the_relevant_documents(moves: pd.DataFrame):
    n = 300
    long = pd.DataFrame(
        {
            "doc_id": [f"d{place}" for place in range(n)],
            "rank_before": np.arange(1.0, n + 1),
            "rank_after": np.roll(np.arange(1.0, n + 1), 7),
            "label": [1.0 if place % 30 == 0 else np.nan for place in range(n)],
            "relevant": [place % 30 == 0 for place in range(n)],
            "enters": False,
            "leaves": False,
        }
    )
    kept = ladder.shown(long, 100)
    assert len(kept) == ladder.MOST_DOCUMENTS
    assert set(long.loc[long["relevant"], "doc_id"]) <= set(kept["doc_id"])


def test_an_empty_frame_draws_nothing(moves: pd.DataFrame):
    figure = drawn(moves.iloc[:0])
    assert not [1 for trace in figure.data for y in trace.y if y is not None and y == y]


def test_the_words_count_what_the_lines_show(moves: pd.DataFrame):
    assert ladder.alt(moves, 5, "BM25", "MiniLM") == (
        "Ranks of 8 documents in BM25 and MiniLM. Of the relevant ones 1 rose, 2 fell and 1 kept "
        "their rank; 2 entered the first 5 and 2 left it."
    )


def test_the_hover_text_gives_both_ranks_and_the_label(moves: pd.DataFrame):
    figure = drawn(moves)
    texts = [text for t in figure.data if t.mode == "markers" for text in t.hovertext]
    assert "new<br>rank – → 4, label –" in texts
    assert "up<br>rank 9 → 1, label 3" in texts


@pytest.mark.parametrize("k", [1, 1000])
def test_any_cutoff_can_be_drawn(moves: pd.DataFrame, k: int):
    figure = drawn(moves, k)
    assert nodes(figure, "up")
