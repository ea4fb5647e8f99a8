"""The finished runs on the page Run: what they recorded, in the list and in full, what is done with
those selected, fusing them, and the score cache."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.ranking.measured import Level, Measured
from rankdash.ranking.ranking import SHIPPED_WITH
from rankdash.rerankers.neural import packaged
from rankdash.store.jobs.queue import Queue
from rankdash.store.notes.pins import Pins
from rankdash.store.notes.run_notes import RunNotes
from rankdash.store.score_cache import KeptScores
from rankdash.ui.run import cache_panel, combine_form, run_details, run_list
from rankdash.ui.runs import cost_line
from rankdash.ui.sidebar import view
from rankdash.ui.state import address, deleted
from rankdash.ui.widgets import dialogs
from tests.ui.page_text import page_text
from tests.ui.sessions import part, press, said, selects

CPU = {"cpu": "Some CPU", "threads": 2}
WEIGHTS = next(each for each in packaged.MODELS if each.id == packaged.MULTILINGUAL).provenance
LEVEL = Level(4, 5.0, 40, 2, 90.0, 200.0, 8.0, 32.0, 1.9)
# Name → machine, what was measured, and the rest of the run.
RUNS = {
    "quiet and exact": (
        {"runtime": "torch"} | CPU, Measured(scored_pairs=64),
        {"settings": {"k": 1, "model": "", "stem": False}},
    ),
    "from the cache, runtime by measurement": (
        {"runtime": "onnx", "device": "cpu", "calibration": "onnx 2.0 ms, openvino 3.0 ms"},
        Measured(cached_pairs=1200, first_call_ms=200.0), {"load_ms": 3200.0},
    ),
    "busy, approximate": (
        {"runtime": "int8", "rank_agreement": 0.98765, "agreement_pairs": 64, "note": "A *note*."},
        Measured(pairs=64, seconds=2.0, cpu_seconds=2.0, threads=2, together=8, scored_pairs=64,
                 serial_queries=8, repeats=3, throughput=(LEVEL,)), {"settings": {"k": 1}},
    ),
    "one of each, on a graphics card": (
        {"runtime": "onnx", "device": "cuda"},
        Measured(pairs=30, seconds=3.0, together=1, scored_pairs=1, serial_queries=1, repeats=1),
        {"load_ms": 2000.0, "depth": 5},
    ),
    "runtime by settings": (
        {"runtime": "onnx", "device": "cuda"}, Measured(scored_pairs=3, cached_pairs=1),
        {"settings": {"runtime": "onnx", "model": ""}},
    ),
    "cascade": (
        {"second_runtime": "int8", "first_runtime": "onnx", "second_rank_agreement": 0.5,
         "second_note": "Second."}, Measured(requests=1000, refused=250), {"reranker": "cascade"},
    ),
    "knows the tokens": ({"runtime": "onnx"} | WEIGHTS, Measured(unknown_tokens=0.02), {}),
    "knows too few tokens": ({}, Measured(unknown_tokens=0.6, load_start=1, load_end=2), {}),
    "shipped, of a plugin": ({SHIPPED_WITH: "sample"} | CPU, Measured(), {"reranker": "gone"}),
    "of a service": (
        {}, None, {"calls": pd.DataFrame({
            "query_id": ["q0", "q1"], "start_s": 0.0, "ms": 5.0, "attempts": 1,
            "retry_wait_ms": 0.0, "status": 200, "server_ms": math.nan, "queue_ms": math.nan,
            "billed": ['{"search_units": 1}', '{"search_units": 0.5}'], "error": ["", "late"],
            "note": ["put right", ""]})},
    ),
}  # fmt: skip


def keep(workspace, dataset_id, names):
    """Runs of these names; the newest has the largest number."""
    run = workspace.run(workspace.runs(dataset_id)[0].id)
    for place, name in enumerate(names):
        machine, measured, more = RUNS[name]
        times = run.queries.assign(latency_ms=np.arange(16.0), state="done", reason="")
        made = {"reranker": "bm25", "created": f"2026-12-{place + 1:02}T10:00:00+00:00"} | more
        made = {"settings": {}, "queries": times, "machine": machine, "measured": measured} | made
        workspace.save_run(replace(run, id=f"r{place}", name=name, **made))
    return dataset_id


@pytest.fixture
def runs(workspace, stored, hand):
    """ "better", which failed on q15, and `RUNS`; the id of the newest begins with z."""
    return keep(workspace, stored, RUNS)


@pytest.fixture
def few(workspace, stored, hand):
    """ "better" and the first two of `RUNS`."""
    return keep(workspace, stored, [*RUNS][:2])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_list_of_runs_and_each_in_full(runs, workspace, approved, lang):
    RunNotes(workspace).keep("r0", "why *it* is")
    Pins(workspace).pin("r1")
    with workspace.database.writing() as db:
        db.execute("UPDATE runs SET created = '2026-11-01T10:00:00+00:00' WHERE name = 'better'")
        db.execute("UPDATE run_notes SET changed = '2026-12-11T10:00:00+00:00'")
    shown = page_text(part(run_list.draw, runs, lang=lang))

    def every():
        for row in workspace.runs(runs):
            run_details.draw(row.id)

    approved(f"pages/runs.{lang}", f"{shown}\n\n{page_text(part(every, lang=lang))}")


def test_a_list_without_pin_and_notes_has_no_room_for_them(few, workspace):
    (listed,) = part(run_list.draw, few).dataframe
    assert not {"baseline", "note"} & set(listed.value)
    Pins(workspace).pin("r1")
    workspace.delete_run("r1")
    assert "baseline" not in part(run_list.draw, few).dataframe[0].value


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ([], "None yet: choose a reranker above and start."),
        (["failed", "done"], "None yet: choose a reranker above and start."),
        (["running", "queued"], "None is finished yet."),
        (["failed", "queued"], "None is finished yet."),
        (None, "No run yet"),
    ],
)
def test_without_a_run_the_list_says_what_to_do_where_something_can_be_done(
    workspace, stored, only_shown, monkeypatch, states, told
):
    workspace.delete_run(workspace.runs(stored)[0].id)
    monkeypatch.setattr("rankdash.store.jobs.leases.STALE_SECONDS", math.inf)
    for name, state in enumerate(["queued"] if states is None else states):
        job = Queue(workspace).submit(dataset_id=stored, name=f"{name}", reranker="bm25",
                                      settings={}, depth=None, sample=None, seed=0)  # fmt: skip
        with workspace.database.writing() as db:
            db.execute("UPDATE jobs SET state = ?, host = '', pid = 1, heartbeat = 0, "
                       "worker = 'w' WHERE id = ?", (state, job))  # fmt: skip
    if states is None:
        only_shown()
    app = part(run_list.draw, stored)
    assert [each.value for each in app.caption] == [told] and not app.button


@pytest.mark.parametrize(
    ("chosen", "enabled", "opened"),
    [
        ([], "", 0),
        ([0], "Compare on Overview, Rename, Delete", 1),
        ([0, 2], "Compare on Overview, Delete", 0),
        # A row that is gone since the click.
        ([99], "", 0),
        ([2, 99], "Compare on Overview, Rename, Delete", 1),
    ],
)
def test_what_can_be_done_with_the_chosen_runs(few, monkeypatch, chosen, enabled, opened):
    selects(monkeypatch, "runs.list", *chosen)
    app = part(run_list.draw, few)
    able = [each.label for each in app.button if not each.disabled and "note" not in each.label]
    assert ", ".join(able) == enabled
    assert len([each for each in app.expander if each.label == "Settings and machine"]) == opened


def test_runs_are_compared_renamed_and_deleted(runs, workspace, monkeypatch, only_shown):
    went, renamed, asked, gone = [], [], [], []
    monkeypatch.setattr(view, "go", lambda page: went.append((page, address.several("system"))))
    monkeypatch.setattr(dialogs, "rename", lambda *given: renamed.append(given))
    monkeypatch.setattr(dialogs, "delete", lambda *given: asked.append(given))
    monkeypatch.setattr(deleted, "by_this_session", gone.extend)
    RunNotes(workspace).keep("r9", "why")
    Pins(workspace).pin("r8")
    selects(monkeypatch, "runs.list", 0, 1)
    app = part(run_list.draw, runs)
    # Newest first.
    first, second = workspace.runs(runs)[-1:-3:-1]
    press(app, "Compare on Overview")
    assert went == [("overview", [first.id, second.id])]
    press(app, "Delete")
    [(title, sentences, apply)] = asked
    assert title == "Delete these runs?"
    assert sentences == [
        "of a service, shipped\\, of a plugin will be deleted permanently.",
        "1 note goes with it.",
        "The pinned baseline is deleted too; the first stage replaces it.",
    ]
    apply()
    assert {*gone} == {first.id, second.id}.difference(row.id for row in workspace.runs(runs))
    selects(monkeypatch, "runs.list", 0)
    press(part(run_list.draw, runs), "Rename")
    [(_title, old, apply)] = renamed
    apply(old)
    apply("cascade")
    assert workspace.runs(runs)[-1].name == "cascade (2)"
    press(part(run_list.draw, runs), "Delete")
    assert len(asked[-1][1]) == 1, "neither a note nor the pin is lost"
    only_shown()
    app = part(run_list.draw, runs)
    assert not {"Rename", "Delete"} & {each.label for each in app.button}


# Fusing.


@pytest.fixture
def form(workspace, stored, hand):
    return part(combine_form.draw, stored, state={"combine": True})


def choose_all(app, workspace):
    (field,) = app.multiselect
    return field.set_value(["first-stage", workspace.runs()[0].id]).run()


def test_a_fused_run_has_the_failures_of_its_parts(form, workspace, approved):
    assert form.button(key="combine.start").disabled
    choose_all(form, workspace)
    run_id = workspace.runs()[0].id
    form.number_input(key=f"combine.weight.{run_id}").set_value(3.0).run()
    approved("pages/fuse.en", page_text(form))
    press(form, "Fuse")
    assert "Fused (RRF) is in the list of runs." in said(form)
    row = workspace.runs()[-1]
    assert (row.name, row.reranker) == ("Fused (RRF)", "fusion")
    assert (row.queries_done, row.queries_failed) == (15, 1)
    assert (row.settings["parts"], row.settings["weights"]) == ("First stage + better", "1, 3")
    run = workspace.run(row.id)
    assert run.ranking.documents_of("q1")[0][0] == "d1"
    failed = run.queries.set_index("query_id").loc["q15"]
    assert (failed["state"], failed["reason"]) == ("failed", "better: no *luck*")


@pytest.mark.parametrize(
    ("method", "typed", "name"),
    [("rrf", "better", "better (2)"), ("z", "", "Fused (z-scores)"),
     ("minmax", " ", "Fused (Scores 0–1)")],
)  # fmt: skip
def test_a_fused_run_is_called_by_its_method_or_as_typed(form, workspace, method, typed, name):
    choose_all(form, workspace)
    form.selectbox(key="combine.method").set_value(method).run()
    assert bool([each for each in form.number_input if each.key == "combine.k"]) is (
        method == "rrf"
    )
    form.text_input(key="combine.name").set_value(typed).run()
    press(form, "Fuse")
    row = workspace.runs()[-1]
    assert (row.name, row.settings["method"]) == (name, method)


def test_without_a_run_there_is_nothing_to_fuse(workspace, stored):
    workspace.delete_run(workspace.runs()[0].id)
    assert not part(combine_form.draw, stored, state={"combine": True}).expander


# The score cache.


def test_the_score_cache_is_limited_and_cleared_once_that_is_confirmed(
    runs, workspace, monkeypatch
):
    asked = []
    monkeypatch.setattr(dialogs, "delete", lambda *given: asked.append(given))
    texts = [f"document {number}" for number in range(500)]
    kept = replace(KeptScores.nothing(500), scores=np.arange(500.0))
    workspace.score_cache.write("model", [("query", texts, kept)])
    app = part(cache_panel.draw, state={"run.cache": True})
    assert "500 pairs · 0.1 MB of at most 512 MB" in said(app)
    press(app, "Clear")
    [(_title, sentences, _apply)] = asked
    assert sentences == [
        "500 pairs have to be scored again by the next runs that need them.",
        # Of 10 and 32 pairs a second.
        "At the pace of the slowest run stored here that takes about 50 s.",
        "A service charges for its part again. Stored runs stay as they are, times included.",
    ]
    app.number_input[0].set_value(0).run()
    assert workspace.score_cache.pairs == 500
    press(app, "Set the limit")
    assert (workspace.score_cache.limit, workspace.score_cache.pairs) == (0, 0)
    for row in workspace.runs():
        workspace.delete_run(row.id)
    assert len(cache_panel.cost(1)) == 2


@pytest.mark.parametrize(
    ("function", "cases"),
    [
        # What takes room is not nothing.
        (cache_panel.megabytes, {0: "0", 1: "0.1", 104_858: "0.2", 1 << 20: "1.0",
                                 10 << 20: "10", (10 << 20) + 1: "10"}),
        # Of an estimate two figures are known.
        (cost_line.rounded, {0: "0", -1: "0", 7: "7", 94.9: "95", 123: "120", 99_900: "100,000",
                             125_000: "120,000", 1_240_000: "1,200,000"}),
    ],
)  # fmt: skip
def test_sizes_and_estimates_are_rounded(function, cases):
    assert {given: function(given) for given in cases} == cases
