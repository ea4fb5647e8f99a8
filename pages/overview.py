"""Overview: the verdict first, then what it rests on."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.labels import estimate_strip, judged_verdict, unjudged_view
from rankdash.ui.overview import (
    leaderboard_view,
    not_compared,
    overview_causes,
    overview_charts,
    targets_view,
    verdict_strip,
)
from rankdash.ui.sidebar import view
from rankdash.ui.state import address, label_plan
from rankdash.ui.state.cache import shared
from rankdash.ui.widgets.lazy_expander import fold
from rankdash.words.judged import without_judge

head = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom")
head.title(_("Overview"), width="content")
study = view.study("overview")
view.caption(study)
with head:
    in_focus = view.in_focus(study)
if not estimate_strip.above_means(study, "overview"):
    st.stop()
if study.challengers:
    not_compared.draw(study)
    if study.judge is not None:
        with st.container(border=True):
            shared(judged_verdict.draw, label_plan.under_way(study), in_focus)
        st.caption(without_judge())
    shared(verdict_strip.draw, study, in_focus)
    leaderboard_view.draw(study, in_focus)
else:
    view.only_baseline(study, "overview")
shared(verdict_strip.cards, study, in_focus)
systems, cutoffs = st.columns(2)
with systems:
    shared(overview_charts.systems, study)
with cutoffs:
    shared(overview_charts.cutoffs, study)
fold(
    _("All numbers as a table"),
    "overview.table",
    ":material/table:",
    lambda: overview_charts.systems_table(study),
)
if study.challengers:
    queries, lost = st.columns([3, 2])
    with queries:
        st.subheader(_("Queries, most hurt first"), anchor=False)
        picked = overview_charts.changes(study, in_focus)
        st.page_link(view.page("queries"), label=_("All queries as a list"), icon=":material/list:")
    if picked is not None:
        view.open_query(picked)
    with lost:
        shared(overview_causes.headroom, study)
    reason = overview_causes.reasons(study, in_focus)
    if reason is not None:
        address.choose("reason", reason)
        view.go("queries")
    fold(
        _("Kinds of queries"),
        "overview.segments",
        ":material/category:",
        lambda: overview_causes.segments(study, in_focus),
    )
    fold(
        _("Documents without a label"),
        "overview.unjudged",
        ":material/label_off:",
        lambda: unjudged_view.draw(study),
    )
fold(_("Targets"), "overview.targets", ":material/flag:", lambda: targets_view.draw(study))
fold(
    _("How these numbers are computed"),
    "overview.definitions",
    ":material/function:",
    lambda: overview_charts.definitions(study, study.specs),
)
