"""Saved assumptions of a calculation, and the keys of the settings that workspaces share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rankdash.core.base.infile import from_json, guarded
from rankdash.core.value.assumptions import Assumptions

SCENARIOS, PRICES, TARGETS = "scenarios", "prices", "targets"
"""Keys of the settings that are shared."""

MOST_SCENARIOS = 50

LONGEST_SCENARIO_NAME = 60


def read_scenarios(text: str) -> dict[str, Assumptions]:
    """Name → scenario, as `write_scenarios` wrote them, also before an assumption was renamed.

    Raises DataError for anything else.
    """
    with guarded("", "The saved scenarios cannot be read.", "Save them again."):
        read: Any = from_json(text)
        return {str(name): Assumptions.from_dict(each) for name, each in read.items()}


def write_scenarios(scenarios: Mapping[str, Assumptions]) -> str:
    return json.dumps({name: each.as_dict() for name, each in scenarios.items()})
