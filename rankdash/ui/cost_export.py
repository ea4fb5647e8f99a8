"""The calculation as rows: for the table of assumptions, and as a file that says all of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rankdash.analysis.labelling import defused
from rankdash.ui import cost_words, services
from rankdash.ui.cost_inputs import currency, unit
from rankdash.ui.cost_options import Choice, hit_spec
from rankdash.ui.frame import View
from rankdash.ui.i18n import gettext as _
from rankdash.ui.i18n import number, percent
from rankdash.value.assumptions import ASSUMPTIONS, MONTHS_PER_YEAR, Assumptions
from rankdash.value.billing import UNITS
from rankdash.value.outcome import Estimate


def assumption_rows(
    view: View, scenario: Assumptions, choices: Sequence[Choice]
) -> list[tuple[str, str, str]]:
    """(title, value, meaning) of everything that the numbers rest on."""
    rows = []
    for each in ASSUMPTIONS:
        value = _value(each.unit, getattr(scenario, each.name), unit(each))
        rows.append((_(each.title), value, _(each.meaning)))
    rows.append(
        (
            _("Answers found"),
            view.title(hit_spec(view)),
            _("What tickets and working time hang on: a relevant document in the first k."),
        )
    )
    for choice in choices:
        if choice.price is not None:
            price = choice.price
            rows.append(
                (
                    _("Price of {name}", name=choice.name),
                    f"{number(price.price.amount, 4)} {price.price.currency} "
                    f"{_(UNITS[price.price.unit])}",
                    _("{source}, {day}", source=_(price.source), day=price.as_of.isoformat()),
                )
            )
    return rows


def as_csv(view: View, scenario: Assumptions, choices: Sequence[Choice]) -> bytes:
    """Options and assumptions for a spreadsheet; a month's figures, and a year's beside them."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([_("data set"), defused(services.dataset(view.dataset_id).name)])
    writer.writerow([_("metric"), view.title(view.spec)])
    writer.writerow([_("currency"), currency()])
    writer.writerow([])
    titles = [_("option"), _("figure"), _("value"), _("low"), _("high"), _("why there is none")]
    writer.writerow(titles)
    for choice in choices:
        for title, found, factor in _figures(choice):
            writer.writerow(
                [
                    defused(choice.name),
                    title,
                    *(_times(each, factor) for each in (found.value, found.low, found.high)),
                    cost_words.reason(found.reason),
                ]
            )
    writer.writerow([])
    writer.writerow([_("assumption"), _("value"), _("what it means")])
    for row in assumption_rows(view, scenario, choices):
        writer.writerow([defused(cell) for cell in row])
    return out.getvalue().encode("utf-8-sig")


def _figures(choice: Choice) -> list[tuple[str, Estimate, float]]:
    came = choice.came
    monthly = [
        (_("cost a month"), _("cost a year"), came.cost_per_month),
        (_("value a month"), _("value a year"), came.value_per_month),
        (_("net a month"), _("net a year"), came.net_per_month),
    ]
    return [
        (_("1,000 searches"), came.cost_per_thousand, 1.0),
        *((month, found, 1.0) for month, _year, found in monthly),
        *((year, found, float(MONTHS_PER_YEAR)) for _month, year, found in monthly),
        (_("return on the cost"), came.roi, 1.0),
        (_("months to pay back"), came.payback_months, 1.0),
        (_("break-even elasticity, %"), came.break_even_elasticity, 1.0),
        (_("break-even searches a day"), came.break_even_searches, 1.0),
        (_("break-even price of 1,000 searches"), came.break_even_price, 1.0),
    ]


def _times(value: float | None, factor: float) -> str:
    return "" if value is None else f"{value * factor:.10g}"


def _value(kind: str, value: float, words: str) -> str:
    if kind == "share":
        return percent(value, 1)
    return f"{value:,.10g} {words}".strip()
