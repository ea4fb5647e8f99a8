"""What a judge and people's labels say together, in words."""

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
    """What the judge and people's labels say of a challenger together: the headline where a study
    has a judge."""
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
            "No verdict by the judge {judge}: these labels are of single documents, and to correct "
            "a judge, whole queries drawn at random must be labelled. Such labels can be estimated "
            "from with its grades as the guess.",
            **values,
        )
    if verdict.kind == "too_few":
        return _(
            "No verdict by the judge {judge}: people labelled {n} queries with a value, and at "
            "least {fewest} are needed to correct a judge.",
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
    """How many grades the judge lacks; nothing if it has all."""
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
            "{ends}), by the judge {judge}, corrected by people's labels of {n} queries.",
            **values,
        )
    if kind == "worse":
        return _(
            "{challenger} is worse than {baseline}: {metric} {delta} ({level} {ends}), by the "
            "judge {judge}, corrected by people's labels of {n} queries.",
            **values,
        )
    if kind == "small":
        return _(
            "{challenger} is better than {baseline}, but by less than the minimum practically "
            "relevant gain (set by the user): {metric} {delta} ({level} {ends}), by the judge "
            "{judge}, corrected by people's labels of {n} queries.",
            **values,
        )
    return _(
        "{challenger} is better than {baseline}: {metric} {delta} ({level} {ends}), by the judge "
        "{judge}, corrected by people's labels of {n} queries.",
        **values,
    )


def without_judge() -> str:
    """What stands between the headline and what is by people's labels alone."""
    return _("What follows is by people's labels only, without the judge.")


def three_ways(three: Corrected) -> list[tuple[str, MeanChange]]:
    """The change in three ways under their titles, the corrected one last."""
    return [
        (_("people alone"), three.people),
        (_("judge alone"), three.judge),
        (_("corrected by people"), three.corrected),
    ]


def worth_sentence(verdict: JudgedVerdict) -> str:
    """Return what the judge saves; "" if there is no corrected number."""
    three = verdict.three
    if not math.isfinite(three.worth):
        return ""
    if not three.weight and verdict.graded < max(FEWEST_PEOPLE, verdict.people / 2):
        return _(
            "The judge adds nothing here, so this is the verdict by human labels: it graded only "
            "{n} of the {people} labelled queries, too few to see what it is worth.",
            n=number(verdict.graded, 0),
            people=number(verdict.people, 0),
        )
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


def judge_warnings(study: Study, verdict: JudgedVerdict) -> list[str]:
    """What speaks against the judge of a study in this comparison, or is to be mended first."""
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
            "{judge} and {system} share a maker, {maker}: a judge tends to prefer its own kind.",
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
    """That a judge's grades are people's labels."""
    return _(
        "The judge's grades are people's labels on all {n} pairs that both graded. Check that they "
        "are not a copy of them: a copy says nothing of a judge.",
        n=number(len(agreement.pairs), 0),
    )


def lost_sentence(verdict: JudgedVerdict) -> str:
    """In how many of people's queries the judge lacks a grade, why, and what to do."""
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
                "Ask again for those that failed, on the page Judge or with rankdash judge run and "
                "the same file."
            )
        )
    return paragraph([sentence, *advice])


def judge_caveats(study: Study, verdict: JudgedVerdict) -> list[str]:
    """What to keep in mind about the judge of a study."""
    judge = study.judge
    if judge is None:
        return []
    caveats = [_counts(verdict)]
    # What stands at the same rank in both is not sampled, and changes nothing.
    if not verdict.sampled and verdict.labelled < _ALL:
        caveats.append(
            _(
                "Of the documents that the two systems rank first in people's queries, {share} "
                "have a label; the others count as not relevant.",
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
                "The intervals of the three ways are Student's t, so that they can be compared. "
                "Elsewhere, by people alone, they are from a bootstrap over queries, and end a "
                "little differently."
            )
        )
        caveats.append(_("People's queries are taken to be a random sample of all."))
    return [*caveats, _("The interval of the judge alone does not allow for the judge's errors.")]


def _counts(verdict: JudgedVerdict) -> str:
    """How many queries stand behind each way; the numbers add up."""
    three = verdict.three
    whole = verdict.queries - verdict.incomplete
    return _(
        "Of {queries} queries, people labelled {people}: {n} with a value, {none} without one, as "
        "where nothing is relevant. The judge graded {whole} in full: {judged} with a value, "
        "{nothing} without one; in {incomplete} it lacks a grade.",
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
    """All of it for each challenger, a line each: the sentence, and `judged_facts`; and that what
    follows is without the judge. Empty where the study has none."""
    if study.judge is None:
        return []
    lines = []
    for verdict in verdicts(study, study.judge).values():
        lines += [judged_sentence(study, verdict), *judged_facts(study, verdict)]
    return [*lines, without_judge()]


def judged_facts(study: Study, verdict: JudgedVerdict) -> list[str]:
    """The judge's bias, the three ways, what it is worth, and what to keep in mind, a line each."""
    lines = [*filter(None, [bias_sentence(study, verdict)])]
    for title, change in three_ways(verdict.three):
        n = ngettext("{n} query", "{n} queries", change.n)
        value = "–"
        if math.isfinite(change.mean):
            value = f"{signed(change.mean, 4)} ({change_interval(change.low, change.high)})"
        lines.append(f"{title}: {value}, {n}")
    lines += filter(None, [worth_sentence(verdict)])
    lines += [_("Warning: {text}", text=each) for each in judge_warnings(study, verdict)]
    return [*lines, *judge_caveats(study, verdict)]


def group_kind(study: Study | None, by: str) -> str:
    """What the groups of a row of `agreement_groups` are by. study: None where they are by label
    and grade alone."""
    titles = {
        LABEL: _("people's label"),
        GRADE: _("judge's grade"),
        DOCUMENT_LENGTH: _("length of the document"),
    }
    if study is None or by in titles:
        return titles[by]
    if by in study.challengers:
        return _("ranked higher by")
    if by in study.dataset.segments:
        return by
    return _p("segment", next(each.title for each in DERIVED_SEGMENTS if each.name == by))


def group_name(study: Study | None, by: str, group: object) -> str:
    """The group of a row of `agreement_groups`; study as for `group_kind`."""
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
