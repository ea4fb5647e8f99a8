"""Cohen's kappa: how far two raters agree beyond chance, with an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from rankdash.core.data.arrays import Floats, Integers

_LEVEL = 0.95
Weighting = Literal["unweighted", "quadratic"]


@dataclass(frozen=True, eq=False)
class Kappa:
    """Agreement of two raters on n pairs.

    kappa: 1 for full agreement, 0 for what chance gives; NaN where both gave one and the same
        label only, or there is no pair. low, high: its 95 % interval, NaN where there is none.
    agree: the share of pairs with the same label. grades: (G,) the labels in use, ascending.
    table: (G, G) how often the first rater (rows) gave each, and the second (columns).
    """

    kappa: float
    low: float
    high: float
    agree: float
    pairs: int
    grades: Floats
    table: Integers


def cohen_kappa(
    first: Floats,
    second: Floats,
    weighting: Weighting = "unweighted",
    *,
    clusters: Integers | None = None,
) -> Kappa:
    """Kappa of (n,) labels of two raters for the same pairs.

    weighting: "quadratic" counts a disagreement by its squared distance in grades in use.
    clusters: (n,) the query of each pair, where whole queries were drawn: pairs of one query are
    alike, so that the interval is wider. None where pairs were drawn.

    Sources: Cohen 1960 and 1968; the standard error is that of Fleiss, Cohen and Everitt 1969, over
    queries that of the same first-order terms summed by query.
    """
    grades, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    size, n = len(grades), len(first)
    table = np.bincount(codes[:n] * size + codes[n:], minlength=size * size).reshape(size, size)
    nan = float("nan")
    if not n:
        return Kappa(nan, nan, nan, nan, 0, grades, table)
    place = np.arange(size)
    distance = np.abs(place[:, None] - place)
    apart = (distance**2 if weighting == "quadratic" else distance > 0).astype(np.float64)
    share = table / n
    rows, columns = share.sum(axis=1), share.sum(axis=0)
    seen, chance = (apart * share).sum(), (apart * np.outer(rows, columns)).sum()
    agree = float(np.trace(share))
    if chance == 0:
        return Kappa(nan, nan, nan, agree, n, grades, table)
    kappa = float(1 - seen / chance)
    # Fleiss et al. in terms of disagreement: 1 - weight of agreement.
    margin = (apart @ columns)[:, None] + rows @ apart
    term = apart - (1 - kappa) * margin
    if clusters is not None:
        reach = clustered_reach(term[codes[:n], codes[n:]], clusters, _LEVEL) / chance
    else:
        variance = (share * term**2).sum() - ((1 - kappa) * chance) ** 2
        normal = special.ndtri((1 + _LEVEL) / 2)
        reach = float(normal * np.sqrt(max(float(variance), 0.0) / n) / chance)
    # Of few pairs the interval would reach beyond what a kappa can be.
    low, high = float(np.maximum(kappa - reach, -1.0)), float(np.minimum(kappa + reach, 1.0))
    return Kappa(kappa, low, high, agree, n, grades, table)


# The spread of a mean whose values come in clusters, such as pairs of the same query: those of one
# cluster are alike, so that they say less than as many that were drawn one by one.


def clustered_reach(values: Floats, clusters: Integers, level: float) -> float:
    """Half the width of the t interval of the mean of (n,) values, for (n,) numbers of clusters;
    NaN for fewer than two of them.

    Source: Liang and Zeger 1986, the variance that is robust to clusters, G / (G - 1) included.
    """
    owners = np.unique(clusters, return_inverse=True)[1]
    count = int(owners.max(initial=-1)) + 1
    if count < 2:
        return float("nan")
    sums = np.bincount(owners, values - values.mean(), count)
    variance = float((sums**2).sum()) * count / (count - 1) / len(values) ** 2
    return float(special.stdtrit(count - 1, (1 + level) / 2) * np.sqrt(variance))
