"""The speed of `rankdash evaluate` from files, relative to trec_eval and ir_measures.

    python tests/benchmarks/files.py               100,000 and 1,000,000 rows
    python tests/benchmarks/files.py 10000000      10,000,000 rows

A run of 100 documents per query and 15 labels per query are written as TREC files, and each program
scores them with six metrics, query by query, from its start to its end. The figure is processor
time (user and system, of the process only), which other programs on the machine change less than
the clock, as a ratio to trec_eval in the same run. trec_eval is the program that TREC_EVAL names,
else pytrec_eval, reading the same files. The means of all must agree to four digits, as trec_eval
prints them. `rankdash check` reads the same files up to a million rows, and is compared with
`rankdash evaluate`. Exits with 1 above a goal at a million rows: for time, for rankdash's peak
memory as a multiple of the files' size, and for that check. Programs run in an empty folder, and
Python's find their modules compiled, as if installed. Above a million rows each runs once, and
ir_measures does not run: it needs a Python object for every row. The processor time of `rankdash
compare` is printed too, with a second run in which one document in ten is different.
"""

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
DEPTH, LABELS, REPEATS = 100, 15, 3
GOAL_ROWS, TIME, MEMORY, CHECK = 1_000_000, 1.2, 4.0, 1.5
# rankdash's name → trec_eval's name for -m, its printed name, and ir_measures' name.
METRICS = {
    "ndcg@10": ("ndcg_cut.10", "ndcg_cut_10", "nDCG@10"),
    "mrr": ("recip_rank", "recip_rank", "RR"),
    "map": ("map", "map", "AP"),
    "recall@10": ("recall.10", "recall_10", "R@10"),
    "precision@10": ("P.10", "P_10", "P@10"),
    "hit@10": ("success.10", "success_10", "Success@10"),
}
PYTREC_EVAL = """
import sys, pytrec_eval
with open(sys.argv[1]) as qrels, open(sys.argv[2]) as run:
    labels, ranking = pytrec_eval.parse_qrel(qrels), pytrec_eval.parse_run(run)
values = pytrec_eval.RelevanceEvaluator(labels, set(sys.argv[3].split(","))).evaluate(ranking)
for name in next(iter(values.values())):
    print(name, "all", sum(each[name] for each in values.values()) / len(values))
"""


def write(folder: Path, rows: int) -> tuple[str, str, str]:
    """Write the labels and two runs. Two thirds of a query's labels are of documents in the first
    run."""
    rng = np.random.default_rng(rows)
    vocabulary = max(rows // 2, 2 * DEPTH)
    qrels, run, other = (folder / f"{rows}.{name}" for name in ("qrels", "run", "other.run"))
    with qrels.open("w") as labels, run.open("w") as ranking, other.open("w") as second:
        for query in range(rows // DEPTH):
            docs = rng.choice(vocabulary, DEPTH, replace=False)
            scores = np.sort(rng.random(DEPTH) * 20)[::-1]
            ranking.writelines(
                f"q{query} Q0 doc{doc:07d} {rank} {score:.6f} bm25\n"
                for rank, (doc, score) in enumerate(zip(docs, scores, strict=True), 1)
            )
            moved = dict.fromkeys((*rng.permutation(docs)[DEPTH // 10 :], *docs[:5], -query - 1))
            second.writelines(
                f"q{query} Q0 doc{doc:07d} {rank} {DEPTH - rank} ce\n"
                for rank, doc in enumerate(moved, 1)
            )
            judged = dict.fromkeys((*docs[: LABELS * 2 // 3], *rng.integers(0, vocabulary, 5)))
            grades = rng.integers(0, 4, len(judged))
            labels.writelines(
                f"q{query} 0 doc{doc:07d} {grade}\n"
                for doc, grade in zip(judged, grades, strict=True)
            )
    return str(qrels), str(run), str(other)


def of_rankdash(output: str) -> dict[str, float]:
    (system,) = json.loads(output)["systems"].values()
    return {name: system["mean"][name] for name in METRICS}


def of_trec_eval(output: str) -> dict[str, float]:
    lines = (line.split() for line in output.splitlines())
    told = {name: float(value) for name, query, value in lines if query == "all"}
    return {name: told[printed] for name, (_, printed, _) in METRICS.items()}


def of_ir_measures(output: str) -> dict[str, float]:
    told = dict(line.split() for line in output.splitlines())
    return {name: float(told[theirs]) for name, (*_, theirs) in METRICS.items()}


Program = tuple[Sequence[str], Callable[[str], dict[str, float]]]


def programs(qrels: str, run: str) -> dict[str, Program]:
    """Return name → command, and a function that reads its means. The first program is the
    reference."""
    binary = os.environ.get("TREC_EVAL")
    theirs = [name for name, *_ in METRICS.values()]
    wanted = [option for name in theirs for option in ("-m", name)]
    python = [sys.executable, "-c", PYTREC_EVAL, qrels, run, ",".join(theirs)]
    found: dict[str, Program] = {
        "trec_eval" if binary else "pytrec_eval": (
            [binary, "-q", *wanted, qrels, run] if binary else python,
            of_trec_eval,
        ),
        "rankdash": (
            [
                *(sys.executable, "-m", "rankdash", "evaluate", qrels, run, "--json"),
                *("--conventions", "trec_eval", "--metric", ",".join(METRICS)),
            ],
            of_rankdash,
        ),
    }
    found["rankdash check"] = (
        [sys.executable, "-m", "rankdash", "check", qrels, run],
        lambda _: {},
    )
    if importlib.util.find_spec("ir_measures"):
        names = [name for *_, name in METRICS.values()]
        found["ir_measures"] = (
            [sys.executable, "-m", "ir_measures", qrels, run, *names, "--places", "8"],
            of_ir_measures,
        )
    return found


def used_by(command: Sequence[str], folder: Path) -> tuple[float, float, str]:
    """Return processor seconds of the command, its peak memory in MB, and its output."""
    (folder / "empty").mkdir(exist_ok=True)
    path = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.DEVNULL,
            cwd=folder / "empty",
            env=environment,
        )
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, command
        output.seek(0)
        # Linux counts in units of 1,024 bytes.
        held = usage.ru_maxrss * 1024 / 1e6
        return usage.ru_utime + usage.ru_stime, held, output.read()


def compare(rows: int, folder: Path) -> bool:
    """Return whether rankdash meets the goals."""
    qrels, run, other = write(folder, rows)
    size = sum(Path(each).stat().st_size for each in (qrels, run)) / 1e6
    every = programs(qrels, run)
    once = rows > GOAL_ROWS
    if once:
        every.pop("ir_measures", None)
        del every["rankdash check"]
    else:
        for command, _ in every.values():
            used_by(command, folder)
    seconds: dict[str, list[float]] = {name: [] for name in every}
    held: dict[str, float] = {}
    means: dict[str, dict[str, float]] = {}
    # In turns, so that all have the same load.
    for _ in range(1 if once else REPEATS):
        for name, (command, read) in every.items():
            used, held[name], output = used_by(command, folder)
            seconds[name].append(used)
            means[name] = read(output)
    first = next(iter(every))
    for name, found in means.items():
        for metric, value in found.items():
            assert abs(value - means[first][metric]) < 1e-4, (name, metric, value)
    print(f"{rows:,} rows, {size:.1f} MB; the means agree")
    base = statistics.median(seconds[first])
    for name, spent in seconds.items():
        middle = statistics.median(spent)
        print(
            f"  {name}: {middle:.2f} s of processor time, {middle / base:.2f}× {first}; at most "
            f"{held[name]:.0f} MB, {held[name] / size:.1f}× the files"
        )
    ours = statistics.median(seconds["rankdash"])
    if not once:
        checking = statistics.median(seconds["rankdash check"]) / ours
        print(f"  rankdash check: {checking:.2f}× rankdash evaluate")
    command = [sys.executable, "-m", "rankdash", "compare", "--qrels", qrels, "--baseline", run]
    used, most, _ = used_by([*command, "--challenger", other, "--json"], folder)
    print(f"  rankdash compare, two runs: {used:.2f} s of processor time; at most {most:.0f} MB")
    if rows != GOAL_ROWS:
        return True
    ratio, memory = ours / base, held["rankdash"] / size
    kept = ratio <= TIME and memory <= MEMORY and checking <= CHECK
    print(f"  {'within' if kept else 'ABOVE'} the goals of {TIME}×, {MEMORY}× and {CHECK}×")
    return kept


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        sizes = map(int, sys.argv[1:] or ("100000", str(GOAL_ROWS)))
        kept = [compare(rows, Path(made)) for rows in sizes]
    sys.exit(not all(kept))
