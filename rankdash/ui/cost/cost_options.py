"""The options of the Cost page: each way to rank, its price, its gain, and what it comes to."""

from __future__ import annotations

from dataclasses import replace

from rankdash.study import cost_options
from rankdash.study.cost_options import BASELINE, Choice, MeasuredLoad, Terms, Waiting
from rankdash.ui.cost import cost_services
from rankdash.ui.cost.cost_inputs import currency
from rankdash.ui.sidebar import comparison
from rankdash.ui.sidebar.sidebar import View
from rankdash.value.assumptions import Assumptions
from rankdash.value.billing import Price, cost_per_search
from rankdash.value.outcome import Gain
from rankdash.value.price_list import ListedPrice


def hit_spec(view: View) -> str:
    """The hit rate that tickets and working time hang on."""
    return cost_options.hit_spec(view.cutoff)


def build(
    view: View,
    scenario: Assumptions,
    prices: dict[str, ListedPrice],
    chosen: dict[str, str],
    others: list[str],
) -> list[Choice]:
    """The baseline as it is, every challenger at its price, and the prices alone."""
    base = cost_services.load(view.dataset_id, view.baseline)
    found = [cost_options.unranked(view.name(view.baseline), base, _terms(view, scenario))]
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
    price, _measured = cost_options.with_measured_rate(
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
    return cost_options.priced(
        system,
        view.name(system) if system else "",
        listed,
        load,
        cost_services.waiting(system) if system else Waiting(None, None),
        _gain(view, system) if system else None,
        _passages(view, system, scenario) if system else None,
        _terms(view, scenario),
    )


def _terms(view: View, scenario: Assumptions) -> Terms:
    return Terms(scenario, currency(), view.statistics.level)


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
