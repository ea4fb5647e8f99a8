"""What is to be labelled: which systems are compared, by which metric, on which scale."""

from __future__ import annotations

import secrets
from dataclasses import asdict

import streamlit as st

from rankdash.analysis.labelling.additive import ADDITIVE
from rankdash.errors import RankdashError
from rankdash.i18n import error_text, ngettext, percent
from rankdash.i18n import gettext as _
from rankdash.metrics import parse_measure
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.label_plans import LONGEST_GUIDELINES, LabelPlans
from rankdash.ui.labels import label_plan
from rankdash.ui.labels.label_plan import LabelSettings
from rankdash.ui.state import stored
from rankdash.ui.state.server import workspace
from rankdash.ui.widgets.text import markdown_safe, shortened

_METRICS = tuple(f"{name}@10" for name in ADDITIVE)
_SCALES = (1, 2, 3, 4)
_DOUBLE = (0, 10, 20, 50, 100)


def draw(dataset_id: str, *, again: bool) -> None:
    """again: whether there is a plan already, which the new one replaces."""
    systems = stored.systems(dataset_id)
    names = {each: shortened(system.name, 60) for each, system in systems.items()}
    ids = list(systems)
    if len(ids) < 2:
        st.info(
            _(
                "There is one ranking only. Labels settle which of two is better: upload another "
                "one with the data, or run a reranker."
            ),
            icon=":material/info:",
        )
        return
    left, right = st.columns(2)
    baseline = left.selectbox(
        _("Baseline"), ids, format_func=names.__getitem__, key="labelling.baseline"
    )
    others = [each for each in ids if each != baseline]
    challengers = right.multiselect(
        _("Systems to compare"),
        others,
        default=others[-1:],
        format_func=names.__getitem__,
        key=f"labelling.challengers.{baseline}",
    )
    metric = left.selectbox(
        _("Metric"),
        _METRICS,
        format_func=lambda spec: parse_measure(spec).title,
        key="labelling.metric",
        help=_(
            "A sum over documents, so that some of the labels are enough to estimate it. NDCG, MAP "
            "and recall need all labels of a query."
        ),
    )
    known = stored.dataset(dataset_id).label_values
    usual = min(max(int(known[-1]) if known else 1, 1), _SCALES[-1])
    top = right.selectbox(
        _("Highest grade"),
        _SCALES,
        index=_SCALES.index(usual),
        format_func=lambda grade: (
            _("1: relevant or not") if grade == 1 else _("0 to {top}", top=grade)
        ),
        key="labelling.top",
    )
    double = left.selectbox(
        _("Share labelled by two people"),
        _DOUBLE,
        format_func=lambda share: percent(share / 100),
        key="labelling.double",
        help=_("Their agreement (kappa) shows how far the labels can be trusted."),
    )
    guidelines = st.text_area(
        _("Guidelines: what makes a document relevant"),
        max_chars=LONGEST_GUIDELINES,
        key="labelling.guidelines",
        placeholder=_("shown beside each document; may stay empty"),
    )
    if again:
        st.caption(
            _(
                "The labels given so far stay and count as known. The drawing of documents starts "
                "anew."
            )
        )
    revision = Corrections(workspace()).layer(dataset_id).revision
    settings = LabelSettings(
        (baseline, *challengers), metric, float(top), 1.0, secrets.randbits(32), double / 100
    )
    if st.button(
        _("Start labelling"),
        type="primary",
        icon=":material/label:",
        key="labelling.start",
        disabled=not challengers,
    ):
        try:
            plan = label_plan.made(dataset_id, settings, revision)
            LabelPlans(workspace()).begin(dataset_id, asdict(settings), guidelines)
        except RankdashError as error:
            st.error(markdown_safe(error_text(error), 600), icon=":material/error:")
            return
        st.toast(
            ngettext(
                "{n} document can move the difference.",
                "{n} documents can move the difference.",
                len(plan.order),
            )
        )
        st.rerun()
