"""How narrow the interval becomes: a line without a judge, and one for each."""

import pytest

from rankdash.charts import style
from rankdash.charts.quality import label_curve
from tests.charts.conftest import LABEL_CURVE

INK = style.INKS["light"]


def test_people_alone_are_drawn_once_beside_each_judge() -> None:
    other = [(20, 0.2, 0.15), (40, 0.14, 0.12), (100, 0.09, 0.09)]
    drawn = label_curve.figure({"Judge A": LABEL_CURVE, "Judge B": other}, "NDCG@10", INK)
    lines = {trace.name: (list(trace.x), list(trace.y)) for trace in drawn.data if len(trace.x) > 1}
    assert lines == {
        "people alone": ([20, 40, 100], [0.2, 0.14, 0.09]),
        "Judge A": ([20, 40, 100], [0.11, 0.08, 0.09]),
        "Judge B": ([20, 40, 100], [0.15, 0.12, 0.09]),
    }
    (now,) = drawn.layout.shapes
    assert now.x0 == now.x1 == 20


def test_all_labelled_is_one_point() -> None:
    drawn = label_curve.figure({"Judge A": [(30, 0.2, 0.2)]}, "NDCG@10", INK)
    assert [list(trace.y) for trace in drawn.data] == [[0.2], [0.2]]


@pytest.mark.parametrize("judges", [1, 2])
def test_it_says_in_words_what_it_draws(judges: int) -> None:
    curves = {f"Judge {n}": LABEL_CURVE for n in range(judges)}
    said = label_curve.alt(curves, "NDCG@10")
    assert said.count("±0.110 in place of ±0.200 at 20 queries, ±0.090 at 100.") == judges
