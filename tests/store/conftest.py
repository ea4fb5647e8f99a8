import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import Level, Measured
from rankdash.core.data.ranking import Ranking, Reading, Run
from rankdash.core.workspace import checksums, database

ROOT = Path(__file__).parents[2]


@pytest.fixture
def stored(workspace, make_dataset, make_run):
    """The data set in `workspace`, with the run "run-1"."""
    dataset = make_dataset()
    workspace.save_dataset(dataset, report_json="{}")
    workspace.save_run(make_run(dataset))
    return dataset


@pytest.fixture(scope="session")
def make_dataset():
    """A small data set with fragile values: leading zeros, missing text, ties, Chinese."""

    def make(name="small", salt="", ties="stable"):
        queries, docs = ["007", "7", "二"], ["1", "01", "NA"]
        texts, types = ["seven" + salt, None, "怎么退货"], ["a", None, "b"]
        titles, bodies = ["One", "", "", "nan"], ["first\nline", None, "", "未知"]
        return Dataset(
            name,
            pd.DataFrame({"query_id": queries, "text": texts, "type": types}),
            pd.DataFrame({"doc_id": ["1", "01", "1.0", "NA"], "title": titles, "text": bodies}),
            pd.DataFrame({"query_id": queries, "doc_id": docs, "label": [2.5, -1.0, 0.0]}),
            Ranking.from_columns(
                ["二", "007", "007", "007", "7"],
                ["NA", "1", "01", "1.0", "1"],
                [1.0, 0.5, 0.5, 2.0, 1e-300],
                ties=ties,
            ),
            first_stage="bm25",
        )

    return make


@pytest.fixture(scope="session")
def make_run():
    def make(dataset, run_id="run-1", name="a run"):
        return Run(
            id=run_id,
            name=name,
            dataset_id=dataset.id,
            ranking=Ranking.from_lists(
                [("007", ["01", "1", "1.0"], [3.0, 3.0, float("nan")]), ("7", ["1"], [0.1])]
            ),
            reranker="bm25",
            queries=pd.DataFrame(
                {
                    "query_id": ["007", "7", "二"],
                    "state": ["done", "done", "failed"],
                    "reason": ["", "", "no answer"],
                    "latency_ms": [10.0, 30.0, np.nan],
                    "index_ms": [60.0, np.nan, np.nan],
                    "pairs": [3.0, 1.0, np.nan],
                    "tokens": [12.0, 5.0, np.nan],
                    "truncated": [0.0, 1.0, np.nan],
                }
            ),
            settings={"k1": 1.2, "language": "auto", "cased": False, "n": 3},
            machine={"cpu": "any", "logical_cpus": 2},
            depth=2,
            load_ms=123.5,
            created="2026-01-02T03:04:05+00:00",
            measured=Measured(
                pairs=4,
                computed_tokens=17.0,
                seconds=0.1,
                cpu_seconds=0.15,
                index_seconds=0.06,
                together=2,
                repeats=2,
                repeated_ms={"007": (1.0, 2.5)},
                threads=2,
                load_start=0.5,
                unknown_tokens=0.02,
                throughput=(Level(2, 5.0, 40, 1, 10.0, 30.0, 8.0, 24.0, 1.9),),
            ),
            calls=pd.DataFrame(
                {"query_id": ["007"], "start_s": [1.5], "ms": [12.0], "billed": ['{"units": 1}']}
            ).astype({"query_id": "str", "billed": "str"}),
            reading=Reading(
                np.array([5, 7, -1, 5], dtype=np.int32), np.array([5, 9, -1, 8], dtype=np.int32)
            ),
        )

    return make


@pytest.fixture
def python():
    """Run Python code in a separate process, in the project's root; do not wait."""
    running = []

    def start(code, *arguments):
        asked = [sys.executable, "-c", code, *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        running.append(subprocess.Popen(asked, cwd=ROOT, **pipes))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def all_pass(python):
    """Run the same code several times in parallel, with `arguments` and then a number."""

    def run(code, *arguments, times=4):
        started = [python(code, *arguments, number) for number in range(times)]
        said = []
        for process in started:
            out, failed = process.communicate(timeout=300)
            assert process.returncode == 0, failed
            said.append(out)
        return said

    return run


@pytest.fixture
def on(monkeypatch):
    """Change the date of today."""

    def set_day(day):
        for module in (checksums, database):
            monkeypatch.setattr(module, "today", lambda: day)

    return set_day


@pytest.fixture
def open_folder():
    """A folder that every user can read; pytest's folders are private."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for place in (folder, *folder.iterdir()):
        place.chmod(0o755)
    shutil.rmtree(folder)
