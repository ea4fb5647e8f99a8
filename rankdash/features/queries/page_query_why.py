"""Why one query changed: the reason with its evidence, and each document's part in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import paragraph
from rankdash.core.base.names import distinguishing
from rankdash.core.study.reasons.contributions import Split
from rankdash.core.study.reasons.main_document import evidence
from rankdash.core.study.study import Study
from rankdash.core.words.reasons import reason_words
from rankdash.features.queries import charts, queries
from rankdash.features.queries.charts_waterfall import NAME_WIDTH
from rankdash.features.queries.queries import Missed
from rankdash.features.queries.words_explanations import reasoning, statement_text
from rankdash.features.queries.words_faults import fault_words, ground
from rankdash.kit.widgets import plotly_chart
from rankdash.kit.widgets.lazy_expander import fold
from rankdash.kit.widgets.signed_cells import signed_cells
from rankdash.kit.widgets.text import markdown_safe

_ZERO = 1e-12
_NAME = 60


def draw(study: Study, challenger: str, query_id: str, missed: Sequence[Missed]) -> None:
    """The reason in words, whose fault a low value is, the sentences, the waterfall, and the
    contributions as a table. missed: the relevant documents that the challenger lacks."""
    table = study.reasons(challenger)
    if table is None or query_id not in table.index:
        st.caption(_("The query has no labels, so it has no value."))
        return
    row = table.loc[[query_id]].iloc[0]
    found = queries.change(study, challenger, query_id)
    names = study.dataset.names_of(found.documents["doc_id"])
    sentences = [
        _("Why: **{reason}**.", reason=reason_words()[str(row["reason"])]),
        *reasoning(study, challenger, row, found, partial(markdown_safe, limit=_NAME)),
    ]
    st.markdown(paragraph(sentences))
    blame = queries.blame(study, challenger, found, missed)
    if blame is not None:
        fault = _("Fault: **{fault}**.", fault=fault_words()[blame.fault.code])
        name = partial(_name, study)
        st.markdown(paragraph([fault, ground(blame, study.measure.title, name)]))
    if found.why_not:
        return
    text = queries.change_statements(study, found)
    st.markdown("\n".join(f"- {statement_text(sentences, found.measure.k)}" for sentences in text))
    moved = found.documents[found.documents["delta"].abs() > _ZERO]
    if moved.empty:
        st.caption(_("No document counts for more or less than before."))
        return
    drawn = charts.waterfall(study, challenger, found, distinguishing(names, NAME_WIDTH))
    plotly_chart.draw(drawn, key="queries.waterfall")
    fold(
        _("Contribution of each document"),
        "queries.contributions",
        ":material/table:",
        lambda: _tables(study, row, found, names),
    )


def _name(study: Study, system: str) -> str:
    """Return a system's name, safe for Markdown."""
    return markdown_safe(study.name(system), _NAME)


def _tables(study: Study, row: pd.Series, found: Split, names: Mapping[str, str]) -> None:
    _table(found, names)
    above = evidence(row, found, study.conventions)
    if not above:
        return
    main = markdown_safe(names[row["doc_id"]], _NAME)
    st.markdown(_("Promoted above “{document}”:", document=main))
    kinds = {
        "worse": _("labelled as worse"),
        "unjudged": _("without a label"),
        "other": _("as relevant"),
    }
    st.dataframe(
        pd.DataFrame(
            {
                "document": [names[each.doc_id] for each in above],
                "rank_before": [each.rank_before for each in above],
                "rank_after": [each.rank_after for each in above],
                "label": [each.label for each in above],
                "kind": [kinds[each.kind] for each in above],
            }
        ),
        hide_index=True,
        placeholder="–",
        column_config={**_columns(), "kind": st.column_config.TextColumn(_("category"))},
        alt=_("Documents that were promoted above the one that changed most"),
    )


def _columns() -> dict[str, Any]:
    """The columns that both tables have."""
    return {
        "document": st.column_config.TextColumn(_("document"), width="medium"),
        "rank_before": st.column_config.NumberColumn(_("rank before"), format="%.0f"),
        "rank_after": st.column_config.NumberColumn(_("rank after"), format="%.0f"),
        "label": st.column_config.NumberColumn(_("label"), format="%g"),
    }


def _table(found: Split, names: Mapping[str, str]) -> None:
    """Every document with a label above 0 or a part in the value; the column sums are the values
    and the change."""
    documents = found.documents
    counted = (documents["label"] > 0) | (documents["delta"].abs() > _ZERO)
    rows = documents[counted]
    total = {
        "document": _("sum"),
        "rank_before": math.nan,
        "rank_after": math.nan,
        "label": math.nan,
        "before": found.before,
        "after": found.after,
        "delta": found.delta,
    }
    shown = pd.concat(
        [rows.assign(document=rows["doc_id"].map(names)), pd.DataFrame([total])], ignore_index=True
    )
    decimal = "%.4f"
    st.dataframe(
        signed_cells(shown[list(total)], {"delta": 4}),
        hide_index=True,
        placeholder="–",
        column_config={
            **_columns(),
            "before": st.column_config.NumberColumn(_("counted before"), format=decimal),
            "after": st.column_config.NumberColumn(_("counts now"), format=decimal),
            "delta": st.column_config.NumberColumn(_("contribution")),
        },
        alt=_("Contribution of each document to the value, before and after"),
    )
