"""How many labels settle a question, and how often the answer is wrong, on real labels.

    python tests/benchmarks/labelling.py [SEEDS]

A robot labels the pool of both top tens of the first stage and MiniLM, looking after every label.
Goals, of 300 seeds: the median of the labels until settled (in % of the pool), at least 93 % of the
runs with the truth in every interval, no wrong verdict, a bias of at most .002 at every tenth of
the labels (in parts of the highest value of the metric); where there is no true difference, a
verdict in at most 7.5 % of the runs; a judge that favours one system costs at most 10 % more labels
than none.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from rankdash.analysis.labelling.additive import Additive
from rankdash.analysis.labelling.draws import LabelPlan
from rankdash.analysis.labelling.guess import Guess
from rankdash.analysis.labelling.kappa import cohen_kappa
from tests.analysis.labelling.robot import (
    Replay,
    favouring,
    judge,
    one_grade_off,
    real_pool,
    replay,
    without_difference,
)
from tests.sets import SETS

PEOPLE_ALONE, WITH_JUDGE = {"medquad": 0.46, "cmrc_zh": 0.07}, {"medquad": 0.22, "cmrc_zh": 0.06}
FAVOURING_KAPPA = {"medquad": 0.66, "cmrc_zh": 0.41}


def told(what: str, found: Replay, pairs: int, goal: float | None) -> float:
    """Print one row; gives the median effort as a share of the pairs."""
    share = float(np.median(found.effort)) / pairs
    wanted = "" if goal is None else f" (goal {goal:.0%})"
    print(
        f"  {what}: settled after a median of {np.median(found.effort):,.0f} of {pairs:,} labels, "
        f"{share:.1%}{wanted}; 9 of 10 by {np.quantile(found.effort, 0.9):,.0f}; held "
        f"{found.covered.mean():.1%}, wrong {found.wrong.sum()} of {len(found.wrong)}, bias up to "
        f"{np.abs(found.bias).max():.4f}"
    )
    return share


def main(name: str, seeds: int) -> None:
    pool, labels = real_pool(name, "minilm")
    top = float(labels.max())
    metric = Additive.of("dcg@10", top=top)
    weights = LabelPlan.make(pool, metric, seed=0).weights[0]
    alone = replay(pool, metric, labels, seeds)
    print(f"{name}: true difference {alone.truth / alone.scale:+.4f}")
    told("people alone", alone, len(pool), PEOPLE_ALONE[name])
    even = judge(labels, 0.6, top, one_grade_off(labels, top))
    partial = judge(labels, FAVOURING_KAPPA[name], top, favouring(labels, weights))
    for what, grades, goal in (
        ("judge with even errors", even, WITH_JUDGE[name]),
        ("judge that favours the challenger", partial, None),
    ):
        gains = metric.gains(grades)
        found = replay(pool, metric, labels, seeds, Guess.from_gains(gains))
        kappa = cohen_kappa(labels, grades).kappa
        own = float((weights * gains).sum()) / found.scale
        told(f"{what} (kappa {kappa:.2f}, alone says {own:+.4f})", found, len(pool), goal)
    same = without_difference(pool, metric, labels)
    nothing = replay(same, metric, labels, seeds)
    said = nothing.verdicts != 0
    for every in (1, 10):
        looks = said[:, ::every].any(axis=1).mean()
        print(f"  no true difference, a look after every {every}: false verdicts {looks:.1%}")
    odd = np.random.default_rng(2).random(said.shape) < 0.02
    print(f"  no true difference, looks at odd times: {(said & odd).any(axis=1).mean():.1%}")
    print(f"  no true difference: covered {nothing.covered.mean():.1%}")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for real in ("medquad", "cmrc_zh"):
        if real in SETS:
            main(real, count)
