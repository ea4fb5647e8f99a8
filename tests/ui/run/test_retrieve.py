"""The form *Retrieve* of the page Run, and reranking the candidates of a retrieval."""

import threading
import time
from dataclasses import replace

import pytest

from rankdash.core.data.ranking import SOURCE, source_id
from rankdash.core.runs import jobs
from rankdash.core.runs.jobs import JobRequest, WorkerProcess
from rankdash.core.runs.retrieving import Retrieval
from rankdash.core.runs.worker import Attempt
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.workspace.jobs.leases import Owner
from rankdash.core.workspace.jobs.queue import Queue
from rankdash.features.run import page_form, page_jobs, page_retrieve
from rankdash.kit.widgets.run_records import reranker_title, setting_titles
from tests.stored import keep_rows
from tests.ui.page_text import page_text
from tests.ui.sessions import part, whole


@pytest.fixture(autouse=True)
def worker(hand):
    return hand


@pytest.fixture
def work(workspace):
    """Run all queued jobs in this process."""

    def all_jobs():
        queue, owner = Queue(workspace), Owner()
        while (job := queue.claim(owner)) is not None:
            Attempt(workspace, owner, job, threading.Event()).run()
            assert queue.row(job.id).state == "done", queue.row(job.id).message

    return all_jobs


def form(data, lang="en"):
    return part(page_retrieve.form, data, lang=lang)


def only(app, *methods):
    """Choose these methods."""
    [pills] = [each for each in app.button_group if each.key.startswith("retrieve.how")]
    return pills.set_value(list(methods)).run()


def texts_of(app):
    return " ".join(str(each.value) for each in (*app.info, *app.caption, *app.warning))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_form(stored, approved, lang):
    approved(f"pages/retrieve.{lang}", page_text(form(stored, lang)))


def test_a_retrieval_is_a_run_whose_candidates_can_be_reranked(workspace, stored, work):
    app = form(stored)
    app.number_input(key=f"retrieve.depth.{stored}").set_value(3).run()
    only(app, "bm25").button(key="retrieve.start").click().run()
    [job] = jobs.list(workspace)
    assert (job.name, job.settings) == ("BM25 · top 3", {"how": "bm25", "depth": 3})
    work()
    [row] = [each for each in workspace.runs(stored) if each.reranker == "retrieval"]
    app = part(page_form.draw, stored, state={"run.rerankers": ["bm25"]})
    source = app.selectbox(key=f"run.source.{stored}")
    assert source.options[1:] == ["BM25 · top 3"]
    app = source.set_value(row.id).run()
    # A fusion with the first stage and an early stop compare with other candidates.
    assert not [each for each in app.checkbox if each.key.startswith("run.fused")]
    [start] = [each for each in app.button if each.label == "Start 1 run"]
    start.click().run()
    [waiting] = [each for each in jobs.list(workspace) if each.state == "queued"]
    assert waiting.name == "BM25 · candidates of BM25 · top 3"
    work()
    run = workspace.run(waiting.id)
    assert (source_id(run.settings), run.settings[SOURCE]) == (row.id, "BM25 · top 3")
    retrieved = workspace.run(row.id).ranking
    for query in run.ranking.query_ids:
        assert {*run.ranking.documents_of(query)[0]} == {*retrieved.documents_of(query)[0]}


def test_without_a_retrieval_there_is_no_choice_of_candidates(stored):
    app = part(page_form.draw, stored, state={"run.rerankers": ["bm25"]})
    assert not [each for each in app.selectbox if each.key == f"run.source.{stored}"]


def test_one_click_retrieves_by_every_method(workspace, stored):
    app = form(stored).button(key="retrieve.start").click().run()
    assert [job.settings["how"] for job in jobs.list(workspace)] == ["bm25", "bi-encoder", "hybrid"]
    assert only(app).button(key="retrieve.start").disabled


def test_the_same_retrieval_again_has_another_name(workspace, stored):
    for _ in range(2):
        only(form(stored), "bm25").button(key="retrieve.start").click().run()
    first, second = (job.name for job in jobs.list(workspace))
    assert first != second


def test_files_without_texts_and_with_one_document(workspace, work):
    rows = keep_rows(workspace, "query_id,doc_id,label,score\na,b,1,2\nc,b,0,1\n", "ids")
    app = form(rows)
    assert "needs texts" in texts_of(app) and not app.button
    one = keep_rows(workspace, "query,document,label\nfind it,it is here,1\n", "one")
    app = form(one)
    assert app.number_input[0].value == app.number_input[0].max == 1
    only(app, "bm25").button(key="retrieve.start").click().run()
    work()
    [row] = [each for each in workspace.runs(one) if each.reranker == "retrieval"]
    assert row.name == "BM25 · top 1"


def test_without_models_vectors_are_not_promised(stored, no_models):
    app = form(stored)
    assert not app.warning
    assert only(app, "bm25", "hybrid").warning


def test_a_stopped_retrieval_can_be_resumed(workspace, stored, work):
    job_id = jobs.submit_retrieval(workspace, stored, Retrieval(), "BM25")
    jobs.cancel(workspace, job_id)
    app = part(page_jobs.draw, stored)
    app.button(key=f"resume.{job_id}").click().run()
    work()
    assert job_id in {row.id for row in workspace.runs(stored)}


def test_a_running_retrieval_names_what_it_does(workspace, stored):
    jobs.submit_retrieval(workspace, stored, Retrieval(), "BM25")
    Queue(workspace).claim(Owner())
    assert "retrieving from all documents" in page_text(part(page_jobs.draw, stored))


@pytest.mark.parametrize("page", [
    "overview", "queries", "rank_shifts", "latency", "cost", "policy", "report", "history", "run",
])  # fmt: skip
def test_every_page_shows_a_retrieval_as_baseline_and_a_run_over_its_candidates(
    page, workspace, stored, work
):
    source = jobs.submit_retrieval(workspace, stored, Retrieval("bm25", 3), "BM25 · top 3")
    work()
    request = JobRequest(stored, "bm25", name="again", candidates=source, depth=2)
    run = jobs.submit(workspace, request)
    work()
    for base, systems in ((source, [run, FIRST_STAGE]), (FIRST_STAGE, [source, run])):
        app = whole(page, data=stored, base=base, system=systems)
        assert not app.exception, app.exception[0].message
        text = page_text(app)
        assert "again" in text or "BM25 · top 3" in text
        assert page != "latency" or "a retrieval; its latency is not measured" in text
        assert "imported from a file" not in text
        # Only the first stage costs nothing.
        assert base == source or "has no value" not in text


def test_a_worker_process_retrieves(workspace, stored):
    process = WorkerProcess(workspace)
    job_id = jobs.submit_retrieval(workspace, stored, Retrieval(), "BM25")
    try:
        process.ensure()
        limit = time.monotonic() + 300
        while time.monotonic() < limit and jobs.list(workspace)[0].state in jobs.LIVE:
            time.sleep(0.1)
    finally:
        process.stop()
    assert jobs.list(workspace)[0].message == ""
    assert workspace.run(job_id).reranker == "retrieval"


def test_titles_of_a_retrieval_are_known():
    assert reranker_title("retrieval") == "Retrieval"
    assert setting_titles("retrieval") == {"how": "Method", "depth": "Depth"}
    assert replace(Retrieval(), depth=3).as_dict() == {"how": "bm25", "depth": 3}
