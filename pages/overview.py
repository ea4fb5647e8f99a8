"""Overview: the verdict first, then what it rests on."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.features.cost import page_targets_view
from rankdash.features.judge import page_judged_verdict
from rankdash.features.judge.words_judged import without_judge
from rankdash.features.label import page_unjudged_view
from rankdash.features.overview import (
    page_estimate_decision,
    page_leaderboard_view,
    page_not_compared,
    page_overview_causes,
    page_overview_charts,
    page_verdict_strip,
)
from rankdash.kit.widgets import address, label_plan, view
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.lazy_expander import fold

head = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom")
head.title(_("Overview"), width="content")
study = view.study("overview")
view.caption(study)
with head:
    in_focus = view.in_focus(study)
if not page_estimate_decision.above_means(study, "overview"):
    st.stop()
if study.challengers:
    page_not_compared.draw(study)
    if study.judge is not None:
        with st.container(border=True):
            shared(page_judged_verdict.draw, label_plan.under_way(study), in_focus)
        st.caption(without_judge())
    shared(page_verdict_strip.draw, study, in_focus)
    page_leaderboard_view.draw(study, in_focus)
else:
    view.only_baseline(study, "overview")
shared(page_verdict_strip.cards, study, in_focus)
systems, cutoffs = st.columns(2)
with systems:
    shared(page_overview_charts.systems, study)
with cutoffs:
    shared(page_overview_charts.cutoffs, study)
fold(
    _("All numbers as a table"),
    "overview.table",
    ":material/table:",
    lambda: page_overview_charts.systems_table(study),
)
if study.challengers:
    queries, lost = st.columns([3, 2])
    with queries:
        st.subheader(_("Queries, most hurt first"), anchor=False)
        picked = page_overview_charts.changes(study, in_focus)
        st.page_link(view.page("queries"), label=_("All queries as a list"), icon=":material/list:")
    if picked is not None:
        view.open_query(picked)
    with lost:
        shared(page_overview_causes.headroom, study)
    reason = page_overview_causes.reasons(study, in_focus)
    if reason is not None:
        address.choose("reason", reason)
        view.go("queries")
    fold(
        _("Kinds of queries"),
        "overview.segments",
        ":material/category:",
        lambda: page_overview_causes.segments(study, in_focus),
    )
    fold(
        _("Documents without a label"),
        "overview.unjudged",
        ":material/label_off:",
        lambda: page_unjudged_view.draw(study),
    )
fold(_("Targets"), "overview.targets", ":material/flag:", lambda: page_targets_view.draw(study))
fold(
    _("How these numbers are computed"),
    "overview.definitions",
    ":material/function:",
    lambda: page_overview_charts.definitions(study, study.specs),
)
