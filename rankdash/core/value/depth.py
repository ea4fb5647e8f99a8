"""Rerank depth: one deep run evaluated at smaller depths.

A pointwise reranker gives a document the same score whatever the other documents are, so one deep
run contains every shallower run: the first d candidates in the order of their scores, followed by
the others in first-stage order. For a listwise reranker this is only an approximation, because it
would have read other documents; callers display a note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.arrays import (
    Floats,
    Integers,
    equal_runs,
    owners,
    places,
    places_in,
    tied_groups,
)
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, Measure, evaluate, judge, parse_measure
from rankdash.core.statistics.inference import corrected, intervals, p_values

_USUAL = (5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000)
_MOST_OF_GAIN = 0.9
_ROUNDING = 1e-12


class Cuts:
    """Deep run that can be evaluated at smaller depths.

    Raises DataError if the run ranks other documents than the candidates: then it contains no
    shallower runs.
    """

    def __init__(self, deep: Ranking, candidates: Ranking) -> None:
        self._deep = deep
        self._first = _first_ranks(deep, candidates)

    @property
    def deepest(self) -> int:
        """Length of the longest list."""
        return int(np.diff(self._deep.offsets).max(initial=0))

    def at(self, depth: int) -> Ranking:
        """Return the run with only the first `depth` candidates reranked."""
        deep, first = self._deep, self._first
        reranked = first <= depth
        start = deep.offsets[:-1][owners(deep.offsets)]
        before = np.concatenate([[0], np.cumsum(reranked)])
        # A document below the depth stays at its place: exactly `depth` documents are above.
        place = np.where(reranked, before[:-1] - before[start], first - 1) + start
        docs, scores = np.empty_like(deep.docs), np.empty_like(deep.scores)
        docs[place] = deep.docs
        scores[place] = np.where(reranked, deep.scores, np.nan)
        return Ranking(
            query_ids=deep.query_ids,
            documents=deep.documents,
            offsets=deep.offsets,
            docs=docs,
            scores=scores,
            tied=tied_groups(equal_runs(scores, deep.offsets)[0], deep.offsets),
            ties=deep.ties,
            given=np.arange(len(docs), dtype=np.int32),
        )


def _first_ranks(deep: Ranking, candidates: Ranking) -> Integers:
    """Return the (N,) ranks, from 1, of the rows of `deep` among the candidates of their query."""
    query = np.array([candidates.positions.get(q, -1) for q in deep.query_ids], dtype=np.int64)
    doc = places_in(candidates.documents, deep.documents)[deep.docs]
    row_query = query[owners(deep.offsets)]
    size = max(len(candidates.documents), 1)
    pairs = pd.Index(owners(candidates.offsets) * size + candidates.docs)
    row = pairs.get_indexer(np.where((row_query < 0) | (doc < 0), -1, row_query * size + doc))
    lengths = np.diff(candidates.offsets)
    same = np.append(lengths, 0)[query] == np.diff(deep.offsets)
    if bool((row < 0).any()) or not bool(same.all()):
        raise DataError(
            "This run does not rank the candidates of the data set, so it contains no shallower "
            "runs.",
            remedy="Choose a run of a reranker over the first stage of this data set.",
        )
    ranks: Integers = places(candidates.offsets)[row]
    return ranks


def depths_for(deepest: int, run_depth: int | None) -> tuple[int, ...]:
    """Return the usual depths up to the reranked depth, and that depth itself."""
    most = deepest if run_depth is None else min(deepest, run_depth)
    return tuple(sorted({depth for depth in _USUAL if depth < most} | ({most} if most else set())))


@dataclass(frozen=True, eq=False)
class DepthCurve:
    """Quality at each depth, over the queries with a value at every depth.

    table: depth (0 = not reranked), mean, low, high; gain = mean − mean at 0, with gain_low,
        gain_high and gain_proven; behind = mean of the best depth − mean, with behind_low,
        behind_high and behind_proven. Ends are NaN with too few queries.
    best: the depth with the highest mean, the smallest of equals.
    most: the smallest depth with 90 % of the best gain; None without a gain.
    enough: the smallest depth with a proven gain that is not proven to be behind the best; 0
        without a proven gain.
    queries: number of queries in the means.
    """

    table: pd.DataFrame
    best: int
    most: int | None
    enough: int
    queries: int


def depth_curve(
    cuts: Cuts,
    candidates: Ranking,
    qrels: pd.DataFrame,
    measure: Measure | str,
    conventions: Conventions,
    depths: Sequence[int],
    left_out: Mapping[str, str] | None = None,
    settings: StatisticsSettings | None = None,
    *,
    full_gain_proven: bool,
) -> DepthCurve:
    """Evaluate the run at every depth and compare each depth, query by query, with no reranking and
    with the best depth.

    left_out: query id → "failed" or "skipped"; such queries are excluded at every depth.
    full_gain_proven: whether the verdict on the run at its full depth, the last of `depths`, proves
        a gain: that comparison already has a verdict.

    A difference is proven as in a verdict: its interval excludes 0, and its p, corrected for the
    number of depths, is significant. A gain with a p as small as at a proven full depth needs
    no such correction.

    Raises DataError if no query has a value at every depth.
    """
    values = depth_values(cuts, candidates, qrels, measure, conventions, depths, left_out)
    return curve_of(values, measure, settings, full_gain_proven=full_gain_proven)


def depth_values(
    cuts: Cuts,
    candidates: Ranking,
    qrels: pd.DataFrame,
    measure: Measure | str,
    conventions: Conventions,
    depths: Sequence[int],
    left_out: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return the metric of each query at each depth: a column for 0 and for each of `depths`; the
    index is the query id. Queries without a value at a depth are excluded.

    Raises DataError if no query has a value at every depth.
    """
    rankings = {0: candidates, **{depth: cuts.at(depth) for depth in depths}}
    columns = {}
    for depth, ranking in rankings.items():
        judged = judge(ranking, qrels, conventions)
        evaluation = evaluate(judged, [measure], conventions, left_out or {})
        columns[depth] = pd.Series(evaluation.values[:, 0], index=evaluation.query_ids)
    frame = pd.concat(columns, axis="columns").dropna()
    if frame.empty:
        raise DataError("No query has a value at every depth.")
    return frame


def curve_of(
    frame: pd.DataFrame,
    measure: Measure | str,
    settings: StatisticsSettings | None = None,
    *,
    full_gain_proven: bool | None = None,
) -> DepthCurve:
    """Return the curve of values as from `depth_values`. full_gain_proven: as for `depth_curve`;
    None if the full depth is tested like the others."""
    settings = settings or StatisticsSettings()
    parsed = measure if isinstance(measure, Measure) else parse_measure(measure)
    values = frame.to_numpy(dtype=np.float64)
    means = values.mean(axis=0)
    best = int(np.argmax(means))
    low, high = intervals(values, settings, possible=parsed.metric.range)
    gain = _proven(values - values[:, [0]], 0, settings, parsed)
    behind = _proven(values[:, [best]] - values, best, settings, parsed)
    if full_gain_proven is not None:
        # The proof at the full depth also applies to depths with equally strong evidence.
        as_strong = full_gain_proven & (gain["low"] > 0) & (gain["p"] <= gain["p"].iloc[-1])
        gain["proven"] |= as_strong
        gain.loc[len(gain) - 1, "proven"] = full_gain_proven
    table = pd.DataFrame(
        {
            "depth": frame.columns.to_numpy(dtype=np.int64),
            "mean": means,
            "low": low,
            "high": high,
            "gain": means - means[0],
            **gain.drop(columns="p").add_prefix("gain_"),
            "behind": means[best] - means,
            **behind.drop(columns="p").add_prefix("behind_"),
        }
    )
    reached = table["gain"] >= _MOST_OF_GAIN * table["gain"][best] - _ROUNDING
    good = table["gain_proven"] & ~table["behind_proven"]
    helps = bool(table["gain_proven"].any())
    return DepthCurve(
        table=table,
        best=int(table["depth"][best]),
        most=int(table.loc[reached, "depth"].min()) if table["gain"][best] > 0 else None,
        enough=int(table.loc[good, "depth"].min() if good.any() else helps * table["depth"][best]),
        queries=len(values),
    )


def _proven(
    differences: Floats, reference: int, settings: StatisticsSettings, measure: Measure
) -> pd.DataFrame:
    """Return low, high, p (not corrected) and proven (to be above 0) of each column; `reference` is
    the column that the others are compared with, so it is not a comparison."""
    # Rounding errors of two sums must not count as a change, as in a verdict.
    differences[np.abs(differences) <= _ROUNDING] = 0.0
    low, high = intervals(differences, settings, possible=measure.changes)
    p = p_values(differences, settings)
    p[reference] = np.nan
    with_others = np.array(corrected(p.tolist(), settings.correction))
    significant = with_others <= 1 - settings.level + _ROUNDING
    proven = (low > 0) & significant
    return pd.DataFrame({"low": low, "high": high, "p": p, "proven": proven})


def latency_at(queries: pd.DataFrame, depth: int, quantile: float = 0.95) -> float:
    """Return a quantile of the latencies in ms at a depth, scaled in proportion to pairs.

    queries: the table of a `Run` (latency_ms, pairs). An estimate: it also scales parts that do not
        depend on the number of documents, such as sending the request. NaN without measurements.
    """
    rows = queries[queries["latency_ms"].notna() & (queries["pairs"] > 0)]
    if rows.empty:
        return float("nan")
    pairs: Floats = rows["pairs"].to_numpy(dtype=np.float64)
    shares: Floats = np.minimum(depth, pairs) / pairs
    return float(np.quantile(rows["latency_ms"].to_numpy(dtype=np.float64) * shares, quantile))
