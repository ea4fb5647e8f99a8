"""Section of the report on costs, and the file cost.csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rankdash.core.base.i18n import enumerated, level_percent, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import defused, html_safe
from rankdash.core.study import costs
from rankdash.core.study.costs import Choice, hit_title
from rankdash.core.study.study import Study
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumptions
from rankdash.core.value.payoff import Amount, End
from rankdash.core.words import costs as words_costs
from rankdash.core.words import prices
from rankdash.core.words.costs import month, year
from rankdash.features.cost import charts_worth, words
from rankdash.kit.html.html_page import Draft, PageTable, listed, prose, table
from rankdash.kit.html.tables import ZipPart


def draw(draft: Draft) -> str:
    study, money = draft.study, draft.money
    sentences = []
    for challenger in study.challengers:
        choice = draft.choice(challenger)
        caveats = words.caveats(choice, money.assumptions.latency_target_ms)
        sentences += [
            words_costs.headline(draft.context, choice, money.assumptions),
            words_costs.sureness(draft.context, choice),
            _("Caveats: {cautions}.", cautions=caveats) if caveats else "",
            words.passages(choice, money.assumptions),
        ]
    chart = charts_worth.worth(study)
    return "".join(
        [
            "" if chart is None else draft.titled(chart),
            prose(_whose(draft)),
            listed([each for each in sentences if each]),
            _figures(draft),
            f"<h3>{html_safe(_p('heading', 'Assumptions'))}</h3>",
            _assumptions(draft),
        ]
    )


def _whose(draft: Draft) -> str:
    """Return sentences on which prices and assumptions were set for this report, and which are
    defaults."""
    money, study = draft.money, draft.study
    unset = [each.name for each in draft.choices if each.unset]
    priced = [study.name(system) for system in study.challengers if study.name(system) not in unset]
    changed = [_("Price of {name}", name=name) for name in priced]
    changed += [_p("setting", each.title) for each in ASSUMPTIONS if each.name in money.given]
    examples = [each.name for each in draft.choices if each.demonstrated]
    sentences = [
        _(
            "**Example values, for demonstration: value, net and return of {systems} are not "
            "results.**",
            systems=enumerated(examples),
        )
        if examples
        else "",
        _("Set for this report: {names}.", names=enumerated(changed))
        if changed
        else _("**All prices and assumptions in this report are defaults.**"),
    ]
    if unset:
        sentences.append(_("**Price not set: {systems}.**", systems=enumerated(unset)))
    sentences.append(prices.defaults(money))
    if unset or money.defaults:
        sentences.append(
            _(
                "To set them, use the page Cost & ROI in rankdash or the command-line option "
                "--assumptions."
            )
        )
    return paragraph([each for each in sentences if each])


def _figures(draft: Draft) -> str:
    """Return a table of costs and value, one row for each option, with a note on the brackets."""
    # Quality, prices and caveats are in other parts of the report.
    content = PageTable(*words.figures(draft.study, draft.choices, draft.context, alone=True))
    if all(choice.option.gain is None for choice in draft.choices[1:]):
        return table(content)
    notes = _(
        "In brackets: the results at the ends of the verdict's {level} interval. Prices and "
        "assumptions are fixed, so the brackets show the uncertainty of the measurement, not of "
        "the assumptions.",
        level=level_percent(draft.study.statistics.level),
    )
    return table(content) + prose(notes, "muted")


def _assumptions(draft: Draft) -> str:
    hit = hit_title(draft.study)
    rows = words.assumption_table(draft.money.assumptions, draft.choices, draft.money.currency, hit)
    head = (_p("column", "assumption"), _p("column", "value"), _p("column", "meaning"))
    return table(PageTable(head, rows))


# Calculation of cost and value as a file for a spreadsheet.


def as_csv(
    choices: Sequence[Choice],
    scenario: Assumptions,
    *,
    data: str,
    metric: str,
    hit: str,
    currency: str,
) -> bytes:
    """Return options and assumptions in the current language, with figures per month and per year.

    data: name of the data set. metric, hit: titles of the metric and of the hit rate.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([_("data set"), defused(data)])
    writer.writerow([_p("column", "metric"), metric])
    writer.writerow([_p("column", "currency"), currency])
    for choice in choices:
        if choice.demonstrated:
            writer.writerow([_("example values"), defused(choice.name)])
    writer.writerow([])
    titles = [
        _p("column", "option"),
        _p("column", "figure"),
        _p("column", "value"),
        _p("column", "low"),
        _p("column", "high"),
        _p("missing value", "reason"),
    ]
    writer.writerow(titles)
    for choice in choices:
        for title, estimate in _csv_figures(choice):
            writer.writerow(
                [
                    defused(choice.name),
                    title,
                    *map(_plain, (estimate.value, estimate.low, estimate.high)),
                    words_costs.reason(estimate.reason),
                ]
            )
    writer.writerow([])
    writer.writerow([_p("column", "assumption"), _p("column", "value"), _p("column", "meaning")])
    for row in words.assumption_table(scenario, choices, currency, hit):
        writer.writerow([defused(cell) for cell in row])
    return out.getvalue().encode("utf-8-sig", "replace")


def _csv_figures(choice: Choice) -> list[tuple[str, Amount]]:
    outcome = choice.outcome
    spans = [
        each
        for span in (month(), year())
        for each in (
            (span.cost, span.of(outcome.cost_per_month)),
            (span.value, span.of(outcome.value_per_month)),
            (span.net, span.of(outcome.net_per_month)),
        )
    ]
    return [
        (_("1,000 searches"), outcome.cost_per_thousand),
        *spans,
        (_("return on cost"), outcome.roi),
        (_("payback time in months"), outcome.payback_months),
        (_("break-even elasticity, %"), outcome.break_even_elasticity),
        (_("break-even searches per day"), outcome.break_even_searches),
        (_("break-even value of 1% of quality per 1,000 searches"), outcome.break_even_worth),
        (_("break-even price of 1,000 searches"), outcome.break_even_price),
    ]


def _plain(value: End) -> str:
    """Return a break-even as text: 0 for an option that always pays off, else a number, or the
    reason why it has none."""
    if value == "always":
        return _number(0.0)
    return words_costs.reason(value) if isinstance(value, str) else _number(value)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value + 0.0:.10g}"


def money_files(study: Study) -> list[ZipPart]:
    """Return the file of cost and value with every assumption; empty without prices or
    challengers."""
    money = study.money
    if money is None or not study.challengers:
        return []

    def content() -> bytes:
        return as_csv(
            costs.choices(study),
            money.assumptions,
            data=study.dataset.name,
            metric=study.title,
            hit=hit_title(study),
            currency=money.currency,
        )

    return [ZipPart("cost.csv", _("Cost and value of each option, and every assumption."), content)]
