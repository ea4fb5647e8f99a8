"""The calculation as rows: for the table of assumptions, and as a file that says all of it."""

from __future__ import annotations

from collections.abc import Sequence

from rankdash.reporting.exports import costs_csv
from rankdash.study.cost_options import Choice
from rankdash.ui.cost.cost_inputs import currency
from rankdash.ui.cost.cost_options import hit_spec
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.state import services
from rankdash.value.assumptions import Assumptions
from rankdash.words import assumptions


def assumption_rows(
    view: View, scenario: Assumptions, choices: Sequence[Choice]
) -> list[tuple[str, str, str]]:
    """(title, value, meaning) of everything that the numbers rest on."""
    return assumptions.rows(scenario, choices, currency(), view.title(hit_spec(view)))


def as_csv(view: View, scenario: Assumptions, choices: Sequence[Choice]) -> bytes:
    """Options and assumptions for a spreadsheet."""
    return costs_csv.as_csv(
        choices,
        scenario,
        data=services.dataset(view.dataset_id).name,
        metric=view.title(view.spec),
        hit=view.title(hit_spec(view)),
        currency=currency(),
    )
