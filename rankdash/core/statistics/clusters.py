"""The spread of a mean whose values come in clusters, such as pairs of the same query: those of one
cluster are alike, so that they say less than as many that were drawn one by one."""

from __future__ import annotations

import numpy as np
from scipy import special

from rankdash.core.data.arrays import Floats, Integers


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
