"""A robot that labels in the order of many plans from the full labels, looking after every label;
and judges that err in a known way."""

from dataclasses import dataclass, replace

import numpy as np

from rankdash.analysis.labelling.additive import Additive
from rankdash.analysis.labelling.confidence_sequence import Sequence, follow, reach_of
from rankdash.analysis.labelling.draws import LabelPlan, Mode
from rankdash.analysis.labelling.estimate import each_draw
from rankdash.analysis.labelling.guess import Guess
from rankdash.analysis.labelling.kappa import cohen_kappa
from rankdash.analysis.labelling.label_pool import LabelPool, pool_of
from tests.sets import loaded


@dataclass(frozen=True, eq=False)
class Replay:
    """What one robot for each of S seeds saw, over M labels.

    truth: the difference by all labels. scale: the highest value that the metric can have.
    path: (S, M) as `follow` gives it.
    """

    truth: float
    scale: float
    path: Sequence

    @property
    def verdicts(self):
        """(S, M) -1, 0 or 1: which system is said to be better at each look, 0 for neither."""
        said = self.path.looks & (np.abs(self.path.mean) > self.path.half)
        said[:, -1] = False
        return np.where(said, np.sign(self.path.mean), 0)

    @property
    def effort(self):
        """(S,) labels until the first verdict; all where there was none."""
        said = self.verdicts != 0
        return np.where(said.any(axis=1), said.argmax(axis=1) + 1, said.shape[1])

    @property
    def wrong(self):
        """(S,) whether the first verdict names the worse system."""
        first = np.take_along_axis(self.verdicts, self.effort[:, None] - 1, axis=1)[:, 0]
        return first * np.sign(self.truth) < 0

    @property
    def covered(self):
        """(S,) whether the interval held the truth at every look."""
        misses = self.path.looks & (np.abs(self.path.mean - self.truth) > self.path.half)
        return ~misses[:, :-1].any(axis=1)

    @property
    def errors(self):
        """(S, 9) the error at each tenth of the labels, in parts of the metric's highest value."""
        tenths = np.arange(1, 10) * self.path.mean.shape[1] // 10 - 1
        return (self.path.mean[:, tenths] - self.truth) / self.scale

    @property
    def bias(self):
        """(9,) the mean error at each tenth of the labels."""
        return self.errors.mean(axis=0)

    def unbiased(self, most: float) -> bool:
        """Whether the bias is at most `most`, but for three standard errors of so many robots."""
        error = self.errors.std(axis=0) / len(self.errors) ** 0.5
        return bool((np.abs(self.bias) <= most + 3 * error).all())


def replay(
    pool: LabelPool,
    metric: Additive,
    labels,
    seeds,
    guess: Guess | None = None,
    mode: Mode = "weight",
) -> Replay:
    """Follow plans of the first contrast to their ends, a look after each draw. seeds: how many,
    from 0."""
    plans = [LabelPlan.make(pool, metric, seed=seed, mode=mode) for seed in range(seeds)]
    gains = metric.gains(labels)
    chosen = guess or Guess.from_ranks(pool)
    drawn = [each_draw(plan, 0, gains, chosen) for plan in plans]
    weights, won, groups = (
        np.array(each)
        for each in zip(*((own, got, of.groups) for own, got, of in drawn), strict=True)
    )
    start = drawn[0][2].start
    path = follow(
        weights,
        np.array([plan.drawing for plan in plans]),
        won,
        groups,
        left=np.bincount(groups[0], weights[0], len(start)),
        start=start,
        remaining=np.array([plan.remaining for plan in plans]),
        unit=float(plans[0].drawing.sum()),
        reach=reach_of(weights[0], plans[0].drawing),
        fewest=plans[0].fewest,
        alpha=plans[0].alpha,
    )
    scale = float(metric.weights(np.arange(1.0, metric.k + 1)).sum())
    return Replay(float((plans[0].weights[0] * gains).sum()), scale, path)


def real_pool(name: str, reranking: str, depth: int = 10) -> tuple[LabelPool, np.ndarray]:
    """The pool of the first stage and a reranking of a set, and the labels of all its pairs; those
    that nobody judged are 0."""
    found = loaded(name)
    run = next(run for run in found.runs if reranking in run.name)
    pool = pool_of({"first stage": found.dataset.candidates, reranking: run.ranking}, depth)
    return pool, np.nan_to_num(pool.aligned(found.dataset.qrels))


def without_difference(pool: LabelPool, metric: Additive, labels) -> LabelPool:
    """The pool with the two systems swapped in some queries, the choice of 2,000 random ones that
    leaves the smallest difference."""
    plan = LabelPlan.make(pool, metric, seed=0)
    own = np.bincount(pool.query, plan.weights[0] * metric.gains(labels))
    swaps = np.random.default_rng(7).choice([-1.0, 1.0], (2_000, len(own)))
    best = swaps[np.argmin(np.abs(swaps @ own))]
    return replace(pool, ranks=np.where(best[pool.query] < 0, pool.ranks[::-1], pool.ranks))


def judge(labels, kappa: float, top: float, wrong):
    """(N,) grades: those that `wrong` has in place of the labels, in as many random places as bring
    kappa down to the given one."""
    places = np.random.default_rng(11).random(len(labels))
    low, high = 0.0, 1.0
    for _ in range(30):
        share = (low + high) / 2
        grades = np.where(places < share, np.clip(wrong, 0, top), labels)
        if cohen_kappa(labels, grades).kappa > kappa:
            low = share
        else:
            high = share
    return grades


def one_grade_off(labels, top: float):
    """Each label one grade too high or too low, at random, within the scale."""
    steps = np.random.default_rng(3).choice([-1.0, 1.0], len(labels))
    inside = (labels + steps >= 0) & (labels + steps <= top)
    return np.where(inside, labels + steps, labels - steps)


def favouring(labels, weights):
    """Each label one grade too high where the challenger gains by it, else one too low."""
    return labels + np.where(weights > 0, 1.0, -1.0)
