"""One reranker with a grid of settings: started, watched and compared as one."""

from rankdash.runs import jobs
from rankdash.store.jobs.queue import Owner, Queue


def vary(app, **values):
    app.multiselect(key="variants.bm25.names").set_value(list(values)).run()
    for name, value in values.items():
        fields = app.multiselect if isinstance(value, list) else app.text_input
        fields(key=f"variants.bm25.{name}").set_value(value)
    app.run()
    assert not app.exception
    return app


def button(app, label):
    return next(each for each in app.button if each.label == label)


def said(app):
    return "\n".join(str(item.value) for item in (*app.caption, *app.error, *app.markdown))


def end(workspace, *states):
    with workspace.database.writing() as db:
        for job, state in zip(jobs.list(workspace), states, strict=True):
            db.execute("UPDATE jobs SET state = ? WHERE id = ?", (state, job.id))


def test_a_grid_is_queued_as_runs_that_belong_together(run_form, workspace, stored):
    vary(run_form, depth="2, 3", method=["lucene", "atire"])
    assert "about 160 pairs in all" in said(run_form)
    button(run_form, "Start 4 runs").click().run()
    assert not run_form.exception
    found = jobs.list(workspace, stored)
    assert [(job.depth, job.settings["method"]) for job in found] == [
        *((2, "lucene"), (2, "atire"), (3, "lucene"), (3, "atire")),
    ]
    assert len({job.grid for job in found}) == 1 and found[0].grid
    assert {job.timing["latency"] for job in found} == {"always"}, "or shared scores tell no speed"
    assert [job.name for job in found] == [
        f"BM25 · top {depth} · Variant {method}"
        for depth in (2, 3)
        for method in ("lucene", "atire")
    ]


def test_one_value_is_one_run_of_its_own(run_form, workspace, stored):
    vary(run_form, depth="3")
    button(run_form, "Start 1 run").click().run()
    (job,) = jobs.list(workspace, stored)
    assert (job.depth, job.grid, job.timing["latency"]) == (3, None, "auto")


def test_a_value_that_cannot_be_is_said_and_starts_nothing(run_form):
    vary(run_form, b="0.5, 7")
    assert any("b" in str(error.value) and "7" in str(error.value) for error in run_form.error)
    assert button(run_form, "Start 0 runs").disabled


def test_a_grid_is_cancelled_resumed_and_removed_as_one(run_form, workspace, stored):
    vary(run_form, depth="1, 2, 3")
    button(run_form, "Start 3 runs").click().run()
    assert "3 variants" in said(run_form)
    end(workspace, "done", "queued", "queued")
    run_form.run()
    button(run_form, "Cancel").click().run()
    assert [job.state for job in jobs.list(workspace)] == ["done", "cancelled", "cancelled"]
    run_form.run()
    assert "BM25 · top 3" in said(run_form)
    button(run_form, "Resume").click().run()
    assert [job.state for job in jobs.list(workspace)] == ["done", "queued", "queued"]
    end(workspace, "done", "failed", "cancelled")
    run_form.run()
    button(run_form, "Remove").click().run()
    assert [job.state for job in jobs.list(workspace)] == ["done"]


def test_a_run_that_is_being_cancelled_says_so_and_is_cancelled_once(run_form, workspace, stored):
    button(run_form, "Start 1 run").click().run()
    (job,) = jobs.list(workspace, stored)
    Queue(workspace).claim(Owner())
    run_form.run()
    assert "loading the model · " in said(run_form)
    assert not button(run_form, "Cancel").disabled
    button(run_form, "Cancel").click().run()
    run_form.run()
    assert "cancelling after the current batch" in said(run_form)
    assert button(run_form, "Cancel").disabled
    assert jobs.list(workspace, stored)[0].id == job.id
