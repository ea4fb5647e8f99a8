"""What a judge is worth: the verdict three ways, its agreement with people, and warnings."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number, percent, plain, signed
from rankdash.core.data.judgements import Judgements
from rankdash.core.sampling.kappa import Kappa
from rankdash.core.statistics.verdict import FEWEST_QUERIES
from rankdash.core.study.study import Study
from rankdash.core.workspace.jobs.judges import JudgeRow
from rankdash.features.judge import page_judge_list, page_judged_verdict
from rankdash.features.judge.agreement import FEWEST_PAIRS, JudgeAgreement
from rankdash.features.judge.judging import agreed, agreement_groups, verdicts
from rankdash.features.judge.words_judged import group_kind, group_name
from rankdash.kit.widgets import address, label_plan, stored_judges, view
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.text import table_html

_NONE = "–"
_HEIGHT = 420


def draw(study: Study, row: JudgeRow) -> None:
    judge = stored_judges.judgements(row)
    judged = replace(label_plan.under_way(study), judge=judge)
    if study.challengers:
        st.subheader(_("Verdict"), anchor=False)
        _beside(row)
        for challenger in study.challengers:
            shared(page_judged_verdict.draw, judged, challenger)
            page_judged_verdict.curve(judged, challenger)
        page_judge_list.ask_again(row, _lost(judged, judge))
    st.subheader(_("Agreement with people"), anchor=False)
    found = agreed(judged, judge)
    if not len(found.pairs):
        st.info(
            _("People have labelled none of the documents that the judge graded."),
            icon=":material/info:",
        )
        st.page_link(view.page("label"), label=_("Label documents"), icon=":material/label:")
        return
    _agreement(found)
    _groups(judged, judge)


def _lost(study: Study, judge: Judgements) -> list[tuple[str, str]]:
    """The pairs of people's queries that were asked and have no grade."""
    found = pd.concat([each.lost for each in verdicts(study, judge).values()])
    failed = found[found["kind"] != "not_asked"]
    return list(dict.fromkeys(zip(failed["query_id"], failed["doc_id"], strict=True)))


def _beside(row: JudgeRow) -> None:
    """Whether this judge's verdict is shown beside people's elsewhere."""

    def changed() -> None:
        address.choose(view.JUDGE, row.id if st.session_state[key] else None)

    key = f"judge.beside.{row.id}"
    st.toggle(
        _("Show this verdict on Overview and in the report"),
        value=address.one(view.JUDGE) == row.id,
        key=key,
        on_change=changed,
    )


def _agreement(found: JudgeAgreement) -> None:
    overall = found.overall
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.html(_matrix(found.unweighted))
        st.caption(_("Rows: people's label. Columns: the judge's grade."))
    with right:
        pairs = ngettext("{n} pair", "{n} pairs", len(found.pairs))
        queries = ngettext("{n} query", "{n} queries", int(overall["queries"]))
        st.markdown(
            _(
                "People and the judge both graded {pairs} of {queries}.",
                pairs=pairs,
                queries=queries,
            )
        )
        st.html(
            table_html(
                [_("Measure"), _("value"), _("{level} interval", level=percent(0.95))],
                [
                    [_("kappa"), *_kappa(found.unweighted)],
                    [_("kappa, quadratic"), *_kappa(found.quadratic)],
                    [_("same grade"), percent(overall["agree"]), ""],
                    [_("judge higher"), percent(overall["over"]), ""],
                    [_("judge lower"), percent(overall["under"]), ""],
                    [_("relevant by people"), percent(overall["people_relevant"]), ""],
                    [_("relevant by the judge"), percent(overall["judge_relevant"]), ""],
                ],
            )
        )
        if len(found.pairs) < FEWEST_PAIRS or int(overall["queries"]) < FEWEST_QUERIES:
            st.caption(
                _(
                    "A kappa needs at least {n} pairs, and an interval at least {queries} queries "
                    "too.",
                    n=number(FEWEST_PAIRS, 0),
                    queries=number(FEWEST_QUERIES, 0),
                )
            )
        if found.binary:
            st.caption(
                _(
                    "The scales differ (labels up to {highest}, grades up to {top}): both are "
                    "compared as relevant (1) or not (0), labels from {n} and grades from {grade} "
                    "upwards.",
                    highest=plain(found.highest),
                    top=plain(found.top),
                    n=plain(found.threshold),
                    grade=plain(found.cut),
                )
            )
        st.caption(
            _(
                "Agreement alone is no licence: a judge that agrees well and favours one system "
                "turns a verdict around."
            )
        )


def _kappa(found: Kappa) -> list[str]:
    if math.isnan(found.kappa):
        return [_NONE, _NONE]
    interval = _NONE if math.isnan(found.low) else f"{found.low:.2f} … {found.high:.2f}"
    return [f"{found.kappa:.2f}", interval]


def _matrix(found: Kappa) -> str:
    grades = [plain(grade) for grade in found.grades]
    rows = [
        [grade, *(number(count, 0) for count in counts)]
        for grade, counts in zip(grades, found.table.tolist(), strict=True)
    ]
    return table_html(["", *grades], rows)


def _groups(study: Study, judge: Judgements) -> None:
    table = agreement_groups(study, judge)
    headings = [
        *(_("Group"), _("Pairs"), _("Same"), _("Higher"), _("Lower"), _("Difference")),
        _("Kappa"),
    ]
    rows = [
        [
            _(
                "{part}: {value}",
                part=group_kind(study, row["by"]),
                value=group_name(study, row["by"], row["group"]),
            ),
            number(row["pairs"], 0),
            *(percent(row[share]) for share in ("agree", "over", "under")),
            signed(row["difference"], 2),
            number(row["kappa"], 2),
        ]
        for row in table.to_dict("records")
    ]
    with st.container(height=_HEIGHT):
        st.html(table_html(headings, rows))
    st.caption(
        _(
            "Same, higher, lower: the share of the pairs that the judge grades so, against people. "
            "Difference: the judge's grade less people's, the mean."
        )
    )
