"""Judge: a language model's grades, how far they agree with people's, and what they are worth."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.features.data import page_damaged
from rankdash.features.judge import page as judge_page
from rankdash.features.judge import page_form, page_list
from rankdash.kit.widgets import stored, view
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.stored import read_only

st.title(_("Judge"))
study = view.study("judge")
page_damaged.judges(study.stored_id)
row = page_list.chosen(study.stored_id)
if row is None:
    st.write(
        _(
            "A language model grades documents beside people. Its grades never become labels: they "
            "lower how many labels people have to give, and people's labels show how far it can be "
            "trusted."
        )
    )
    if not read_only():
        page_form.draw(study.stored_id, study.chosen)
        page_form.draw_file(study.stored_id)
    st.stop()
page_list.draw(row)
if row.graded:
    judge_page.draw(study, row)
    judge_page.draw_pairs(study, row)
graded = [each for each in stored.judge_rows(study.stored_id).values() if each.graded]
if len(graded) > 1 and study.challengers:
    fold(
        _("Compare the judges"),
        "judge.compared",
        ":material/leaderboard:",
        lambda: judge_page.draw_choice(study, graded),
    )
if not read_only():
    fold(
        _("Start another judge"),
        "judge.another",
        ":material/add:",
        lambda: page_form.draw(study.stored_id, study.chosen),
    )
    page_form.draw_file(study.stored_id)
