"""Judge: a language model's grades, how far they agree with people's, and what they are worth."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.ui.judging import (
    judge_choice,
    judge_file,
    judge_form,
    judge_list,
    judge_pairs,
    judge_view,
)
from rankdash.ui.sidebar import damaged_view, view
from rankdash.ui.state import stored_judges
from rankdash.ui.state.server import read_only
from rankdash.ui.widgets.lazy_expander import fold

st.title(_("Judge"))
study = view.study("judge")
damaged_view.judges(study.stored_id)
row = judge_list.chosen(study.stored_id)
if row is None:
    st.write(
        _(
            "A language model grades documents beside people. Its grades never become labels: they "
            "lower how many labels people have to give, and people's labels show how far it can be "
            "trusted."
        )
    )
    if not read_only():
        judge_form.draw(study.stored_id, study.chosen)
        judge_file.draw(study.stored_id)
    st.stop()
judge_list.draw(row)
if row.graded:
    judge_view.draw(study, row)
    judge_pairs.draw(study, row)
graded = [each for each in stored_judges.rows(study.stored_id).values() if each.graded]
if len(graded) > 1 and study.challengers:
    fold(
        _("Compare the judges"),
        "judge.compared",
        ":material/leaderboard:",
        lambda: judge_choice.draw(study, graded),
    )
if not read_only():
    fold(
        _("Start another judge"),
        "judge.another",
        ":material/add:",
        lambda: judge_form.draw(study.stored_id, study.chosen),
    )
    judge_file.draw(study.stored_id)
