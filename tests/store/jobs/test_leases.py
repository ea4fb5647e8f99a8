"""Work that waits, is claimed, beats and ends: jobs, explanations and judges alike."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from rankdash.errors import StoreError, UnavailableError
from rankdash.store.jobs import leases
from rankdash.store.jobs.explanations import Asked, Explanations
from rankdash.store.jobs.judges import StoredJudges
from rankdash.store.jobs.leases import Owner, lost
from rankdash.store.jobs.queue import STALE_SECONDS, Progress, Queue
from tests.store.builders import clock_moved, submit, submit_judge

LACK = UnavailableError("No model {model!r}.", remedy="Give a folder, not {model!r}.", model="x")


class Jobs:
    def __init__(self, workspace, dataset):
        self.leases, self.workspace, self.dataset = Queue(workspace), workspace, dataset
        self.again = self.leases.resume

    def row(self, row_id):
        # A list writes off whom it finds dead.
        return next(row for row in self.leases.rows() if row.id == row_id)

    def add(self):
        return submit(self.workspace, self.dataset.id)

    def progress(self, row_id, owner):
        self.leases.progress(row_id, owner, Progress("scoring", done=3))

    def progressed(self, row_id):
        return self.row(row_id).done == 3


class Questions(Jobs):
    def __init__(self, workspace, dataset):
        self.leases, self.asked = Explanations(workspace), {}

    def add(self):
        asked = Asked("run-1", "007", "01", ("term", "sentence", "a", "b")[len(self.asked)])
        self.asked[asked.id] = asked
        return self.leases.ask(asked)

    def again(self, row_id):
        self.leases.ask(self.asked[row_id])

    def row(self, row_id):
        return self.leases.find(self.asked[row_id])

    def progress(self, row_id, owner):
        self.leases.progress(row_id, owner, 3, 10)

    def progressed(self, row_id):
        row = self.row(row_id)
        return (row.done, row.total) == (3, 10)


class Grading(Jobs):
    def __init__(self, workspace, dataset):
        self.leases, self.workspace, self.dataset = StoredJudges(workspace), workspace, dataset
        self.again = self.leases.resume

    def add(self):
        name, pairs = f"judge-{len(self.leases.rows())}", [("007", "1"), ("7", "01")]
        submit_judge(self.workspace, self.dataset.id, name, pairs=pairs)
        return name

    progress = progressed = None


@pytest.fixture(params=[Jobs, Questions, Grading])
def work(request, workspace, stored):
    return request.param(workspace, stored)


@pytest.fixture
def me():
    return Owner()


def test_work_waits_runs_and_ends(work, me):
    row_id = work.add()
    assert work.row(row_id).state == "queued"
    assert work.leases.any_waits()
    claimed = work.leases.claim(me)
    assert (claimed.id, claimed.state) == (row_id, "running")
    assert work.leases.claim(Owner()) is None and not work.leases.any_waits()
    assert work.leases.beat(row_id, me)
    if work.progress:
        work.progress(row_id, me)
        assert work.progressed(row_id)
    assert work.leases.finish(row_id, me, "done")
    assert (work.row(row_id).state, work.row(row_id).error) == ("done", None)


def test_the_longest_wait_comes_first(work):
    ids = [work.add() for _ in range(3)]
    work.leases.cancel(ids[0])
    time.sleep(0.002)
    work.again(ids[0])
    assert [work.leases.claim(Owner()).id for _ in ids] == [ids[1], ids[2], ids[0]]
    assert work.leases.claim(Owner()) is None


def test_what_waits_is_cancelled_at_once_and_what_runs_is_asked_to_stop(work, me):
    runs, waits = work.add(), work.add()
    work.leases.claim(me)
    assert work.leases.beat(runs, me)
    for _again in range(2):
        work.leases.cancel(runs)
        work.leases.cancel(waits)
    assert (work.row(waits).state, work.row(waits).cancelling) == ("cancelled", False)
    assert (work.row(runs).state, work.row(runs).cancelling) == ("running", True)
    assert not work.leases.beat(runs, me)
    work.leases.finish(runs, me, "cancelled")
    assert (work.row(runs).state, work.row(runs).cancelling) == ("cancelled", False)
    assert work.leases.claim(me) is None


@pytest.mark.parametrize("state", ["failed", "cancelled", "interrupted"])
def test_what_stopped_can_be_queued_again(work, me, state):
    row_id = work.add()
    work.leases.claim(me)
    work.leases.cancel(row_id)
    work.leases.finish(row_id, me, state, LACK)
    error = work.row(row_id).error
    assert (error.template, error.remedy, error.params) == (LACK.template, LACK.remedy, LACK.params)
    assert str(error) == "No model 'x'. Give a folder, not 'x'."
    work.again(row_id)
    row = work.row(row_id)
    assert (row.state, row.error, row.cancelling) == ("queued", None, False)
    assert work.leases.beat(work.leases.claim(me).id, me), "nobody asked it to stop since"


def test_a_cancel_that_the_worker_did_not_live_to_see_still_counts(work, workspace, me):
    row_id, other = work.add(), work.add()
    for each in (row_id, other):
        assert work.leases.claim(me).id == each
    work.leases.cancel(row_id)
    Queue(workspace).interrupt(me.token, LACK)
    Queue(workspace).interrupt(me.token)
    assert [(work.row(each).state, work.row(each).cancelling) for each in (row_id, other)] == [
        ("cancelled", False), ("interrupted", False)
    ]  # fmt: skip
    assert work.row(other).error.template == LACK.template, "written off for a reason"
    assert not work.leases.beat(row_id, me)
    assert work.row(row_id).state == "cancelled"
    # It was only suspended: it goes on where it was.
    assert work.leases.beat(other, me)
    assert (work.row(other).state, work.row(other).error) == ("running", None)
    # The cancel was for the run that ended: what is resumed goes on.
    work.again(row_id)
    assert work.leases.beat(work.leases.claim(me).id, me)


def test_what_is_done_or_under_way_is_not_run_again(work, me):
    row_id = work.add()
    work.leases.claim(me)
    if work.progress:
        work.progress(row_id, me)
        work.again(row_id)
        assert work.row(row_id).state == "running" and work.progressed(row_id)
    work.leases.finish(row_id, me, "done")
    if not isinstance(work, Grading):
        work.again(row_id)
    work.leases.cancel(row_id)
    assert work.row(row_id).state == "done"
    assert work.leases.claim(me) is None


def test_a_worker_that_was_written_off_and_replaced_changes_nothing_any_more(work, monkeypatch, me):
    row_id, took_over = work.add(), Owner()
    work.leases.claim(me)
    with clock_moved(monkeypatch, STALE_SECONDS + 1):
        assert work.row(row_id).state == "interrupted"
    work.again(row_id)
    assert not work.leases.beat(row_id, me)
    work.leases.claim(took_over)
    if work.progress:
        work.progress(row_id, me)
        assert not work.progressed(row_id)
    assert not work.leases.finish(row_id, me, "failed")
    assert not work.leases.beat(row_id, me)
    assert work.row(row_id).state == "running"
    assert work.leases.beat(row_id, took_over)


@pytest.mark.parametrize("host", [None, "another-machine"])
def test_a_silent_worker_is_written_off_and_a_live_one_is_not(work, monkeypatch, me, host):
    row_id = work.add()
    owner = me if host is None else replace(me, host=host, pid=2**22 + 1)
    work.leases.claim(owner)
    assert work.row(row_id).state == "running"
    with clock_moved(monkeypatch, STALE_SECONDS + 1):
        assert work.row(row_id).state == "interrupted"
    assert work.leases.beat(row_id, owner)
    assert work.row(row_id).state == "running"


def test_when_no_worker_can_be_had_what_waits_fails(work, workspace):
    runs, waits = work.add(), work.add()
    work.leases.claim(Owner())
    Queue(workspace).fail_waiting(UnavailableError("No worker."))
    assert work.row(runs).state == "running"
    assert (work.row(waits).state, str(work.row(waits).error)) == ("failed", "No worker.")


def test_it_goes_with_what_it_is_of(work, workspace, stored, me):
    row_id = work.add()
    work.leases.claim(me)
    workspace.delete_dataset(stored.id)
    assert not work.leases.beat(row_id, me)
    assert not work.leases.finish(row_id, me, "done")
    with pytest.raises(StoreError, match=f"no data set '{stored.id}'|no run 'run-1'"):
        work.add()


# Who lives.


def test_a_worker_is_silent_after_ten_seconds(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 100.0)
    # A beat of a day ahead is one of before the clock was set back.
    for heartbeat, silent in ((90.0, False), (89.9, True), (100.5, False), (86_500.0, True)):
        assert lost({"host": "elsewhere", "pid": 1, "heartbeat": heartbeat}) is silent


@pytest.mark.parametrize(
    ("host", "said", "silent"),
    [
        (None, None, False),
        (None, ProcessLookupError, True),
        (None, PermissionError, False),  # It is alive, and another user's.
        ("elsewhere", ProcessLookupError, False),
    ],
)
def test_a_process_of_this_machine_is_asked_whether_it_lives(monkeypatch, host, said, silent):
    asked = []

    def kill(pid, signal):
        asked.append((pid, signal))
        if said is not None:
            raise said

    monkeypatch.setattr(leases.os, "kill", kill)
    row = {"host": host or Owner().host, "pid": 77, "heartbeat": time.time()}
    assert lost(row) is silent
    # Signal 0 asks and does nothing.
    assert asked == ([(77, 0)] if host is None else [])


def test_an_error_about_a_file_can_be_kept():
    error = UnavailableError("No {file}.", remedy="Make it.", file=Path("a") / "b")
    kept = leases.problem_from_json(leases.problem_to_json(error))
    assert (str(kept), kept.params) == (f"No {Path('a') / 'b'}. Make it.", {"file": "a/b"})
    assert leases.problem_from_json(leases.problem_to_json(None)) is None


# Explanations alone.


def test_a_question_is_asked_once_and_its_answer_stays(workspace, stored, me):
    explanations, asked = Explanations(workspace), Asked("run-1", "007", "01", "term")
    assert explanations.find(asked) is None
    number = explanations.ask(asked)
    assert explanations.ask(asked) == number
    assert explanations.claim(me).asked == asked and explanations.find(asked).live
    explanations.progress(number, me, 3, 10)
    explanations.finish(number, me, "failed", LACK)
    # Asked again it starts over.
    explanations.ask(asked)
    row = explanations.find(asked)
    assert (row.done, row.total, row.live) == (0, 0, True)
    explanations.claim(me)
    explanations.finish(number, me, "done", result='{"score": 1}')
    explanations.ask(asked)
    row = explanations.find(asked)
    assert (row.state, row.result) == ("done", '{"score": 1}')
    workspace.delete_run("run-1")
    assert explanations.find(asked) is None


def test_questions_differ_by_every_part_of_them():
    asked = Asked("run-1", "007", "01", "term")
    others = [replace(asked, **{name: "else"}) for name in vars(asked)]
    shifted = Asked("run-1", "00", "701", "term")
    assert len({each.id for each in [asked, *others, shifted]}) == 6
