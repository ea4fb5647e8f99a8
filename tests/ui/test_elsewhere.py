"""What changed behind the back of a session: a file is damaged, another window deleted or renamed
something, or the database is gone. It is told by name, and nothing takes its place in silence."""

import pytest
import streamlit as st

from rankdash.store.notes.notes import Notes
from rankdash.ui.state import address, server
from rankdash.ui.widgets.text import markdown_safe
from tests.stored import keep_lists, keep_rows
from tests.ui.sessions import button, press, whole
from tests.ui.test_sharing import go, said


@pytest.fixture
def window(workspace, stored):
    """Opens a page with a data set, each in a session of its own."""

    return lambda page: whole(page, lang="en", data=stored)


@pytest.fixture
def other_run(workspace, stored):
    return keep_lists(
        workspace, stored, [(f"q{q}", ["d3", "d2"], [2.0, 1.0]) for q in range(16)], "sound"
    )


# A file was damaged.


def spoil(workspace, kind, name):
    """Change a byte of a file of the first data set or run; returns the file."""
    row = (workspace.datasets if kind == "datasets" else workspace.runs)()[0]
    (folder,) = (workspace.root / kind).glob(f"{row.id}-*")
    file = folder / name
    content = file.read_bytes()
    file.write_bytes(content[:9] + bytes([content[9] ^ 1]) + content[10:])
    server.workspace.cache_clear()
    return file


def test_a_run_with_a_changed_file_is_named_and_no_number_holds_it(app, workspace, other_run, sure):
    file = spoil(workspace, "runs", "ranking.parquet")
    app.run()
    (told,) = [str(each.value) for each in app.error]
    assert told.startswith("Set apart, and in no number here:\n- better: ")
    assert file.name in told.replace("\\", "")
    assert app.multiselect(key="address.system").options == ["sound"]
    app.button(key="damaged.delete").click().run()
    assert not app.error and not app.warning
    assert [row.name for row in workspace.runs()] == ["sound"]


# Overview is drawn with the comparison beside it, the others without.
@pytest.mark.parametrize("page", ["overview", "data", "run", "label"])
def test_a_data_set_with_a_changed_file_is_named_in_place_of_its_numbers(
    app, workspace, stored, page
):
    file = spoil(workspace, "datasets", "documents.parquet")
    go(app, page)
    assert not app.exception
    (told,) = [str(each.value) for each in app.error]
    assert file.name in told.replace("\\", "")
    # What there is to do about it is on Data: add it again, or delete it.
    assert ("Delete" in [each.label for each in app.button]) == (page == "data")


# Another window deleted it.

ROWS = "query,document,label,score\n" + "".join(
    f"query {q},text {q} {d},{int(d == q)},{3 - d}\n" for q in range(6) for d in range(3)
)


def gone(app):
    return [each.value for each in app.warning if "another window" in each.value]


def test_a_data_set_deleted_elsewhere_is_named_and_others_are_offered(
    window, workspace, stored, sure
):
    other = keep_rows(workspace, ROWS, "Autumn")
    here, elsewhere = window("data"), window("data")
    chosen = {name: ["old"] for name in address.OF_A_DATA_SET}
    here.session_state["address.choices"] |= chosen | {"metric": ["map"]}
    press(elsewhere, "Delete")
    assert [row.id for row in workspace.datasets()] == [other] and not gone(elsewhere)
    # The click was meant for the set that is gone; it deletes no other.
    button(here, "Delete").click().run()
    assert gone(here) == ["Shop was deleted in another window."]
    assert here.selectbox(key="deleted.other").options == ["Autumn"]
    assert "address.data" not in {box.key for box in here.selectbox}
    assert not here.title and not here.subheader
    assert gone(here.run()) == ["Shop was deleted in another window."]
    here.button(key="deleted.open").click().run()
    assert not gone(here) and here.selectbox(key="address.data").value == other
    choices = here.session_state["address.choices"]
    assert ["old"] not in choices.values() and choices["metric"] == ["map"]
    assert [row.id for row in workspace.datasets()] == [other]
    # The last one leaves the empty page.
    workspace.delete_dataset(other)
    here.run()
    assert gone(here) == ["Autumn was deleted in another window."]
    assert [each.value for each in here.title] == ["Data"]
    assert not gone(here.run())


def test_runs_deleted_elsewhere_are_named_until_that_is_dismissed(window, workspace, other_run):
    keep_lists(workspace, other_run.dataset_id, [("q1", ["d1", "d3"], [2.0, 1.0])], "*3*")
    here = window("overview")
    here.selectbox(key="address.base").set_value(other_run.id).run()
    workspace.delete_run(other_run.id)
    now = r"Baseline now: First stage. Systems to compare: better, \*3\*."
    for _ in range(2):
        assert gone(here.run()) == [f"sound was deleted in another window. {now}"]
    here.button(key="deleted.dismiss").click().run()
    assert not gone(here)
    for row in workspace.runs():
        workspace.delete_run(row.id)
    [told] = gone(here.run())
    assert told.startswith(r"better, \*3\* were deleted")
    assert told.endswith("Systems to compare: none.")


# It has another name.


@pytest.mark.parametrize("page", ["overview", "history", "data", "run"])
def test_a_new_name_stands_wherever_the_thing_is_named_in_the_other_windows_too(
    window, workspace, stored, page
):
    open_before = window(page)
    workspace.rename_dataset(stored, "Boutique")
    workspace.rename_run(workspace.runs(stored)[0].id, "sharper")
    for app in (open_before.run(), window(page)):
        assert not app.exception
        inputs = [str(each.value) for each in app.text_input]
        shown = said(app) + str([each.options for each in app.selectbox]) + str(inputs)
        assert "Boutique" in shown and "Shop" not in shown
        if page == "overview":
            assert "sharper" in said(app) and "better →" not in said(app)


# The database is gone.

FOUND = "- Found: 1 data set, 1 run, 0 notes, 0 label corrections."


@pytest.fixture
def missing(workspace, stored, hand):
    """Where the database was."""
    Notes(workspace).keep(stored, "q1", ["odd"], "look *here*")
    for copy in (workspace.root / "backups").glob("*"):
        copy.unlink()
    file = workspace.database.file
    file.rename(file.with_name("elsewhere"))
    server.workspace.cache_clear()
    st.cache_resource.clear()
    return file


@pytest.mark.parametrize("page", ["overview", "data"])
def test_a_page_says_what_is_wrong_and_shows_what_there_is(app, missing, page):
    go(app, page)
    assert not app.exception
    (told,) = [str(each.value) for each in app.error]
    wrong = markdown_safe(
        f"The database of the workspace {missing.parent} is missing. Nothing in it is deleted, and "
        "it is open for reading only. To repair it, close other programs that use it and run: "
        "rankdash workspace repair",
        600,
    )
    assert told.splitlines() == [wrong, "", FOUND]
    assert [each.label for each in app.button].count("Repair workspace") == 1


def test_the_button_repairs_and_says_what_came_back(app, missing, stored):
    app.run()
    app.button(key="repair").click().run()
    assert not app.error
    (told,) = [each.value.splitlines() for each in app.success]
    assert told[:3] == ["The workspace is repaired.", "", FOUND]
    assert not server.read_only()
    assert [row.id for row in server.workspace().datasets()] == [stored]
    assert not app.run().success


def test_what_is_only_shown_offers_no_repair(app, missing, only_shown):
    only_shown()
    app.run()
    assert [str(each.value).splitlines()[2] for each in app.error] == [FOUND]
    assert "Repair workspace" not in [each.label for each in app.button]
