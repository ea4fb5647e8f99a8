import pytest

from rankdash.errors import DataError
from rankdash.store.notes import label_plans
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.label_plans import LONGEST_GUIDELINES, LabelPlans

PAIRS = [("007", "1"), ("007", "01")]


@pytest.fixture
def plans(workspace):
    return LabelPlans(workspace)


@pytest.fixture
def plan(plans, stored):
    return plans.begin(stored.id, {}, "")


def test_the_plan_that_was_begun_last_comes_back_as_it_was_given(workspace, plans, stored):
    assert plans.newest(stored.id) is None
    plans.begin(stored.id, {"seed": 1}, "")
    Corrections(workspace).correct(stored.id, PAIRS[0], 0.0, "Ann")
    last = plans.begin(stored.id, {"systems": ["a", "b"], "top": 2.0}, "  *Read* first.  ")
    found = plans.newest(stored.id)
    assert found.id == last
    assert found.settings == {"systems": ["a", "b"], "top": 2.0}
    assert found.guidelines == "*Read* first."
    assert found.revision == Corrections(workspace).layer(stored.id).revision


def test_guidelines_that_are_too_long_are_refused(plans, stored):
    plans.begin(stored.id, {}, "x" * LONGEST_GUIDELINES)
    with pytest.raises(DataError, match=r"have 10001 characters"):
        plans.begin(stored.id, {}, "x" * (LONGEST_GUIDELINES + 1))


def test_two_windows_never_look_at_one_pair(plans, plan, stored):
    assert plans.take(plan, PAIRS, "one") == PAIRS[0]
    assert plans.take(plan, PAIRS, "two") == PAIRS[1]
    assert plans.take(plan, PAIRS, "three") is None
    # Whoever asks again lets go of what they had.
    assert plans.take(plan, PAIRS, "one") == PAIRS[0]
    assert plans.take(plan, PAIRS[1:], "one") is None
    assert plans.take(plan, PAIRS, "three") == PAIRS[0]
    other = plans.begin(stored.id, {}, "")
    assert plans.take(other, PAIRS, "two") == PAIRS[0]


def test_a_pair_of_a_closed_window_is_free_at_once(plans, plan):
    plans.take(plan, PAIRS, "one")
    assert plans.take(plan, PAIRS, "two", gone=lambda owner: owner == "three") == PAIRS[1]
    assert plans.take(plan, PAIRS, "two", gone=lambda owner: owner == "one") == PAIRS[0]
    assert plans.take(plan, PAIRS, "one") == PAIRS[1]


@pytest.mark.parametrize(
    ("later", "free"),
    [
        (label_plans.CARD_SECONDS, False),
        (label_plans.CARD_SECONDS + 1, True),
        # A clock that was set back by a day.
        (-86_400, True),
    ],
)
def test_a_pair_that_was_left_lying_is_free_again(plans, plan, monkeypatch, later, free):
    clock = [200_000.0]
    monkeypatch.setattr(label_plans.time, "time", lambda: clock[0])
    plans.take(plan, PAIRS, "one")
    clock[0] += later
    assert plans.take(plan, PAIRS, "two") == PAIRS[0 if free else 1]


def test_ends_of_pauses_are_kept_by_plan_and_person(workspace, plans, plan, stored):
    other = plans.begin(stored.id, {}, "")
    assert plans.resumed(plan) == {}
    for who in ("Ann", " Bo ", "Ann"):
        plans.resume(plan, who)
    found = plans.resumed(plan)
    assert {name: len(times) for name, times in found.items()} == {"Ann": 2, "Bo": 1}
    assert found["Ann"] == sorted(found["Ann"])
    assert plans.resumed(other) == {}
    # Of a plan that was deleted meanwhile nothing is kept, and nothing fails.
    plans.take(plan, PAIRS, "one")
    workspace.delete_dataset(stored.id)
    plans.resume(plan, "Ann")
    assert plans.resumed(plan) == {}
