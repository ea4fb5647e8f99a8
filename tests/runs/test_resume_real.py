"""Real models, stopped and resumed, score nothing twice: 2,000 pairs by MiniLM, whose worker is
killed, and the packaged cross-encoder."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

from rankdash.dataset import Dataset
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers import create, get
from rankdash.runs import jobs
from rankdash.runs.jobs import JobRequest, Timing, WorkerProcess
from rankdash.runs.runner import rerank
from rankdash.store import Workspace
from rankdash.store.jobs.job_batches import read_parts
from rankdash.store.score_cache import ScoreCache

pytestmark = pytest.mark.model

QUERIES, DEPTH = 40, 50
WORDS = ["order", "refund", "parcel", "invoice", "battery", "doctor", "dose", "heart", "recipe"]


@pytest.fixture
def dataset():
    rng = np.random.default_rng(5)

    def text(size):
        return " ".join(rng.choice(WORDS, size))

    # No two queries share a document, so that each block has its own to embed.
    docs = [f"d{n}" for n in range(QUERIES * DEPTH)]
    ids = [f"q{n}" for n in range(QUERIES)]
    lists = [
        (query, docs[n * DEPTH : (n + 1) * DEPTH], [0.0] * DEPTH) for n, query in enumerate(ids)
    ]
    return Dataset(
        "two thousand pairs",
        pd.DataFrame({"query_id": ids, "text": [text(6) for _ in ids]}),
        pd.DataFrame({"doc_id": docs, "title": "", "text": [text(9) for _ in docs]}),
        pd.DataFrame({"query_id": ids, "doc_id": "d0", "label": 1.0}),
        Ranking.from_lists(lists),
    )


@pytest.mark.thorough
def test_2000_pairs_survive_a_kill_and_a_server_restart(
    workspace, dataset, wait_until, monkeypatch
):
    # A thread that waits for another one spins, which is slow where tests share two cores.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    workspace.save_dataset(dataset)

    def row(job_id):
        return next(row for row in jobs.list(workspace) if row.id == job_id)

    request = JobRequest(dataset.id, "bi-encoder", timing=Timing(latency="never"))
    job_id = jobs.submit(workspace, request)
    server = WorkerProcess(workspace)
    server.ensure()
    wait_until(lambda: row(job_id).done > 0)
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: server.pid is None)
    kept = read_parts(workspace, job_id).set_index("query_id")
    assert 0 < len(kept) < QUERIES
    assert row(job_id).state == "interrupted"
    server.stop()

    # Another server, which knows nothing of the first, opens the workspace.
    again = Workspace.open(workspace.root)
    next_server = WorkerProcess(again)
    try:
        jobs.resume(again, job_id)
        next_server.ensure()
        wait_until(lambda: row(job_id).state == "done")
    finally:
        next_server.stop()
    broken = again.run(job_id)
    whole = rerank(dataset, create("bi-encoder"), capabilities=get("bi-encoder").capabilities)
    assert int(broken.queries["pairs"].sum()) == QUERIES * DEPTH
    # What the first worker handed over was not scored again, nor changed.
    index_ms = broken.queries.set_index("query_id")["index_ms"]
    assert index_ms[kept.index].equals(kept["index_ms"].astype(float))
    assert broken.measured.pairs + broken.measured.cached_pairs <= (QUERIES - len(kept)) * DEPTH
    a, b = broken.ranking.frame(), whole.ranking.frame()
    assert a["doc_id"].equals(b["doc_id"])
    assert np.abs(a["score"] - b["score"]).max() < 1e-5
    assert broken.reading.read.tolist() == whole.reading.read.tolist()
    assert broken.queries["tokens"].equals(whole.queries["tokens"])


class Scoring:
    """A reranker whose texts of scored pairs are noted."""

    def __init__(self, reranker):
        self._reranker, self.pairs = reranker, []

    def __getattr__(self, name):
        return getattr(self._reranker, name)

    def score(self, requests):
        self.pairs += [(each.query, text) for each in requests for text in each.documents]
        return self._reranker.score(requests)


def test_the_packaged_cross_encoder_resumes_and_uses_the_score_cache(make_dataset, tmp_path):
    dataset = make_dataset(queries=30, depth=2)
    kind, cache = get("cross-encoder"), ScoreCache(tmp_path / "scores.sqlite")

    def scored(**given):
        reranker = Scoring(create(kind.name, {"runtime": "onnx"}))
        capabilities, timing = kind.capabilities, Timing(latency="never")
        run = rerank(dataset, reranker, capabilities=capabilities, timing=timing, **given)
        return run, reranker.pairs

    done = []

    def stop(results):
        done.extend(results)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scored(on_batch=stop)
    assert 0 < len(done) < 30
    resumed, pairs = scored(done=done, cache=cache)
    queries = {text for text, _ in pairs}
    assert len(queries) == 30 - len(done)
    assert not queries & {f"ask {result.query_id}" for result in done}
    whole, _ = scored()
    orders = [run.ranking.frame()["doc_id"].tolist() for run in (resumed, whole)]
    assert orders[0] == orders[1]
    again, pairs = scored(cache=cache)
    # The query of the first call, whose answer is thrown away, may be one that is not cached.
    assert again.measured.cached_pairs == 2 * len(queries)
    assert not queries & {text for text, _ in pairs}
    assert again.ranking.frame()["doc_id"].tolist() == orders[0]
