"""A run or a data set whose file changed is named on every page, and the others go on."""

import pytest
import streamlit as st

from rankdash.ui.state import server
from rankdash.ui.widgets import dialogs
from tests.stored import keep_lists
from tests.ui.test_sharing import EVERY, go


def spoil(workspace, kind, name):
    """Change a byte of a file of the first data set or run; returns the file."""
    row = (workspace.datasets if kind == "datasets" else workspace.runs)()[0]
    (folder,) = (workspace.root / kind).glob(f"{row.id}-*")
    file = folder / name
    content = file.read_bytes()
    file.write_bytes(content[:9] + bytes([content[9] ^ 1]) + content[10:])
    server.workspace.cache_clear()
    return file


@pytest.fixture
def other_run(workspace, stored):
    return keep_lists(
        workspace, stored, [(f"q{q}", ["d3", "d2"], [2.0, 1.0]) for q in range(16)], "sound"
    )


@pytest.mark.parametrize("page", EVERY)
def test_a_run_with_a_changed_file_is_named_and_no_number_holds_it(
    app, workspace, stored, other_run, page
):
    file = spoil(workspace, "runs", "ranking.parquet")
    go(app, page)
    assert not app.exception
    (said,) = [str(each.value) for each in app.error]
    assert said.startswith("Set apart, and in no number here:\n- better: ")
    assert file.name in said.replace("\\", "")
    compared = [each for each in app.multiselect if each.key == "address.system"]
    assert all(each.options == ["sound"] for each in compared)


def test_it_can_be_deleted(app, workspace, stored, other_run, monkeypatch):
    monkeypatch.setattr(dialogs, "delete", lambda title, sentences, apply: (apply(), st.rerun()))
    spoil(workspace, "runs", "ranking.parquet")
    app.run()
    app.button(key="damaged.delete").click().run()
    assert not app.error
    assert not app.warning
    assert [row.name for row in workspace.runs()] == ["sound"]


@pytest.mark.parametrize("page", EVERY)
def test_a_data_set_with_a_changed_file_is_named_in_place_of_its_numbers(
    app, workspace, stored, page
):
    file = spoil(workspace, "datasets", "documents.parquet")
    go(app, page)
    assert not app.exception
    (said,) = [str(each.value) for each in app.error]
    assert file.name in said.replace("\\", "")
    # What there is to do about it is on Data: add it again, or delete it.
    assert ("Delete" in [each.label for each in app.button]) == (page == "data")
