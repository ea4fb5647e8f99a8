"""A run on Ray against the same run in this process, and runs that are broken off.

`python tests/benchmarks/ray_run.py overhead [--pairs N]`: N pairs of the shipped sample by a
cross-encoder of the size of ms-marco-MiniLM-L6-v2, in this process and by two actors of one thread
each, by turns. Compared are CPU seconds of scoring once warm, of the driver and of its actors,
because other programs hardly change them; the wall is told beside it. Scores have to be equal but
for the rounding of batches put together differently, and orders equal.

`python tests/benchmarks/ray_run.py deaths [--rounds N]`: a worker with a cluster of its own; by
turns an actor, the raylet or the worker is killed (SIGKILL) at a random moment. Whatever stopped is
resumed until it is done; every run has to be equal to an unbroken one, to the last bit.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from rankdash.dataset import Dataset  # noqa: E402
from rankdash.loading import load  # noqa: E402
from rankdash.ranking.ranking import Run  # noqa: E402
from rankdash.readers import sources_at  # noqa: E402
from rankdash.rerankers import create, get  # noqa: E402
from rankdash.runs import jobs  # noqa: E402
from rankdash.runs.jobs import JobRequest, Timing  # noqa: E402
from rankdash.runs.on_ray.reranker import on_ray  # noqa: E402
from rankdash.runs.on_ray.settings import Actors  # noqa: E402
from rankdash.runs.runner import rerank  # noqa: E402
from rankdash.store import Workspace  # noqa: E402
from tests.benchmarks.scoring import SAMPLE, make_model  # noqa: E402

GOAL = 0.15
DEPTH = 60
# Batches are put together differently, and so is what is rounded in them.
LARGEST_DIFFERENCE = 1e-5
PLUGIN = ROOT / "tests" / "runs" / "ray_plugin.py"


def overhead(pairs: int, rounds: int, max_length: int) -> bool:
    files = [SAMPLE / name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv")]
    dataset = load(sources_at(files), retrieval="bm25", retrieved=DEPTH).dataset
    spent: dict[str, list[float]] = {"in process": [], "two actors": []}
    found: dict[str, Run] = {}
    with tempfile.TemporaryDirectory() as folder:
        settings = {"model": str(make_model(Path(folder) / "model")), "runtime": "onnx"}
        settings["max_length"] = str(max_length)
        for _ in range(rounds):
            for name, each in spent.items():
                run, cpu, wall = _scored(dataset, settings, name == "two actors", pairs)
                count = int(run.queries["pairs"].sum())
                each.append(cpu / count * 1e3)
                found[name] = run
                print(
                    f"{name}: {count:,} pairs, CPU {cpu:.1f} s, wall {wall:.1f} s, load "
                    f"{os.getloadavg()[0]:.1f}",
                    flush=True,
                )
    one, two = ({**_lists(run)} for run in found.values())
    orders = sum(list(one[query]) == list(two[query]) for query in one)
    difference = max(abs(one[query][doc] - two[query][doc]) for query in one for doc in one[query])
    best = {name: min(each) for name, each in spent.items()}
    share = best["two actors"] / best["in process"] - 1
    told = ", ".join(f"{name} {cpu:.2f}" for name, cpu in best.items())
    print(
        f"CPU seconds for 1,000 pairs: {told}; overhead {share:+.1%} (goal {GOAL:.0%}). Orders "
        f"equal: {orders} of {len(one)}; largest difference of scores: {difference:.2g}"
    )
    return share <= GOAL and orders == len(one) and difference <= LARGEST_DIFFERENCE


def _scored(
    dataset: Dataset, settings: dict[str, str], on_cluster: bool, pairs: int
) -> tuple[Run, float, float]:
    """The run, and the CPU and wall seconds from when it was warm."""
    kind = get("cross-encoder")
    made = create(kind.name, settings)
    queries = list(dataset.queries["query_id"])
    marks: list[tuple[float, float]] = []

    def mark(*_: object) -> None:
        marks.append((_cpu_seconds(), time.monotonic()))

    context = on_ray(made, kind, "ray", Actors(2, 1)) if on_cluster else nullcontext(made)
    with context as ready:
        run = rerank(
            dataset,
            ready,
            query_ids=queries[: max(1, pairs // DEPTH)],
            capabilities=kind.able(made.settings),
            timing=Timing(latency="never"),
            on_loaded=mark,
            on_batch=mark,
        )
    (cpu, wall), (cpu_end, wall_end) = marks[0], marks[-1]
    return run, cpu_end - cpu, wall_end - wall


def _cpu_seconds() -> float:
    """Of this process and of all that it has started, Ray's own included."""
    ticks, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
        ticks[int(folder.name)] = int(fields[11]) + int(fields[12])
    found, more = set(), {os.getpid()}
    while more:
        found |= more
        more = {pid for pid, parent in parents.items() if parent in more} - found
    return sum(ticks.get(pid, 0) for pid in found) / os.sysconf("SC_CLK_TCK")


def _lists(run: Run) -> dict[str, dict[str, float]]:
    """Query → its documents, best first, with their scores."""
    ranking = run.ranking
    return {
        query: dict(zip(*ranking.documents_of(query), strict=True)) for query in ranking.query_ids
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--max-length", type=int, default=512)
    o = parser.parse_args()
    overhead(o.pairs, o.rounds, o.max_length)
