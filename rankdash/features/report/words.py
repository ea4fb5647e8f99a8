"""A decision in sentences: findings, risks, gaps, next step."""

from __future__ import annotations

from collections.abc import Callable

from rankdash.core.base.i18n import brief, ngettext, number, paragraph, percent, plain, quantity
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.text import shortened
from rankdash.core.data.measured import FEWEST_TIMED, meets
from rankdash.core.statistics.planning import FEWEST_PLANNED
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.words import prices
from rankdash.core.words.labelling import STEPS
from rankdash.core.words.verdicts import kinds
from rankdash.features.overview.caveat import Section
from rankdash.features.overview.caveats import GAINS
from rankdash.features.report.decision import Decision, HitCounts

_LONGEST = 200


def hits(counts: HitCounts) -> str:
    """Return how many queries have a relevant document in the top k, before and after reranking."""
    return ngettext(
        "{before} → {after} of {n} query has a relevant document in the top {k}.",
        "{before} → {after} of {n} queries have a relevant document in the top {k}.",
        counts.n,
        before=number(counts.before, 0),
        after=number(counts.after, 0),
        k=counts.k,
    )


def other_metrics(study: Study, decision: Decision) -> str:
    """Return the verdicts on the other metrics; "" if none is proven."""
    return "".join(_caveats(study, decision, "result", str))


def risks(study: Study, decision: Decision, fit: Callable[[str], str] = str) -> list[str]:
    """Return losses, unproven gains and missing measurements. fit: escapes a name for the
    document."""
    name = fit(study.name(decision.challenger))
    sentences = [_hurt(study, decision, fit)] if study.measures_quality else []
    worse = [each for each in decision.groups if each.proven]
    unproven = [each for each in decision.groups if not each.proven]
    if worse:
        sentences.append(_("Worse in: {groups}.", groups=kinds(study, worse, fit)))
    if unproven and decision.kind in GAINS:
        sentences.append(_("No gain is proven in: {groups}.", groups=kinds(study, unproven, fit)))
    p95, target = decision.choice.waiting.p95, decision.target_ms
    if decision.choice.waiting.whole:
        sentences.append(
            _(
                "The latency of {name} is of the whole search, and the latency of the first stage "
                "is unknown. It is unknown how much {name} adds.",
                name=name,
            )
        )
    elif p95 is None and (timed := decision.choice.waiting.timed):
        sentences.append(
            ngettext(
                "Latency was measured for {n} query, and p95 needs {fewest}. It is unknown "
                "whether {name} meets the target of {target} ms (p95).",
                "Latency was measured for {n} queries, and p95 needs {fewest}. It is unknown "
                "whether {name} meets the target of {target} ms (p95).",
                timed,
                fewest=number(FEWEST_TIMED, 0),
                name=name,
                target=brief(target),
            )
        )
    elif p95 is None:
        sentences.append(
            _(
                "Latency was not measured, so it is unknown whether {name} meets the target of "
                "{target} ms (p95).",
                name=name,
                target=brief(target),
            )
        )
    elif not meets(p95, target):
        sentences.append(
            _(
                "p95 latency is {ms} ms, above the target of {target} ms.",
                ms=brief(p95, target),
                target=brief(target, p95),
            )
        )
    if p95 is not None and decision.choice.waiting.busy:
        sentences.append(
            _(
                "The machine was busy while {name} was measured: measure its latency again.",
                name=name,
            )
        )
    sentences += _caveats(study, decision, "risks", fit)
    if not decision.priced:
        text = _(
            "The price or the value of a search is not set, so it is unknown whether {name} pays "
            "off.",
            name=name,
        )
        sentences.append(text)
    return sentences


def gaps(study: Study, decision: Decision, fit: Callable[[str], str] = str) -> list[str]:
    """Return what to add or confirm before a decision is made, with names."""
    money, name = study.money or Money(), fit(study.name(decision.challenger))
    sentences = []
    if decision.unlabelled:
        sentences.append(
            ngettext(
                "Missing: the label of {n} document in {where} of {baseline} or {name}.",
                "Missing: labels of {n} documents in {where} of {baseline} or {name}.",
                decision.unlabelled,
                where=_where(study),
                baseline=fit(study.name(study.baseline)),
                name=name,
            )
        )
    sentences += _caveats(study, decision, "missing", fit)
    if decision.choice.unset:
        sentences.append(_missing_price(decision, name))
    if decision.defaults:
        sentences.append(prices.defaults(money))
    return sentences or [_("None: labels, price and assumptions are set.")]


_STEPS = {
    **STEPS,
    "data": "Correct the data first, then compare again.",
    "same_queries": "Compare systems with results for the same query IDs.",
    "metric": "Choose a metric of quality, such as NDCG@10, for the verdict.",
    "model": "Run a model for the language of the texts, then compare it.",
    "fresh": "Label queries that were not used to tune weights, then compare on them.",
    "baseline": "Add your search's ranking and compare {name} with it.",
    "latency": "Measure the latency of {name} on the machine that will serve it.",
    "faster": "Make {name} faster (fewer documents, a smaller model), then measure it again.",
    "unprovable": "Keep {baseline}: more queries of this kind are unlikely to show the minimum "
    "practically relevant gain of {minimum} (set by the user).",
    "minimum": "Set the minimum practically relevant gain. The true change may be 0, and only this "
    "minimum shows whether more labels are worth their effort.",
    "open": "Label more queries like these, then compare again: neither 0 nor the minimum "
    "practically relevant gain of {minimum} (set by the user) is excluded.",
}


def next_step(study: Study, decision: Decision, fit: Callable[[str], str] = str) -> str:
    """Return the next step."""
    name, baseline = fit(study.name(decision.challenger)), fit(study.name(study.baseline))
    match decision.step:
        case "label":
            return ngettext(
                "Label documents of at least {n} query, then compare again.",
                "Label documents of at least {n} queries, then compare again.",
                decision.more,
            )
        case "rerank":
            return ngettext(
                "Rerank {n} more labelled query, which was not run, then compare again.",
                "Rerank {n} more labelled queries, which were not run, then compare again.",
                decision.more,
            )
        case "queries" if not decision.more:
            return _("Label more queries, or use the weights “per query”.")
        case "queries":
            return ngettext(
                "Label {n} more query; a verdict needs at least that many.",
                "Label {n} more queries; a verdict needs at least that many.",
                decision.more,
            )
        case "settle":
            return ngettext(
                "Label at least {n} more query like these, then compare again.",
                "Label at least {n} more queries like these, then compare again.",
                decision.more,
            )
        case "judge":
            return ngettext(
                "Label documents in {where} of {baseline} and {name}, starting with those that "
                "could reverse the verdict. Without a label: {n}.",
                "Label documents in {where} of {baseline} and {name}, starting with those that "
                "could reverse the verdict. Without a label: {n}.",
                decision.unlabelled,
                where=_where(study),
                baseline=baseline,
                name=name,
            )
        case "price" if not decision.choice.unset:
            return _("Set the value of a search, then compare gain and cost.")
        case "price" if study.money is not None and study.money.valued:
            return _("Set the price of {name}, then compare gain and cost.", name=name)
        case "more":
            return ngettext(
                "Label at least {n} more query of this kind, then compare again. With fewer than "
                "{fewest} queries, rankdash cannot estimate how many would prove the change.",
                "Label at least {n} more queries of this kind, then compare again. With fewer "
                "than {fewest} queries, rankdash cannot estimate how many would prove the change.",
                decision.more,
                fewest=number(FEWEST_PLANNED, 0),
            )
        case step:
            minimum = f"{quantity(100 * (study.statistics.worthwhile or 0.0), 6)}%"
            return _(_STEPS[step], name=name, baseline=baseline, minimum=minimum)


def nothing_compared(study: Study, fit: Callable[[str], str] = str) -> tuple[str, str]:
    """Return, for a study of one system, what cannot be decided and what to do."""
    name = fit(study.name(study.baseline))
    return (
        _("Only {name} is available, so it is unknown whether reranking helps.", name=name),
        _("Run a reranker or add its ranking, then compare it with {name}.", name=name),
    )


def _missing_price(decision: Decision, name: str) -> str:
    """Return which input of a system's cost is missing; this may be a part of its price."""
    bill = decision.choice.bill
    if bill is not None and bill.chosen and bill.lack == "throughput":
        return _(
            "Missing: the throughput of one machine with {name}, in searches per second.", name=name
        )
    if bill is not None and bill.chosen and bill.lack == "tokens":
        return _("Missing: the texts that determine the price of {name}.", name=name)
    if bill is not None and bill.chosen and bill.lack == "rate":
        return _("Missing: the exchange rate for the price of {name}.", name=name)
    return _("Missing: the price of {name}.", name=name)


def _where(study: Study) -> str:
    """Return a text for the documents that the metric evaluates."""
    k = study.measure.k
    return _("the lists") if k is None else _("the top {k}", k=number(k, 0))


def _caveats(
    study: Study, decision: Decision, section: Section, fit: Callable[[str], str]
) -> list[str]:
    return [each.sentence(study, fit) for each in decision.caveats if each.section == section]


def _hurt(study: Study, decision: Decision, fit: Callable[[str], str]) -> str:
    band, n = plain(study.statistics.tie_band), int(decision.row["paired"])
    if not n:
        return _("No query can be compared.")
    if decision.worst is None:
        return ngettext(
            "No query gets worse by more than {band} ({n} query compared).",
            "No query gets worse by more than {band} ({n} queries compared).",
            n,
            band=band,
        )
    hurt = int(decision.row["hurt"])
    share = ngettext(
        "{n} of {queries} gets worse ({share}).",
        "{n} of {queries} get worse ({share}).",
        hurt,
        queries=ngettext("{n} query", "{n} queries", n),
        share=percent(hurt / n),
    )
    query = str(decision.worst["query_id"])
    worst = _(
        "Worst: “{query}”, {metric} {before} → {after}.",
        query=fit(shortened(study.dataset.query_names.get(query, query), _LONGEST)),
        metric=study.measure.title,
        before=number(decision.worst["before"]),
        after=number(decision.worst["after"]),
    )
    return paragraph([share, worst])
