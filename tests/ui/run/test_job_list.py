"""Jobs that ended while a person watched, and those that cannot go on here."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from rankdash.runs import jobs
from rankdash.ui.run import job_list
from rankdash.ui.state import address
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


def test_the_fusion_that_was_made_with_a_run_is_compared_too(run_form, workspace, stored):
    run_form.checkbox(key="run.fused.False").set_value(True).run()
    button(run_form, "Start 2 runs").click().run()
    (job,) = jobs.list(workspace, stored)
    assert (job.name, job.fused) == ("BM25", "BM25 + first stage (RRF)")
    (run,) = workspace.runs(stored)
    for run_id in job.runs:
        workspace.save_run(replace(workspace.run(run.id), id=run_id))
    change(workspace, "state", "done")
    run_form.run()
    assert [each.value.replace("\\", "") for each in run_form.success] == [
        "Done: BM25, BM25 + first stage (RRF)."
    ]
    button(run_form, "Compare").click().run()
    assert run_form.query_params["system"] == list(job.runs)


def test_a_run_that_ended_before_anyone_watched_is_no_news(app, workspace, stored):
    app.query_params["data"] = stored
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


def job(**changes: object) -> SimpleNamespace:
    usual = {"id": "a", "grid": None, "state": "queued", "stage": "", "cancelling": False,
             "pairs_done": 0, "pairs_total": 0, "done": 0, "total": 0, "failed": 0,
             "requests": 0, "refused": 0, "rate_pairs_s": None, "seconds_left": None,
             "started": None,
             "dataset_id": "shop"}  # fmt: skip
    return SimpleNamespace(**(usual | changes))


def test_the_variants_of_a_grid_stand_together_until_all_are_done():
    rows = [
        job(id="1", grid="g", state="done"), job(id="2", state="done"), job(id="3", grid="g"),
        job(id="4", state="failed"), job(id="5", grid="h", state="done"),
    ]  # fmt: skip
    found = job_list._unfinished(rows)
    assert [[row.id for row in group] for group in found] == [["1", "3"], ["4"]]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"state": "running", "stage": "scoring"}, "scoring"),
        ({"state": "running", "stage": "scoring", "cancelling": True},
         "cancelling after the current batch"),
        ({"state": "running", "stage": "loading"}, "loading the model · –"),
        ({"state": "running", "stage": "warming"}, "warming up · –"),
        ({"state": "running", "stage": "timing"}, "all scored; measuring the throughput"),
        ({"state": "running"}, "starting"),
        ({"state": "queued", "stage": "scoring"}, "waiting for its turn"),
        ({"state": "interrupted"}, "interrupted"),
    ],
)  # fmt: skip
def test_a_job_says_what_it_does(row, said):
    assert job_list._state(job(**row)) == said


def test_a_step_of_the_preparation_says_how_long_it_has_gone_on():
    since = (datetime.now(UTC) - timedelta(hours=2, minutes=5)).isoformat()
    row = job(state="running", stage="exporting", started=since)
    assert job_list._state(row) == "exporting the model to ONNX, once for each model · 2 h 5 min"


@pytest.mark.parametrize(
    ("done", "total", "share"), [(0, 0, 0.0), (5, 10, 0.5), (10, 10, 1.0), (11, 10, 1.0)]
)
def test_a_share_is_of_the_pairs_and_at_most_all(done, total, share):
    assert job_list._share(job(pairs_done=done, pairs_total=total)) == share


def test_the_time_left_is_said_of_a_job_that_runs():
    counts = {"pairs_done": 5, "pairs_total": 10, "done": 1, "total": 2}
    assert job_list._progress(job(**counts)) == "5 of 10 pairs · 1 of 2 queries"
    running = job(**counts, state="running", rate_pairs_s=2.4, seconds_left=3.0, failed=1)
    parts = job_list._progress(running).split(" · ")
    assert parts[2] == "2 pairs a second" and parts[3].endswith(" left")
    assert parts[4:] == ["1 query failed"]
    busy = job_list._progress(job(**counts, state="running", requests=8, refused=2))
    assert busy.split(" · ")[-1] == "2 of 8 requests refused (429), 25%"
    queued = job(**counts, state="queued", rate_pairs_s=2.4, seconds_left=3.0)
    assert not any("left" in part for part in job_list._progress(queued).split(" · "))


@pytest.fixture
def runs(monkeypatch):
    """The runs that are stored, by their ids."""

    def of(ids: str) -> None:
        rows = [SimpleNamespace(id=each) for each in ids]
        store = SimpleNamespace(runs=lambda: rows)
        monkeypatch.setattr(job_list, "workspace", lambda: store)

    return of


def rows(grid: str | None = None, **states: str) -> list[SimpleNamespace]:
    return [
        job(id=each, name=each, state=state, grid=grid, runs={each: each})
        for each, state in states.items()
    ]


def test_single_runs_that_were_watched_are_offered_once_none_is_live(paper, session, runs):
    runs("abg")
    drawn = paper(job_list)
    drawn.session_state = session
    grid = rows("grid", g="done")
    job_list._offer_overview([*rows(a="done"), *grid])
    assert drawn.drawn == [], "it ended before anyone watched"
    job_list._offer_overview([*rows(a="running", b="queued"), *grid])
    job_list._offer_overview([*rows(a="done", b="running"), *grid])
    assert drawn.drawn == []
    job_list._offer_overview([*rows(a="done", b="done", c="failed"), *grid])
    assert drawn.of("success") == ["Done: a, b."]
    # The next ones begin anew.
    job_list._offer_overview(rows(a="done", b="done", c="running"))
    job_list._offer_overview(rows(a="done", c="failed"))
    assert len(drawn.of("success")) == 1


def test_failed_queries_of_a_run_that_ended_are_a_warning_that_names_the_retry(
    paper, session, runs
):
    runs("a")
    drawn = paper(job_list)
    drawn.session_state = session
    job_list._offer_overview(rows(a="running"))
    ended = job(id="a", name="a", state="done", grid=None, failed=5, runs={"a": "a"})
    job_list._offer_overview([ended])
    assert drawn.of("success") == []
    assert drawn.of("warning") == [
        "Done: a. 5 queries failed: select the run in the list to retry them."
    ]


@pytest.mark.parametrize(("kept", "said"), [("xy", ["2 variants are done."]), ("x", [])])
def test_a_grid_that_was_watched_is_compared_from_two_stored_runs_on(
    paper, session, runs, kept, said
):
    runs(kept)
    drawn = paper(job_list)
    drawn.session_state = session
    job_list._offer_comparison(rows("grid", x="running", y="done"))
    assert drawn.drawn == []
    job_list._offer_comparison(rows("grid", x="done", y="done"))
    assert drawn.of("success") == said


def test_a_grid_that_ended_waits_for_the_one_that_began_after_it(paper, session, runs):
    runs("abxy")
    drawn = paper(job_list)
    drawn.session_state = session
    first, second = {"a": "running", "b": "running"}, {"x": "running", "y": "done"}
    job_list._offer_comparison(rows("g", **first))
    done = rows("g", **dict.fromkeys(first, "done"))
    job_list._offer_comparison([*done, *rows("h", **second)])
    assert drawn.drawn == []
    job_list._offer_comparison([*done, *rows("h", **dict.fromkeys(second, "done"))])
    assert drawn.of("success") == ["2 variants are done."]


def test_of_the_runs_that_ended_as_many_are_compared_as_are_by_default(
    paper, session, monkeypatch, runs
):
    went = []
    monkeypatch.setattr(job_list.view, "go", went.append)
    runs("abcdefghij")
    drawn = paper(job_list)
    drawn.session_state = session
    job_list._offer_overview(rows(**dict.fromkeys("abcdefghij", "running")))
    drawn.answers["button"] = True
    job_list._offer_overview(rows(**dict.fromkeys("abcdefghij", "done")))
    assert (went, address.several("system")) == (["overview"], list("abcdefgh"))
    # Gone to once, it is told no more.
    job_list._offer_overview(rows(a="done"))
    assert len(drawn.of("success")) == 1


def test_the_first_variant_is_the_baseline_of_the_others(paper, session, monkeypatch, runs):
    went = []
    monkeypatch.setattr(job_list.view, "go", went.append)
    runs("abcdefghij")
    drawn = paper(job_list)
    drawn.session_state = session
    job_list._offer_comparison(rows("grid", **dict.fromkeys("abcdefghij", "running")))
    drawn.answers["button"] = True
    job_list._offer_comparison(rows("grid", **dict.fromkeys("abcdefghij", "done")))
    assert address.one("base") == "a" and address.several("system") == list("bcdefgh")
    assert (went, session[job_list._SEEN_GRIDS]) == (["overview"], [])
