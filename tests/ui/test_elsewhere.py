"""Data sets and runs that another window deleted are named, and replaced only by a choice."""

import pytest

from rankdash.ui.state import address
from tests.stored import keep_lists, keep_rows
from tests.ui.sessions import button, press, whole


@pytest.fixture
def window(workspace, stored):
    """Opens a page with a data set, each in a session of its own."""

    return lambda page: whole(page, lang="en", data=stored)


@pytest.fixture
def other_run(workspace, stored):
    return keep_lists(
        workspace, stored, [(f"q{q}", ["d3", "d2"], [2.0, 1.0]) for q in range(16)], "sound"
    )


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
