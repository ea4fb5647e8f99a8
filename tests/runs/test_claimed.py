"""How the work on what a worker claimed ends, with nothing of a worker but that."""

import threading
from types import SimpleNamespace

import pytest

from rankdash.errors import RerankerError, StoreError
from rankdash.rerankers.remote.keys import Place
from rankdash.runs import claimed
from rankdash.runs.claimed import Claimed
from rankdash.runs.key_pipe import KEY_SECONDS, Handover
from rankdash.runs.runner import Cancelled
from rankdash.store.jobs.explanations import Explanations
from rankdash.store.jobs.queue import Queue


@pytest.mark.parametrize(("stopping", "state"), [(True, "interrupted"), (False, "cancelled")])
def test_work_that_stops_with_its_worker_is_interrupted_and_else_cancelled(stopping, state):
    ended = []
    rows = SimpleNamespace(
        table="jobs", beat=lambda *of: True, finish=lambda *of, **kept: ended.append(of[2])
    )
    stop = threading.Event()
    if stopping:
        stop.set()

    def work():
        raise Cancelled

    Claimed(rows, "id", None, stop).carry_out(work)
    assert ended == [state]


def _ended(work, beat=lambda: True, kind=None):
    """How work ends, as (state, error, what is kept), and whether it was lost by then."""
    ended = []
    rows = SimpleNamespace() if kind is None else kind.__new__(kind)
    rows.table = "any"
    rows.beat = lambda *of: beat()
    rows.finish = lambda row_id, owner, state, error=None, **kept: ended.append(
        (row_id, owner, state, error, kept)
    )
    on = Claimed(rows, "id", "owner", threading.Event())
    on.carry_out(lambda: work(on))
    ((row_id, owner, *how),) = ended
    assert (row_id, owner) == ("id", "owner")
    return how


ERROR = RerankerError("No model {name!r} here.", name="x")


@pytest.mark.parametrize(
    ("gives", "how"),
    [({"result": "text"}, ["done", None, {"result": "text"}]), (ERROR, ["failed", ERROR, {}])],
)
def test_what_work_gives_and_an_error_in_words_are_kept_as_they_are(gives, how):
    def work(on):
        if gives is ERROR:
            raise ERROR
        return gives

    assert _ended(work) == how


@pytest.mark.parametrize(
    ("kind", "said"), [(Queue, "The run stopped"), (Explanations, "The explanation stopped")]
)
def test_any_other_error_is_told_with_its_kind_and_no_key(kind, said):
    def work(on):
        raise ValueError("Bearer sk-secret-0815-4711 " + "x" * 400)

    state, error, kept = _ended(work, kind=kind)
    assert (state, kept) == ("failed", {})
    assert str(error).startswith(f"{said} at an unexpected error (ValueError: Bearer •••")
    assert "0815" not in str(error)
    assert len(error.params["text"]) == 300


def test_work_beats_until_it_is_told_that_it_was_lost(monkeypatch):
    """A beat that cannot be written is not told anything; the next one may be."""
    monkeypatch.setattr(claimed, "BEAT_SECONDS", 0.001)
    # At the last beat, what the one before was told is known.
    answers, told = ["error", True, "error", False, False], threading.Event()

    def beat():
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

    assert _ended(work, beat)[0] == "cancelled"


@pytest.mark.parametrize(
    ("place", "seconds"),
    [
        (None, 0.0),
        (Place("", "http://x"), 0.0),
        (Place("RACK_API_KEY", "http://x"), KEY_SECONDS),
        (Place("OWN_API_KEY", "http://x"), 0.0),
    ],
    ids=["no service", "no key", "a key", "a key in the environment"],
)
def test_a_key_is_waited_for_where_one_is_needed_that_is_not_there(monkeypatch, place, seconds):
    monkeypatch.setenv("OWN_API_KEY", "own")
    monkeypatch.delenv("RACK_API_KEY", raising=False)
    handover = Handover()
    monkeypatch.setattr(handover, "take", lambda job_id, patience: patience)
    assert handover.take_for("job", place) == seconds
