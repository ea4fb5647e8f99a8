import pytest

from rankdash.errors import DataError, StoreError
from rankdash.store import Workspace
from rankdash.store.notes import label_plans
from rankdash.store.notes.corrections import Correction, Corrections
from rankdash.store.notes.label_plans import LONGEST_GUIDELINES, LabelPlans
from tests.stored import keep_rows

ROWS = "query_id,query,doc_id,document,label\nq1,one,d1,a,1\nq1,one,d2,b,0\n"
PAIRS = [("q1", "d1"), ("q1", "d2")]


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


@pytest.fixture
def dataset_id(workspace):
    return keep_rows(workspace, ROWS, "Shop")


def test_the_plan_that_was_begun_last_comes_back_as_it_was_given(workspace, dataset_id):
    plans = LabelPlans(workspace)
    assert plans.newest(dataset_id) is None
    plans.begin(dataset_id, {"seed": 1}, "")
    Corrections(workspace).correct(dataset_id, PAIRS[0], 0.0, "Ann")
    last = plans.begin(dataset_id, {"systems": ["a", "b"], "top": 2.0}, "  *Read* first.  ")
    found = plans.newest(dataset_id)
    assert found.id == last
    assert found.settings == {"systems": ["a", "b"], "top": 2.0}
    assert found.guidelines == "*Read* first."
    assert found.revision == Corrections(workspace).layer(dataset_id).revision
    assert LabelPlans(Workspace(workspace.root)).newest(dataset_id) == found


def test_what_cannot_be_begun_is_refused(workspace, dataset_id):
    plans = LabelPlans(workspace)
    plans.begin(dataset_id, {}, "x" * LONGEST_GUIDELINES)
    with pytest.raises(DataError, match=r"have 10001 characters"):
        plans.begin(dataset_id, {}, "x" * (LONGEST_GUIDELINES + 1))
    with pytest.raises(StoreError, match=r"no data set 'nowhere'"):
        plans.begin("nowhere", {}, "")


def test_two_windows_never_look_at_one_pair(workspace, dataset_id):
    plans = LabelPlans(workspace)
    plan = plans.begin(dataset_id, {}, "")
    assert plans.take(plan, PAIRS, "one") == PAIRS[0]
    assert plans.take(plan, PAIRS, "two") == PAIRS[1]
    assert plans.take(plan, PAIRS, "three") is None
    # Whoever asks again lets go of what they had.
    assert plans.take(plan, PAIRS, "one") == PAIRS[0]
    assert plans.take(plan, PAIRS[1:], "one") is None
    assert plans.take(plan, PAIRS, "three") == PAIRS[0]
    other = plans.begin(dataset_id, {}, "")
    assert plans.take(other, PAIRS, "two") == PAIRS[0]


def test_a_pair_of_a_closed_window_is_free_at_once(workspace, dataset_id):
    plans = LabelPlans(workspace)
    plan = plans.begin(dataset_id, {}, "")
    plans.take(plan, PAIRS, "one")
    assert plans.take(plan, PAIRS, "two", gone=lambda owner: owner == "three") == PAIRS[1]
    assert plans.take(plan, PAIRS, "two", gone=lambda owner: owner == "one") == PAIRS[0]
    assert plans.take(plan, PAIRS, "one") == PAIRS[1]


def test_a_pair_that_was_left_lying_is_free_again(workspace, dataset_id, monkeypatch):
    plans = LabelPlans(workspace)
    plan = plans.begin(dataset_id, {}, "")
    clock = [1000.0]
    monkeypatch.setattr(label_plans.time, "time", lambda: clock[0])
    plans.take(plan, PAIRS, "one")
    clock[0] += label_plans.CARD_SECONDS
    assert plans.take(plan, PAIRS, "two") == PAIRS[1]
    clock[0] += 1
    assert plans.take(plan, PAIRS, "three") == PAIRS[0]


def test_a_pair_is_not_kept_until_a_clock_that_was_set_back_has_caught_up(
    workspace, dataset_id, monkeypatch
):
    plans = LabelPlans(workspace)
    plan = plans.begin(dataset_id, {}, "")
    clock = [200_000.0]
    monkeypatch.setattr(label_plans.time, "time", lambda: clock[0])
    plans.take(plan, PAIRS, "one")
    clock[0] -= 86_400
    assert plans.take(plan, PAIRS, "two") == PAIRS[0]
    assert plans.take(plan, PAIRS, "three") == PAIRS[1]


def test_the_log_has_every_entry_in_order_and_from_any_revision(workspace, dataset_id):
    layer = Corrections(workspace)
    layer.correct(dataset_id, PAIRS[0], 0.0, "Ann")
    before = layer.layer(dataset_id).revision
    layer.correct(dataset_id, PAIRS[0], None, "Bo")
    layer.withdraw(dataset_id, [PAIRS[0]])
    found = layer.log(dataset_id)
    assert [(each.label, each.who, each.withdrawn) for each in found] == [
        (0.0, "Ann", False),
        (None, "Bo", False),
        (None, "", True),
    ]
    assert all(isinstance(each, Correction) for each in found)
    assert layer.log(dataset_id, before) == found[1:]
    assert layer.log(dataset_id, 0, before) == found[:1]
    assert layer.revision(dataset_id) == layer.layer(dataset_id).revision > before
    assert layer.revision("another") == 0
    assert layer.log("another") == []


def test_a_plan_goes_with_its_data_set(workspace, dataset_id):
    plans = LabelPlans(workspace)
    plan = plans.begin(dataset_id, {}, "")
    plans.take(plan, PAIRS, "one")
    workspace.delete_dataset(dataset_id)
    assert plans.newest(dataset_id) is None


def test_ends_of_pauses_are_kept_by_plan_and_person(workspace, dataset_id):
    plans = LabelPlans(workspace)
    plan, other = plans.begin(dataset_id, {}, ""), plans.begin(dataset_id, {}, "")
    assert plans.resumed(plan) == {}
    plans.resume(plan, "Ann")
    plans.resume(plan, " Bo ")
    plans.resume(plan, "Ann")
    found = plans.resumed(plan)
    assert {name: len(times) for name, times in found.items()} == {"Ann": 2, "Bo": 1}
    assert found["Ann"] == sorted(found["Ann"])
    assert plans.resumed(other) == {}
    # Of a plan that was deleted meanwhile nothing is kept, and nothing fails.
    workspace.delete_dataset(dataset_id)
    plans.resume(plan, "Ann")
    assert plans.resumed(plan) == {}
