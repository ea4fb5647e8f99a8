"""Verdicts in words: a chip for each kind, and the sentence with its advice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import pandas as pd

from rankdash.analysis.labelling.confidence_sequence import (
    FEWEST_DRAWS,
    FEWEST_NON_ZERO,
    FEWEST_QUERIES,
)
from rankdash.analysis.labelling.estimate import Estimate
from rankdash.analysis.labelling.status import LabelStatus
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.analysis.statistics.verdict import TITLES, Kind, Verdict, has_width
from rankdash.i18n import duration, ngettext, number, paragraph, percent, signed
from rankdash.i18n import gettext as _
from rankdash.metrics import parse_measure


def p_title(corrected: bool) -> str:
    """What a p is called. corrected: whether it allows for other comparisons."""
    return _("corrected p") if corrected else _("p")


def p_value(p: float) -> str:
    """A p with four decimals, "<0.0001" where these are zeros; a dash where there is none."""
    return "<0.0001" if p < 0.000_05 else number(p, 4)


def chip(kind: str) -> str:
    """A kind of verdict in a word or two; "baseline" is what the others are compared with."""
    return _("baseline") if kind == "baseline" else _(TITLES[cast(Kind, kind)])


def sentence(verdict: Verdict) -> str:
    """What may be said of a challenger, and what to do about it."""
    return paragraph([_(each, **verdict.params) for each in (verdict.template, *verdict.advice)])


def change_facts(row: pd.Series, settings: StatisticsSettings, p: str) -> list[str]:
    """The change with its interval, its p and whom it helped, in a few words each.

    row: of a `Comparison`. p: the column to show, "p" or "p_corrected".
    """
    facts = []
    if math.isfinite(row["delta_low"]):
        facts.append(
            _(
                "change {delta} ({level} {interval})",
                delta=signed(row["delta"]),
                level=percent(settings.level),
                interval=change_interval(row["delta_low"], row["delta_high"]),
            )
        )
    if said := p_fact(row, settings, p):
        facts.append(said)
    facts.append(
        _(
            "{helped} helped, {same} same, {hurt} hurt",
            helped=number(row["helped"], 0),
            same=number(row["same"], 0),
            hurt=number(row["hurt"], 0),
        )
    )
    return facts


def p_fact(row: pd.Series, settings: StatisticsSettings, p: str) -> str:
    """The p of a change, beside the corrected one where both differ; "" where there is none.

    row, p: as for `change_facts`.
    """
    if not math.isfinite(row[p]):
        return ""
    raw, value = p_value(row["p"]), p_value(row[p])
    if p == "p" or not is_corrected(row, settings):
        return _("p {p}", p=raw)
    if row["p"] == row["p_corrected"]:
        return _("corrected p {p}", p=value)
    return _("p {raw}, corrected {p}", raw=raw, p=value)


def interval(low: float, high: float, write: Callable[[float], str] = number) -> str:
    """An interval for a cell; a dash where there is none, and that it has no width where all
    queries have one value."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return "–"
    return f"{write(low)} … {write(high)}" if has_width(low, high) else _("no spread")


def change_interval(low: float, high: float) -> str:
    """An interval of a change for a cell, as `interval`: signed."""
    return interval(low, high, signed)


def is_corrected(row: pd.Series, settings: StatisticsSettings) -> bool:
    """Whether the p of a row of a `Comparison` allows for other comparisons."""
    return bool(row["planned_level"] > settings.level)


def estimate_sentence(found: Estimate) -> str:
    """What some of the labels say of a difference, and how sure that is. It is called an estimate
    unless all labels are there."""
    metric = parse_measure(found.metric).title
    values = {
        "challenger": found.challenger,
        "baseline": found.baseline,
        "metric": metric,
        "labels": number(found.labels + found.known, 0),
        "pairs": number(found.pairs, 0),
    }
    if found.state == "too_early":
        return _(
            "{challenger} against {baseline}: too early to say, with {labels} of {pairs} labels.",
            **values,
        )
    values["delta"] = signed(found.difference, 4)
    if found.state == "complete":
        return _(
            "{challenger} against {baseline}: {metric} {delta}, from all {pairs} labels that can "
            "make a difference; exact for these queries.",
            **values,
        )
    values |= {"level": percent(found.level), "low": signed(found.low, 4)}
    values["high"] = signed(found.high, 4)
    if found.state == "open":
        return _(
            "{challenger} against {baseline}: {metric} {delta} ({level} {low} … {high}), estimated "
            "from {labels} of {pairs} labels; not settled.",
            **values,
        )
    if found.difference > 0:
        return _(
            "{challenger} is better than {baseline}: {metric} {delta} ({level} {low} … {high}), "
            "estimated from {labels} of {pairs} labels; settled.",
            **values,
        )
    return _(
        "{challenger} is worse than {baseline}: {metric} {delta} ({level} {low} … {high}), "
        "estimated from {labels} of {pairs} labels; settled.",
        **values,
    )


def labelling_sentences(found: LabelStatus) -> list[str]:
    """What stands above means over labels that came by draws."""
    if not found.estimates:
        said = [
            _(
                "The labels came by draws for other rankings or another metric, so no difference "
                "can be estimated from them here."
            )
        ]
    else:
        said = [estimate_sentence(each) for each in found.estimates]
        if not found.settled:
            said.append(effort_sentence(found))
        if found.saved:
            said.append(saved_sentence(found.saved))
    return [*said, _("Means count documents without a label as not relevant.")]


def saved_sentence(saved: int) -> str:
    """How many labels a judge has saved, or cost, as the guess."""
    if saved < 0:
        return ngettext(
            "With the judge's grades as the guess it takes about {n} label more; the result rests "
            "on people's labels.",
            "With the judge's grades as the guess it takes about {n} labels more; the result rests "
            "on people's labels.",
            -saved,
        )
    return ngettext(
        "The judge's grades as the guess have saved about {n} label so far; the result rests on "
        "people's labels.",
        "The judge's grades as the guess have saved about {n} labels so far; the result rests on "
        "people's labels.",
        saved,
    )


def like_these_sentence(found: Estimate) -> str:
    """The difference for other queries of the same kind, as one look has it."""
    return _(
        "For other queries like these, at one look: {low} … {high}.",
        low=signed(found.like_these_low, 4),
        high=signed(found.like_these_high, 4),
    )


def effort_sentence(found: LabelStatus) -> str:
    """How many labels more it takes, and how long."""
    pairs = max((each.pairs for each in found.estimates), default=FEWEST_DRAWS + 1)
    if found.needed is None and pairs <= FEWEST_DRAWS:
        return _("With so few documents the result comes with the last label.")
    if found.needed is None and found.mode == "query":
        return _(
            "How many more labels it takes can be said once {queries} queries are labelled in "
            "full, {moved} of them with a difference.",
            queries=number(FEWEST_QUERIES, 0),
            moved=number(FEWEST_NON_ZERO, 0),
        )
    if found.needed is None:
        return _(
            "How many more labels it takes can be said after {draws} labels, {gains} of them of "
            "relevant documents.",
            draws=number(FEWEST_DRAWS, 0),
            gains=number(FEWEST_NON_ZERO, 0),
        )
    if not found.needed:
        return _("No more labels are needed.")
    labels = ngettext(
        "About {n} more label settles it.", "About {n} more labels settle it.", found.needed
    )
    said = [labels]
    if found.needed_most is not None and found.needed_most > found.needed:
        said.append(_("In nine of ten cases at most {n}.", n=number(found.needed_most, 0)))
    if math.isfinite(found.seconds_left):
        said.append(_("At the present rate: {time}.", time=duration(found.seconds_left)))
    return paragraph(said)
