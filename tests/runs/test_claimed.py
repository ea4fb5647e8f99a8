"""The end of work on a claimed item, tested without the rest of a worker."""

import threading

import pytest

from rankdash.core.base.errors import RerankerError, StoreError
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.rerankers.remote.connection import Place
from rankdash.core.runs import worker
from rankdash.core.runs.jobs import KEY_SECONDS, Handover
from rankdash.core.runs.runner import Cancelled
from rankdash.core.runs.worker import Claimed
from rankdash.core.workspace.jobs.leases import ExplanationRequest, Explanations
from rankdash.core.workspace.jobs.queue import Owner, Queue


@pytest.fixture
def carried_out(workspace, dataset, submit):
    """Do work on an explanation or a job; return its row."""
    run = run_from_ranking("given", dataset.id, dataset.candidates, "given")
    workspace.save_run(run)

    def carried(work, kind=Explanations):
        rows, me = kind(workspace), Owner()
        submit() if kind is Queue else rows.ask(ExplanationRequest(run.id, "q0", "d0", "term"))
        on = Claimed(rows, rows.claim(me).id, me, threading.Event())
        on.carry_out(lambda: work(on))
        return (
            rows.rows()[0]
            if kind is Queue
            else rows.find(ExplanationRequest(run.id, "q0", "d0", "term"))
        )

    return carried


def raising(error):
    def work(on):
        raise error

    return work


@pytest.mark.parametrize(
    ("kind", "said"), [(Queue, "The run stopped"), (Explanations, "The explanation stopped")]
)
def test_an_error_in_words_is_kept_and_any_other_with_its_kind_and_no_key(carried_out, kind, said):
    row = carried_out(raising(ValueError("Bearer sk-secret-0815-4711 " + "x" * 400)), kind)
    assert row.state == "failed"
    assert str(row.error).startswith(f"{said} at an unexpected error (ValueError: Bearer •••")
    assert "0815" not in str(row.error)
    assert len(row.error.params["text"]) == 300
    row = carried_out(raising(RerankerError("No model {name!r} here.", name="x")))
    assert (row.state, str(row.error)) == ("failed", "No model 'x' here.")


def test_work_beats_until_it_is_told_that_it_was_lost(carried_out, monkeypatch):
    """A beat that fails to write returns nothing; the next one may succeed."""
    monkeypatch.setattr(worker, "BEAT_SECONDS", 0.001)
    # At the last beat, the result of the one before is known.
    answers, told = ["error", True, "error", False, False], threading.Event()

    def beat(*_of):
        answer = answers.pop(0) if answers else False
        if not answers:
            told.set()
        if answer == "error":
            raise StoreError("The workspace is locked.")
        return answer

    def work(on):
        assert not on.has_to_stop()
        assert told.wait(60)
        assert on.lost and on.has_to_stop()
        raise Cancelled

    monkeypatch.setattr(Explanations, "beat", beat)
    assert carried_out(work).state == "cancelled"


def test_a_key_is_waited_for_where_one_is_needed_that_is_not_there(monkeypatch):
    monkeypatch.setenv("OWN_API_KEY", "own")
    monkeypatch.delenv("RACK_API_KEY", raising=False)
    handover = Handover()
    monkeypatch.setattr(handover, "take", lambda job_id, patience: patience)
    places = [Place(variable, "http://x") for variable in ("", "RACK_API_KEY", "OWN_API_KEY")]
    waits = [handover.take_for("job", place) for place in (None, *places)]
    assert waits == [0.0, 0.0, KEY_SECONDS, 0.0]
