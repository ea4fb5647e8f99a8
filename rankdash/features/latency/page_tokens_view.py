"""How long query and document are together, and how much of them a model does not read."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number, percent
from rankdash.core.study import study_latency
from rankdash.core.study.study import Study
from rankdash.features.latency import charts_token_lengths as lengths_chart
from rankdash.kit.widgets import pickers
from rankdash.kit.widgets.lazy_expander import fold
from rankdash.kit.widgets.plotly_chart import ink, show
from rankdash.kit.widgets.view import short_name


def draw(study: Study) -> None:
    """The lengths of the pairs of one system, and what it did not read."""
    readers = [
        system for system in study.chosen if study_latency.token_lengths(study, system) is not None
    ]
    st.subheader(_("How much the model reads"), anchor=False)
    system = readers[0] if readers else None
    if len(readers) > 1:
        system = pickers.pick_one(
            "reader",
            readers,
            st.segmented_control,
            label=_("System"),
            label_visibility="collapsed",
            format_func=lambda each: short_name(study, each),
            required=True,
        )
    found = study_latency.token_lengths(study, system) if system is not None else None
    if system is None or found is None:
        st.caption(_("None of these systems counts tokens."))
        return
    if found.cut:
        st.markdown(
            _(
                "**{share} of the pairs are cut**: {unread} of all tokens are never read. Half of "
                "the pairs have up to {p50} tokens, 95% up to {p95}.",
                share=_share(found.cut / found.pairs),
                unread=_share(found.unread),
                p50=number(found.p50, 0),
                p95=number(found.p95, 0),
            )
        )
    else:
        st.markdown(
            _(
                "Every pair is read to its end. Half have up to {p50} tokens, 95% up to {p95}.",
                p50=number(found.p50, 0),
                p95=number(found.p95, 0),
            )
        )
    show(
        lengths_chart.figure(found, ink(), name=study.name(system)),
        alt=lengths_chart.alt(found, study.name(system)),
        key="latency.lengths",
    )
    fold(
        _("Lengths as a table"),
        "latency.length_table",
        ":material/table:",
        lambda: _length_table(found.table),
    )


def _share(value: float) -> str:
    return percent(value, 1 if 0 < value < 0.095 else 0)


def _length_table(table: pd.DataFrame) -> None:
    shown = table.assign(stop=table["stop"].where(table["stop"] < math.inf) - 1)
    titles = [_("tokens, from"), _("to"), _("read to the end"), _("cut")]
    st.dataframe(
        shown.set_axis(titles, axis="columns"),
        hide_index=True,
        placeholder="–",
        height=280,
        alt=_("Pairs by their length in tokens"),
    )
