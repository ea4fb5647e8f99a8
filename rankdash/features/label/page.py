"""Page Label: document card with keys, annotators, and progress per query."""

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

# Identifies this process; other processes cannot check its windows.
_SERVER = uuid.uuid4().hex
# Session: the plan for which the user chose to continue after a conclusive result.
_ON = "labelling.goes_on"
# More documents than other annotators can have open.
_AHEAD = 200


@st.fragment
def draw(dataset_id: str, plan_id: str, who: str) -> None:
    """Draw the labelling part of the page; each key redraws only this. plan_id: the plan in the
    rest of the page."""
    labelling = plan.current(dataset_id)
    if labelling is None:
        st.rerun()
    if labelling.kept.id != plan_id:
        st.session_state[REPLACED] = True
        st.rerun()
    # The card is drawn first because annotators wait for it.
    strip = st.container()
    if read_only():
        st.caption(_("This workspace is read-only: you cannot add anything here."))
    elif not who:
        st.caption(_("Enter your name to start. It is stored with each label."))
    elif PAUSED in st.session_state:
        LabelPlans(workspace()).take(plan_id, [], _owner())
        paused(labelling, who)
    else:
        _next_card(labelling, who)
    with strip:
        plan.draw_estimate_strip(labelling)
        if labelling.status.conclusive and not labelling.complete:
            _conclusive(labelling)
    fold(
        _p("heading", "Annotators"),
        "label.people",
        ":material/group:",
        lambda: draw_people(labelling),
    )


def _conclusive(labelling: Labelling) -> None:
    """Draw the message after a conclusive result, with the next steps. It disappears once the user
    continues to label."""
    if st.session_state.get(_ON) == labelling.kept.id:
        return
    with st.container(border=True):
        st.markdown(
            _(
                "The result is conclusive. More labels cannot reverse it; they only narrow the "
                "interval."
            )
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
    """Return an id for this browser window. It changes when the page is reloaded."""
    context = get_script_run_ctx()
    return f"{_SERVER}.{context.session_id if context else ''}"


def _is_closed(owner: str) -> bool:
    server, _dot, session = owner.partition(".")
    local = server == _SERVER and runtime.exists()
    return local and not runtime.get_instance().is_active_session(session)


def _nothing_left(labelling: Labelling, who: str, is_open: bool) -> None:
    """Draw the message for an annotator without a next document. is_open: whether the last
    documents are open in other windows."""
    if is_open:
        st.info(
            _(
                "The remaining documents are open in other windows. They become available again "
                "after 10 minutes."
            ),
            icon=":material/hourglass_empty:",
        )
        st.button(_("Check again"), key="labelling.again", icon=":material/refresh:")
        return
    mine = sum(each.answers for each in labelling.status.raters if each.name == who)
    st.success(
        _("No documents left to label. You labelled {n}.", n=number(mine, 0)),
        icon=":material/done_all:",
    )
    view.link("overview", _p("page", "Overview"), ":material/arrow_forward:")


# Card of one document of a query. It does not reveal which systems ranked it, or at which rank.

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
    """Draw the query, and title and text of the document with query terms highlighted."""
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
        body = html_safe(_("(no title and no text; id: {id})", id=pair[1]))
    more = "…" if len(text) > _LONGEST_TEXT else ""
    st.html(
        f"{_STYLE}<div class='rd-label'><div class='rd-head'>"
        f"<small>{html_safe(_p('heading', 'Query'))}"
        f"{_place(labelling, pair)}</small><div class='rd-query'>{html_safe(query)}</div></div>"
        f"<small>{html_safe(_p('heading', 'Document'))}</small>{head}"
        f"<p tabindex='0'>{body}{more}</p></div>"
    )


def query_so_far(labelling: Labelling, query_id: str, who: str) -> None:
    """Draw the annotator's earlier labels for this query, newest first, to help label similar
    documents alike."""
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
    """Return the position of the document within its query, as text; "" unless whole queries are
    labelled."""
    if labelling.settings.mode != "query":
        return ""
    done, every = labelling.of_query(pair[0])
    place = _("document {n} of {all}", n=number(min(done + 1, every), 0), all=number(every, 0))
    return f" · {html_safe(place)}"


# Keys of a card: grades, "cannot tell", back, note and pause; each stores immediately.

UNREAD_SECONDS = 0.6
"""Minimum reading time: an earlier key was meant for the previous document."""

PAUSED, REPLACED = "labelling.paused", "labelling.replaced"
_AGAIN, _SHOWN, _NOTES = "labelling.shown_again", "labelling.shown", "labelling.notes"
# Session: why the last key stored nothing, until it is shown.
_REFUSED = "labelling.refused"
# Key of the container of invisible buttons.
_UNSEEN = "labelling-unseen"


def appears(pair: Pair) -> None:
    """Record when a card was first drawn, because keys are ignored for the first
    `UNREAD_SECONDS`."""
    if st.session_state.get(_SHOWN, ("", 0.0))[0] != pair:
        st.session_state[_SHOWN] = pair, time.monotonic()


def taken_back(labelling: Labelling, who: str) -> tuple[Pair, float | None] | None:
    """Return the document of a withdrawn label, which the annotator sees again, and this label.
    None if there is none in this plan."""
    withdrawn: dict[tuple[str, str], tuple[Pair, float | None]] = st.session_state.get(_AGAIN, {})
    return withdrawn.get((labelling.kept.id, who))


def draw_keys(labelling: Labelling, pair: Pair, who: str) -> None:
    # Callbacks must not draw: the message is drawn here.
    if refused := st.session_state.pop(_REFUSED, None):
        st.toast(refused, icon=":material/keyboard:")
    # The card is part of each key, so that a double press does not label the next document. The key
    # also contains the annotator, because notes are personal.
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
                "Withdraws your last label and shows its document again. Press again for the "
                "label before it."
            ),
        )
        st.button(
            _p("button", "Pause"),
            key=f"labelling.pause.{card}",
            icon=":material/pause:",
            shortcut="p",
            on_click=_pause,
            help=_("The pause does not count as labelling time."),
        )
    _digits_off_scale(labelling, card)
    _note(labelling.kept.dataset_id, pair, who, card)


def _digits_off_scale(labelling: Labelling, card: str) -> None:
    """Add hidden buttons for digits above the highest grade, so that a press of them is
    explained."""
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
        "Not saved: {digit} is not a grade. Use a grade from 0 to {top}.",
        digit=digit,
        top=plain(top),
    )


def paused(labelling: Labelling, who: str) -> None:
    """Draw a message and the button that ends the pause, in place of a card."""
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
    # A stored note changes the key, so that the field loses the focus and the shortcuts work again.
    key = f"labelling.note.{card}.{st.session_state.get(_NOTES, 0)}"
    st.text_input(
        _p("field", "Note"),
        value=LabelNotes(workspace()).of(dataset_id, pair, who),
        max_chars=LONGEST_LABEL_NOTE,
        key=key,
        on_change=_keep_note,
        args=(dataset_id, pair, who, key),
        placeholder=_("Note on this document (press Enter to save)"),
        label_visibility="collapsed",
    )


def _keep_note(dataset_id: str, pair: Pair, who: str, key: str) -> None:
    LabelNotes(workspace()).store(dataset_id, pair, who, st.session_state[key])
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
            "Not saved: the key was pressed too soon to read the document. Press it again."
        )
        return
    if not _in_force(labelling):
        return
    Corrections(workspace()).correct(labelling.kept.dataset_id, pair, label, who)
    st.session_state.pop(_AGAIN, None)


def _in_force(labelling: Labelling) -> bool:
    """Return True if the plan is still the current one: another window may have started a new plan
    or deleted the data set."""
    newest = LabelPlans(workspace()).newest(labelling.kept.dataset_id)
    same = newest is not None and newest.id == labelling.kept.id
    if not same:
        st.session_state[REPLACED] = True
    return same


def _back(labelling: Labelling, pair: Pair, who: str) -> None:
    """Withdraw the annotator's last answer for a pair; earlier answers by others apply again."""
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


# Annotators: number of labels, grades, and agreement.


def draw_people(labelling: Labelling) -> None:
    """Draw a table of annotators, and the agreement of each two with documents in common."""
    progress = labelling.status
    if not progress.raters:
        st.caption(_("No labels yet."))
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
            [_p("column", "Annotator"), _p("column", "Documents"), *grades, _("cannot tell")], rows
        )
    )
    if math.isfinite(progress.seconds):
        st.caption(_("Median time per document: {time}.", time=duration(progress.seconds)))
    for each in progress.agreements:
        one, other = each.raters
        kappa = each.quadratic
        st.markdown(
            _(
                "{one} and {other}: same grade for {share} of {n} documents, quadratic kappa "
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


# Annotator in this window.

_WHO = "analyst"
_NAME, _TYPED = "labelling.name", "labelling.who"


def rater_name() -> str:
    """Return the name of the logged-in user, or the name entered in this window, or ""."""
    name: str = language.person_name() or st.session_state.get(_NAME, "")
    return name


def ask_rater() -> None:
    """Draw a field for the name, and a button for the last name entered in this workspace."""
    field, same = st.columns([2, 1], vertical_alignment="bottom")
    with field:
        _field("")
    before = workspace().setting(_WHO)
    if before:
        # Never automatic: another person may use this window.
        same.button(
            _("Continue as {name}", name=name_safe(before)),
            key="labelling.same",
            on_click=_call,
            args=(before,),
        )


def change_rater() -> None:
    """Draw the name with a field to change it; nothing if the user is logged in."""
    if not language.person_name():
        # A permanent field would receive the keys that are meant for the document.
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
