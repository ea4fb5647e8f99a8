"""Caveats on costs, the figures of each system, and assumptions as table rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rankdash.core.base.i18n import brief, ngettext, number, separated, signed_percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.measured import meets
from rankdash.core.study.costs import Choice, system_of
from rankdash.core.study.labelling import only_estimates
from rankdash.core.study.pricing import Bill
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumptions
from rankdash.core.value.payoff import Amount
from rankdash.core.value.prices import UNITS
from rankdash.core.words.costs import MoneyContext, cell
from rankdash.core.words.latency import added, milliseconds, without_p95
from rankdash.core.words.prices import lack, marks, money, notes, of, value
from rankdash.core.words.verdicts import interval


def cautions(choice: Choice, target_ms: float, *, latency: bool = True) -> list[str]:
    """Return short caveats on the figures of an option. latency: whether to include latency."""
    bill = choice.bill
    remarks = () if bill is None else (lack(bill), *marks(bill))
    if choice.demonstrated:
        remarks = (_("example values"), *remarks)
    sentences = [each for each in remarks if each]
    waited, p95 = choice.waiting, choice.waiting.p95
    if not latency:
        return sentences
    if choice.waiting.busy and p95 is not None and _("machine was busy") not in sentences:
        sentences.append(_("machine was busy"))
    if choice.system and p95 is None:
        sentences.append(_("latency: {reason}", reason=without_p95(waited.timed, waited.whole)))
    elif p95 is not None and not meets(p95, target_ms):
        sentences.append(
            _(
                "▼ p95 of {ms} ms misses the target of {target} ms",
                ms=brief(p95, target_ms),
                target=brief(target_ms, p95),
            )
        )
    return sentences


def caveats(choice: Choice, target_ms: float, *, latency: bool = True) -> str:
    """Return the caveats of `cautions` joined by semicolons; "" if there are none."""
    return separated(cautions(choice, target_ms, latency=latency))


# Figures of each option, one row each.


def figures(
    study: Study, choices: Sequence[Choice], context: MoneyContext, *, alone: bool = False
) -> tuple[list[str], list[list[str]]]:
    """Return the headings and one row for each option, without empty columns. In brackets: results
    at the ends of the measured change. alone: without quality, price and caveats."""
    target_ms, span = (study.money or Money()).assumptions.latency_target_ms, context.period
    head = [
        *(_p("column", "system"), study.title, _("cost of 1,000 searches")),
        *(span.cost, span.value, span.net, _("return on cost"), _("payback time in months")),
        *(_("break-even: value gained per 1% of quality"), _("break-even searches per day")),
        _("break-even: value of 1% of quality per 1,000 searches"),
        *(
            _("break-even price of 1,000 searches"),
            _("p95 added"),
            _p("column", "price"),
            _p("column", "caveats"),
        ),
    ]
    rows = [
        [
            choice.name,
            _quality(study, choice),
            *_amounts(choice, context),
            _p95(study, choice, target_ms),
            "" if choice.bill is None else of(choice.bill),
            caveats(choice, target_ms, latency=False),
        ]
        for choice in choices
    ]
    beside = {1, len(head) - 2, len(head) - 1} if alone else set()
    used = [at for at in range(len(head)) if at not in beside and any(row[at] for row in rows)]
    return [head[at] for at in used], [[row[at] for at in used] for row in rows]


def _amounts(choice: Choice, context: MoneyContext) -> list[str]:
    outcome = choice.outcome

    def written(estimate: Amount, kind: str = "money") -> str:
        if (estimate.reason or "").startswith("unset"):
            return ""
        amount, ends = cell(estimate, context.currency, kind)
        return _("{fact} ({of})", fact=amount, of=ends) if ends else amount

    thousand = written(outcome.cost_per_thousand)
    cost = written(context.period.of(outcome.cost_per_month))
    if choice.bill is not None and choice.option.cost_per_search is None:
        thousand, cost = lack(choice.bill), ""
    if choice.option.free:
        return [thousand, cost, *[""] * 8]
    brought = context.period.of(outcome.value_per_month)
    if choice.option.gain is None:
        # Without a gain, the other figures cannot be computed.
        return [thousand, cost, written(brought), *[""] * 7]
    return [
        *(thousand, cost, "" if choice.lacks_value else written(brought)),
        *(written(context.period.of(outcome.net_per_month)), written(outcome.roi, "percent")),
        ""
        if outcome.payback_months.reason == "no_setup"
        else written(outcome.payback_months, "months"),
        written(outcome.break_even_elasticity, "elasticity"),
        ""
        if outcome.break_even_searches.reason == "always"
        else written(outcome.break_even_searches, "count"),
        written(outcome.break_even_worth) if choice.lacks_value else "",
        written(outcome.break_even_price),
    ]


def _quality(study: Study, choice: Choice) -> str:
    """Return the mean with its interval; for sampled labels, the estimated change."""
    system, gain = system_of(study, choice), choice.option.gain
    if system is None:
        return _("not measured")
    if only_estimates(study):
        if gain is None or choice.option.free or gain.relative.low is None:
            return ""
        ends = (gain.relative.value, gain.relative.low, gain.relative.high or 0.0)
        change, low, high = (signed_percent(each, 1) for each in ends)
        return _("{fact} ({of})", fact=change, of=f"{low} … {high}")
    mean, low_end, high_end = study.mean(system)
    if not math.isfinite(low_end):
        return number(mean)
    return _("{fact} ({of})", fact=number(mean), of=interval(low_end, high_end))


def _p95(study: Study, choice: Choice, target_ms: float) -> str:
    p95, system = choice.waiting.p95, system_of(study, choice)
    if system is None:
        return ""
    if p95 is None:
        return without_p95(choice.waiting.timed, choice.waiting.whole)
    # The baseline adds no latency, even if it is a reranker.
    beside = added(study.run(system)) if p95 else ""
    if not meets(p95, target_ms):
        beside = _("▼ over {ms} ms", ms=brief(target_ms, p95))
    time = milliseconds(p95, target_ms)
    return _("{fact} ({of})", fact=time, of=beside) if beside else time


# All assumptions of a calculation, as rows for the page and every export.


def assumption_table(
    scenario: Assumptions, choices: Sequence[Choice], currency: str, hit: str
) -> list[tuple[str, str, str]]:
    """Return (title, value, meaning) for each assumption and price. hit: title of the hit rate that
    defines "answers found"."""
    rows = []
    for each in ASSUMPTIONS:
        amount = value(each, getattr(scenario, each.name), currency)
        rows.append((_p("setting", each.title), amount, _(each.help)))
    rows.append(
        (
            _("Answers found"),
            hit,
            _("Tickets and working time depend on this: a relevant document among the first k."),
        )
    )
    for choice in choices:
        if choice.bill is not None:
            rows.append(
                (
                    _("Price of {name}", name=choice.name),
                    _priced(choice.bill),
                    " · ".join(notes(choice.bill)),
                )
            )
            rows.append(_sent(choice))
    return rows


def _priced(bill: Bill) -> str:
    """Return an amount with its unit."""
    if bill.listed is None:
        return money(bill.per_thousand, bill.currency) if bill.parts else "–"
    price = bill.listed.price
    return f"{money(price.amount, price.currency)} {_p('unit', UNITS[price.unit])}"


def _sent(choice: Choice) -> tuple[str, str, str]:
    """Return an assumption row on the text of a search: (title, documents with their tokens,
    whether the tokens were counted or estimated)."""
    load, title = choice.load.load, _("Payload per search for {name}", name=choice.name)
    documents = round(float(load.documents))
    if math.isnan(float(load.document_tokens)):
        sent = ngettext("{n} document", "{n} documents", documents)
        return title, sent, _("tokens unknown: no texts")
    return (
        title,
        ngettext(
            "{n} document of {tokens} tokens, query of {query}",
            "{n} documents of {tokens} tokens, query of {query}",
            documents,
            tokens=number(float(load.document_tokens), 0),
            query=number(float(load.query_tokens), 0),
        ),
        _("tokens estimated: this run counted none")
        if choice.load.estimated
        else _("tokens counted by the run"),
    )


def passages(choice: Choice, scenario: Assumptions) -> str:
    """Return a sentence on the LLM input that reranking saves, or on why no saving is assumed; ""
    if no LLM is assumed."""
    if scenario.passages < 1 or choice.option.free or not choice.system:
        return ""
    if choice.passages is None:
        return _(
            "No LLM saving is assumed: no smaller number of reranked passages reliably matches "
            "the recall of the first {n}.",
            n=number(scenario.passages, 0),
        )
    return _(
        "{after} reranked passages reliably match the recall of the first {n}: the LLM reads "
        "{saved} fewer tokens per search.",
        after=number(choice.passages, 0),
        n=number(scenario.passages, 0),
        saved=number((scenario.passages - choice.passages) * scenario.passage_tokens, 0),
    )
