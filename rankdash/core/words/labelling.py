"""Estimates from some of the labels in words: the difference, its interval, the labels needed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rankdash.core.base.i18n import (
    duration,
    level_percent,
    ngettext,
    number,
    paragraph,
    signed,
    signed_percent,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.metrics import parse_measure
from rankdash.core.sampling.estimate import Estimate
from rankdash.core.sampling.label_plan import FEWEST_DRAWS, FEWEST_NON_ZERO, FEWEST_QUERIES
from rankdash.core.sampling.status import LabelStatus

if TYPE_CHECKING:
    from rankdash.core.study.costs import Choice


def estimate_sentence(estimate: Estimate) -> str:
    """Return the difference estimated from some of the labels, with its interval. It is called an
    estimate unless all labels exist."""
    metric = parse_measure(estimate.metric).title
    values = {
        "challenger": estimate.challenger,
        "baseline": estimate.baseline,
        "metric": metric,
        "labels": number(estimate.labels + estimate.known, 0),
        "pairs": number(estimate.pairs, 0),
    }
    if estimate.state == "too_early":
        return _(
            "{challenger} against {baseline}: too early for an estimate ({labels} of {pairs} "
            "labels).",
            **values,
        )
    values["delta"] = signed(estimate.difference, 4)
    if estimate.state == "complete":
        return _(
            "{challenger} against {baseline}: {metric} {delta}, from all {pairs} labels that can "
            "change the result; exact for these {queries} queries. One without a relevant document "
            "counts as 0; compare excludes it by default (convention no_relevant).",
            queries=number(estimate.queries, 0),
            **values,
        )
    values |= {"level": level_percent(estimate.level), "low": signed(estimate.low, 4)}
    values["high"] = signed(estimate.high, 4)
    if estimate.state == "open":
        return _(
            "{challenger} against {baseline}: {metric} {delta} ({level} {low} … {high}), estimated "
            "from {labels} of {pairs} labels; not conclusive yet.",
            **values,
        )
    values["at"] = number((estimate.conclusive_at or estimate.labels) + estimate.known, 0)
    if estimate.difference > 0:
        return _(
            "{challenger} is better than {baseline}: {metric} {delta} ({level} {low} … {high}), "
            "estimated from {labels} of {pairs} labels; conclusive after {at}.",
            **values,
        )
    return _(
        "{challenger} is worse than {baseline}: {metric} {delta} ({level} {low} … {high}), "
        "estimated from {labels} of {pairs} labels; conclusive after {at}.",
        **values,
    )


def relative_sentence(estimate: Estimate) -> str:
    """Return the difference as a share of the baseline's value, with its interval; "" while that is
    not known."""
    if not math.isfinite(estimate.relative):
        return ""
    values = {"baseline": estimate.baseline, "change": signed_percent(estimate.relative, 1)}
    if estimate.state == "complete":
        return _("Relative to {baseline}: {change}.", **values)
    return _(
        "Relative to {baseline}: {change} ({level} {low} … {high}).",
        **values,
        level=level_percent(estimate.level),
        low=signed_percent(estimate.relative_low, 1),
        high=signed_percent(estimate.relative_high, 1),
    )


def estimate_sentences(estimate: Estimate) -> list[str]:
    """Return the difference in units of the metric, then as a share of the baseline's value."""
    return list(filter(None, [estimate_sentence(estimate), relative_sentence(estimate)]))


def labelling_sentences(status: LabelStatus) -> list[str]:
    """Return the estimates from sampled labels, which replace means over them."""
    if not status.estimates:
        sentences = [
            _(
                "These labels were sampled for other rankings or another metric, so they give "
                "no estimate of a difference here."
            )
        ]
    else:
        sentences = [sentence for each in status.estimates for sentence in estimate_sentences(each)]
        if not status.conclusive:
            sentences.append(effort_sentence(status))
        if status.saved:
            sentences.append(saved_sentence(status.saved))
    return [
        *sentences,
        _(
            "The labels were sampled, so means, counts of queries and rank shifts computed from "
            "them would be wrong and are not shown."
        ),
    ]


def saved_sentence(saved: int) -> str:
    """Return how many labels a judge's grades have saved as predictions, or cost if negative."""
    if saved < 0:
        return ngettext(
            "With the judge's grades as predictions, about {n} more label is needed. The result "
            "still rests on human labels.",
            "With the judge's grades as predictions, about {n} more labels are needed. The "
            "result still rests on human labels.",
            -saved,
        )
    return ngettext(
        "The judge's grades, used as predictions, have saved about {n} label. The result still "
        "rests on human labels.",
        "The judge's grades, used as predictions, have saved about {n} labels. The result still "
        "rests on human labels.",
        saved,
    )


def like_these_sentence(estimate: Estimate) -> str:
    """Return the difference for new queries of this kind, with an interval valid for a single
    look."""
    return _(
        "For new queries of this kind, the difference is {low} … {high} ({level}). This "
        "interval is valid for a single look; the interval for these queries is anytime-valid.",
        level=level_percent(estimate.level),
        low=signed(estimate.like_these_low, 4),
        high=signed(estimate.like_these_high, 4),
    )


def estimate_chip(estimate: Estimate) -> str:
    """Return the state of an estimate in a word or two."""
    if estimate.conclusive:
        return _p("verdict", "better") if estimate.difference > 0 else _p("verdict", "worse")
    if estimate.state == "complete":
        return _("the same")
    return (
        _("too early for an estimate") if estimate.state == "too_early" else _("not conclusive yet")
    )


def estimate_risks(estimate: Estimate) -> list[str]:
    """Return sentences on conclusions that an estimate does not support yet."""
    open_still = estimate.state != "complete"
    unknown = _(
        "Which queries get better and which get worse is not known: the labels are a sample of "
        "documents. Label all documents to see it."
    )
    return [
        *([like_these_sentence(estimate)] if math.isfinite(estimate.like_these_low) else []),
        *([unknown] if open_still else []),
    ]


def effort_sentence(status: LabelStatus) -> str:
    """Return how many more labels are needed, and how long they take."""
    pairs = max((each.pairs for each in status.estimates), default=FEWEST_DRAWS + 1)
    if status.needed is None and pairs <= FEWEST_DRAWS:
        return _("This number of documents is too small for an early result: label all of them.")
    if status.needed is None and status.mode == "query":
        return _(
            "An estimate of the labels still needed appears once {queries} queries are fully "
            "labelled, {moved} of them with a difference.",
            queries=number(FEWEST_QUERIES, 0),
            moved=number(FEWEST_NON_ZERO, 0),
        )
    if status.needed is None:
        return _(
            "An estimate of the labels still needed appears after {draws} labels, {gains} of "
            "them for relevant documents.",
            draws=number(FEWEST_DRAWS, 0),
            gains=number(FEWEST_NON_ZERO, 0),
        )
    if not status.needed:
        return _("No more labels are needed.")
    sentences = []
    if status.needed < status.left:
        sentences.append(
            ngettext(
                "About {n} more label is needed if the difference stays as estimated.",
                "About {n} more labels are needed if the difference stays as estimated.",
                status.needed,
            )
        )
    most = status.left if status.needed_most is None else status.needed_most
    if most < status.left:
        sentences.append(_("In at least 90% of cases, at most {n}.", n=number(most, 0)))
    else:
        sentences.append(
            ngettext(
                "It may take the {n} remaining label.",
                "It may take all {n} remaining labels.",
                status.left,
            )
        )
    if math.isfinite(status.seconds_left):
        sentences.append(_("At the present rate: {time}.", time=duration(status.seconds_left)))
    return paragraph(sentences)


STEPS = {
    "worse": "Keep {baseline}: {name} is worse.",
    "same": "Keep {baseline}: {name} makes no meaningful difference.",
    "price": "Set the price of {name} and the value of a search, then compare gain and cost.",
    "loss": "Keep {baseline}: {name} costs more than it brings under these assumptions.",
    "trial": "Run a trial: serve {name} to part of the traffic and compare it with {baseline}.",
}
"""The next step after a result, by estimate or by verdict."""


def estimate_step(status: LabelStatus, estimate: Estimate, choice: Choice, priced: bool) -> str:
    """Return the next step. priced: whether price and assumptions are set."""
    if not estimate.conclusive and estimate.state != "complete":
        return paragraph([_("Continue labelling, then decide."), effort_sentence(status)])
    net = choice.outcome.net_per_month.value
    if estimate.difference <= 0:
        step = "worse" if estimate.difference < 0 else "same"
    elif not priced:
        step = "price"
    else:
        step = "loss" if net is not None and net <= 0 else "trial"
    return _(STEPS[step], name=estimate.challenger, baseline=estimate.baseline)
