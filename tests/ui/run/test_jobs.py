"""Jobs on the page Run: what their cards say and offer, what that does, and what is told of those
that ended while a person watched."""

import json
import math
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rankdash.runs import jobs
from rankdash.store.jobs.queue import Queue
from rankdash.ui.run import job_list
from rankdash.ui.sidebar import view
from rankdash.ui.state import address
from rankdash.ui.widgets import dialogs
from tests.stored import keep_rows
from tests.ui.page_text import page_text
from tests.ui.sessions import part, press, said


@pytest.fixture(autouse=True)
def worker(hand, monkeypatch):
    # However slow the machine is, what runs is not written off.
    monkeypatch.setattr("rankdash.store.jobs.leases.STALE_SECONDS", math.inf)
    return hand


@pytest.fixture
def add(workspace, stored):
    """Queues a job and puts it into a state."""

    def added(
        name, state="queued", *, reranker="bm25", grid=None, data=stored, fused=None, **columns
    ):
        settings = {"base_url": "http://127.0.0.1:9"} if reranker == "endpoint" else {}
        job_id = Queue(workspace).submit(
            dataset_id=data, name=name, reranker=reranker, settings=settings, depth=None,
            sample=None, seed=0, grid=grid, job_id=name, fused=fused,
        )  # fmt: skip
        lives = {"worker": "w", "host": "elsewhere", "pid": 1, "heartbeat": time.time()}
        change(workspace, job_id, state=state, **(lives if state == "running" else {}), **columns)
        return job_id

    return added


def change(workspace, job_id, **columns):
    names = ", ".join(f"{name} = :{name}" for name in columns)
    with workspace.database.writing() as db:
        db.execute(f"UPDATE jobs SET {names} WHERE id = :at", {"at": job_id, **columns})


def keep(workspace, dataset_id, names):
    """A stored run for each letter, which is its id."""
    run = workspace.run(workspace.runs(dataset_id)[0].id)
    for name in names:
        workspace.save_run(replace(run, id=name, name=name))


def states(workspace):
    return {row.id: row.state for row in jobs.list(workspace)}


COUNTS = {"pairs_done": 5, "pairs_total": 10, "done": 1, "total": 2}
RATE = {"rate_pairs_s": 2.4, "seconds_left": 3.0}
NO_DISK = json.dumps({"template": "No {what}.", "remedy": "Free it.", "params": {"what": "*x*"}})
SINGLE = {
    "it waits": ("queued", {}),
    "it waits again, so no time is left": ("queued", COUNTS | RATE),
    "it has just been taken": ("running", {}),
    "it scores": ("running", {"stage": "scoring"} | COUNTS | RATE | {"failed": 1}),
    "more pairs than expected are all": ("running", COUNTS | {"pairs_done": 11}),
    "a limit refuses requests": ("running", COUNTS | {"requests": 8, "refused": 2}),
    "it times": ("running", {"stage": "timing"}),
    "it is being cancelled": ("running", {"stage": "scoring", "cancel": 1}),
    "it failed": ("failed", {"problem": NO_DISK}),
    "something is done": ("cancelled", {"done": 1}),
    "several are done": ("interrupted", {"done": 2}),
    "it is done and has no card": ("done", {}),
}
GRIDS = {
    "one of two is done": [("done", {}), ("running", {"stage": "scoring"} | COUNTS)],
    "one of three runs": [("done", {}), ("queued", {}), ("running", {"stage": "scoring"})],
    "both are being cancelled": [("running", {"cancel": 1})] * 2,
    # What stopped is told while the others go on, and resumed once none does.
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
    app = part(job_list.draw, workspace.datasets()[0].id, lang=lang)
    approved(f"pages/jobs.{lang}", page_text(app))


def test_what_is_clicked_is_done(add, workspace, stored, worker, monkeypatch):
    asked = []
    monkeypatch.setattr(dialogs, "delete", lambda *given: asked.append(given))
    add("waits")
    add("runs", "running")
    add("failed", "failed")
    add("scored", "cancelled", done=1)
    for name, state in (("g1", "done"), ("g2", "queued"), ("g3", "running")):
        add(name, state, grid="g")
    app = part(job_list.draw, stored)
    for key in ("waits", "runs", "g"):
        # It draws the cards alone again, which no test can.
        app.button(key=f"cancel.{key}").click().run()
        app.run()
    assert [row.id for row in jobs.list(workspace) if row.cancelling] == ["runs", "g3"]
    assert (states(workspace)["waits"], states(workspace)["g2"]) == ("cancelled", "cancelled")
    change(workspace, "g3", state="interrupted", cancel=0)
    app.run()
    before = worker.asked
    app.button(key="resume.g").click().run()
    assert [states(workspace)[each] for each in ("g1", "g2", "g3")] == ["done", "queued", "queued"]
    app.button(key="resume.failed").click().run()
    assert states(workspace)["failed"] == "queued" and worker.asked > before
    change(workspace, "g3", state="failed")
    change(workspace, "g2", state="cancelled")
    app.run()
    for key in ("g", "waits", "scored"):
        app.button(key=f"remove.{key}").click().run()
    # Done variants stay, and what is scored is not lost without a question.
    assert set(states(workspace)) == {"runs", "failed", "scored", "g1"}
    [(title, sentences, remove)] = asked
    assert (title, sentences) == ("Remove this run?", ["scored", "1 scored query is lost."])
    remove()
    assert "scored" not in states(workspace)


def test_a_stopped_job_of_a_service_goes_on_with_its_key(add, workspace, stored, worker):
    for name in ("a", "b"):
        add(name, "failed", reranker="endpoint", grid="g")
    app = part(job_list.draw, stored)
    app.button(key="resume.g").click().run()
    assert "No key yet. Type it." in said(app) and set(states(workspace).values()) == {"failed"}
    app.text_input(key="key.g.0").set_value(" sk-1 ").run()
    app.button(key="resume.g").click().run()
    assert set(states(workspace).values()) == {"queued"}
    assert [list(keys.values()) for keys in worker.keys.values()] == [["sk-1"], ["sk-1"]]


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        # It ended before anyone watched.
        (["a=done"], [""]),
        (["a=running b=queued", "a=done b=running", "a=done b=done d=failed"],
         ["", "", "Done: a, b."]),
        # Those that ended before the next ones began were told of.
        (["a=running", "a=done", "a=done b=running", "a=done b=done"],
         ["", "Done: a.", "", "Done: b."]),
        # What is not stored any more is not compared.
        (["y=running", "y=done"], ["", ""]),
        (["a=running", "a=done!"], ["", "Done: a. 5 queries failed: select the run in the list to "
         "retry them."]),
        # One with its fusion with the first stage.
        (["c=running", "c=done"], ["", "Done: c, c fused."]),
        (["g:a=running g:b=done", "g:a=done g:b=done"], ["", "2 variants are done."]),
        (["g:a=running g:y=done", "g:a=done g:y=done"], ["", ""]),
        (["g:a=done g:b=done"], [""]),
        # One that ended waits for the one that began after it.
        (["g:a=running g:b=running", "g:a=done g:b=done h:e=running h:d=done",
          "g:a=done g:b=done h:e=done h:d=done"], ["", "", "2 variants are done."]),
    ],
)  # fmt: skip
def test_what_ended_is_told_to_those_who_watched(add, workspace, stored, steps, told):
    named = {each[each.find(":") + 1] for each in " ".join(steps).split()}
    keep(workspace, stored, [*named - {"y"}, *(["c-fused"] if "c" in named else [])])
    app, found = None, []
    for step in steps:
        for each in step.split():
            grid, _, rest = each.rpartition(":")
            name, state = rest.rstrip("!").split("=")
            if name not in states(workspace):
                add(name, "running", grid=grid or None, fused="c fused" if name == "c" else None)
            change(workspace, name, state=state, failed=5 if each.endswith("!") else 0)
        app = app.run() if app else part(job_list.draw, stored)
        found.append(" ".join(str(each.value) for each in (*app.success, *app.warning)))
    assert found == told


@pytest.mark.parametrize(
    ("grid", "base", "systems"), [(None, None, "abcdefgh"), ("g", ["a"], "bcdefgh")]
)
def test_what_ended_is_compared_as_far_as_by_default(
    add, workspace, stored, monkeypatch, grid, base, systems
):
    """The first variant of a grid is the baseline of the others."""
    went = []
    monkeypatch.setattr(view, "go", lambda page: went.append((page, address.offered())))
    keep(workspace, stored, "abcdefghij")
    for name in "abcdefghij":
        add(name, "running", grid=grid)
    app = part(job_list.draw, stored)
    for name in "abcdefghij":
        change(workspace, name, state="done")
    press(app.run(), "Compare")
    [(page, chosen)] = went
    assert page == "overview"
    assert (chosen.get("base"), chosen["system"]) == (base, list(systems))
    # Gone to once, it is told no more.
    assert not app.run().success


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
    fragment, found = job_list.st.fragment, []

    def watched(run_every):
        found.append(run_every)

        def made(draw):
            def later():
                if now:
                    change(workspace, "a", state=now)
                draw()

            return fragment(later)

        return made

    def shown():
        if before == "running":
            job_list.watch("a")
        job_list.draw(stored)

    if before:
        add("a", "running")
        change(workspace, "a", state=before)
    monkeypatch.setattr(job_list.st, "fragment", watched)
    monkeypatch.setattr(job_list.st, "rerun", lambda **how: found.append(how))
    part(shown)
    assert found[0] == every and ({"scope": "app"} in found) is again
    assert bool(worker.asked) is (now == "running")
