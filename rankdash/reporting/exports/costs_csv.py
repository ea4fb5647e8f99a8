"""The calculation of cost and worth as a file for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rankdash.i18n import gettext as _
from rankdash.spreadsheet import defused
from rankdash.study.costs import Choice
from rankdash.value.assumptions import Assumptions
from rankdash.value.payoff import Amount, End
from rankdash.words import assumptions, costs
from rankdash.words.money import month, year


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
                    costs.reason(found.reason),
                ]
            )
    writer.writerow([])
    writer.writerow([_("assumption"), _("value"), _("meaning")])
    for row in assumptions.rows(scenario, choices, currency, hit):
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
    return costs.reason(value) if isinstance(value, str) else _number(value)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value + 0.0:.10g}"
