"""Sentences of the overview: caveats, and the next step of an estimate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rankdash.core.base.i18n import (
    all_of,
    finding_text,
    ngettext,
    number,
    paragraph,
    percent,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.sampling.estimate import Estimate
from rankdash.core.sampling.status import LabelStatus
from rankdash.core.study.derived_groups import DERIVED_SEGMENTS
from rankdash.core.study.query_groups import Group
from rankdash.core.study.study import Study
from rankdash.core.words import prices
from rankdash.core.words.prices import money
from rankdash.core.words.queries import first_stage, unknown_tokens
from rankdash.features.cost.costs import Choice
from rankdash.features.label.words import effort_sentence
from rankdash.features.overview.caveats import (
    Caveat,
    ExamplePrice,
    Implausible,
    MadeBaseline,
    NearCeiling,
    NoNegatives,
    OtherMetrics,
    RefusedRows,
    ShippedTimings,
    ShortLists,
    TurnedGroups,
    UnknownTokens,
    Unlabelled,
    UnprovenLead,
    caveats,
)

Fit = Callable[[str], str]
_DERIVED = {each.name: each for each in DERIVED_SEGMENTS}
_NAMED = 3


def caveat_lines(study: Study, challenger: str, fit: Fit = str) -> list[str]:
    """One sentence a caveat. fit: makes names and values from the data fit for where they stand."""
    return [caveat_line(study, each, fit) for each in caveats(study, challenger)]


def caveat_line(study: Study, caveat: Caveat, fit: Fit = str) -> str:
    """One of them."""
    baseline = fit(study.name(study.baseline))
    match caveat:
        case Implausible():
            return fit(finding_text(caveat.finding))
        case RefusedRows():
            return _(
                "{count} of {rows} rows of the files were excluded: the verdict is about the "
                "others.",
                count=number(caveat.count, 0),
                rows=number(caveat.rows, 0),
            )
        case Unlabelled():
            return _unlabelled(study, caveat, baseline)
        case MadeBaseline():
            return _made_baseline(caveat, baseline)
        case UnknownTokens():
            return unknown_tokens(fit(study.name(caveat.system)), caveat.share)
        case TurnedGroups():
            named = kinds(study, caveat.groups, fit)
            if caveat.worse:
                return _("Worse for some kinds of queries: {kinds}.", kinds=named)
            return _("Better for some kinds of queries: {kinds}.", kinds=named)
        case UnprovenLead():
            return _(
                "The lead over {other} ({delta}) is not proven.",
                other=fit(study.name(caveat.other)),
                delta=signed(caveat.delta),
            )
        case OtherMetrics():
            return _other_metrics(caveat)
        case ShortLists():
            return ngettext(
                "{name} lists at most {n} document per query and the other ranking {others}: "
                "{metric} also measures how many documents each lists.",
                "{name} lists at most {n} documents per query and the other ranking {others}: "
                "{metric} also measures how many documents each lists.",
                caveat.documents,
                name=fit(study.name(caveat.system)),
                others=number(caveat.others, 0),
                metric=study.measure.title,
            )
        case NearCeiling():
            return _(
                "The test set is too easy to tell rerankers apart: {baseline} reaches {value}; the "
                "best possible {metric} is {best}.",
                baseline=baseline,
                value=number(caveat.value),
                metric=study.measure.title,
                best=number(caveat.best),
            )
        case NoNegatives():
            return ngettext(
                "The test set is too easy: all candidates of {queries} of {n} query are relevant, "
                "so no order is wrong.",
                "The test set is too easy: all candidates of {queries} of {n} queries are "
                "relevant, so no order is wrong.",
                caveat.n,
                queries=number(caveat.queries, 0),
            )
        case ExamplePrice():
            return _example_price(caveat)
        case ShippedTimings():
            return _("The latency comes with the sample; it was not measured on this machine.")


def _unlabelled(study: Study, caveat: Unlabelled, baseline: str) -> str:
    shares = {
        "share": percent(caveat.challenger),
        "baseline": baseline,
        "other": percent(caveat.baseline),
    }
    found = (
        _("{share} of the ranked documents have no label ({baseline}: {other}).", **shares)
        if study.cutoff is None
        else _(
            "{share} of the top {k} have no label ({baseline}: {other}).",
            k=number(study.cutoff, 0),
            **shares,
        )
    )
    counted = _("They are skipped.") if caveat.skipped else _("They count as not relevant.")
    return paragraph([found, counted])


def _made_baseline(caveat: MadeBaseline, baseline: str) -> str:
    said = [
        _(
            "{baseline} is not your own search: {made}.",
            baseline=baseline,
            made=first_stage(caveat.how),
        )
    ]
    if caveat.labelled_only:
        said.append(
            _(
                "It ranks labelled documents only: a search would have to find them among all "
                "others, so its values are higher here."
            )
        )
    return paragraph(said)


def _other_metrics(caveat: OtherMetrics) -> str:
    better, worse = all_of(caveat.better), all_of(caveat.worse)
    if not worse:
        return _("Proven better on {metrics}.", metrics=better)
    if not better:
        return _("Proven worse on {metrics}.", metrics=worse)
    return _("Proven better on {better}, proven worse on {worse}.", better=better, worse=worse)


def kinds(study: Study, groups: Sequence[Group], fit: Fit = str) -> str:
    """The first kinds of queries by name, in the reader's language where rankdash named them, and
    how many others there are."""
    named = [_kind(study, each, fit) for each in groups[:_NAMED]]
    more = len(groups) - _NAMED
    if more > 0:
        named.append(ngettext("{n} other kind", "{n} other kinds", more))
    return all_of(named)


def _kind(study: Study, group: Group, fit: Fit) -> str:
    own = None if group.column in study.dataset.segments else _DERIVED[group.column]
    said = {
        "column": fit(group.column if own is None else _(own.title)),
        "value": fit(group.value if own is None else _(group.value)),
        "queries": ngettext("{n} query", "{n} queries", group.n),
        "change": signed(group.delta),
    }
    return (
        _("{column} “{value}” ({queries}, {change}, proven)", **said)
        if group.proven
        else _("{column} “{value}” ({queries}, {change}, not proven)", **said)
    )


def _example_price(caveat: ExamplePrice) -> str:
    return _(
        "{amount} for 1,000 searches is assumed ({reasons}).",
        amount=money(caveat.bill.per_thousand, caveat.bill.currency),
        reasons=all_of(prices.marks(caveat.bill)),
    )


# Sentences of the overview.


def estimate_step(status: LabelStatus, found: Estimate, choice: Choice, priced: bool) -> str:
    """Return one thing to do. priced: whether somebody set price and assumptions."""
    names = {"name": found.challenger, "baseline": found.baseline}
    if not found.settled and found.state != "complete":
        return paragraph([_("Label on, then decide."), effort_sentence(status)])
    if found.difference < 0:
        return _("Stop: keep {baseline}. {name} is worse.", **names)
    if found.difference == 0:
        return _("Stop: keep {baseline}. {name} changes nothing that counts.", **names)
    if not priced:
        return _(
            "Set the price of {name} and the value of a search, then compare gain and cost.",
            **names,
        )
    net = choice.came.net_per_month.value
    if net is not None and net <= 0:
        return _(
            "Stop: keep {baseline}. {name} costs more than it brings under these assumptions.",
            **names,
        )
    return _(
        "Run a trial: serve {name} to part of the traffic and compare it with {baseline}.", **names
    )
