"""Results on the page Judge: agreement with human labels, corrected verdicts, pairs to review."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import (
    level_percent,
    moment,
    ngettext,
    number,
    percent,
    plain,
    reason_text,
    signed,
)
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import FEWEST_QUERIES
from rankdash.core.data.judgements import Judgements
from rankdash.core.sampling.bias_corrected import ranked_judges
from rankdash.core.sampling.rater_agreement import (
    FEWEST_PAIRS,
    JudgeAgreement,
    Kappa,
    Repeats,
    repeated,
)
from rankdash.core.statistics.verdict import is_proven
from rankdash.core.study.judged import (
    JudgedVerdict,
    agreed,
    agreement_groups,
    favours,
    flagged,
    verdicts,
)
from rankdash.core.study.study import Study
from rankdash.core.words.judged import (
    bias_sentence,
    group_kind,
    group_name,
    judge_caveats,
    judge_warnings,
    judged_sentence,
    three_ways,
    worth_sentence,
)
from rankdash.core.words.verdicts import change_interval
from rankdash.core.words.verdicts import interval as interval_text
from rankdash.core.workspace.jobs.judges import JudgeRow
from rankdash.features.judge import charts, page_list
from rankdash.kit.html import interval
from rankdash.kit.widgets import address, stored, view
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.cache import cache, shared
from rankdash.kit.widgets.labels import plan
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.stored import grades
from rankdash.kit.widgets.text import markdown_safe, table_html

_HEIGHT = 420


def draw(study: Study, row: JudgeRow, challenger: str) -> None:
    """Draw the verdict on a challenger: human labels only, judge only, and corrected."""
    judge = stored.judgements(row)
    judged = replace(plan.under_way(study), judge=judge)
    shared(draw_verdict, judged, challenger)
    _beside(row)
    curve(judged, challenger)
    page_list.ask_again(row, _lost(judged, judge))


def draw_agreement(study: Study, row: JudgeRow) -> None:
    """Draw how well the judge agrees with human labels."""
    judge = stored.judgements(row)
    judged = replace(plan.under_way(study), judge=judge)
    st.header(_("Agreement with human labels"), anchor=False)
    agreement = agreed(judged, judge)
    if not len(agreement.pairs):
        st.info(
            _("None of the documents that the judge graded has a human label."),
            icon=":material/info:",
        )
        view.link("label", _("Label documents"), ":material/label:")
        return
    _agreement(agreement)
    _groups(judged, judge)


def _lost(study: Study, judge: Judgements) -> list[tuple[str, str]]:
    """Return (query id, document id) of the pairs that the judge failed to grade, in queries with
    human labels."""
    missing = pd.concat([each.lost for each in verdicts(study, judge).values()])
    failed = missing[missing["kind"] != "not_asked"]
    return list(dict.fromkeys(zip(failed["query_id"], failed["doc_id"], strict=True)))


def _beside(row: JudgeRow) -> None:
    """Draw the toggle that shows this judge's verdict on Overview and in the report."""

    def changed() -> None:
        address.choose(view.JUDGE, row.id if st.session_state[key] else None)

    key = f"judge.beside.{row.id}"
    st.toggle(
        _("Show this verdict on Overview and in the report"),
        value=address.one(view.JUDGE) == row.id,
        key=key,
        on_change=changed,
    )


def _agreement(agreement: JudgeAgreement) -> None:
    overall = agreement.overall
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.html(_matrix(agreement.unweighted))
        st.caption(_("Rows: human label. Columns: judge's grade."))
    with right:
        pairs = ngettext("{n} pair", "{n} pairs", len(agreement.pairs))
        queries = ngettext("{n} query", "{n} queries", int(overall["queries"]))
        st.markdown(
            _(
                "Human label and judge's grade for {pairs} of {queries}.",
                pairs=pairs,
                queries=queries,
            )
        )
        st.html(
            table_html(
                [
                    _p("column", "Measure"),
                    _p("column", "value"),
                    _("{level} interval", level=percent(0.95)),
                ],
                [
                    [_p("column", "kappa"), *_kappa(agreement.unweighted)],
                    [_("kappa, quadratic"), *_kappa(agreement.quadratic)],
                    [_("same grade"), percent(overall["agree"]), ""],
                    [_("judge higher"), percent(overall["over"]), ""],
                    [_("judge lower"), percent(overall["under"]), ""],
                    [_("relevant by human label"), percent(overall["people_relevant"]), ""],
                    [_("relevant by the judge"), percent(overall["judge_relevant"]), ""],
                ],
            )
        )
        if len(agreement.pairs) < FEWEST_PAIRS or int(overall["queries"]) < FEWEST_QUERIES:
            st.caption(
                _(
                    "Kappa needs at least {n} pairs. Its interval also needs at least {queries} "
                    "queries.",
                    n=number(FEWEST_PAIRS, 0),
                    queries=number(FEWEST_QUERIES, 0),
                )
            )
        if agreement.binary:
            st.caption(
                _(
                    "The scales differ (labels up to {highest}, grades up to {top}). Both are "
                    "compared as relevant (1) or not relevant (0): labels of at least {n} and "
                    "grades of at least {grade} are relevant.",
                    highest=plain(agreement.highest),
                    top=plain(agreement.top),
                    n=plain(agreement.threshold),
                    grade=plain(agreement.cut),
                )
            )
        st.caption(
            _(
                "High agreement is not enough: a judge that favours one system can reverse the "
                "verdict."
            )
        )


def _kappa(kappa: Kappa) -> list[str]:
    written = partial(number, digits=2)
    return [written(kappa.kappa), interval_text(kappa.low, kappa.high, written)]


def _matrix(kappa: Kappa) -> str:
    grades = [plain(grade) for grade in kappa.grades]
    rows = [
        [grade, *(number(count, 0) for count in counts)]
        for grade, counts in zip(grades, kappa.table.tolist(), strict=True)
    ]
    return table_html(["", *grades], rows)


def _groups(study: Study, judge: Judgements) -> None:
    table = agreement_groups(study, judge)
    headings = [
        *(
            _p("column", "Group"),
            _p("column", "Pairs"),
            _p("column", "Same"),
            _p("column", "Higher"),
            _p("column", "Lower"),
            _p("column", "Difference"),
        ),
        _p("column", "Kappa"),
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
            "Share of pairs that the judge grades the same as, higher than or lower than the "
            "human label. Difference: mean of judge grade minus human label."
        )
    )


# Comparison of several judges of a data set by how many labels they save.


def draw_choice(study: Study, rows: Sequence[JudgeRow], challenger: str) -> None:
    """Draw a table that ranks judges by the human-labelled queries that each saves. rows: at least
    two judges with grades."""
    by_judge, study = {}, plan.under_way(study)
    for row in rows:
        judge = stored.judgements(row)
        judged = replace(study, judge=judge)
        by_judge[row.id] = verdicts(judged, judge)[challenger].three, agreed(judged, judge)
    names = {row.id: f"{row.name} · {moment(row.created)}" for row in rows}
    cells = [
        [
            names[each["judge"]],
            number(each["kappa"], 2),
            signed(each["alone"], 4),
            change_interval(each["low"], each["high"]),
            number(each["worth"], 2),
            number(each["saved"], 0),
        ]
        for each in ranked_judges(by_judge).to_dict("records")
    ]
    headings = [
        *(
            _p("column", "Judge"),
            _p("column", "kappa"),
            _("judge only"),
            _("judge corrected with human labels"),
        ),
        *(_("labelled query counts (×)"), _("labelled queries saved")),
    ]
    st.html(table_html(headings, cells))
    st.caption(
        _(
            "Sorted by how much each judge narrows the interval. A higher kappa may save less: "
            "what matters is how well its changes correlate with those from human labels."
        )
    )


# Verdict on a challenger: human labels only, judge only, and judge corrected with human labels.


def draw_verdict(study: Study, challenger: str, framed: bool = False) -> None:
    """Draw the verdict on a challenger, corrected with human labels, and its intervals. Details are
    in an expander. Draw nothing without a judge."""
    if study.judge is None:
        return
    with st.container(border=framed):
        verdict = verdicts(study, study.judge)[challenger]
        sentence, worth = judged_sentence(study, verdict), worth_sentence(verdict)
        with st.container(horizontal=True, vertical_alignment="center"):
            widgets_charts.verdict(verdict.kind)
            name = view.safe_name(study, challenger)
            st.markdown(f"**{name}** · {study.measure.title}", width="content")
        st.markdown(markdown_safe(worth or sentence, 800))
        st.html(interval.rows_html(_ways(study, verdict)))
        bias, notes = bias_sentence(study, verdict), judge_caveats(study, verdict)
        warnings = judge_warnings(study, verdict)
        if bias and favours(study, study.judge)[challenger].proven:
            warnings.insert(0, bias)
        elif bias:
            notes.insert(0, bias)
        for warning in warnings:
            st.warning(markdown_safe(warning, 800), icon=":material/warning:")
        if worth:
            notes.insert(0, sentence)
        with st.expander(_("Explanation and caveats"), icon=":material/notes:"):
            st.markdown("\n".join(f"- {markdown_safe(each, 800)}" for each in notes))


def _ways(study: Study, verdict: JudgedVerdict) -> list[tuple[str, str, str]]:
    """Return (title, picture as HTML, numbers) of three estimates of the same change: by human
    labels, by the judge, and by the judge corrected with human labels. The pictures share one
    axis."""
    ways, level = three_ways(verdict.three), study.statistics.level
    axis = interval.common_axis(
        end for _title, change in ways for end in (change.mean, change.low, change.high)
    )
    rows: list[tuple[str, str, str]] = []
    # A judge without human labels proves nothing.
    for (title, change), p in zip(ways, (verdict.three.people.p, math.nan, verdict.p), strict=True):
        numbers = [ngettext("{n} query", "{n} queries", change.n)]
        if math.isfinite(change.low):
            ends = change_interval(change.low, change.high)
            numbers.insert(0, f"{level_percent(level)} {ends}")
        if math.isfinite(change.mean):
            numbers.insert(0, signed(change.mean, 4))
        summary = " · ".join(numbers)
        picture = interval.interval_html(
            change.mean,
            change.low,
            change.high,
            axis,
            _("{part}: {value}", part=title, value=summary),
            proven=is_proven(change.low, change.high, p, level),
            labelled=not rows,
        )
        rows.append((title, picture, summary))
    return rows


def curve(study: Study, challenger: str) -> None:
    """Draw a chart of how more human-labelled queries would narrow the interval, in an expander.
    Draw nothing if this cannot be predicted."""
    drawn = charts.label_curve(study, challenger)
    if drawn is not None:
        fold(
            _("Effect of labelling more queries"),
            f"judge.curve.{challenger}",
            ":material/show_chart:",
            lambda: widgets_charts.draw(drawn, key=f"judge.curve.{challenger}.chart"),
        )


# Pairs to review: different grades, and possible prompt injections.

_MOST, _LONGEST, _CELL = 500, 5_000, 200


def draw_pairs(study: Study, row: JudgeRow) -> None:
    judge = stored.judgements(row)
    _repeats(row)
    differing = agreed(study, judge).disagreements
    if len(differing):
        fold(
            ngettext(
                "{n} pair with different human label and judge's grade",
                "{n} pairs with different human label and judge's grade",
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
                "Possible prompt injection in {n} pair, such as an instruction to give a high "
                "grade. Review this pair before you trust its grade.",
                "Possible prompt injection in {n} pairs, such as an instruction to give a high "
                "grade. Review these pairs before you trust their grades.",
                len(speaking),
            ),
            icon=":material/flag:",
        )
        fold(
            _("Possible prompt injections"),
            "judge.flagged",
            ":material/flag:",
            lambda: _read(study, row, speaking, "flagged"),
        )
    _failures(study, row)


def _repeats(row: JudgeRow) -> None:
    consistency = repeats(row)
    if consistency is None:
        return
    if consistency.pairs:
        st.caption(
            _(
                "With {n} repeats, the judge gave {same} of the pairs the same grade every time. "
                "Kappa between repeats: {kappa}.",
                n=consistency.repeats,
                same=percent(consistency.same),
                kappa=number(consistency.kappa, 2),
            )
        )
    if fewer := stored.from_fewer_answers(row):
        st.caption(
            ngettext(
                "{n} pair has a grade from fewer than {asked} repeats, because other answers "
                "failed or could not be parsed.",
                "{n} pairs have a grade from fewer than {asked} repeats, because other answers "
                "failed or could not be parsed.",
                fewer,
                asked=number(consistency.repeats, 0),
            )
        )


def _read(study: Study, row: JudgeRow, pairs: pd.DataFrame, key: str) -> None:
    """Draw a table of graded query–document pairs; below it, the texts of the selected pair."""
    data, shown = study.dataset, pairs.head(_MOST)
    names = data.names_of(shown["doc_id"])
    # Grades come first: long texts must not move them out of view.
    grades = {_p("column", "Judge"): shown["grade"].map(_grade)}
    if "label" in shown:
        grades[_("Human label")] = shown["label"].map(plain)
        grades[_p("column", "Difference")] = shown["difference"].map(lambda each: signed(each, 0))
    columns = {
        **grades,
        _p("column", "Query"): [data.query_names[query][:_CELL] for query in shown["query_id"]],
        _p("column", "Document"): [names[doc][:_CELL] for doc in shown["doc_id"]],
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
        st.caption(_("Only the first {n} pairs are shown.", n=number(_MOST, 0)))
    places = chosen["selection"]["rows"]
    if not places:
        st.caption(_("Select a row to see the texts and the judge's reason."))
        return
    _pair(study, row, shown.iloc[places[0]])


def _grade(grade: float) -> str:
    return _("no grade") if math.isnan(grade) else plain(grade)


def _pair(study: Study, row: JudgeRow, pair: pd.Series) -> None:
    """Draw the texts of a pair next to its human label and the judge's grades and reasons. The
    texts are not rendered as Markdown."""
    data = study.dataset
    graded = stored.grades(row)
    pair_grades = graded[
        (graded["query_id"] == pair["query_id"]) & (graded["doc_id"] == pair["doc_id"])
    ]
    left, right = st.columns(2, gap="large")
    with left:
        st.caption(_p("heading", "Query"))
        st.text(data.query_names[pair["query_id"]])
        st.caption(_p("heading", "Document"))
        st.text(str(data.document_text().get(pair["doc_id"], ""))[:_LONGEST])
    with right:
        if "label" in pair:
            st.caption(
                _(
                    "Human label: {label}, judge: {grade} ({difference})",
                    label=plain(pair["label"]),
                    grade=plain(pair["grade"]),
                    difference=signed(pair["difference"], 0),
                )
            )
        for answer in [each for answers in pair_grades["answers"] for each in answers]:
            grade = _("no grade") if answer["grade"] is None else plain(answer["grade"])
            st.caption(_("Judge's reason for grade {grade}", grade=grade))
            st.text(answer["reason"] or reason_text(answer["error"]))


def _failures(study: Study, row: JudgeRow) -> None:
    graded = stored.grades(row)
    lost = graded[(graded["grade"].isna()) & (graded["kind"] != "not_asked")]
    if not len(lost):
        return

    def table() -> None:
        shown = lost.head(_MOST)
        names = study.dataset.names_of(shown["doc_id"])
        st.dataframe(
            pd.DataFrame(
                {
                    _p("column", "Query"): [
                        study.dataset.query_names[query][:_CELL] for query in shown["query_id"]
                    ],
                    _p("column", "Document"): [names[doc][:_CELL] for doc in shown["doc_id"]],
                    _p("column", "Reason"): [reason_text(error) for error in shown["error"]],
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
    """Return the consistency of the judge's repeated grades; None if each pair was graded once."""
    requested = int(row.settings.get("repeats", 1))
    if requested < 2:
        return None
    graded = grades(row)
    tables = []
    for place in range(requested):
        repeat_grades = [
            answers[place]["grade"] if place < len(answers) else None
            for answers in graded["answers"]
        ]
        table = graded[["query_id", "doc_id"]].assign(
            grade=np.array(repeat_grades, dtype=np.float64)
        )
        tables.append(table.assign(error=np.where(table["grade"].isna(), "no grade", "")))
    scale = (0.0, float(row.top))
    return repeated([Judgements(row.name, scale, table) for table in tables])
