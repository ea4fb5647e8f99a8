"""Assumptions of a cost calculation: every number has a name, a unit, a range and a description."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rankdash.core.base.errors import DataError
from rankdash.core.base.files import from_json, guarded
from rankdash.core.base.rules import Setting, Settings, described_by, settings_of

# Name in scenarios of an older version → current name.
_RENAMED = {"share": "traffic_share"}

# Assumption → the assumption that enables it.
_SWITCHES = {
    "passages": "passages",
    "passage_tokens": "passages",
    "llm_price": "passages",
    "ticket_share": "ticket_share",
    "ticket_cost": "ticket_share",
    "seconds_saved": "seconds_saved",
    "hourly_wage": "seconds_saved",
    "loss_per_100_ms": "loss_per_100_ms",
}

DAYS_PER_MONTH = 365 / 12
MONTHS_PER_YEAR = 12
DOLLARS = "USD"
"""Currency of every default amount."""


def named_now(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario in which names from older versions are replaced by the current names."""
    return {_RENAMED.get(name, name): value for name, value in scenario.items()}


@dataclass(frozen=True)
class Assumption(Setting):
    """Description of one number in a cost scenario, for sliders and tables.

    group: "traffic", "value", "effort", "answers" (an LLM that reads the passages), "support" or
        "waiting".
    unit: such as "searches a day"; "share" for a number from 0 to 1; "money" for an amount in the
        currency of the scenario, followed by `per`.
    low, high: the ends of the slider; any number from `least` to `most` is accepted.
    logarithmic: whether the slider has a logarithmic scale.
    """

    group: str
    unit: str
    low: float
    high: float
    step: float
    logarithmic: bool = False

    @property
    def money(self) -> bool:
        """True for an amount in the currency of the scenario; its default is in `DOLLARS`."""
        return self.unit.startswith("money")

    def default_at(self, rate: float | None) -> float:
        """Return the default value, with an amount converted from US dollars to the scenario's
        currency.

        rate: amount of the scenario's currency per US dollar; None if not set: the default of an
        amount is then unknown and counts as 0.
        """
        return float(self.default * (rate or 0.0) if self.money else self.default)

    def refusal(self, value: object) -> DataError:
        return DataError(
            "{title} cannot be {value!r}.",
            remedy="Possible: {least:g} to {most:,.0f}.",
            title=self.title,
            value=value,
            least=self.least,
            most=self.most,
        )


# Above the number of searches in the world per day, and far below the loss of digits.
_MOST = 1e10


def _assumed(*described: Any, least: float = 0.0, most: float = _MOST, **more: Any) -> Any:
    return described_by(Assumption("", *described, within=(least, most), **more))


@dataclass(frozen=True)
class Assumptions(Settings):
    """Numbers of a scenario; `ASSUMPTIONS` describes each. Shares are from 0 to 1.

    Raises DataError for a value that is not a number or is outside its range.
    """

    searches_per_day: float = _assumed(
        100_000.0, "Searches per day",
        "Number of searches per day to rerank.",
        "traffic", "searches per day", 100, 100_000_000, 100, logarithmic=True,
    )  # fmt: skip
    traffic_share: float = _assumed(
        1.0, "Share of the traffic that the test set represents",
        "Share of the traffic that resembles the queries measured here; the rest gains nothing "
        "but still costs.",
        "traffic", "share", 0.0, 1.0, 0.05, most=1.0,
    )  # fmt: skip
    value_per_search: float = _assumed(
        0.01, "Value of a search",
        "Value of an average search, as margin rather than revenue.",
        "value", "money", 0.0001, 100, 0.0001, logarithmic=True,
    )  # fmt: skip
    elasticity: float = _assumed(
        1.0, "Value gained for each 1% of quality",
        "How much the value of a search rises if the metric rises by 1%. Only an experiment can "
        "measure yours; common calculators assume 1 without stating it.",
        "value", "%", 0.0, 2.0, 0.01, most=10.0,
    )  # fmt: skip
    setup_cost: float = _assumed(
        0.0, "One-off cost",
        "The one-off cost of putting the reranker into service.",
        "effort", "money", 0, 100_000, 500,
    )  # fmt: skip
    monthly_cost: float = _assumed(
        0.0, "Monthly maintenance",
        "Engineers, monitoring and machines that the price does not cover.",
        "effort", "money", 0, 20_000, 100,
    )  # fmt: skip
    passages: float = _assumed(
        0.0, "Passages an LLM reads now",
        "Number of top passages in the prompt of the answering LLM. 0: no LLM.",
        "answers", "passages", 0, 50, 1, most=1000,
    )  # fmt: skip
    passage_tokens: float = _assumed(
        400.0, "Tokens of a passage",
        "Length of one passage in the prompt.",
        "answers", "tokens", 50, 2000, 10,
    )  # fmt: skip
    llm_price: float = _assumed(
        0.15, "Price of the LLM's input",
        "The price of the text that the LLM reads.",
        "answers", "money per million tokens", 0.0, 15.0, 0.05,
    )  # fmt: skip
    ticket_share: float = _assumed(
        0.0, "Failed searches that become tickets",
        "Share of the searches without a relevant document that lead to a support ticket.",
        "support", "share", 0.0, 1.0, 0.01, most=1.0,
    )  # fmt: skip
    ticket_cost: float = _assumed(
        15.0, "Cost of a ticket",
        "The cost of answering one ticket.",
        "support", "money", 0, 100, 1,
    )  # fmt: skip
    seconds_saved: float = _assumed(
        0.0, "Time saved by a search that succeeds",
        "Time that a person continues searching if no result is relevant.",
        "support", "seconds", 0, 600, 5,
    )  # fmt: skip
    hourly_wage: float = _assumed(
        40.0, "Cost of one hour of working time",
        "The cost of one hour of that person.",
        "support", "money", 0, 200, 1,
    )  # fmt: skip
    loss_per_100_ms: float = _assumed(
        0.0, "Value lost for each 100 ms of latency",
        "Share of a search's value lost for each 100 ms that the reranker adds. 0: latency "
        "costs nothing.",
        "waiting", "share", 0.0, 0.05, 0.001, most=1.0,
    )  # fmt: skip
    latency_target_ms: float = _assumed(
        500.0, "Latency target (p95)",
        "95% of searches must be reranked within this time.",
        "waiting", "ms", 50, 2000, 10, least=1.0,
    )  # fmt: skip

    def untouched(self, changed: Collection[str]) -> tuple[Assumption, ...]:
        """Return the assumptions that affect this scenario and have their default. changed: names
        of the assumptions that are set."""
        return tuple(
            each
            for each in ASSUMPTIONS
            if each.name not in changed
            and (each.name not in _SWITCHES or getattr(self, _SWITCHES[each.name]))
        )

    @classmethod
    def from_dict(cls, scenario: Mapping[str, Any]) -> Assumptions:
        """Build from a dict; names of older versions are accepted. Raises DataError for an unknown
        name, or a value out of range."""
        scenario = named_now(scenario)
        names = {each.name for each in dataclasses.fields(cls)}
        for name in scenario:
            if name not in names:
                raise DataError(
                    "Unknown assumption {name!r}.",
                    remedy="Possible: {names}.",
                    name=str(name),
                    names=", ".join(sorted(names)),
                )
        return cls(**scenario)


ASSUMPTIONS: tuple[Assumption, ...] = settings_of(Assumptions)
"""Every field of `Assumptions` with its title, meaning and range, in the order of the sliders."""


# Saved scenarios of the calculator, and the keys of settings that a workspace shares.

SCENARIOS, PRICES, TARGETS = "scenarios", "prices", "targets"
"""Keys of the shared settings."""

MOST_SCENARIOS = 50

LONGEST_SCENARIO_NAME = 60


def read_scenarios(text: str) -> dict[str, Assumptions]:
    """Return name → scenario from the text of `write_scenarios`, older names included.

    Raises DataError for other text.
    """
    with guarded("", "The saved scenarios cannot be read.", "Save them again."):
        read: Any = from_json(text)
        return {str(name): Assumptions.from_dict(each) for name, each in read.items()}


def write_scenarios(scenarios: Mapping[str, Assumptions]) -> str:
    return json.dumps({name: each.as_dict() for name, each in scenarios.items()})
