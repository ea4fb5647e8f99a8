"""Questions to the user, rejected answers, and the contents of an open dialog."""

from typing import get_args

import pytest
import streamlit as st
from streamlit.runtime.context import StreamlitTheme

from rankdash.core.base.errors import DataError
from rankdash.core.words.costs import Answer
from rankdash.features.cost import page_cards
from rankdash.kit.drawing.style import INKS
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets import dialogs, redraw


def test_what_was_refused_is_said_once_and_in_its_place(session, paper):
    def refuse():
        raise DataError("The note is *too* long.")

    drawn = paper(dialogs)
    drawn.session_state = session
    assert dialogs.attempt("notes", lambda: None)
    assert not dialogs.attempt("notes", refuse)
    dialogs.refused("runs")
    assert drawn.drawn == []
    dialogs.refused("notes")
    dialogs.refused("notes")
    assert drawn.of("error") == [r"The note is \*too\* long\."]


@pytest.mark.parametrize(("typed", "empty"), [("  ", True), ("", True), (" a ", False)])
def test_a_name_is_stripped_and_never_empty(paper, typed, empty):
    drawn, applied = paper(dialogs), []
    drawn.answers |= {"text_input": typed, "button": False}
    dialogs.rename("Rename", "old", applied.append)
    [confirm] = [each for kind, label, each in drawn.drawn if label == "Rename" and "type" in each]
    assert confirm["disabled"] is empty
    assert applied == []
    drawn.answers["button"] = True
    dialogs.rename("Rename", "old", applied.append)
    assert applied == [typed.strip()]


def test_nothing_is_deleted_before_it_is_confirmed(paper):
    drawn, done = paper(dialogs), []
    dialogs.delete("Delete?", ["It goes."], lambda: done.append(1))
    assert drawn.of("write") == ["It goes."] and done == []
    drawn.answers["button"] = True
    dialogs.delete("Delete?", [], lambda: done.append(1))
    assert done == [1] and drawn.of("rerun")


@pytest.mark.parametrize("opened", [True, False])
def test_a_folded_part_is_made_once_it_is_opened(paper, opened):
    drawn, made = paper(redraw), []
    drawn.open = opened
    redraw.fold("Title", "key", "icon", lambda: made.append(1))
    assert bool(made) is opened


@pytest.mark.parametrize(("theme", "ink"), [("dark", "dark"), ("light", "light"), (None, "light")])
def test_the_ink_of_charts_is_that_of_the_theme(monkeypatch, theme, ink):
    monkeypatch.setattr(type(st.context), "theme", StreamlitTheme({"type": theme}))
    assert widgets_charts.ink() is INKS[ink]


def test_an_answer_is_a_word_and_the_colour_of_what_is_proven(paper, approved):
    drawn = paper(widgets_charts)
    for kind in ("better", "small", "unproven", "worse", "identical", "too_few"):
        widgets_charts.verdict(kind)
    said = (f"{word} {style['icon']} {style['color']}" for _kind, word, style in drawn.drawn)
    answers = map(page_cards.badge, get_args(Answer))
    approved("ui/badges.en", "\n".join([*said, *answers]))
