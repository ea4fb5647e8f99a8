"""Floor: documents with a low score are not shown."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import (
    error_text,
    ngettext,
    number,
    paragraph,
    percent,
    share_percent,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.study.study import Study
from rankdash.features.policy import charts
from rankdash.features.policy.floor import (
    ALPHA,
    ALPHAS,
    SPLITS,
    Floor,
    FloorChoice,
    floor,
    floor_choice,
)
from rankdash.features.policy.words import with_interval
from rankdash.kit.widgets import address, pickers
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.text import markdown_safe
from rankdash.kit.widgets.view import safe_name


def chosen() -> float | None:
    """Return the accepted share of lost queries that the user chose; None without a choice."""
    return _read(address.one("floor_alpha"))


def _read(text: str | None) -> float | None:
    return next((each for each in ALPHAS if text == f"{each:g}"), None)


def show(study: Study, challenger: str) -> None:
    """Draw the floor for the accepted share of lost queries, and quality by floor."""
    try:
        found = floor(study, challenger)
    except RankdashError as error:
        st.info(markdown_safe(error_text(error), 400), icon=":material/info:")
        return
    answer = st.empty()
    own = pickers.pick_free(
        "floor_alpha",
        st.segmented_control,
        _read,
        lambda value: None if value is None else f"{value:g}",
        label=_("Accepted share of answerable queries that lose all relevant documents"),
        options=list(ALPHAS),
        format_func=percent,
        help=_(
            "A query is answerable if the labels name a relevant document. A floor loses it if it "
            "removes all relevant documents that the metric counts."
        ),
    )
    alpha = ALPHA if own is None else own
    choice = floor_choice(study, challenger, alpha)
    answer.markdown(_answer(study, challenger, found, choice, example=own is None))
    # Without a floor, all documents have at least the lowest score.
    first = float(found.table["score"].iloc[1])
    table = found.table.assign(score=found.table["score"].clip(lower=first)).drop_duplicates(
        "score"
    )
    score = choice.score if math.isfinite(choice.score) else None
    widgets_charts.draw(
        charts.quality(
            table,
            study.measure.title,
            x="score",
            title=_("lowest score shown"),
            lines={_("no floor"): float(table["mean"].iloc[0])},
            marks={_("at most {share} lost", share=percent(alpha)): score}
            if score is not None and own is None
            else {},
            chosen=None if own is None else score,
            share="shown",
            share_title=_("documents shown"),
            level=study.statistics.level,
            hover=[_effect(row) for row in table.to_dict("records")],
        ),
        key="policy.floor",
    )
    st.caption(_method(study, found, choice))
    fold(_("As a table"), "policy.floors", ":material/table:", lambda: _table(found.table))


def _answer(
    study: Study, challenger: str, found: Floor, choice: FloorChoice, *, example: bool
) -> str:
    """Return the floor and its effect, or why there is none. example: without the user's choice."""
    level = study.statistics.level
    params = {
        "system": safe_name(study, challenger),
        "alpha": percent(choice.alpha),
        "score": number(choice.score, 4),
        "n": number(found.answerable, 0),
    }
    if choice.score == -math.inf:
        return _(
            "**{n} answerable queries are too few** to choose and to check a floor that loses at "
            "most {alpha} of them.",
            **params,
        )
    heads = {
        "no": _(
            "**No floor of {system} separates answerable from unanswerable queries:** show all "
            "documents.",
            **params,
        ),
        "partly": _(
            "**A floor of {system} separates few unanswerable queries from answerable ones.**",
            **params,
        ),
        "yes": _("**Show only documents with a score of at least {score}.**", **params),
    }
    sentences = [
        heads[choice.separates],
        _(
            "A floor of {score} ({limit}) loses {lost} of the answerable queries, and removes "
            "{removed} of their documents; {metric} changes by {change}.",
            limit=_("example: {alpha}", **params) if example else _("accepted: {alpha}", **params),
            lost=with_interval(*choice.lost.row, level, _tenths),
            removed=share_percent(1 - choice.shown.mean),
            metric=study.measure.title,
            change=with_interval(*choice.change.row, level, signed),
            **params,
        ),
        _(
            "Without their relevant documents, {empty} of these queries have an empty list.",
            empty=with_interval(*choice.empty.row, level, _tenths),
        ),
    ]
    return paragraph(sentences)


def _tenths(share: float) -> str:
    return percent(share, 1)


def _method(study: Study, found: Floor, choice: FloorChoice) -> str:
    """Return how the floor was chosen and checked, and its validity."""
    sentences = [
        _(
            "Conformal risk control: the threshold is chosen on a random half of the {n} "
            "answerable queries and applied to the other half, {splits} times (seed {seed}).",
            n=number(found.answerable, 0),
            splits=number(SPLITS, 0),
            seed=study.statistics.seed,
        )
    ]
    if math.isfinite(choice.score):
        low, high = np.quantile(choice.lost_by_split, [0.05, 0.95])
        sentences.append(
            _(
                "In 90% of these halves, {low} to {high} of the queries are lost.",
                low=percent(low, 1),
                high=percent(high, 1),
            )
        )
    unanswerable = int((~np.isnan(found.unanswerable)).sum())
    if unanswerable:
        sentences.append(
            ngettext(
                "Of {n} query whose labels are all not relevant, {share} have an empty list.",
                "Of {n} queries whose labels are all not relevant, {share} have an empty list.",
                unanswerable,
                share=share_percent(choice.unanswerable.mean),
            )
        )
    sentences.append(
        _(
            "A floor is valid only for this model and these settings (fingerprint "
            "`{fingerprint}`).",
            fingerprint=found.fingerprint,
        )
    )
    return paragraph(sentences)


def _effect(row: dict[Hashable, Any]) -> str:
    """Return the effect of a floor on the lists, for its tooltip."""
    return _(
        "shown {shown}, lost {lost}, empty {empty}",
        shown=percent(row["shown"]),
        lost=percent(row["lost"], 1),
        empty=percent(row["empty"], 1),
    )


def _table(table: pd.DataFrame) -> None:
    titles = {
        "score": _("lowest score shown"),
        "mean": _p("column", "mean"),
        "low": _p("column", "low"),
        "high": _p("column", "high"),
        "shown": _("documents shown"),
        "lost": _("answerable queries lost"),
        "empty": _("empty without relevant documents"),
        "unanswerable": _("unanswerable queries with an empty list"),
    }
    shown = table[list(titles)].assign(score=table["score"].where(np.isfinite(table["score"])))
    if shown["unanswerable"].isna().all():
        shown = shown.drop(columns="unanswerable")
    st.dataframe(
        shown.rename(columns=titles),
        hide_index=True,
        placeholder="–",
        column_config={
            **dict.fromkeys(
                (titles[name] for name in ("score", "mean", "low", "high")),
                st.column_config.NumberColumn(format="%.4f"),
            ),
            **dict.fromkeys(
                (titles[name] for name in ("shown", "lost", "empty", "unanswerable")),
                st.column_config.NumberColumn(format="percent"),
            ),
        },
        alt=_("Quality and lost queries by floor"),
    )
    st.caption(
        _(
            "This table counts all queries, those that the floor is chosen on too. The sentence "
            "above is on held-out queries, so it differs for the same score."
        )
    )
