"""Costs and returns in plain sentences: every figure, or the reason why it is missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar, cast

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import (
    level_percent,
    ngettext,
    number,
    paragraph,
    percent,
    quantity,
    signed,
    signed_percent,
)
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.statistics.verdict import has_width
from rankdash.core.study.costs import Choice
from rankdash.core.value.assumptions import MONTHS_PER_YEAR, Assumptions
from rankdash.core.value.payoff import Amount, End, Gain, MeasuredChange, least_value, return_on
from rankdash.core.words import prices
from rankdash.core.words.prices import money
from rankdash.core.words.verdicts import sentence

Answer = Literal["yes", "maybe", "open", "unproven", "doubtful", "no", "unknown"]


@dataclass(frozen=True)
class MoneyContext:
    """The context of sentences about money.

    metric, hit: titles of the metric and of the hit rate, which determines tickets and working
    time. level: of the intervals. baseline: its name. period: of the amounts. safe: escapes a name
    for the place that shows it.
    """

    currency: str
    metric: str
    hit: str
    level: float
    baseline: str
    period: Period
    safe: Callable[[str], str]


def reason(why: str | None) -> str:
    """Return why a figure is missing, in a few words; "" for None."""
    words = {
        "no_cost": _("no cost, so ROI is undefined"),
        "loses": _("loses money"),
        "tenfold": _("more than ten times the cost"),
        "no_gain": _("none: the quality does not rise"),
        "no_traffic": _("none: there are no searches"),
        "no_value": _("none: the value of a search is 0"),
        "no_setup": _("no one-off cost to earn back"),
        "never": _p("choice", "never"),
        "always": _("from the first search"),
        "unknown_cost": _("price unknown"),
        "unknown_gain": _("gain unknown"),
        "unset_price": _("needs your price"),
        "unset_value": _("needs the value of a search"),
        "unset_both": _("needs your price and the value of a search"),
    }
    return words[why] if why is not None else ""


_MOST_PERCENT = 1000.0


def _elasticity(value: float) -> str:
    """Return a percentage with two decimals, or two digits below 0.1; capped at
    `_MOST_PERCENT`."""
    if value > _MOST_PERCENT:
        return _("over {percent}%", percent=number(_MOST_PERCENT, 0))
    return f"{quantity(value, 2) if 0 < value < 0.1 else number(value, 2)}%"


_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "percent": percent,
    "months": partial(number, digits=1),
    "count": partial(number, digits=0),
    "elasticity": _elasticity,
    "times": lambda times: number(times, 1 if times < 10 else 0),
}


def cell(amount: Amount, currency: str, written: str = "money") -> tuple[str, str]:
    """Return value and interval of an estimate; without a value, the reason instead."""
    write = _WRITTEN.get(written) or partial(money, currency=currency)

    def end(of: End) -> str:
        if of == "always" and written == "elasticity":
            return _("from 0%")
        if isinstance(of, str):
            return reason(of)
        return "–" if of is None else write(of)

    if amount.value is None:
        pays_at_none = amount.reason == "always"
        value = end("always") if pays_at_none else reason(amount.reason)
    else:
        value = write(amount.value)
    bare = amount.low is None and amount.high is None
    if bare or amount.low == amount.value == amount.high:
        return value, ""
    low, high = end(amount.low), end(amount.high)
    if any(each is None or isinstance(each, str) for each in (amount.low, amount.high)):
        return value, f"{low} … {high}"
    return value, _("{low} … {high}", low=low, high=high)


def return_words(net: float, cost: float) -> str:
    """Return the return on a cost as a percentage, or the reason why it is missing."""
    roi = return_on(net, cost)
    return percent(roi, 2) if isinstance(roi, float) else reason(roi)


def answer(choice: Choice) -> Answer:
    """Return whether an option pays off.

    yes: also at the lower end of the change; an unproven gain counts as 0. maybe: every change that
    counts is proven and the net is positive, but its interval includes a loss. doubtful: the net is
    negative, but its interval includes a gain. unproven: a change that counts is not proven, and
    the option may pay off. open: the answer depends on a price or a value that is not set.
    """
    outcome, net = choice.outcome, choice.outcome.net_per_month
    if choice.option.gain is None:
        return "unknown"
    if choice.lacks_value:
        if not outcome.brings:
            return "no"
        return "open" if outcome.proven else "unproven"
    if outcome.pays:
        return "yes"
    hopeful = not isinstance(net.high, float) or net.high > 0
    if not outcome.proven and hopeful:
        return "unproven"
    if net.value is not None and net.value > 0:
        return "maybe"
    return "doubtful" if hopeful and net.high is not None else "no"


def headline(context: MoneyContext, choice: Choice, scenario: Assumptions) -> str:
    """Return one paragraph: the break-even, then the net under the assumptions.

    If the user set no price or no value, it contains only the break-even. Results from example
    values are marked.
    """
    lead, sentences = _answered(context, choice, scenario)
    line = _joined(lead, sentences)
    return f"{_('**Example values.**')} {line}" if choice.demonstrated else line


def in_short(context: MoneyContext, choice: Choice, scenario: Assumptions) -> str:
    """Return the answer and its most important number in one line. Example values are not marked:
    the page shows a chip."""
    lead, sentences = _answered(context, choice, scenario)
    if answer(choice) == "open" and any(sentences):
        lead = _("**{name}:**", name=context.safe(choice.name))
        if choice.unset and not choice.valued:
            sentences.insert(0, _times_the_price(context, choice, scenario))
    elif answer(choice) in ("yes", "maybe", "doubtful", "no") and not choice.lacks_value:
        net, interval = cell(context.period.of(choice.outcome.net_per_month), context.currency)
        value = _bold(context, net, interval)
        sentences = [_("Net {value} {period}.", value=value, period=context.period.name)]
    return _joined(lead, [each for each in sentences if each][:1])


def _joined(lead: str, sentences: Sequence[str]) -> str:
    # Markdown needs a space after bold text that ends with a full stop, in Chinese too.
    return f"{lead} {paragraph([each for each in sentences if each])}".rstrip()


def _answered(
    context: MoneyContext, choice: Choice, scenario: Assumptions
) -> tuple[str, list[str]]:
    """Return the answer and the sentences that follow it."""
    name = context.safe(choice.name)
    metric, level, span = context.metric, level_percent(context.level), context.period
    gain, outcome = choice.option.gain, choice.outcome
    cost, value = (span.of(each) for each in (outcome.cost_per_month, outcome.value_per_month))
    if gain is None:
        return _("**No answer for {name}.**", name=name), [_why_no_gain(context, choice)]
    kind, lacking = answer(choice), choice.lacks_value
    if kind == "no" and gain.relative.value <= 0 and not outcome.brings:
        unset = choice.unset and not choice.demonstrated
        return _never(context, choice, None if unset else money(cost.value, context.currency))
    even = (
        _break_even_of_set(context, choice, scenario)
        if lacking
        else _break_even(choice, metric, level)
    )
    if kind == "open":
        return _break_even_only(choice, name), [even]
    if kind == "unproven":
        worth, interval = cell(value, context.currency)
        value_words = _(
            "The value is {worth} {period}, for {cost}.",
            worth=_("{fact} ({of})", fact=worth, of=interval) if interval else worth,
            period=span.name,
            cost=money(cost.value, context.currency),
        )
        lead = _("**Not proven that {name} pays off.**", name=name)
        sentences = [_not_proven(context, gain), "" if lacking else value_words, even]
        return lead, sentences
    leads = {
        "yes": _("**{name} pays off under these assumptions.**", name=name),
        "maybe": _("**{name} probably pays off under these assumptions.**", name=name),
        "doubtful": _("**{name} probably does not pay off under these assumptions.**", name=name),
        "no": _("**{name} does not pay off under these assumptions.**", name=name),
    }
    net, interval = cell(span.of(outcome.net_per_month), context.currency)
    rest = _(
        "At the {elasticity}% assumed here it brings {value} {period} and costs {cost}: net {net}.",
        elasticity=number(scenario.elasticity, 2),
        value=money(value.value, context.currency),
        period=span.name,
        cost=money(cost.value, context.currency),
        net=f"**{net}** ({interval})" if interval else f"**{net}**",
    )
    note = _without_gain(gain.relative, metric) if kind == "yes" else ""
    if kind != "yes" and not outcome.proven:
        note = _not_proven(context, gain)
    built = scenario.setup_cost or scenario.monthly_cost
    if (
        not built
        and isinstance(outcome.net_per_month.value, float)
        and outcome.net_per_month.value > 0
    ):
        free = _("Setup and maintenance are counted as {zero}.", zero=money(0.0, context.currency))
        rest = paragraph([rest, free])
    return leads[kind], [note, even, "" if lacking else rest]


def _why_no_gain(context: MoneyContext, choice: Choice) -> str:
    """Return why the relative gain is missing: no verdict, or a baseline of 0."""
    verdict = choice.verdict
    if verdict is None:
        return _("The change of {metric} is not known yet.", metric=context.metric)
    if verdict.kind in ("too_few", "nothing_common", "no_values", "descriptive"):
        sides = (str(verdict.params[side]) for side in ("challenger", "baseline"))
        return sentence(verdict.named({name: context.safe(name) for name in sides}))
    return _(
        "{metric} of {baseline} is {value}, so there is no relative gain.",
        metric=context.metric,
        baseline=context.safe(context.baseline),
        value=number(cast(float, verdict.params["before"])),
    )


def _break_even_only(choice: Choice, name: str) -> str:
    """Return why only a break-even is shown."""
    if choice.bill is not None and choice.bill.lack:
        why = prices.lack(choice.bill)
        return _("**Break-even only: {name} has no price ({why}).**", name=name, why=why)
    if choice.unset:
        return _("**Break-even only: the price of {name} is not set.**", name=name)
    return _("**Break-even only: the value of a search is not set.**")


def _never(context: MoneyContext, choice: Choice, cost: str | None) -> tuple[str, list[str]]:
    """Return sentences for an option that does not pay off at any price. cost: of a period; None
    if no price is set."""
    gain, metric = choice.option.gain, context.metric
    lead = _("**{name} does not pay off at any price.**", name=context.safe(choice.name))
    if gain is None or gain.relative.proof == "same":
        change = _("It does not change {metric}.", metric=metric)
    else:
        by = signed_percent(gain.relative.value, 1)
        change = _("It changes {metric} by {change}.", metric=metric, change=by)
    if cost is None:
        return lead, [change]
    return lead, [change, _("It costs {cost} {period}.", cost=cost, period=context.period.name)]


def _without_gain(change: MeasuredChange, metric: str) -> str:
    """Return a note if an option pays off although no gain is proven; otherwise ""."""
    if not change.conclusive:
        return _("This is the case even though no gain in {metric} is proven.", metric=metric)
    if change.value < 0:
        return _(
            "This is the case even though {metric} falls by {change}, which is proven.",
            metric=metric,
            change=percent(-change.value, 1),
        )
    return ""


def _not_proven(context: MoneyContext, gain: Gain) -> str:
    """Return which of the changes behind the value is not proven, and why."""
    relative = not gain.relative.conclusive
    change = gain.relative if relative else gain.hit
    params = {
        "metric": context.metric if relative else context.hit,
        "change": signed_percent(change.value, 1) if relative else signed(change.value),
    }
    if change.low is None or change.high is None:
        return ngettext(
            "{metric} changes by {change}, but {n} query is too few for an interval.",
            "{metric} changes by {change}, but {n} queries are too few for an interval.",
            gain.queries,
            **params,
        )
    if change.low <= 0 <= change.high:
        return _("{metric} changes by {change}, but its interval includes 0.", **params)
    if gain.in_sample:
        return _(
            "{metric} changes by {change}, but these queries were used to tune weights, so the "
            "change is in-sample.",
            **params,
        )
    return _(
        "{metric} changes by {change}, but this may be due to chance (see the verdict).", **params
    )


def _break_even_of_set(context: MoneyContext, choice: Choice, scenario: Assumptions) -> str:
    """Return the break-even that follows from the price or value that the user set; without both,
    the least value of a search."""
    if choice.valued:
        return _break_even_price(context, choice, scenario)
    worth, interval = cell(choice.outcome.break_even_worth, context.currency)
    if choice.unset and choice.outcome.break_even_worth.reason != "no_traffic":
        return _least_value(context, choice, scenario)
    if choice.outcome.break_even_worth.value is None:
        return {
            "no_traffic": _("There are no searches, so there is nothing to gain."),
            "always": _("It pays off even if better ranking has no value."),
        }.get(choice.outcome.break_even_worth.reason or "", "")
    return _(
        "It pays off if a 1% higher {metric} is worth at least {worth} per 1,000 searches.",
        metric=context.metric,
        worth=_bold(context, worth, interval),
    )


def _least_value(context: MoneyContext, choice: Choice, scenario: Assumptions) -> str:
    """Return the least value of a search at which it pays off, at a price of one currency unit."""
    value = least_value(choice.option, scenario, 1.0)
    if value.value is None:
        always = _("It pays off even if better ranking has no value.")
        return always if value.reason == "always" else ""
    return _(
        "At a price of {price} for 1,000 searches, it pays off if a search is worth at least "
        "{worth}.",
        price=money(1.0, context.currency),
        worth=_bold(context, *cell(value, context.currency)),
    )


def _times_the_price(context: MoneyContext, choice: Choice, scenario: Assumptions) -> str:
    """Return the least value of a search at which it pays off, in multiples of its price; "" if it
    is not proportional to the price."""
    value, double = (least_value(choice.option, scenario, price) for price in (1.0, 2.0))
    if value.value is None or double.value is None:
        return ""
    if not math.isclose(2 * value.value, double.value):
        return ""

    def times(of: End) -> End:
        return 1000 * of if isinstance(of, float) else of

    of_price = Amount(1000 * value.value, times(value.low), times(value.high))
    n, interval = cell(of_price, context.currency, "times")
    return _(
        "It pays off if a search is worth at least {times} times what reranking it costs; for "
        "example, {worth} if reranking 1,000 searches costs {price}.",
        times=_bold(context, n, interval),
        worth=cell(value, context.currency)[0],
        price=money(1.0, context.currency),
    )


def _bold(context: MoneyContext, amount: str, interval: str) -> str:
    level = level_percent(context.level)
    if interval:
        return _("**{price}** ({level}: {interval})", price=amount, level=level, interval=interval)
    return f"**{amount}**"


def _break_even_price(context: MoneyContext, choice: Choice, scenario: Assumptions) -> str:
    """Return the highest price at which it pays off, with the assumptions behind it."""
    price, interval = cell(choice.outcome.break_even_price, context.currency)
    if choice.outcome.break_even_price.reason == "no_traffic":
        return _("There are no searches, so there is nothing to gain.")
    if choice.outcome.break_even_price.value is None:
        if scenario.monthly_cost and choice.outcome.brings:
            return _("Not even at price 0: its value is below its maintenance cost.")
        return _("Not even at price 0: the measured change has no value.")
    return _(
        "It pays off if 1,000 searches cost at most {price}, a search is worth {value}, and a "
        "1% higher {metric} raises value by {elasticity}%.",
        price=_bold(context, price, interval),
        value=money(scenario.value_per_search, context.currency),
        metric=context.metric,
        elasticity=quantity(scenario.elasticity),
    )


def _break_even(choice: Choice, metric: str, level: str) -> str:
    even, searches = choice.outcome.break_even_elasticity, choice.outcome.break_even_searches
    if choice.outcome.pays_without_gain:
        return _("It pays off even if better ranking has no value.")
    if even.value is None:
        return {
            "no_traffic": _("There are no searches, so there is nothing to gain."),
            "no_value": _("The value of a search is 0, so there is nothing to gain."),
        }.get(even.reason or "", "")
    need, interval = cell(even, "", "elasticity")
    text = _(
        "It pays off if a 1% higher {metric} raises value by at least **{need}**.",
        metric=metric,
        need=need,
    )
    if interval:
        text = _(
            "It pays off if a 1% higher {metric} raises value by at least **{need}** ({level}: "
            "{interval}).",
            metric=metric,
            need=need,
            level=level,
            interval=interval,
        )
    if searches.value is not None:
        since = ngettext(
            "At {n} or more searches per day.",
            "At {n} or more searches per day.",
            round(searches.value),
        )
        text = paragraph([text, since])
    return text


def sureness(context: MoneyContext, choice: Choice) -> str:
    """Return how certain the measured change is; prices and assumptions are used as set."""
    gain = choice.option.gain
    if gain is None or gain.relative.low is None:
        return ""
    low, high = gain.relative.low, gain.relative.high
    if high is None or not has_width(low, high):
        return _(
            "Certainty: {metric} changes by {change}, by the same share for each of {queries}, "
            "so there is no interval. Prices and assumptions are used as set.",
            metric=context.metric,
            change=signed_percent(gain.relative.value, 1),
            queries=ngettext("{n} query", "{n} queries", gain.queries),
        )
    params = {
        "metric": context.metric,
        "change": signed_percent(gain.relative.value, 1),
        "level": level_percent(context.level),
        "low": signed_percent(low, 1),
        "high": signed_percent(high, 1),
        "queries": ngettext("{n} query", "{n} queries", gain.queries),
    }
    if gain.judge:
        return _(
            "Certainty: {metric} changes by {change} ({level}: {low} … {high}), by the judge "
            "{judge}, corrected by labels of {queries}. Prices and assumptions are used as set.",
            judge=context.safe(gain.judge),
            **params,
        )
    if gain.labels:
        return ngettext(
            "Certainty: {metric} changes by {change} ({level}: {low} … {high}), estimated from "
            "{n} label. Prices and assumptions are used as set.",
            "Certainty: {metric} changes by {change} ({level}: {low} … {high}), estimated from "
            "{n} labels. Prices and assumptions are used as set.",
            gain.labels,
            **params,
        )
    return _(
        "Certainty: {metric} changes by {change} ({level}: {low} … {high}), measured on "
        "{queries}. Prices and assumptions are used as set.",
        **params,
    )


_Amount = TypeVar("_Amount", float | None, End)


@dataclass(frozen=True)
class Period:
    """The period of amounts. months: its length; the others are titles in the reader's language."""

    months: int
    name: str
    cost: str
    value: str
    net: str

    def of(self, monthly: Amount) -> Amount:
        """Return a monthly amount scaled to this period."""
        return Amount(
            self._times(monthly.value),
            self._times(monthly.low),
            self._times(monthly.high),
            monthly.reason,
        )

    def _times(self, amount: _Amount) -> _Amount:
        return amount if amount is None or isinstance(amount, str) else amount * self.months


def month() -> Period:
    return Period(1, _("per month"), _("cost per month"), _("value per month"), _("net per month"))


def year() -> Period:
    return Period(
        MONTHS_PER_YEAR, _("per year"), _("cost per year"), _("value per year"), _("net per year")
    )
