"""The queries of a plan with their labels so far."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.study import Study
from rankdash.kit.widgets.label_plan import Labelling


def table(study: Study, labelling: Labelling) -> pd.DataFrame:
    """Return a row for each query with a label, most labels first: query (its text, else its id),
    labelled, documents that can change the result, and the highest label."""
    plan, answered = labelling.plan, labelling.answered
    pool = plan.pool
    labels = np.where(answered.raters > 0, answered.labels, plan.known)
    rows = pd.DataFrame(
        {
            "query_id": pool.query_ids[pool.query],
            "labelled": ~np.isnan(labels),
            "documents": plan.weighs,
            "highest": labels,
        }
    )
    found = rows.groupby("query_id", sort=False).agg(
        {"labelled": "sum", "documents": "sum", "highest": "max"}
    )
    found = found[found["labelled"] > 0].sort_values("labelled", ascending=False, kind="stable")
    names = study.dataset.query_names
    texts = [names.get(str(query), str(query)) for query in found.index]
    return found.reset_index().assign(query=texts)


def draw(study: Study, labelling: Labelling) -> None:
    """The labelled queries as a table."""
    rows = table(study, labelling)
    if rows.empty:
        return
    st.subheader(_("Labelled queries"), anchor=False)
    shown = {
        "query": _("query"),
        "labelled": _("labelled documents"),
        "documents": _("documents that can change the result"),
        "highest": _("highest label"),
    }
    st.dataframe(rows[list(shown)].rename(columns=shown), hide_index=True, width="stretch")
