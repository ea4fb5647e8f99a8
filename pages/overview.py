"""Page Overview: the verdict first, then its details."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.words.judged import without_judge
from rankdash.features.cost.page_targets import draw as targets
from rankdash.features.judge import page as judge_page
from rankdash.features.overview import page as overview_page
from rankdash.features.overview import page_leaderboard, page_verdict
from rankdash.kit.widgets import view
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.labels import plan, unjudged
from rankdash.kit.widgets.redraw import fold

st.title(_p("page", "Overview"))
study = view.study("overview")
view.caption(study)
in_focus = view.focus(study)
if not page_verdict.above_means(study, "overview"):
    page_leaderboard.draw_choice(study)
    st.stop()
if study.challengers:
    if study.judge is not None:
        shared(judge_page.draw_verdict, plan.under_way(study), in_focus, True)
        st.caption(without_judge())
    shared(page_verdict.draw, study, in_focus)
if len(study.systems) > 1:
    page_leaderboard.draw(study, in_focus)
else:
    view.only_baseline(study, "overview")
overview_page.draw(study, in_focus)
if study.challengers:
    fold(
        _("Documents without a label"),
        "overview.unjudged",
        ":material/label_off:",
        lambda: unjudged.draw(study),
    )
fold(_p("heading", "Targets"), "overview.targets", ":material/flag:", lambda: targets(study))
