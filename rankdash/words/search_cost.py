"""What a search of a system costs, in a line."""

from __future__ import annotations

from rankdash.i18n import gettext as _
from rankdash.study import costs
from rankdash.study.study import Study
from rankdash.words.money import money
from rankdash.words.prices import joined, marks


def search_cost(study: Study, system: str) -> str:
    """ "$0.14 for 1,000 searches (example price)"; "" where nothing is billed."""
    cost = costs.billed(study, system)
    if cost is None:
        return ""
    said = _(
        "{amount} for 1,000 searches", amount=money(cost.per_thousand, cost.listed.price.currency)
    )
    unsure = marks(cost.listed, cost.estimated, cost.rate_measured)
    return f"{said} ({joined(unsure)})" if unsure else said
