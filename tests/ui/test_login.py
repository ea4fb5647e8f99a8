"""Who is logged in signs notes and corrections; nobody has to be."""

import sys

import pytest

from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.notes import Notes
from rankdash.ui.sidebar import login
from rankdash.ui.state import person
from tests.ui.sessions import press
from tests.ui.test_pages import open_page


@pytest.fixture
def as_user(monkeypatch):
    """With these claims of a provider, as Streamlit gives them; logging out and in is noted."""

    def become(**claims):
        asked = []
        user = {"is_logged_in": bool(claims), **claims}
        monkeypatch.setattr(person.st, "user", user)
        monkeypatch.setattr(login.st, "login", lambda: asked.append("in"))
        monkeypatch.setattr(login.st, "logout", lambda: asked.append("out"))
        monkeypatch.setitem(sys.modules, "authlib", sys)
        return asked

    return become


def test_without_a_provider_nobody_is_asked_to_log_in(app, stored):
    open_page(app, "overview")
    assert not {"Log in", "Log out"} & {button.label for button in app.sidebar.button}


def test_who_is_logged_in_signs_a_note_and_a_correction(app, stored, workspace, as_user):
    asked = as_user(name="Ann *Lee*", email="ann@example.org")
    app.query_params["q"], app.session_state["queries.notes"] = "q5", True
    open_page(app, "queries")
    next(box for box in app.text_area if box.label == "Note").set_value("odd").run()
    assert Notes(workspace).of(stored, "q5").who == "Ann *Lee*"
    assert any(r"by Ann \*Lee\*" in str(each.value) for each in app.caption)
    # The name is known, so it is not asked for.
    assert not [box for box in app.text_input if box.key == "labels.who"]
    next(box for box in app.selectbox if box.label == "Correct the label of").set_value("d1").run()
    next(box for box in app.button_group if box.label == "Label").set_value("unjudged").run()
    assert [each.who for each in Corrections(workspace).all(stored)] == ["Ann *Lee*"]
    press(app, "Log out")
    assert asked == ["out"]
    as_user(email="ann@example.org")
    assert person.name() == "ann@example.org", "without a name"


def test_logging_in_is_offered_and_says_what_is_missing(app, stored, as_user, monkeypatch):
    asked = as_user()
    open_page(app, "overview")
    press(app, "Log in")
    assert asked == ["in"]
    monkeypatch.setitem(sys.modules, "authlib", None)
    press(app, "Log in")
    (error,) = app.sidebar.error
    assert 'pip install "rankdash[login]"' in error.value.replace("\\", "")
    assert asked == ["in"]
