"""The number of labels until a verdict, and how often the verdict is wrong, on real labels.

    python tests/benchmarks/labelling.py [SEEDS]

A robot labels the pool of both top tens of two rankings, with a look after every label: without a
judge, and with a judge's grades as predictions; one judge fails on a twentieth of the pairs. Goals,
of 300 seeds: the median of the labels until the verdict; at least 93 % of the runs with the truth
in every interval; no wrong verdict, or at most 1 % for a random sample; a bias of at most .002 at
every tenth of the labels (in parts of the highest value of the metric); without a true difference,
a verdict in at most 7.5 % of the runs, whichever system the judge favours. Exits with 1 if one is
missed.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from rankdash.core.data.arrays import Floats
from rankdash.core.sampling.label_plan import Additive, Guess, LabelPlan, LabelPool
from rankdash.core.sampling.rater_agreement import cohen_kappa
from tests.analysis.labelling.pools import real_pool, without_difference
from tests.benchmarks.robot import (
    Replay,
    failing,
    favouring,
    judge,
    one_grade_off,
    replay,
)
from tests.sets import SAMPLE, SETS

RERANKINGS = {"medquad": "minilm", "cmrc_zh": "minilm", SAMPLE.name: "by_title"}
# The maximum number of labels of the median run.
PEOPLE_ALONE = {"medquad": 442, "cmrc_zh": 231}
EVEN_KAPPA = 0.6
WITH_EVEN_JUDGE = {"medquad": 211, "cmrc_zh": 198}
FAVOURING_KAPPA = {"medquad": 0.66, "cmrc_zh": 0.41, SAMPLE.name: 0.6}
WITH_FAVOURING_JUDGE = {"medquad": 220, "cmrc_zh": 205}
NO_DIFFERENCE_KAPPA = 0.77


def told(what: str, found: Replay, pairs: int, goal: int | None, wrong: float = 0.0) -> bool:
    """Print one row; return whether its goals are met."""
    median = float(np.median(found.effort))
    held = float(found.covered.mean())
    met = held >= 0.93 and found.wrong.mean() <= wrong and found.unbiased(0.002)
    met &= goal is None or median <= goal
    print(
        f"  {what}: settled after a median of {median:,.0f} of {pairs:,} labels, "
        f"{median / pairs:.1%}{'' if goal is None else f' (goal {goal:,})'}; 9 of 10 by "
        f"{np.quantile(found.effort, 0.9):,.0f}; held {held:.1%}, wrong {found.wrong.sum()} of "
        f"{len(found.wrong)}, bias up to {np.abs(found.bias).max():.4f}{'' if met else '  MISSED'}"
    )
    return met


def main(name: str, seeds: int) -> bool:
    """Print the rows of a set; return whether its goals are met."""
    pool, labels = real_pool(name, RERANKINGS[name])
    top = float(labels.max())
    metric = Additive.of("dcg@10", top=top)
    weights = LabelPlan.make(pool, metric, seed=0).weights[0]
    alone = replay(pool, metric, labels, seeds)
    print(f"{name}: true difference {alone.truth / alone.scale:+.4f}")
    met = told("people alone", alone, len(pool), PEOPLE_ALONE.get(name))
    sampled = replay(pool, metric, labels, seeds, mode="random")
    met &= told("a random sample", sampled, len(pool), None, 0.01)
    whole = replay(pool, metric, labels, seeds, mode="query")
    print(
        f"  whole queries: settled after a median of {np.median(whole.effort):,.0f} of "
        f"{whole.verdicts.shape[1]:,} queries; held {whole.covered.mean():.1%}, wrong "
        f"{whole.wrong.sum()} of {len(whole.wrong)}"
    )
    even = judge(labels, EVEN_KAPPA, top, one_grade_off(labels, top))
    partial = judge(labels, FAVOURING_KAPPA[name], top, favouring(labels, weights))
    for what, grades, goals in (
        ("judge with even errors", even, WITH_EVEN_JUDGE),
        ("judge that favours the challenger", partial, WITH_FAVOURING_JUDGE),
        ("judge with even errors that fails on 5%", failing(even), {}),
    ):
        gains = metric.gains(grades)
        found = replay(pool, metric, labels, seeds, Guess.from_gains(gains))
        graded = ~np.isnan(grades)
        kappa = cohen_kappa(labels[graded], grades[graded]).kappa
        own = float((weights * gains)[graded].sum()) / found.scale
        title = f"{what} (kappa {kappa:.2f}, alone says {own:+.4f})"
        met &= told(title, found, len(pool), goals.get(name))
    return met & without(pool, metric, labels, seeds)


def without(pool: LabelPool, metric: Additive, labels: Floats, seeds: int) -> bool:
    """Print the rows of two systems without a difference; return whether the goals are met."""
    same = without_difference(pool, metric, labels)
    weights = LabelPlan.make(same, metric, seed=0).weights[0]
    partial = judge(labels, NO_DIFFERENCE_KAPPA, metric.top, favouring(labels, weights))
    gains = metric.gains(partial)
    met = True
    for what, guess in (("people alone", None), ("favouring judge", Guess.from_gains(gains))):
        found = replay(same, metric, labels, seeds, guess)
        said = found.verdicts != 0
        odd = np.random.default_rng(2).random(said.shape) < 0.02
        each, tenth, now = (looks.any(axis=1).mean() for looks in (said, said[:, ::10], said & odd))
        fine = each <= 0.075 and found.covered.mean() >= 0.93
        met &= bool(fine)
        print(
            f"  no true difference ({found.truth / found.scale:+.4f}), {what}: false verdicts "
            f"{each:.1%} with a look after every label, {tenth:.1%} after every tenth, {now:.1%} "
            f"at odd times; held {found.covered.mean():.1%}{'' if fine else '  MISSED'}"
        )
    alone = float((weights * gains).sum()) / found.scale
    print(f"  (that judge alone says {alone:+.4f}, kappa {cohen_kappa(labels, partial).kappa:.2f})")
    return met


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    results = [main(name, count) for name in RERANKINGS if name in SETS]
    raise SystemExit(0 if all(results) else 1)
