"""The calculation of cost and worth as a file for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.spreadsheet import defused
from rankdash.core.study.study import Study
from rankdash.core.value.assumptions import Assumptions
from rankdash.features.cost import costs, words_assumptions, words_costs
from rankdash.features.cost.costs import Choice
from rankdash.features.cost.gains import hit_title
from rankdash.features.cost.payoff import Amount, End
from rankdash.features.cost.words_money import month, year
from rankdash.kit.html.downloads import ZipPart


def as_csv(
    choices: Sequence[Choice],
    scenario: Assumptions,
    *,
    data: str,
    metric: str,
    hit: str,
    currency: str,
) -> bytes:
    """Options and assumptions, in the language in force; a month's figures, and a year's beside
    them. data: name of the data set. metric, hit: titles of the metric and of the hit rate."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([_("data set"), defused(data)])
    writer.writerow([_("metric"), metric])
    writer.writerow([_("currency"), currency])
    for choice in choices:
        if choice.demonstrated:
            writer.writerow([_("example values"), defused(choice.name)])
    writer.writerow([])
    titles = [_("option"), _("figure"), _("value"), _("low"), _("high"), _("reason")]
    writer.writerow(titles)
    for choice in choices:
        for title, found in _figures(choice):
            writer.writerow(
                [
                    defused(choice.name),
                    title,
                    *map(_plain, (found.value, found.low, found.high)),
                    words_costs.reason(found.reason),
                ]
            )
    writer.writerow([])
    writer.writerow([_("assumption"), _("value"), _("meaning")])
    for row in words_assumptions.rows(scenario, choices, currency, hit):
        writer.writerow([defused(cell) for cell in row])
    return out.getvalue().encode("utf-8-sig", "replace")


def _figures(choice: Choice) -> list[tuple[str, Amount]]:
    came = choice.came
    spans = [
        each
        for span in (month(), year())
        for each in (
            (span.cost, span.of(came.cost_per_month)),
            (span.value, span.of(came.value_per_month)),
            (span.net, span.of(came.net_per_month)),
        )
    ]
    return [
        (_("1,000 searches"), came.cost_per_thousand),
        *spans,
        (_("return on the cost"), came.roi),
        (_("months to pay back"), came.payback_months),
        (_("break-even elasticity, %"), came.break_even_elasticity),
        (_("break-even searches a day"), came.break_even_searches),
        (_("break-even value of 1% quality, 1,000 searches"), came.break_even_worth),
        (_("break-even price of 1,000 searches"), came.break_even_price),
    ]


def _plain(value: End) -> str:
    """An end that pays whatever the input is, pays from 0 on."""
    if value == "always":
        return _number(0.0)
    return words_costs.reason(value) if isinstance(value, str) else _number(value)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value + 0.0:.10g}"


def money_files(study: Study) -> list[ZipPart]:
    """What each option costs and is worth, with every assumption; none where nothing is known of
    prices or nothing is compared."""
    money = study.money
    if money is None or not study.challengers:
        return []

    def made() -> bytes:
        return as_csv(
            costs.choices(study),
            money.assumptions,
            data=study.dataset.name,
            metric=study.measure.title,
            hit=hit_title(study),
            currency=money.currency,
        )

    return [ZipPart("cost.csv", _("Cost and value of each option, and every assumption."), made)]
