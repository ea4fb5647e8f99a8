"""Work that waits, is claimed, beats and ends: the same for jobs, explanations and judges."""

import re
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from rankdash.core.base import i18n
from rankdash.core.base.errors import StoreError, UnavailableError
from rankdash.core.runs import jobs
from rankdash.core.workspace.jobs import leases
from rankdash.core.workspace.jobs.former_errors import REWORDED
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.jobs.leases import ExplanationRequest, Explanations, Owner, lost
from rankdash.core.workspace.jobs.queue import STALE_SECONDS, Progress, Queue
from tests.approved import table
from tests.store.builders import clock_moved, submit, submit_judge

FIELD = re.compile(r"\{(\w+)[!}]")
LACK = UnavailableError("No model {model!r}.", remedy="Give a folder, not {model!r}.", model="x")
# Behaviour → steps. `claim` names the worker: me, another, `gone` (its process has ended) or `far`
# (on another machine); `late` is a moment after the time limit of a beat.
STOPPED = "add a; claim me; cancel a; finish a me {}; again a; claim me; beat a me"
LIVES = {
    "Work waits, runs and ends": "add a; waits; claim me; claim other; waits; beat a me; "
    "progress a me; finish a me done",
    "The longest wait comes first": "add a; add b; add c; cancel a; again a"
    + "; claim me" * 4,
    "What waits is cancelled at once and what runs is asked to stop": "add a; add b; claim me; "
    "beat a me; cancel a; cancel b; cancel a; cancel b; beat a me; finish a me cancelled; claim me",
    **{
        f"What is {state} can be queued again": STOPPED.format(state)
        for state in ("failed", "cancelled", "interrupted")
    },
    "A cancel counts that the worker did not live to see; one that was only suspended goes on": (
        "add a; add b; claim me; claim me; cancel a; interrupt me; beat a me; beat b me; again a; "
        "claim me; beat a me"
    ),
    "What is under way or done is not run again": "add a; claim me; progress a me; again a; "
    "finish a me done; again a; cancel a; claim me",
    "A worker that was written off and replaced changes nothing any more": "add a; claim me; late; "
    "again a; beat a me; claim other; progress a me; finish a me failed; beat a me; beat a other",
    "A silent worker is written off and a live one is not": "add a; claim me; late; beat a me",
    "So is one of another machine": "add a; claim far; late; beat a far",
    "And one whose process is gone": "add a; claim gone; beat a gone",
    "If no worker can be had what waits fails": "add a; add b; claim me; unavailable",
    "It goes with what it is of": "add a; claim me; delete; beat a me; finish a me done; add b",
}  # fmt: skip


ME = Owner()
GONE = replace(ME, pid=2**22 + 1)
FAR = replace(GONE, host="another-machine")
OWNERS = {"me": ME, "other": Owner(), "gone": GONE, "far": FAR}


class Work:
    """Jobs, with steps as methods. ids: name in a life → id of the work. A step without a method
    here is a method of `Leases` with the same name."""

    kind = Queue

    def __init__(self, workspace, dataset):
        self.workspace, self.dataset = workspace, dataset
        self.leases, self.ids = self.kind(workspace), {}

    def do(self, verb, *words):
        if hasattr(self, verb):
            return getattr(self, verb)(*words)
        given = ({**OWNERS, **self.ids}.get(word, word) for word in words)
        return getattr(self.leases, verb)(*given)

    def add(self, name):
        self.ids[name] = submit(self.workspace, self.dataset.id)

    def again(self, name):
        self.leases.resume(self.ids[name])

    def progress(self, name, who):
        self.leases.progress(self.ids[name], OWNERS[who], Progress("scoring", done=3))

    def row(self, name):
        # Reading the rows interrupts the work of dead workers.
        return next((row for row in self.leases.rows() if row.id == self.ids[name]), None)

    def claim(self, who):
        claimed = self.leases.claim(OWNERS[who])
        names = {row_id: name for name, row_id in self.ids.items()}
        return "nothing" if claimed is None else names[claimed.id]

    def finish(self, name, who, state):
        error = None if state == "done" else LACK
        return self.leases.finish(self.ids[name], OWNERS[who], state, error)

    def interrupt(self, who):
        Queue(self.workspace).interrupt(OWNERS[who].token, LACK)
        Queue(self.workspace).interrupt(OWNERS[who].token)

    def waits(self):
        return jobs.any_waits(self.workspace)

    def unavailable(self):
        Queue(self.workspace).fail_waiting(UnavailableError("No worker."))

    def delete(self):
        self.workspace.delete_dataset(self.dataset.id)

    def shown(self, name):
        row = self.row(name)
        if row is None:
            return f"{name} is gone"
        done = f", {row.done} done" if getattr(row, "done", 0) else ""
        why = f" ({row.error})" if row.error else ""
        return f"{name} {row.state}{', cancelling' * row.cancelling}{done}{why}"


class Questions(Work):
    kind = Explanations

    def asked(self, name):
        return ExplanationRequest("run-1", "007", "01", name)

    def add(self, name):
        self.ids[name] = self.leases.ask(self.asked(name))

    again = add

    def progress(self, name, who):
        self.leases.progress(self.ids[name], OWNERS[who], 3, 10)

    def row(self, name):
        return self.leases.find(self.asked(name))


class Grading(Work):
    kind = StoredJudges

    def add(self, name):
        submit_judge(self.workspace, self.dataset.id, name, pairs=[("007", "1"), ("7", "01")])
        self.ids[name] = name

    def progress(self, _name, _who):
        """Do nothing: the number of graded pairs is the progress."""


@pytest.mark.parametrize("kind", [Work, Questions, Grading])
def test_how_work_lives(kind, workspace, make_dataset, make_run, monkeypatch, approved):
    said = []
    for life, steps in LIVES.items():
        dataset = make_dataset()
        workspace.save_dataset(dataset)
        workspace.save_run(make_run(dataset))
        work, lines = kind(workspace, dataset), []
        for step in steps.split("; "):
            # A pause, so that times differ.
            time.sleep(0.002 * step.startswith("again"))
            late = STALE_SECONDS + 1 if step == "late" else 0.0
            told = None
            with clock_moved(monkeypatch, late):
                try:
                    told = None if late else work.do(*step.split())
                except StoreError as refused:
                    told = f"refused: {refused}"
                shown = ", ".join(map(work.shown, work.ids))
            lines.append(f"{step}{'' if told is None else f' → {told}'}: {shown}")
        said.append((life, "\n".join(lines)))
        with suppress(StoreError):
            workspace.delete_dataset(dataset.id)
    approved(f"store/{kind.__name__.lower()}", table(said))


# Liveness of workers.


def test_a_worker_is_silent_after_ten_seconds(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 100.0)
    # A beat a day in the future is from before the clock was set back.
    for heartbeat, silent in ((90.0, False), (89.9, True), (100.5, False), (86_500.0, True)):
        assert lost({"host": "elsewhere", "pid": 1, "heartbeat": heartbeat}) is silent


def test_a_process_of_this_machine_is_asked_whether_it_lives(monkeypatch):
    # A process without permission to signal is alive, and another user's.
    answers, asked = [None, ProcessLookupError, PermissionError], []

    def kill(pid, signal):
        asked.append((pid, signal))
        if answer := answers[len(asked) - 1]:
            raise answer

    monkeypatch.setattr(leases.os, "kill", kill)
    row = {"host": Owner().host, "pid": 77, "heartbeat": time.time()}
    assert [lost(row) for _each in answers] == [False, True, False]
    assert not lost(row | {"host": "elsewhere"})
    # Signal 0 only checks that the process exists.
    assert asked == [(77, 0)] * 3


def test_an_error_about_a_file_can_be_kept():
    error = UnavailableError("No {file}.", remedy="Make it.", file=Path("a") / "b")
    kept = leases.problem_from_json(leases.problem_to_json(error))
    assert (str(kept), kept.params) == (f"No {Path('a') / 'b'}. Make it.", {"file": "a/b"})
    assert leases.problem_from_json(leases.problem_to_json(None)) is None


@pytest.mark.parametrize(("former", "current"), REWORDED.items(), ids=range(len(REWORDED)))
def test_a_stored_error_of_an_earlier_version_is_translated(former, current):
    stored = UnavailableError(former, remedy=former, **dict.fromkeys(FIELD.findall(former), "x"))
    shown = leases.problem_from_json(leases.problem_to_json(stored))
    assert (shown.template, shown.remedy) == (current, current)
    assert {*FIELD.findall(current)} == {*FIELD.findall(former)}
    with i18n.speaking("zh"):
        assert re.search("[\u3400-\u9fff]", i18n.gettext(current, **stored.params))


# Only judges.


def test_answers_lost_with_each_worker_add_up(workspace, stored):
    submit_judge(workspace, stored.id, "j", pairs=[("007", "1")])
    judges, said = StoredJudges(workspace), []
    for at_risk in (2, 3, 1):
        judges.resume("j")
        judges.claim(ME)
        judges.begin("j", ME, {}, at_risk, {})
        judges.interrupt(ME.token)
        said.append(judges.row("j").unsettled)
    assert said == [2, 5, 6]


# Only explanations.


def test_an_answer_stays_with_its_question_and_goes_with_the_run(workspace, stored):
    explanations, asked = Explanations(workspace), ExplanationRequest("run-1", "007", "01", "term")
    assert explanations.find(asked) is None
    for state, result in (("failed", None), ("done", '{"score": 1}')):
        number = explanations.ask(asked)
        # A second request starts over.
        row = explanations.find(asked)
        assert (number, row.done, row.total, row.live) == (asked.id, 0, 0, True)
        assert explanations.claim(ME).asked == asked
        explanations.progress(number, ME, 3, 10)
        explanations.finish(number, ME, state, result=result)
    explanations.ask(asked)
    row = explanations.find(asked)
    assert (row.state, row.result) == ("done", '{"score": 1}')
    workspace.delete_run("run-1")
    assert explanations.find(asked) is None


def test_questions_differ_by_every_part_of_them():
    asked = ExplanationRequest("run-1", "007", "01", "term")
    others = [replace(asked, **{name: "else"}) for name in vars(asked)]
    shifted = ExplanationRequest("run-1", "00", "701", "term")
    assert len({each.id for each in [asked, *others, shifted]}) == 6
