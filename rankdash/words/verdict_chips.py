"""Verdicts in words: a chip for each kind, and the sentence with its advice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import pandas as pd

from rankdash.analysis.judging.corrected import FEWEST_PEOPLE, Corrected, MeanChange
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
from rankdash.study.judging import JudgedVerdict, circularity, favours, verdicts
from rankdash.study.study import Study

# A smaller share is not written as 100 %.
_ALL = 0.995


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
    return [*said, _("Means count documents without a label as not relevant.")]


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
    if not math.isfinite(found.seconds_left):
        return labels
    return paragraph([labels, _("At the present rate: {time}.", time=duration(found.seconds_left))])


def judged_sentence(study: Study, found: JudgedVerdict) -> str:
    """What the judge and people's labels say of a challenger together: the headline where a study
    has a judge."""
    three = found.three
    values = {
        "challenger": study.name(found.challenger),
        "baseline": study.name(study.baseline),
        "metric": study.measure.title,
        "judge": found.judge,
        "n": number(three.people.n, 0),
        "fewest": number(FEWEST_PEOPLE, 0),
    }
    if found.kind == "descriptive":
        return _(TITLES["descriptive"])
    if found.kind == "too_few" and found.drawn and not three.people.n:
        return _(
            "No verdict by the judge {judge}: these labels are of single documents, and to correct "
            "a judge, whole queries drawn at random must be labelled. Such labels can be estimated "
            "from with its grades as the guess.",
            **values,
        )
    if found.kind == "too_few":
        return _(
            "No verdict by the judge {judge}: people labelled {n} queries with a value, and at "
            "least {fewest} are needed to correct a judge.",
            **values,
        )
    change = three.corrected
    values |= {
        "delta": signed(change.mean, 4),
        "level": percent(three.level),
        "ends": change_interval(change.low, change.high),
    }
    if found.kind == "unproven":
        return _(
            "Not proven that {challenger} differs from {baseline}: {metric} {delta} ({level} "
            "{ends}), by the judge {judge}, corrected by people's labels of {n} queries.",
            **values,
        )
    if found.kind == "worse":
        return _(
            "{challenger} is worse than {baseline}: {metric} {delta} ({level} {ends}), by the "
            "judge {judge}, corrected by people's labels of {n} queries.",
            **values,
        )
    if found.kind == "small":
        return _(
            "{challenger} is better than {baseline}, but by less than the minimum practically "
            "relevant gain: {metric} {delta} ({level} {ends}), by the judge {judge}, corrected by "
            "people's labels of {n} queries.",
            **values,
        )
    return _(
        "{challenger} is better than {baseline}: {metric} {delta} ({level} {ends}), by the judge "
        "{judge}, corrected by people's labels of {n} queries.",
        **values,
    )


def three_ways(three: Corrected) -> list[tuple[str, MeanChange]]:
    """The change in three ways under their titles, the corrected one last."""
    return [
        (_("people alone"), three.people),
        (_("judge alone"), three.judge),
        (_("corrected by people"), three.corrected),
    ]


def worth_sentence(three: Corrected) -> str:
    """What the judge saves; "" where there is no corrected number."""
    if not math.isfinite(three.worth):
        return ""
    if not three.others:
        return _(
            "The judge adds nothing here, so this is people's verdict: they labelled all of its "
            "queries."
        )
    if not three.weight:
        return _(
            "The judge adds nothing here, so this is people's verdict: its changes do not follow "
            "theirs."
        )
    return _(
        "The judge is worth {worth} times the labels: without it, about {saved} more queries would "
        "have to be labelled for the same certainty.",
        worth=number(three.worth, 1),
        saved=number(three.saved, 0),
    )


def judge_caveats(study: Study, found: JudgedVerdict) -> list[str]:
    """What to keep in mind about the judge of a study."""
    judge = study.judge
    if judge is None:
        return []
    said = [
        _(
            "{judge} is the same model as {system}, so it judges itself.",
            judge=judge.name,
            system=study.name(each.system),
        )
        if each.same
        else _(
            "{judge} and {system} share a maker, {maker}: a judge tends to prefer its own kind.",
            judge=judge.name,
            system=study.name(each.system),
            maker=each.maker,
        )
        for each in circularity(study, judge)
    ]
    favour = favours(study, judge)[found.challenger]
    if favour.proven:
        side = found.challenger if favour.difference > 0 else study.baseline
        said.append(
            _(
                "The judge errs in favour of {system}: against people's labels, it gives the "
                "documents that {system} ranks higher {difference} grades more than those that the "
                "other system ranks higher.",
                system=study.name(side),
                difference=number(abs(favour.difference), 2),
            )
        )
    # What stands at the same rank in both is not drawn, and changes nothing.
    if not found.drawn and found.labelled < _ALL:
        said.append(
            _(
                "Of the documents that the two systems rank first in people's queries, {share} "
                "have a label; the others count as not relevant.",
                share=percent(found.labelled),
            )
        )
    if found.incomplete:
        said.append(
            ngettext(
                "Excluded from the judge: {n} query in which a grade is missing.",
                "Excluded from the judge: {n} queries in which a grade is missing.",
                found.incomplete,
            )
        )
    if found.three.enough:
        said.append(_("People's queries are taken to be a random sample of all."))
    return [*said, _("The interval of the judge alone does not allow for the judge's errors.")]


def judged_lines(study: Study) -> list[str]:
    """All of it for each challenger, a line each: the sentence, and `judged_facts`. Empty where the
    study has no judge."""
    if study.judge is None:
        return []
    said = []
    for found in verdicts(study, study.judge).values():
        said += [judged_sentence(study, found), *judged_facts(study, found)]
    return said


def judged_facts(study: Study, found: JudgedVerdict) -> list[str]:
    """The three ways, what the judge is worth, and what to keep in mind, a line each."""
    said = []
    for title, change in three_ways(found.three):
        n = ngettext("{n} query", "{n} queries", change.n)
        value = "–"
        if math.isfinite(change.mean):
            value = f"{signed(change.mean, 4)} ({change_interval(change.low, change.high)})"
        said.append(f"{title}: {value}, {n}")
    return [*said, *filter(None, [worth_sentence(found.three), *judge_caveats(study, found)])]
