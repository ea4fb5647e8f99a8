"""The running estimate of a total from draws without replacement, with an interval that holds at
every look: one may look after each label and stop whenever it says enough.

Each draw gives an unbiased value for the total: what is known, plus the guess of all the rest, plus
what the drawn pair says of that guess's error. Late values vary less, because less is left to
guess, and weigh more. Their mean has an asymptotic confidence sequence. Its intervals contain the
total at every look together, so their running intersection does too: it only ever gets narrower.

The ratio of two totals is each number r for which the interval of "first - r × second" contains 0,
as in Fieller's interval, so that it excludes 0 at a look if and only if that of the first does.

Sources: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, Time-uniform central limit theory and
asymptotic confidence sequences; for the draws, Shekhar et al. 2023 (see draws.py); Fieller 1954,
Some problems in interval estimation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankdash.core.data.arrays import Flags, Floats, Integers
from rankdash.core.sampling.draws import FEWEST_DRAWS, FEWEST_NON_ZERO
from rankdash.core.sampling.label_pool import PSEUDO_LABELS

_RHO = 0.15
# Without a bound the last draws, with hardly anything left, would outweigh all that came before.
_MOST_WEIGHT = 4.0
# Draws that agree with their guess show no spread: two residuals of size 1 are taken to be unseen.
_UNSEEN = 2.0


@dataclass(frozen=True, eq=False)
class Sequence:
    """The estimate after each of n draws; every array is (…, n).

    mean: the estimate. half: half the width of the interval of this draw alone. low, high: the
    intersection of the intervals up to this draw; the last one that is not empty; infinite before
    the first. spread: the variance of a draw while nothing is drawn. weight, noise: running sums of
    each draw's weight, and of its variance in units of `spread`. looks: whether an interval may be
    read. ratio, ratio_low, ratio_high: the same of the total as a part of another one; None where
    none was asked for, NaN and infinite while that one may be 0.
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
class Divisor:
    """What a total is a part of, drawn by the same draws.

    weights, gains: (…, n) of each draw in this total. left, base: as `follow` has them. cross,
    reach: the squared reach of both totals together, and of this one, as `squared_reach` gives it.
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
    left: Floats,
    start: Floats,
    remaining: Floats,
    unit: float,
    reach: float,
    seen: tuple[Floats, Floats] | None = None,
    base: float = 0.0,
    fewest: int = FEWEST_DRAWS,
    alpha: float,
    of: Divisor | None = None,
) -> Sequence:
    """Follow n draws.

    weights, drawing, gains, groups: (…, n) of each draw: its weight in the total, what its
        probability was in proportion to, its gain, and the group of its guess.
    left: (…, G) the sum of all weights of each group before the first draw. start: (G,) the gain
        that each group starts from. remaining: (…, n) the share not drawn before each draw.
    unit: the sum of `drawing` over all that there is to draw. reach: as `squared_reach` gives it.
    seen: (G,) how many labels of each group were there before, and the sum of their gains.
    base: what the pairs add whose labels were there before. fewest: draws before an interval is
        given. alpha: the probability that the interval ever fails. of: what the total is a part of.
    """

    def value(weights: Floats, gains: Floats, left: Floats, base: float) -> Floats:
        count, total = (np.zeros(len(start)),) * 2 if seen is None else seen
        member = groups[..., None] == np.arange(left.shape[-1])
        guess = _before(np.where(member, gains[..., None], 0.0)) + total + PSEUDO_LABELS * start
        guess /= _before(member.astype(np.float64)) + count + PSEUDO_LABELS
        open_weight = left[..., None, :] - _before(np.where(member, weights[..., None], 0.0))
        own = np.take_along_axis(guess, groups[..., None], axis=-1)[..., 0]
        known = base + _before((weights * gains)[..., None])[..., 0]
        surprise = weights / drawing * (gains - own)
        found: Floats = known + (guess * open_weight).sum(axis=-1) + unit * remaining * surprise
        return found

    moving = np.cumsum(weights * gains != 0, axis=-1)
    draws = np.arange(1.0, weights.shape[-1] + 1)
    looks = (draws >= fewest) & (moving >= FEWEST_NON_ZERO)
    first = value(weights, gains, left, base)
    each = draw_weight(remaining)
    weight, noise = np.cumsum(each, axis=-1), np.cumsum((each * remaining) ** 2, axis=-1)
    mean, spread = _mean(first, each), _shared_spread(first, first, each, noise)
    bound = _bound(weight, noise, alpha)
    square = (spread + _UNSEEN * reach / draws) * bound**2
    half = np.sqrt(square)
    low, high = _together(mean - half, mean + half, looks)
    found = Sequence(mean, half, low, high, spread, weight, noise, looks)
    if of is None:
        return found
    second = value(of.weights, of.gains, of.left, of.base)
    whole = _mean(second, each)
    both = _shared_spread(first, second, each, noise) + _UNSEEN * of.cross / draws
    own = _shared_spread(second, second, each, noise) + _UNSEEN * of.reach / draws
    ratio, low, high = _ratio(mean, whole, square, both * bound**2, own * bound**2, looks)
    return replace(found, ratio=ratio, ratio_low=low, ratio_high=high)


def squared_reach(weights: Floats, others: Floats, drawing: Floats) -> float:
    """How far the value of a draw is from its total where its gain is 1 away from the guess, as the
    mean square: for the (D,) weights of all there is to draw in a total and in another one (or the
    same), and what it is drawn in proportion to."""
    return float((weights * others / drawing).sum() * drawing.sum())


def draw_weight(remaining: Floats) -> Floats:
    """What each draw weighs in the estimate: one over the variance of its value, within a bound."""
    found: Floats = np.minimum(1 / remaining, _MOST_WEIGHT) ** 2
    return found


def half_width(
    spread: Floats | float, weight: Floats, noise: Floats, draws: Floats, reach: float, alpha: float
) -> Floats:
    """Half the interval after (…) draws: the asymptotic confidence sequence of Waudby-Smith et al.,
    with as many draws of equal variance as these weigh."""
    found: Floats = np.sqrt(spread + _UNSEEN * reach / draws) * _bound(weight, noise, alpha)
    return found


def _bound(weight: Floats, noise: Floats, alpha: float) -> Floats:
    equal = weight**2 / noise
    rate = equal * _RHO**2
    found: Floats = np.sqrt(2 * (rate + 1) / (equal * rate) * np.log(np.sqrt(rate + 1) / alpha))
    return found


def _mean(value: Floats, each: Floats) -> Floats:
    found: Floats = np.cumsum(each * value, axis=-1) / np.cumsum(each, axis=-1)
    return found


def _shared_spread(first: Floats, second: Floats, each: Floats, noise: Floats) -> Floats:
    """The covariance of two values of a draw while nothing is drawn; the variance of one and the
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
    found: Floats = square / noise * draws / np.maximum(draws - 1, 1)
    return np.maximum(found, 0.0) if first is second else found


def _together(low: Floats, high: Floats, looks: Flags) -> tuple[Floats, Floats]:
    """The running intersection of the intervals at the looks; the last that is not empty."""
    lows = np.maximum.accumulate(np.where(looks, low, -np.inf), axis=-1)
    highs = np.minimum.accumulate(np.where(looks, high, np.inf), axis=-1)
    full = (lows <= highs).sum(axis=-1, keepdims=True)
    last = np.minimum(np.arange(lows.shape[-1]), full - 1)
    return np.take_along_axis(lows, last, axis=-1), np.take_along_axis(highs, last, axis=-1)


def _ratio(
    mean: Floats, whole: Floats, square: Floats, both: Floats, own: Floats, looks: Flags
) -> tuple[Floats, Floats, Floats]:
    """The ratio, and the numbers r with (mean - r × whole)² at most square - 2 r × both + r² × own:
    between the two roots, if the interval of the whole is above 0."""
    least = whole**2 - own
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
