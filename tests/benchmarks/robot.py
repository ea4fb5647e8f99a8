"""A robot that labels in the order of many plans, with the full labels and a look after every
label; and judges with known errors."""

from dataclasses import dataclass, fields

import numpy as np

from rankdash.core.sampling.estimate import ConfidenceSequence, follow_draws
from rankdash.core.sampling.label_plan import (
    VALUE_SHARE,
    Additive,
    Guess,
    LabelPlan,
    LabelPool,
    Mode,
)
from rankdash.core.sampling.rater_agreement import cohen_kappa


@dataclass(frozen=True, eq=False)
class Replay:
    """The labels and looks of one robot for each of S seeds, over M labels.

    truth: the difference by all labels. relative: as a part of the baseline's value. scale: the
    highest value that the metric can have. path: (S, M), from `follow`. plans: one of each robot.
    """

    truth: float
    relative: float
    scale: float
    path: ConfidenceSequence
    plans: tuple[LabelPlan, ...]

    @property
    def verdicts(self):
        """(S, M) -1, 0 or 1: the system that is better by each look, 0 for neither."""
        said = (self.path.low > 0).astype(int) - (self.path.high < 0)
        said[:, -1] = 0
        return said

    @property
    def effort(self):
        """(S,) labels until the first verdict; all labels if there was none."""
        said = self.verdicts != 0
        return np.where(said.any(axis=1), said.argmax(axis=1) + 1, said.shape[1])

    @property
    def wrong(self):
        """(S,) True if the first verdict names the worse system."""
        first = np.take_along_axis(self.verdicts, self.effort[:, None] - 1, axis=1)[:, 0]
        return first * np.sign(self.truth) < 0

    @property
    def covered(self):
        """(S,) True if the interval contained the truth at every look."""
        misses = (self.path.low > self.truth) | (self.path.high < self.truth)
        return ~misses[:, :-1].any(axis=1)

    @property
    def relative_covered(self):
        """(S,) True if the interval of the relative change contained the truth at every look."""
        misses = (self.path.ratio_low > self.relative) | (self.path.ratio_high < self.relative)
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
        """Return whether the bias is at most `most`, within three standard errors of the robots."""
        error = self.errors.std(axis=0) / len(self.errors) ** 0.5
        return bool((np.abs(self.bias) <= most + 3 * error).all())


def replay(
    pool: LabelPool,
    metric: Additive,
    labels,
    seeds,
    guess: Guess | None = None,
    mode: Mode = "weight",
    share: float = VALUE_SHARE,
) -> Replay:
    """Follow plans of the first contrast to their ends, with a look after each label. seeds: number
    of plans, with the seeds 0, 1, …"""
    gains = metric.gains(labels)
    plans, paths = [], []
    for seed in range(seeds):
        plan = LabelPlan.make(pool, metric, seed=seed, mode=mode, share=share)
        path, _ = follow_draws(plan, 0, gains, guess or Guess.from_ranks(pool), len(plan.drawing))
        plans.append(plan)
        paths.append(path)
    together = {
        name: np.array([getattr(path, name) for path in paths])
        for name in (each.name for each in fields(ConfidenceSequence))
    }
    scale = float(metric.weights(np.arange(1.0, metric.k + 1)).sum())
    truth, baseline = (
        float((each[0] * gains).sum()) for each in (plans[0].weights, plans[0].baselines)
    )
    return Replay(truth, truth / baseline, scale, ConfidenceSequence(**together), tuple(plans))


def judge(labels, kappa: float, top: float, wrong):
    """Return (N,) grades: labels, replaced by `wrong` at random places until kappa is as low as
    `kappa`."""
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


def failing(grades, share: float = 0.05):
    """Return the grades without a random share of them."""
    return np.where(np.random.default_rng(13).random(len(grades)) < share, np.nan, grades)


def one_grade_off(labels, top: float):
    """Return each label one grade too high or too low, at random, within the scale."""
    steps = np.random.default_rng(3).choice([-1.0, 1.0], len(labels))
    inside = (labels + steps >= 0) & (labels + steps <= top)
    return np.where(inside, labels + steps, labels - steps)


def favouring(labels, weights):
    """Return labels with an error that favours the challenger: +1 if it gains by it, else −1."""
    return labels + np.where(weights > 0, 1.0, -1.0)
