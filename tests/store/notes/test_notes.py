import pytest

from rankdash.errors import DataError, StoreError
from rankdash.store.notes.corrections import Corrections, Layer
from rankdash.store.notes.notes import LONGEST_NOTE, LONGEST_TAG, Note, Notes, tags_in_use


@pytest.fixture
def stored(workspace, make_dataset):
    return workspace.save_dataset(make_dataset())


def in_force(corrections, dataset_id, revision=None):
    return {each.pair: each.label for each in corrections.all(dataset_id, revision)}


def test_a_note_is_kept_as_it_was_written_and_goes_when_emptied(workspace, stored):
    notes = Notes(workspace)
    hostile = "=1+1 <script>![x](http://evil.invalid)</script>\n\n第二行"
    notes.keep(stored, "二", [" wrong   label ", "<b>", "Wrong label", ""], hostile)
    kept = Notes(workspace).of(stored, "二")
    assert kept.tags == ("wrong label", "<b>")
    assert kept.text == hostile
    assert kept.changed
    assert notes.all(stored) == [kept]
    notes.keep(stored, "二", [], "  ")
    assert notes.all(stored) == []
    assert notes.of(stored, "二") == Note("二")


def test_a_note_is_signed_with_a_name_of_one_line(workspace, stored):
    notes = Notes(workspace)
    signed = notes.keep(stored, "7", [], "odd", " Ann\n" + "e" * 200)
    assert signed.who == "Ann " + "e" * 76
    assert notes.of(stored, "7") == signed
    assert notes.keep(stored, "7", [], "odd").who == ""


def test_tags_are_offered_once_in_alphabetical_order(workspace, stored):
    notes = Notes(workspace)
    notes.keep(stored, "7", ["Zeta", "Alpha"], "")
    notes.keep(stored, "007", ["alpha", "beta"], "")
    # As it was written first.
    assert tags_in_use(notes.all(stored)) == ["alpha", "beta", "Zeta"]


@pytest.mark.parametrize(
    ("tags", "text"),
    [
        ([f"t{n}" for n in range(21)], ""),
        (["x" * (LONGEST_TAG + 1)], ""),
        ([], "x" * (LONGEST_NOTE + 1)),
    ],
)
def test_too_much_is_refused_and_what_was_there_stays(workspace, stored, tags, text):
    notes = Notes(workspace)
    before = notes.keep(stored, "7", ["kept"], "kept")
    with pytest.raises(DataError, match="at most"):
        notes.keep(stored, "7", tags, text)
    assert notes.of(stored, "7") == before


def test_as_much_as_is_allowed_is_kept(workspace, stored):
    tags = [f"{n:<040}" for n in range(10, 30)]
    Notes(workspace).keep(stored, "7", tags, "x" * 4_000)
    kept = Notes(workspace).of(stored, "7")
    assert (len(kept.tags), {len(tag) for tag in kept.tags}, len(kept.text)) == (20, {40}, 4_000)


def test_a_name_is_cut_after_eighty_characters(workspace, stored):
    Corrections(workspace).correct(stored, ("7", "01"), 1.0, "x" * 81)
    assert Corrections(workspace).all(stored)[0].who == "x" * 80


def test_notes_and_corrections_go_with_their_data_set(workspace, make_dataset):
    dataset, other = make_dataset(), make_dataset(salt="other")
    for each in (dataset, other):
        workspace.save_dataset(each)
        Notes(workspace).keep(each.id, "7", ["tag"], "")
        Corrections(workspace).correct(each.id, ("7", "01"), 2.0, "")
    workspace.delete_dataset(dataset.id)
    workspace.save_dataset(dataset)
    assert Notes(workspace).all(dataset.id) == []
    assert Corrections(workspace).all(dataset.id) == []
    assert Corrections(workspace).layer(dataset.id).count == 0
    assert len(Notes(workspace).all(other.id)) == 1
    assert len(Corrections(workspace).all(other.id)) == 1


def test_a_data_set_that_is_gone_is_said_in_words(workspace):
    with pytest.raises(StoreError, match="no data set"):
        Notes(workspace).keep("gone", "7", ["tag"], "")
    with pytest.raises(StoreError, match="no data set"):
        Corrections(workspace).correct("gone", ("7", "01"), 1.0, "")


def test_what_was_said_last_is_in_force_until_withdrawn(workspace, stored):
    corrections = Corrections(workspace)
    assert corrections.layer(stored) == Layer(0, 0)
    corrections.correct(stored, ("7", "01"), 2.0, " Ada \n L. ")
    corrections.correct(stored, ("7", "01"), 0.0, "")
    corrections.correct(stored, ("007", "1"), None, "Ada")
    assert in_force(corrections, stored) == {("7", "01"): 0.0, ("007", "1"): None}
    assert corrections.layer(stored).count == 2
    assert [each.who for each in corrections.all(stored)] == ["Ada", ""]
    assert all(each.made for each in corrections.all(stored))
    corrections.withdraw(stored, [("7", "01")])
    assert in_force(corrections, stored) == {("007", "1"): None}
    assert corrections.layer(stored).count == 1
    corrections.withdraw(stored, [("007", "1")])
    assert in_force(corrections, stored) == {}
    assert corrections.layer(stored).count == 0


def test_every_revision_can_be_had_again_and_none_is_used_twice(workspace, stored, make_dataset):
    corrections, seen = Corrections(workspace), {}
    for label in (2.0, None, 1.0):
        corrections.correct(stored, ("7", "01"), label, "")
        seen[corrections.layer(stored).revision] = label
    assert len(seen) == 3
    for revision, label in seen.items():
        assert in_force(corrections, stored, revision) == {("7", "01"): label}
    workspace.delete_dataset(stored)
    workspace.save_dataset(make_dataset())
    corrections.correct(stored, ("7", "01"), 2.0, "")
    assert corrections.layer(stored).revision not in seen


def test_what_was_withdrawn_can_be_restored_with_its_names(workspace, stored):
    corrections = Corrections(workspace)
    corrections.correct(stored, ("7", "01"), 2.0, "Ada")
    corrections.correct(stored, ("007", "1"), None, "")
    before = corrections.all(stored)
    corrections.withdraw(stored, [each.pair for each in before])
    corrections.restore(stored, before)
    again = corrections.all(stored)
    assert {(each.pair, each.label, each.who) for each in again} == {
        (("7", "01"), 2.0, "Ada"),
        (("007", "1"), None, ""),
    }


def test_corrections_come_the_latest_first_and_a_revision_holds_its_own_entry(workspace, stored):
    corrections = Corrections(workspace)
    for doc in ("01", "02", "03"):
        corrections.correct(stored, ("7", doc), 1.0, "")
    assert [each.doc_id for each in corrections.all(stored)] == ["03", "02", "01"]
    last = corrections.layer(stored).revision
    assert [each.doc_id for each in corrections.all(stored, last - 1)] == ["02", "01"]
    corrections.withdraw(stored, [("7", "02")])
    assert [each.doc_id for each in corrections.all(stored)] == ["03", "01"]
    assert corrections.layer(stored) == Layer(2, last + 1)


def test_corrections_of_another_data_set_are_none_of_this_one(workspace, stored, make_dataset):
    other = workspace.save_dataset(make_dataset(salt="other"))
    corrections = Corrections(workspace)
    corrections.correct(stored, ("7", "01"), 2.0, "")
    mine = corrections.layer(stored)
    for doc in ("01", "1"):
        corrections.correct(other, ("7", doc), 1.0, "")
    assert corrections.layer(stored) == mine
    assert in_force(corrections, stored) == {("7", "01"): 2.0}


def test_notes_are_listed_by_query_and_each_is_of_its_data_set(workspace, stored, make_dataset):
    other = workspace.save_dataset(make_dataset(salt="other"))
    notes = Notes(workspace)
    for query in ("二", "7", "007"):
        notes.keep(stored, query, [], f"on {query}")
    notes.keep(other, "7", [], "elsewhere")
    assert [note.query_id for note in notes.all(stored)] == ["007", "7", "二"]
    assert (notes.of(stored, "7").text, notes.of(other, "7").text) == ("on 7", "elsewhere")
    notes.keep(stored, "7", [], "")
    assert [note.query_id for note in notes.all(stored)] == ["007", "二"]
    assert notes.of(other, "7").text == "elsewhere"
