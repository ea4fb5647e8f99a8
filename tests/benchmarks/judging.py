"""How often the corrected verdict of a judge holds the truth, and what the judge saves, with judges
of known errors on real labels.

    python tests/benchmarks/judging.py [RESAMPLES]

Queries are drawn with replacement from a set: n that people label, and 1,000 that only the judge
grades. Goals, of 600 resamples: the truth in at least 92 % of the 95 % intervals, corrected and of
people alone; a standard error at most 2 % above that of people alone, and at least 20 % below it
where kappa is .5 or more. The last row of a set is a judge that guesses. Below a table, the same
with the rest of the set in place of the 1,000: then there is less to win (at most 18 % where 20
queries are left beside 40), and only the first two goals count.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.analysis.judging.simulated import (
    OTHERS,
    SETTINGS,
    Judged,
    held,
    judges,
    narrower,
    resampled,
)
from tests.sets import SETS


def row(judged: Judged, n: int, others: int, resamples: int, *, many: bool) -> bool:
    """Print one; gives whether all goals are met."""
    found = resampled(judged, n, others, resamples)
    ways = {way: held(found, way, judged.truth) for way in ("corrected", "people", "judge")}
    ratio = narrower(found)
    most = 0.8 if many and judged.kappa >= 0.5 else 1.02
    met = min(ways["corrected"], ways["people"]) >= 0.92 and ratio <= most
    says = sum(each.judge.mean for each in found) / len(found)
    print(
        f"  {judged.kind:23} kappa {judged.kappa:+.2f}  alone says {says:+.4f}, holds the truth "
        f"{ways['judge']:6.1%}  people {ways['people']:.1%}  corrected {ways['corrected']:.1%}  "
        f"error {ratio - 1:+.0%}{'' if met else '  MISSED'}"
    )
    return met


def main(resamples: int) -> int:
    met = True
    for name, reranking, n, spec in SETTINGS:
        if name not in SETS:
            continue
        found = list(judges(name, reranking, spec))
        size, truth = len(found[0].people), found[0].truth
        for others in (OTHERS, size - n):
            print(f"{name}, {spec}: {n} queries of people's, {others:,} others, truth {truth:+.4f}")
            many = others == OTHERS
            for each in found:
                met &= row(each, n, others, resamples, many=many)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 600))
