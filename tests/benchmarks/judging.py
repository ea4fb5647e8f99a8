"""Coverage of a judge's corrected verdict, and the labels that the judge saves, with judges of
known errors on real labels.

    python tests/benchmarks/judging.py [RESAMPLES]

Queries are sampled with replacement from a set: n with human labels, and 1,000 that only the judge
grades; below a table, the same with as many others as the set has. Goals, of 600 resamples: the
truth in at least 92 % of the 95 % intervals, corrected and by human labels only; a standard error
at most 2 % above the one by human labels only; and with 1,000 others at least 20 % below it if
kappa is .5 or more. With fewer others a smaller saving is only marked ("short").

`limits`: the lowest possible standard error, first by these grades, if the expected human label of
every kind of document is known from all labels of the set; then by a judge without errors. The
second applies to any method: with N other queries at best the changes of n + N are known. The last
row of a table is a judge with random grades.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from rankdash.core.sampling.bias_corrected import Corrected
from tests.benchmarks.simulated import (
    METRICS,
    OTHERS,
    SETTINGS,
    Judged,
    held,
    judges,
    narrower,
    resampled,
)
from tests.sets import SETS

GOAL = 0.8


def follows(judged: Judged) -> float:
    """Return the correlation of human changes with those expected from the grades by all labels."""
    known = ~np.isnan(judged.people)
    _, expected = judged.expected(np.arange(len(judged.people)))
    return float(np.corrcoef(judged.people[known], np.nan_to_num(expected[known]))[0, 1])


def row(judged: Judged, found: list[Corrected], n: int, others: int) -> bool:
    """Print one row; return whether all goals are met."""
    ways = {way: held(found, way, judged.truth) for way in ("corrected", "people", "judge")}
    ratio = narrower(found)
    share = others / (n + others)
    limits = [np.sqrt(1 - share * known**2) for known in (follows(judged), 1.0)]
    met = min(ways["corrected"], ways["people"]) >= 0.92 and ratio <= 1.02
    short = judged.kappa >= 0.5 and ratio > 0.8
    if others >= OTHERS:
        met &= not short
    says = sum(each.judge.mean for each in found) / len(found)
    print(
        f"  {judged.kind:23} kappa {judged.kappa:+.2f}  alone says {says:+.4f}, holds the truth "
        f"{ways['judge']:6.1%}  people {ways['people']:.1%}  corrected {ways['corrected']:.1%}  "
        f"error {ratio - 1:+.1%}, limits {limits[0] - 1:+.0%} {limits[1] - 1:+.0%}"
        f"{'  short' if short else ''}{'' if met else '  MISSED'}",
        flush=True,
    )
    return met


def main(resamples: int) -> int:
    met = True
    for name, reranking, n in SETTINGS:
        if name not in SETS:
            continue
        for metric in METRICS:
            found = list(judges(name, reranking, metric))
            size, truth = len(found[0].people), found[0].truth
            others = (OTHERS, size - n)
            corrections = [resampled(each, n, others, resamples) for each in found]
            for place, count in enumerate(others):
                print(
                    f"{name}, {metric}: {n} queries of people's, {count:,} others, "
                    f"truth {truth:+.4f}"
                )
                for each, corrected in zip(found, corrections, strict=True):
                    met &= row(each, corrected[place], n, count)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 600))
