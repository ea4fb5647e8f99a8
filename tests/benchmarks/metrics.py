"""The speed of the metrics, relative to pytrec_eval-terrier, on a million rows.

    python tests/benchmarks/metrics.py

Both start from the same DataFrame (query_id, doc_id, score, label; text ids) and end with six
metrics for every query; their values must agree to 1e-9. Repeats alternate, so that a busy machine
slows both, and ratios are also given in processor time, which other programs disturb less.
pytrec_eval always gets rows grouped by query; it is timed with all labels of the table, as we read
it, and, to its advantage, with only the labels above 0. Extra memory is the peak of the process
minus its memory before.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytrec_eval

sys.path.insert(0, str(Path(__file__).parents[2]))

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import (
    Conventions,
    Evaluation,
    evaluate,
    judge,
    parse_metrics,
)

SHAPES = ((10_000, 100), (1_000, 1_000))
REPEATS = 7
RELEVANT_A_QUERY = 8
CONVENTIONS = Conventions.trec_eval()
MEASURES = parse_metrics("ndcg@10, mrr, map, recall@10, precision@10, hit@10").specs
TREC_MEASURES = ("ndcg_cut_10", "recip_rank", "map", "recall_10", "P_10", "success_10")
TREC_REQUEST = {"ndcg_cut.10", "recip_rank", "map", "recall.10", "P.10", "success.10"}
GOAL = "20× faster than pytrec_eval from one table, 10 ms for a new k or gain."


def make_frame(queries: int, depth: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = queries * depth
    collection = np.array([f"doc{number:07d}" for number in range(400_000)])
    firsts = rng.integers(0, len(collection), queries)[:, None]
    documents = collection[(firsts + 37 * np.arange(depth)) % len(collection)]
    labels = np.where(rng.random(rows) < RELEVANT_A_QUERY / depth, rng.integers(1, 4, rows), 0)
    labels[::depth] = 1
    return pd.DataFrame(
        {
            "query_id": np.repeat([f"query{number:05d}" for number in range(queries)], depth),
            "doc_id": documents.reshape(-1),
            "score": rng.normal(size=rows) + labels,
            "label": labels.astype(np.float64),
        }
    )


def ours(frame: pd.DataFrame) -> Evaluation:
    return ours_from_apart(frame, frame)


def ours_from_apart(run: pd.DataFrame, qrels: pd.DataFrame) -> Evaluation:
    ranking = Ranking.from_columns(run["query_id"], run["doc_id"], run["score"])
    return evaluate(judge(ranking, qrels, CONVENTIONS), MEASURES, CONVENTIONS)


def nested(frame: pd.DataFrame, column: str, kind: type) -> dict:
    """Return query → document → number, from rows grouped by query."""
    queries = frame["query_id"].to_numpy()
    borders = np.flatnonzero(queries[1:] != queries[:-1]) + 1
    borders = [0, *borders.tolist(), len(queries)]
    documents = frame["doc_id"].tolist()
    numbers = frame[column].astype(kind).tolist()
    return {
        queries[start]: dict(zip(documents[start:stop], numbers[start:stop], strict=True))
        for start, stop in pairwise(borders)
    }


def theirs(run: pd.DataFrame, labels: pd.DataFrame, dict_times: list[float]) -> dict:
    """Return pytrec_eval's values; append the milliseconds for the dicts to `dict_times`."""
    start = time.perf_counter()
    ranked, judged = nested(run, "score", float), nested(labels, "label", int)
    dict_times.append((time.perf_counter() - start) * 1e3)
    return pytrec_eval.RelevanceEvaluator(judged, TREC_REQUEST).evaluate(ranked)


class Times:
    """Wall-clock and processor milliseconds of the repeats of one piece of work."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work
        self.wall: list[float] = []
        self.processor: list[float] = []

    def repeat(self) -> None:
        gc.collect()
        wall, processor = time.perf_counter(), time.process_time()
        self.work()
        self.wall.append((time.perf_counter() - wall) * 1e3)
        self.processor.append((time.process_time() - processor) * 1e3)

    def line(self, name: str) -> str:
        low, high = min(self.wall), max(self.wall)
        wall, processor = statistics.median(self.wall), statistics.median(self.processor)
        return f"  {name:42}{wall:9.1f} ms ({low:.1f} to {high:.1f}), processor {processor:.1f} ms"

    def times_faster_than(self, other: "Times") -> tuple[float, float]:
        """Return the medians of the ratios of adjacent repeats: wall clock, processor."""
        return (
            statistics.median(b / a for a, b in zip(self.wall, other.wall, strict=True)),
            statistics.median(b / a for a, b in zip(self.processor, other.processor, strict=True)),
        )


def extra_megabytes(work: Callable[[], object]) -> float:
    """Return the peak of resident memory during the work, minus the memory before, in MB."""

    def status(key: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(key)).split()[1])

    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    work()
    return (status("VmHWM") - before) / 1024


def difference(evaluation: Evaluation, referee: dict) -> float:
    expected = np.array(
        [[referee[query][name] for name in TREC_MEASURES] for query in evaluation.query_ids]
    )
    return float(np.abs(evaluation.values - expected).max())


def benchmark(queries: int, depth: int) -> None:
    frame = make_frame(queries, depth)
    shuffled = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    run, labels = frame[["query_id", "doc_id", "score"]], frame[["query_id", "doc_id", "label"]]
    relevant = labels[labels["label"] > 0].reset_index(drop=True)
    print(f"\n{queries:,} queries × {depth:,} documents = {len(frame):,} rows")

    our_memory = extra_megabytes(lambda: ours(frame))
    their_memory = extra_megabytes(lambda: theirs(run, labels, []))
    referee = theirs(run, labels, [])
    worst = max(
        difference(evaluation, referee)
        for evaluation in (ours(frame), ours(shuffled), ours_from_apart(run, relevant))
    )
    assert worst < 1e-9, f"values differ by {worst}"

    ranking = Ranking.from_columns(frame["query_id"], frame["doc_id"], frame["score"])
    judged = judge(ranking, frame, CONVENTIONS)
    at_20 = parse_metrics("ndcg@20, mrr@20, map@20, recall@20, precision@20, hit@20").specs
    stricter = Conventions(**{**CONVENTIONS.as_dict(), "threshold": 2.0})
    all_dicts: list[float] = []
    relevant_dicts: list[float] = []
    referees = {
        "pytrec_eval, all labels": Times(lambda: theirs(run, labels, all_dicts)),
        "pytrec_eval, labels above 0": Times(lambda: theirs(run, relevant, relevant_dicts)),
    }
    tables = {
        "rankdash, one table": Times(lambda: ours(frame)),
        "rankdash, one table, rows shuffled": Times(lambda: ours(shuffled)),
        "rankdash, run and all labels apart": Times(lambda: ours_from_apart(run, labels)),
        "rankdash, run and labels above 0 apart": Times(lambda: ours_from_apart(run, relevant)),
    }
    changes = {
        "rankdash, new k, six metrics": Times(lambda: evaluate(judged, at_20, CONVENTIONS)),
        "rankdash, new gain": Times(lambda: evaluate(judged, ["ndcg_exp@10"], CONVENTIONS)),
        "rankdash, new threshold, six metrics": Times(lambda: evaluate(judged, MEASURES, stricter)),
    }
    for _ in range(REPEATS):
        for times in (*referees.values(), *tables.values(), *changes.values()):
            times.repeat()

    for (name, times), dicts in zip(referees.items(), (all_dicts, relevant_dicts), strict=True):
        print(f"{times.line(name)}; of the wall clock, dicts {statistics.median(dicts):.1f} ms")
    for name, times in (tables | changes).items():
        print(times.line(name))
    for name, times in tables.items():
        for other, referee_times in referees.items():
            wall, processor = times.times_faster_than(referee_times)
            print(f"  {name}: {wall:.1f}× (processor {processor:.1f}×) faster than {other}")
    print(f"  extra memory: rankdash {our_memory:.0f} MB, pytrec_eval {their_memory:.0f} MB")
    print(f"  largest difference of a value: {worst:.1e}")


if __name__ == "__main__":
    print(f"Goals: {GOAL}")
    for shape in SHAPES:
        # A separate process, so that memory freed by one shape is not reused by the next.
        process = get_context("spawn").Process(target=benchmark, args=shape)
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(process.exitcode)
