"""Estimates of the difference between rankings from some of the labels, with an interval that is
valid after each label."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import special

from rankdash.core.data.arrays import Flags, Floats, Integers
from rankdash.core.sampling.label_plan import (
    FEWEST_DRAWS,
    FEWEST_NON_ZERO,
    PSEUDO_LABELS,
    Guess,
    LabelPlan,
)
from rankdash.core.statistics.anytime import half_width, ratio_interval, running_intersection

# With a normal distribution, the true difference is farther from the estimate in 10 % of cases. In
# simulations of 500 plans each, for three pairs of systems without a difference and four with one,
# at least 90 % of the first forecasts were sufficient.
_CAUTION = 1.645

State = Literal["too_early", "open", "settled", "complete"]


@dataclass(frozen=True)
class Estimate:
    """A difference, challenger minus baseline, in a metric, estimated from some of the labels.

    state: "too_early": no interval yet; "open": the interval contains 0; "settled": it excludes 0,
        and stays valid however often it is read; "complete": all labels with a weight are present,
        and `difference` is exact for these queries.
    difference: the mean over the queries, in units of the metric; NaN before the first label.
    low, high: the anytime-valid interval, the intersection of the intervals so far; NaN while it is
        too early.
    like_these_low, like_these_high: the interval for new queries of this kind, valid for a single
        look: it also includes the variance between queries. NaN while it is too early, and for
        fewer than two queries.
    labels: labels of the draws that are complete, up to the first incomplete one.
    waiting: labels of later draws, which count when their turn comes.
    known: labels from before the plan. pairs: all pairs with a weight, including those.
    needed: labels needed until the result is conclusive, if the difference is as estimated; at most
        the number of remaining labels; None while it is too early.
    needed_most: the same if the difference is smaller by 1.645 standard errors, which is sufficient
        in at least 90 % of cases: all remaining labels if the difference may be 0.
    saved: about how many more labels it would take without the judge for an interval as narrow or,
        for a conclusive result, for the same conclusion, if labels vary like the present ones;
        below 0 if the judge costs labels; None without a judge, and while it is too early.
    conclusive_at: the number of labels when the interval first excluded 0, which later labels do
        not change; None while it contains 0.
    relative, relative_low, relative_high: the difference as a share of the baseline's value (0.2 =
    20 % higher), with an anytime-valid interval that excludes 0 exactly if the other one does; NaN
    while the baseline's value is too uncertain and the result is inconclusive, and for plans of
    earlier versions, which sample no document at the same rank in both.
    """

    baseline: str
    challenger: str
    metric: str
    state: State
    difference: float
    low: float
    high: float
    like_these_low: float
    like_these_high: float
    level: float
    queries: int
    labels: int
    waiting: int
    known: int
    pairs: int
    needed: int | None
    saved: int | None
    needed_most: int | None = None
    conclusive_at: int | None = None
    relative: float = math.nan
    relative_low: float = math.nan
    relative_high: float = math.nan

    @property
    def conclusive(self) -> bool:
        """True if the result is conclusive."""
        return self.state == "settled" or (self.state == "complete" and self.difference != 0)

    @property
    def kind(self) -> Literal["better", "worse", "unproven", "too_few"]:
        """The kind of the verdict: "unproven" while it is inconclusive, "too_few" before the first
        interval."""
        if self.conclusive:
            return "better" if self.difference > 0 else "worse"
        return "too_few" if self.state == "too_early" else "unproven"


def next_draw(plan: LabelPlan, labels: Floats) -> int | None:
    """Return the index in `plan.order` of the first pair without a label; None if all have one.

    labels: (N,) of the pool; NaN if missing.
    """
    unanswered = np.isnan(labels[plan.order])
    return int(np.argmax(unanswered)) if unanswered.any() else None


def estimate(plan: LabelPlan, labels: Floats, guess: Guess | None = None) -> tuple[Estimate, ...]:
    """Return the estimate of each contrast of the plan.

    labels: (N,) of each pair of the pool on the scale of the metric; NaN if missing.
    guess: predictions of the gains; None for predictions from the ranks.

    Only draws up to the first incomplete one count: which pairs lack a label may depend on their
    relevance.

    Raises DataError for a label above the top of the scale.
    """
    gains = plan.metric.gains(np.where(np.isnan(labels), plan.known, labels))
    return tuple(_estimate(plan, each, gains, guess) for each in range(len(plan.contrasts)))


def _estimate(plan: LabelPlan, contrast: int, gains: Floats, judge: Guess | None) -> Estimate:
    by_rank = Guess.from_ranks(plan.pool)
    guess = judge or by_rank
    first_open = next_draw(plan, gains)
    weights = plan.weights[contrast]
    before = plan.weighs & ~np.isnan(plan.known)
    # A draw counts once all of its pairs have a label.
    draws = len(plan.drawing) if first_open is None else int(plan.draw[first_open])
    n = int(np.searchsorted(plan.draw, draws))
    nan = math.nan
    figures = {"difference": nan, "low": nan, "high": nan}
    state: State = "too_early"
    like_these = (nan, nan)
    needed = most = saved = None
    guesses = judge is not None and plan.mode != "query"
    relative = (nan, nan, nan)
    conclusive_at, sign = None, 0
    if draws:
        path, reach = follow_draws(plan, contrast, gains, guess, draws)
        conclusive_at, sign = _conclusive(plan, path)
    if first_open is None:
        exact = float((weights * np.where(plan.weighs, gains, 0.0)).sum())
        figures, state, needed, most = dict.fromkeys(figures, exact), "complete", 0, 0
        saved = 0 if guesses else None
        like_these = _like_these(plan, contrast, gains, guess, n, exact)
        relative = (_exact_part(plan, contrast, gains, exact),) * 3
        if sign != np.sign(exact):
            conclusive_at = n if exact else None
    elif draws:
        mean, half = float(path.mean[-1]), float(path.half[-1])
        figures["difference"] = mean
        if path.looks[-1]:
            low, high = float(path.low[-1]), float(path.high[-1])
            # Later draws can lead beyond the earlier intervals.
            mean = min(max(mean, low), high)
            figures.update(difference=mean, low=low, high=high)
            state = "open" if conclusive_at is None else "settled"
            relative = _part(path)
            if state == "settled" and math.isnan(relative[0]):
                relative = _part_within(plan, contrast, gains, path)
            needed = 0 if state == "settled" else _needed(plan, path, reach) - n
            most = 0 if state == "settled" else _needed(plan, path, reach, _CAUTION) - n
            like_these = _like_these(plan, contrast, gains, guess, n, mean)
            if guesses:
                without, _ = follow_draws(plan, contrast, gains, by_rank, draws)
                # For a conclusive result, a narrower interval saves no labels.
                enough = max(half, abs(mean))
                saved = _labels_for(plan, without, reach, enough)
                saved -= _labels_for(plan, path, reach, enough)
    baseline, challenger = plan.names(contrast)
    later = ~np.isnan(gains[plan.order[n:]])
    return Estimate(
        baseline=baseline,
        challenger=challenger,
        metric=plan.metric.measure.spec,
        state=state,
        **figures,
        like_these_low=like_these[0],
        like_these_high=like_these[1],
        level=plan.level,
        queries=len(plan.pool.query_ids),
        labels=n,
        waiting=int(later.sum()),
        known=int(before.sum()),
        pairs=int(plan.weighs.sum()),
        needed=needed,
        saved=saved,
        needed_most=most,
        conclusive_at=conclusive_at,
        relative=relative[0],
        relative_low=relative[1],
        relative_high=relative[2],
    )


def _conclusive(plan: LabelPlan, path: ConfidenceSequence) -> tuple[int | None, int]:
    """Return after how many labels an interval first excluded 0, and on which side: it stays
    excluded. None and 0 if none did."""
    sign = np.sign(path.low) * (path.low > 0) - (path.high < 0)
    if not sign[-1]:
        return None, 0
    return _labels_to(plan, sign != 0), int(sign[-1])


def _part(path: ConfidenceSequence) -> tuple[float, float, float]:
    """Return the difference as a share of the baseline's value, with its interval; NaN while the
    value is too uncertain."""
    if path.ratio is None or path.ratio_low is None or path.ratio_high is None:
        return (math.nan,) * 3
    ratios = path.ratio[-1], path.ratio_low[-1], path.ratio_high[-1]
    if not np.isfinite(ratios).all():
        return (math.nan,) * 3
    # The value of a system is never below 0.
    value, low, high = (max(float(each), -1.0) for each in ratios)
    return value, low, high


def _part_within(
    plan: LabelPlan, contrast: int, gains: Floats, path: ConfidenceSequence
) -> tuple[float, float, float]:
    """Return the difference as a share of the baseline's value, if only labels bound this value:
    the lowest one has no further relevant documents, the highest one only relevant documents. NaN
    if the lowest one is 0, or if the value was not sampled."""
    totals, labelled = plan.baselines[contrast], ~np.isnan(gains)
    least = float((totals * gains)[labelled].sum())
    most = least + float(totals[~labelled].sum())
    if path.other is None or least <= 0:
        return (math.nan,) * 3
    low, high = float(path.low[-1]), float(path.high[-1])
    ends = min(low / least, low / most), max(high / least, high / most)
    baseline = min(max(float(path.other[-1]), least), most)
    value = min(max(float(path.mean[-1]), low), high) / baseline
    return max(value, -1.0), max(ends[0], -1.0), max(ends[1], -1.0)


def _exact_part(plan: LabelPlan, contrast: int, gains: Floats, difference: float) -> float:
    """Return the difference as a share of the baseline's value, with all labels; NaN if some of the
    baseline's documents lack a label, or none of them has a gain."""
    ranked = plan.baselines[contrast] > 0
    total = float((plan.baselines[contrast] * gains)[ranked].sum())
    return difference / total if total > 0 else math.nan


def _each_draw(
    plan: LabelPlan, weights: Floats, gains: Floats, guess: Guess
) -> tuple[Floats, Floats, Guess]:
    """Return (D,) the weight of each draw in a total, (D,) its gain (0 if a label is missing), and
    the predictions of the gains.

    weights: (N,) of each pair of the pool in the total. If queries are sampled, the weight is the
        root of the sum of the squared weights of a query's pairs, the gain is their contribution to
        the total in units of this weight, and all draws are one group.
    """
    weights = weights[plan.order]
    won = np.nan_to_num(gains[plan.order])
    if plan.mode != "query":
        return weights, won, Guess(guess.groups[plan.order], guess.start)
    count = len(plan.drawing)
    moved = np.bincount(plan.draw, weights * won, count)
    size = np.sqrt(np.bincount(plan.draw, weights**2, count))
    share = np.divide(moved, size, out=np.zeros(count), where=size > 0)
    return size, share, Guess(np.zeros(count, dtype=np.int64), np.zeros(1))


def follow_draws(
    plan: LabelPlan, contrast: int, gains: Floats, guess: Guess, draws: int
) -> tuple[ConfidenceSequence, float]:
    """Return the confidence sequence of the first draws of a plan for the difference of a contrast,
    also as a share of the baseline's value if that can be estimated, and the squared reach of a
    draw.

    gains: (N,) of each pair of the pool; NaN if a label is missing. guess: predictions of the
        gains.
    """
    weights, totals = plan.weights[contrast], plan.baselines[contrast]
    before = ~np.isnan(plan.known) & ((weights != 0) | (totals > 0))
    draw_weights, won, sampled = _each_draw(plan, weights, gains, guess)
    size, seen = len(sampled.start), None
    if plan.mode != "query":
        count = _sums(guess.groups[before], np.ones(int(before.sum())), size)
        seen = count, _sums(guess.groups[before], gains[before], size)
    known_gains = np.where(before, gains, 0.0)
    reach = _squared_reach(draw_weights, draw_weights, plan.drawing)
    of = None
    # Only plans with a `share` sample documents at the same rank in all systems.
    if not (np.isnan(plan.known) & ~plan.weighs & (totals > 0)).any():
        whole, total_gains, _ = _each_draw(plan, totals, gains, guess)
        shared = _sums(plan.draw, (weights * totals)[plan.order], len(plan.drawing))
        of = _Divisor(
            whole[:draws],
            total_gains[:draws],
            _sums(sampled.groups, whole, size),
            float((totals * known_gains).sum()),
            _squared_reach(shared, np.ones(len(shared)), plan.drawing),
            _squared_reach(whole, whole, plan.drawing),
        )
    path = follow(
        draw_weights[:draws],
        plan.drawing[:draws],
        won[:draws],
        sampled.groups[:draws],
        group_weights=_sums(sampled.groups, draw_weights, size),
        start=sampled.start,
        remaining=plan.remaining[:draws],
        unit=float(plan.drawing.sum()),
        reach=reach,
        seen=seen,
        base=float((weights * known_gains).sum()),
        fewest=plan.fewest,
        alpha=plan.alpha,
        of=of,
    )
    return path, reach


def _sums(groups: Integers, values: Floats, size: int) -> Floats:
    """Return (G,) the sum of each group. Without values, bincount would return integers."""
    return np.bincount(groups, values, size).astype(np.float64)


def _needed(plan: LabelPlan, path: ConfidenceSequence, reach: float, caution: float = 0.0) -> int:
    """Return the labels needed until the result is conclusive, counted from the first, if the
    difference is smaller than estimated by `caution` standard errors."""
    error = np.sqrt(path.spread[-1] * path.noise[-1]) / path.weight[-1]
    enough = _half_ahead(plan, path, reach) < abs(path.mean[-1]) - caution * error
    return _labels_to(plan, np.append(np.zeros(len(path.mean), dtype=bool), enough))


def _labels_for(plan: LabelPlan, path: ConfidenceSequence, reach: float, half: float) -> int:
    """Return the labels needed until half the interval is at most `half`, counted from the
    first."""
    past = path.looks & (path.half <= half)
    return _labels_to(plan, np.append(past, _half_ahead(plan, path, reach) <= half))


def _half_ahead(plan: LabelPlan, path: ConfidenceSequence, reach: float) -> Floats:
    """Return half the interval after each of the remaining draws. Their weights are known; the
    spread is assumed to stay the same."""
    n = len(path.mean)
    ahead = plan.remaining[n:]
    each = _draw_weight(ahead)
    weight = path.weight[-1] + np.cumsum(each)
    noise = path.noise[-1] + np.cumsum((each * ahead) ** 2)
    draws = n + np.arange(1.0, len(ahead) + 1)
    return _half_width(float(path.spread[-1]), weight, noise, draws, reach, plan.alpha)


def _labels_to(plan: LabelPlan, enough: Flags) -> int:
    """Return the number of labels up to the first draw for which `enough` is True, or of all."""
    last = int(np.argmax(enough)) if enough.any() else len(enough) - 1
    return int(np.searchsorted(plan.draw, last, side="right"))


def _like_these(
    plan: LabelPlan, contrast: int, gains: Floats, guess: Guess, n: int, mean: float
) -> tuple[float, float]:
    """Return a t interval over the queries' own values, each estimated from its labels, so that
    their variance includes both the variance between queries and the sampling variance.

    A draw is among the first n with a probability of about 1 - exp(-(its size) × time), with `time`
    such that n are expected (Horvitz and Thompson; Cohen and Kaplan 2007, bottom-k sketches).
    """
    queries = len(plan.pool.query_ids)
    if queries < 2:
        return float("nan"), float("nan")
    weights, weighs = plan.weights[contrast], plan.weighs
    labelled = weighs & ~np.isnan(plan.known)
    labelled[plan.order[:n]] = True
    labelled_gains = np.where(labelled, gains, 0.0)
    size, groups = len(guess.start), guess.groups
    count = np.bincount(groups[labelled], minlength=size) + PSEUDO_LABELS
    learned = (
        np.bincount(groups[labelled], labelled_gains[labelled], size) + PSEUDO_LABELS * guess.start
    ) / count
    expected = learned[groups]
    chance = np.ones(len(plan.pool))
    chance[plan.order] = _chances(plan.drawing, int(plan.draw[n - 1]) + 1 if n else 0)[plan.draw]
    parts = weights * (expected + np.where(labelled, (labelled_gains - expected) / chance, 0.0))
    # Weights are contributions to the mean over all queries.
    estimates = np.bincount(plan.pool.query[weighs], parts[weighs], queries) * queries
    reach = (
        special.stdtrit(queries - 1, (1 + plan.level) / 2)
        * estimates.std(ddof=1)
        / np.sqrt(queries)
    )
    return mean - float(reach), mean + float(reach)


def _chances(drawing: Floats, n: int) -> Floats:
    if n == len(drawing):
        return np.ones(len(drawing))
    # Imported here: with the imports of the server's start, it would take a tenth of them.
    from scipy.optimize import brentq

    relative = drawing / drawing.sum()

    def excess(log_time: float) -> float:
        return float(-np.expm1(-relative * np.exp(log_time)).sum()) - n

    time = np.exp(brentq(excess, -5.0, 60.0))
    chances: Floats = -np.expm1(-relative * time)
    return chances


# The running estimate of a total from sampling without replacement, with an anytime-valid interval:
# it may be read after each label, and labelling may stop at any time.
#
# Each draw gives an unbiased value of the total: the known part, plus the predictions of the rest,
# plus the weighted prediction error of the sampled pair. Late values vary less, because less
# remains to be predicted, and have a larger weight. Their mean has an asymptotic confidence
# sequence. All its intervals contain the total simultaneously, so their running intersection does
# too, which only becomes narrower.
#
# The interval of the ratio of two totals is the set of numbers r for which the interval of "first -
# r × second" contains 0, as in Fieller's interval; it excludes 0 if and only if the interval of the
# first total does.
#
# Sources: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, Time-uniform central limit theory
# and asymptotic confidence sequences; for the draws, Shekhar et al. 2023 (see label_plan.py);
# Fieller 1954, Some problems in interval estimation.

# Without a bound, the last draws, with hardly anything remaining, would outweigh all earlier ones.
_MOST_WEIGHT = 4.0
# Draws that agree with their predictions show no spread, so two residuals of size 1 are added.
_UNSEEN = 2.0


@dataclass(frozen=True, eq=False)
class ConfidenceSequence:
    """The estimate after each of n draws; every array is (…, n).

    mean: the estimate. half: half the width of this draw's own interval.
    low, high: the intersection of the intervals up to this draw; the last non-empty one; infinite
        before the first.
    spread: the variance of a draw while nothing is sampled. weight, noise: running sums of each
        draw's weight, and of its variance in units of `spread`.
    looks: whether an interval may be read.
    ratio, ratio_low, ratio_high: the same for the ratio to another total; None if none was
        requested, NaN and infinite while the other total may be 0. other: the estimate of that
        total.
    """

    mean: Floats
    half: Floats
    low: Floats
    high: Floats
    spread: Floats
    weight: Floats
    noise: Floats
    looks: Flags
    ratio: Floats | None = None
    ratio_low: Floats | None = None
    ratio_high: Floats | None = None
    other: Floats | None = None


@dataclass(frozen=True, eq=False)
class _Divisor:
    """The denominator of a ratio of two totals, sampled by the same draws as the numerator.

    weights, gains: (…, n) of each draw in this total. left, base: as for `follow`. cross, reach:
        the squared reach of both totals together, and of this one, from `_squared_reach`.
    """

    weights: Floats
    gains: Floats
    left: Floats
    base: float
    cross: float
    reach: float


def follow(
    weights: Floats,
    drawing: Floats,
    gains: Floats,
    groups: Integers,
    *,
    group_weights: Floats,
    start: Floats,
    remaining: Floats,
    unit: float,
    reach: float,
    seen: tuple[Floats, Floats] | None = None,
    base: float = 0.0,
    fewest: int = FEWEST_DRAWS,
    alpha: float,
    of: _Divisor | None = None,
) -> ConfidenceSequence:
    """Return the confidence sequence of n draws.

    weights, drawing, gains, groups: (…, n) of each draw: its weight in the total, its unnormalised
        sampling probability, its gain, and its group of predictions.
    group_weights: (…, G) the sum of all weights of each group before the first draw.
    start: (G,) the initial prediction of each group.
    remaining: (…, n) the share not sampled before each draw.
    unit: the sum of `drawing` over everything to sample. reach: from `_squared_reach`.
    seen: (G,) the number of earlier labels of each group, and the sum of their gains.
    base: the contribution of the pairs with earlier labels. fewest: draws before the first
        interval.
    alpha: the probability that any interval misses the total. of: the other total of a ratio.
    """

    def value(weights: Floats, gains: Floats, group_weights: Floats, base: float) -> Floats:
        count, total = (np.zeros(len(start)),) * 2 if seen is None else seen
        member = groups[..., None] == np.arange(group_weights.shape[-1])
        guess = _before(np.where(member, gains[..., None], 0.0)) + total + PSEUDO_LABELS * start
        guess /= _before(member.astype(np.float64)) + count + PSEUDO_LABELS
        open_weight = group_weights[..., None, :] - _before(
            np.where(member, weights[..., None], 0.0)
        )
        guessed = np.take_along_axis(guess, groups[..., None], axis=-1)[..., 0]
        exact = base + _before((weights * gains)[..., None])[..., 0]
        surprise = weights / drawing * (gains - guessed)
        estimates: Floats = exact + (guess * open_weight).sum(axis=-1) + unit * remaining * surprise
        return estimates

    moving = np.cumsum(weights * gains != 0, axis=-1)
    draws = np.arange(1.0, weights.shape[-1] + 1)
    looks = (draws >= fewest) & (moving >= FEWEST_NON_ZERO)
    first = value(weights, gains, group_weights, base)
    each = _draw_weight(remaining)
    weight, noise = np.cumsum(each, axis=-1), np.cumsum((each * remaining) ** 2, axis=-1)
    mean, spread = _mean(first, each), _shared_spread(first, first, each, noise)
    bound = half_width(weight**2 / noise, alpha)
    square = (spread + _UNSEEN * reach / draws) * bound**2
    half = np.sqrt(square)
    low, high = running_intersection(mean - half, mean + half, looks)
    sequence = ConfidenceSequence(mean, half, low, high, spread, weight, noise, looks)
    if of is None:
        return sequence
    second = value(of.weights, of.gains, of.left, of.base)
    whole = _mean(second, each)
    both = _shared_spread(first, second, each, noise) + _UNSEEN * of.cross / draws
    whole_spread = _shared_spread(second, second, each, noise) + _UNSEEN * of.reach / draws
    ratio, low, high = ratio_interval(
        mean, whole, square, both * bound**2, whole_spread * bound**2, looks
    )
    return replace(sequence, ratio=ratio, ratio_low=low, ratio_high=high, other=whole)


def _squared_reach(weights: Floats, others: Floats, drawing: Floats) -> float:
    """Return the mean squared error of one draw's estimate of a total, for a prediction error of 1.

    weights, others: (D,) weights in the total, and in another one or the same. drawing: (D,)
        unnormalised sampling probabilities.
    """
    return float((weights * others / drawing).sum() * drawing.sum())


def _draw_weight(remaining: Floats) -> Floats:
    """Return the weight of each draw in the estimate: one over the variance of its value, within a
    bound."""
    weight: Floats = np.minimum(1 / remaining, _MOST_WEIGHT) ** 2
    return weight


def _half_width(
    spread: Floats | float, weight: Floats, noise: Floats, draws: Floats, reach: float, alpha: float
) -> Floats:
    """Return half the interval after (…) draws: the asymptotic confidence sequence of Waudby-Smith
    et al. with the effective number of draws of equal variance."""
    half: Floats = np.sqrt(spread + _UNSEEN * reach / draws) * half_width(weight**2 / noise, alpha)
    return half


def _mean(value: Floats, each: Floats) -> Floats:
    mean: Floats = np.cumsum(each * value, axis=-1) / np.cumsum(each, axis=-1)
    return mean


def _shared_spread(first: Floats, second: Floats, each: Floats, noise: Floats) -> Floats:
    """Return the covariance of two values per draw after each draw; the variance if both are the
    same array. each, noise: weights of the draws, and their running sum of squares."""
    draws = np.arange(1.0, first.shape[-1] + 1)
    # Centred on the first value to limit rounding errors if all are nearly equal.
    one, other = first - first[..., :1], second - second[..., :1]
    middle, other_middle = _mean(one, each), _mean(other, each)
    square = (
        np.cumsum(each**2 * one * other, axis=-1)
        - middle * np.cumsum(each**2 * other, axis=-1)
        - other_middle * np.cumsum(each**2 * one, axis=-1)
        + middle * other_middle * np.cumsum(each**2, axis=-1)
    )
    covariance: Floats = square / noise * draws / np.maximum(draws - 1, 1)
    return np.maximum(covariance, 0.0) if first is second else covariance


def _before(steps: Floats) -> Floats:
    """Return (…, n, G) the sum over the draws before each draw."""
    return np.cumsum(steps, axis=-2) - steps
