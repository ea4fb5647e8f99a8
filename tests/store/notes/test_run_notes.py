"""Notes on runs and the pinned baseline: kept, replaced, undone, and gone with what they are on."""

from dataclasses import replace

import pytest

from rankdash.errors import DataError, StoreError
from rankdash.store import Workspace
from rankdash.store.notes.notes import LONGEST_NOTE
from rankdash.store.notes.pins import Pins
from rankdash.store.notes.run_notes import RunNote, RunNotes

HOSTILE = "=1+1 <script>![x](http://evil.invalid)</script>\n\n第二行"


@pytest.fixture
def stored(workspace, make_dataset, make_run):
    """A data set with two runs."""
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    for run_id in ("one", "two"):
        workspace.save_run(make_run(dataset, run_id))
    return dataset


def test_a_note_is_kept_as_it_was_written_for_the_next_session_and_goes_when_emptied(
    workspace, stored
):
    notes = RunNotes(workspace)
    assert notes.of("one") == RunNote("one")
    kept = notes.keep("one", f"  {HOSTILE} ")
    assert (kept.text, bool(kept.changed)) == (HOSTILE, True)
    again = RunNotes(Workspace.open(workspace.root))
    assert again.of("one") == kept
    assert again.all(stored.id) == {"one": kept}
    changed = notes.keep("one", "other words")
    assert again.all(stored.id) == {"one": changed}
    assert notes.keep("one", "  ") == RunNote("one")
    assert again.all(stored.id) == {}


def test_too_long_a_note_is_refused_and_what_was_there_stays(workspace, stored):
    notes = RunNotes(workspace)
    before = notes.keep("one", "kept")
    with pytest.raises(DataError, match="at most 4000 characters"):
        notes.keep("one", "x" * (LONGEST_NOTE + 1))
    assert notes.of("one") == before


def test_one_run_a_data_set_is_pinned_and_the_pin_survives_a_restart(
    workspace, stored, make_dataset, make_run
):
    other = make_dataset(salt="other")
    workspace.save_dataset(other)
    workspace.save_run(make_run(other, "three"))
    pins = Pins(workspace)
    assert pins.of(stored.id) is None
    for run_id in ("one", "three", "two"):
        pins.pin(run_id)
    again = Pins(Workspace.open(workspace.root))
    assert (again.of(stored.id), again.of(other.id)) == ("two", "three")
    pins.unpin(stored.id)
    pins.unpin(stored.id)
    assert (again.of(stored.id), again.of(other.id)) == (None, "three")


def test_a_deleted_run_takes_its_note_and_its_pin_and_no_other(workspace, stored):
    notes, pins = RunNotes(workspace), Pins(workspace)
    notes.keep("one", "first")
    kept = notes.keep("two", "second")
    pins.pin("one")
    workspace.delete_run("two")
    assert pins.of(stored.id) == "one"
    assert set(notes.all(stored.id)) == {"one"}
    workspace.delete_run("one")
    assert pins.of(stored.id) is None
    assert notes.all(stored.id) == {}
    assert notes.of(kept.run_id) == RunNote("two")


def test_a_run_that_is_stored_again_keeps_its_note_and_its_pin(workspace, stored, make_run):
    kept = RunNotes(workspace).keep("one", "why it was made")
    Pins(workspace).pin("one")
    workspace.save_run(replace(make_run(stored, "one"), name="measured anew"))
    assert RunNotes(workspace).of("one") == kept
    assert Pins(workspace).of(stored.id) == "one"


def test_notes_and_pin_go_with_their_data_set(workspace, stored, make_run):
    RunNotes(workspace).keep("one", "first")
    Pins(workspace).pin("one")
    workspace.delete_dataset(stored.id)
    workspace.save_dataset(stored)
    workspace.save_run(make_run(stored, "one"))
    assert RunNotes(workspace).all(stored.id) == {}
    assert Pins(workspace).of(stored.id) is None


def test_a_run_that_is_gone_is_said_in_words(workspace, stored):
    workspace.delete_run("one")
    for act in (Pins(workspace).pin, lambda run: RunNotes(workspace).keep(run, "words")):
        with pytest.raises(StoreError, match=r"no run 'one'.*another window"):
            act("one")
    assert Pins(workspace).of(stored.id) is None


def test_notes_are_of_the_runs_of_one_data_set_and_signed(
    workspace, stored, make_dataset, make_run
):
    other = make_dataset(salt="other")
    workspace.save_dataset(other)
    workspace.save_run(make_run(other, "three"))
    notes = RunNotes(workspace)
    kept = {run: notes.keep(run, "x" * LONGEST_NOTE, " Ann\n L. ") for run in ("one", "three")}
    assert notes.all(stored.id) == {"one": kept["one"]}
    assert notes.all(other.id) == {"three": kept["three"]}
    assert (kept["one"].who, notes.of("one").who) == ("Ann L.", "Ann L.")
