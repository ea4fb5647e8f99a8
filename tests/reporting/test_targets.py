"""Targets as words: every cell names its quantity, and unknown values are dashes."""

import math

import pytest

from rankdash.core.base.i18n import speaking
from rankdash.core.study import costs
from rankdash.core.value.targets import Limit, Reached, Target, TargetRow
from rankdash.core.words import targets
from tests.approved import table as cases

nan = math.nan
ASKED = Target("ndcg@10", minimum=0.5, target=0.7, excellent=0.85)
SLOW, DEAR = Limit("p95_ms", 500.0, 300.0), Limit("per_million_tokens", 0.05, 0.03)
FEW = Target("ndcg@10", target=0.7)


def row(reached: Reached, status: str | None, asked: Target | Limit = FEW, **more) -> TargetRow:
    spec = asked.metric if isinstance(asked, Target) else asked.what
    return TargetRow(spec, reached, asked, status, **more)


ROWS = {
    "its levels and what to do": row(
        Reached(0.6, 0.55, 0.65, 0.9), "missed", ASKED, band="fair", advice="Look at the labels."
    ),
    "met": row(Reached(0.6), "met"),
    "excellent": row(Reached(0.6), "met", excellent=True),
    "undecided": row(Reached(0.6, 0.5, 0.7), "undecided"),
    "at an example price": row(Reached(0.6), "undecided", example=True),
    "cannot be reached": row(Reached(0.6), "unreachable"),
    "not known": row(Reached(0.6), None),
    "no upper end": row(Reached(0.6, 0.5, nan), "undecided"),
    "no lower end": row(Reached(0.6, nan, 0.7), "undecided"),
    "no interval": row(Reached(0.6, nan, nan), "undecided"),
    "beside its limits": row(Reached(500.04, 480.0, 520.0), "undecided", SLOW),
    "digits are added until the limit differs": row(Reached(500.0), "met", Limit("p95_ms", 500.04)),
    "no latency": row(Reached(nan), None, SLOW),
    "an example price": row(Reached(0.041), "undecided", DEAR, example=True),
}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_cell_says_what_its_figure_is(better, language, monkeypatch, approved):
    monkeypatch.setattr(costs, "target_rows", lambda study, system, goals: tuple(ROWS.values()))
    with speaking(language):
        found = targets.target_rows(better, None)
        head = targets.head()
    names = [better.name(each) for each in better.chosen]
    assert [each[0] for each in found] == [name for name in names for _ in ROWS]
    said = {name: " | ".join(each) for name, each in zip(ROWS, found, strict=False)}
    approved(f"report/targets.{language}", cases({"columns": " | ".join(head)} | said))
