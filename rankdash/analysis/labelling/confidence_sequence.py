"""The running estimate of a total from draws without replacement, with an interval that holds at
every look: one may look after each label and stop whenever it says enough.

Each draw gives an unbiased value for the total: what is known, plus the guess of all the rest, plus
what the drawn pair says of that guess's error. Late values vary less, because less is left to
guess, and weigh more. Their mean has an asymptotic confidence sequence.

Sources: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, Time-uniform central limit theory and
asymptotic confidence sequences; for the draws, Shekhar et al. 2023 (see draws.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankdash.analysis.labelling.guess import PSEUDO_LABELS
from rankdash.ranking.ragged import Flags, Floats, Integers

FEWEST_DRAWS, FEWEST_QUERIES, FEWEST_NON_ZERO = 50, 20, 10
"""No interval is given before so many draws of pairs, or of whole queries, and so many among them
that move the difference: with fewer, coverage falls short on sparse labels."""

_RHO = 0.15
# Without a bound the last draws, with hardly anything left, would outweigh all that came before.
_MOST_WEIGHT = 4.0
# Draws that agree with their guess show no spread: two residuals of size 1 are taken to be unseen.
_UNSEEN = 2.0


@dataclass(frozen=True, eq=False)
class Sequence:
    """The estimate after each of n draws; every array is (…, n).

    mean: the estimate. half: half the width of the interval. spread: (…, n) the variance of a draw
    while nothing is drawn. weight, noise: running sums of each draw's weight, and of its variance
    in units of `spread`. looks: whether an interval may be read.
    """

    mean: Floats
    half: Floats
    spread: Floats
    weight: Floats
    noise: Floats
    looks: Flags


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
) -> Sequence:
    """Follow n draws.

    weights, drawing, gains, groups: (…, n) of each draw: its weight in the total, what its
        probability was in proportion to, its gain, and the group of its guess.
    left: (…, G) the sum of all weights of each group before the first draw. start: (G,) the gain
        that each group starts from. remaining: (…, n) the share not drawn before each draw.
    unit: the sum of `drawing` over all that there is to draw. reach: as `reach_of` gives it.
    seen: (G,) how many labels of each group were there before, and the sum of their gains.
    base: what the pairs add whose labels were there before. fewest: draws before an interval is
        given. alpha: the probability that the interval ever fails.
    """
    count, total = (np.zeros(len(start)),) * 2 if seen is None else seen
    size = left.shape[-1]
    member = groups[..., None] == np.arange(size)
    guess = _before(np.where(member, gains[..., None], 0.0)) + total + PSEUDO_LABELS * start
    guess /= _before(member.astype(np.float64)) + count + PSEUDO_LABELS
    open_weight = left[..., None, :] - _before(np.where(member, weights[..., None], 0.0))
    own = np.take_along_axis(guess, groups[..., None], axis=-1)[..., 0]
    known = base + _before((weights * gains)[..., None])[..., 0]
    surprise = weights / drawing * (gains - own)
    value = known + (guess * open_weight).sum(axis=-1) + unit * remaining * surprise
    draws = np.arange(1, value.shape[-1] + 1)
    moving = np.cumsum(weights * gains != 0, axis=-1)
    looks = (draws >= fewest) & (moving >= FEWEST_NON_ZERO)
    return _running(value, remaining, looks, reach, alpha)


def reach_of(weights: Floats, drawing: Floats) -> float:
    """How far the value of a draw is from the total where its gain is 1 away from the guess, as the
    root of the mean square: for the (D,) weights of all there is to draw, and what it is drawn in
    proportion to."""
    return float(np.sqrt((weights**2 / drawing).sum() * drawing.sum()))


def _running(
    value: Floats, remaining: Floats, looks: Flags, reach: float, alpha: float
) -> Sequence:
    draws = np.arange(1.0, value.shape[-1] + 1)
    each = draw_weight(remaining)
    weight = np.cumsum(each, axis=-1)
    noise = np.cumsum((each * remaining) ** 2, axis=-1)
    mean = np.cumsum(each * value, axis=-1) / weight
    # Centred on the first value, so that little is lost to rounding where all are nearly equal.
    centre = value[..., :1]
    moved, own = value - centre, mean - centre
    square = (
        np.cumsum((each * moved) ** 2, axis=-1)
        - 2 * own * np.cumsum(each**2 * moved, axis=-1)
        + own**2 * np.cumsum(each**2, axis=-1)
    )
    spread = np.maximum(square, 0.0) / noise * draws / np.maximum(draws - 1, 1)
    half = half_width(spread, weight, noise, draws, reach, alpha)
    return Sequence(mean, half, spread, weight, noise, looks)


def draw_weight(remaining: Floats) -> Floats:
    """What each draw weighs in the estimate: one over the variance of its value, within a bound."""
    found: Floats = np.minimum(1 / remaining, _MOST_WEIGHT) ** 2
    return found


def half_width(
    spread: Floats | float, weight: Floats, noise: Floats, draws: Floats, reach: float, alpha: float
) -> Floats:
    """Half the interval after (…) draws: the asymptotic confidence sequence of Waudby-Smith et al.,
    with as many draws of equal variance as these weigh."""
    equal = weight**2 / noise
    rate = equal * _RHO**2
    bound = np.sqrt(2 * (rate + 1) / (equal * rate) * np.log(np.sqrt(rate + 1) / alpha))
    found: Floats = np.sqrt(spread + _UNSEEN * reach**2 / draws) * bound
    return found


def _before(steps: Floats) -> Floats:
    """(…, n, G) the sum over the draws before each."""
    return np.cumsum(steps, axis=-2) - steps
