"""Where the documents of one query went, as a chart and as a table."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number, paragraph
from rankdash.core.base.names import distinguishing
from rankdash.core.study.ladder import Ladder
from rankdash.core.study.study import Study
from rankdash.features.queries import charts, queries
from rankdash.features.queries.charts_ladder_places import shown
from rankdash.features.queries.queries import Text
from rankdash.kit.widgets import address, pickers, plotly_chart
from rankdash.kit.widgets.lazy_expander import fold
from rankdash.kit.widgets.text import markdown_safe, shortened

_NOTABLE, _EVERY = "telling", "every"
_NOBODY = ""
_OPENING = 80
_CHOICE = 300


def draw(study: Study, ladder: Ladder, missed: int) -> None:
    """missed: how many relevant documents are in none of these rankings."""
    st.markdown(f"**{_('Where the documents went')}**")
    texts = queries.texts(study, shown(ladder, every=True).doc_ids)
    names = _names(texts)
    choices = st.grid(2, min_column_width=_CHOICE, vertical_alignment="bottom")
    every = pickers.pick_one(
        "docs",
        [_NOTABLE, _EVERY],
        choices.segmented_control,
        default=_NOTABLE,
        label=_("Documents"),
        format_func={
            _NOTABLE: _("relevant, crossing k or moved 3 ranks"),
            _EVERY: _("all near the top"),
        }.__getitem__,
        required=True,
        wrap=True,
    )
    drawn = shown(ladder, every=every == _EVERY)
    focus = pickers.pick_one(
        "follow",
        [_NOBODY, *drawn.doc_ids],
        choices.selectbox,
        default=_NOBODY,
        label=_("Follow one document"),
        format_func=lambda doc: shortened(names[doc], 60) if doc else _("none"),
    )
    if not focus:
        address.choose("follow", None)
    titles = {system: study.name(system) for system in ladder.systems}
    notes = [
        *_without_result(study, ladder),
        *_left_out(ladder, len(drawn)),
        *_not_retrieved(missed),
    ]
    if notes:
        st.caption(paragraph(notes))
    chart = charts.ladder(ladder, titles, names, focus=focus or None, every=every == _EVERY)
    plotly_chart.draw(chart, key="queries.ladder")
    fold(
        _("The same as a table"),
        "queries.ladder.table",
        ":material/table:",
        partial(_table, ladder.picked(ladder.near), titles, texts),
    )


def _without_result(study: Study, ladder: Ladder) -> list[str]:
    return [
        _("{system} has no result here.", system=markdown_safe(study.name(system), 60))
        for system in study.chosen
        if system not in ladder.systems
    ]


def _left_out(ladder: Ladder, drawn: int) -> list[str]:
    near = int(ladder.near.sum())
    if drawn >= near:
        return []
    return [
        ngettext(
            "{n} of the {all} documents that are relevant or near the top is drawn.",
            "{n} of the {all} documents that are relevant or near the top are drawn.",
            drawn,
            all=number(near, 0),
        )
    ]


def _not_retrieved(missed: int) -> list[str]:
    """How many relevant documents no reranker could have lifted."""
    if not missed:
        return []
    return [
        ngettext(
            "{n} relevant document is in none of these rankings.",
            "{n} relevant documents are in none of these rankings.",
            missed,
        )
    ]


def _table(ladder: Ladder, titles: dict[str, str], texts: dict[str, Text]) -> None:
    columns: dict[str, object] = {
        "doc": ladder.doc_ids,
        "text": [texts[doc].whole[:_OPENING] if doc in texts else "" for doc in ladder.doc_ids],
        "label": ladder.label,
        **{f"rank {system}": ladder.column(system) for system in ladder.systems},
        "ideal": ladder.ideal,
    }
    number_column = partial(st.column_config.NumberColumn, format="%.0f", width="small")
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        column_config={
            "doc": st.column_config.TextColumn(_("document"), width="small"),
            "text": st.column_config.TextColumn(_("begins"), width="medium"),
            "label": st.column_config.NumberColumn(_("label"), format="%g", width="small"),
            **{f"rank {system}": number_column(titles[system]) for system in ladder.systems},
            "ideal": number_column(_("ideal")),
        },
        alt=_("The rank of each document in every system"),
    )


def _names(texts: dict[str, Text]) -> dict[str, str]:
    """What a person knows each document by: its title, or how it begins where others have the
    same title; the id where there is neither."""
    often = Counter(text.title for text in texts.values())
    own = {}
    for doc, text in texts.items():
        opening = shortened(text.body or "", _OPENING)
        alone = text.title and often[text.title] == 1
        own[doc] = (text.title if alone else opening) or text.title or doc
    return distinguishing(own)
