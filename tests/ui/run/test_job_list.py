"""Jobs that ended while a person watched, and those that cannot go on here."""

import pytest

from rankdash.runs import jobs
from tests.sets import ROOT

RUN = str(ROOT / "pages" / "run.py")


@pytest.fixture
def started(run_form):
    """The page after the start of one run, which nothing works on."""
    button(run_form, "Start 1 run").click().run()
    return run_form


def button(app, label):
    return next(each for each in app.button if each.label == label)


def labels(app):
    return [each.label for each in app.button]


def change(workspace, what: str, value: str) -> None:
    with workspace.database.writing() as db:
        db.execute(f"UPDATE jobs SET {what} = ?", (value,))


def test_a_run_that_ended_is_said_with_the_way_to_what_it_changed(started, workspace, stored):
    (run,) = workspace.runs(stored)
    change(workspace, "id", run.id)
    started.run()
    assert not started.success
    change(workspace, "state", "done")
    started.run()
    assert [each.value for each in started.success] == ["Done: BM25."]
    button(started, "Compare").click().run()
    assert not started.exception
    assert [each.value for each in started.title] == ["Overview"]
    assert started.query_params["system"] in (run.id, [run.id])


def test_a_run_that_ended_before_anyone_watched_is_no_news(app, workspace, stored):
    app.query_params["data"] = stored
    app.run()
    app.switch_page(RUN).run()
    assert not app.success


def test_a_job_whose_reranker_is_gone_is_removed_and_hides_nothing(started, workspace):
    change(workspace, "state", "failed")
    change(workspace, "reranker", "of-a-plugin")
    started.run()
    assert not started.exception
    assert any("There is no reranker" in each.value for each in started.error)
    assert "Resume" not in labels(started)
    # What stands below the jobs is still there.
    assert "Compare on Overview" in labels(started)
    button(started, "Remove").click().run()
    assert jobs.list(workspace) == ()
