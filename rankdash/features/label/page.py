"""Label: a card with the document to label, its keys, who labels, and how far each query is."""

from __future__ import annotations

import math
import time
import uuid

import pandas as pd
import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from rankdash.core.base.i18n import duration, number, percent, plain
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.ranking import digest
from rankdash.core.sampling.label_plan import next_pairs
from rankdash.core.workspace.notes import (
    LONGEST_LABEL_NOTE,
    LONGEST_NAME,
    Correction,
    Corrections,
    LabelNotes,
    LabelPlans,
    Pair,
    tidy_name,
)
from rankdash.kit.widgets import language, stored, view
from rankdash.kit.widgets.labels import plan
from rankdash.kit.widgets.labels.plan import Labelling
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.stored import read_only, workspace
from rankdash.kit.widgets.text import (
    QueryTerms,
    html_safe,
    marked_html,
    name_safe,
    shortened,
    spans,
    table_html,
    terms,
)

# Of this process: others know nothing of its windows.
_SERVER = uuid.uuid4().hex
# Session: the plan whose conclusive result was seen.
_ON = "labelling.goes_on"
# More than can be in other people's hands.
_AHEAD = 200


@st.fragment
def draw(dataset_id: str, plan_id: str, who: str) -> None:
    """Each key draws only this anew. plan_id: of the plan that the rest of the page is about."""
    labelling = plan.current(dataset_id)
    if labelling is None:
        st.rerun()
    if labelling.kept.id != plan_id:
        st.session_state[REPLACED] = True
        st.rerun()
    # Who labels waits for the card, and not for the result above it.
    strip = st.container()
    if read_only():
        st.caption(_("This workspace is read-only: you cannot add anything here."))
    elif not who:
        st.caption(_("Type your name to begin: it is stored with each label."))
    elif PAUSED in st.session_state:
        LabelPlans(workspace()).take(plan_id, [], _owner())
        paused(labelling, who)
    else:
        _next_card(labelling, who)
    with strip:
        plan.draw_estimate_strip(labelling)
        if labelling.status.settled and not labelling.complete:
            _conclusive(labelling)
    fold(
        _p("heading", "Annotators"),
        "label.people",
        ":material/group:",
        lambda: draw_people(labelling),
    )


def _conclusive(labelling: Labelling) -> None:
    """What to do with a conclusive result; "Label on" folds it up."""
    if st.session_state.get(_ON) == labelling.kept.id:
        return
    with st.container(border=True):
        st.markdown(
            _("The result is conclusive, and more labels do not take it back. They narrow it.")
        )
        with st.container(horizontal=True):
            view.link("overview", _("See the verdict"), ":material/gavel:")
            view.link("report", _("Make the report"), ":material/description:")
            st.button(
                _("Continue labelling"),
                key="labelling.on",
                icon=":material/label:",
                on_click=st.session_state.__setitem__,
                args=(_ON, labelling.kept.id),
            )


def _next_card(labelling: Labelling, who: str) -> None:
    plans, again = LabelPlans(workspace()), taken_back(labelling, who)
    pair: Pair | None
    if again is not None:
        pair, is_open = again[0], True
        plans.take(labelling.kept.id, [pair], _owner())
    else:
        places = next_pairs(
            labelling.plan, labelling.answered, who, _AHEAD, doubled=labelling.settings.double
        )
        offered = map(labelling.pair, places.tolist())
        pair = plans.take(labelling.kept.id, offered, _owner(), gone=_is_closed)
        is_open = len(places) > 0
    if pair is None:
        _nothing_left(labelling, who, is_open)
        return
    appears(pair)
    draw_card(labelling, pair)
    draw_keys(labelling, pair, who)
    if labelling.settings.mode == "query":
        query_so_far(labelling, pair[0], who)


def _owner() -> str:
    """This window: a reload is another one."""
    context = get_script_run_ctx()
    return f"{_SERVER}.{context.session_id if context else ''}"


def _is_closed(owner: str) -> bool:
    server, _dot, session = owner.partition(".")
    local = server == _SERVER and runtime.exists()
    return local and not runtime.get_instance().is_active_session(session)


def _nothing_left(labelling: Labelling, who: str, is_open: bool) -> None:
    """is_open: whether others have the last documents before them."""
    if is_open:
        st.info(
            _(
                "The documents that are left are open in other windows. One that is not labelled "
                "there is free again after ten minutes."
            ),
            icon=":material/hourglass_empty:",
        )
        st.button(_("Look again"), key="labelling.again", icon=":material/refresh:")
        return
    mine = sum(each.answers for each in labelling.status.raters if each.name == who)
    st.success(
        _("No document is left for you. Labelled by you: {n}.", n=number(mine, 0)),
        icon=":material/done_all:",
    )
    view.link("overview", _p("page", "Overview"), ":material/arrow_forward:")


# One document of one query, to be labelled: nothing on it tells who ranked it, where, or how.

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


def draw_card(labelling: Labelling, pair: Pair) -> None:
    """The query, and title and text of the document with the words of the query marked."""
    data = stored.dataset(labelling.kept.dataset_id)
    query = data.query_names[pair[0]]
    row = data.documents.iloc[data.document_places[pair[1]]]
    title, text = str(row["title"]).strip(), "" if pd.isna(row["text"]) else str(row["text"])
    query_terms, shown = terms(query), text[:_LONGEST_TEXT]
    head = f"<div class='rd-title'>{_marked(title, query_terms)}</div>" if title else ""
    if shown.strip():
        body = _marked(shown, query_terms)
    elif title:
        body = html_safe(_("(no text)"))
    else:
        body = html_safe(_("(no title and no text; its id is {id})", id=pair[1]))
    more = "…" if len(text) > _LONGEST_TEXT else ""
    st.html(
        f"{_STYLE}<div class='rd-label'><div class='rd-head'>"
        f"<small>{html_safe(_p('heading', 'Query'))}"
        f"{_place(labelling, pair)}</small><div class='rd-query'>{html_safe(query)}</div></div>"
        f"<small>{html_safe(_p('heading', 'Document'))}</small>{head}"
        f"<p tabindex='0'>{body}{more}</p></div>"
    )


def query_so_far(labelling: Labelling, query_id: str, who: str) -> None:
    """A person's own labels of a query, the last one first: alike documents get alike labels."""
    previous = labelling.answered.latest
    previous = previous[(previous["query_id"] == query_id) & (previous["rater"] == who)][::-1]
    if len(previous):
        data = stored.dataset(labelling.kept.dataset_id)
        names = data.names_of(previous["doc_id"])
        rows = [
            [
                shortened(names[doc], _LONGEST_NAME),
                _("cannot tell") if label != label else plain(label),
            ]
            for doc, label in zip(previous["doc_id"], previous["label"], strict=True)
        ]
        st.html(table_html([_("Your labels for this query"), _p("column", "Label")], rows))


def _marked(text: str, query_terms: QueryTerms) -> str:
    return marked_html(text, spans(text, query_terms))


def _place(labelling: Labelling, pair: Pair) -> str:
    """Which of its query's documents this is, where all of them are labelled in a row."""
    if labelling.settings.mode != "query":
        return ""
    done, every = labelling.of_query(pair[0])
    place = _("document {n} of {all}", n=number(min(done + 1, every), 0), all=number(every, 0))
    return f" · {html_safe(place)}"


# The keys of a card: grades, "cannot tell", back, a note and a pause; each saves at once.

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
    withdrawn: dict[tuple[str, str], tuple[Pair, float | None]] = st.session_state.get(_AGAIN, {})
    return withdrawn.get((labelling.kept.id, who))


def draw_keys(labelling: Labelling, pair: Pair, who: str) -> None:
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
            _p("button", "Back"),
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
            _p("button", "Pause"),
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
        _p("button", "Continue"),
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
        _p("field", "Note"),
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
        2.0: (_p("grade", "relevant"),),
        3.0: (_("slightly relevant"), _p("grade", "relevant")),
        4.0: (_("slightly relevant"), _("partly relevant"), _p("grade", "relevant")),
    }[top]
    best = _("highly relevant") if between else _p("grade", "relevant")
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
    corrections: list[Correction] = []
    for each in layer.log(dataset_id):
        if each.pair == pair:
            corrections = [] if each.withdrawn else [*corrections, each]
    personal = [each for each in corrections if each.who == who]
    st.session_state[_AGAIN] = {
        (labelling.kept.id, who): (pair, personal[-1].label if personal else None)
    }
    layer.withdraw(dataset_id, [pair])
    layer.restore(dataset_id, [each for each in corrections if each not in personal[-1:]])


def _pause() -> None:
    st.session_state[PAUSED] = True


def _continue(plan_id: str, who: str) -> None:
    st.session_state.pop(PAUSED, None)
    st.session_state.pop(_SHOWN, None)
    LabelPlans(workspace()).resume(plan_id, who)


# Who labelled how much, which grades each gave, and how far two people agree.


def draw_people(labelling: Labelling) -> None:
    """A table of people, and a sentence for each two with a document in common."""
    progress = labelling.status
    if not progress.raters:
        st.caption(_("Nobody has labelled yet."))
        return
    rows = [
        [
            each.name or _p("state", "unknown"),
            number(each.answers, 0),
            *(number(each.grades.get(grade, 0), 0) for grade in labelling.grades),
            number(each.cannot_tell, 0),
        ]
        for each in progress.raters
    ]
    grades = [f"{grade:g}" for grade in labelling.grades]
    st.html(
        table_html(
            [_p("column", "Person"), _p("column", "Documents"), *grades, _("cannot tell")], rows
        )
    )
    if math.isfinite(progress.seconds):
        st.caption(_("{time} for a document, at the median.", time=duration(progress.seconds)))
    for each in progress.agreements:
        one, other = each.raters
        kappa = each.quadratic
        st.markdown(
            _(
                "{one} and {other}: the same grade for {share} of {n} documents, quadratic kappa "
                "{kappa} ({low} … {high}).",
                one=name_safe(one),
                other=name_safe(other),
                share=percent(kappa.agree),
                n=number(kappa.pairs, 0),
                kappa=number(kappa.kappa),
                low=number(kappa.low),
                high=number(kappa.high),
            )
        )


# Who labels in this window.

_WHO = "analyst"
_NAME, _TYPED = "labelling.name", "labelling.who"


def rater_name() -> str:
    """Logged in, or the name that was typed in this window; "" before there is one."""
    known: str = language.person_name() or st.session_state.get(_NAME, "")
    return known


def ask_rater() -> None:
    """A field for the name, and a button for the one that was typed here last."""
    field, same = st.columns([2, 1], vertical_alignment="bottom")
    with field:
        _field("")
    before = workspace().setting(_WHO)
    if before:
        # Never by itself: another person may sit at this window.
        same.button(
            _("Continue as {name}", name=name_safe(before)),
            key="labelling.same",
            on_click=_call,
            args=(before,),
        )


def change_rater() -> None:
    """The name, and a field for another one; nothing where somebody is logged in."""
    if not language.person_name():
        # A field that stays under the cursor would take the keys that are meant for the document.
        with st.popover(name_safe(rater_name()), icon=":material/person:"):
            _field(rater_name())


def _field(now: str) -> None:
    st.text_input(
        _("Your name, stored with each label"),
        value=now,
        max_chars=LONGEST_NAME,
        key=_TYPED,
        on_change=_remember,
    )


def _remember() -> None:
    typed = tidy_name(st.session_state[_TYPED])
    _call(typed)
    if typed and not read_only():
        workspace().set_setting(_WHO, typed)


def _call(who: str) -> None:
    st.session_state[_NAME] = who


# The queries of a plan with their labels so far.
