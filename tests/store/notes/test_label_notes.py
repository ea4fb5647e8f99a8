import pytest

from rankdash.errors import StoreError
from rankdash.store import Workspace
from rankdash.store.notes.label_notes import LONGEST_LABEL_NOTE, LabelNotes
from tests.stored import keep_rows

ROWS = "query_id,query,doc_id,document,label\nq1,one,d1,a,1\nq1,one,d2,b,0\n"
PAIRS = [("q1", "d1"), ("q1", "d2")]


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


@pytest.fixture
def dataset_id(workspace):
    return keep_rows(workspace, ROWS, "Shop")


def test_each_person_has_a_note_of_their_own_and_the_last_one_is_kept(workspace, dataset_id):
    notes = LabelNotes(workspace)
    assert notes.of(dataset_id, PAIRS[0], "Ann") == ""
    notes.keep(dataset_id, PAIRS[0], "Bo", "b")
    notes.keep(dataset_id, PAIRS[0], " Ann ", "first")
    notes.keep(dataset_id, PAIRS[0], "Ann", "two\n lines")
    notes.keep(dataset_id, PAIRS[1], "", "x" * (LONGEST_LABEL_NOTE + 1))
    assert notes.of(dataset_id, PAIRS[0], "Ann") == "two lines"
    assert LabelNotes(Workspace(workspace.root)).all(dataset_id) == {
        PAIRS[0]: {"Ann": "two lines", "Bo": "b"},
        PAIRS[1]: {"": "x" * LONGEST_LABEL_NOTE},
    }
    notes.keep(dataset_id, PAIRS[0], "Bo", "  ")
    assert list(notes.all(dataset_id)[PAIRS[0]]) == ["Ann"]


def test_notes_go_with_their_data_set(workspace, dataset_id):
    notes = LabelNotes(workspace)
    notes.keep(dataset_id, PAIRS[0], "Ann", "a")
    workspace.delete_dataset(dataset_id)
    assert notes.all(dataset_id) == {}
    with pytest.raises(StoreError, match="no data set"):
        notes.keep(dataset_id, PAIRS[0], "Ann", "a")
