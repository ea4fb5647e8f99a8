"""Skipping the reranker for some queries: what it saves and costs."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import (
    brief,
    level_percent,
    ngettext,
    number,
    paragraph,
    percent,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.study import labelling
from rankdash.core.study.labelling import TOLERANCE
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.rank_shifts import charts_skipping
from rankdash.features.rank_shifts import study as rank_shifts_study
from rankdash.features.rank_shifts.page import depth, share
from rankdash.features.rank_shifts.skipping import (
    FEWEST,
    FOLDS,
    MARGINS,
    NEAR_TIE,
    Margin,
    Skipping,
    even,
    near_ties,
    saving,
)
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets import pickers, view
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.text import name_safe, signed_cells

_PRICE_WIDTH = 240
_MOST_PAID = 1e9
_TOLERANCES = ("0", "0.005", "0.01", "0.02", "0.05")


def draw(study: Study, challenger: str) -> None:
    st.subheader(_("When not to rerank"), anchor=False)
    if challenger == FIRST_STAGE:
        st.info(
            _("If reranking is skipped, the first stage's ranking is used. Choose a reranker."),
            icon=":material/info:",
        )
        return
    if not study.dataset.labelled_queries:
        st.info(
            _("Labels are needed to measure the cost of skipping reranking."),
            icon=":material/info:",
        )
        return
    st.caption(
        _(
            "If the first stage separates its candidates clearly, a query may need no reranking. "
            "The gap between two of its scores, as a share of its score range for that query, "
            "measures this."
        )
    )
    margin, tolerance, price = _controls(study)
    skipping = _skipping(study, challenger, margin, tolerance)
    gaps = rank_shifts_study.margins(study, FIRST_STAGE, depth(study))[margin]
    if skipping.n == 0:
        st.info(_("No query has a metric value in both systems."), icon=":material/info:")
        return
    readout(study, challenger, skipping, gaps)
    if skipping.rule is not None and skipping.holds:
        savings(study, challenger, gaps, skipping.rule.threshold, price)
    if skipping.no_margin:
        st.caption(
            ngettext(
                "{n} query has a list too short for this margin and is always reranked.",
                "{n} queries have a list too short for this margin and are always reranked.",
                skipping.no_margin,
            )
        )
    points, cost = st.columns(2, gap="medium")
    with points:
        _points(study, challenger, margin, tolerance)
    with cost:
        shared(_cost, study, challenger, margin, tolerance)
    fold(
        _("Thresholds as a table"),
        "shifts.thresholds",
        ":material/table:",
        lambda: _threshold_table(skipping),
    )
    fold(
        _("Near-ties, and predictive value of each margin"),
        "shifts.near",
        ":material/balance:",
        lambda: _near(study, challenger, tolerance),
    )


def _controls(study: Study) -> tuple[Margin, float, float | None]:
    # They wrap in a narrow window.
    row = st.container(horizontal=True, vertical_alignment="bottom")
    kinds, losses = row.container(width="content"), row.container(width="content")
    money = row.container(width=_PRICE_WIDTH)
    k = depth(study)
    with kinds:
        chosen = pickers.pick_one(
            "margin",
            list(MARGINS),
            st.segmented_control,
            default="first",
            label=_("Margin of the first stage"),
            format_func=lambda name: margin_words(k)[name],
            required=True,
        )
    with losses:
        loss = pickers.pick_one(
            "loss",
            list(_TOLERANCES),
            st.segmented_control,
            default=f"{TOLERANCE:g}",
            label=_("Acceptable loss, as a share of the mean"),
            format_func=lambda value: percent(
                float(value), 0 if float(value) in (0, 0.01, 0.02, 0.05) else 1
            ),
            required=True,
        )
    price = pickers.pick_free(
        "paid",
        money.number_input,
        amount,
        lambda value: None if value is None else f"{value:.10g}",
        label=_("Reranking price per 1,000 searches"),
        min_value=0.0,
        max_value=_MOST_PAID,
        value=None,
        placeholder=_("not set"),
    )
    margin: Margin = "edge" if chosen == "edge" else "first"
    return margin, float(loss or TOLERANCE), price


def amount(text: str | None) -> float | None:
    """Return an amount of money from a text of the address; None if it is not valid."""
    try:
        amount = float(text or "")
    except ValueError:
        return None
    return amount if 0 <= amount <= _MOST_PAID else None


def margin_words(k: int) -> dict[str, str]:
    return {
        "first": _("gap between ranks 1 and 2"),
        "edge": _("gap between ranks {k} and {next}", k=k, next=k + 1),
    }


def _skipping(study: Study, challenger: str, margin: Margin, tolerance: float) -> Skipping:
    return rank_shifts_study.skipping(study, challenger, margin, depth(study), tolerance)


def _points(study: Study, challenger: str, margin: Margin, tolerance: float) -> None:
    st.markdown(_("**Change by reranking against the margin**"))
    figure, alt = shared(_change_by_margin, study, challenger, margin, tolerance)
    event = widgets_charts.show(
        figure, alt=alt, key=f"shifts.margins.{challenger}", on_select="rerun"
    )
    st.caption(_("Click a point to open its query."))
    picked = [
        point["customdata"] for point in event["selection"]["points"] if "customdata" in point
    ]
    if picked and picked[0]:
        view.open_query(str(picked[0]))


def _change_by_margin(
    study: Study, challenger: str, margin: Margin, tolerance: float
) -> tuple[Any, str]:
    skipping = _skipping(study, challenger, margin, tolerance)
    chart = charts_skipping.margins_chart(
        rank_shifts_study.against_first_stage(study, challenger),
        rank_shifts_study.margins(study, FIRST_STAGE, depth(study))[margin],
        rank_shifts_study.change_by_margin(study, challenger, margin, depth(study)),
        study.measure.title,
        threshold=skipping.rule.threshold if skipping.rule else None,
        tie_band=study.statistics.tie_band,
        names=study.dataset.query_names,
    )
    return widgets_charts.drawn(chart)


def _cost(study: Study, challenger: str, margin: Margin, tolerance: float) -> None:
    skipping = _skipping(study, challenger, margin, tolerance)
    st.markdown(_("**Cost of skipping**"))
    title = study.measure.title
    widgets_charts.draw(
        charts_skipping.skipping_chart(
            skipping.curve,
            title,
            skipping.tolerance,
            chosen=skipping.rule.threshold if skipping.rule else None,
            level=study.statistics.level,
        ),
        key="shifts.skipping",
    )


def _threshold_table(skipping: Skipping) -> None:
    curve = skipping.curve
    columns = {
        _("margin of at least"): curve["threshold"].where(curve["skipped"] > 0),
        _("queries skipped"): curve["skipped"],
        _p("column", "share"): curve["share"],
        _p("column", "mean"): curve["mean"],
        _p("column", "change"): curve["change"],
        _p("column", "low"): curve["low"],
        _p("column", "high"): curve["high"],
        _("at random"): curve["random"],
    }
    st.dataframe(
        signed_cells(
            pd.DataFrame(columns),
            dict.fromkeys(
                (_p("column", "change"), _p("column", "low"), _p("column", "high"), _("at random")),
                4,
            ),
        ),
        hide_index=True,
        placeholder="–",
        column_config={
            _("margin of at least"): st.column_config.NumberColumn(format="%.4f"),
            _p("column", "share"): st.column_config.NumberColumn(format="percent"),
            _p("column", "mean"): st.column_config.NumberColumn(format="%.4f"),
        },
        alt=_("Share skipped, mean and loss for each threshold"),
    )


def _near(study: Study, challenger: str, tolerance: float) -> None:
    """Draw near-ties of each system, and the predictive value of each margin of the first stage."""
    k = depth(study)
    words = margin_words(k)
    rows = []
    for system in dict.fromkeys((FIRST_STAGE, *study.chosen)):
        table = near_ties(rank_shifts_study.margins(study, system, k).reset_index())
        name = study.systems[system].name
        rows += [{"system": name, **row} for row in table.to_dict("records")]
    frame = pd.DataFrame(rows)
    share_column = st.column_config.NumberColumn(format="percent")
    near, tied = _("gap up to {near}", near=percent(NEAR_TIE)), _("exact ties")
    st.dataframe(
        pd.DataFrame(
            {
                _p("column", "system"): frame["system"],
                _p("column", "margin"): frame["margin"].map(words),
                _p("column", "queries"): frame["n"],
                _("median gap"): frame["median"],
                near: frame["near"],
                tied: frame["tied"],
            }
        ),
        hide_index=True,
        placeholder="–",
        column_config=dict.fromkeys((_("median gap"), near, tied), share_column),
        alt=_("Near-ties of each system"),
    )
    st.caption(
        _(
            "Gaps are shares of a system's score range for a query, so they are comparable "
            "between systems; raw scores are not."
        )
    )
    sentences = []
    for margin in MARGINS:
        skipping = _skipping(study, challenger, margin, tolerance)
        sentences.append(
            {
                _p("column", "margin"): words[margin],
                _("advantage over random"): skipping.advantage,
                _p("column", "low"): skipping.advantage_low,
                _p("column", "high"): skipping.advantage_high,
                _("predicts which queries to skip"): _p("answer", "yes")
                if skipping.margin_helps
                else _("not proven"),
            }
        )
    st.dataframe(
        signed_cells(
            pd.DataFrame(sentences),
            dict.fromkeys(
                (_("advantage over random"), _p("column", "low"), _p("column", "high")), 4
            ),
        ),
        hide_index=True,
        placeholder="–",
        alt=_("Predictive value of each margin"),
    )
    st.caption(
        _(
            "Advantage over random: {metric} preserved by skipping the queries with the largest "
            "score margin instead of as many random queries, averaged over all shares.",
            metric=study.measure.title,
        )
    )


# The answer in words, its reliability, and the savings.


def readout(study: Study, challenger: str, skipping: Skipping, gaps: pd.Series[float]) -> None:
    """Draw the rule in one sentence, or why no rule can be chosen, and how its effect was
    estimated."""
    metric = study.measure.title
    if skipping.rule is None or skipping.held_out is None:
        if skipping.n < FEWEST:
            words = _(
                "Too few queries to choose a rule: {n}. At least {fewest} are needed.",
                n=skipping.n,
                fewest=FEWEST,
            )
        elif even(gaps):
            words = _(
                "The first stage's scores are evenly spaced, possibly because the file contains "
                "only ranks. Its margins cannot predict which queries to skip."
            )
        elif labelling.first_stage_kind(study, challenger) not in ("better", "small"):
            words = _(
                "**No safe rule, and no proven gain.** Skipping even a few of the queries with "
                "the largest score margin may lower {metric} by more than {loss}. It is also not "
                "proven that {system} raises {metric}.",
                metric=metric,
                loss=number(skipping.tolerance),
                system=name_safe(study.name(challenger)),
            )
        else:
            words = _(
                "**Rerank everything.** Skipping even a few of the queries with the largest score "
                "margin may lower {metric} by more than {loss}.",
                metric=metric,
                loss=number(skipping.tolerance),
            )
        st.info(words, icon=":material/info:")
        return
    rule, other = skipping.rule, skipping.held_out
    params = {
        "share": share(rule.share),
        "threshold": number(rule.threshold),
        "metric": metric,
        "change": signed(other.change),
        "level": level_percent(study.statistics.level),
        "low": signed(other.low),
        "high": signed(other.high),
        "loss": number(skipping.tolerance),
        "random": signed(-rule.share * (skipping.reranked - skipping.first_stage)),
        "system": name_safe(study.name(challenger)),
    }
    if not skipping.holds:
        st.warning(
            _(
                "**No safe rule.** Skipping {share} of the queries (margin of at least "
                "{threshold}) seems safe on the queries used to choose it, but on held-out "
                "queries {metric} changes by {change} ({level}: {low} … {high}); the acceptable "
                "loss is {loss}.",
                **params,
            ),
            icon=":material/warning:",
        )
    elif rule.share == 1:
        st.warning(
            _(
                "**The gain of {system} is within the acceptable loss.** Without it {metric} "
                "changes by {change} ({level}: {low} … {high}); the acceptable loss is {loss}.",
                **params,
            )
            if labelling.first_stage_kind(study, challenger) in ("better", "small")
            else _(
                "**No query needs {system}.** Without it {metric} changes by {change} ({level}: "
                "{low} … {high}); the acceptable loss is {loss}.",
                **params,
            ),
            icon=":material/block:",
        )
    elif skipping.margin_helps:
        st.success(
            _(
                "**{share} of the queries can skip reranking**: those with a margin of at least "
                "{threshold}. On held-out queries {metric} changes by {change} ({level}: {low} … "
                "{high}); the acceptable loss is {loss}.",
                **params,
            ),
            icon=":material/check_circle:",
        )
    else:
        st.info(
            _(
                "**{share} of the queries can skip reranking, but the margin is not proven to "
                "pick the right ones.** With a margin of at least {threshold}, {metric} changes "
                "by {change} on held-out queries ({level}: {low} … {high}); as many queries "
                "picked at random would change it by {random}.",
                **params,
            ),
            icon=":material/shuffle:",
        )
    st.caption(
        _(
            "The threshold was chosen on all queries. Its effect was estimated by {folds}-fold "
            "cross-validation (seed {seed}), which skipped {share} of the held-out queries.",
            folds=FOLDS,
            seed=study.statistics.seed,
            share=share(other.share),
        )
    )


def savings(
    study: Study, challenger: str, gaps: pd.Series[float], threshold: float, price: float | None
) -> None:
    """Draw the savings of the rule in calls, time and money."""
    run = study.run(challenger)
    saved = None if run is None else saving(run.queries, gaps, threshold)
    if saved is None or not saved.n:
        return
    sentences = [_("Saves **{share}** of the calls.", share=share(saved.share))]
    if math.isfinite(saved.pairs):
        sentences[0] = _(
            "Saves **{share}** of the calls and {pairs} of the query–document pairs.",
            share=share(saved.share),
            pairs=share(saved.pairs),
        )
    if saved.timed:
        sentences.append(
            ngettext(
                "Reranking takes {mean} → **{mean_left} ms** on average and {p95} → {p95_left} ms "
                "at p95, over {n} timed query.",
                "Reranking takes {mean} → **{mean_left} ms** on average and {p95} → {p95_left} ms "
                "at p95, over {n} timed queries.",
                saved.timed,
                mean=brief(saved.mean_before),
                mean_left=brief(saved.mean_after),
                p95=brief(saved.p95_before),
                p95_left=brief(saved.p95_after),
            )
        )
    else:
        sentences.append(_("The latency was not measured."))
    if price is not None:
        sentences.append(
            _(
                "1,000 searches cost {left} instead of {price}.",
                left=number(price * (1 - saved.share), 4),
                price=number(price, 4),
            )
        )
    st.markdown(paragraph(sentences))
