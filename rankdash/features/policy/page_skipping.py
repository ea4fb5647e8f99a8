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
from rankdash.core.study import labelling, pricing
from rankdash.core.study.labelling import TOLERANCE
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words.prices import money
from rankdash.features.policy import charts, charts_skipping, page_choice
from rankdash.features.policy.skipping import (
    FEWEST,
    FOLDS,
    MARGINS,
    NEAR_TIE,
    Margin,
    Skipping,
    against_first_stage,
    change_by_margin,
    even,
    margins,
    near_ties,
    rank_after,
    saving,
)
from rankdash.features.policy.skipping import skipping as skipping_of
from rankdash.kit.widgets import address, pickers, view
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.scenario import currency
from rankdash.kit.widgets.text import name_safe, signed_cells

_TOLERANCES = ("0", "0.005", "0.01", "0.02", "0.05")


def chosen() -> tuple[Margin, float] | None:
    """Return the margin and the acceptable loss of the rule in the policy; None without one."""
    if address.one("policy_skip") != page_choice.YES:
        return None
    loss = address.one("loss")
    margin: Margin = "edge" if address.one("margin") == "edge" else "first"
    return margin, float(loss) if loss in _TOLERANCES else TOLERANCE


def show(study: Study, challenger: str) -> None:
    """Draw which queries can skip the reranker, and what this costs and saves."""
    top = st.container()
    margin, tolerance, chosen = _controls(study)
    skipping = _skipping(study, challenger, margin, tolerance)
    gaps = margins(study, FIRST_STAGE, rank_after(study))[margin]
    with top:
        if skipping.n == 0:
            st.info(_("No query has a metric value in both systems."), icon=":material/info:")
            return
        readout(study, challenger, skipping, gaps)
        if skipping.rule is not None and skipping.holds:
            savings(study, challenger, gaps, skipping.rule.threshold)
    shared(_cost, study, challenger, margin, tolerance, chosen)
    if skipping.no_margin:
        st.caption(
            ngettext(
                "{n} query has a list too short for this margin and is always reranked.",
                "{n} queries have a list too short for this margin and are always reranked.",
                skipping.no_margin,
            )
        )
    fold(
        _("Change by reranking against the margin"),
        "policy.margins",
        ":material/scatter_plot:",
        lambda: _points(study, challenger, margin, tolerance),
    )
    fold(
        _("Thresholds as a table"),
        "policy.thresholds",
        ":material/table:",
        lambda: _threshold_table(skipping),
    )
    fold(
        _("Near-ties, and predictive value of each margin"),
        "policy.near",
        ":material/balance:",
        lambda: _near(study, challenger, tolerance),
    )


def _controls(study: Study) -> tuple[Margin, float, bool]:
    # They wrap in a narrow window.
    row = st.container(horizontal=True, vertical_alignment="bottom")
    kinds, losses = row.container(width="content"), row.container(width="content")
    k = rank_after(study)
    with kinds:
        margin = pickers.pick_one(
            "margin",
            list(MARGINS),
            st.segmented_control,
            default="first",
            label=_("Margin of the first stage"),
            format_func=lambda name: margin_words(k)[name],
            required=True,
            help=_(
                "If the first stage separates its candidates clearly, a query may need no "
                "reranking. The gap between two of its scores, as a share of its score range for "
                "that query, measures this."
            ),
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
    with row.container(width="content"):
        chosen = page_choice.in_policy("policy_skip", _("Skip these queries in the policy"))
    return "edge" if margin == "edge" else "first", float(loss or TOLERANCE), chosen


def margin_words(k: int) -> dict[str, str]:
    return {
        "first": _("gap between ranks 1 and 2"),
        "edge": _("gap between ranks {k} and {next}", k=k, next=k + 1),
    }


def _skipping(study: Study, challenger: str, margin: Margin, tolerance: float) -> Skipping:
    return skipping_of(study, challenger, margin, rank_after(study), tolerance)


def _points(study: Study, challenger: str, margin: Margin, tolerance: float) -> None:
    figure, alt = shared(_change_by_margin, study, challenger, margin, tolerance)
    event = widgets_charts.show(
        figure, alt=alt, key=f"policy.margins.{challenger}", on_select="rerun"
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
        against_first_stage(study, challenger),
        margins(study, FIRST_STAGE, rank_after(study))[margin],
        change_by_margin(study, challenger, margin, rank_after(study)),
        study.measure.title,
        threshold=skipping.rule.threshold if skipping.rule else None,
        tie_band=study.statistics.tie_band,
        names=study.dataset.query_names,
    )
    return widgets_charts.drawn(chart)


def _cost(study: Study, challenger: str, margin: Margin, tolerance: float, chosen: bool) -> None:
    found = _skipping(study, challenger, margin, tolerance)
    curve = found.curve.assign(
        low=found.reranked + found.curve["low"],
        high=found.reranked + found.curve["high"],
        random=found.reranked + found.curve["random"],
    )
    mark = {} if found.rule is None else {_("within this loss"): found.rule.share}
    widgets_charts.draw(
        charts.quality(
            curve,
            study.measure.title,
            x="share",
            title=_("share of queries not reranked"),
            lines={_("acceptable loss"): found.reranked - found.tolerance},
            marks={} if chosen else mark,
            chosen=found.rule.share if chosen and found.rule is not None else None,
            other="random",
            other_title=_("picked at random"),
            scale="percent",
            written=percent,
            level=study.statistics.level,
            hover=[
                "" if math.isinf(threshold) else _("margin of at least {n}", n=number(threshold))
                for threshold in curve["threshold"]
            ],
        ),
        key="policy.skipping",
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
    k = rank_after(study)
    words = margin_words(k)
    rows = []
    for system in dict.fromkeys((FIRST_STAGE, *study.chosen)):
        table = near_ties(margins(study, system, k).reset_index())
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


def savings(study: Study, challenger: str, gaps: pd.Series[float], threshold: float) -> None:
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
    bill = pricing.bill(study, challenger)
    price = None if bill is None or bill.unset else bill.per_thousand
    if price is not None:
        sentences.append(
            _(
                "1,000 searches cost {left} instead of {price}.",
                left=money(price * (1 - saved.share), currency()),
                price=money(price, currency()),
            )
        )
    st.markdown(paragraph(sentences))


def share(value: float) -> str:
    """Return a share of the queries for a sentence, with a decimal near 0% and 100%: 0.4% is not
    0%."""
    return percent(value, 1 if 0 < value < 0.095 or 0.905 < value < 1 else 0)
