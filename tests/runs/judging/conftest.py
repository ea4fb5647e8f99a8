import threading

import pytest

from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.jobs.leases import Owner
from rankdash.features.judge.asking import JudgeRequest, Judging, submit


@pytest.fixture
def settings(server):
    free = {"key_variable": "none", "retries": 0, "read_s": 20.0}
    return {"model": "tiny", "base_url": server.url, **free}


@pytest.fixture
def dataset(workspace, make_dataset):
    """Four queries with five documents each; d7 has no text."""
    made = make_dataset(queries=4, documents=8, depth=5, doc_text={"d7": " "})
    workspace.save_dataset(made)
    return made


@pytest.fixture
def pairs(dataset):
    return [
        (query, doc)
        for query in dataset.queries["query_id"]
        for doc in dataset.candidates.documents_of(query)[0]
    ]


@pytest.fixture
def add(workspace, dataset, settings, pairs):
    def added(name="", asked=None, **changes):
        chosen = pairs if asked is None else asked
        wish = JudgeRequest(dataset.id, {**settings, **changes}, ["a", "b"], 5, chosen, name)
        return submit(workspace, wish)

    return added


@pytest.fixture
def rows(workspace):
    return StoredJudges(workspace)


@pytest.fixture
def served(rows, workspace):
    """Run a worker on the waiting work; return the row of a judge, None if it is deleted."""

    def serve(judge_id, handover=None):
        Judging(workspace, Owner(), threading.Event(), handover).serve()
        return next((row for row in rows.rows() if row.id == judge_id), None)

    return serve
