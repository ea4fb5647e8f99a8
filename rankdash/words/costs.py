"""Outcomes in plain sentences: every figure, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext, number, paragraph, percent, signed_percent
from rankdash.study.costs import Choice, billed
from rankdash.study.study import Study
from rankdash.value.assumptions import MONTHS_PER_YEAR, Assumptions
from rankdash.value.payoff import Estimate, Gain
from rankdash.words import prices
from rankdash.words.money import money

Answer = Literal["yes", "maybe", "unproven", "no", "unknown"]


@dataclass(frozen=True)
class Period:
    """What amounts are for. months: how many; the rest are titles in the reader's language."""

    months: int
    name: str
    cost: str
    value: str
    net: str

    def of(self, monthly: Estimate) -> Estimate:
        """The same for this period."""
        return Estimate(
            self._times(monthly.value),
            self._times(monthly.low),
            self._times(monthly.high),
            monthly.reason,
        )

    def _times(self, amount: float | None) -> float | None:
        return None if amount is None else amount * self.months


def month() -> Period:
    return Period(1, _("a month"), _("cost a month"), _("value a month"), _("net a month"))


def year() -> Period:
    return Period(
        MONTHS_PER_YEAR, _("a year"), _("cost a year"), _("value a year"), _("net a year")
    )


@dataclass(frozen=True)
class MoneyContext:
    """What sentences about money have to know. metric: its title. level: of the intervals.
    baseline: its name. period: that amounts are for. safe: makes a name fit for where it stands."""

    currency: str
    metric: str
    level: float
    baseline: str
    period: Period
    safe: Callable[[str], str]


def reason(why: str | None) -> str:
    """Why a figure does not exist, in a few words."""
    words = {
        "no_cost": _("nothing is spent, so there is no return on it"),
        "no_gain": _("none: the quality does not rise"),
        "no_traffic": _("none: there are no searches"),
        "no_value": _("none: a search is worth nothing here"),
        "no_setup": _("no one-off cost to earn back"),
        "never": _("never"),
        "always": _("from the first search"),
        "unknown_cost": _("no price known"),
        "unknown_gain": _("no gain measured"),
    }
    return words[why] if why is not None else ""


def _elasticity(value: float) -> str:
    return f"{_small_number(value)} %"


def _small_number(value: float | None) -> str:
    """Two decimals, and never 0 for what is only small."""
    return "< 0.01" if value is not None and 0 < value < 0.005 else number(value, 2)


def _months(value: float) -> str:
    return number(value, 1)


def _count(value: float) -> str:
    return number(value, 0)


_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "percent": percent,
    "months": _months,
    "count": _count,
    "elasticity": _elasticity,
}


def cell(found: Estimate, currency: str, written: str = "money") -> tuple[str, str]:
    """(value, its interval) of an estimate; (the reason why there is none, "")."""
    if found.value is None:
        return reason(found.reason), ""
    write = _WRITTEN.get(written) or partial(money, currency=currency)
    if (found.low is None and found.high is None) or found.low == found.value == found.high:
        return write(found.value), ""
    low, high = (_("never") if end is None else write(end) for end in (found.low, found.high))
    return write(found.value), f"{low} … {high}"


def worth(found: Estimate, gain: Gain | None, level: float, currency: str) -> tuple[str, str]:
    """As `cell`, of a value; "0 to X" where the gain may be nothing."""
    unsure = gain is not None and len(gain.draws) > 0 and not gain.proven(level)
    if unsure and found.high is not None and found.high > 0:
        return _("0 to {high}", high=money(found.high, currency)), ""
    return cell(found, currency)


def answer(choice: Choice, level: float) -> Answer:
    """Does it pay? yes and maybe need a proven gain; yes, that it pays at the lower limit too."""
    gain, net = choice.option.gain, choice.came.net_per_month
    if gain is None or net.value is None:
        return "unknown"
    # Without a gain it may still pay by answers found, or by what an LLM no longer reads.
    if gain.relative > 0 and not choice.came.proven:
        return "unproven"
    if net.value <= 0:
        return "no"
    return "yes" if net.low is not None and net.low > 0 else "maybe"


def headline(context: MoneyContext, choice: Choice, scenario: Assumptions) -> str:
    """Break-even first, then what it comes to under the assumptions; one paragraph."""
    name = context.safe(choice.name)
    metric, level, span = context.metric, percent(context.level), context.period
    gain, came = choice.option.gain, choice.came
    cost, value = (span.of(each) for each in (came.cost_per_month, came.value_per_month))
    if gain is None:
        return _(
            "**No answer for {name}.** {metric} of {baseline} is 0, or no query can be compared, "
            "so there is no relative gain.",
            name=name,
            metric=metric,
            baseline=context.safe(context.baseline),
        )
    if choice.option.cost_per_search is None:
        return _(
            "**No answer for {name}.** Its price is not in {currency}; choose one that is.",
            name=name,
            currency=context.currency,
        )
    change = signed_percent(gain.relative, 1)
    kind = answer(choice, context.level)
    net, interval = cell(span.of(came.net_per_month), context.currency)
    if gain.relative <= 0 and (value.value or 0.0) <= 0:
        if gain.relative == 0:
            return _(
                "**No: {name} does not pay at any price.** It leaves {metric} as it is, and costs "
                "{cost} {period}.",
                name=name,
                metric=metric,
                cost=money(cost.value, context.currency),
                period=span.name,
            )
        return _(
            "**No: {name} does not pay at any price.** It changes {metric} by {change}, and costs "
            "{cost} {period}.",
            name=name,
            metric=metric,
            change=change,
            cost=money(cost.value, context.currency),
            period=span.name,
        )
    if kind == "unproven":
        return _(
            "**Not proven that {name} pays.** {metric} changes by {change}, but its interval "
            "includes 0: the value is {worth} {period}, for {cost}. {even}",
            name=name,
            metric=metric,
            change=change,
            worth=worth(value, gain, context.level, context.currency)[0],
            cost=money(cost.value, context.currency),
            period=span.name,
            even=_break_even(choice, metric, level),
        )
    lead = {
        "yes": _("**{name} pays under these assumptions.**", name=name),
        "maybe": _("**{name} probably pays under these assumptions.**", name=name),
        "no": _("**{name} does not pay under these assumptions.**", name=name),
    }[kind]
    rest = _(
        "At the {elasticity} % assumed here it brings {value} {period} and costs {cost}: net "
        "{net}.",
        elasticity=number(scenario.elasticity, 2),
        value=money(value.value, context.currency),
        period=span.name,
        cost=money(cost.value, context.currency),
        net=f"**{net}** ({interval})" if interval else f"**{net}**",
    )
    # Markdown wants a blank after bold text that ends in a full stop, in Chinese too.
    return f"{lead} {paragraph([_break_even(choice, metric, level), rest])}"


def _break_even(choice: Choice, metric: str, level: str) -> str:
    even, searches = choice.came.break_even_elasticity, choice.came.break_even_searches
    if even.value is None:
        return {
            "always": _("It pays even if better ranking were worth nothing."),
            "no_traffic": _("There are no searches, so nothing can be won."),
            "no_value": _("A search is worth nothing here, so nothing can be won."),
        }.get(even.reason or "", "")
    text = _(
        "It pays if 1 % more {metric} brings at least **{need} %** more value ({level}: {low} … "
        "{high}).",
        metric=metric,
        need=_small_number(even.value),
        level=level,
        low=_small_number(even.low),
        high=_small_number(even.high) if even.high is not None else _("never"),
    )
    if searches.value is not None:
        since = _("From {n} searches a day on.", n=number(searches.value, 0))
        text = paragraph([text, since])
    return text


def passages(choice: Choice, scenario: Assumptions) -> str:
    """What may be saved on an LLM's input, or why nothing is claimed; "" where no LLM is asked
    about."""
    if scenario.passages < 1 or choice.option.free or not choice.system:
        return ""
    if choice.passages is None:
        return _(
            "No saving on the LLM is claimed: no number of reranked passages surely holds the "
            "recall of the first {n}.",
            n=number(scenario.passages, 0),
        )
    return _(
        "{after} reranked passages surely hold the recall of the first {n}: the LLM reads "
        "{saved} fewer tokens a search.",
        after=number(choice.passages, 0),
        n=number(scenario.passages, 0),
        saved=number((scenario.passages - choice.passages) * scenario.passage_tokens, 0),
    )


def sureness(context: MoneyContext, choice: Choice) -> str:
    """How sure the measurement is, and that the rest is taken as it is set."""
    gain = choice.option.gain
    ends = gain.interval(context.level) if gain is not None else None
    if gain is None or ends is None:
        return ""
    return _(
        "How sure: {metric} changes by {change} ({level}: {low} … {high}), measured on {queries}. "
        "Prices and assumptions are taken as they are set.",
        metric=context.metric,
        change=signed_percent(gain.relative, 1),
        level=percent(context.level),
        low=signed_percent(ends[0], 1),
        high=signed_percent(ends[1], 1),
        queries=ngettext("{n} query", "{n} queries", gain.queries),
    )


def cautions(choice: Choice, target_ms: float) -> list[str]:
    """In a word or two each, what makes the figures of an option less than sure."""
    sentences = []
    if choice.price is not None:
        sentences = prices.marks(choice.price, choice.load.estimated, choice.rate_measured)
    p95 = choice.waiting.p95
    if choice.system and p95 is None:
        sentences.append(_("latency not measured"))
    elif p95 is not None and p95 > target_ms:
        sentences.append(
            _(
                "▼ p95 of {ms} ms misses the target of {target} ms",
                ms=number(p95, 0),
                target=number(target_ms, 0),
            )
        )
    return sentences


def search_cost(study: Study, system: str) -> str:
    """ "$0.14 for 1,000 searches (example price)"; "" where nothing is billed."""
    cost = billed(study, system)
    if cost is None:
        return ""
    text = _(
        "{amount} for 1,000 searches", amount=money(cost.per_thousand, cost.listed.price.currency)
    )
    unsure = prices.marks(cost.listed, cost.estimated, cost.rate_measured)
    return f"{text} ({prices.joined(unsure)})" if unsure else text
