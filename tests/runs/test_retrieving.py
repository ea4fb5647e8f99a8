"""Retrieval runs, and runs that rerank their candidates."""

import math
import threading

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.base.errors import DataError, SettingError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import SOURCE, Ranking, source_id
from rankdash.core.rerankers import create
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.runs import jobs
from rankdash.core.runs.jobs import JobRequest, StopRule
from rankdash.core.runs.retrieving import (
    Retrieval,
    retrieved,
    with_source,
    without_source,
)
from rankdash.core.runs.runner import rerank
from rankdash.core.runs.worker import Attempt
from rankdash.core.workspace.jobs.leases import Owner
from rankdash.core.workspace.jobs.queue import Queue

TEXTS = {
    "a": "return a gift",
    "b": "how to return a gift within thirty days",
    "c": "opening hours of the shop",
    "d": "bike bike bike",
    "e": "",
}
QUERIES = {"q": "return a gift", "r": "opening hours", "s": "bike gift", "t": "vélo", "u": ""}


def data_of(texts=None, queries=None, candidates=("d", "c")):
    texts, queries = TEXTS if texts is None else texts, QUERIES if queries is None else queries
    lists = [(query, list(candidates), [2.0, 1.0][: len(candidates)]) for query in queries]
    return Dataset(
        "shop",
        pd.DataFrame({"query_id": list(queries), "text": list(queries.values())}),
        pd.DataFrame({"doc_id": list(texts), "title": "", "text": list(texts.values())}),
        pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "label": [1.0, 2.0]}),
        Ranking.from_lists(lists),
    )


def lists_of(ranking):
    return {query: list(ranking.documents_of(query)[0]) for query in ranking.query_ids}


@pytest.fixture
def work(workspace):
    """Run the next job in this process, and return its row."""

    def one():
        queue, owner = Queue(workspace), Owner()
        job = queue.claim(owner)
        Attempt(workspace, owner, job, threading.Event()).run()
        return queue.row(job.id)

    return one


@pytest.fixture
def shop(workspace):
    data = data_of()
    workspace.save_dataset(data)
    return data


def test_a_query_without_a_match_is_done_and_one_without_text_fails():
    run = retrieved(data_of(), Retrieval("bm25", 2), "BM25")
    assert lists_of(run.ranking) == {"q": ["a", "b"], "r": ["c"], "s": ["d", "a"]}
    states = dict(zip(run.queries["query_id"], run.queries["state"], strict=True))
    assert states == {"q": "done", "r": "done", "s": "done", "t": "done", "u": "failed"}
    assert run.excluded == {"u": "failed"}
    assert (run.settings, run.depth) == ({"how": "bm25", "depth": 2}, None)
    assert run.queries["latency_ms"].isna().all()


def test_the_id_depends_on_the_request_only():
    first, again, deeper = (
        retrieved(data_of(), Retrieval("bm25", depth), "BM25") for depth in (2, 2, 3)
    )
    assert first.id == again.id != deeper.id


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (data_of(texts=dict.fromkeys(TEXTS, "")), "has no texts"),
        (data_of(queries=dict.fromkeys(QUERIES, "")), "has no texts"),
        (data_of(queries=dict.fromkeys(QUERIES, "vélo")), "share no word"),
    ],
)
def test_nothing_to_retrieve_is_refused(data, reason):
    with pytest.raises(DataError, match=reason):
        retrieved(data, Retrieval(), "BM25")


def test_one_document_is_enough():
    data = data_of(texts={"a": TEXTS["a"], "b": "", "c": "", "d": ""})
    run = retrieved(data, Retrieval("bm25", 100), "BM25")
    assert lists_of(run.ranking) == {"q": ["a"], "s": ["a"]}


@pytest.mark.parametrize("wrong", [{"how": "magic"}, {"depth": 0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(SettingError):
        Retrieval(**wrong)


WORDS = st.lists(st.sampled_from(["return", "gift", "hours", "bike", "shop", "day"]), max_size=5)


@given(
    st.lists(WORDS.map(" ".join), min_size=4, max_size=8),
    st.lists(WORDS.map(" ".join), min_size=1, max_size=4),
    st.integers(1, 5),
    st.one_of(st.none(), st.integers(1, 4)),
)
def test_reranking_candidates_equals_reranking_a_data_set_with_that_first_stage(
    texts, asked, retrieved_depth, depth
):
    documents = dict(zip("abcdefgh", texts, strict=False))
    queries = {f"q{at}" if at else "q": text for at, text in enumerate(asked)}
    data = data_of(documents, queries)
    try:
        source = retrieved(data, Retrieval("bm25", retrieved_depth), "BM25")
    except DataError:
        return
    tables = data.queries, data.documents, data.qrels
    other = Dataset("other", *tables, source.ranking)
    sourced = data.with_candidates(source.ranking, source.name)
    assert sourced.id == data.id != other.id
    runs = [rerank(each, create("bm25", {}), depth=depth) for each in (sourced, other)]
    mine, expected = (run.ranking.frame() for run in runs)
    assert mine.equals(expected)
    assert runs[0].queries["state"].equals(runs[1].queries["state"])
    assert runs[0].dataset_id == data.id


def test_a_worker_retrieves_and_reranks_the_candidates(workspace, shop, work):
    source = jobs.submit_retrieval(workspace, shop.id, Retrieval("bm25", 2), "BM25 · top 2")
    row = work()
    assert (row.state, row.done, row.failed, row.message) == ("done", 4, 1, "")
    request = JobRequest(shop.id, "bm25", name="again", candidates=source, fused="both")
    job_id = jobs.submit(workspace, request)
    assert work().message == ""
    run, stored = workspace.run(job_id), workspace.run(source)
    assert (source_id(run.settings), run.settings[SOURCE]) == (source, "BM25 · top 2")
    assert create("bm25", without_source(run.settings)).settings == create("bm25", {}).settings
    tables = shop.queries, shop.documents, shop.qrels
    expected = rerank(Dataset("other", *tables, stored.ranking), create("bm25", {}))
    assert lists_of(run.ranking) == lists_of(expected.ranking)
    assert run.excluded == dict.fromkeys("tu", "skipped")
    fused = workspace.run(f"{job_id}-fused")
    assert fused.settings["part_ids"] == f"{source}, {job_id}"
    # The first stage is not changed.
    assert lists_of(workspace.dataset(shop.id).candidates) == lists_of(shop.candidates)


def test_a_retrieval_that_is_impossible_fails_with_the_reason(workspace, work):
    data = data_of(texts=dict.fromkeys(TEXTS, ""))
    workspace.save_dataset(data)
    jobs.submit_retrieval(workspace, data.id, Retrieval(), "BM25")
    row = work()
    assert row.state == "failed"
    assert "has no texts" in row.message
    assert workspace.runs() == []


def test_candidates_that_cannot_be_reranked_are_refused(workspace, shop, work):
    other = run_from_ranking("file", shop.id, shop.candidates, "file.trec")
    workspace.save_run(other)
    for request, reason in (
        (JobRequest(shop.id, "bm25", candidates=other.id), "file is not a retrieval"),
        (JobRequest(shop.id, "bm25", candidates="gone"), "was deleted"),
        (JobRequest(shop.id, "bm25", candidates="x", stop=StopRule()), "stop early"),
    ):
        with pytest.raises(SettingError, match=reason):
            jobs.submit(workspace, request)
    source = jobs.submit_retrieval(workspace, shop.id, Retrieval(), "BM25")
    work()
    jobs.submit(workspace, JobRequest(shop.id, "bm25", candidates=source))
    workspace.delete_run(source)
    row = work()
    assert (row.state, row.done) == ("failed", 0)


def test_the_source_is_part_of_the_settings():
    run = retrieved(data_of(), Retrieval(), "BM25")
    settings = with_source({"k1": 1.2}, run)
    assert settings == {"k1": 1.2, "candidates": "BM25", "candidates_id": run.id}
    assert without_source(settings) == {"k1": 1.2}
    assert source_id({"k1": 1.2}) is None
    assert math.isnan(run.load_ms)
