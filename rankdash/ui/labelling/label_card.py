"""One document of one query, to be labelled: nothing on it tells who ranked it, where, or how."""

from __future__ import annotations

import uuid
from contextlib import nullcontext

import streamlit as st

from rankdash.analysis.labelling.answers import next_pairs
from rankdash.i18n import gettext as _
from rankdash.i18n import number, plain
from rankdash.ranking.ranking import digest
from rankdash.store.notes.corrections import LONGEST_NAME, Correction, Corrections, Pair, tidy_name
from rankdash.store.notes.label_plans import LabelPlans
from rankdash.ui.labels import estimate_strip, label_plan
from rankdash.ui.labels.label_plan import Labelling
from rankdash.ui.state import person, stored
from rankdash.ui.state.server import read_only, workspace
from rankdash.ui.widgets.highlight import marked_html, spans, terms
from rankdash.ui.widgets.text import html_safe, shortened

_WHO = "analyst"
_OWNER, _AGAIN, _GIVEN = "labelling.owner", "labelling.shown_again", "labelling.given"
_LONGEST_TEXT = 20_000
_AHEAD = 200
_NAME = "labelling.name"
_STYLE = """<style>
.rd-label { border: 1px solid color-mix(in srgb, currentColor 22%, transparent); border-radius: 8px;
  padding: 0.8rem 1rem; font-size: 1rem; line-height: 1.55; }
.rd-label .rd-query { font-weight: 700; font-size: 1.1rem; overflow-wrap: anywhere; }
.rd-label .rd-title { font-weight: 600; margin-top: 0.7rem; overflow-wrap: anywhere; }
.rd-label p { margin: 0.4rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere;
  max-height: 45vh; overflow-y: auto; }
.rd-label mark { background: color-mix(in srgb, #E69F00 30%, transparent); color: inherit;
  text-decoration: underline; text-decoration-thickness: 2px; text-underline-offset: 2px; }
</style>"""


def name() -> str:
    """Who labels: logged in, or the name that was typed; "" before there is one."""
    known = person.name() or st.session_state.get(_NAME) or workspace().setting(_WHO) or ""
    if person.name():
        return known
    # A field that stays under the cursor would take the keys that are meant for the document.
    with st.popover(shortened(known, 40), icon=":material/person:") if known else nullcontext():
        st.text_input(
            _("Your name, stored with each label"),
            value=known,
            max_chars=LONGEST_NAME,
            key="labelling.who",
            on_change=_remember,
        )
    return known


def _remember() -> None:
    st.session_state[_NAME] = tidy_name(st.session_state["labelling.who"])
    if not read_only():
        workspace().set_setting(_WHO, st.session_state[_NAME])


@st.fragment
def draw(dataset_id: str, who: str) -> None:
    """The strip and the next document for a person; each key draws only this anew."""
    labelling = label_plan.current(dataset_id)
    if labelling is None:
        st.rerun()
    estimate_strip.draw(labelling)
    if read_only():
        st.caption(_("This workspace is read-only: nothing can be added to it here."))
        return
    if not who:
        st.info(_("Type your name to begin: it is stored with each label."))
        return
    pair = st.session_state.get(_AGAIN) or _next(labelling, who)
    if pair is None:
        _nothing_left(labelling, who)
        return
    _card(labelling, pair)
    _buttons(labelling, pair, who)


def _next(labelling: Labelling, who: str) -> Pair | None:
    owner = st.session_state.setdefault(_OWNER, uuid.uuid4().hex)
    # More than can be in other people's hands.
    places = next_pairs(
        labelling.plan, labelling.answered, who, _AHEAD, doubled=labelling.settings.double
    )
    return LabelPlans(workspace()).take(
        labelling.kept.id, map(labelling.pair, places.tolist()), owner
    )


def _card(labelling: Labelling, pair: Pair) -> None:
    data = stored.dataset(labelling.kept.dataset_id)
    query, doc_id = data.query_names[pair[0]], pair[1]
    row = data.documents.iloc[data.document_places[doc_id]]
    title, text = str(row["title"] or ""), str(row["text"]) if row["text"] == row["text"] else ""
    wanted, shown = terms(query), text[:_LONGEST_TEXT]
    head = f"<div class='rd-title'>{html_safe(title)}</div>" if title else ""
    body = marked_html(shown, spans(shown, wanted)) if shown else html_safe(_("(no text)"))
    more = "…" if len(text) > _LONGEST_TEXT else ""
    st.html(
        f"{_STYLE}<div class='rd-label'><div class='rd-query'>{html_safe(query)}</div>"
        f"{head}<p tabindex='0'>{body}{more}</p></div>"
    )


def _buttons(labelling: Labelling, pair: Pair, who: str) -> None:
    # The name of the card is part of each key: a key that is pressed twice, the second time before
    # the next document is on screen, must not label that one.
    card = digest([part.encode("utf-8", "surrogatepass") for part in pair])
    dataset_id, again = labelling.kept.dataset_id, _AGAIN in st.session_state
    with st.container(horizontal=True, vertical_alignment="center"):
        for grade in labelling.grades:
            st.button(
                _grade_words(grade, labelling.grades[-1]),
                key=f"labelling.grade.{grade:g}.{card}",
                shortcut=plain(grade),
                on_click=_answer,
                args=(dataset_id, pair, grade, who),
            )
        st.button(
            _("Cannot tell"),
            key=f"labelling.unsure.{card}",
            shortcut="u",
            on_click=_answer,
            args=(dataset_id, pair, None, who),
        )
        given: list[Pair] = st.session_state.get(_GIVEN, [])
        st.button(
            _("Back"),
            key=f"labelling.back.{card}",
            icon=":material/undo:",
            shortcut="b",
            disabled=again or not given,
            on_click=_back,
            args=(dataset_id,),
            help=_("Takes the last label back and shows its document again."),
        )


def _grade_words(grade: float, top: float) -> str:
    words = {0.0: _("not relevant"), top: _("relevant")}
    if top > 1:
        words |= {1.0: _("slightly relevant"), top: _("highly relevant")}
    return words.get(grade, f"{grade:g}")


def _answer(dataset_id: str, pair: Pair, label: float | None, who: str) -> None:
    Corrections(workspace()).correct(dataset_id, pair, label, who)
    st.session_state.pop(_AGAIN, None)
    st.session_state.setdefault(_GIVEN, []).append(pair)


def _back(dataset_id: str) -> None:
    """Take the last answer back; what somebody else said of the pair is in force again."""
    pair: Pair = st.session_state[_GIVEN].pop()
    layer = Corrections(workspace())
    before = _before(layer.log(dataset_id), pair)
    layer.withdraw(dataset_id, [pair])
    if before is not None:
        layer.restore(dataset_id, [before])
    st.session_state[_AGAIN] = pair


def _before(log: list[Correction], pair: Pair) -> Correction | None:
    """What was in force of a pair before the last entry."""
    own = [each for each in log if (each.query_id, each.doc_id) == pair]
    before = own[-2] if len(own) > 1 else None
    return None if before is None or before.withdrawn else before


def _nothing_left(labelling: Labelling, who: str) -> None:
    mine = sum(each.answers for each in labelling.status.raters if each.name == who)
    st.success(
        _("No document is left for you. Labelled by you: {n}.", n=number(mine, 0)),
        icon=":material/done_all:",
    )
