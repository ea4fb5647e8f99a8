"""How long the texts are that a model read, in tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.data.ranking import Reading


@dataclass(frozen=True)
class TokenLengths:
    """How long pairs are in tokens, and what a model left unread.

    table: start, stop (tokens, stop not included; inf for the last where longer ones are gathered),
        whole (pairs read to the end), cut (pairs that were not).
    pairs: with a known length. limit: the most tokens that were read of a cut pair; None where no
        pair was cut. unread: share of all tokens. p50, p95: of the full lengths.
    """

    table: pd.DataFrame
    pairs: int
    cut: int
    limit: int | None
    unread: float
    p50: float
    p95: float


def token_lengths(reading: Reading, bins: int = 30) -> TokenLengths | None:
    """None where no length is known."""
    known = (reading.read >= 0) & (reading.full >= 0)
    read = reading.read[known].astype(np.int64)
    full = reading.full[known].astype(np.int64)
    if not len(full):
        return None
    cut = full > read
    p50, p95, most = (float(each) for each in np.quantile(full, [0.5, 0.95, 0.99]))
    limit = int(read[cut].max()) if cut.any() else None
    edges = _edges(max(most, limit or 0), bins)
    beyond = bool(full.max() >= edges[-1])
    places = np.minimum(np.searchsorted(edges, full, side="right") - 1, len(edges) - 1)
    count = len(edges) - 1 + beyond
    table = pd.DataFrame(
        {
            "start": edges[:count],
            "stop": np.append(edges[1:], math.inf)[:count],
            "whole": np.bincount(places[~cut], minlength=count),
            "cut": np.bincount(places[cut], minlength=count),
        }
    )
    return TokenLengths(
        table=table,
        pairs=len(full),
        cut=int(cut.sum()),
        limit=limit,
        unread=float((full - read).sum() / max(int(full.sum()), 1)),
        p50=p50,
        p95=p95,
    )


def _edges(most: float, bins: int) -> npt.NDArray[np.int64]:
    """Bins of a round width from 0 to beyond `most`."""
    width = max(most / bins, 1.0)
    unit = 10 ** math.floor(math.log10(width))
    step = next(unit * each for each in (1, 2, 4, 5, 10) if unit * each >= width)
    return np.arange(0, math.floor(most / step) + 2, dtype=np.int64) * int(step)
