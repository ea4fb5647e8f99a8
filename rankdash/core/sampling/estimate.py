"""The difference between rankings by the labels so far, with an interval at each label."""

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

# The true difference is farther from the estimate in one of ten cases, by a normal distribution. Of
# the first forecasts of 500 plans for each of three pairs of systems without a difference and four
# with one, at least 90 % were enough.
_CAUTION = 1.645

State = Literal["too_early", "open", "settled", "complete"]


@dataclass(frozen=True)
class Estimate:
    """A difference, challenger minus baseline, by a metric, from some of the labels.

    state: "too_early" for an interval; "open": the interval contains 0; "settled": it does not, and
        may be acted on, however often one looked; "complete": all labels that weigh anything are
        there, and `difference` is exact for these queries.
    difference: the mean over the queries, in units of the metric; NaN before the first label.
    low, high: the interval that is valid at every look, the intersection of those at all looks so
        far; NaN while it is too early.
    like_these_low, like_these_high: the interval for queries like these, from one look: the spread
        between queries comes on top. NaN while it is too early, and for fewer than two queries.
    labels: those of the draws that are answered, up to the first that is not, or not in all of its
        pairs. waiting: labels of later draws, which count when their turn comes. known: labels that
        were there before. pairs: all that weigh anything, those included.
    needed: more labels until it is settled, if the difference is as estimated; at most what is
        left; None while it is too early. needed_most: the same if the difference is smaller by
        1.645 standard errors, which is enough in at least nine of ten cases: all that are left if
        it may be 0.
    saved: about how many labels more it would take without the judge for as narrow an interval, or,
        where it is settled, to settle it, if labels vary as those so far; below 0 where the judge
        costs labels; None without a judge, and while it is too early.
    conclusive_at: how many labels of the draws there were when the interval first excluded 0, which
        no later label takes back; None while it contains 0.
    relative, relative_low, relative_high: the difference as a part of the baseline's value (0.2 =
        20 % higher), with the interval that is valid at every look and excludes 0 with the other;
        NaN while the baseline's value is not known well enough, and for plans of earlier versions
        that sample no document at the same rank in both.
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
    def settled(self) -> bool:
        """Whether it is certain enough which of the two is better."""
        return self.state == "settled" or (self.state == "complete" and self.difference != 0)

    @property
    def kind(self) -> Literal["better", "worse", "unproven", "too_few"]:
        """The kind of verdict that it allows: "unproven" while it is not settled, "too_few" before
        the first interval."""
        if self.settled:
            return "better" if self.difference > 0 else "worse"
        return "too_few" if self.state == "too_early" else "unproven"


def next_draw(plan: LabelPlan, labels: Floats) -> int | None:
    """The place in `plan.order` of the first draw without a label, from 0; None where all have one.

    labels: (N,) of the pool; NaN where there is none.
    """
    unanswered = np.isnan(labels[plan.order])
    return int(np.argmax(unanswered)) if unanswered.any() else None


def estimate(plan: LabelPlan, labels: Floats, guess: Guess | None = None) -> tuple[Estimate, ...]:
    """What the labels say, for each contrast of the plan.

    labels: (N,) of each pair of the pool on the scale of the metric; NaN where there is none.
    guess: of the gains; None for that from the ranks.

    Only draws up to the first without a label count: which pairs lack one may depend on what they
    would be.

    Raises DataError for a label above the top of the scale.
    """
    gains = plan.metric.gains(np.where(np.isnan(labels), plan.known, labels))
    return tuple(_estimate(plan, each, gains, guess) for each in range(len(plan.contrasts)))


def _estimate(plan: LabelPlan, contrast: int, gains: Floats, judge: Guess | None) -> Estimate:
    alone = Guess.from_ranks(plan.pool)
    guess = judge or alone
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
            # Later draws can lead beyond what earlier intervals contain.
            mean = min(max(mean, low), high)
            figures.update(difference=mean, low=low, high=high)
            state = "open" if conclusive_at is None else "settled"
            relative = _part(path)
            needed = 0 if state == "settled" else _needed(plan, path, reach) - n
            most = 0 if state == "settled" else _needed(plan, path, reach, _CAUTION) - n
            like_these = _like_these(plan, contrast, gains, guess, n, mean)
            if guesses:
                without, _ = follow_draws(plan, contrast, gains, alone, draws)
                # Once it is settled, what makes it narrower settles nothing.
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
    """After how many labels of the draws an interval first excluded 0, and on which side: it stays
    excluded. None and 0 where none did."""
    sign = np.sign(path.low) * (path.low > 0) - (path.high < 0)
    if not sign[-1]:
        return None, 0
    return _labels_to(plan, sign != 0), int(sign[-1])


def _part(path: ConfidenceSequence) -> tuple[float, float, float]:
    """The difference as a part of the baseline's value, with its interval; NaN while that is not
    known well enough."""
    if path.ratio is None or path.ratio_low is None or path.ratio_high is None:
        return (math.nan,) * 3
    ratios = path.ratio[-1], path.ratio_low[-1], path.ratio_high[-1]
    if not np.isfinite(ratios).all():
        return (math.nan,) * 3
    # No value is below 0.
    value, low, high = (max(float(each), -1.0) for each in ratios)
    return value, low, high


def _exact_part(plan: LabelPlan, contrast: int, gains: Floats, difference: float) -> float:
    """The difference as a part of the baseline's value, with all labels; NaN where some of the
    baseline's documents have none, or none of them has a gain."""
    held = plan.baselines[contrast] > 0
    total = float((plan.baselines[contrast] * gains)[held].sum())
    return difference / total if total > 0 else math.nan


def _each_draw(
    plan: LabelPlan, weights: Floats, gains: Floats, guess: Guess
) -> tuple[Floats, Floats, Guess]:
    """(D,) the weight of each draw in a total, its gain (0 where a label is missing), and the
    groups of its guess.

    weights: (N,) of each pair of the pool in the total. Where queries are sampled, the weight is
    the root of the sum of the squared weights of a query's pairs, the gain what they move the total
    by in such weights, and all are one group.
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
    """The first draws of a plan with the difference of a contrast, also as a part of the baseline's
    value where that can be known, and the squared reach of a draw.

    gains: (N,) of each pair of the pool; NaN where a label is missing. guess: of the gains.
    """
    weights, totals = plan.weights[contrast], plan.baselines[contrast]
    before = ~np.isnan(plan.known) & ((weights != 0) | (totals > 0))
    draw_weights, won, sampled = _each_draw(plan, weights, gains, guess)
    size, seen = len(sampled.start), None
    if plan.mode != "query":
        count = _sums(guess.groups[before], np.ones(int(before.sum())), size)
        seen = count, _sums(guess.groups[before], gains[before], size)
    there = np.where(before, gains, 0.0)
    reach = _squared_reach(draw_weights, draw_weights, plan.drawing)
    of = None
    # Documents at the same rank in all systems are sampled in plans that have a share for them.
    if not (np.isnan(plan.known) & ~plan.weighs & (totals > 0)).any():
        whole, held, _ = _each_draw(plan, totals, gains, guess)
        shared = _sums(plan.draw, (weights * totals)[plan.order], len(plan.drawing))
        of = _Divisor(
            whole[:draws],
            held[:draws],
            _sums(sampled.groups, whole, size),
            float((totals * there).sum()),
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
        base=float((weights * there).sum()),
        fewest=plan.fewest,
        alpha=plan.alpha,
        of=of,
    )
    return path, reach


def _sums(groups: Integers, values: Floats, size: int) -> Floats:
    """(G,) of each group. Of no values bincount would make integers."""
    return np.bincount(groups, values, size).astype(np.float64)


def _needed(plan: LabelPlan, path: ConfidenceSequence, reach: float, caution: float = 0.0) -> int:
    """Labels until it is settled, from the first, if the difference is smaller than estimated by so
    many standard errors."""
    error = np.sqrt(path.spread[-1] * path.noise[-1]) / path.weight[-1]
    enough = _half_ahead(plan, path, reach) < abs(path.mean[-1]) - caution * error
    return _labels_to(plan, np.append(np.zeros(len(path.mean), dtype=bool), enough))


def _labels_for(plan: LabelPlan, path: ConfidenceSequence, reach: float, half: float) -> int:
    """Labels until half the interval is as narrow as that, from the first."""
    so_far = path.looks & (path.half <= half)
    return _labels_to(plan, np.append(so_far, _half_ahead(plan, path, reach) <= half))


def _half_ahead(plan: LabelPlan, path: ConfidenceSequence, reach: float) -> Floats:
    """Half the interval after each of the draws to come. They are known, so that only the spread is
    taken to stay as it is."""
    n = len(path.mean)
    ahead = plan.remaining[n:]
    each = _draw_weight(ahead)
    weight = path.weight[-1] + np.cumsum(each)
    noise = path.noise[-1] + np.cumsum((each * ahead) ** 2)
    draws = n + np.arange(1.0, len(ahead) + 1)
    return _half_width(float(path.spread[-1]), weight, noise, draws, reach, plan.alpha)


def _labels_to(plan: LabelPlan, enough: Flags) -> int:
    """The labels of the draws up to the first that is enough, or of all."""
    last = int(np.argmax(enough)) if enough.any() else len(enough) - 1
    return int(np.searchsorted(plan.draw, last, side="right"))


def _like_these(
    plan: LabelPlan, contrast: int, gains: Floats, guess: Guess, n: int, mean: float
) -> tuple[float, float]:
    """A t interval over the queries' own values, each estimated from its labels, so that their
    spread holds both that between queries and that of the draws.

    A draw is among the first n with about the probability 1 - exp(-(its size) × time), where time
    is such that n are expected (Horvitz and Thompson; Cohen and Kaplan 2007, bottom-k sketches).
    """
    queries = len(plan.pool.query_ids)
    if queries < 2:
        return float("nan"), float("nan")
    weights, weighs = plan.weights[contrast], plan.weighs
    labelled = weighs & ~np.isnan(plan.known)
    labelled[plan.order[:n]] = True
    held = np.where(labelled, gains, 0.0)
    size, groups = len(guess.start), guess.groups
    count = np.bincount(groups[labelled], minlength=size) + PSEUDO_LABELS
    learned = (
        np.bincount(groups[labelled], held[labelled], size) + PSEUDO_LABELS * guess.start
    ) / count
    expected = learned[groups]
    chance = np.ones(len(plan.pool))
    chance[plan.order] = _chances(plan.drawing, int(plan.draw[n - 1]) + 1 if n else 0)[plan.draw]
    parts = weights * (expected + np.where(labelled, (held - expected) / chance, 0.0))
    # Weights are shares of the mean over all queries.
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
    # With all that the server imports at its start it would be a tenth of it.
    from scipy.optimize import brentq

    relative = drawing / drawing.sum()

    def excess(log_time: float) -> float:
        return float(-np.expm1(-relative * np.exp(log_time)).sum()) - n

    time = np.exp(brentq(excess, -5.0, 60.0))
    chances: Floats = -np.expm1(-relative * time)
    return chances


# The running estimate of a total from draws without replacement, with an interval that holds at
# every look: one may look after each label and stop whenever it says enough.
#
# Each draw gives an unbiased value for the total: what is known, plus the guess of all the rest,
# plus what the sampled pair says of that guess's error. Late values vary less, because less is left
# to guess, and weigh more. Their mean has an asymptotic confidence sequence. Its intervals contain
# the total at every look together, so their running intersection does too: it only ever gets
# narrower.
#
# The ratio of two totals is each number r for which the interval of "first - r × second" contains
# 0, as in Fieller's interval, so that it excludes 0 at a look if and only if that of the first
# does.
#
# Sources: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, Time-uniform central limit theory
# and asymptotic confidence sequences; for the draws, Shekhar et al. 2023 (see draws.py); Fieller
# 1954, Some problems in interval estimation.

_RHO = 0.15
# Without a bound the last draws, with hardly anything left, would outweigh all that came before.
_MOST_WEIGHT = 4.0
# Draws that agree with their guess show no spread: two residuals of size 1 are taken to be unseen.
_UNSEEN = 2.0


@dataclass(frozen=True, eq=False)
class ConfidenceSequence:
    """The estimate after each of n draws; every array is (…, n).

    mean: the estimate. half: half the width of the interval of this draw alone. low, high: the
    intersection of the intervals up to this draw; the last one that is not empty; infinite before
    the first. spread: the variance of a draw while nothing is sampled. weight, noise: running sums
    of each draw's weight, and of its variance in units of `spread`. looks: whether an interval may
    be read. ratio, ratio_low, ratio_high: the same of the total as a part of another one; None
    where none was asked for, NaN and infinite while that one may be 0.
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


@dataclass(frozen=True, eq=False)
class _Divisor:
    """What a total is a part of, sampled by the same draws.

    weights, gains: (…, n) of each draw in this total. left, base: as `follow` has them. cross,
    reach: the squared reach of both totals together, and of this one, as `_squared_reach` gives it.
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
    """Follow n draws.

    weights, drawing, gains, groups: (…, n) of each draw: its weight in the total, what its
        probability was in proportion to, its gain, and the group of its guess.
    group_weights: (…, G) the sum of all weights of each group before the first draw. start: (G,)
        the gain that each group starts from. remaining: (…, n) the share not sampled before each
        draw.
    unit: the sum of `drawing` over all that there is to sample. reach: as `_squared_reach` gives
    it. seen: (G,) how many labels of each group were there before, and the sum of their gains.
    base: what the pairs add whose labels were there before. fewest: draws before an interval is
        given. alpha: the probability that the interval ever fails. of: what the total is a part of.
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
        known = base + _before((weights * gains)[..., None])[..., 0]
        surprise = weights / drawing * (gains - guessed)
        estimates: Floats = known + (guess * open_weight).sum(axis=-1) + unit * remaining * surprise
        return estimates

    moving = np.cumsum(weights * gains != 0, axis=-1)
    draws = np.arange(1.0, weights.shape[-1] + 1)
    looks = (draws >= fewest) & (moving >= FEWEST_NON_ZERO)
    first = value(weights, gains, group_weights, base)
    each = _draw_weight(remaining)
    weight, noise = np.cumsum(each, axis=-1), np.cumsum((each * remaining) ** 2, axis=-1)
    mean, spread = _mean(first, each), _shared_spread(first, first, each, noise)
    bound = _bound(weight, noise, alpha)
    square = (spread + _UNSEEN * reach / draws) * bound**2
    half = np.sqrt(square)
    low, high = _together(mean - half, mean + half, looks)
    sequence = ConfidenceSequence(mean, half, low, high, spread, weight, noise, looks)
    if of is None:
        return sequence
    second = value(of.weights, of.gains, of.left, of.base)
    whole = _mean(second, each)
    both = _shared_spread(first, second, each, noise) + _UNSEEN * of.cross / draws
    whole_spread = _shared_spread(second, second, each, noise) + _UNSEEN * of.reach / draws
    ratio, low, high = _ratio(mean, whole, square, both * bound**2, whole_spread * bound**2, looks)
    return replace(sequence, ratio=ratio, ratio_low=low, ratio_high=high)


def _squared_reach(weights: Floats, others: Floats, drawing: Floats) -> float:
    """How far the value of a draw is from its total where its gain is 1 away from the guess, as the
    mean square: for the (D,) weights of all there is to sample in a total and in another one (or
    the same), and what it is sampled in proportion to."""
    return float((weights * others / drawing).sum() * drawing.sum())


def _draw_weight(remaining: Floats) -> Floats:
    """What each draw weighs in the estimate: one over the variance of its value, within a bound."""
    weight: Floats = np.minimum(1 / remaining, _MOST_WEIGHT) ** 2
    return weight


def _half_width(
    spread: Floats | float, weight: Floats, noise: Floats, draws: Floats, reach: float, alpha: float
) -> Floats:
    """Half the interval after (…) draws: the asymptotic confidence sequence of Waudby-Smith et al.,
    with as many draws of equal variance as these weigh."""
    half: Floats = np.sqrt(spread + _UNSEEN * reach / draws) * _bound(weight, noise, alpha)
    return half


def _bound(weight: Floats, noise: Floats, alpha: float) -> Floats:
    equal = weight**2 / noise
    rate = equal * _RHO**2
    bound: Floats = np.sqrt(2 * (rate + 1) / (equal * rate) * np.log(np.sqrt(rate + 1) / alpha))
    return bound


def _mean(value: Floats, each: Floats) -> Floats:
    mean: Floats = np.cumsum(each * value, axis=-1) / np.cumsum(each, axis=-1)
    return mean


def _shared_spread(first: Floats, second: Floats, each: Floats, noise: Floats) -> Floats:
    """The covariance of two values of a draw while nothing is sampled; the variance of one and the
    same."""
    draws = np.arange(1.0, first.shape[-1] + 1)
    # Centred on the first value, so that little is lost to rounding where all are nearly equal.
    one, other = first - first[..., :1], second - second[..., :1]
    middle, beside = _mean(one, each), _mean(other, each)
    square = (
        np.cumsum(each**2 * one * other, axis=-1)
        - middle * np.cumsum(each**2 * other, axis=-1)
        - beside * np.cumsum(each**2 * one, axis=-1)
        + middle * beside * np.cumsum(each**2, axis=-1)
    )
    covariance: Floats = square / noise * draws / np.maximum(draws - 1, 1)
    return np.maximum(covariance, 0.0) if first is second else covariance


def _together(low: Floats, high: Floats, looks: Flags) -> tuple[Floats, Floats]:
    """The running intersection of the intervals at the looks; the last that is not empty."""
    lows = np.maximum.accumulate(np.where(looks, low, -np.inf), axis=-1)
    highs = np.minimum.accumulate(np.where(looks, high, np.inf), axis=-1)
    full = (lows <= highs).sum(axis=-1, keepdims=True)
    last = np.minimum(np.arange(lows.shape[-1]), full - 1)
    return np.take_along_axis(lows, last, axis=-1), np.take_along_axis(highs, last, axis=-1)


def _ratio(
    mean: Floats, whole: Floats, square: Floats, both: Floats, whole_square: Floats, looks: Flags
) -> tuple[Floats, Floats, Floats]:
    """Return the ratio, and the numbers r with (mean - r × whole)² at most square - 2 r × both +
    r² × whole_square: between the two roots, if the interval of the whole is above 0."""
    least = whole**2 - whole_square
    bounded = looks & (whole > 0) & (least > 0)
    scale = np.where(bounded, least, 1.0)
    middle = (mean * whole - both) / scale
    away = np.sqrt(np.maximum(middle**2 - (mean**2 - square) / scale, 0.0))
    low, high = _together(middle - away, middle + away, bounded)
    known = np.isfinite(low) & (whole > 0)
    value = np.divide(mean, whole, out=np.full(mean.shape, np.nan), where=known)
    return np.clip(value, low, high), low, high


def _before(steps: Floats) -> Floats:
    """(…, n, G) the sum over the draws before each."""
    return np.cumsum(steps, axis=-2) - steps
