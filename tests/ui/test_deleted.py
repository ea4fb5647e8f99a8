"""What another window deleted is told by name, and nothing takes its place in silence."""

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from rankdash.ui.widgets import dialogs
from tests.sets import ROOT
from tests.stored import keep_lists, keep_rows

ROWS = "query,document,label,score\n" + "".join(
    f"query {q},text {q} {d},{int(d == q)},{3 - d}\n" for q in range(6) for d in range(3)
)


@pytest.fixture
def other(workspace, stored):
    """A second data set."""
    return keep_rows(workspace, ROWS, "Autumn")


@pytest.fixture
def window(workspace, quick_starts):
    """Opens a page with a data set, each in a session of its own."""

    def opened(page: str, data: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "rankdash" / "ui" / "main.py"), default_timeout=300)
        app.query_params.update({"lang": "en", "data": data})
        app.run()
        if page != "overview":
            app.switch_page(str(ROOT / "pages" / f"{page}.py")).run()
        assert not app.exception
        return app

    return opened


def button(app, label):
    return next(each for each in app.button if each.label == label)


def said(app) -> list[str]:
    return [each.value for each in app.warning if "another window" in each.value]


@pytest.fixture
def sure(monkeypatch):
    """Whoever deletes is not asked again."""

    def at_once(title, sentences, apply):
        apply()
        st.rerun()

    monkeypatch.setattr(dialogs, "delete", at_once)


def test_a_data_set_deleted_elsewhere_is_named_and_others_are_offered(
    window, workspace, stored, other, sure
):
    here, elsewhere = window("data", stored), window("data", stored)
    button(elsewhere, "Delete").click().run()
    assert [row.id for row in workspace.datasets()] == [other]
    assert not said(elsewhere)

    # The click was meant for the set that is gone; it deletes no other.
    button(here, "Delete").click().run()
    assert said(here) == ["Shop was deleted in another window."]
    assert here.selectbox(key="deleted.other").options == ["Autumn"]
    assert "address.data" not in {box.key for box in here.selectbox}
    assert not here.title and not here.subheader
    here.run()
    assert said(here) == ["Shop was deleted in another window."]

    here.button(key="deleted.open").click().run()
    assert not said(here)
    assert here.selectbox(key="address.data").value == other
    assert [row.id for row in workspace.datasets()] == [other]


def test_the_last_data_set_deleted_elsewhere_leaves_the_empty_page(window, workspace, stored):
    here = window("data", stored)
    workspace.delete_dataset(stored)
    here.run()
    assert said(here) == ["Shop was deleted in another window."]
    assert [each.value for each in here.title] == ["Data"]
    here.run()
    assert not said(here)


def test_a_run_deleted_elsewhere_is_named_with_what_is_compared_now(window, workspace, stored):
    best = [(f"q{q}", [f"d{q % 4}"], [1.0]) for q in range(16)]
    keep_lists(workspace, stored, best, "second")
    here = window("overview", stored)
    first, second = workspace.runs(stored)
    here.selectbox(key="address.base").set_value(second.id).run()
    workspace.delete_run(second.id)
    here.run()
    baseline = here.selectbox(key="address.base").options[0]
    now = f"Baseline now: {baseline}. Systems to compare: better."
    assert said(here) == [f"second was deleted in another window. {now}"]
    here.run()
    assert len(said(here)) == 1, "it stays until it is dismissed"
    here.button(key="deleted.dismiss").click().run()
    assert not said(here)

    workspace.delete_run(first.id)
    here.run()
    [text] = said(here)
    assert text.startswith("better was deleted") and text.endswith("Systems to compare: none.")
