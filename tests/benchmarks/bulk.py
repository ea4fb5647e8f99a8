"""The cost of fusing and loading a million rows, compared with NumPy and pandas.

    python tests/benchmarks/bulk.py

10,000 queries with 100 documents each. Fusing two rankings is compared with sorting their rows by
query and score; loading a stored run with reading its table of rows. Times are medians of the
processor's seconds, in one run, so that only their ratio counts. Exits with 1 above a goal.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[2]))
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers.fusion import Fusion, fuse
from rankdash.core.workspace.tables import read_ranking, write_ranking

QUERIES, DEPTH, REPEATS = 10_000, 100, 5
FUSING, LOADING = 2.0, 2.0


def seconds(work: Callable[[], object]) -> float:
    spent = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
    return statistics.median(spent)


def judged(name: str, ours: float, theirs: float, goal: float) -> bool:
    ratio = ours / theirs
    print(f"{name}: {ours:.2f} s, {ratio:.1f} times the {theirs:.2f} s of the yardstick", end="; ")
    print(f"goal {goal:g}")
    return ratio <= goal


def main() -> int:
    rng = np.random.default_rng(0)
    queries = np.repeat([f"q{n}" for n in range(QUERIES)], DEPTH).astype(object)
    docs = np.tile([f"d{n}" for n in range(DEPTH)], QUERIES).astype(object)
    scores = rng.normal(size=(2, len(docs)))
    made = [Ranking.from_columns(queries, docs, each) for each in scores]
    codes = np.repeat(np.arange(QUERIES), DEPTH)
    fused = seconds(lambda: fuse(made, Fusion("z")))
    sorted_once = seconds(lambda: [np.lexsort((each, codes)) for each in scores])
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        write_ranking(folder, "run", made[0])
        table = pd.DataFrame({"query_id": queries, "doc_id": docs, "score": scores[0]})
        table.to_parquet(folder / "plain.parquet")
        loaded = seconds(lambda: read_ranking(folder, "run"))
        read = seconds(lambda: pd.read_parquet(folder / "plain.parquet"))
    good = [
        judged("fusing", fused, sorted_once, FUSING),
        judged("loading", loaded, read, LOADING),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
