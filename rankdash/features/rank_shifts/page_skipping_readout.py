"""When not to rerank: the answer in words, how far it can be trusted, and what it saves."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import brief, ngettext, number, paragraph, percent, signed
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study import first_stage
from rankdash.core.study.study import Study
from rankdash.features.rank_shifts.margins import even
from rankdash.features.rank_shifts.page_shifts_view import share
from rankdash.features.rank_shifts.skipping import FEWEST, FOLDS, Skipping, saving
from rankdash.kit.widgets.text import name_safe


def readout(study: Study, challenger: str, found: Skipping, gaps: pd.Series[float]) -> None:
    """The answer in one sentence, and how far it can be trusted."""
    metric = study.measure.title
    if found.rule is None or found.held_out is None:
        if found.n < FEWEST:
            words = _(
                "Too few queries to choose a rule: {n}. At least {fewest} are needed.",
                n=found.n,
                fewest=FEWEST,
            )
        elif even(gaps):
            words = _(
                "The first stage's scores are evenly spaced, as if a file gave only ranks: its "
                "margins cannot say which queries to skip."
            )
        elif first_stage.first_stage_kind(study, challenger) not in ("better", "small"):
            words = _(
                "**No safe rule, and no proven gain.** Skipping even a few of the queries with "
                "the largest score margin may lower {metric} by more than {loss}; but it is not "
                "proven either that {system} raises it.",
                metric=metric,
                loss=number(found.tolerance),
                system=name_safe(study.name(challenger)),
            )
        else:
            words = _(
                "**Rerank everything.** Skipping even a few of the queries with the largest score "
                "margin may lower {metric} by more than {loss}.",
                metric=metric,
                loss=number(found.tolerance),
            )
        st.info(words, icon=":material/info:")
        return
    rule, other = found.rule, found.held_out
    params = {
        "share": share(rule.share),
        "threshold": number(rule.threshold),
        "metric": metric,
        "change": signed(other.change),
        "level": percent(study.statistics.level),
        "low": signed(other.low),
        "high": signed(other.high),
        "loss": number(found.tolerance),
        "random": signed(-rule.share * (found.reranked - found.first_stage)),
        "system": name_safe(study.name(challenger)),
    }
    if not found.holds:
        st.warning(
            _(
                "**No safe rule.** Skipping {share} of the queries (margin of at least "
                "{threshold}) looks harmless here, but on held-out queries {metric} changes by "
                "{change} ({level}: {low} … {high}), and the acceptable loss is {loss}.",
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
            if first_stage.first_stage_kind(study, challenger) in ("better", "small")
            else _(
                "**No query needs {system}.** Without it {metric} changes by {change} ({level}: "
                "{low} … {high}); the acceptable loss is {loss}.",
                **params,
            ),
            icon=":material/block:",
        )
    elif found.margin_helps:
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
    """What the rule saves in calls, time and money."""
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
        sentences.append(_("Its latency was not measured."))
    if price is not None:
        sentences.append(
            _(
                "1,000 searches cost {left} instead of {price}.",
                left=number(price * (1 - saved.share), 4),
                price=number(price, 4),
            )
        )
    st.markdown(paragraph(sentences))
