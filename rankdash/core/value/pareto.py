"""Which options no other beats on cost and quality: the Pareto-optimal ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def pareto(costs: Sequence[float], qualities: Sequence[float]) -> npt.NDArray[np.bool_]:
    """(n,) which options no other beats: none is as cheap and better, or as good and cheaper.

    NaN on either side is never on the front.
    """
    cost, quality = np.asarray(costs, dtype=float), np.asarray(qualities, dtype=float)
    at_least = (cost[:, None] <= cost) & (quality[:, None] >= quality)
    better = at_least & ((cost[:, None] < cost) | (quality[:, None] > quality))
    front: npt.NDArray[np.bool_] = ~better.any(axis=0) & np.isfinite(cost) & np.isfinite(quality)
    return front
