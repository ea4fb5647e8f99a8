"""The speed of a comparison, relative to SciPy, on 10,000 queries × 5 systems × 6 metrics.

    python tests/benchmarks/comparison.py

A comparison computes 30 means and 24 differences with BCa intervals from 10,000 resamples, 24
randomisation tests with 10,000 flips, and everything else in its table. SciPy's `bootstrap` and
`permutation_test` are timed on one difference, with the same numbers of resamples, in batches that
suit its memory; the ratio is per interval and per test, and their values must agree. A second run
has queries missing in every system and metric, so that no two columns share their queries.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2]))
from rankdash.core.metrics import STATES, Conventions, Evaluation, parse_metrics
from rankdash.core.statistics.bootstrap import Columns, bca_interval, bootstrap_means
from rankdash.core.statistics.comparison import Comparison, StatisticsSettings, compare
from rankdash.core.statistics.inference import sign_flip_p

QUERIES, SYSTEMS, REPEATS, BATCH = 10_000, 5, 5, 100
GOAL_SECONDS = 2.0
SPECS = "ndcg@10, mrr@10, map, recall@10, precision@10, hit@10"


def systems(failing: float) -> dict[str, Evaluation]:
    """Return systems with values that rise a little from one to the next; a share `failing` of the
    queries has no value."""
    rng = np.random.default_rng(0)
    measures = tuple(parse_metrics(SPECS).measures.values())
    query_ids = np.array([f"query{number:05d}" for number in range(QUERIES)], dtype=object)
    base = rng.beta(4, 4, (QUERIES, len(measures)))
    found = {}
    for place in range(SYSTEMS):
        noise = rng.normal(0.002 * place, 0.1 * (place > 0), base.shape)
        values = np.clip(np.round(base + noise, 4), 0.0, 1.0)
        values[rng.random(values.shape) < failing] = np.nan
        states = np.where(np.isnan(values), STATES.index("failed"), 0).astype(np.int8)
        found[f"system {place}"] = Evaluation(
            query_ids=query_ids,
            values=values,
            states=np.array(STATES, dtype=object)[states.min(axis=1)],
            cell_states=states,
            measures=tuple(measures),
            conventions=Conventions(),
            counts={},
        )
    return found


def timed(work: Callable[[], object], repeats: int) -> tuple[float, float, float]:
    """Return median and lowest wall-clock seconds, and median processor seconds."""
    wall, processor = [], []
    for _ in range(repeats):
        started, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - started)
        processor.append(time.process_time() - used)
    return statistics.median(wall), min(wall), statistics.median(processor)


def comparison(name: str, evaluations: dict[str, Evaluation]) -> Comparison:
    settings = StatisticsSettings()
    found = compare(evaluations, "system 0", settings)
    wall, lowest, processor = timed(lambda: compare(evaluations, "system 0", settings), REPEATS)
    within = "within" if wall <= GOAL_SECONDS else "ABOVE"
    print(f"{name}: {wall:.2f} s (lowest {lowest:.2f}, processor {processor:.2f}), {within} goal")
    return found


def beside_scipy(evaluations: dict[str, Evaluation], found: Comparison) -> None:
    before, after = (evaluations[name].column("ndcg@10") for name in ("system 0", "system 1"))
    column = (after - before)[:, None]
    resamples = StatisticsSettings().resamples
    answers: dict[str, object] = {}

    def scipy_interval() -> None:
        # BCa in SciPy omits one query after the other: 10,000 × 10,000 numbers.
        answers["interval"] = stats.bootstrap(
            (column[:, 0],), np.mean, n_resamples=resamples, batch=BATCH, method="BCa", rng=1
        ).confidence_interval

    def scipy_test() -> None:
        answers["p"] = stats.permutation_test(
            (column[:, 0],), np.mean, permutation_type="samples", n_resamples=resamples,
            batch=BATCH, rng=1,
        ).pvalue  # fmt: skip

    theirs = {"interval": timed(scipy_interval, 1), "test": timed(scipy_test, 1)}
    columns = np.hstack(
        [evaluations[f"system {s}"].values - evaluations["system 0"].values for s in range(1, 5)]
    )
    everything = np.hstack([*(each.values for each in evaluations.values()), columns])

    def our_interval() -> object:
        ready = Columns.of(everything)
        return bca_interval(ready, bootstrap_means(ready))

    ours = {
        "interval": timed(our_interval, REPEATS),
        "test": timed(lambda: sign_flip_p(columns), REPEATS),
    }
    for name, count in (("interval", everything.shape[1]), ("test", columns.shape[1])):
        per_column, alone = ours[name][0] / count, theirs[name][0]
        print(
            f"{name}: SciPy {alone:.2f} s for one; rankdash {ours[name][0]:.2f} s for {count}, "
            f"{per_column * 1000:.1f} ms each: {alone / per_column:.0f}× faster"
        )
    row = found.row("system 1", "ndcg@10")
    low, high = answers["interval"]
    print(
        f"agreement on one difference: interval {row['delta_low']:.5f} to {row['delta_high']:.5f}, "
        f"SciPy {low:.5f} to {high:.5f}; p {row['p']:.4f}, SciPy {answers['p']:.4f}"
    )
    width = high - low
    assert abs(row["delta_low"] - low) < 0.05 * width
    assert abs(row["delta_high"] - high) < 0.05 * width
    assert abs(row["p"] - answers["p"]) < 0.01


if __name__ == "__main__":
    print(f"{QUERIES:,} queries × {SYSTEMS} systems × 6 metrics; goal {GOAL_SECONDS:g} s")
    whole = systems(failing=0.0)
    beside_scipy(whole, comparison("no query missing", whole))
    comparison("1 % missing, other queries in every column", systems(failing=0.01))
