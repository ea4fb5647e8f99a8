"""Sentences on a policy: its steps, its expected effect, and values with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rankdash.core.base.i18n import (
    brief,
    enumerated,
    level_percent,
    ngettext,
    number,
    percent,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.statistics.inference import ROUNDING
from rankdash.core.study.pricing import bill
from rankdash.core.study.study import Study
from rankdash.core.words.prices import money
from rankdash.core.words.queries import query_count
from rankdash.features.policy.policy import REPEATS, Choices, Estimate, Expected, Policy
from rankdash.features.policy.skipping import rank_after, skipping
from rankdash.features.policy.weights import weights


def with_interval(
    value: float, low: float, high: float, level: float, form: Callable[[float], str]
) -> str:
    """Return a value with its interval, if it has one. form: writes a number."""
    if math.isnan(low) or math.isnan(high):
        return form(value)
    return _(
        "{value} ({level}: {low} … {high})",
        value=form(value),
        level=level_percent(level),
        low=form(low),
        high=form(high),
    )


def steps(study: Study, choices: Choices, policy: Policy) -> dict[str, str]:
    """Return section → its step in a few words."""
    none = _("not chosen")
    return {
        "depth": _("top {n}", n=number(policy.depth, 0)) if policy.depth else _("all documents"),
        "skip": _missing(choices.skip_loss)
        if policy.skip_at is None
        else _skipped(study, choices, policy.skip_at),
        "deadline": none
        if policy.deadline_ms is None
        else _("{ms} ms", ms=brief(policy.deadline_ms)),
        "weights": _missing(choices.weights or None)
        if policy.fuse is None
        else enumerated([number(each, 2) for each in policy.fuse.how.weights]),
        "floor": _missing(choices.floor_alpha)
        if policy.floor is None
        else _("score of at least {score}", score=number(policy.floor)),
    }


def _skipped(study: Study, choices: Choices, skip_at: float) -> str:
    loss = choices.skip_loss or 0.0
    found = skipping(study, choices.system, choices.margin, rank_after(study), loss)
    if not found.holds:
        return _("margin of at least {n}, not safe on held-out queries", n=number(skip_at))
    if found.rule is not None and found.rule.share == 1:
        return _("all queries")
    return _("margin of at least {n}", n=number(skip_at))


def _missing(choice: object) -> str:
    return _("not chosen") if choice is None else _("not possible")


def section_titles() -> dict[str, str]:
    """Return section → its title."""
    return {
        "policy": _("The policy"),
        "depth": _p("heading", "Depth"),
        "skip": _p("heading", "Skip"),
        "deadline": _p("heading", "Deadline"),
        "floor": _p("heading", "Floor"),
        "weights": _("Fusion weights"),
    }


def effect(
    study: Study,
    choices: Choices,
    found: Expected,
    price: tuple[float, float] | None,
    safe: Callable[[str], str] = str,
) -> list[str]:
    """Return the expected effect of the policy: quality, then latency and price, if known.

    price: of 1,000 searches with the policy and with full reranking. safe: escapes a name.
    """
    metric = study.measure.title
    if found.n < found.compared:
        metric = ngettext(
            "{metric} ({n} timed query only)",
            "{metric} ({n} timed queries only)",
            found.n,
            metric=metric,
        )
    first = _span(found.first_stage, study, number)
    params = {
        "metric": metric,
        "system": safe(study.name(choices.system)),
        "mean": _span(found.quality, study, number),
        "first": _span(found.over_first, study, signed),
        "full": _span(found.over_full, study, signed),
    }
    if found.skips_all:
        return [
            _("**Do not rerank: this policy skips every query.**"),
            _("Expected {metric}, as without reranking: {mean}.", metric=metric, mean=first),
        ]
    sentences = [
        _(
            "**Expected {metric} with this policy: {mean}.** The change is {first} from the "
            "first stage, and {full} from reranking every query with {system}.",
            **params,
        )
        if choices.any
        else _(
            "**No step is chosen: {system} reranks every query.** Expected {metric}: {mean}; the "
            "change from the first stage is {first}.",
            **params,
        )
    ]
    if choices.any and _first_stage_only(found):
        sentences.append(
            _("All queries keep the first stage's order: this policy is the same as no reranking.")
        )
    if math.isfinite(found.p95_ms):
        ms, full_ms = brief(found.p95_ms), brief(found.full_p95_ms)
        if not choices.any:
            sentences.append(_("Reranking takes {ms} ms at p95.", ms=ms))
        elif ms == full_ms:
            sentences.append(_("Reranking takes {ms} ms at p95, as without the policy.", ms=ms))
        else:
            sentences.append(
                _(
                    "Reranking takes {policy} ms at p95, instead of {full} ms.",
                    policy=ms,
                    full=full_ms,
                )
            )
    if price is not None:
        currency = study.money.currency if study.money is not None else ""
        amounts = [money(each, currency) for each in price]
        if not choices.any:
            sentences.append(_("1,000 searches cost {price}.", price=amounts[1]))
        elif amounts[0] == amounts[1]:
            sentences.append(_unchanged(study, found.policy, amounts[1]))
        else:
            left, before = amounts
            sentences.append(
                _("1,000 searches cost {left} instead of {price}.", left=left, price=before)
            )
    return sentences


def _unchanged(study: Study, policy: Policy, amount: str) -> str:
    paid = bill(study, policy.system)
    if policy.depth and paid is not None and paid.price is not None and paid.price.unit == "flat":
        return _(
            "The price of 1,000 searches stays {price}: your price is per search, whatever the "
            "depth.",
            price=amount,
        )
    return _("The price of 1,000 searches stays {price}.", price=amount)


def _first_stage_only(found: Expected) -> bool:
    """Return whether every query has the first stage's order with the policy."""
    change = found.over_first
    return found.skipped + found.late > 1 - ROUNDING and change.low == change.high == 0


def basis(
    study: Study, choices: Choices, found: Expected, safe: Callable[[str], str] = str
) -> list[str]:
    """Return how many queries the expectation is based on, and which steps are held out.

    safe: escapes a name.
    """
    sentences = [ngettext("Measured on {n} query.", "Measured on {n} queries.", found.n)]
    if study.tuned(choices.system) is not None:
        sentences.append(
            _(
                "The fusion weights of {system} were tuned on these queries, so its values are "
                "in-sample: expect lower ones on new queries.",
                system=safe(study.name(choices.system)),
            )
        )
    if found.tuned:
        titles = section_titles()
        sentences.append(
            _(
                "Chosen on these labels: {steps}. So each query is evaluated with steps that are "
                "chosen on the other folds (5-fold cross-validation, mean over {n} splits).",
                n=REPEATS,
                steps=enumerated([titles[each] for each in found.tuned]),
            )
        )
    if "weights" in found.tuned:
        sentences.append(
            _(
                "The intervals do not include the uncertainty of the choice of weights, so they "
                "do not prove a difference; the section Fusion weights tests it."
            )
        )
    if found.policy.skip_at is not None:
        sentences.append(
            ngettext(
                "{share} of {n} query skips reranking.",
                "{share} of {n} queries skip reranking.",
                found.n,
                share=percent(found.skipped),
            )
        )
        sentences.append(
            _(
                "The margin is computed over the first {n} documents: retrieve at least {n}.",
                n=number(found.policy.skip_of or 0, 0),
            )
        )
    if found.policy.deadline_ms is not None:
        sentences.append(
            ngettext(
                "{share} of {n} timed query exceeds the deadline; only timed queries count.",
                "{share} of {n} timed queries exceed the deadline; only timed queries count.",
                found.n,
                share=percent(found.late),
            )
        )
    return sentences


def _span(each: Estimate, study: Study, form: Callable[[float], str]) -> str:
    return with_interval(each.mean, each.low, each.high, study.statistics.level, form)


def tuned_text(study: Study, table: Callable[[Sequence[Sequence[str]]], str]) -> str:
    """Return the gains of weights that are tuned for all systems of a study, for the command line.
    table: writes rows of cells as aligned lines."""
    tuned = weights(study, study.chosen)
    chosen = tuned.chosen
    single = study.name(tuned.systems[tuned.single - 1])
    rows = [
        (name, signed(gain.change), f"{signed(gain.low)} … {signed(gain.high)}", evidence)
        for name, gain, evidence in (
            ("in-sample, over equal RRF", tuned.in_sample, "no evidence"),
            ("held out, over equal RRF", tuned.gain, _PROVEN[tuned.gain.proven]),
            (f"held out, over {single}", tuned.over_single, _PROVEN[tuned.over_single.proven]),
        )
    ]
    head = (study.measure.title, "change", f"{level_percent(study.statistics.level)} interval", "")
    parts = [f"{study.name(tuned.systems[at])} {chosen.weights[at]:g}" for at in chosen.fused]
    k = f" (k = {chosen.k:g})" if chosen.k else ""
    best = f"{chosen.method}{k}, {', '.join(parts)}"
    if chosen.fusion is None:
        best = f"{study.name(tuned.systems[chosen.fused[0]])} alone"
    count = f"{len(tuned.variants)} variants on {query_count(len(tuned.query_ids))}"
    return table([head, *rows]) + "\n" + table([[f"best of {count}: {best}"]])


_PROVEN = {True: "proven", False: "not proven"}
