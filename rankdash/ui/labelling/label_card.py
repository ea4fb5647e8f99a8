"""One document of one query, to be labelled: nothing on it tells who ranked it, where, or how."""

from __future__ import annotations

import time
import uuid
from contextlib import nullcontext
from typing import cast

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
from rankdash.ui.widgets.text import html_safe, name_safe

_WHO = "analyst"
_OWNER, _AGAIN, _SHOWN = "labelling.owner", "labelling.shown_again", "labelling.shown"
_NAME, _TYPED = "labelling.name", "labelling.who"
# Nobody reads a document in less: such a key was meant for the one before.
_UNREAD_SECONDS = 0.6
_LONGEST_TEXT = 20_000
_AHEAD = 200
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
    """Who labels: logged in, or the name that was typed in this window; "" before there is one."""
    known: str = person.name() or st.session_state.get(_NAME, "")
    if person.name():
        return known
    # A field that stays under the cursor would take the keys that are meant for the document.
    with st.popover(name_safe(known), icon=":material/person:") if known else nullcontext():
        st.text_input(
            _("Your name, stored with each label"),
            value=known,
            max_chars=LONGEST_NAME,
            key=_TYPED,
            on_change=_remember,
        )
    before = workspace().setting(_WHO)
    if before and not known:
        # Never by itself: another person may sit at this window.
        st.button(
            _("Continue as {name}", name=name_safe(before)),
            key="labelling.same",
            on_click=_call,
            args=(before,),
        )
    return known


def _remember() -> None:
    typed = tidy_name(st.session_state[_TYPED])
    _call(typed)
    if typed and not read_only():
        workspace().set_setting(_WHO, typed)


def _call(who: str) -> None:
    st.session_state[_NAME] = who


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
    pair = _next(labelling, who)
    if pair is None:
        _nothing_left(labelling, who)
        return
    if st.session_state.get(_SHOWN, ("", 0.0))[0] != pair:
        st.session_state[_SHOWN] = pair, time.monotonic()
    _card(labelling, pair)
    _buttons(labelling, pair, who)


def _next(labelling: Labelling, who: str) -> Pair | None:
    """The pair that is shown again, else the first that is open and in nobody else's hands."""
    owner = st.session_state.setdefault(_OWNER, uuid.uuid4().hex)
    plans, again = LabelPlans(workspace()), st.session_state.get(_AGAIN)
    if again is not None:
        plans.take(labelling.kept.id, [again], owner)
        return cast(Pair, again)
    # More than can be in other people's hands.
    places = next_pairs(
        labelling.plan, labelling.answered, who, _AHEAD, doubled=labelling.settings.double
    )
    return plans.take(labelling.kept.id, map(labelling.pair, places.tolist()), owner)


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
        last = labelling.last_of(who)
        st.button(
            _("Back"),
            key=f"labelling.back.{card}",
            icon=":material/undo:",
            shortcut="b",
            disabled=again or last is None,
            on_click=_back,
            args=(dataset_id, last, who),
            help=_("Takes the last label back and shows its document again."),
        )


def _grade_words(grade: float, top: float) -> str:
    words = {0.0: _("not relevant"), top: _("relevant")}
    if top > 1:
        words |= {1.0: _("slightly relevant"), top: _("highly relevant")}
    return words.get(grade, f"{grade:g}")


def _answer(dataset_id: str, pair: Pair, label: float | None, who: str) -> None:
    shown, since = st.session_state.get(_SHOWN, (pair, 0.0))
    if shown == pair and time.monotonic() - since < _UNREAD_SECONDS:
        return
    Corrections(workspace()).correct(dataset_id, pair, label, who)
    st.session_state.pop(_AGAIN, None)


def _back(dataset_id: str, pair: Pair, who: str) -> None:
    """Take one's own last answer about a pair back; what others said of it is in force again."""
    layer = Corrections(workspace())
    said: list[Correction] = []
    for each in layer.log(dataset_id):
        if each.pair == pair:
            said = [] if each.withdrawn else [*said, each]
    own = [each for each in said if each.who == who]
    layer.withdraw(dataset_id, [pair])
    layer.restore(dataset_id, [each for each in said if each not in own[-1:]])
    st.session_state[_AGAIN] = pair


def _nothing_left(labelling: Labelling, who: str) -> None:
    mine = sum(each.answers for each in labelling.status.raters if each.name == who)
    st.success(
        _("No document is left for you. Labelled by you: {n}.", n=number(mine, 0)),
        icon=":material/done_all:",
    )
