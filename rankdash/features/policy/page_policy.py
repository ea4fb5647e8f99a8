"""The policy: the choices of all sections, with their expected quality, latency and price."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.kit.widgets.view import safe_name


def show(study: Study, challenger: str) -> None:
    """Draw the quality of the first stage and of reranking every query."""
    pairs = study.pairs_of(FIRST_STAGE, challenger, study.spec).dropna(subset="delta")
    if pairs.empty:
        st.info(_("No query has a metric value in both systems."), icon=":material/info:")
        return
    st.markdown(
        _(
            "{metric}: **{before}** without reranking, **{after}** if {system} reranks every "
            "query.",
            metric=study.measure.title,
            before=number(float(pairs["before"].mean())),
            after=number(float(pairs["after"].mean())),
            system=safe_name(study, challenger),
        )
    )
