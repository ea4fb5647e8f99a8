import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rankdash.dataset import Dataset
from rankdash.ranking.ranking import Ranking
from rankdash.runs.jobs import WorkerProcess
from rankdash.store import Workspace

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture
def workspace(tmp_path):
    return Workspace.open(tmp_path / "home")


@pytest.fixture(scope="session")
def make_dataset():
    """Queries q0, q1, … each with `depth` of the documents d0, d1, … in an order of its own."""

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
def hold(tmp_path):
    """Have slow workers wait before they score the query of that number, until the file that is
    given back is gone."""

    def write(queries):
        path = tmp_path / "scored.hold"
        path.write_text(str(queries))
        return path

    return write


@pytest.fixture
def start_slow_worker(workspace, tmp_path):
    """Start a worker that needs `milliseconds` for a query; queries scored go to `scored.log`."""
    running = []

    def start(milliseconds=20, home=None, kind="alone"):
        command = [sys.executable, str(HERE / "slow_worker.py"), str(tmp_path / "scored.log")]
        with (tmp_path / "worker.stderr").open("ab") as said:
            process = subprocess.Popen(
                [*command, str(milliseconds), kind, "--workspace", str(home or workspace.root)],
                env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
                stderr=said,
            )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()
