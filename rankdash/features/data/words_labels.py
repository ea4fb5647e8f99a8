"""Labels that look wrong, in words: the checks, their error rates, and the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, cast

import pandas as pd

from rankdash.core.base.i18n import finding_text, number, paragraph, plain, share_percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.dataset import Dataset
from rankdash.core.readers.checks.doubtful_labels import (
    DoubtfulLabels,
    LabelCheck,
    Reason,
)

# The assumed share of wrong labels.
_ASSUMED = 0.01


def titles() -> dict[Reason, str]:
    """Return the title of each check."""
    return {
        "twin_label": _("Equal texts, different labels"),
        "twin_unlabelled": _("Equal text without a label"),
        "ranked_low": _("Relevant, ranked low"),
        "ranked_top": _("Not relevant, ranked high"),
        "few_words": _("Few words of the query"),
    }


def warnings(found: DoubtfulLabels) -> list[str]:
    """Return what applies to most labels: a shift of ids, or labels that look random."""
    if found.shift is not None:
        finding = found.shift.finding
        return [paragraph([finding_text(finding), _(finding.remedy, **finding.params)])]
    if found.like_others:
        return [
            _(
                "Most labels share no more words with their query than random documents do. Check "
                "the ids of the labels first."
            )
        ]
    return []


def check_rows(found: DoubtfulLabels) -> list[tuple[str, ...]]:
    """Return a row for each check that applies: title, labels checked, candidates, the shares of
    correct and of wrong labels that the check lists, and of wrong labels among the candidates."""
    return [
        (
            titles()[each.reason],
            number(each.checked, 0),
            number(each.listed, 0),
            *_rates(each, like_others=found.like_others),
        )
        for each in found.checks
        if each.checked or each.reason.startswith("twin")
    ]


def check_headings() -> tuple[str, ...]:
    """Return the headings of `check_rows`."""
    return (
        _p("column", "check"),
        _p("column", "checked"),
        _p("column", "candidates"),
        _("correct labels that are listed"),
        _("wrong labels that are listed"),
        _("wrong candidates, if {share} of labels are wrong", share=share_percent(_ASSUMED)),
    )


def _rates(check: LabelCheck, *, like_others: bool) -> tuple[str, str, str]:
    if check.reason.startswith("twin"):
        return _("none by chance: the texts are equal"), "", ""
    if check.few:
        return _("too few queries to estimate it"), "", ""
    wrong = "" if check.of_wrong is None else share_percent(check.of_wrong)
    if check.weak and not like_others:
        return _("not listed: too many correct ones"), wrong, ""
    if check.reason == "few_words" and like_others:
        return "", wrong, ""
    hits = check.hits(_ASSUMED)
    return (
        _("at most {share}", share=share_percent(check.of_correct)),
        wrong,
        "" if hits is None else share_percent(hits),
    )


def candidates_of(found: DoubtfulLabels, reason: Reason) -> list[tuple[str, str, str, str]]:
    """Return query id, document id, label and evidence of the candidates of a check."""
    rows = found.candidates[found.candidates["reason"] == reason]
    return [
        (str(row.query_id), str(row.doc_id), plain(float(row.label)), evidence(row))
        for row in cast(Iterable[Any], rows.itertuples())
    ]


def notes(found: DoubtfulLabels) -> list[str]:
    """Return how to read the shares, and what was not checked."""
    sentences = [_("No label is changed automatically.")]
    if any(not (each.few or each.reason.startswith("twin")) for each in found.checks):
        sentences.append(
            _(
                "Correct labels: 95% limit, reached if all candidates are correct. Wrong labels: "
                "measured with random documents of the rankings, with relevant documents, and with "
                "the labels of other queries."
            )
        )
    words = next((each for each in found.checks if each.reason == "few_words"), None)
    if found.like_others:
        sentences.append(_("Single queries are not listed, because most labels look wrong."))
    elif words is not None and not words.few and words.wrong is not None:
        sentences.append(
            _(
                "At most {share} of the queries have the labels of another query.",
                share=share_percent(words.wrong),
            )
        )
    if found.words is None:
        sentences.append(
            _("Words are not compared: the texts are too few, or share too few words.")
        )
    elif found.words.queries > len(found.words.table):
        sentences.append(
            _(
                "Words are compared for a sample of {n} of {all} queries.",
                n=number(len(found.words.table), 0),
                all=number(found.words.queries, 0),
            )
        )
    if found.witnesses < 2:
        sentences.append(
            _("Ranks are not compared: this needs two rankings, or a ranking and a judge.")
        )
    return sentences


def evidence(row: Any) -> str:
    """Return the evidence of a candidate, a row of `DoubtfulLabels.candidates`."""
    if row.reason.startswith("twin"):
        return _(
            "Equal to {twin}, label {label}",
            twin=row.twin,
            label=plain(row.twin_label),
        )
    if row.reason == "few_words":
        return _(
            "{words} of the words, random documents {random}; chance {chance}",
            words=share_percent(row.words),
            random=share_percent(row.random_words),
            chance=share_percent(row.chance),
        )
    text = _(
        "Ranks {best} to {worst}",
        best=number(row.best_rank, 0),
        worst=number(row.worst_rank, 0),
    )
    if math.isnan(row.grade):
        return text
    return "; ".join([text, _("Mean grade of the judges: {grade}", grade=plain(row.grade))])


def table(found: DoubtfulLabels, data: Dataset) -> pd.DataFrame:
    """Return the candidates with texts and evidence, for a page or a file."""
    rows, words = found.candidates, titles()
    names = data.names_of(rows["doc_id"].unique())
    return pd.DataFrame(
        {
            _p("column", "check"): rows["reason"].map(words),
            _p("column", "query"): rows["query_id"].map(data.query_names),
            _p("column", "document"): rows["doc_id"].map(names),
            _p("column", "label"): rows["label"],
            _p("column", "evidence"): [evidence(row) for row in rows.itertuples()],
        }
    )


def as_json(found: DoubtfulLabels) -> dict[str, Any]:
    """Return the checks, the shift and the candidates as values for JSON."""
    rows = found.candidates.astype(object)
    return {
        "checks": [
            {
                "reason": each.reason,
                "checked": each.checked,
                "listed": each.listed,
                "correct_listed_at_most": None if each.few else each.of_correct,
                "wrong_listed": None if each.few else each.of_wrong,
                "level": each.level,
                "weak": each.weak,
            }
            for each in found.checks
        ],
        "shift": None if found.shift is None else asdict(found.shift),
        "like_others": found.like_others,
        "candidates": rows.where(rows.notna(), None).to_dict("records"),
    }


def exported(found: DoubtfulLabels, data: Dataset) -> pd.DataFrame:
    """Return the candidates with ids, texts and numbers, for a CSV file."""
    rows = found.candidates
    names = data.names_of(rows["doc_id"].unique())
    return rows.assign(
        query=rows["query_id"].map(data.query_names),
        document=rows["doc_id"].map(names),
        evidence=[evidence(row) for row in rows.itertuples()],
    )
