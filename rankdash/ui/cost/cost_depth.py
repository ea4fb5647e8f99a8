"""How deep to rerank, and what each depth costs in money and waiting."""

from __future__ import annotations

import streamlit as st

from rankdash.charts.cost import depth
from rankdash.errors import RankdashError
from rankdash.i18n import error_text, number
from rankdash.i18n import gettext as _
from rankdash.study import costs
from rankdash.study.costs import BASELINE, Choice
from rankdash.study.study import Study
from rankdash.ui.cost.cost_terms import amount
from rankdash.ui.widgets.plotly_chart import ink, show
from rankdash.ui.widgets.text import markdown_safe
from rankdash.value.assumptions import Assumptions


def draw(study: Study, choice: Choice, scenario: Assumptions) -> None:
    """How deep to rerank, from the one deep run there is."""
    try:
        found = None if choice.system in ("", BASELINE) else costs.depths(study, choice.system)
    except RankdashError as error:
        st.info(markdown_safe(error_text(error), 300), icon=":material/info:")
        return
    if found is None:
        st.info(_("Only a run of a reranker can be cut shorter."), icon=":material/info:")
        return
    curve = found.curve
    metric = study.measure.title
    cost = [
        0.0 if at == 0 else costs.cost_at(choice, scenario, float(at))
        for at in curve.table["depth"]
    ]
    marks = {"best": curve.best, "enough": curve.enough}
    if curve.most is not None:
        marks["most"] = curve.most
    st.markdown(_recommended(study, choice, curve.enough, curve.best))
    if costs.listwise(study, choice.system):
        st.warning(
            _(
                "This reranker sees all documents of a query at once: with fewer of them it may "
                "order the rest otherwise, so the shallower depths are guesses."
            ),
            icon=":material/warning:",
        )
    show(
        depth.figure(
            curve.table, metric, marks, ink(), latency=found.p95, cost=cost, money=amount,
        ),
        alt=depth.alt(curve.table, metric, marks, ),
        key="cost.depths",
    )  # fmt: skip
    st.caption(
        _(
            "One run, cut at each depth; {n} queries. Latency and, by the hour, cost are scaled in "
            "proportion to the documents: an estimate.",
            n=number(curve.queries, 0),
        )
    )
    with st.expander(_("As a table")):
        table = curve.table.assign(p95=found.p95, cost=cost)
        st.dataframe(
            table, hide_index=True, placeholder="–", alt=_("Quality, p95 and cost by depth")
        )


def _recommended(study: Study, choice: Choice, enough: int, best: int) -> str:
    name, metric = markdown_safe(choice.name, 60), study.measure.title
    if best == 0:
        return _(
            "**Do not rerank here:** at no depth does {name} reach the {metric} of not reranking.",
            metric=metric,
            name=name,
        )
    if enough == 0:
        return _(
            "**Reranking is not worth its depth here:** {metric} without {name} is within noise of "
            "the best depth ({best}).",
            metric=metric,
            name=name,
            best=number(best, 0),
        )
    return _(
        "**Rerank {enough} documents:** {metric} of {name} is then within noise of its best, "
        "{best} documents.",
        enough=number(enough, 0),
        metric=metric,
        name=name,
        best=number(best, 0),
    )
