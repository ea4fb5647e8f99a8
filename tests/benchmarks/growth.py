"""Growth of each page's processor time with the number of queries.

    python tests/benchmarks/growth.py [QUERIES ...]

For each number of queries (default: 1,000, 10,000 and 100,000): a stored set with 10 candidates
per query, two runs, and a judge that graded the documents of 1,000 queries. Each page is opened
once with empty caches and then run again without a change. Prints seconds of processor time as a
table in Markdown. Exits with 1 if a page costs more than 30 times as much at ten times the queries.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise

from large_set import ROOT, freeze, store
from page_costs import Meter, as_in_a_server
from streamlit.testing.v1 import AppTest

from rankdash.core.base.shipped import INTERFACE

SIZES = (1_000, 10_000, 100_000)
RUNS = {"small model": 0.8, "large model": 1.2}
JUDGED, MOST = 1_000, 30.0
PAGES = (
    *("overview", "data", "run", "label", "judge", "judge with grades", "queries"),
    *("rank_shifts", "latency", "cost", "policy", "report", "history"),
)


def costs(queries: int) -> None:
    """Print, for each page, the seconds of its first run and of a second run without a change."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["RANKDASH_HOME"] = home
        dataset_id = store(RUNS, queries=queries, candidates=10, documents=queries, words=30)
        freeze()
        as_in_a_server()
        for page in PAGES:
            if page == "judge with grades":
                grade(dataset_id)
            name = page.split()[0]
            app = AppTest.from_file(str(INTERFACE), default_timeout=3_600)
            meter = Meter(app)
            if name == "overview":
                first = meter.cost(app.run)
            else:
                app.query_params["data"] = dataset_id
                app.switch_page(str(ROOT / "pages" / f"{name}.py"))
                first = meter.cost(app.run)
            print(f"{page},{first / 1000:.2f},{meter.cost(app.run) / 1000:.2f}", flush=True)
            del app, meter
            gc.collect()


def grade(dataset_id: str) -> None:
    """Add a judge with the labels as grades, one grade too high at every fifth document."""
    from rankdash.core.workspace.jobs.judges import StoredJudges
    from rankdash.kit.widgets.stored import workspace

    qrels = workspace().dataset(dataset_id).qrels
    rows = qrels[qrels["query_id"].isin(qrels["query_id"].unique()[:JUDGED])]
    high = rows.index.to_numpy() % 5 == 0
    grades = rows[["query_id", "doc_id"]].assign(
        grade=(rows["label"] + high).clip(upper=3), error=""
    )
    StoredJudges(workspace()).add(dataset_id, "judge", "tiny", 3, grades)


def main(sizes: list[int]) -> int:
    found: dict[str, list[tuple[float, float]]] = {page: [] for page in PAGES}
    for size in sizes:
        started = time.monotonic()
        # A separate process, so that nothing of a smaller set is cached.
        command = [sys.executable, __file__, "--only", str(size)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        for line in done.stdout.splitlines():
            page, first, again = line.split(",")
            found[page].append((float(first), float(again)))
        took = time.monotonic() - started
        print(f"{size:,} queries, {took:,.0f} s in all\n{done.stdout}", file=sys.stderr, flush=True)
    titles = " | ".join(f"{size:,} first | {size:,} again" for size in sizes)
    print(f"| Page | {titles} |\n|---{'|--:' * 2 * len(sizes)}|")
    steep = []
    for page, pairs in found.items():
        cells = " | ".join(f"{first:.2f} | {again:.2f}" for first, again in pairs)
        print(f"| {page} | {cells} |")
        for (size, (before, _)), (more, (after, _)) in pairwise(zip(sizes, pairs, strict=True)):
            if after / before > MOST * more / size / 10:
                steep.append(page)
    if steep:
        print(f"more than {MOST:g} times as much at ten times the queries: {', '.join(steep)}")
    return 1 if steep else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--only"]:
        costs(int(sys.argv[2]))
    else:
        raise SystemExit(main([int(each) for each in sys.argv[1:]] or list(SIZES)))
