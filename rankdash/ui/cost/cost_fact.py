"""What a system costs, for pages that only mention it: at the price chosen on the Cost page, else
at the one that goes without saying."""

from __future__ import annotations

from dataclasses import dataclass

from rankdash.i18n import gettext as _
from rankdash.study import cost_options
from rankdash.ui.cost import cost_prices, cost_services
from rankdash.ui.cost.cost_inputs import assumptions
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.state import services
from rankdash.value.billing import billed_tokens, cost_per_thousand
from rankdash.value.price_list import ListedPrice
from rankdash.words import prices as price_words
from rankdash.words.money import money


@dataclass(frozen=True)
class Cost:
    """per_thousand: of 1,000 searches. per_million_tokens: of a million tokens of queries and
    documents; None where there are none. Both are in the currency of the price."""

    listed: ListedPrice
    per_thousand: float
    per_million_tokens: float | None
    marks: tuple[str, ...]


def of(view: View, system: str) -> Cost | None:
    """None for the first stage, which nobody bills for reranking."""
    if system == services.FIRST_STAGE:
        return None
    prices = cost_prices.listed()
    listed = prices[cost_prices.chosen(view, system, prices)]
    price, measured = listed.price, False
    if price.unit == "hour":
        price, measured = cost_options.with_measured_rate(
            price, cost_services.waiting(system), assumptions().latency_target_ms
        )
    measured_load = cost_services.load(view.dataset_id, system)
    per_thousand = float(cost_per_thousand(price, measured_load.load))
    tokens = float(billed_tokens(measured_load.load)) * 1000
    return Cost(
        listed,
        per_thousand,
        per_thousand / tokens * 1e6 if tokens > 0 else None,
        tuple(price_words.marks(listed, measured_load.estimated, measured)),
    )


def words(view: View, system: str) -> str:
    """ "$0.14 for 1,000 searches (example price)"; "" where nothing is billed."""
    cost = of(view, system)
    if cost is None:
        return ""
    said = _(
        "{amount} for 1,000 searches", amount=money(cost.per_thousand, cost.listed.price.currency)
    )
    return f"{said} ({price_words.joined(cost.marks)})" if cost.marks else said
