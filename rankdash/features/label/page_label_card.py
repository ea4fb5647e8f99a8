"""One document of one query, to be labelled: nothing on it tells who ranked it, where, or how."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number, plain
from rankdash.core.workspace.notes.corrections import Pair
from rankdash.kit.widgets import stored
from rankdash.kit.widgets.highlight import QueryTerms, marked_html, spans, terms
from rankdash.kit.widgets.label_plan import Labelling
from rankdash.kit.widgets.text import html_safe, shortened, table_html

_LONGEST_TEXT, _LONGEST_NAME = 20_000, 90
_STYLE = """<style>
.rd-label { border: 1px solid color-mix(in srgb, currentColor 22%, transparent); border-radius: 8px;
  padding: 0.8rem 1rem; font-size: 1rem; line-height: 1.55; }
.rd-label small { opacity: 0.7; }
.rd-label .rd-head { border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent);
  padding-bottom: 0.6rem; margin-bottom: 0.6rem; }
.rd-label .rd-query { font-weight: 700; font-size: 1.1rem; overflow-wrap: anywhere; }
.rd-label .rd-title { font-weight: 600; overflow-wrap: anywhere; }
/* As high for a short text: the keys below stay where they are. */
.rd-label p { margin: 0.3rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere;
  height: 42vh; overflow-y: auto; }
.rd-label mark { background: color-mix(in srgb, #E69F00 30%, transparent); color: inherit;
  text-decoration: underline; text-decoration-thickness: 2px; text-underline-offset: 2px; }
</style>"""


def draw(labelling: Labelling, pair: Pair) -> None:
    """The query, and title and text of the document with the words of the query marked."""
    data = stored.dataset(labelling.kept.dataset_id)
    query = data.query_names[pair[0]]
    row = data.documents.iloc[data.document_places[pair[1]]]
    title, text = str(row["title"]).strip(), "" if pd.isna(row["text"]) else str(row["text"])
    wanted, shown = terms(query), text[:_LONGEST_TEXT]
    head = f"<div class='rd-title'>{_marked(title, wanted)}</div>" if title else ""
    if shown.strip():
        body = _marked(shown, wanted)
    elif title:
        body = html_safe(_("(no text)"))
    else:
        body = html_safe(_("(no title and no text; its id is {id})", id=pair[1]))
    more = "…" if len(text) > _LONGEST_TEXT else ""
    st.html(
        f"{_STYLE}<div class='rd-label'><div class='rd-head'><small>{html_safe(_('Query'))}"
        f"{_place(labelling, pair)}</small><div class='rd-query'>{html_safe(query)}</div></div>"
        f"<small>{html_safe(_('Document'))}</small>{head}"
        f"<p tabindex='0'>{body}{more}</p></div>"
    )


def query_so_far(labelling: Labelling, query_id: str, who: str) -> None:
    """A person's own labels of a query, the last one first: alike documents get alike labels."""
    own = labelling.answered.latest
    own = own[(own["query_id"] == query_id) & (own["rater"] == who)][::-1]
    if len(own):
        data = stored.dataset(labelling.kept.dataset_id)
        names = data.names_of(own["doc_id"])
        rows = [
            [
                shortened(names[doc], _LONGEST_NAME),
                _("cannot tell") if label != label else plain(label),
            ]
            for doc, label in zip(own["doc_id"], own["label"], strict=True)
        ]
        st.html(table_html([_("Your labels for this query"), _("Label")], rows))


def _marked(text: str, wanted: QueryTerms) -> str:
    return marked_html(text, spans(text, wanted))


def _place(labelling: Labelling, pair: Pair) -> str:
    """Which of its query's documents this is, where all of them are labelled in a row."""
    if labelling.settings.mode != "query":
        return ""
    done, every = labelling.of_query(pair[0])
    place = _("document {n} of {all}", n=number(min(done + 1, every), 0), all=number(every, 0))
    return f" · {html_safe(place)}"
