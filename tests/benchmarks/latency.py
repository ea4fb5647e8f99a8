"""Processor time of the server for one interaction with the page on latency.

    python tests/benchmarks/latency.py

A stored set of 10,000 queries with 100 candidates each and three runs, each query timed and each
pair's tokens counted. Goals for a rerun of the whole page: 300 ms if every number is cached, one
second if the number is new. Exits with 1 if a median misses its goal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from large_set import CANDIDATES, QUERIES
from page_costs import Act, page_on_large_set
from streamlit.testing.v1 import AppTest

CACHED_MS, NEW_MS = 300, 1000
RUNS = {"small model": 0.8, "large model": 1.2, "larger model": 1.4}


def main() -> None:
    with page_on_large_set("latency", RUNS, prepare=time_runs) as meter:
        meter.measure("a rerun that changes nothing", CACHED_MS, *[meter.app.run] * 5)
        for name, goal, acts in interactions(meter.app):
            meter.measure(name, goal, *acts)
    meter.judge()


def time_runs() -> None:
    """Add latencies, tokens and a throughput to every stored run."""
    from rankdash.core.data.measured import Level, Measured
    from rankdash.core.data.ranking import Reading
    from rankdash.core.workspace import Workspace

    rng = np.random.default_rng(1)
    workspace = Workspace.open()
    levels = tuple(
        Level(n, 5.0, 100 * n, 0, 10.0 * n, 20.0 * n, 20.0 * n, 2000.0 * n, 2.0) for n in (1, 2, 4)
    )
    for row in workspace.runs():
        run = workspace.run(row.id)
        full = rng.integers(50, 900, QUERIES * CANDIDATES).astype(np.int32)
        tokens = full.reshape(QUERIES, CANDIDATES).sum(axis=1).astype(float)
        latency = tokens / 400 * rng.lognormal(0, 0.2, QUERIES)
        pairs = rng.integers(20, CANDIDATES + 1, QUERIES).astype(float)
        workspace.delete_run(row.id)
        workspace.save_run(
            replace(
                run,
                queries=run.queries.assign(latency_ms=latency, tokens=tokens, pairs=pairs),
                reading=Reading(np.minimum(full, 512), full),
                measured=Measured(pairs=1000, seconds=1.0, throughput=levels),
            )
        )


def interactions(app: AppTest) -> list[tuple[str, int, list[Act]]]:
    """Return name, goal and actions of each interaction."""

    def against(name: str) -> Act:
        return lambda: app.segmented_control(key="address.against").set_value(name).run()

    def target(value: str) -> Act:
        return lambda: app.selectbox(key="address.target").select(value).run()

    def reader(place: int) -> Act:
        options = app.segmented_control(key="address.reader").options
        return lambda: app.segmented_control(key="address.reader").set_value(options[place]).run()

    return [
        ("against tokens, new", NEW_MS, [against("Tokens")]),
        ("documents and tokens again", CACHED_MS, [against("Documents"), against("Tokens")]),
        ("another target", CACHED_MS, [target("2000"), target("500"), target("2000")]),
        ("another system's tokens, new", NEW_MS, [reader(1), reader(2)]),
        ("its tokens again", CACHED_MS, [reader(0), reader(1)]),
    ]


if __name__ == "__main__":
    main()
