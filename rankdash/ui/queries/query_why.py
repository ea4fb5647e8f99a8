"""Why one query changed: the reason with its evidence, and each document's part in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from rankdash.analysis.reasons.contributions import Split
from rankdash.analysis.reasons.reasons import evidence
from rankdash.charts.quality import waterfall
from rankdash.i18n import gettext as _
from rankdash.i18n import paragraph
from rankdash.ui.sidebar import reason_services
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.state import services
from rankdash.ui.widgets.lazy_expander import fold
from rankdash.ui.widgets.plotly_chart import ink, show
from rankdash.ui.widgets.text import markdown_safe
from rankdash.words import explanations
from rankdash.words.explanations import statement_text, without_result
from rankdash.words.names import telling
from rankdash.words.reasons import reason_words

_ZERO = 1e-12
_NAME = 60


def draw(view: View, challenger: str, query_id: str) -> None:
    """The reason in words, the sentences, the waterfall, and the contributions as a table."""
    table = reason_services.reasons_of(view, challenger)
    if query_id not in table.index:
        st.caption(_("The query has no labels, so nothing can be said of its value."))
        return
    row = table.loc[[query_id]].iloc[0]
    found = reason_services.split_of(view, challenger, query_id)
    names = _names(view, found.documents)
    said = [
        _("Why: **{reason}**.", reason=reason_words()[str(row["reason"])]),
        *explained(view, challenger, row, found, lambda text: markdown_safe(text, _NAME)),
    ]
    st.markdown(paragraph(said))
    if found.why_not:
        return
    told = reason_services.statements_of(view, challenger, query_id)
    st.markdown("\n".join(f"- {statement_text(said, found.measure.k)}" for said in told))
    moved = found.documents[found.documents["delta"].abs() > _ZERO]
    if moved.empty:
        st.caption(_("No document counts for more or less than before."))
        return
    _chart(view, challenger, found, telling(names))
    fold(
        _("Contribution of each document"),
        "queries.contributions",
        ":material/table:",
        lambda: _tables(view, row, found, names),
    )


def explained(
    view: View, challenger: str, row: pd.Series, found: Split, fit: Callable[[str], str]
) -> list[str]:
    """What the reason means and what it rests on, in sentences.

    row: of `reasons`, its label being the query. fit: makes a name fit for where it is shown.
    """
    query_id = str(row.name)
    missing = [
        without_result(fit(view.name(system)), services.left_out(system).get(query_id))
        for system in (view.baseline, challenger)
        if query_id not in services.ranking(view.dataset_id, system).positions
        or query_id in services.left_out(system)
    ]
    labels = reason_services.labels_of(view, query_id)
    relevant = int((labels["label"] >= view.conventions.threshold).sum())
    names = _names(view, found.documents)
    return explanations.explained(row, found, lambda doc: fit(names[doc]), missing, relevant)


def _names(view: View, documents: pd.DataFrame) -> dict[str, str]:
    """Document id → what a person knows it by, told from the others of the query."""
    titles, openings = services.titles(view.dataset_id)
    own = {doc_id: titles.get(doc_id, doc_id) for doc_id in documents["doc_id"]}
    often = Counter(own.values())
    # Passages of one article share its title; then their own words tell them apart.
    return {
        doc_id: title if often[title] == 1 else openings.get(doc_id, doc_id)
        for doc_id, title in own.items()
    }


def _chart(view: View, challenger: str, found: Split, names: Mapping[str, str]) -> None:
    labels = waterfall.Labels.translated(_)
    title, systems = view.title(view.spec), (view.name(view.baseline), view.name(challenger))
    show(
        waterfall.figure(
            found.documents,
            found.before,
            title,
            systems,
            ink(),
            labels,
            names=names,
            threshold=view.conventions.threshold,
        ),
        alt=waterfall.alt(found.documents, found.before, title, systems, labels, names=names),
        key="queries.waterfall",
    )


def _tables(view: View, row: pd.Series, found: Split, names: Mapping[str, str]) -> None:
    _table(found, names)
    above = evidence(row, found, view.conventions)
    if not above:
        return
    main = markdown_safe(names[row["doc_id"]], _NAME)
    st.markdown(_("Above “{document}” now, and not before:", document=main))
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
        column_config={**_columns(), "kind": st.column_config.TextColumn(_("what it is"))},
        alt=_("Documents that were lifted above the one that changed most"),
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
        shown[list(total)],
        hide_index=True,
        placeholder="–",
        column_config={
            **_columns(),
            "before": st.column_config.NumberColumn(_("counted before"), format=decimal),
            "after": st.column_config.NumberColumn(_("counts now"), format=decimal),
            "delta": st.column_config.NumberColumn(_("contribution"), format="%+.4f"),
        },
        alt=_("What each document adds to the value, before and after"),
    )
