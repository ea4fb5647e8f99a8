"""The calculation as rows: for the table of assumptions, and as a file that says all of it."""

from __future__ import annotations

from collections.abc import Sequence

from rankdash.metrics import parse_measure
from rankdash.reporting.exports import costs_csv
from rankdash.study.costs import Choice, hit_spec
from rankdash.study.study import Study
from rankdash.ui.state.scenario import currency
from rankdash.value.assumptions import Assumptions
from rankdash.words import assumptions


def _hit_title(study: Study) -> str:
    return parse_measure(hit_spec(study.cutoff)).title


def assumption_rows(
    study: Study, scenario: Assumptions, choices: Sequence[Choice]
) -> list[tuple[str, str, str]]:
    """(title, value, meaning) of everything that the numbers rest on."""
    return assumptions.rows(scenario, choices, currency(), _hit_title(study))


def as_csv(study: Study, scenario: Assumptions, choices: Sequence[Choice]) -> bytes:
    """Options and assumptions for a spreadsheet."""
    return costs_csv.as_csv(
        choices,
        scenario,
        data=study.dataset.name,
        metric=study.measure.title,
        hit=_hit_title(study),
        currency=currency(),
    )
