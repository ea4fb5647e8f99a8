"""Notes on queries, runs and labels, pins and corrected labels: kept, replaced, undone, and deleted
with what they are on."""

from dataclasses import replace

import pytest

from rankdash.errors import DataError, StoreError
from rankdash.store import Workspace
from rankdash.store.notes.corrections import Correction, Corrections, Layer
from rankdash.store.notes.label_notes import LONGEST_LABEL_NOTE, LabelNotes
from rankdash.store.notes.label_plans import LabelPlans
from rankdash.store.notes.notes import LONGEST_NOTE, LONGEST_TAG, Note, Notes, tags_in_use
from rankdash.store.notes.pins import Pins
from rankdash.store.notes.run_notes import RunNote, RunNotes

HOSTILE = "=1+1 <script>![x](http://evil.invalid)</script>\n\n第二行"
PAIR, OTHER = ("7", "01"), ("007", "1")
# Kind → what keeps one about a data set that has the run "one", and what is kept about it.
KINDS = {
    "note": (lambda w, d: Notes(w).keep(d, "7", ["tag"], ""), lambda w, d: Notes(w).all(d)),
    "correction": (
        lambda w, d: Corrections(w).correct(d, PAIR, 2.0, ""), lambda w, d: Corrections(w).all(d),
    ),
    "run note": (
        lambda w, d: RunNotes(w).keep(w.runs(d)[0].id, "why"), lambda w, d: RunNotes(w).all(d),
    ),
    "pin": (lambda w, d: Pins(w).pin(w.runs(d)[0].id), lambda w, d: Pins(w).of(d)),
    "label note": (
        lambda w, d: LabelNotes(w).keep(d, PAIR, "Ann", "a"), lambda w, d: LabelNotes(w).all(d),
    ),
    "plan": (lambda w, d: LabelPlans(w).begin(d, {}, ""), lambda w, d: LabelPlans(w).newest(d)),
}  # fmt: skip


@pytest.fixture
def stored(workspace, make_dataset, make_run):
    """The id of a data set with two runs."""
    dataset = make_dataset()
    for run_id in ("one", "two"):
        workspace.save_dataset(dataset)
        workspace.save_run(make_run(dataset, run_id))
    return dataset.id


@pytest.fixture
def other(workspace, make_dataset, make_run):
    """The id of another one with a run."""
    dataset = make_dataset(salt="other")
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset, "three"))
    return dataset.id


@pytest.fixture
def notes(workspace):
    return Notes(workspace)


@pytest.fixture
def run_notes(workspace):
    return RunNotes(workspace)


@pytest.fixture
def corrections(workspace):
    return Corrections(workspace)


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_of_its_data_set_survives_a_restart_and_goes_with_it(
    workspace, stored, other, make_dataset, make_run, kind
):
    keep, kept = KINDS[kind]
    for each in (stored, other):
        assert not kept(workspace, each)
        keep(workspace, each)
    again = Workspace.open(workspace.root)
    assert kept(again, stored) == kept(workspace, stored)
    assert kept(again, stored) and kept(again, other)
    before = kept(workspace, other)
    workspace.delete_dataset(stored)
    workspace.save_dataset(make_dataset())
    workspace.save_run(make_run(make_dataset(), "one"))
    assert not kept(workspace, stored)
    assert kept(workspace, other) == before


@pytest.mark.parametrize(
    "keep",
    [
        lambda w: Notes(w).keep("gone", "7", ["tag"], ""),
        lambda w: Corrections(w).correct("gone", PAIR, 1.0, ""),
        lambda w: LabelNotes(w).keep("gone", PAIR, "Ann", "a"),
        lambda w: LabelPlans(w).begin("gone", {}, ""),
        lambda w: RunNotes(w).keep("gone", "words"),
        lambda w: Pins(w).pin("gone"),
    ],
)
def test_what_is_gone_is_said_in_words(workspace, stored, keep):
    with pytest.raises(StoreError, match=r"no (data set|run) 'gone'.*another window"):
        keep(workspace)
    assert Pins(workspace).of(stored) is None


# On queries.


def test_a_note_is_kept_as_it_was_written_and_goes_when_emptied(notes, stored):
    notes.keep(stored, "二", [" wrong   label ", "<b>", "Wrong label", ""], HOSTILE)
    kept = notes.of(stored, "二")
    assert (kept.tags, kept.text, bool(kept.changed)) == (("wrong label", "<b>"), HOSTILE, True)
    assert notes.all(stored) == [kept]
    notes.keep(stored, "二", [], "  ")
    assert notes.all(stored) == []
    assert notes.of(stored, "二") == Note("二")


def test_notes_are_listed_by_query(notes, stored):
    for query in ("二", "7", "007"):
        notes.keep(stored, query, [], f"on {query}")
    notes.keep(stored, "7", [], "")
    assert [note.query_id for note in notes.all(stored)] == ["007", "二"]


def test_tags_are_offered_once_in_alphabetical_order(notes, stored):
    notes.keep(stored, "7", ["Zeta", "Alpha"], "")
    notes.keep(stored, "007", ["alpha", "beta"], "")
    # As it was written first.
    assert tags_in_use(notes.all(stored)) == ["alpha", "beta", "Zeta"]


def test_a_name_is_one_line_of_eighty_characters(notes, run_notes, corrections, stored):
    signed = notes.keep(stored, "7", [], "odd", " Ann\n" + "e" * 200)
    assert signed.who == "Ann " + "e" * 76
    assert notes.of(stored, "7") == signed
    assert notes.keep(stored, "7", [], "odd").who == ""
    assert run_notes.keep("one", "x", " Ann\n L. ").who == run_notes.of("one").who == "Ann L."
    corrections.correct(stored, PAIR, 1.0, "x" * 81)
    assert corrections.all(stored)[0].who == "x" * 80


@pytest.mark.parametrize(
    ("tags", "text"),
    [
        ([f"t{n}" for n in range(21)], ""),
        (["x" * (LONGEST_TAG + 1)], ""),
        ([], "x" * (LONGEST_NOTE + 1)),
    ],
)
def test_too_much_is_refused_and_what_was_there_stays(notes, run_notes, stored, tags, text):
    before = notes.keep(stored, "7", ["kept"], "kept")
    with pytest.raises(DataError, match="at most"):
        notes.keep(stored, "7", tags, text)
    assert notes.of(stored, "7") == before
    if text:
        before = run_notes.keep("one", "kept")
        with pytest.raises(DataError, match="at most 4000 characters"):
            run_notes.keep("one", text)
        assert run_notes.of("one") == before


def test_as_much_as_is_allowed_is_kept(notes, run_notes, stored):
    tags = [f"{n:<040}" for n in range(10, 30)]
    kept = notes.keep(stored, "7", tags, "x" * 4_000)
    assert notes.of(stored, "7") == kept and (len(kept.tags), len(kept.text)) == (20, 4_000)
    assert run_notes.keep("one", "x" * LONGEST_NOTE).text == "x" * LONGEST_NOTE


# On runs.


def test_a_note_on_a_run_is_kept_as_it_was_written_and_goes_when_emptied(run_notes, stored, other):
    assert run_notes.of("one") == RunNote("one")
    kept = run_notes.keep("one", f"  {HOSTILE} ")
    assert (kept.text, bool(kept.changed)) == (HOSTILE, True)
    assert run_notes.all(stored) == {"one": kept}
    elsewhere = run_notes.keep("three", "of another data set")
    changed = run_notes.keep("one", "other words")
    assert run_notes.all(stored) == {"one": changed}
    assert run_notes.keep("one", "  ") == RunNote("one")
    assert (run_notes.all(stored), run_notes.all(other)) == ({}, {"three": elsewhere})


def test_one_run_a_data_set_is_pinned_until_it_is_unpinned(workspace, stored, other):
    pins = Pins(workspace)
    for run_id in ("one", "three", "two"):
        pins.pin(run_id)
    assert (pins.of(stored), pins.of(other)) == ("two", "three")
    for _again in range(2):
        pins.unpin(stored)
    assert (pins.of(stored), pins.of(other)) == (None, "three")


def test_a_deleted_run_takes_its_note_and_its_pin_and_no_other(workspace, run_notes, stored):
    pins = Pins(workspace)
    for run_id in ("one", "two"):
        run_notes.keep(run_id, "words")
    pins.pin("one")
    workspace.delete_run("two")
    assert (pins.of(stored), set(run_notes.all(stored))) == ("one", {"one"})
    workspace.delete_run("one")
    assert (pins.of(stored), run_notes.all(stored)) == (None, {})
    assert run_notes.of("two") == RunNote("two")


def test_a_run_that_is_stored_again_keeps_its_note_and_its_pin(
    workspace, run_notes, stored, make_dataset, make_run
):
    kept = run_notes.keep("one", "why it was made")
    Pins(workspace).pin("one")
    workspace.save_run(replace(make_run(make_dataset(), "one"), name="measured anew"))
    assert run_notes.of("one") == kept
    assert Pins(workspace).of(stored) == "one"


# On labels.


def test_each_person_has_a_note_on_a_label_and_the_last_one_is_kept(workspace, stored):
    remarks = LabelNotes(workspace)
    assert remarks.of(stored, PAIR, "Ann") == ""
    remarks.keep(stored, PAIR, "Bo", "b")
    remarks.keep(stored, PAIR, " Ann ", "first")
    remarks.keep(stored, PAIR, "Ann", "two\n lines")
    remarks.keep(stored, OTHER, "", "x" * (LONGEST_LABEL_NOTE + 1))
    assert remarks.of(stored, PAIR, "Ann") == "two lines"
    assert remarks.all(stored) == {
        PAIR: {"Ann": "two lines", "Bo": "b"},
        OTHER: {"": "x" * LONGEST_LABEL_NOTE},
    }
    remarks.keep(stored, PAIR, "Bo", "  ")
    assert list(remarks.all(stored)[PAIR]) == ["Ann"]


def in_force(corrections, dataset_id, revision=None):
    return {each.pair: each.label for each in corrections.all(dataset_id, revision)}


def test_what_was_said_last_is_in_force_until_withdrawn(corrections, stored):
    assert corrections.layer(stored) == Layer(0, 0)
    corrections.correct(stored, PAIR, 2.0, " Ada \n L. ")
    corrections.correct(stored, PAIR, 0.0, "")
    corrections.correct(stored, OTHER, None, "Ada")
    assert in_force(corrections, stored) == {PAIR: 0.0, OTHER: None}
    assert corrections.layer(stored).count == 2
    assert [each.who for each in corrections.all(stored)] == ["Ada", ""]
    assert all(each.made for each in corrections.all(stored))
    before = corrections.all(stored)
    corrections.withdraw(stored, [PAIR])
    assert in_force(corrections, stored) == {OTHER: None}
    corrections.withdraw(stored, [OTHER])
    assert (in_force(corrections, stored), corrections.layer(stored).count) == ({}, 0)
    # What was withdrawn can be restored with its names.
    corrections.restore(stored, before)
    again = {(each.pair, each.label, each.who) for each in corrections.all(stored)}
    assert again == {(PAIR, 0.0, ""), (OTHER, None, "Ada")}


def test_every_revision_can_be_had_again_and_none_is_used_twice(
    workspace, corrections, stored, make_dataset
):
    seen = {}
    for label in (2.0, None, 1.0):
        corrections.correct(stored, PAIR, label, "")
        seen[corrections.layer(stored).revision] = label
    assert len(seen) == 3
    for revision, label in seen.items():
        assert in_force(corrections, stored, revision) == {PAIR: label}
    workspace.delete_dataset(stored)
    workspace.save_dataset(make_dataset())
    corrections.correct(stored, PAIR, 2.0, "")
    assert corrections.layer(stored).revision not in seen


def test_corrections_come_the_latest_first_and_a_revision_holds_its_own_entry(corrections, stored):
    for doc in ("01", "02", "03"):
        corrections.correct(stored, ("7", doc), 1.0, "")
    assert [each.doc_id for each in corrections.all(stored)] == ["03", "02", "01"]
    last = corrections.layer(stored).revision
    assert [each.doc_id for each in corrections.all(stored, last - 1)] == ["02", "01"]
    corrections.withdraw(stored, [("7", "02")])
    assert [each.doc_id for each in corrections.all(stored)] == ["03", "01"]
    assert corrections.layer(stored) == Layer(2, last + 1)


def test_the_log_has_every_entry_in_order_and_from_any_revision(corrections, stored):
    corrections.correct(stored, PAIR, 0.0, "Ann")
    before = corrections.layer(stored).revision
    corrections.correct(stored, PAIR, None, "Bo")
    corrections.withdraw(stored, [PAIR])
    found = corrections.log(stored)
    assert [(each.label, each.who, each.withdrawn) for each in found] == [
        (0.0, "Ann", False), (None, "Bo", False), (None, "", True)
    ]  # fmt: skip
    assert all(isinstance(each, Correction) for each in found)
    assert corrections.log(stored, before) == found[1:]
    assert corrections.log(stored, 0, before) == found[:1]
    assert corrections.revision(stored) == corrections.layer(stored).revision > before
    assert (corrections.revision("another"), corrections.log("another")) == (0, [])
