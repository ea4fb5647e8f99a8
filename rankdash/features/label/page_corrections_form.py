"""The label of a document for a query, corrected in place."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.names import distinct
from rankdash.core.data.ranking import digest
from rankdash.core.study.study import Study
from rankdash.core.words.queries import label_words
from rankdash.core.workspace.notes.corrections import LONGEST_NAME, Correction, Corrections
from rankdash.features.label import page_corrections_list
from rankdash.kit.widgets import person, pickers, stored
from rankdash.kit.widgets.server import workspace
from rankdash.kit.widgets.text import name_safe, shortened

_WHO = "analyst"
_MOST_SEGMENTS = 8
_UNJUDGED = "unjudged"
_LEAST_OFFERED = 20
_TITLE = 80


def draw(study: Study, query_id: str) -> None:
    """Choose a document of the query, see its label, give it another one."""
    offered = _documents(study, query_id)
    if not offered:
        st.caption(_("No system ranks a document for this query, and none has a label."))
        return
    own = study.dataset.document_names[0]
    names = distinct({doc: shortened(own[doc], _TITLE) for doc in offered})
    doc_id = st.selectbox(
        _("Correct the label of"),
        offered,
        format_func=names.__getitem__,
        key=f"labels.document.{_name(study.stored_id, query_id)}",
    )
    label(study, query_id, doc_id)
    if not person.name():
        st.text_input(
            _("Your name, stored with the correction"),
            value=workspace().setting(_WHO) or "",
            max_chars=LONGEST_NAME,
            key="labels.who",
            on_change=_remember,
            placeholder=_("may stay empty"),
        )


def label(study: Study, query_id: str, doc_id: str) -> None:
    """Draw the label of one document as a choice: the grades of the data set, and none."""
    dataset_id = study.stored_id
    uploaded = stored.uploaded_labels(dataset_id, query_id).get(doc_id)
    corrected = {each.doc_id: each.label for each in _corrections(dataset_id, query_id)}
    options = {_UNJUDGED: _("not judged")}
    options |= {
        f"{value:.17g}": label_words(value)
        for value in stored.dataset(stored.stored(dataset_id)).grades
    }
    key = f"labels.label.{_name(dataset_id, query_id, doc_id)}"
    now = _option(corrected.get(doc_id, uploaded))

    def changed() -> None:
        chosen = st.session_state[key]
        given = None if chosen == _UNJUDGED else float(chosen)
        layer, pair = Corrections(workspace()), (query_id, doc_id)
        page_corrections_list.forget_undone()
        if given == uploaded:
            layer.withdraw(dataset_id, [pair])
        else:
            who = person.name() or workspace().setting(_WHO) or ""
            layer.correct(dataset_id, pair, given, who)

    if len(options) <= _MOST_SEGMENTS:
        pickers.show(st.segmented_control, key, now, changed)(
            _("Label"),
            list(options),
            format_func=options.__getitem__,
            required=True,
            help=_(
                "It takes effect everywhere at once. Your uploaded files stay unchanged, and you "
                "can undo the correction."
            ),
        )
    else:
        pickers.show(st.selectbox, key, now, changed, list(options))(
            _("Label"), list(options), format_func=options.__getitem__
        )
    text = _("as uploaded: {label}", label=label_words(uploaded))
    st.caption(" · ".join([text, *_ranks(study, query_id, doc_id)]))


def _documents(study: Study, query_id: str) -> list[str]:
    """What a chosen system ranks near the top, the challengers' first, then all that has a label:
    a label is corrected where it is seen or where it counts."""
    depth = max(study.cutoff or 0, _LEAST_OFFERED)
    ranked = [
        study.ranking(system).documents_of(query_id)[0][:depth]
        for system in (*study.challengers, study.baseline)
    ]
    judged = stored.uploaded_labels(study.dataset_id, query_id)
    corrected = [each.doc_id for each in _corrections(study.stored_id, query_id)]
    return list(dict.fromkeys([doc for docs in (*ranked, judged, corrected) for doc in docs]))


def _ranks(study: Study, query_id: str, doc_id: str) -> list[str]:
    """Where each chosen system has the document; safe for Markdown."""
    sentences = []
    for system in study.chosen:
        docs = study.ranking(system).documents_of(query_id)[0]
        name = name_safe(study.name(system))
        if doc_id in docs:
            sentences.append(_("{system}: rank {rank}", system=name, rank=docs.index(doc_id) + 1))
        else:
            sentences.append(_("{system}: not ranked", system=name))
    return sentences


def _corrections(dataset_id: str, query_id: str) -> Sequence[Correction]:
    return [each for each in Corrections(workspace()).all(dataset_id) if each.query_id == query_id]


def _option(label: float | None) -> str:
    return _UNJUDGED if label is None else f"{label:.17g}"


def _name(*ids: str) -> str:
    return digest([each.encode("utf-8", "surrogatepass") for each in ids])


def _remember() -> None:
    workspace().set_setting(_WHO, st.session_state["labels.who"].strip())
