"""The systems of a study, and prices and assumptions for its costs."""

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
"""The options for hourly prices: whole machines or a share of one; the default first."""

FIRST_STAGE = "first-stage"
"""The id of the data set's own ranking, which is not a run."""


@dataclass(frozen=True, eq=False)
class System:
    """A ranking that is compared.

    name: the display name; entered by a user, so not markup. place: its number among all systems of
    the data set, which determines its mark and colour. load: returns its run; None for the first
    stage, and for a system that has only a `ranking`. lost: query id → "failed" or "skipped", for a
    system without a run.
    """

    id: str
    name: str
    place: int = 0
    load: Callable[[], Run] | None = None
    ranking: Ranking | None = None
    lost: Mapping[str, str] = field(default_factory=dict)


def systems_of(
    dataset: Dataset,
    runs: Iterable[Run],
    first_stage: str | None = None,
    lost: Mapping[str, str] | None = None,
) -> dict[str, System]:
    """Return id → system: the first stage, then the runs, with unique names. first_stage: its name,
    if a file has one. lost: its queries without a result, as for a `System`."""
    systems = [first_stage_of(dataset, first_stage, lost)]
    systems += [System(run.id, run.name, load=partial(_same, run)) for run in runs]
    return numbered(systems)


def first_stage_of(
    dataset: Dataset, name: str | None = None, lost: Mapping[str, str] | None = None
) -> System:
    """Return the first stage. name, lost: as for `systems_of`; by default, the queries without a
    result are known from the timings of the first stage, if it has any."""
    if not lost and dataset.timings is not None:
        rows = dataset.timings[dataset.timings["state"] != "done"]
        lost = dict(zip(rows["query_id"], rows["state"], strict=True))
    return System(FIRST_STAGE, name or first_stage_name(dataset), lost=lost or {})


def _same(run: Run) -> Run:
    return run


def numbered(systems: Iterable[System]) -> dict[str, System]:
    """Return id → system with its position; duplicate names get a number ("BM25 (2)")."""
    named: dict[str, System] = {}
    for place, system in enumerate(systems):
        name = unused(system.name, {each.name for each in named.values()})
        named[system.id] = replace(system, name=name, place=place)
    return named


def unused(name: str, taken: Iterable[str]) -> str:
    """Return the name, with the first free number if it is taken: "BM25 (2)"."""
    names = set(taken)
    numbered_names = (name, *(f"{name} ({n})" for n in range(2, len(names) + 3)))
    return next(each for each in numbered_names if each not in names)


def first_stage_name(dataset: Dataset) -> str:
    """Return the name of the data set's own ranking, from its file or in the reader's language."""
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
    """Prices and assumptions.

    prices: system → the price that the user set; for other systems, the record of the run
        determines the price in `listed`, if any.
    given: the names of the assumptions that the user set; the others have the shipped defaults.
    currency: of every amount.
    rates: currency → value of one unit in `currency`. Prices in other currencies are unknown.
    also: prices that are shown without a measured system.
    shared: whether hourly prices are paid for a share of a machine, because others use the rest;
        otherwise for whole machines.
    example: whether example values replace a missing price or value of a search. Results from
        example values are marked.
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
        """Create `Money` from the assumptions that the user set, and defaults for the others.

        assumptions: values by name; `machines` is "whole" or "share". more: the other fields of
        `Money`.

        Raises DataError for an unknown assumption, a value out of range, and an amount that must be
        set because its default is in another currency without an exchange rate.
        """
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
        money = cls(
            Assumptions.from_dict(assumptions), given=frozenset(named_now(assumptions)), **more
        )
        rate = money.rate(DOLLARS)
        for each in money.defaults:
            if rate is None and each.money and each.default:
                raise DataError(
                    "{name} is not set, and its default is in {dollars}, not in {currency}.",
                    remedy="Set it, or add the value of 1 {dollars} in {currency} under rates.",
                    name=each.name,
                    dollars=DOLLARS,
                    currency=money.currency,
                )
        usual = {each.name: each.default_at(rate) for each in ASSUMPTIONS if each.money}
        return replace(
            money, assumptions=Assumptions.from_dict({**usual, **named_now(assumptions)})
        )

    @property
    def defaults(self) -> tuple[Assumption, ...]:
        """The relevant assumptions that are not set. The value of a search is relevant only once it
        is set."""
        counting = self.assumptions.untouched(self.given)
        return tuple(each for each in counting if each.name != "value_per_search")

    @property
    def valued(self) -> bool:
        """True if the user set the value of a search."""
        return "value_per_search" in self.given

    @property
    def traffic(self) -> float | None:
        """Searches per day that determine the cost of whole machines; None if only a share of a
        machine is paid for."""
        return None if self.shared else self.assumptions.searches_per_day

    def rate(self, currency: str) -> float | None:
        """Return the value of one unit of a currency in the study's currency; None if not set."""
        return 1.0 if currency == self.currency else self.rates.get(currency)
