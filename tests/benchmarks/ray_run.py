"""A run on Ray against the same run in this process, and runs that are interrupted.

`python tests/benchmarks/ray_run.py overhead [--pairs N]`: N pairs of the shipped sample, retrieved
by BM25, by the packaged cross-encoder, in this process and by two actors of one thread each, by
turns. Compared are CPU seconds of scoring once warm, of the driver and of all that Ray started,
because other programs hardly change them; the wall time is printed too. Scores have to be equal
except for the rounding of different batches, and orders equal.

`python tests/benchmarks/ray_run.py deaths [--rounds N]`: a worker with a separate cluster; by turns
an actor, the raylet or the worker is killed (SIGKILL) at a random moment. A stopped run is resumed
until it is done; every run has to be equal to an uninterrupted one, to the last bit.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import nullcontext, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from rankdash.core import rerankers  # noqa: E402
from rankdash.core.data.dataset import Dataset  # noqa: E402
from rankdash.core.data.ranking import Run  # noqa: E402
from rankdash.core.readers import sources_at  # noqa: E402
from rankdash.core.readers.loading import load  # noqa: E402
from rankdash.core.rerankers import create, get  # noqa: E402
from rankdash.core.runs import jobs  # noqa: E402
from rankdash.core.runs.jobs import JobRequest, Timing, WorkerProcess  # noqa: E402
from rankdash.core.runs.on_ray.cluster import LOCAL, VARIABLE, Actors  # noqa: E402
from rankdash.core.runs.on_ray.reranker import on_ray  # noqa: E402
from rankdash.core.runs.runner import rerank  # noqa: E402
from rankdash.core.workspace import Workspace  # noqa: E402
from tests.sets import SAMPLE  # noqa: E402

GOAL = 0.15
DEPTH = 80
# Batches are different, and so is their rounding.
LARGEST_DIFFERENCE = 1e-5
PLUGIN = ROOT / "tests" / "runs" / "ray_plugin.py"


def overhead(pairs: int, rounds: int, max_length: int) -> bool:
    files = [SAMPLE / name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv")]
    dataset = load(sources_at(files), retrieval="bm25", retrieved=DEPTH).dataset
    spent: dict[str, list[float]] = {"in process": [], "two actors": []}
    found: dict[str, Run] = {}
    settings = {"runtime": "onnx", "max_length": str(max_length)}
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
    """Return the run, and its CPU and wall-clock seconds after the warm-up."""
    kind = get("cross-encoder")
    made = create(kind.name, settings)
    counts = np.diff(dataset.candidates.offsets)
    queries = dataset.candidates.query_ids[: 1 + int(np.searchsorted(np.cumsum(counts), pairs))]
    marks: list[tuple[float, float]] = []

    def mark(*_: object) -> None:
        marks.append((_cpu_seconds(), time.monotonic()))

    context = on_ray(made, kind, "ray", Actors(2, 1)) if on_cluster else nullcontext(made)
    with context as ready:
        run = rerank(
            dataset,
            ready,
            query_ids=list(queries),
            capabilities=kind.able(made.settings),
            timing=Timing(latency="never"),
            on_loaded=mark,
            on_batch=mark,
        )
    (cpu, wall), (cpu_end, wall_end) = marks[0], marks[-1]
    return run, cpu_end - cpu, wall_end - wall


def _cpu_seconds() -> float:
    """Return CPU seconds of this process and of all that it has started, including Ray's."""
    stats = _stats()
    ticks = sum(
        int(stats[pid][11]) + int(stats[pid][12]) for pid in _started_by(os.getpid()) & {*stats}
    )
    return ticks / os.sysconf("SC_CLK_TCK")


def _started_by(pid: int) -> set[int]:
    """Return the process and all its descendants."""
    stats = _stats()
    found, more = set[int](), {pid}
    while more:
        found |= more
        more = {each for each, fields in stats.items() if int(fields[1]) in more} - found
    return found


def _stats() -> dict[int, list[str]]:
    """Return process → the fields of its `stat` after the name."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
    return found


def _lists(run: Run) -> dict[str, dict[str, float]]:
    """Return query → its documents, best first, with their scores."""
    ranking = run.ranking
    return {
        query: dict(zip(*ranking.documents_of(query), strict=True)) for query in ranking.query_ids
    }


def deaths(rounds: int, seed: int) -> bool:
    chance = random.Random(seed)
    dataset = load(sources_at([SAMPLE])).dataset
    os.environ[VARIABLE], os.environ[rerankers.PLUGINS_VARIABLE] = LOCAL, str(PLUGIN)
    kind = get("hashing")
    whole = rerank(dataset, create("hashing"), capabilities=kind.capabilities).ranking.frame()
    equal = 0
    for place in range(rounds):
        target = ("actor", "raylet", "driver")[place % 3]
        at = chance.randrange(1, len(dataset.queries) - 20)
        with tempfile.TemporaryDirectory() as home:
            run, resumed, said = _broken(Workspace.open(Path(home)), dataset, target, at)
        good = run is not None and run.ranking.frame().equals(whole)
        equal += good
        print(
            f"{target} killed after {at} of {len(dataset.queries)} queries, resumed {resumed} "
            f"times: {'equal' if good else 'NOT EQUAL'}{said and f' ({said})'}",
            flush=True,
        )
    print(f"Equal to an unbroken run: {equal} of {rounds}")
    return equal == rounds


def _broken(
    workspace: Workspace, dataset: Dataset, target: str, at: int
) -> tuple[Run | None, int, str]:
    """Return the run after one kill, the number of resumptions, and the reason of the stop."""
    workspace.save_dataset(dataset)
    log = workspace.root / "pids"
    settings: dict[str, str | int | float | bool] = {"ms": 60, "log": str(log)}
    request = JobRequest(
        dataset.id, "hashing", settings, timing=Timing(latency="never"), actors=Actors(2, 1)
    )
    job_id = jobs.submit(workspace, request)
    resumed, said, killed = 0, "", False
    worker = WorkerProcess(workspace)
    try:
        while resumed < 5:
            worker.ensure()
            (row,) = jobs.list(workspace)
            if not killed and row.done >= at and worker.pid is not None:
                pids = {
                    "driver": [worker.pid],
                    "actor": [int(pid) for pid in log.read_text().split()[-2:]],
                    "raylet": [pid for pid in _started_by(worker.pid) if _named(pid, "raylet")],
                }
                os.kill(pids[target][0], signal.SIGKILL)
                killed = True
            if row.state == "done":
                return workspace.run(job_id), resumed, said
            if row.state not in jobs.LIVE:
                said = row.message
                jobs.resume(workspace, job_id)
                resumed += 1
            time.sleep(0.1)
        return None, resumed, said
    finally:
        worker.stop()


def _named(pid: int, name: str) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return False
    return Path(command.decode()).name == name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("overhead", "deaths"))
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, help="2 of overhead, 10 deaths by default")
    parser.add_argument("--max-length", type=int, default=512, help="tokens of a pair")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.what == "deaths":
        return 0 if deaths(asked.rounds or 10, asked.seed) else 1
    return 0 if overhead(asked.pairs, asked.rounds or 2, asked.max_length) else 1


if __name__ == "__main__":
    raise SystemExit(main())
