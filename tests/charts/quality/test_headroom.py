"""The stacked bar of what was won, what is left and what the retriever lost."""

import numpy as np
import pandas as pd
import pytest

from rankdash.charts import style
from rankdash.charts.quality import headroom

INK = style.INKS["light"]
TITLES = {
    "baseline": "baseline",
    "won": "potential gain realised",
    "lost": "lost by reranking",
    "to_win": "potential gain left",
    "retriever": "not in its list",
}


def pieces(figure, row: int = 0) -> dict[str, list[tuple[float, float]]]:
    """What is drawn in a row: kind → (start, end) of its rectangles, left to right."""
    kinds = {title: kind for kind, title in TITLES.items()}
    found: dict[str, list[tuple[float, float]]] = {}
    for trace in figure.data:
        if trace.type != "bar":
            continue
        for y, start, length in zip(trace.y, trace.base, trace.x, strict=True):
            if y == row:
                piece = (round(start, 9), round(start + length, 9))
                found.setdefault(kinds[trace.name], []).append(piece)
    return found


def row(baseline: float, won: float, to_win: float, retriever: float) -> pd.DataFrame:
    columns = ["system", "baseline", "won", "to_win", "retriever", "own"]
    return pd.DataFrame([("MiniLM", baseline, won, to_win, retriever, False)], columns=columns)


def numbers(figure) -> list[tuple[float, float, str]]:
    written = [trace for trace in figure.data if trace.type == "scatter"][-1]
    return list(zip(written.y, written.x, written.text, strict=True))


def test_a_gain_stacks_the_four_parts_without_gap_or_overlap():
    assert pieces(headroom.figure(row(0.52, 0.09, 0.26, 0.13), "NDCG@10", INK)) == {
        "baseline": [(0.0, 0.52)],
        "won": [(0.52, 0.61)],
        "to_win": [(0.61, 0.87)],
        "retriever": [(0.87, 1.0)],
    }


def test_a_loss_is_marked_over_what_is_to_be_won_back():
    figure = headroom.figure(row(0.52, -0.06, 0.41, 0.13), "NDCG@10", INK)
    assert pieces(figure) == {
        "baseline": [(0.0, 0.46), (0.46, 0.52)],
        "lost": [(0.46, 0.52)],
        "to_win": [(0.46, 0.52), (0.52, 0.87)],
        "retriever": [(0.87, 1.0)],
    }
    traces = {trace.name: trace for trace in figure.data}
    lost, below = traces[TITLES["lost"]], traces[TITLES["to_win"]]
    # The y axis runs downwards: baseline, loss and what is to be won lie one below the other.
    above = traces[TITLES["baseline"]]
    assert above.offset[1] + above.width[1] == pytest.approx(lost.offset[0])
    assert lost.offset[0] + lost.width[0] == pytest.approx(below.offset[0])
    assert TITLES["won"] not in traces


@pytest.mark.parametrize("won", [0.09, 0.0, -0.043, -0.2, -0.588])
@pytest.mark.parametrize("retriever", [0.1, 0.0])
def test_each_number_is_the_length_of_what_is_drawn_in_its_colour(won, retriever):
    table = row(0.588, won, 1 - 0.588 - won - retriever, retriever)
    figure = headroom.figure(table, "NDCG@10", INK)
    drawn = {
        kind: sum(end - start for start, end in found) for kind, found in pieces(figure).items()
    }
    parts = dict(zip(("baseline", "won", "to_win", "retriever"), table.iloc[0, 1:5], strict=True))
    wanted = {
        ("lost" if kind == "won" and value < 0 else kind): abs(value)
        for kind, value in parts.items()
        if round(value, 3)
    }
    assert drawn == pytest.approx(wanted)
    written = [abs(float(text.replace("−", "-"))) for *_, text in numbers(figure)]
    assert written == pytest.approx(list(wanted.values()), abs=5e-4)


@pytest.mark.parametrize(("baseline", "won", "to_win"), [(0.6, -0.2, 0.05), (0.6, -0.4, 0.0)])
def test_a_list_that_could_not_reach_the_baseline_leaves_the_rest_to_the_retriever(
    baseline, won, to_win
):
    """As of an uploaded run that lacks relevant documents of the baseline."""
    retriever = 1 - baseline - won - to_win
    found = pieces(headroom.figure(row(baseline, won, to_win, retriever), "NDCG@10", INK))
    length = sum(end - start for start, end in found["retriever"])
    assert length == pytest.approx(retriever)
    assert found["baseline"][-1][1] == pytest.approx(baseline)


def test_a_challenger_above_the_ceiling_hides_none_of_the_retrievers_loss():
    figure = headroom.figure(row(0.5, 0.3, -0.05, 0.25), "NDCG@10", INK)
    assert pieces(figure) == {
        "baseline": [(0.0, 0.5)],
        "won": [(0.5, 0.8)],
        "retriever": [(0.75, 0.8), (0.8, 1.0)],
    }
    assert "−0.050" in [text for *_, text in numbers(figure)]


def test_the_axis_ends_at_the_best_possible_value():
    figure = headroom.figure(row(0.2, 0.1, 0.05, 0.05), "P@10", INK)
    assert list(figure.layout.xaxis.range) == pytest.approx([0, 0.4])


def test_parts_differ_in_more_than_colour(splits: pd.DataFrame):
    traces = [trace for trace in headroom.figure(splits, "M", INK).data if trace.type == "bar"]
    shapes = {trace.name: trace.marker.pattern.shape for trace in traces}
    assert len(traces) == len(TITLES)
    assert len(set(shapes.values())) == len(traces) - 1
    # The two solid ones stand side by side, and differ in lightness.
    assert shapes[TITLES["baseline"]] is shapes[TITLES["won"]] is None


def test_the_legend_names_the_parts_in_their_order(splits: pd.DataFrame):
    traces = [trace for trace in headroom.figure(splits, "M", INK).data if trace.type == "bar"]
    ordered = sorted(traces, key=lambda trace: trace.legendrank)
    assert [trace.name for trace in ordered] == list(TITLES.values())


def test_every_part_has_its_number_in_its_order_with_room_between(splits: pd.DataFrame):
    written = numbers(headroom.figure(splits, "M", INK))
    for place in range(len(splits)):
        own = [(x, text) for y, x, text in written if place < y < place + 0.5]
        xs = [x for x, _ in own]
        assert xs == sorted(xs)
        assert all(gap > 0.13 for gap in np.diff(xs))
        assert all(0.06 < x < 0.94 for x in xs)
    texts = {place: [t for y, _, t in written if place < y < place + 0.5] for place in range(7)}
    assert texts[0] == ["0.520", "+0.090", "0.260", "0.130"]
    assert texts[1] == ["0.520", "−0.060", "0.410", "0.130"]
    assert texts[3] == ["0.520", "+0.300", "0.180"], "a part that does not exist has no number"
    assert texts[6] == ["–"]


def test_the_numbers_of_wide_parts_stand_in_their_middle():
    found = numbers(headroom.figure(row(0.4, 0.2, 0.2, 0.2), "M", INK))
    assert [x for _, x, _ in found] == pytest.approx([0.2, 0.5, 0.7, 0.9])


def test_names_are_shown_instead_of_ids(splits: pd.DataFrame):
    figure = headroom.figure(splits[:1], "M", INK, names={"MiniLM": "Mini <LM>"})
    assert figure.data[-2].text == ("<b>Mini &lt;LM&gt;</b>",)
    assert figure.data[0].hovertext == ("Mini &lt;LM&gt;<br>baseline: 0.520",)
    assert figure.data[0].customdata == ("MiniLM",)


def test_the_words_give_every_part():
    table = row(0.52, -0.06, 0.41, 0.13)
    assert headroom.alt(table, "NDCG@10", names={"MiniLM": "Mini"}) == (
        "How the best possible mean NDCG@10 splits. Mini: baseline 0.520, lost by reranking "
        "−0.060, potential gain left 0.410, not in its list 0.130."
    )


def test_without_systems_the_chart_is_empty_but_whole(splits: pd.DataFrame):
    figure = headroom.figure(splits[:0], "M", INK)
    assert not [trace for trace in figure.data if trace.type == "bar"]
    assert headroom.alt(splits[:0], "M") == "How the best possible mean M splits."


def test_a_bar_of_an_own_list_says_so_beside_its_name_and_no_other_does():
    table = pd.concat([row(0.5, 0.1, 0.2, 0.2), row(0.5, 0.1, 0.3, 0.1).assign(own=True)])
    names, _numbers = headroom.figure(table, "NDCG@10", INK).data[-2:]
    assert list(names.text) == ["<b>MiniLM</b>", "<b>MiniLM</b> · own list"]
    said = headroom.alt(table, "NDCG@10")
    assert said.count("MiniLM: baseline") == 1
    assert said.count("MiniLM (own list): baseline") == 1
