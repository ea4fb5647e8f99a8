"""The calculation as rows: for the table of assumptions, and as a file that says all of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rankdash.analysis.labelling import defused
from rankdash.i18n import gettext as _
from rankdash.i18n import number, percent
from rankdash.ui import cost_prices, cost_words, services
from rankdash.ui.cost_inputs import currency, unit
from rankdash.ui.cost_options import Choice, hit_spec
from rankdash.ui.cost_period import month, year
from rankdash.ui.frame import View
from rankdash.value.assumptions import ASSUMPTIONS, Assumptions
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
                    " · ".join(cost_prices.notes(price, choice.rate_measured)),
                )
            )
            rows.append(_sent(choice))
    return rows


def _sent(choice: Choice) -> tuple[str, str, str]:
    """What a search of an option sends, and whether that was counted."""
    load = choice.load.load
    return (
        _("What a search of {name} sends", name=choice.name),
        _(
            "{n} documents of {tokens} tokens, query of {query}",
            n=number(float(load.documents), 0),
            tokens=number(float(load.document_tokens), 0),
            query=number(float(load.query_tokens), 0),
        ),
        _("tokens estimated: this run counted none")
        if choice.load.estimated
        else _("tokens counted by the run"),
    )


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
        for title, found in _figures(choice):
            writer.writerow(
                [
                    defused(choice.name),
                    title,
                    *map(_plain, (found.value, found.low, found.high)),
                    cost_words.reason(found.reason),
                ]
            )
    writer.writerow([])
    writer.writerow([_("assumption"), _("value"), _("what it means")])
    for row in assumption_rows(view, scenario, choices):
        writer.writerow([defused(cell) for cell in row])
    return out.getvalue().encode("utf-8-sig")


def _figures(choice: Choice) -> list[tuple[str, Estimate]]:
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
        (_("break-even price of 1,000 searches"), came.break_even_price),
    ]


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def _value(kind: str, value: float, words: str) -> str:
    if kind == "share":
        return percent(value, 1)
    return f"{value:,.10g} {words}".strip()
