"""Finished runs on the page Run: their list and their details."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.core.data.measured import Level, Measured
from rankdash.core.data.ranking import SHIPPED_WITH
from rankdash.core.rerankers.neural import packaged
from rankdash.core.workspace.notes import Pins, RunNotes
from rankdash.features.run import page_jobs, page_runs
from rankdash.kit.widgets import scenario
from tests.ui.page_text import page_text
from tests.ui.sessions import part

CPU = {"cpu": "Some CPU", "threads": 2}
WEIGHTS = next(each for each in packaged.MODELS if each.id == packaged.MULTILINGUAL).provenance
LEVEL = Level(4, 5.0, 40, 2, 90.0, 200.0, 8.0, 32.0, 1.9)
# Name → machine, measurements, and other fields of the run.
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
    """Store runs of these names; the newest has the largest number."""
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


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_list_of_runs_and_each_in_full(runs, workspace, approved, lang):
    RunNotes(workspace).store("r0", "why *it* is")
    Pins(workspace).pin("r1")
    with workspace.database.writing() as db:
        db.execute("UPDATE runs SET created = '2026-11-01T10:00:00+00:00' WHERE name = 'better'")
        db.execute("UPDATE run_notes SET changed = '2026-12-11T10:00:00+00:00'")
    shown = page_text(part(page_runs.draw, runs, lang=lang))

    def every():
        for row in workspace.runs(runs):
            page_runs.draw_details(row.id)

    approved(f"pages/runs.{lang}", f"{shown}\n\n{page_text(part(every, lang=lang))}")


@pytest.mark.parametrize(
    ("function", "cases"),
    [
        # The size of a non-empty file is not shown as 0.
        (page_jobs.megabytes, {0: "0", 1: "0.1", 104_858: "0.2", 1 << 20: "1.0",
                                 10 << 20: "10", (10 << 20) + 1: "10"}),
        # An estimate has two significant figures.
        (scenario.rounded, {0: "0", -1: "0", 7: "7", 94.9: "95", 123: "120", 99_900: "100,000",
                             125_000: "120,000", 1_240_000: "1,200,000"}),
    ],
)  # fmt: skip
def test_sizes_and_estimates_are_rounded(function, cases):
    assert {given: function(given) for given in cases} == cases
