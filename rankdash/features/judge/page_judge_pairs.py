"""Pairs of query and document to read: where judge and people differ, and texts that speak to a
judge."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.core.base.failures import in_words
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number, percent, plain, signed
from rankdash.core.data.judgements import Judgements
from rankdash.core.study.study import Study
from rankdash.core.workspace.jobs.judges import JudgeRow
from rankdash.features.judge.agreement import Repeats, repeated
from rankdash.features.judge.judging import agreed, flagged
from rankdash.kit.widgets import stored_judges
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.lazy_expander import fold
from rankdash.kit.widgets.stored_judges import grades

_MOST, _LONGEST, _CELL = 500, 5_000, 200


def draw(study: Study, row: JudgeRow) -> None:
    judge = stored_judges.judgements(row)
    _repeats(row)
    differing = agreed(study, judge).disagreements
    if len(differing):
        fold(
            ngettext(
                "{n} pair that people and the judge grade differently",
                "{n} pairs that people and the judge grade differently",
                len(differing),
            ),
            "judge.differing",
            ":material/compare_arrows:",
            lambda: _read(study, row, differing, "differing"),
        )
    speaking = cache(("judge flags", study.dataset.id, judge.id), lambda: flagged(study, judge))
    if len(speaking):
        st.warning(
            ngettext(
                "{n} pair has a text that speaks to a judge, such as an order to give a high "
                "grade. Read it: its grade may not be the judge's own.",
                "{n} pairs have a text that speaks to a judge, such as an order to give a high "
                "grade. Read them: their grades may not be the judge's own.",
                len(speaking),
            ),
            icon=":material/flag:",
        )
        fold(
            _("Texts that speak to a judge"),
            "judge.flagged",
            ":material/flag:",
            lambda: _read(study, row, speaking, "flagged"),
        )
    _failures(study, row)


def _repeats(row: JudgeRow) -> None:
    found = repeats(row)
    if found is None:
        return
    if found.pairs:
        st.caption(
            _(
                "Asked {n} times, the judge gave the same grade on {same} of the pairs; kappa "
                "between its repeats {kappa}.",
                n=found.repeats,
                same=percent(found.same),
                kappa=number(found.kappa, 2),
            )
        )
    if fewer := stored_judges.from_fewer_answers(row):
        st.caption(
            ngettext(
                "{n} pair has a grade from fewer than {asked} answers, because others failed or "
                "could not be read.",
                "{n} pairs have a grade from fewer than {asked} answers, because others failed or "
                "could not be read.",
                fewer,
                asked=number(found.repeats, 0),
            )
        )


def _read(study: Study, row: JudgeRow, pairs: pd.DataFrame, key: str) -> None:
    """A table of pairs, and the one that is chosen in full."""
    data, shown = study.dataset, pairs.head(_MOST)
    names = data.names_of(shown["doc_id"])
    # The grades first: however long the texts are, they are in sight.
    grades = {_("Judge"): shown["grade"].map(_grade)}
    if "label" in shown:
        grades[_("People")] = shown["label"].map(plain)
        grades[_("Difference")] = shown["difference"].map(lambda each: signed(each, 0))
    columns = {
        **grades,
        _("Query"): [data.query_names[query][:_CELL] for query in shown["query_id"]],
        _("Document"): [names[doc][:_CELL] for doc in shown["doc_id"]],
    }
    chosen = st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key=f"judge.{key}.{row.id}",
        column_config=dict.fromkeys(grades, st.column_config.TextColumn(width="small")),
    )
    if len(pairs) > len(shown):
        st.caption(_("The first {n} are shown.", n=number(_MOST, 0)))
    places = chosen["selection"]["rows"]
    if not places:
        st.caption(_("Choose a row to read the pair and the judge's reason."))
        return
    _pair(study, row, shown.iloc[places[0]])


def _grade(grade: float) -> str:
    return _("no grade") if math.isnan(grade) else plain(grade)


def _pair(study: Study, row: JudgeRow, pair: pd.Series) -> None:
    """Texts as they are: nothing in them is markup."""
    data = study.dataset
    said = stored_judges.grades(row)
    own = said[(said["query_id"] == pair["query_id"]) & (said["doc_id"] == pair["doc_id"])]
    left, right = st.columns(2, gap="large")
    with left:
        st.caption(_("Query"))
        st.text(data.query_names[pair["query_id"]])
        st.caption(_("Document"))
        st.text(str(data.document_text().get(pair["doc_id"], ""))[:_LONGEST])
    with right:
        if "label" in pair:
            st.caption(
                _(
                    "People: {label}, judge: {grade} ({difference})",
                    label=plain(pair["label"]),
                    grade=plain(pair["grade"]),
                    difference=signed(pair["difference"], 0),
                )
            )
        for answer in [each for answers in own["answers"] for each in answers]:
            grade = _("no grade") if answer["grade"] is None else plain(answer["grade"])
            st.caption(_("The judge's reason, grade {grade}", grade=grade))
            st.text(answer["reason"] or in_words(answer["error"]))


def _failures(study: Study, row: JudgeRow) -> None:
    said = stored_judges.grades(row)
    lost = said[(said["grade"].isna()) & (said["kind"] != "not_asked")]
    if not len(lost):
        return

    def table() -> None:
        shown = lost.head(_MOST)
        names = study.dataset.names_of(shown["doc_id"])
        st.dataframe(
            pd.DataFrame(
                {
                    _("Query"): [
                        study.dataset.query_names[query][:_CELL] for query in shown["query_id"]
                    ],
                    _("Document"): [names[doc][:_CELL] for doc in shown["doc_id"]],
                    _("Reason"): [in_words(error) for error in shown["error"]],
                }
            ),
            hide_index=True,
        )

    fold(
        ngettext("{n} pair without a grade", "{n} pairs without a grade", len(lost)),
        "judge.failures",
        ":material/error:",
        table,
    )


def repeats(row: JudgeRow) -> Repeats | None:
    """How far the judge agrees with itself; None where each pair was asked once."""
    asked = int(row.settings.get("repeats", 1))
    if asked < 2:
        return None
    said = grades(row)
    tables = []
    for place in range(asked):
        own = [
            answers[place]["grade"] if place < len(answers) else None for answers in said["answers"]
        ]
        table = said[["query_id", "doc_id"]].assign(grade=np.array(own, dtype=np.float64))
        tables.append(table.assign(error=np.where(table["grade"].isna(), "no grade", "")))
    scale = (0.0, float(row.top))
    return repeated([Judgements(row.name, scale, table) for table in tables])
