"""Verdicts of an LLM judge corrected with human labels, in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from rankdash.core.base.i18n import (
    enumerated,
    kind_of_failure,
    level_percent,
    ngettext,
    number,
    paragraph,
    percent,
    plain,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import FEWEST_QUERIES
from rankdash.core.sampling.bias_corrected import FEWEST_PEOPLE, Corrected, MeanChange
from rankdash.core.sampling.rater_agreement import FAVOUR_LEVEL, GRADE, LABEL, JudgeAgreement
from rankdash.core.statistics.verdict import TITLES, Kind
from rankdash.core.study.groups import DERIVED_SEGMENTS
from rankdash.core.study.judged import (
    DOCUMENT_LENGTH,
    JudgedVerdict,
    agreed,
    circularity,
    favours,
    verdicts,
)
from rankdash.core.study.study import Study
from rankdash.core.words.verdicts import change_interval

# A smaller share is not written as 100 %.
_ALL = 0.995


def judged_sentence(study: Study, verdict: JudgedVerdict) -> str:
    """Return the verdict on a challenger by the judge and the human labels together: the headline
    of a study with a judge."""
    three = verdict.three
    values = {
        "challenger": study.name(verdict.challenger),
        "baseline": study.name(study.baseline),
        "metric": study.measure.title,
        "judge": verdict.judge,
        "n": number(three.people.n, 0),
        "fewest": number(FEWEST_PEOPLE, 0),
    }
    if verdict.kind == "descriptive":
        return _p("verdict", TITLES["descriptive"])
    if verdict.kind == "too_few" and verdict.sampled and not three.people.n:
        return _(
            "No verdict from the judge {judge}: your labels cover single documents. To correct "
            "a judge, fully label randomly sampled queries. With these labels, use its grades "
            "as predictions in a labelling plan.",
            **values,
        )
    if verdict.kind == "too_few":
        return _(
            "No verdict from the judge {judge}: {n} human-labelled queries have a metric value. "
            "To correct a judge, at least {fewest} are needed.",
            **values,
        )
    change = three.corrected
    values |= {
        "delta": signed(change.mean, 4),
        "level": level_percent(three.level),
        "ends": change_interval(change.low, change.high),
    }
    return paragraph([_verdict(verdict.kind, values), *_missing(verdict)])


def _missing(verdict: JudgedVerdict) -> list[str]:
    """Return how many grades the judge lacks; empty if it has all."""
    if not verdict.missing:
        return []
    return [
        _(
            "The judge has no grade for {n} of {documents} documents ({share}).",
            n=number(verdict.missing, 0),
            documents=number(verdict.documents, 0),
            share=percent(verdict.missing / verdict.documents, 1),
        )
    ]


def _verdict(kind: Kind, values: Mapping[str, str]) -> str:
    if kind == "unproven":
        return _(
            "Not proven that {challenger} differs from {baseline}: {metric} {delta} ({level} "
            "{ends}), by the judge {judge}, corrected with human labels of {n} queries.",
            **values,
        )
    if kind == "worse":
        return _(
            "{challenger} is worse than {baseline}: {metric} {delta} ({level} {ends}), by the "
            "judge {judge}, corrected with human labels of {n} queries.",
            **values,
        )
    if kind == "small":
        return _(
            "{challenger} is better than {baseline}, but by less than the minimum practically "
            "relevant gain (set by the user): {metric} {delta} ({level} {ends}), by the judge "
            "{judge}, corrected with human labels of {n} queries.",
            **values,
        )
    return _(
        "{challenger} is better than {baseline}: {metric} {delta} ({level} {ends}), by the "
        "judge {judge}, corrected with human labels of {n} queries.",
        **values,
    )


def without_judge() -> str:
    """Return the sentence between the judge's headline and the results from human labels only."""
    return _("The results below use human labels only, without the judge.")


def three_ways(three: Corrected) -> list[tuple[str, MeanChange]]:
    """Return title and mean change of three estimates: human labels only, judge only,
    corrected."""
    return [
        (_("human labels only"), three.people),
        (_("judge only"), three.judge),
        (_("judge corrected with human labels"), three.corrected),
    ]


def worth_sentence(verdict: JudgedVerdict) -> str:
    """Return a sentence about the number of human labels that the LLM judge saves, or the reason
    why it saves none; "" if it is unknown."""
    three = verdict.three
    if not math.isfinite(three.worth):
        return ""
    if not three.weight and verdict.graded < max(FEWEST_PEOPLE, verdict.people / 2):
        return _(
            "The judge does not help here: it graded only {n} of the {people} human-labelled "
            "queries, too few to measure its worth. The verdict uses human labels only.",
            n=number(verdict.graded, 0),
            people=number(verdict.people, 0),
        )
    if not three.others:
        return _(
            "The judge does not help here: all of its queries have human labels. The verdict "
            "uses human labels only."
        )
    if not three.weight:
        return _(
            "The judge does not help here: its changes per query do not correlate with those "
            "from human labels. The verdict uses human labels only."
        )
    return _(
        "With the judge, each labelled query counts {worth} times: without it, the same "
        "precision needs about {saved} more labelled queries.",
        worth=number(three.worth, 1),
        saved=number(three.saved, 0),
    )


def judge_warnings(study: Study, verdict: JudgedVerdict) -> list[str]:
    """Return the warnings about the judge in this comparison: self-preference, copied labels,
    missing grades."""
    judge = study.judge
    if judge is None:
        return []
    warnings = [
        _(
            "{judge} is the same model as {system}, so it judges itself.",
            judge=judge.name,
            system=study.name(each.system),
        )
        if each.same
        else _(
            "{judge} and {system} are both made by {maker}: a judge tends to favour models by "
            "the same maker.",
            judge=judge.name,
            system=study.name(each.system),
            maker=each.maker,
        )
        for each in circularity(study, judge)
        if each.system in (study.baseline, verdict.challenger)
    ]
    agreement = agreed(study, judge)
    if agreement.copied:
        warnings.append(copied_sentence(agreement))
    if len(verdict.lost):
        warnings.append(lost_sentence(verdict))
    return warnings


def bias_sentence(study: Study, verdict: JudgedVerdict) -> str:
    """Return which system the judge favours, measured by human labels; "" if that is not known."""
    if study.judge is None:
        return ""
    favour = favours(study, study.judge)[verdict.challenger]
    if not math.isfinite(favour.low):
        return ""
    if favour.proven:
        sides = (verdict.challenger, study.baseline)
        favoured, other = sides if favour.difference > 0 else sides[::-1]
        return _(
            "Bias: the judge errs in favour of {system}. Compared with the human labels, it gives "
            "the documents that {system} ranks higher {difference} grades more than those that "
            "{other} ranks higher ({level} {ends}).",
            system=study.name(favoured),
            other=study.name(other),
            difference=number(abs(favour.difference), 2),
            level=percent(FAVOUR_LEVEL),
            ends=change_interval(*sorted((abs(favour.low), abs(favour.high)))),
        )
    return _(
        "Bias: not proven that the judge favours {challenger} or {baseline}. Compared with the "
        "human labels, it gives the documents that {challenger} ranks higher {difference} grades "
        "more than those that {baseline} ranks higher ({level} {ends}).",
        challenger=study.name(verdict.challenger),
        baseline=study.name(study.baseline),
        difference=signed(favour.difference, 2),
        level=percent(FAVOUR_LEVEL),
        ends=change_interval(favour.low, favour.high),
    )


def copied_sentence(agreement: JudgeAgreement) -> str:
    """Return the warning that a judge's grades equal the human labels."""
    return _(
        "The judge's grades equal the human labels on all {n} shared pairs. Make sure that the "
        "file is not a copy of the labels.",
        n=number(len(agreement.pairs), 0),
    )


def lost_sentence(verdict: JudgedVerdict) -> str:
    """Return in how many human-labelled queries the judge lacks a grade, why, and what to do."""
    counts = verdict.lost["kind"].value_counts(sort=False)
    reasons: Counter[str] = Counter()
    for kind, count in counts.items():
        reasons[kind_of_failure(str(kind))] += int(count)
    sentence = ngettext(
        "In {n} of the {people} labelled queries, the judge lacks a grade (documents by reason: "
        "{why}). A missing grade counts as one more grade, whose worth is learned from the human "
        "labels; a query without any grade counts by its human labels only.",
        "In {n} of the {people} labelled queries, the judge lacks a grade (documents by reason: "
        "{why}). A missing grade counts as one more grade, whose worth is learned from the human "
        "labels; a query without any grade counts by its human labels only.",
        int(verdict.lost["query_id"].nunique()),
        people=number(verdict.people, 0),
        why=enumerated(
            _("{part}: {value}", part=reason, value=number(count, 0))
            for reason, count in reasons.most_common()
        ),
    )
    advice = []
    kinds = set(counts.index)
    if "not_asked" in kinds:
        advice.append(_("Let the judge grade these queries too."))
    if "elsewhere" in kinds:
        advice.append(_("Read its file again with a grade for each of these."))
    if kinds - {"not_asked", "elsewhere"}:
        advice.append(
            _(
                "Retry those that failed, on the page Judge or with rankdash judge run and the "
                "same file."
            )
        )
    return paragraph([sentence, *advice])


def judge_caveats(study: Study, verdict: JudgedVerdict) -> list[str]:
    """Return the caveats about the judge of a study."""
    judge = study.judge
    if judge is None:
        return []
    caveats = [_counts(verdict)]
    # Documents at the same rank in both systems are not sampled: they do not change the result.
    if not verdict.sampled and verdict.labelled < _ALL:
        caveats.append(
            _(
                "Of the documents that the two systems rank first in human-labelled queries, "
                "{share} have a label; the others count as not relevant.",
                share=percent(verdict.labelled),
            )
        )
    if any(0 < change.n < FEWEST_QUERIES for _title, change in three_ways(verdict.three)):
        caveats.append(
            _("A mean of fewer than {n} queries has no interval.", n=number(FEWEST_QUERIES, 0))
        )
    if verdict.three.enough:
        caveats.append(
            _(
                "All three intervals use Student's t, so that they are comparable. Elsewhere, "
                "intervals from human labels only are bootstrapped over queries and differ "
                "slightly."
            )
        )
        caveats.append(
            _("The human-labelled queries are treated as a random sample of all queries.")
        )
    return [*caveats, _("The interval for the judge only does not account for the judge's errors.")]


def _counts(verdict: JudgedVerdict) -> str:
    """Return how many queries each of the three estimates is based on; the numbers add up."""
    three = verdict.three
    whole = verdict.queries - verdict.incomplete
    return _(
        "{people} of {queries} queries have human labels: {n} with a metric value, {none} "
        "without (for example, no relevant document). Queries graded completely by the judge: "
        "{whole}, {judged} with a metric value and {nothing} without; queries with missing "
        "grades: {incomplete}.",
        queries=number(verdict.queries, 0),
        people=number(verdict.people, 0),
        n=number(three.people.n, 0),
        none=number(verdict.people - three.people.n, 0),
        whole=number(whole, 0),
        judged=number(three.judge.n, 0),
        nothing=number(whole - three.judge.n, 0),
        incomplete=number(verdict.incomplete, 0),
    )


def judged_lines(study: Study) -> list[str]:
    """Return the lines on all challengers: `judged_sentence`, then `judged_facts`, and at the end
    `without_judge`. Empty if the study has no judge."""
    if study.judge is None:
        return []
    lines = []
    for verdict in verdicts(study, study.judge).values():
        lines += [judged_sentence(study, verdict), *judged_facts(study, verdict)]
    return [*lines, without_judge()]


def judged_facts(study: Study, verdict: JudgedVerdict) -> list[str]:
    """Return the judge's bias, the three estimates, its worth, warnings and caveats, a line
    each."""
    lines = [*filter(None, [bias_sentence(study, verdict)])]
    for title, change in three_ways(verdict.three):
        n = ngettext("{n} query", "{n} queries", change.n)
        value = "–"
        if math.isfinite(change.mean):
            value = f"{signed(change.mean, 4)} ({change_interval(change.low, change.high)})"
        lines.append(_("{part}: {value}", part=title, value=enumerated([value, n])))
    lines += filter(None, [worth_sentence(verdict)])
    lines += [_("Warning: {text}", text=each) for each in judge_warnings(study, verdict)]
    return [*lines, *judge_caveats(study, verdict)]


def group_kind(study: Study | None, by: str) -> str:
    """Return the title of the property that a row of `agreement_groups` is grouped by. study: None
    if the groups are by label and grade only."""
    titles = {
        LABEL: _("human label"),
        GRADE: _("judge's grade"),
        DOCUMENT_LENGTH: _("length of the document"),
    }
    if study is None or by in titles:
        return titles[by]
    if by in study.challengers:
        return _("ranked higher in")
    if by in study.dataset.segments:
        return by
    return _p("segment", next(each.title for each in DERIVED_SEGMENTS if each.name == by))


def group_name(study: Study | None, by: str, group: object) -> str:
    """Return the group of a row of `agreement_groups` in words. study: as for `group_kind`."""
    if study is None or by in (LABEL, GRADE):
        return plain(float(str(group)))
    if by in study.challengers:
        return study.name(str(group))
    lengths = {
        "short": _p("length", "short"),
        "medium": _p("length", "medium"),
        "long": _p("length", "long"),
    }
    if by == DOCUMENT_LENGTH:
        return lengths[str(group)]
    value = str(group)
    return value if by in study.dataset.segments else _p("segment", value)
