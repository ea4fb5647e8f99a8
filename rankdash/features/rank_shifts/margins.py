"""How decided a ranking is: the gap between neighbours in score, free of the scale of the scores.

Raw scores of two models share no scale, and those of one model drift from query to query. So a gap
is given as a share of what the query's own scores span, from its best document to its last: 0 is a
tie, 1 leaves nothing for the rest of the list. Stretching or shifting the scores changes nothing.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from rankdash.core.data.ragged import Floats, Integers
from rankdash.core.data.ranking import Ranking

Margin = Literal["first", "edge"]
MARGINS: tuple[Margin, ...] = ("first", "edge")
"""The gap between ranks 1 and 2, and between ranks k and k + 1."""

NEAR_TIE = 0.01
"""A gap of at most this share of the span is a near-tie."""

_ROUNDING = 1e-12


def margins(ranking: Ranking, k: int) -> pd.DataFrame:
    """One row for each query: query_id, first (the gap between ranks 1 and 2), edge (between ranks
    k and k + 1), each 0 to 1; NaN where the list is too short. Documents without a score count as
    not there."""
    # Documents without a score stand at the end of their list.
    scored = np.concatenate([[0], np.cumsum(~np.isnan(ranking.scores))])
    starts = ranking.offsets[:-1]
    lengths = scored[ranking.offsets[1:]] - scored[starts]
    best, worst = (_at(ranking, starts, place, lengths) for place in (1, lengths))
    span = best - worst
    return pd.DataFrame(
        {
            "query_id": ranking.query_ids,
            **{
                name: _share(
                    _at(ranking, starts, place, lengths) - _at(ranking, starts, place + 1, lengths),
                    span,
                )
                for name, place in (("first", 1), ("edge", k))
            },
        }
    )


def near_ties(table: pd.DataFrame, near: float = NEAR_TIE) -> pd.DataFrame:
    """What a frame from `margins` adds up to, one row for each of `MARGINS`.

    Columns: margin; n (queries that have it); median; tied (share of exact ties); near (share of
    gaps of at most `near`, ties among them). NaN where n is 0.
    """
    rows = []
    for name in MARGINS:
        known = table[name].dropna().to_numpy()
        found = (
            (float(np.median(known)), float((known == 0).mean()), float((known <= near).mean()))
            if len(known)
            else (np.nan, np.nan, np.nan)
        )
        rows.append((name, len(known), *found))
    return pd.DataFrame(rows, columns=["margin", "n", "median", "tied", "near"])


def by_margin(pairs: pd.DataFrame, margin: pd.Series[float], groups: int = 10) -> pd.DataFrame:
    """The mean change of queries with about the same margin, the least decided first.

    pairs: as from `compare.paired`. margin: query id → margin. Columns: margin (the mean of the
    group's), n, delta. Queries without a change or a margin are left out; equal margins stay
    together, so that there may be fewer groups.
    """
    frame = pd.DataFrame(
        {
            "margin": margin.reindex(pairs["query_id"]).to_numpy(),
            "delta": pairs["delta"].to_numpy(),
        }
    ).dropna()
    rank = frame["margin"].rank(method="min").to_numpy() - 1
    group = np.floor(rank * groups / max(len(frame), 1)).astype(np.int64)
    gathered = frame.groupby(group)
    found = gathered.mean().assign(n=gathered.size())
    return found[["margin", "n", "delta"]].reset_index(drop=True)


def even(values: pd.Series[float]) -> bool:
    """Whether all gaps are as good as equal, as where a file gave ranks and no scores."""
    known = values.dropna()
    return known.empty or float(known.max() - known.min()) <= _ROUNDING


def _at(ranking: Ranking, starts: Integers, place: int | Integers, lengths: Integers) -> Floats:
    """(Q,) the score at a rank; NaN where the list does not reach it."""
    rows = starts + place - 1
    inside = place <= lengths
    return np.where(inside, np.append(ranking.scores, np.nan)[np.where(inside, rows, -1)], np.nan)


def _share(gap: Floats, span: Floats) -> Floats:
    """gap / span, 0 where all scores are equal."""
    result = np.where(np.isnan(gap), np.nan, 0.0)
    np.divide(gap, span, out=result, where=span > 0)
    return result
