"""Two ranked lists of one query side by side, with a grade for every document."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number, plain
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import CONTROL, columns, distinct, middle, shortened
from rankdash.core.study.study import Study
from rankdash.core.words.queries import grade
from rankdash.core.workspace.notes import Pair
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.ladder import Ladder
from rankdash.features.queries.study import Missed, Text
from rankdash.kit.drawing import style
from rankdash.kit.widgets import address, dialogs, stored, view
from rankdash.kit.widgets.component import with_script_apart
from rankdash.kit.widgets.labels import corrections
from rankdash.kit.widgets.stored import read_only
from rankdash.kit.widgets.text import QueryTerms, Spans, pieces, snippet, spans, terms

send_script, _READING = with_script_apart(Path(__file__).with_name("reading"))
_PLACE = "queries.reading"
_SIDES = ("left", "right")
_SHOWN, _MOST_MISSED = 10, 10
# In columns of text; a Chinese character takes two.
_TITLE, _SNIPPET, _NAME = 80, 150, 40
# Words of the query are searched only in this many first characters of a text.
_LOOKED_AT = 5_000
# A long text is sent in parts of this many characters.
_PART = 4_000
_MOST_SQUARES = 5
# More grades would not fit into one line.
_MOST_GRADES = 10
_MOST_EVENTS = 100
_CANNOT_TELL, _NO_LABEL = "?", ""


def draw(
    study: Study,
    challenger: str,
    query_id: str,
    ladder: Ladder,
    lacking: Sequence[Missed],
    head: Mapping[str, Any],
) -> None:
    """Draw a query. lacking: the relevant documents that the challenger's list lacks. head: title,
    values and chips of the query.

    The browser shows a grade immediately and sends it until it is confirmed, so that quick grades
    are not lost.
    """
    dialogs.refused(_PLACE)
    shown = sides(study, challenger)
    ranks = [queries_study.ranks_of(ladder, system) for system in shown]
    lists = [sorted(each, key=each.__getitem__)[:_SHOWN] for each in ranks]
    labels = queries_study.label_of(study, query_id)
    ranked = dict.fromkeys(doc for docs in lists for doc in docs)
    missed = [
        doc
        for doc, label in sorted(labels.items(), key=lambda item: -item[1])
        if label >= study.conventions.threshold and doc not in ranked
    ]
    docs = [*ranked, *missed[:_MOST_MISSED]]
    at = {doc: place for place, doc in enumerate(docs)}
    texts, query_terms = queries_study.texts(study, docs), terms(str(head["title"]))
    elsewhere = {
        each.doc_id: (each.system, each.rank)
        for each in lacking
        if each.system is not None and each.system not in shown
    }
    unsure = corrections.cannot_tell(study.stored_id, query_id) if study.corrected else set()
    keys = [_CANNOT_TELL if doc in unsure else _key(labels.get(doc)) for doc in docs]
    grades = [] if read_only() else [*scale(study), _CANNOT_TELL]
    data = {
        "query": query_id,
        **head,
        "systems": [*distinct({each: study.name(each) for each in study.chosen}).items()],
        "shown": shown,
        "k": study.cutoff or 0,
        "docs": [[doc, *_opening(doc, texts[doc], query_terms)] for doc in docs],
        "sides": [
            [[at[doc], *_move(study, doc, ranks, side)] for doc in each]
            for side, each in enumerate(lists)
        ],
        "missed": [
            [at[doc], _places(study, doc, shown, ranks, elsewhere)] for doc in missed[:_MOST_MISSED]
        ],
        "given": keys,
        "grades": grades,
        "names": {
            each: _grade(each, study.dataset.top_grade)
            for each in dict.fromkeys((_NO_LABEL, *keys, *grades))
        },
        "threshold": study.conventions.threshold,
        "effect": _effect(study, challenger, query_id),
        "whole": _whole(study, ladder, query_id, texts, query_terms, shown),
        "heard": _state().get("heard", 0),
        "colours": [style.BETTER, style.WORSE],
        "words": _words(study, graded=bool(grades), more=len(missed) - _MOST_MISSED),
    }
    _READING(_PLACE, data, partial(_heard, study, challenger))


def _words(study: Study, *, graded: bool, more: int) -> dict[str, Any]:
    grading = _("Keys: 0 to 9 grade · ? cannot tell · Z undo · [ ] document · J K query")
    return {
        "side": [_("System on the left"), _("System on the right")],
        "move": [_("moved down"), _("same rank"), _("moved up")],
        "empty": _("This ranking contains no document for the query."),
        "cut": _("cutoff {k}", k=study.cutoff),
        "missed": _("Relevant documents that neither list shows"),
        "more": _("{n} more", n=number(more, 0)) if more > 0 else "",
        "label": _p("field", "Label"),
        "saving": _p("state", "Saving…"),
        "undo": _p("button", "Undo"),
        "keys": grading if graded else _("Keys: [ ] document · J K query"),
    }


def sides(study: Study, challenger: str) -> list[str]:
    """Return the two systems whose lists are shown, left first."""
    usual = [study.baseline, challenger]
    chosen = [address.one(side) or "" for side in _SIDES]
    shown = [
        one if one in study.chosen else other for one, other in zip(chosen, usual, strict=True)
    ]
    return usual if shown[0] == shown[1] else shown


def _move(study: Study, doc: str, ranks: Sequence[Mapping[str, int]], side: int) -> tuple[int, str]:
    """Return the direction of a document's move from left to right (-1, 0 or 1), and its size in
    ranks. If the other side does not show it, or only one side has it within the cutoff, the text
    is its rank there."""
    here, there = ranks[side][doc], ranks[1 - side].get(doc)
    if there is None:
        return 1 if side else -1, _("not listed")
    rise = there - here if side else here - there
    k = queries_study.depth_shown(study)
    if there <= _SHOWN and (there <= k) == (here <= k):
        words = number(abs(rise), 0) if rise else ""
    elif side:
        words = _("from {rank}", rank=number(there, 0))
    else:
        words = _("to {rank}", rank=number(there, 0))
    return (rise > 0) - (rise < 0), words


def _places(
    study: Study,
    doc: str,
    shown: Sequence[str],
    ranks: Sequence[Mapping[str, int]],
    elsewhere: Mapping[str, tuple[str, int]],
) -> str:
    """Return the ranks of a document that neither displayed list contains, as text: in the
    displayed systems and in another one.

    elsewhere: document id → another system that ranks it, and its rank there.
    """
    places = {system: rank.get(doc) for system, rank in zip(shown, ranks, strict=True)}
    if doc in elsewhere:
        system, rank = elsewhere[doc]
        places[system] = rank
    return " · ".join(
        _("{system}: not listed", system=middle(study.name(system), _NAME))
        if rank is None
        else _("{system}: rank {rank}", system=middle(study.name(system), _NAME), rank=rank)
        for system, rank in places.items()
    )


# The texts of documents as pieces, alternately plain and marked.


def _opening(doc: str, text: Text, query_terms: QueryTerms) -> tuple[list[str], list[str]]:
    """Return pieces of a document's title and of its best matching passage. Without a title, the
    passage is the title; without a text, the id is."""
    body = (text.body or "")[:_LOOKED_AT]
    marked = spans(body, query_terms)
    start, end = snippet(body, marked, _narrowed(body, _SNIPPET))
    part = _pieces(body, marked, start, end)
    if start:
        part[0] = f"… {part[0]}"
    title = shortened(text.title, _narrowed(text.title, _TITLE))
    if title:
        return _pieces(title, spans(title, query_terms)), part
    return (part, []) if body else ([doc], [])


def _narrowed(text: str, width: int) -> int:
    """Return how many characters of a text fit into `width` columns."""
    opening = text[:width]
    return width * len(opening) // max(columns(opening), 1)


def _pieces(text: str, marked: Spans, start: int = 0, end: int | None = None) -> list[str]:
    return [CONTROL.sub("", each) for each in pieces(text, marked, start, end)]


def _whole(
    study: Study,
    ladder: Ladder,
    query_id: str,
    texts: Mapping[str, Text],
    query_terms: QueryTerms,
    shown: Sequence[str],
) -> dict[str, Any] | None:
    """Return the part of a document's text that the reader opened; None if it is of another
    query."""
    query, doc, start = _state().get("open", ("", "", 0))
    if query != query_id or doc not in texts:
        return None
    text = texts[doc].body or _("The data contains no text for this document.")
    end = min(start + _PART, len(text))
    more = _("Show more ({n} of {all} characters)", n=number(end, 0), all=number(len(text), 0))
    facts = [_("document {id}", id=shortened(doc, 60))]
    for system in shown:
        if doc in queries_study.ranks_of(ladder, system):
            facts += _facts(study, system, query_id, doc)
    return {
        "doc": doc,
        "start": start,
        "end": end,
        "pieces": _pieces(text[start:end], spans(text[start:end], query_terms)),
        "facts": " · ".join(facts),
        "more": more if end < len(text) else "",
    }


def _facts(study: Study, system: str, query_id: str, doc: str) -> list[str]:
    """Return the score of a document, and how much of it the model read."""
    (document,) = queries_study.listed(study, system, query_id, [doc])
    facts = []
    if document.score is not None:
        name = middle(study.name(system), _NAME)
        facts.append(_("score of {system} {score}", system=name, score=plain(document.score, 4)))
    if document.read is not None and document.full is not None:
        facts.append(
            _(
                "the model saw {read} of {full} tokens",
                read=number(document.read, 0),
                full=number(document.full, 0),
            )
        )
    elif document.read is not None:
        facts.append(_("the model read {read} tokens", read=number(document.read, 0)))
    return facts


# Grades as keys: numbers, "cannot tell" and no label.


def scale(study: Study) -> list[str]:
    """Return the grades that users can choose: from 0 to one above the highest uploaded label. The
    conventions may set a lower maximum."""
    uploaded = stored.dataset(study.stored_id) if study.corrected else study.dataset
    top = math.floor(uploaded.top_grade)
    grades = {*uploaded.grades, float(top + 1)}
    if len(grades) > _MOST_GRADES:
        grades = {*map(float, range(min(top + 2, _MOST_GRADES)))}
    limit = study.conventions.err_top_label or math.inf
    return [_key(each) for each in sorted(grades) if each <= limit]


def _key(label: float | None) -> str:
    return _NO_LABEL if label is None else f"{label:.17g}"


def _grade(key: str, top: float) -> tuple[str, str]:
    """Return a grade as filled squares, or as a number if the scale has many, and in words."""
    if key == _CANNOT_TELL:
        return key, _("cannot tell")
    label = float(key) if key else math.nan
    words = grade(label, top)
    if not label.is_integer() or label < 0 or top > _MOST_SQUARES:
        return plain(label) if key else words, words
    return "■" * int(label) + "□" * int(max(top - label, 0)), words


def _effect(study: Study, challenger: str, query_id: str) -> str:
    """Return the effect of the last grades on the open query's value and on the mean; "" without
    grades."""
    state = _state()
    last = state.get("effect")
    if last is None or last[:3] != (query_id, study.spec, challenger):
        state.pop("effect", None)
        return ""
    values = (*last[3], *_values(study, challenger, query_id))
    value, mean, new_value, new_mean = map(number, values)
    return _(
        "This query {value} → {new_value} · mean {mean} → {new_mean}",
        value=value,
        new_value=new_value,
        mean=mean,
        new_mean=new_mean,
    )


def _values(study: Study, challenger: str, query_id: str) -> tuple[float, float]:
    """Return the challenger's value of a query, and its mean."""
    values = queries_study.by_query(study, challenger, study.spec)
    return float(values.get(query_id, math.nan)), study.evaluations[challenger].mean(study.spec)


# Messages of the browser: grades, two systems, or a text. They can be anything.


def _state() -> dict[str, Any]:
    state: dict[str, Any] = st.session_state.setdefault(_PLACE + ".state", {})
    return state


def _heard(study: Study, challenger: str, event: object) -> None:
    match event:
        case {"pending": [*pending]}:
            _take(study, challenger, pending[:_MOST_EVENTS])
    match event:
        case {"show": [str(left), str(right)]} if {left, right} <= {*study.chosen}:
            usual = (study.baseline, challenger)
            for side, system, other in zip(_SIDES, (left, right), usual, strict=True):
                address.choose(side, None if system == other else system)
        case {"open": [str(query), str(doc), int(start)]} if start >= 0:
            _state()["open"] = query, doc, start


def _take(study: Study, challenger: str, pending: Sequence[object]) -> None:
    """Store the grades that the browser sent, except those stored before."""
    state = _state()
    grades = set() if read_only() else {*scale(study), _CANNOT_TELL, _NO_LABEL}
    queries = queries_study.listing(study, challenger).positions
    for each in pending:
        match each:
            case [int(at), str(query), str(doc), str(key)] if at > state.get("heard", 0):
                state["heard"] = at
                if query in queries and doc in study.dataset.document_places and key in grades:
                    _correct(study, challenger, (query, doc), key)


def _correct(study: Study, challenger: str, pair: Pair, key: str) -> None:
    before = (pair[0], study.spec, challenger, _values(study, challenger, pair[0]))
    label = None if key in (_CANNOT_TELL, _NO_LABEL) else float(key)
    withdraw = key == _NO_LABEL
    store = partial(corrections.correct, study.stored_id, pair, label, withdraw=withdraw)
    if dialogs.attempt(_PLACE, store):
        _state()["effect"] = before
        address.choose(view.LABELS, None)
