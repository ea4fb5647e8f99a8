"""Targets as words: every cell says what its figure is, and what is not known is a dash."""

import math
from types import SimpleNamespace

import pytest

from rankdash.reporting import targets as table
from rankdash.study import targets
from rankdash.value.targets import Limit, Reached, Target, TargetRow

STUDY = SimpleNamespace(chosen=("a", "b"), name=lambda system: f"System {system}")
ASKED = Target("ndcg@10", minimum=0.5, target=0.7, excellent=0.85)
SLOW = Limit("p95_ms", 500.0, 300.0)
DEAR = Limit("per_million_tokens", 0.05, 0.03)


@pytest.fixture
def cells(monkeypatch):
    """The cells of a row under the names of their columns."""

    def cells(row: TargetRow) -> dict[str, str]:
        monkeypatch.setattr(targets, "rows", lambda study, system, goals: (row,))
        found = table.rows(STUDY, None)
        assert [each[0] for each in found] == ["System a", "System b"]
        return dict(zip(table.head(), found[0], strict=True))

    return cells


def test_a_metric_has_its_figure_its_levels_and_what_to_do(cells):
    row = TargetRow("ndcg@10", Reached(0.6, 0.55, 0.65, 0.9), ASKED, "missed", band="fair",
                    advice="Look at the labels.")  # fmt: skip
    assert cells(row) == {
        "system": "System a", "metric": "NDCG@10", "value": "0.600", "interval": "0.550 … 0.650",
        "reachable at most": "0.900", "minimum": "0.50", "target": "0.70", "excellent": "0.85",
        "status": "▼ missed", "band": "fair", "advice": "Look at the labels.",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "more", "said"),
    [
        ("met", {}, "✓ met"),
        ("met", {"excellent": True}, "★ excellent"),
        ("undecided", {}, "? undecided"),
        ("undecided", {"example": True}, "? example price: not decided"),
        ("unreachable", {}, "– cannot be reached"),
        (None, {}, "not known"),
    ],
)
def test_each_status_has_its_word(cells, status, more, said):
    assert cells(TargetRow("ndcg@10", Reached(0.6), ASKED, status, **more))["status"] == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.5, 0.7, "0.500 … 0.700"),
        (0.5, math.nan, "at least 0.500"),
        (math.nan, 0.7, "–"),
        (math.nan, math.nan, "–"),
    ],
)
def test_an_interval_without_an_end_says_so(cells, low, high, said):
    row = TargetRow("ndcg@10", Reached(0.6, low, high), Target("ndcg@10", target=0.7), "undecided")
    found = cells(row)
    assert (found["interval"], found["reachable at most"]) == (said, "–")
    assert (found["minimum"], found["excellent"], found["band"], found["advice"]) == (
        "–", "–", "–", "",
    )  # fmt: skip


def test_a_latency_and_a_price_are_written_beside_their_limits(cells):
    found = cells(TargetRow("p95_ms", Reached(500.04, 480.0, 520.0), SLOW, "undecided"))
    assert [found[name] for name in ("metric", "value", "minimum", "target", "excellent")] == [
        "p95, ms", "500.04", "–", "500", "300",
    ]  # fmt: skip
    found = cells(TargetRow("per_million_tokens", Reached(0.041), DEAR, "undecided", example=True))
    assert [found[name] for name in ("metric", "value", "target", "excellent")] == [
        "cost of a million tokens", "$0.041 (example price)", "$0.05", "$0.03",
    ]  # fmt: skip
    assert cells(TargetRow("p95_ms", Reached(math.nan), SLOW, None))["value"] == "–"
    # Digits are added until a limit is not written like the figure beside it.
    near = TargetRow("p95_ms", Reached(500.0), Limit("p95_ms", 500.04), "met")
    assert (cells(near)["value"], cells(near)["target"]) == ("500", "500.04")
