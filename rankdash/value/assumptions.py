"""What a calculation takes for granted: every number has a name, a unit, a range and a sentence."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankdash.errors import DataError

# Name in scenarios of an older version → name now.
_RENAMED = {"share": "traffic_share"}

DAYS_PER_MONTH = 365 / 12
MONTHS_PER_YEAR = 12


@dataclass(frozen=True)
class Assumption:
    """One number as a slider or a table shows it.

    group: "traffic", "value", "effort", "answers" (an LLM that reads the passages), "support" or
        "waiting".
    unit: such as "searches a day"; "share" for a number from 0 to 1; "money" for an amount in the
        currency of the scenario, with `per` behind it.
    meaning: the sentence that it means.
    low, high: the ends of the slider; any number from `least` to `most` is accepted.
    logarithmic: whether the slider is best read in powers of ten.
    """

    name: str
    group: str
    title: str
    unit: str
    meaning: str
    low: float
    high: float
    step: float
    least: float = 0.0
    most: float = math.inf
    logarithmic: bool = False

    @property
    def default(self) -> float:
        return float(getattr(Assumptions(), self.name))


@dataclass(frozen=True)
class Assumptions:
    """A scenario's numbers; what each means is in `ASSUMPTIONS`. Shares are from 0 to 1.

    Raises DataError where one is not a number or lies outside its range.
    """

    searches_per_day: float = 100_000.0
    value_per_search: float = 0.01
    elasticity: float = 1.0
    traffic_share: float = 1.0
    setup_cost: float = 0.0
    monthly_cost: float = 0.0
    passages: float = 0.0
    passage_tokens: float = 400.0
    llm_price: float = 0.15
    ticket_share: float = 0.0
    ticket_cost: float = 15.0
    seconds_saved: float = 0.0
    hourly_wage: float = 40.0
    loss_per_100_ms: float = 0.0
    latency_target_ms: float = 500.0

    def __post_init__(self) -> None:
        for each in ASSUMPTIONS:
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise _refused(each, value)
            if not (math.isfinite(value) and each.least <= value <= each.most):
                raise _refused(each, value)

    def to_dict(self) -> dict[str, float]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Assumptions:
        """Names of an older version are understood. Raises DataError for one that does not exist,
        or a value out of range."""
        given = {_RENAMED.get(name, name): value for name, value in given.items()}
        names = {each.name for each in dataclasses.fields(cls)}
        for name in given:
            if name not in names:
                raise DataError(
                    "There is no assumption {name!r}.",
                    remedy="Possible: {names}.",
                    name=str(name),
                    names=", ".join(sorted(names)),
                )
        return cls(**given)


ASSUMPTIONS = (
    Assumption(
        "searches_per_day", "traffic", "Searches a day", "searches a day",
        "How many searches a day would be reranked.",
        10, 10_000_000, 10, logarithmic=True,
    ),
    Assumption(
        "traffic_share", "traffic", "Share that the test set stands for", "share",
        "Part of the traffic that is like the queries measured here; the rest gains nothing and "
        "still costs.",
        0.0, 1.0, 0.05, most=1.0,
    ),
    Assumption(
        "value_per_search", "value", "Value of a search", "money",
        "What an average search is worth to you, as margin rather than revenue.",
        0.0, 1.0, 0.001, logarithmic=True,
    ),
    Assumption(
        "elasticity", "value", "Value gained for each 1 % of quality", "%",
        "How much more a search is worth when the metric rises by 1 %. Nobody knows yours without "
        "an experiment; published calculators silently take 1.",
        0.0, 2.0, 0.01, most=10.0,
    ),
    Assumption(
        "setup_cost", "effort", "One-off cost", "money",
        "What it takes to put the reranker into service, once.",
        0, 100_000, 500,
    ),
    Assumption(
        "monthly_cost", "effort", "Upkeep a month", "money",
        "Engineers, monitoring and machines that the price does not cover.",
        0, 20_000, 100,
    ),
    Assumption(
        "passages", "answers", "Passages an LLM reads now", "passages",
        "How many of the first passages go into the prompt of the LLM that answers. 0: no LLM.",
        0, 50, 1, most=1000,
    ),
    Assumption(
        "passage_tokens", "answers", "Tokens of a passage", "tokens",
        "Length of one passage in the prompt.",
        50, 2000, 10,
    ),
    Assumption(
        "llm_price", "answers", "Price of the LLM's input", "money for a million tokens",
        "What the LLM costs for what it reads.",
        0.0, 15.0, 0.05,
    ),
    Assumption(
        "ticket_share", "support", "Failed searches that become tickets", "share",
        "Of the searches that do not show a relevant document, how many open a support ticket.",
        0.0, 1.0, 0.01, most=1.0,
    ),
    Assumption(
        "ticket_cost", "support", "Cost of a ticket", "money",
        "What it costs to answer one ticket.",
        0, 100, 1,
    ),
    Assumption(
        "seconds_saved", "support", "Time saved by a search that succeeds", "seconds",
        "How long a person looks on when a search shows nothing relevant.",
        0, 600, 5,
    ),
    Assumption(
        "hourly_wage", "support", "Cost of an hour of theirs", "money",
        "What an hour of that person costs.",
        0, 200, 1,
    ),
    Assumption(
        "loss_per_100_ms", "waiting", "Value lost for each 100 ms of waiting", "share",
        "Part of a search's value lost for each 100 ms that the reranker adds. 0: waiting is free.",
        0.0, 0.05, 0.001, most=1.0,
    ),
    Assumption(
        "latency_target_ms", "waiting", "Latency target (p95)", "ms",
        "Nineteen of twenty searches have to be reranked within it.",
        50, 2000, 10, least=1.0,
    ),
)  # fmt: skip


def _refused(each: Assumption, value: object) -> DataError:
    return DataError(
        "{title} cannot be {value!r}.",
        remedy="Possible: {least:g} to {most:g}.",
        title=each.title,
        value=value,
        least=each.least,
        most=each.most,
    )
