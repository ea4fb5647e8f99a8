"""What it costs, from when on it pays, and everything that this takes for granted."""

from __future__ import annotations

from rankdash.core.base.html import html_safe
from rankdash.core.base.i18n import all_of, brief, enumerated, paragraph, percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.value.assumptions import ASSUMPTIONS
from rankdash.features.cost import charts, words_assumptions, words_costs, words_prices
from rankdash.features.cost.costs import Choice
from rankdash.features.cost.gains import hit_title
from rankdash.features.cost.report_draft import MoneyDraft
from rankdash.features.latency.words_latency import without_p95
from rankdash.kit.html.draft import DASH
from rankdash.kit.html.html_page import PageTable, listed, prose, table


def draw(draft: MoneyDraft) -> str:
    study, money = draft.study, draft.money
    sentences = []
    for challenger in study.challengers:
        choice = draft.choice(challenger)
        cautions = words_prices.cautions(choice, money.assumptions.latency_target_ms)
        sentences += [
            words_costs.headline(draft.context, choice, money.assumptions),
            words_costs.sureness(draft.context, choice),
            _("Caveats: {cautions}.", cautions=all_of(cautions)) if cautions else "",
            words_assumptions.passages(choice, money.assumptions),
        ]
    maps = [charts.break_even(study, challenger) for challenger in study.challengers]
    return "".join(
        [
            prose(_whose(draft)),
            listed([each for each in sentences if each]),
            _figures(draft),
            *(draft.titled(each) for each in maps if each is not None),
            f"<h3>{html_safe(_('Assumptions'))}</h3>",
            _assumptions(draft),
        ]
    )


def _whose(draft: MoneyDraft) -> str:
    """Which prices and assumptions somebody set, and which are defaults, by name."""
    money, study = draft.money, draft.study
    unset = [each.name for each in draft.choices if each.unset]
    own = [study.name(system) for system in study.challengers if study.name(system) not in unset]
    made = [_("Price of {name}", name=name) for name in own]
    made += [_(each.title) for each in ASSUMPTIONS if each.name in money.given]
    examples = [each.name for each in draft.choices if each.demonstrated]
    sentences = [
        _(
            "**Example values, for demonstration: value, net and return of {systems} are not "
            "results.**",
            systems=enumerated(examples),
        )
        if examples
        else "",
        _("Set for this report: {names}.", names=enumerated(made))
        if made
        else _("**Nobody set prices or assumptions for this report.**"),
    ]
    if unset:
        sentences.append(_("**Price not set: {systems}.**", systems=enumerated(unset)))
    sentences.append(words_assumptions.defaults(money))
    if unset or money.defaults:
        sentences.append(
            _(
                "To set them, use the page Cost & ROI of rankdash, or --assumptions on its command "
                "line."
            )
        )
    return paragraph([each for each in sentences if each])


def _figures(draft: MoneyDraft) -> str:
    """A row a figure, a column an option."""
    columns = [_column(draft, choice) for choice in draft.choices]
    span = draft.context.period
    titles = [
        *(_("price"), _("cost of 1,000 searches"), span.cost, span.value, span.net),
        *(_("return on the cost"), _("months to pay back")),
        *(_("break-even: value gained for 1% quality"), _("break-even searches a day")),
        _("break-even: value of 1% quality, 1,000 searches"),
        *(_("break-even price of 1,000 searches"), _("p95 added")),
    ]
    rows = [
        (title, *cells)
        for title, *cells in zip(titles, *columns, strict=True)
        if any(cell != DASH for cell in cells)
    ]
    content = PageTable(
        (_("figure"), *(choice.name for choice in draft.choices)),
        rows,
        frozenset(range(1, len(columns) + 1)),
    )
    if all(choice.option.gain is None for choice in draft.choices[1:]):
        return table(content)
    notes = _(
        "In brackets: the results at the ends of the verdict's {level} interval; prices and "
        "assumptions are held fixed, so the brackets show how sure the measurement is, not how "
        "good the assumptions are.",
        level=percent(draft.study.statistics.level),
    )
    return table(content) + prose(notes, "muted")


def _column(draft: MoneyDraft, choice: Choice) -> list[str]:
    money, came, span = draft.money, choice.came, draft.context.period

    def said(found: tuple[str, str]) -> str:
        return f"{found[0]} ({found[1]})" if found[1] else found[0]

    def written(of: str) -> str:
        if (getattr(came, of).reason or "").startswith("unset"):
            return DASH
        kinds = {"roi": "percent", "payback_months": "months", "break_even_searches": "count"}
        kinds["break_even_elasticity"] = "elasticity"
        return said(words_costs.cell(getattr(came, of), money.currency, kinds.get(of, "money")))

    price = DASH
    if choice.bill is not None:
        price = words_prices.of(choice.bill)
    if choice.example:
        price = _("{price} (example price)", price=price)
    cost = written("cost_per_month")
    if choice.option.free:
        return [DASH, written("cost_per_thousand"), cost, *[DASH] * 9]
    p95 = choice.waiting.p95
    follows = (
        *("net_per_month", "roi", "payback_months", "break_even_elasticity"),
        *("break_even_searches", "break_even_worth", "break_even_price"),
    )
    return [
        price,
        written("cost_per_thousand"),
        cost,
        DASH
        if choice.lacks_value and choice.option.gain is not None
        else said(words_costs.cell(span.of(came.value_per_month), money.currency)),
        # Without a gain the value says so, and nothing follows from it.
        *([DASH] * len(follows) if choice.option.gain is None else map(written, follows)),
        without_p95(choice.waiting.timed) if p95 is None else _("{ms} ms", ms=brief(p95)),
    ]


def _assumptions(draft: MoneyDraft) -> str:
    hit = hit_title(draft.study)
    rows = words_assumptions.rows(draft.money.assumptions, draft.choices, draft.money.currency, hit)
    head = (_("assumption"), _("value"), _("meaning"))
    return table(PageTable(head, rows))
