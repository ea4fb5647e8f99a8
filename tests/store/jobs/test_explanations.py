"""What is asked once is kept, and only its owner may end it."""

from dataclasses import replace

import pytest

from rankdash.errors import ScoringError, StoreError
from rankdash.store.jobs.explanations import Asked, Explanations
from rankdash.store.jobs.queue import Owner, Queue

QUESTION = Asked("run-1", "007", "01", "term")


@pytest.fixture
def explanations(workspace, make_dataset, make_run):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    return Explanations(workspace)


def test_a_question_is_asked_once_and_its_answer_stays(explanations):
    assert explanations.find(QUESTION) is None
    me = Owner()
    number = explanations.ask(QUESTION)
    assert explanations.ask(QUESTION) == number
    claimed = explanations.claim(me)
    assert (claimed.asked, claimed.state) == (QUESTION, "running")
    assert explanations.claim(Owner()) is None
    explanations.progress(number, me, 3, 10)
    row = explanations.find(QUESTION)
    assert (row.done, row.total, row.live) == (3, 10, True)
    explanations.finish(number, me, "done", result='{"score": 1}')
    explanations.ask(QUESTION)
    row = explanations.find(QUESTION)
    assert (row.state, row.result) == ("done", '{"score": 1}')
    assert explanations.claim(me) is None


def test_questions_differ_by_every_part_of_them():
    others = [replace(QUESTION, **{name: "else"}) for name in vars(QUESTION)]
    shifted = Asked("run-1", "00", "701", "term")
    assert len({each.id for each in [QUESTION, *others, shifted]}) == 6


def test_oldest_first(explanations):
    later = replace(QUESTION, level="sentence")
    explanations.ask(QUESTION)
    explanations.ask(later)
    assert [explanations.claim(Owner()).asked for _ in range(2)] == [QUESTION, later]


def test_what_waits_is_cancelled_at_once_and_what_runs_is_told(explanations):
    number, me = explanations.ask(QUESTION), Owner()
    explanations.cancel(number)
    assert explanations.find(QUESTION).state == "cancelled"
    explanations.ask(QUESTION)
    explanations.claim(me)
    assert explanations.beat(number, me)
    explanations.cancel(number)
    assert explanations.find(QUESTION).cancelling
    assert not explanations.beat(number, me)


def test_a_failure_is_kept_in_words_and_can_be_tried_again(explanations):
    number, me = explanations.ask(QUESTION), Owner()
    explanations.claim(me)
    error = ScoringError("No score for {doc!r}.", remedy="Try {other}.", doc="d", other="e")
    explanations.finish(number, me, "failed", error=error)
    assert str(explanations.find(QUESTION).error) == "No score for 'd'. Try e."
    explanations.ask(QUESTION)
    row = explanations.find(QUESTION)
    assert (row.state, row.error) == ("queued", None)


def test_what_is_asked_again_starts_over_behind_what_waits(workspace, explanations):
    other, me = replace(QUESTION, level="sentence"), Owner()
    number = explanations.ask(QUESTION)
    explanations.ask(other)
    with workspace.database.writing() as db:
        db.execute("UPDATE explanations SET queued = '2020-01-01'")
    explanations.claim(me)
    explanations.progress(number, me, 3, 10)
    explanations.finish(number, me, "failed", error=ScoringError("no luck"))
    explanations.ask(QUESTION)
    row = explanations.find(QUESTION)
    assert (row.done, row.total, row.live) == (0, 0, True)
    assert [explanations.claim(Owner()).asked for _ in range(2)] == [other, QUESTION]


def test_what_was_cancelled_and_then_written_off_is_no_longer_cancelling(workspace, explanations):
    number, me = explanations.ask(QUESTION), Owner()
    explanations.claim(me)
    explanations.cancel(number)
    Queue(workspace).interrupt(me.token)
    row = explanations.find(QUESTION)
    assert (row.state, row.cancelling, row.live) == ("cancelled", False, False)


def test_a_worker_that_was_written_off_changes_nothing_any_more(workspace, explanations):
    number, slept, awake = explanations.ask(QUESTION), Owner(), Owner()
    explanations.claim(slept)
    Queue(workspace).interrupt(slept.token)
    assert explanations.find(QUESTION).state == "interrupted"
    explanations.ask(QUESTION)
    explanations.claim(awake)
    explanations.progress(number, slept, 3, 10)
    assert explanations.find(QUESTION).total == 0
    explanations.finish(number, slept, "done", result="{}")
    assert not explanations.beat(number, slept)
    assert (explanations.find(QUESTION).state, explanations.find(QUESTION).result) == (
        "running",
        None,
    )


def test_without_a_live_worker_nothing_runs(explanations):
    explanations.ask(QUESTION)
    explanations.claim(replace(Owner(), pid=2**22 + 1))
    assert explanations.find(QUESTION).state == "interrupted"


def test_where_no_worker_can_be_had_what_waits_fails(workspace, explanations):
    explanations.ask(QUESTION)
    Queue(workspace).fail_waiting(ScoringError("no memory"))
    row = explanations.find(QUESTION)
    assert (row.state, row.error.template) == ("failed", "no memory")


def test_it_goes_with_its_run(workspace, explanations):
    number, me = explanations.ask(QUESTION), Owner()
    explanations.claim(me)
    workspace.delete_run("run-1")
    assert not explanations.beat(number, me)
    explanations.finish(number, me, "done", result="{}")
    assert explanations.find(QUESTION) is None
    with pytest.raises(StoreError, match="no run 'run-1'"):
        explanations.ask(QUESTION)


def test_what_was_cancelled_while_it_ran_can_be_asked_again(workspace, explanations):
    number, me, other = explanations.ask(QUESTION), Owner(), Owner()
    explanations.claim(me)
    explanations.cancel(number)
    Queue(workspace).interrupt(me.token)
    explanations.ask(QUESTION)
    explanations.claim(other)
    assert explanations.beat(number, other), "the wish to stop was for the first time"
    assert explanations.find(QUESTION).cancelling is False


def test_asking_for_what_is_under_way_changes_nothing(explanations):
    number, me = explanations.ask(QUESTION), Owner()
    explanations.claim(me)
    explanations.progress(number, me, 3, 10)
    explanations.ask(QUESTION)
    row = explanations.find(QUESTION)
    assert (row.state, row.done, row.total) == ("running", 3, 10)
