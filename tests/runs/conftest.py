import threading
import time

import numpy as np
import pandas as pd
import pytest

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.runs import jobs
from rankdash.core.runs import worker as runs_worker
from rankdash.core.runs.jobs import JobRequest, WorkerProcess
from tests.rerankers.conftest import one_tls_context as one_tls_context


@pytest.fixture(scope="session")
def make_dataset():
    """Queries q0, q1, … each with `depth` of the documents d0, d1, … in a separate order."""

    def make(queries=6, documents=8, depth=5, without_candidates=(), query_text="", doc_text=None):
        rng = np.random.default_rng(queries)
        docs = [f"d{number}" for number in range(documents)]
        lists = []
        for number in range(queries):
            if f"q{number}" not in without_candidates:
                chosen = [docs[place] for place in rng.permutation(documents)[:depth]]
                lists.append((f"q{number}", chosen, list(np.arange(depth, 0.0, -1.0))))
        ids = [f"q{number}" for number in range(queries)]
        texts = {doc: f"text of {doc}" for doc in docs} | (doc_text or {})
        asked = [query_text or f"ask {query}" for query in ids]
        return Dataset(
            "made",
            pd.DataFrame({"query_id": ids, "text": asked}),
            pd.DataFrame({"doc_id": docs, "title": "", "text": [texts[doc] for doc in docs]}),
            pd.DataFrame({"query_id": ids, "doc_id": "d0", "label": 1.0}),
            Ranking.from_lists(lists),
        )

    return make


@pytest.fixture
def wait_until():
    def wait(holds, seconds=900.0):
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            result = holds()
            if result:
                return result
            time.sleep(0.03)
        raise AssertionError("it did not happen in time")

    return wait


@pytest.fixture
def worker(workspace):
    worker = WorkerProcess(workspace)
    yield worker
    worker.stop()


@pytest.fixture
def dataset(workspace, make_dataset):
    made = make_dataset()
    workspace.save_dataset(made)
    return made


@pytest.fixture
def submit(workspace, dataset):
    def add(reranker="bm25", settings=None, job_id=None, **fields):
        wish = JobRequest(dataset.id, reranker, settings or {}, **fields)
        return jobs.submit(workspace, wish, job_id)

    return add


@pytest.fixture
def row(workspace):
    return lambda job_id: next(row for row in jobs.list(workspace) if row.id == job_id)


@pytest.fixture
def ended(row, wait_until):
    return lambda job_id: wait_until(lambda: row(job_id).state not in jobs.LIVE and row(job_id))


@pytest.fixture
def until_told(monkeypatch):
    """Make a function that cancels work, and returns once the worker knows of it."""

    def of(rows, cancel):
        told, beat = threading.Semaphore(0), rows.beat

        def beats(self, *given):
            alive = beat(self, *given)
            if not alive:
                told.release()
            return alive

        def cancelled():
            cancel()
            # At the second failed beat, the worker knows the result of the first one.
            assert all(told.acquire(timeout=300) for _ in range(2))

        monkeypatch.setattr(runs_worker, "BEAT_SECONDS", 0.01)
        monkeypatch.setattr(rows, "beat", beats)
        return cancelled

    return of
