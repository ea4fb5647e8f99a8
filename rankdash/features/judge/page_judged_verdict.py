"""The verdict on a challenger by people, by a judge, and by the judge corrected by people."""

from __future__ import annotations

import math

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number, paragraph, percent, signed
from rankdash.core.study.study import Study
from rankdash.core.words.verdict_chips import change_interval
from rankdash.features.judge import charts
from rankdash.features.judge.bias_corrected import MeanChange
from rankdash.features.judge.judging import verdicts
from rankdash.features.judge.words_judged import (
    bias_sentence,
    judge_caveats,
    judge_warnings,
    judged_sentence,
    three_ways,
    worth_sentence,
)
from rankdash.kit.drawing import drawing
from rankdash.kit.widgets import badges, plotly_chart, view
from rankdash.kit.widgets.lazy_expander import fold
from rankdash.kit.widgets.text import markdown_safe, table_html

_NONE = "–"


def draw(study: Study, challenger: str) -> None:
    """The sentence, the three ways, what the judge is worth, and what to keep in mind. The study
    has a judge."""
    if study.judge is None:
        return
    found = verdicts(study, study.judge)[challenger]
    badges.verdict(found.kind)
    st.markdown(f"**{view.safe_name(study, challenger)}** · {study.measure.title}")
    said = [bias_sentence(study, found), judged_sentence(study, found), worth_sentence(found)]
    st.write(markdown_safe(paragraph([each for each in said if each]), 800))
    left, right = st.columns(2, gap="large")
    with left:
        interval = _("{level} interval", level=percent(study.statistics.level))
        rows = [_change(title, change) for title, change in three_ways(found.three)]
        st.html(table_html([_("way"), _("mean"), interval, _("queries")], rows))
    with right:
        _chart(charts.three_ways(study, challenger), f"judge.three.{challenger}")
    for warning in judge_warnings(study, found):
        st.warning(markdown_safe(warning, 800), icon=":material/warning:")
    caveats = paragraph(judge_caveats(study, found))
    st.caption(f":material/info: {markdown_safe(caveats, 2000)}")


def curve(study: Study, challenger: str) -> None:
    """How much more of people's queries would narrow the interval, where that can be said."""
    drawn = charts.label_curve(study, challenger)
    if drawn is not None:
        fold(
            _("What labelling more queries would bring"),
            f"judge.curve.{challenger}",
            ":material/show_chart:",
            lambda: _chart(drawn, f"judge.curve.{challenger}.chart"),
        )


def _chart(drawn: drawing.Drawing | None, key: str) -> None:
    if drawn is not None:
        plotly_chart.draw(drawn, key=key)


def _change(title: str, change: MeanChange) -> list[str]:
    if math.isnan(change.mean):
        return [title, _NONE, _NONE, number(change.n, 0)]
    interval = change_interval(change.low, change.high)
    return [title, signed(change.mean, 4), interval, number(change.n, 0)]
