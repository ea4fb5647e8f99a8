"""What a subject is given beside its data set: the systems compared, and what a search costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rankdash.ranking.ranking import Run
from rankdash.value.assumptions import Assumptions
from rankdash.value.price_list import ListedPrice

FIRST_STAGE = "first-stage"
"""The id of the data set's own ranking, which is no run."""


@dataclass(frozen=True, eq=False)
class System:
    """A ranking that is compared. name: as it is shown; from a person, so never markup. run: None
    for the first stage of the data set."""

    id: str
    name: str
    run: Run | None = None


@dataclass(frozen=True)
class Money:
    """What a search costs and is worth.

    prices: system → its price; a system without one has no cost that is known.
    chosen: whether a person set the assumptions; else they are the shipped defaults.
    currency: of every amount. A price in another one says nothing here.
    """

    assumptions: Assumptions = field(default_factory=Assumptions)
    prices: Mapping[str, ListedPrice] = field(default_factory=dict)
    chosen: bool = False
    currency: str = "USD"
