"""The options of the Cost page: each way to rank, its price, its gain, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rankdash.i18n import gettext as _
from rankdash.ui import comparison, cost_prices, cost_services
from rankdash.ui.cost_inputs import currency
from rankdash.ui.cost_services import MeasuredLoad, Waiting
from rankdash.ui.frame import View
from rankdash.value.assumptions import Assumptions
from rankdash.value.billing import Price, cost_per_search
from rankdash.value.outcome import Gain, Option, Outcome, outcome
from rankdash.value.price_list import ListedPrice

BASELINE = "baseline"


@dataclass(frozen=True)
class Choice:
    """One option as the page shows it.

    system: id of the ranking; "" for a price alone. price: None for no reranker. foreign: whether
        the price is in another currency, so that it cannot be compared.
    rate_measured: whether the searches per second of a price by the hour were measured.
    passages: how many reranked passages hold as much recall as an LLM is given now; None where no
        number of them surely does, or no LLM is asked about.
    """

    option: Option
    came: Outcome
    system: str
    price: ListedPrice | None
    load: MeasuredLoad
    waiting: Waiting
    foreign: bool = False
    rate_measured: bool = False
    passages: int | None = None

    @property
    def name(self) -> str:
        return self.option.name


def hit_spec(view: View) -> str:
    """The hit rate that tickets and working time hang on."""
    return f"hit@{view.cutoff or 10}"


def build(
    view: View,
    scenario: Assumptions,
    prices: dict[str, ListedPrice],
    chosen: dict[str, str],
    others: list[str],
) -> list[Choice]:
    """The baseline as it is, every challenger at its price, and the prices alone."""
    base = cost_services.load(view.dataset_id, view.baseline)
    free = Option(
        _("No reranker: {name}", name=view.name(view.baseline)), 0.0, Gain(0.0), free=True
    )
    level = view.statistics.level
    found = [Choice(free, outcome(free, scenario, level), BASELINE, None, base, Waiting(0.0, 0.0))]
    for system in view.challengers:
        load = cost_services.load(view.dataset_id, system)
        found.append(_priced(view, scenario, system, prices[chosen[system]], load))
    deepest = found[-1].load if view.challengers else base
    found += [_priced(view, scenario, "", prices[key], deepest) for key in others]
    return found


def cost_at(choice: Choice, scenario: Assumptions, documents: float) -> float:
    """Cost of 1,000 searches of an option when so many documents are reranked; NaN where its price
    is unknown."""
    price = rated(choice, scenario)
    if choice.foreign or price is None:
        return float("nan")
    if price.unit == "hour":
        # A machine serves the more searches the fewer documents each of them has.
        now = float(choice.load.load.documents)
        share = documents / now if now else 1.0
        return float(cost_per_search(price, choice.load.load)) * 1000 * share
    return float(cost_per_search(price, replace(choice.load.load, documents=documents))) * 1000


def rated(choice: Choice, scenario: Assumptions) -> Price | None:
    """The price of an option, by the hour at the measured throughput where there is one."""
    if choice.price is None:
        return None
    price, _measured = cost_prices.with_measured_rate(
        choice.price.price, choice.waiting, scenario.latency_target_ms
    )
    return price


def _priced(
    view: View,
    scenario: Assumptions,
    system: str,
    listed: ListedPrice,
    load: MeasuredLoad,
) -> Choice:
    foreign = listed.price.currency != currency()
    waiting = cost_services.waiting(system) if system else Waiting(None, None)
    price, measured = cost_prices.with_measured_rate(
        listed.price, waiting, scenario.latency_target_ms
    )
    passages = _passages(view, system, scenario) if system else None
    option = Option(
        name=view.name(system) if system else cost_prices.title(listed),
        cost_per_search=None if foreign else float(cost_per_search(price, load.load)),
        gain=_gain(view, system) if system else None,
        extra_ms=waiting.p50,
        passages_after=passages,
    )
    return Choice(
        option=option,
        came=outcome(option, scenario, view.statistics.level),
        system=system,
        price=listed,
        load=load,
        waiting=waiting,
        foreign=foreign,
        rate_measured=measured,
        passages=passages,
    )


def _gain(view: View, system: str) -> Gain | None:
    return cost_services.gain(
        view.dataset_id,
        (view.baseline, system),
        view.spec,
        hit_spec(view),
        view.conventions,
        view.statistics,
    )


def _passages(view: View, system: str, scenario: Assumptions) -> int | None:
    if scenario.passages < 1:
        return None
    return cost_services.equal_recall(
        view.dataset_id,
        (view.baseline, system),
        int(scenario.passages),
        view.conventions,
        view.statistics,
    )


def quality(view: View, system: str) -> tuple[float, float, float]:
    """Mean and interval of the chosen metric."""
    row = comparison.compared(view).row(system, view.spec)
    return float(row["mean"]), float(row["mean_low"]), float(row["mean_high"])


def system_of(view: View, choice: Choice) -> str | None:
    """The ranking of an option; None for a price alone."""
    if choice.system == BASELINE:
        return view.baseline
    return choice.system or None
