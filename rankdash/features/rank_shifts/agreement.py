"""Agreement of two rankings, query by query: Kendall's τ-b and rank-biased overlap.

Both depend on the order only: scaling or shifting a model's scores does not change them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.arrays import Block, Floats, Integers, blocks, offsets_from
from rankdash.core.data.ranking import Ranking
from rankdash.core.statistics.inference import intervals
from rankdash.features.rank_shifts.shifts import Pairing

PERSISTENCE = 0.9
"""The p of rank-biased overlap: the probability that a reader goes on to the next rank. With 0.9
the first ten ranks have 86 % of the weight (Webber, Moffat & Zobel 2010, section 4)."""

# The number of cells that fit into a processor's cache.
_CELLS = 200_000


def agreement(paired: Pairing, *, p: float = PERSISTENCE) -> pd.DataFrame:
    """Return one row for each query that both rankings have.

    Columns: query_id; tau: Kendall's τ-b over the documents that both rank, with equal scores tied
    (NaN for fewer than two, or if a ranking ties them all); rbo: the extrapolated rank-biased
    overlap of the two complete lists, in the order shown, ties resolved; common: the number of
    documents that both rank.

    Documents without a score (below a run's depth) are in their order, and not tied.
    """
    before, after = paired.before, paired.after
    both = np.flatnonzero(paired.in_both)
    common = np.bincount(paired.query[both], minlength=len(paired.query_ids))
    return pd.DataFrame(
        {
            "query_id": paired.query_ids,
            "tau": _tau(
                _levels(before)[paired.row_before[both]],
                _levels(after)[paired.row_after[both]],
                offsets_from(common),
                tied=bool(before.tied.any() or after.tied.any()),
            ),
            "rbo": _rbo(paired, both, p),
            "common": common,
        }
    )


def pairwise(
    agreements: Mapping[tuple[str, str], pd.DataFrame], settings: StatisticsSettings
) -> pd.DataFrame:
    """Return the mean agreement of each pair of systems, with its interval over queries.

    agreements: pair of systems → its frame from `agreement`. Columns: one, other, n (shared
        queries), and for tau and rbo the mean and the ends of its interval: tau, tau_low, tau_high,
        rbo …; NaN if undefined.
    """
    rows = []
    for (one, other), frame in agreements.items():
        values = frame[["tau", "rbo"]].to_numpy(dtype=np.float64)
        low, high = intervals(values, settings)
        row: dict[str, object] = {"one": one, "other": other, "n": len(frame)}
        for column, name in enumerate(("tau", "rbo")):
            defined = values[~np.isnan(values[:, column]), column]
            row[name] = float(defined.mean()) if len(defined) else float("nan")
            row[f"{name}_low"], row[f"{name}_high"] = low[column], high[column]
        rows.append(row)
    columns = ["one", "other", "n", "tau", "tau_low", "tau_high", "rbo", "rbo_low", "rbo_high"]
    return pd.DataFrame(rows, columns=columns)


def _levels(ranking: Ranking) -> Integers:
    """Return the level of each row's score, (N,): 0 for the highest score of a query, one more at
    each lower score."""
    steps = np.ones(len(ranking), dtype=np.int64)
    steps[1:] = ranking.scores[1:] != ranking.scores[:-1]
    counts = np.diff(ranking.offsets)
    levels = np.cumsum(steps)
    first = np.append(levels, 0)[ranking.offsets[:-1]]
    local: Integers = levels - np.repeat(first, counts)
    return local


def _tau(x: Integers, y: Integers, offsets: Integers, *, tied: bool) -> Floats:
    """Return Kendall's τ-b of two orders of the same items, (Q,); x never falls within a query.

    tied: False if no two items of a query are equal in x or in y. Source: Kendall, M. G. (1945),
        The treatment of ties in ranking problems.
    """
    counts = np.diff(offsets)
    result = np.full((4, len(counts)), 0.0)
    starts = offsets[:-1]
    for block in blocks(offsets):
        lists = (
            np.flatnonzero(counts)
            if block.positions is None
            else np.searchsorted(starts, block.positions[:, 0], side="right") - 1
        )
        result[:, lists] = _count_pairs(_cells(block, x), _cells(block, y), tied)
    discordant, ties_x, ties_y, ties_both = result
    pairs = counts * (counts - 1) / 2
    size = np.sqrt((pairs - ties_x) * (pairs - ties_y))
    tau = np.full(len(counts), np.nan)
    agreeing = pairs - ties_x - ties_y + ties_both - 2 * discordant
    np.divide(agreeing, size, out=tau, where=size > 0)
    within: Floats = np.clip(tau, -1.0, 1.0)
    return within


def _cells(block: Block, values: Integers) -> npt.NDArray[np.int32]:
    """Return the values of a block, (W, S), with one query in each column. Padding rises, so that
    no pair with it is tied or out of order."""
    cells = block.take(values, 0)
    if block.inside is not None:
        rising = int(values.max(initial=0)) + 1 + np.arange(block.width)
        cells = np.where(block.inside, cells, rising)
    return np.ascontiguousarray(cells.T.astype(np.int32))


def _count_pairs(x: npt.NDArray[np.int32], y: npt.NDArray[np.int32], tied: bool) -> Floats:
    """Return (4, S) counts of pairs in each column: in opposite order, tied in x, in y, in both.

    Items are compared with the items `lag` below them, for all columns together: at the lengths of
    candidate lists this is faster than a sort, and it stays within the processor's cache.
    """
    width, size = y.shape
    pair_counts = np.zeros((4, size))
    step = max(1, _CELLS // width)
    for start in range(0, size, step):
        columns = slice(start, start + step)
        own_x, own_y = x[:, columns].copy(), y[:, columns].copy()
        counts = np.zeros((4, *own_y.shape), dtype=np.uint8 if width <= 256 else np.int32)
        for lag in range(1, width):
            upper, lower = own_y[:-lag], own_y[lag:]
            falls = upper > lower
            if tied:
                same_x, same_y = own_x[:-lag] == own_x[lag:], upper == lower
                counts[1, lag:] += same_x
                counts[2, lag:] += same_y
                counts[3, lag:] += same_x & same_y
                falls &= ~same_x
            counts[0, lag:] += falls
        pair_counts[:, columns] = counts.sum(axis=1)
    return pair_counts


def _rbo(paired: Pairing, both: Integers, p: float) -> Floats:
    """Return the extrapolated rank-biased overlap, (Q,), for lists of any two lengths.

    Source: Webber, W., Moffat, A. & Zobel, J. (2010), A similarity measure for indefinite rankings,
    equation 32. X_d there is the number of documents that both lists have down to depth d. A
    document in both lists counts in X_d for every d at or below the deeper of its two ranks, so the
    sum over depths becomes a sum over documents.
    """
    before, after = paired.before, paired.after
    lengths = np.column_stack([_lengths(each, paired.query_ids) for each in (before, after)])
    short, long = lengths.min(axis=1), lengths.max(axis=1)
    depths = np.arange(1, int(long.max(initial=0)) + 1)
    weight = np.concatenate([[0.0], np.cumsum(p**depths)])
    by_depth = np.concatenate([[0.0], np.cumsum(p**depths / depths)])
    query = paired.query[both]
    deeper = np.maximum(paired.rank_before[both], paired.rank_after[both])
    size = len(paired.query_ids)
    shared = np.bincount(query, minlength=size)
    shared_short = np.bincount(query[deeper <= short[query]], minlength=size)
    seen = np.bincount(query, by_depth[long[query]] - by_depth[deeper - 1], minlength=size)
    # Below the end of the shorter list, its share of common documents is assumed to stay constant.
    share = shared_short / np.maximum(short, 1)
    assumed = share * (weight[long] - weight[short] - short * (by_depth[long] - by_depth[short]))
    rest = (shared - shared_short) / np.maximum(long, 1) + share
    rbo: Floats = (1 - p) / p * (seen + assumed) + rest * p**long
    return np.where(short > 0, np.clip(rbo, 0.0, 1.0), np.nan)


def _lengths(ranking: Ranking, queries: npt.NDArray[np.object_]) -> Integers:
    """Return the number of documents of each query, (Q,)."""
    at = np.array([ranking.positions[query] for query in queries], dtype=np.int64)
    return np.diff(ranking.offsets)[at]
