"""The systems of a study, and what a search costs and is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rankdash.core.base.errors import DataError
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.value.assumptions import ASSUMPTIONS, DOLLARS, Assumption, Assumptions, named_now
from rankdash.core.value.prices import ListedPrice, shipped

MACHINES = ("whole", "share")
"""What is paid of a machine by the hour, the default first."""

FIRST_STAGE = "first-stage"
"""The id of the data set's own ranking, which is no run."""


@dataclass(frozen=True, eq=False)
class System:
    """A ranking that is compared.

    name: as it is shown; from a person, so never markup. place: its number among all systems of the
    data set, by which it has the same mark and colour everywhere. load: gives its run; None for the
    first stage of the data set, and for one of which nothing is known but its `ranking`.
    """

    id: str
    name: str
    place: int = 0
    load: Callable[[], Run] | None = None
    ranking: Ranking | None = None


def systems_of(
    dataset: Dataset, runs: Iterable[Run], first_stage: str | None = None
) -> dict[str, System]:
    """id → system: the first stage, then the runs, under names that tell them apart. first_stage:
    its name, where a file gave it one."""
    systems = [System(FIRST_STAGE, first_stage or first_stage_name(dataset))]
    systems += [System(run.id, run.name, load=partial(_same, run)) for run in runs]
    return numbered(systems)


def _same(run: Run) -> Run:
    return run


def numbered(systems: Iterable[System]) -> dict[str, System]:
    """id → system, each with its place; a name that another has is numbered ("BM25 (2)")."""
    named: dict[str, System] = {}
    for place, system in enumerate(systems):
        name = unused(system.name, {each.name for each in named.values()})
        named[system.id] = replace(system, name=name, place=place)
    return named


def unused(name: str, taken: Iterable[str]) -> str:
    """The name itself, or with the first number that nobody has: "BM25 (2)"."""
    known = set(taken)
    numbered_names = (name, *(f"{name} ({n})" for n in range(2, len(known) + 3)))
    return next(each for each in numbered_names if each not in known)


def first_stage_name(dataset: Dataset) -> str:
    """Return what the data set's own ranking is called, by its file or in the reader's language."""
    match dataset.first_stage:
        case "given":
            return dataset.candidates_name or _("First stage")
        case "bm25":
            return _("First stage (BM25, listed documents only)")
        case "rows":
            return _("First stage (order of the rows)")
        case "corpus-bm25":
            return _("First stage (BM25)")
        case "corpus-bi-encoder":
            return _("First stage (bi-encoder)")
        case "corpus-fused":
            return _("First stage (BM25 + bi-encoder)")


@dataclass(frozen=True)
class Money:
    """What a search costs and is worth.

    prices: system → the price that somebody gave it; without one, what was recorded of its run
        says which of `listed` it has, if any.
    given: the names of the assumptions that a person set; the others are the shipped defaults.
    currency: of every amount.
    rates: currency → how much of `currency` one unit of it is. A price in a currency that is not
        there says nothing here.
    also: prices to be shown beside the systems, though nothing was measured of them.
    shared: whether a share of a machine is paid by the hour, because others use the rest; else
        whole machines are.
    example: whether example values stand in where the user set no price or no value of a search.
        Every result that rests on one is marked.
    """

    assumptions: Assumptions = field(default_factory=Assumptions)
    prices: Mapping[str, ListedPrice] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    currency: str = "USD"
    rates: Mapping[str, float] = field(default_factory=dict)
    also: tuple[ListedPrice, ...] = ()
    listed: tuple[ListedPrice, ...] = field(default_factory=shipped)
    shared: bool = False
    example: bool = False

    @classmethod
    def of(cls, assumptions: Mapping[str, Any], **more: Any) -> Money:
        """With the assumptions that somebody set, by their names. Raises DataError for one that
        does not exist, or is out of range, and for an amount that somebody has to set, because its
        default is in another currency and there is no rate of exchange. `machines`: "whole" or
        "share"."""
        assumptions = dict(assumptions)
        machines = assumptions.pop("machines", MACHINES[0])
        if machines not in MACHINES:
            raise DataError(
                "machines cannot be {value!r}.",
                remedy="Possible: {choices}.",
                value=machines,
                choices=", ".join(MACHINES),
            )
        more["shared"] = machines == MACHINES[1]
        made = cls(
            Assumptions.from_dict(assumptions), given=frozenset(named_now(assumptions)), **more
        )
        rate = made.rate(DOLLARS)
        for each in made.defaults:
            if rate is None and each.money and each.default:
                raise DataError(
                    "{name} is not set, and its default is in {dollars}, not in {currency}.",
                    remedy="Set it, or how much 1 {dollars} is in {currency} under rates.",
                    name=each.name,
                    dollars=DOLLARS,
                    currency=made.currency,
                )
        usual = {each.name: each.default_at(rate) for each in ASSUMPTIONS if each.money}
        return replace(made, assumptions=Assumptions.from_dict({**usual, **named_now(assumptions)}))

    @property
    def defaults(self) -> tuple[Assumption, ...]:
        """Return the assumptions that count and that are not set. What a search is worth counts
        only once it is set."""
        counting = self.assumptions.untouched(self.given)
        return tuple(each for each in counting if each.name != "value_per_search")

    @property
    def valued(self) -> bool:
        """Whether the user set what a search is worth."""
        return "value_per_search" in self.given

    @property
    def traffic(self) -> float | None:
        """Searches per day that whole machines serve; None if a share of a machine is paid."""
        return None if self.shared else self.assumptions.searches_per_day

    def rate(self, currency: str) -> float | None:
        """How much of the study's currency one unit of another is; None where nobody said."""
        return 1.0 if currency == self.currency else self.rates.get(currency)
