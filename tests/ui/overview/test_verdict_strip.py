"""The means of a system as cards: a change has a colour where it is proven, up or down."""

from pathlib import Path

import pytest
from streamlit.proto.Metric_pb2 import Metric

from rankdash.study.systems import FIRST_STAGE
from tests.stored import keep_lists

OVERVIEW = Path(__file__).parents[3] / "pages" / "overview.py"


@pytest.mark.parametrize(
    ("base", "system", "colour", "points"),
    [
        (FIRST_STAGE, "better", Metric.BLUE, Metric.UP),
        ("better", FIRST_STAGE, Metric.ORANGE, Metric.DOWN),
        # Three queries changed of sixteen.
        (FIRST_STAGE, "few", Metric.GRAY, Metric.UP),
        ("few", FIRST_STAGE, Metric.GRAY, Metric.DOWN),
    ],
)
def test_a_proven_change_has_a_colour_and_another_is_grey(
    app, stored, workspace, base, system, colour, points
):
    lists = [
        (f"q{q}", ["d3", "d0", "d1", "d2"] if q in (3, 7, 11) else [f"d{d}" for d in range(4)],
         [4.0, 3.0, 2.0, 1.0])
        for q in range(16)
    ]  # fmt: skip
    keep_lists(workspace, stored, lists, "few")
    ids = {row.name: row.id for row in workspace.runs(stored)} | {FIRST_STAGE: FIRST_STAGE}
    app.query_params["data"] = stored
    app.query_params["base"], app.query_params["system"] = ids[base], ids[system]
    app.run()
    app.switch_page(str(OVERVIEW)).run()
    assert not app.exception
    card = next(each for each in app.metric if each.label == "NDCG@10")
    assert (card.proto.color, card.proto.direction) == (colour, points)
