"""Why queries changed, counted: each reason leads to its queries."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext
from rankdash.study.study import Study
from rankdash.ui.widgets.signed_cells import signed_cells
from rankdash.words.reasons import reason_meanings, reason_words

_ROW, _HEADER = 35, 38


def draw(study: Study, system: str) -> str | None:
    """How many queries each reason explains and what they add to the mean change; returns the
    reason whose row was chosen."""
    st.subheader(_("Why queries changed"), anchor=False)
    counts = study.reason_counts(system)
    if counts is None:
        st.caption(
            _("{metric} cannot be split by document, so its changes have no reasons.",
              metric=study.measure.title)
        )  # fmt: skip
        return None
    words, meanings = reason_words(), reason_meanings()
    picked = st.dataframe(
        signed_cells(
            pd.DataFrame(
                {
                    "reason": [words[code] for code in counts.index],
                    "queries": counts["queries"],
                    "mean": counts["mean"],
                    "adds": counts["adds"],
                    "meaning": [meanings[code] for code in counts.index],
                }
            ),
            {"mean": 3, "adds": 3},
        ),
        hide_index=True,
        placeholder="–",
        height=_HEADER + _ROW * len(counts),
        key=f"overview.reasons.{system}",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "reason": st.column_config.TextColumn(_("why"), width=190),
            "queries": st.column_config.ProgressColumn(
                _("queries"),
                format="%d",
                min_value=0,
                max_value=int(counts["queries"].max()) if len(counts) else 1,
                width=120,
            ),
            "mean": st.column_config.NumberColumn(_("mean change"), width=90),
            "adds": st.column_config.NumberColumn(
                _("adds to the mean"),
                width=110,
                help=_("What these queries add to the mean change over all queries."),
            ),
            "meaning": st.column_config.TextColumn(_("meaning"), width="large"),
        },
        alt=ngettext(
            "How many of {n} query each reason explains",
            "How many of {n} queries each reason explains",
            int(counts["queries"].sum()),
        ),
    )
    st.caption(_("Choose a row to see its queries."))
    chosen = picked["selection"]["rows"]
    return str(counts.index[chosen[0]]) if chosen and chosen[0] < len(counts) else None
