"""The keys of a card: grades, "cannot tell", back, a note and a pause; each saves at once."""

from __future__ import annotations

import time

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import plain
from rankdash.core.data.ranking import digest
from rankdash.core.workspace.notes.corrections import Correction, Corrections, Pair
from rankdash.core.workspace.notes.label_notes import LONGEST_LABEL_NOTE, LabelNotes
from rankdash.core.workspace.notes.label_plans import LabelPlans
from rankdash.kit.widgets.label_plan import Labelling
from rankdash.kit.widgets.server import workspace

UNREAD_SECONDS = 0.6
"""Nobody reads a document in less: such a key was meant for the one before."""

PAUSED, REPLACED = "labelling.paused", "labelling.replaced"
_AGAIN, _SHOWN, _NOTES = "labelling.shown_again", "labelling.shown", "labelling.notes"
# Session: why the last key saved nothing, until it is said.
_REFUSED = "labelling.refused"
# The key of the container of keys without a button to see.
_UNSEEN = "labelling-unseen"


def appears(pair: Pair) -> None:
    """A card is drawn; from when it is first, its keys wait until it can have been read."""
    if st.session_state.get(_SHOWN, ("", 0.0))[0] != pair:
        st.session_state[_SHOWN] = pair, time.monotonic()


def taken_back(labelling: Labelling, who: str) -> tuple[Pair, float | None] | None:
    """The document that a person went back to, and what they had labelled it; None where they did
    not, or under another plan."""
    kept: dict[tuple[str, str], tuple[Pair, float | None]] = st.session_state.get(_AGAIN, {})
    return kept.get((labelling.kept.id, who))


def draw(labelling: Labelling, pair: Pair, who: str) -> None:
    # A callback must draw nothing.
    if refused := st.session_state.pop(_REFUSED, None):
        st.toast(refused, icon=":material/keyboard:")
    # The name of the card is part of each key: a key that is pressed twice, the second time before
    # the next document is on screen, must not label that one.
    # It holds the name of the person too: a note is one's own.
    card = digest([part.encode("utf-8", "surrogatepass") for part in (*pair, who)])
    again = taken_back(labelling, who)
    with st.container(horizontal=True, vertical_alignment="center"):
        for grade in labelling.grades:
            st.button(
                _grade_words(grade, labelling.grades[-1]),
                key=f"labelling.grade.{grade:g}.{card}",
                shortcut=plain(grade),
                type="primary" if again and grade == again[1] else "secondary",
                on_click=_answer,
                args=(labelling, pair, grade, who),
            )
        st.button(
            _("Cannot tell"),
            key=f"labelling.unsure.{card}",
            shortcut="u",
            on_click=_answer,
            args=(labelling, pair, None, who),
        )
        last = labelling.last_of(who)
        st.button(
            _("Back"),
            key=f"labelling.back.{card}",
            icon=":material/undo:",
            shortcut="b",
            disabled=last is None,
            on_click=_back,
            args=(labelling, last, who),
            help=_(
                "Takes your last label back and shows its document again. Press it again for "
                "the one before."
            ),
        )
        st.button(
            _("Pause"),
            key=f"labelling.pause.{card}",
            icon=":material/pause:",
            shortcut="p",
            on_click=_pause,
            help=_("The time of the pause does not count."),
        )
    _digits_off_scale(labelling, card)
    _note(labelling.kept.dataset_id, pair, who, card)


def _digits_off_scale(labelling: Labelling, card: str) -> None:
    """Answer a digit that is no grade, so that nobody takes it for a label."""
    st.html(f"<style>.st-key-{_UNSEEN} {{ display: none; }}</style>")
    with st.container(key=_UNSEEN):
        for digit in range(int(labelling.grades[-1]) + 1, 10):
            st.button(
                str(digit),
                key=f"labelling.unseen.{digit}.{card}",
                shortcut=str(digit),
                on_click=_off_scale,
                args=(digit, labelling.grades[-1]),
            )


def _off_scale(digit: int, top: float) -> None:
    st.session_state[_REFUSED] = _(
        "Not saved: {digit} is not a grade. The grades are 0 to {top}.",
        digit=digit,
        top=plain(top),
    )


def paused(labelling: Labelling, who: str) -> None:
    """What stands in place of a card during a pause."""
    st.info(_("Paused. All labels are saved."), icon=":material/pause:")
    st.button(
        _("Continue"),
        key="labelling.continue",
        icon=":material/play_arrow:",
        shortcut="p",
        on_click=_continue,
        args=(labelling.kept.id, who),
    )


def _note(dataset_id: str, pair: Pair, who: str, card: str) -> None:
    # Another name once it is stored, so that the field lets go of the cursor and the keys.
    key = f"labelling.note.{card}.{st.session_state.get(_NOTES, 0)}"
    st.text_input(
        _("Note"),
        value=LabelNotes(workspace()).of(dataset_id, pair, who),
        max_chars=LONGEST_LABEL_NOTE,
        key=key,
        on_change=_keep_note,
        args=(dataset_id, pair, who, key),
        placeholder=_("Note on this document; Enter stores it"),
        label_visibility="collapsed",
    )


def _keep_note(dataset_id: str, pair: Pair, who: str, key: str) -> None:
    LabelNotes(workspace()).keep(dataset_id, pair, who, st.session_state[key])
    st.session_state[_NOTES] = st.session_state.get(_NOTES, 0) + 1


def _grade_words(grade: float, top: float) -> str:
    between = {
        1.0: (),
        2.0: (_("relevant"),),
        3.0: (_("slightly relevant"), _("relevant")),
        4.0: (_("slightly relevant"), _("partly relevant"), _("relevant")),
    }[top]
    best = _("highly relevant") if between else _("relevant")
    return (_("not relevant"), *between, best)[int(grade)]


def _answer(labelling: Labelling, pair: Pair, label: float | None, who: str) -> None:
    shown, since = st.session_state.get(_SHOWN, (pair, 0.0))
    if shown == pair and time.monotonic() - since < UNREAD_SECONDS:
        st.session_state[_REFUSED] = _(
            "Not saved: the key came before the document could be read. Press it again."
        )
        return
    if not _in_force(labelling):
        return
    Corrections(workspace()).correct(labelling.kept.dataset_id, pair, label, who)
    st.session_state.pop(_AGAIN, None)


def _in_force(labelling: Labelling) -> bool:
    """Whether the plan is still the one that labels are given for: another one may have another
    scale, or its data set is gone."""
    newest = LabelPlans(workspace()).newest(labelling.kept.dataset_id)
    same = newest is not None and newest.id == labelling.kept.id
    if not same:
        st.session_state[REPLACED] = True
    return same


def _back(labelling: Labelling, pair: Pair, who: str) -> None:
    """Take one's own last answer about a pair back; what others said of it is in force again."""
    if not _in_force(labelling):
        return
    dataset_id, layer = labelling.kept.dataset_id, Corrections(workspace())
    said: list[Correction] = []
    for each in layer.log(dataset_id):
        if each.pair == pair:
            said = [] if each.withdrawn else [*said, each]
    own = [each for each in said if each.who == who]
    st.session_state[_AGAIN] = {(labelling.kept.id, who): (pair, own[-1].label if own else None)}
    layer.withdraw(dataset_id, [pair])
    layer.restore(dataset_id, [each for each in said if each not in own[-1:]])


def _pause() -> None:
    st.session_state[PAUSED] = True


def _continue(plan_id: str, who: str) -> None:
    st.session_state.pop(PAUSED, None)
    st.session_state.pop(_SHOWN, None)
    LabelPlans(workspace()).resume(plan_id, who)
