"""How the work on what a worker claimed ends, with nothing of a worker but that."""

import threading
from types import SimpleNamespace

import pandas as pd
import pytest

from rankdash.errors import RerankerError
from rankdash.rerankers.remote.keys import Place
from rankdash.runs import worker
from rankdash.runs.claimed import Claimed
from rankdash.runs.key_pipe import KEY_SECONDS, Handover
from rankdash.runs.runner import Cancelled
from rankdash.runs.worker import Pace


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


def test_what_is_there_at_once_says_nothing_of_the_pace():
    pace = Pace()
    pace.mark(10.0, 0)
    assert pace.rate is None
    pace.mark(10.0 + worker._AT_ONCE_SECONDS / 2, 500)
    assert pace.rate is None
    pace.mark(12.0, 520)
    assert pace.rate == 10.0
    assert pace.seconds_left(30) == 3.0
    apart = Pace()
    apart.mark(0.0, 0)
    apart.mark(worker._AT_ONCE_SECONDS, 10)
    assert apart.rate == pytest.approx(200.0)


def test_time_that_went_to_something_else_is_in_no_pace():
    pace = Pace()
    pace.mark(0.0, 0)
    pace.mark(1.0, 10)
    pace.skip(5.0)
    pace.mark(7.0, 20)
    assert pace.rate == 10.0


@pytest.mark.parametrize(
    ("states", "refused"),
    [(["failed", "done"], False), (["failed", "failed"], True), (["skipped"], False)],
)
def test_a_run_of_which_all_queries_failed_is_no_result(states, refused):
    queries = pd.DataFrame({"state": states, "reason": [f"why {state}." for state in states]})
    run = SimpleNamespace(queries=queries)
    if refused:
        with pytest.raises(RerankerError, match=r"none of 2\. .* because: why failed\."):
            worker._refuse_all_failed(run)
    else:
        worker._refuse_all_failed(run)


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
