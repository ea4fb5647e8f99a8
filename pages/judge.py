"""Page Judge: grades from an LLM judge, their agreement with human labels, and their value."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.features.data import page_damaged
from rankdash.features.judge import page as judge_page
from rankdash.features.judge import page_form, page_list
from rankdash.kit.widgets import stored, view
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.stored import read_only

head = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom")
# Without this container, the title would be higher than on other pages.
head.container(width="content").title(_p("page", "Judge"))
study = view.study("judge")
page_damaged.judges(study.stored_id)
row = page_list.chosen(study.stored_id)
if row is None:
    page_form.draw_answer(study)
    if not read_only():
        page_form.draw(study)
        page_form.draw_file(study.stored_id)
    st.stop()
graded = [each for each in stored.judge_rows(study.stored_id).values() if each.graded]
compared = bool(graded and study.challengers)
with head:
    in_focus = view.in_focus(study) if compared else ""
if row.live:
    page_list.draw(row)
if row.graded and compared:
    judge_page.draw(study, row, in_focus)
if not row.live:
    page_list.draw(row)
if row.graded:
    judge_page.draw_agreement(study, row)
    judge_page.draw_pairs(study, row)
if len(graded) > 1 and compared:
    fold(
        _("Compare the judges"),
        "judge.compared",
        ":material/leaderboard:",
        lambda: judge_page.draw_choice(study, graded, in_focus),
    )
if not read_only():
    fold(
        _("Start another judge"),
        "judge.another",
        ":material/add:",
        lambda: page_form.draw(study),
    )
    page_form.draw_file(study.stored_id)
