"""How each number on the page is made, from the metric registry and the settings in force."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.metrics import parse_measure
from rankdash.study.study import Study
from rankdash.words.queries import count_words
from rankdash.words.settings import rules_in_words


def panel(study: Study, specs: Sequence[str]) -> None:
    """Definitions, settings, and which queries were left out of which system, and why."""
    measures = [parse_measure(spec) for spec in specs]
    st.dataframe(
        pd.DataFrame(
            {
                _("metric"): [measure.title for measure in measures],
                _("meaning"): [_(measure.metric.meaning) for measure in measures],
                _("formula"): [_(measure.metric.formula) for measure in measures],
                _("mind"): [_(measure.metric.note) for measure in measures],
                _("source"): [measure.metric.reference for measure in measures],
            }
        ),
        hide_index=True,
        alt=_("Definition of each metric"),
    )
    st.dataframe(
        pd.DataFrame(
            rules_in_words(study.conventions, study.statistics),
            columns=[_("rule"), _("in force")],
        ),
        hide_index=True,
        alt=_("The rules in force"),
    )
    st.dataframe(_left_out(study, specs), hide_index=True, alt=_("Queries left out of each system"))


def _left_out(study: Study, specs: Sequence[str]) -> pd.DataFrame:
    titles = count_words()
    rows = []
    for system_id in study.chosen:
        found = study.evaluate(system_id, tuple(specs))
        row: dict[str, object] = {_("system"): study.name(system_id)}
        row.update({title: found.counts.get(key, 0) for key, title in titles.items()})
        rows.append(row)
    return pd.DataFrame(rows)
