"""False alarms and delays of `rankdash nightly` in simulated years.

    python -m tests.benchmarks.nightly [FOLDER ...]

The values per query are from real rankings: the sample in English, and any folder with
`initial.trec`, `qrels.tsv` and rankings of rerankers. Churn changes the order of the first stage's
documents, and each change is scored by the metric itself. Exits with 1 beyond a goal: an alarm in
at most 5 % ± 2 of 300 years of 365 nights without a drop, and a drop of .03 detected within three
nights (median of 300 series) unless the churn is heavy and the pinned run is one fetch.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankdash.core.base.shipped import SAMPLES, runs_of
from rankdash.core.data.arrays import Floats
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import evaluate, judge
from rankdash.core.readers import sources_from_path
from rankdash.core.readers.loading import load
from rankdash.core.statistics.nights import NightRule, added, compared, noise, total
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import import_workspace
from tests.sets import SAMPLE

RULE = NightRule()
METRIC = "ndcg@10"
VARIANTS = 60
CHURNS = ("none", "few", "heavy")
SERIES, NIGHTS = 300, 365
DROP, WITHIN, MOST = -0.03, 3, 0.07


@dataclass(frozen=True)
class Set:
    """Values per query: of the first stage with each kind of churn (variants, queries), and the
    change that a real reranker makes (queries)."""

    name: str
    churned: dict[str, Floats]
    change: Floats


def _values(ranking: Ranking, qrels) -> dict[str, float]:
    evaluation = evaluate(judge(ranking, qrels), [METRIC])
    return dict(zip(evaluation.query_ids, evaluation.values[:, 0], strict=True))


def _churned(ranking: Ranking, kind: str, rng: np.random.Generator) -> Ranking:
    """Return the ranking as an engine might answer the next time. few: two of the first twelve
    documents change places in a tenth of the queries. heavy: an approximate index does not find a
    tenth of the documents, and the others change places with their neighbours."""
    lists = []
    for query in ranking.query_ids:
        docs, _scores = ranking.documents_of(query)
        if kind == "few" and len(docs) > 12 and rng.random() < 0.1:
            one, other = rng.choice(12, 2, replace=False)
            docs[one], docs[other] = docs[other], docs[one]
        if kind == "heavy":
            order = np.argsort(np.arange(len(docs)) + rng.normal(0, 0.5, len(docs)))
            docs = [docs[place] for place in order if rng.random() >= 0.1]
        lists.append((query, docs, -np.arange(len(docs), dtype=float)))
    return Ranking.from_lists(lists)


def read(folder: Path, reranked: Ranking | None = None, variants: int = VARIANTS) -> Set:
    """Return the values of a folder. reranked: another ranking, instead of the first in it."""
    loaded = load(sources_from_path(folder))
    dataset, rng = loaded.dataset, np.random.default_rng(0)
    other = reranked or loaded.runs[0].ranking
    first, after = (_values(each, dataset.labels) for each in (dataset.candidates, other))
    queries = [q for q in first if not np.isnan(first[q]) and not np.isnan(after.get(q, np.nan))]
    churned = {}
    for kind in CHURNS:
        values = [
            _values(_churned(dataset.candidates, kind, rng), dataset.labels)
            for _ in range(1 if kind == "none" else variants)
        ]
        churned[kind] = np.array([[each[query] for query in queries] for each in values])
    change = np.array([after[query] - first[query] for query in queries])
    return Set(folder.name, churned, change)


def other_of_sample() -> Ranking:
    """Return the ranking of a run that comes with the sample."""
    with tempfile.TemporaryDirectory() as home:
        workspace = Workspace(Path(home))
        import_workspace.bring_in(workspace, runs_of(SAMPLES["en"]), "the sample")
        (row,) = (each for each in workspace.runs() if "stemming" in each.name)
        return workspace.run(row.id).ranking


def fetches(pool: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return the values of some fetches (count, queries): of each query, one variant at random."""
    rows = rng.integers(len(pool), size=(count, pool.shape[1]))
    return pool[rows, np.arange(pool.shape[1])]


Change = Callable[[int], Floats | float]


def alarm(
    pool: Floats,
    change: Change,
    rng: np.random.Generator,
    *,
    nights: int = NIGHTS,
    repeat: int = 2,
    pinned: int = 1,
    shared: bool = False,
    rule: NightRule = RULE,
) -> int | None:
    """Return the night of the first alarm of a series, from 1; None without one.

    change: night → the change of each query. shared: the fetches of a night are equal, as if the
    engine cached them.
    """
    reference = fetches(pool, pinned, rng)
    series, evidence, before = [], (), None
    for night in range(1, nights + 1):
        values = fetches(pool, 1 if shared else repeat, rng)
        values = np.repeat(values, repeat, axis=0) if shared else values
        values = values + change(night)
        measured = compared(reference, values, before)
        evidence = added(rule, evidence, measured, noise(series, measured))
        if total(evidence) >= rule.threshold:
            return night
        series.append(measured)
        before = values
    return None


def swaps(change: Floats, rng: np.random.Generator, each: int = 60) -> Change:
    """Return lasting changes of single queries with the sum 0: a real change of a tenth of the
    queries, every `each` nights."""
    steps = []
    for _ in range(NIGHTS // each + 1):
        step = np.zeros(len(change))
        chosen = rng.choice(len(change), max(len(change) // 10, 2), replace=False)
        drawn = rng.choice(change[change != 0], len(chosen))
        step[chosen] = drawn - drawn.mean()
        steps.append((int(rng.integers(1, NIGHTS)), step))
    return lambda night: sum((step for start, step in steps if night >= start), 0.0)


def drop(change: Floats, rng: np.random.Generator, start: int, kind: str) -> Change:
    """Return a lasting drop of the mean, which begins in a night. even: each query alike. real: as
    a real reranker changes the queries, moved to this mean. some: a few queries lose .3 each."""
    lost = np.full(len(change), DROP)
    if kind == "real":
        lost = rng.permutation(change) - change.mean() + DROP
    if kind == "some":
        lost = np.zeros(len(change))
        chosen = rng.choice(len(change), max(len(change) // 10, 1), replace=False)
        lost[chosen] = DROP * len(change) / len(chosen)
    return lambda night: lost if night >= start else 0.0


def _together(rng: np.random.Generator) -> Change:
    """Return a change of all queries alike, another one every night, without churn in a night."""
    changes = rng.normal(0, 0.004, NIGHTS + 1)
    return lambda night: float(changes[night])


def rates(data: Set, series: int, nights: int) -> Iterator[tuple[str, float]]:
    """Yield (case, share of years with an alarm)."""
    cases: dict[str, Callable[[np.random.Generator], Change]] = {
        "no change": lambda _rng: lambda _night: 0.0,
        "changes with sum 0": lambda rng: swaps(data.change, rng),
        "a drop of just the smallest": lambda _rng: lambda _night: -RULE.smallest,
    }
    ways = {"": {}, ", cached": {"shared": True}, ", one fetch": {"repeat": 1}}
    for kind in CHURNS:
        for way, settings in ways.items() if kind != "none" else [("", {})]:
            for name, make in cases.items():
                yield (
                    f"{kind} churn{way}, {name}",
                    _rate(data.churned[kind], make, series, nights, **settings),
                )
    yield "all queries together", _rate(data.churned["none"], _together, series, nights)


def _rate(
    pool: Floats, make: Callable[[np.random.Generator], Change], series: int, nights: int, **more
) -> float:
    found = 0
    for seed in range(series):
        rng = np.random.default_rng(seed)
        found += alarm(pool, make(rng), rng, nights=nights, **more) is not None
    return found / series


def delays(data: Set, series: int) -> Iterator[tuple[str, float, float]]:
    """Yield (case, median and 90 % quantile of the nights until the alarm)."""
    for kind in CHURNS:
        for lost in ("even", "real", "some"):
            for start in (1, 31):
                for pinned in (1, 3):
                    waits = []
                    for seed in range(series):
                        rng = np.random.default_rng(seed)
                        change = drop(data.change, rng, start, lost)
                        night = alarm(
                            data.churned[kind], change, rng, nights=start + 60, pinned=pinned
                        )
                        waits.append(np.inf if night is None else night - start + 1)
                    yield (
                        f"{kind} churn, {lost} drop from night {start}, pinned {pinned} times",
                        float(np.median(waits)),
                        float(np.quantile(waits, 0.9, method="higher")),
                    )


def main() -> int:
    """Print each case with its result. Return 1 if one is beyond its goal."""
    data = [read(SAMPLE, other_of_sample()), *(read(Path(folder)) for folder in sys.argv[1:])]
    missed = 0
    for each in data:
        print(f"{each.name}: {len(each.change)} queries", flush=True)
        for case, share in rates(each, SERIES, NIGHTS):
            missed += share > MOST
            print(f"  {case}: an alarm in {share:.1%} of {SERIES} years", flush=True)
        for case, median, late in delays(each, SERIES):
            missed += each is data[0] and median > WITHIN and not case.startswith("heavy")
            print(f"  {case}: after {median:g} nights (90 %: {late:g})", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
