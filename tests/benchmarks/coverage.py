"""Coverage of intervals, and error rates of verdicts, gate and plans of queries.

    python tests/benchmarks/coverage.py [--sets 1000] [--tables intervals verdicts gate plan]
        [--methods skew-t t bca percentile] [--processes 1] [--values FILE] [--save FILE]

Sets of queries are sampled with replacement from the per-query values of real systems on the
labelled sets of `tests/sets.py`. A cell is a number of queries and a population: the changes of a
pair by a metric as they are ("diff"), weighted exponentially to a mean of 0 ("none"), or each also
with the opposite sign ("swap"), and the values of a system ("mean"). A set without spread, or
without an interval, is not counted; nor is a cell in which four of five sets are such. --save
writes the values, and --values reads them on a machine without the labelled sets. Prints Markdown
tables; the seed is 36.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.statistics.inference import corrected, intervals, p_below, p_values
from rankdash.core.statistics.planning import plan

SEED = 36
SPECS = ("ndcg@10", "mrr@10", "hit@1", "hit@10", "precision@10", "map")
SIZES = (5, 6, 8, 12, 20, 40, 160, 1500)
LEVEL = 0.95
FEWEST = 0.2
Array = np.ndarray


@dataclass(frozen=True)
class Population:
    """Values of queries, their sampling probabilities, and their mean."""

    name: str
    kind: str
    values: Array
    weights: Array

    @property
    def truth(self) -> float:
        return float(self.weights @ self.values)

    def drawn(self, n: int, sets: int) -> Array:
        """Return (n, sets) values."""
        seed = np.random.SeedSequence([SEED, n, *self.name.encode(), *self.kind.encode()])
        return np.random.default_rng(seed).choice(self.values, (n, sets), p=self.weights)


def real_values() -> dict[str, Array]:
    """Return set|system → (n, M) values of `SPECS`."""
    from rankdash.core.metrics import evaluate, judge
    from tests.sets import SETS, loaded

    found = {}
    for name in SETS:
        made = loaded(name)
        for system, ranking in {
            "first": made.dataset.candidates,
            **made.rankings,
        }.items():
            found[f"{name}|{system}"] = evaluate(judge(ranking, made.dataset.qrels), SPECS).values
    return found


def populations(values: dict[str, Array]) -> list[Population]:
    """Return the populations of every set: rerankings against the first stage, and each system."""
    found = []
    for key, own in values.items():
        base = values[key.partition("|")[0] + "|first"]
        for at, spec in enumerate(SPECS):
            name = f"{key}|{spec}"
            found.append(_even(name, "mean", own[:, at]))
            if own is not base:
                change = np.round(own[:, at] - base[:, at], 12)
                found.append(_even(name, "diff", change))
                found.append(_even(name, "swap", np.concatenate([change, -change])))
                found += _without_change(name, change[~np.isnan(change)])
    return found


def _even(name: str, kind: str, values: Array) -> Population:
    known = values[~np.isnan(values)]
    return Population(name, kind, known, np.full(len(known), 1 / len(known)))


def _without_change(name: str, change: Array) -> Iterator[Population]:
    if change.min() < 0 < change.max():
        low, high = -1000.0, 1000.0
        while high - low > 1e-12:
            tilt = (low + high) / 2
            weights = np.exp(tilt * change - np.max(tilt * change))
            weights /= weights.sum()
            low, high = (low, tilt) if weights @ change > 0 else (tilt, high)
        yield Population(name, "none", change, weights)


def covered(cell: tuple[Population, int], method: str, sets: int) -> tuple[float, float, float]:
    """Return the share of intervals that contain the truth, the share of sets with an interval, and
    the share of all sets with an interval that misses the truth."""
    population, n = cell
    drawn = population.drawn(n, sets)
    low, high = intervals(drawn, StatisticsSettings(interval=method, resamples=2_000))
    made = ~np.isnan(low) & (np.ptp(drawn, axis=0) > 1e-9)
    truth = population.truth
    inside = made & (low <= truth + 1e-12) & (high >= truth - 1e-12)
    return inside.sum() / max(made.sum(), 1), made.mean(), (made & ~inside).mean()


def wrong(cell: tuple[Population, int], challengers: int, sets: int) -> tuple[float, float]:
    """Return the share of sets in which any of `challengers` systems as good as the baseline is
    called better or worse; and the same share by the corrected p only."""
    population, n = cell
    settings = StatisticsSettings(resamples=2_000)
    drawn = population.drawn(n, sets * challengers)
    low, high = intervals(drawn, settings)
    p = p_values(drawn, settings).reshape(sets, challengers)
    p = np.array([corrected(row.tolist()) for row in p])
    excluded = ((low > 0) | (high < 0)).reshape(sets, challengers)
    enough = n >= settings.fewest_queries(challengers)
    found = (p <= 1 - LEVEL + 1e-12) & enough
    return (found & excluded).any(axis=1).mean(), found.any(axis=1).mean()


def passed(cell: tuple[Population, int], sets: int) -> tuple[float, float]:
    """Return the share of sets with a true gain exactly at the limit that pass a gate, and the
    share in which p and interval agree. Sets without any change are excluded."""
    population, n = cell
    drawn = population.drawn(n, sets)
    drawn = drawn[:, np.ptp(drawn, axis=0) > 1e-9]
    truth = population.truth
    low, _ = intervals(drawn, StatisticsSettings(level=2 * LEVEL - 1))
    through = low >= truth - 1e-12
    p = np.array([p_below(column, truth) for column in drawn.T])
    agree = (through == (p <= 1 - LEVEL + 1e-12)) | np.isnan(low)
    return through.mean(), agree.mean()


def planned(cell: tuple[Population, int], sets: int) -> list[tuple[str, bool, float]]:
    """Return, for each plan, the name of the number, whether the true change is at least the
    number's change, and the odds that this many new queries prove the change."""
    population, n = cell
    settings = StatisticsSettings(resamples=1_000)
    drawn = population.drawn(n, sets)
    low, high = intervals(drawn, settings)
    p = p_values(drawn, settings)
    open_ = ~np.isnan(low) & ~(((low > 0) | (high < 0)) & (p <= 1 - LEVEL))
    rng = np.random.default_rng([SEED, n])
    found = []
    for at in np.flatnonzero(open_).tolist():
        made = plan(drawn[:, at], (low[at], high[at]))
        if made is None or made.likely is None or made.none_within:
            continue
        sign, mean = np.sign(drawn[:, at].mean()), abs(drawn[:, at].mean())
        ends = sorted(sign * end for end in (low[at], high[at]))
        shares = 0.3441
        changes = {
            "least": mean + shares * (ends[1] - mean),
            "likely": mean,
            "most": mean + shares * (ends[0] - mean),
        }
        for number, change in changes.items():
            more = getattr(made, number)
            if more is None or more > 20_000:
                continue
            new = rng.choice(population.values, (more, 40), p=population.weights)
            joined = np.vstack([np.repeat(drawn[:, [at]], 40, axis=1), new])
            ends_ = intervals(joined, settings)
            proven = (ends_[0] > 0) if sign > 0 else (ends_[1] < 0)
            proven &= p_values(joined, settings) <= 1 - LEVEL
            found.append((number, bool(sign * population.truth >= change), float(proven.mean())))
    return found


def _row(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def _head(*cells: str) -> None:
    _row(*cells)
    _row(*["---"] * len(cells))


def table_of_intervals(every, sets, run, methods) -> None:
    print(f"\nCoverage of 95 % intervals, {sets:,} sets per cell\n")
    _head("queries", "kind", "method", "cells", "lowest", "median", "highest", "below 93 %",
          "above 97 %", "most sets missed", "lowest cell")  # fmt: skip
    kinds = {"diff": "difference", "none": "no difference", "swap": "no difference, even",
             "mean": "mean"}  # fmt: skip
    for n, kind, method in itertools.product(SIZES, kinds, methods):
        cells = [(each, n) for each in every if each.kind == kind]
        found = list(run(partial(covered, method=method, sets=sets), cells))
        kept = [(*one, cell[0].name) for one, cell in zip(found, cells, strict=True)
                if one[1] >= FEWEST]  # fmt: skip
        if not kept:
            _row(n, kinds[kind], method, 0, *["–"] * 7)
            continue
        shares = np.array([one[0] for one in kept])
        _row(n, kinds[kind], method, len(kept), *(f"{100 * each:.1f}" for each in
             (shares.min(), np.median(shares), shares.max())), (shares < 0.93).sum(),
             (shares > 0.97).sum(), f"{100 * max(one[2] for one in kept):.1f}",
             min(kept)[3].replace("|", " "))  # fmt: skip


def table_of_verdicts(every, sets, run) -> None:
    print(f"\nSets with a false verdict under Holm, no true difference, {sets:,} sets per cell\n")
    _head("queries", "challengers", "cells", "lowest", "median", "highest", "highest by p alone")
    cells = [each for each in every if each.kind in ("none", "swap")]
    for n, challengers in itertools.product((6, 8, 12, 20, 40, 160), (1, 3, 8)):
        found = list(run(partial(wrong, challengers=challengers, sets=sets),
                         [(each, n) for each in cells]))  # fmt: skip
        rates = np.array([one[0] for one in found])
        shown = (rates.min(), np.median(rates), rates.max(), max(one[1] for one in found))
        _row(n, challengers, len(found), *(f"{100 * each:.1f}" for each in shown))


def table_of_the_gate(every, sets, run) -> None:
    print(f"\nSets let through at 95 % whose true gain is the limit, {sets:,} sets per cell\n")
    _head("queries", "kind", "cells", "lowest", "median", "highest", "p and limit agree")
    for n, kind in itertools.product(SIZES[1:], ("none", "swap", "diff")):
        found = list(run(partial(passed, sets=sets),
                         [(each, n) for each in every if each.kind == kind]))  # fmt: skip
        rates = np.array([one[0] for one in found])
        _row(n, kind, len(found), *(f"{100 * each:.1f}" for each in
             (rates.min(), np.median(rates), rates.max())),
             f"{100 * min(one[1] for one in found):.0f} %")  # fmt: skip


def table_of_plans(every, sets, run) -> None:
    print("\nOdds that N more new queries prove a change, for sets with a plan\n")
    _head("queries", "kind", "N", "plans", "odds", "plans with so large a true change", "odds then")
    for n, kind in itertools.product((40, 160), ("diff", "swap")):
        cells = [(each, n) for each in every if each.kind == kind]
        found = [one for each in run(partial(planned, sets=sets), cells) for one in each]
        for number in ("least", "likely", "most"):
            own = [one for one in found if one[0] == number]
            large = [one[2] for one in own if one[1]]
            _row(n, kind, number, len(own), f"{100 * np.mean([one[2] for one in own]):.0f} %",
                 len(large), f"{100 * np.mean(large):.0f} %" if large else "–")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=1_000)
    parser.add_argument("--tables", nargs="+", default=["intervals", "verdicts", "gate", "plan"])
    parser.add_argument("--methods", nargs="+", default=["skew-t", "t", "bca", "percentile"])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--plans", type=int, default=30, help="sets per cell of the plans")
    parser.add_argument("--values", type=Path)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    values = dict(np.load(options.values)) if options.values else real_values()
    if options.save:
        np.savez(options.save, **values)
        return
    every = populations(values)
    with ProcessPoolExecutor(options.processes) as pool:
        run = pool.map if options.processes > 1 else map
        if "intervals" in options.tables:
            table_of_intervals(every, options.sets, run, options.methods)
        if "verdicts" in options.tables:
            table_of_verdicts(every, options.sets, run)
        if "gate" in options.tables:
            table_of_the_gate(every, options.sets, run)
        if "plan" in options.tables:
            table_of_plans(every, options.plans, run)


if __name__ == "__main__":
    main()
