"""The means of a system as cards: a change has a colour where it is proven, up or down."""

import math
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from streamlit.proto.Metric_pb2 import Metric

from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.study.systems import FIRST_STAGE
from rankdash.ui.overview.verdict_strip import _facts, percent_change
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
    assert not app.exception
    card = next(each for each in app.metric if each.label == "NDCG@10")
    assert (card.proto.color, card.proto.direction) == (colour, points)


@pytest.mark.parametrize(("worthwhile", "small"), [("0.02", False), ("0.5", True)])
def test_a_proven_gain_too_small_to_matter_has_its_colour_too(
    app, stored, workspace, worthwhile, small
):
    """In three of four queries the relevant document is one place higher, a gain of a fifth."""
    lists = []
    for q in range(16):
        docs = [f"d{d}" for d in range(4)]
        at = q % 4
        docs[max(at - 1, 0)], docs[at] = docs[at], docs[max(at - 1, 0)]
        lists.append((f"q{q}", docs, [4.0, 3.0, 2.0, 1.0]))
    keep_lists(workspace, stored, lists, "slight")
    ids = {row.name: row.id for row in workspace.runs(stored)}
    app.query_params["data"], app.query_params["system"] = stored, ids["slight"]
    app.query_params["base"], app.query_params["worthwhile"] = FIRST_STAGE, worthwhile
    app.run()
    assert not app.exception
    assert any("only by" in str(each.value) for each in app.main.markdown) == small
    card = next(each for each in app.metric if each.label == "NDCG@10")
    assert (card.proto.color, card.proto.direction) == (Metric.BLUE, Metric.UP)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (0.125, "+12 percentage points"),
        (-0.126, "-13 percentage points"),
        (0.01, "+1 percentage point"),
        (0.004, "0 percentage points"),
        (-0.004, "0 percentage points"),
    ],
)
def test_a_change_of_a_share_is_in_whole_points_and_none_has_no_sign(change, said):
    assert percent_change(change) == said


def of(share: float | None, own: bool = False, detectable: float = math.nan) -> SimpleNamespace:
    """A study whose challenger realised a share of the potential gain."""
    row = {"smallest_detectable": detectable, "planned_level": 0.975, "p_corrected": 0.01,
           "p": 0.01}  # fmt: skip
    return SimpleNamespace(
        spec="ndcg@10",
        statistics=StatisticsSettings(),
        comparison=SimpleNamespace(
            row=lambda _system, _spec: pd.Series(row), left_out=lambda _system, _spec: {}
        ),
        headroom=lambda _system: SimpleNamespace(share_won=share, own=own),
    )


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0% of the potential gain realised"), (0.57, "57% of the potential gain realised"),
     (-0.01, None), (None, None)],
)  # fmt: skip
def test_a_share_of_the_potential_gain_is_said_where_none_was_lost(share, said):
    facts = [fact for fact, _meaning in _facts(of(share), "run")]
    assert [each for each in facts if "potential" in each] == ([said] if said else [])
    own = [each for each, _meaning in _facts(of(share, own=True), "run") if "potential" in each]
    assert own == ([f"{said} (own list)"] if said else [])


def test_the_minimum_detectable_change_is_said_with_power_and_level_where_there_is_one():
    assert not any("detectable" in fact for fact, _meaning in _facts(of(None), "run"))
    (meaning,) = [
        meaning
        for fact, meaning in _facts(of(None, detectable=0.049), "run")
        if fact == "minimum detectable change 0.049"
    ]
    assert meaning == (
        "**Minimum detectable change**: the true change that this many queries prove in 80% of all "
        "cases, at a level of 97.5%. Smaller ones are often missed."
    )
