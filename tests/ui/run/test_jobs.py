"""Cards of jobs on the page Run, and the interval of their updates."""

import json
import math
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rankdash.core.data.measured import Measured, Stopped
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.runs import jobs
from rankdash.core.runs.jobs import StopRule
from rankdash.core.runs.stopping import Look
from rankdash.core.workspace.jobs.queue import Queue
from rankdash.features.run import page_jobs
from tests.stored import keep_rows
from tests.ui.page_text import page_text
from tests.ui.sessions import part


@pytest.fixture(autouse=True)
def worker(hand, monkeypatch):
    # A running job is not marked as failed, however slow the machine is.
    monkeypatch.setattr("rankdash.core.workspace.jobs.leases.STALE_SECONDS", math.inf)
    return hand


def put(
    workspace, data, name, state="queued", *, reranker="bm25", grid=None, fused=None, **columns
):
    """Put a job into a state; a new job is queued first."""
    if name not in {row.id for row in jobs.list(workspace)}:
        settings = {"base_url": "http://127.0.0.1:9"} if reranker == "endpoint" else {}
        Queue(workspace).submit(
            dataset_id=data, name=name, reranker=reranker, settings=settings, depth=None,
            sample=None, seed=0, grid=grid, job_id=name, fused=fused,
        )  # fmt: skip
    lives = {"worker": "w", "host": "elsewhere", "pid": 1, "heartbeat": time.time()}
    columns |= {"state": state} | (lives if state == "running" else {})
    names = ", ".join(f"{each} = :{each}" for each in columns)
    with workspace.database.writing() as db:
        db.execute(f"UPDATE jobs SET {names} WHERE id = :at", {"at": name, **columns})


@pytest.fixture
def add(workspace, stored):
    return lambda name, state="queued", data=stored, **more: put(
        workspace, data, name, state, **more
    )


COUNTS = {"pairs_done": 5, "pairs_total": 10, "done": 1, "total": 2}
RATE = {"rate_pairs_s": 2.4, "seconds_left": 3.0}
NO_DISK = json.dumps({"template": "No {what}.", "remedy": "Free it.", "params": {"what": "*x*"}})


def stop(**fields):
    return json.dumps(StopRule(**fields).as_dict())


def look(done, *numbers):
    change, low, high = numbers or [math.nan] * 3
    return json.dumps(Look(done, done, change, low, high).as_dict())


COUNTED = {"pairs_done": 31, "pairs_total": 102, "done": 61, "total": 200, "stage": "scoring"}
STOP = {"stop": stop(dollars=10.2), **COUNTED}
SINGLE = {
    "it waits": ("queued", {}),
    "it waits again, so no time is left": ("queued", COUNTS | RATE),
    "it has just been taken": ("running", {}),
    "it scores": ("running", {"stage": "scoring"} | COUNTS | RATE | {"failed": 1}),
    "more pairs than expected are all": ("running", COUNTS | {"pairs_done": 11}),
    "a limit refuses requests": ("running", COUNTS | {"requests": 8, "refused": 2}),
    "it times": ("running", {"stage": "timing"}),
    "it is being cancelled": ("running", {"stage": "scoring", "cancel": 1}),
    "its result is open": ("running", {"look": look(60, 0.01, -0.02, 0.04)} | STOP),
    "it is too early for a result": ("running", {"look": look(9)} | STOP),
    "its result is conclusive": ("running", {"look": look(61, 0.05, 0.01, 0.09)} | STOP),
    "its result is conclusive, and it has no price": (
        "running",
        {"look": look(61, -0.05, -0.09, -0.01), "stop": stop()} | COUNTED,
    ),
    "it stops by itself": (
        "running",
        {"look": look(61, 0.05, 0.01, 0.09), "stop": stop(by_itself=True)} | COUNTED,
    ),
    "it failed": ("failed", {"problem": NO_DISK}),
    "something is done": ("cancelled", {"done": 1}),
    "several are done": ("interrupted", {"done": 2}),
    "it is done and has no card": ("done", {}),
}
GRIDS = {
    "one of two is done": [("done", {}), ("running", {"stage": "scoring"} | COUNTS)],
    "one of three runs": [("done", {}), ("queued", {}), ("running", {"stage": "scoring"})],
    "both are being cancelled": [("running", {"cancel": 1})] * 2,
    # A stopped part is reported while others run; the job can be resumed after the last has ended.
    "one failed and one waits": [("failed", {"problem": NO_DISK}), ("queued", {})],
    "one is done and one failed": [("done", {}), ("failed", {})],
    "both stopped": [("cancelled", {}), ("interrupted", {})],
    "both are done and have no card": [("done", {})] * 2,
}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_cards_of_jobs(add, workspace, approved, lang):
    long_ago = (datetime.now(UTC) - timedelta(hours=2, minutes=5, seconds=5)).isoformat()
    for name, (state, columns) in SINGLE.items():
        add(name, state, **columns)
    for stage in ("loading", "converting", "exporting", "choosing", "warming"):
        add(f"since two hours: {stage}", "running", stage=stage, started=long_ago)
    add("loading since ever", "running", stage="loading")
    add("of a plugin that is gone", "failed", reranker="of-a-plugin")
    add("of a service", "failed", reranker="endpoint")
    for grid, variants in GRIDS.items():
        for place, (state, columns) in enumerate(variants):
            add(f"{grid} {place}", state, grid=grid, **columns)
    add("of another data set", data=keep_rows(workspace, "query,document,label\na,b,1\n", "B"))
    app = part(page_jobs.draw, workspace.datasets()[0].id, lang=lang)
    approved(f"pages/jobs.{lang}", page_text(app))


@pytest.mark.parametrize(
    ("before", "now", "every", "again"),
    [
        (None, None, 10.0, False),
        ("failed", "failed", 10.0, False),
        ("running", "running", 1.0, False),
        ("running", "done", 1.0, True),
        ("failed", "running", 10.0, True),
    ],
)
def test_jobs_are_looked_at_often_while_one_is_live_and_the_page_learns_of_an_end(
    add, workspace, stored, worker, monkeypatch, before, now, every, again
):
    fragment, found = page_jobs.st.fragment, []

    def watched(run_every):
        found.append(run_every)

        def made(draw):
            def later():
                if now:
                    put(workspace, stored, "a", now)
                draw()

            return fragment(later)

        return made

    def shown():
        if before == "running":
            page_jobs.watch("a")
        page_jobs.draw(stored)

    if before:
        add("a", before)
    monkeypatch.setattr(page_jobs.st, "fragment", watched)
    monkeypatch.setattr(page_jobs.st, "rerun", lambda **how: found.append(how))
    part(shown)
    assert found[0] == every and ({"scope": "app"} in found) is again
    assert bool(worker.asked) is (now == "running")


def test_a_conclusive_run_is_stopped_or_goes_on(add, workspace, stored):
    add("a", "running", look=look(61, 0.05, 0.01, 0.09), **STOP)
    add("b", "running", look=look(61, 0.05, 0.01, 0.09), **STOP)

    def rules():
        return [row.stop["by_itself"] for row in jobs.list(workspace)]

    app = part(page_jobs.draw, stored)
    app.button(key="continue.a").click().run()
    assert rules() == [False, False]
    assert "stop.a" not in {button.key for button in app.button}
    assert any("Conclusive after 61" in each.value for each in app.caption)
    app.button(key="stop.b").click().run()
    assert rules() == [False, True]
    assert not {"stop.b", "continue.b"} & {button.key for button in app.button}


def test_a_run_that_stopped_early_is_named_at_its_end(add, workspace, stored):
    dataset = workspace.dataset(stored)
    run = run_from_ranking("mini", stored, dataset.candidates, "mini.trec")
    workspace.save_run(replace(run, measured=Measured(stopped=Stopped(45, 90))))
    add(run.id, "running")
    app = part(page_jobs.draw, stored)
    add(run.id, "done")
    app.run()
    assert any("45 of 90 queries are scored" in each.value for each in app.success)
