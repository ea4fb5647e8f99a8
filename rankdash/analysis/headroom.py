"""Where quality is lost: by the retriever, still to be won by reranking, already won.

For every query the perfect value splits without a remainder:

    perfect = baseline + won + to_win + retriever

`won` is challenger - baseline, `to_win` is ceiling - challenger, `retriever` is perfect - ceiling.
The ceiling is what the best possible reranker reaches: the same candidates, ordered by label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from rankdash.analysis.compare import left_out, paired
from rankdash.errors import SpecError
from rankdash.metrics import Conventions, Evaluation, Judged, Measure, evaluate, parse_measure
from rankdash.metrics.engine import Relevance
from rankdash.segments import Integers, offsets_from, owners, places, sort_descending

SHARES = ("baseline", "won", "to_win", "retriever")
"""The parts of the perfect value, in the order in which a bar stacks them."""

# A challenger's sums may differ from the ceiling's in their last digits.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Headroom:
    """The split of one metric between two systems.

    queries: one row per query of either system: query_id, baseline, challenger, ceiling, perfect,
        retriever, to_win, won; state, "paired" or why the query was left out (then all values are
        NaN).
    n: paired queries. left_out: reason → how many others.
    baseline … won: means over the paired queries; NaN only where n is 0.
    recall_ceiling: the mean share of the relevant documents that is among the candidates; None
        where no paired query has a relevant document.
    beyond: how many queries have a challenger above the ceiling, because it ranked documents that
        are not among the candidates; their `to_win` is negative.
    """

    measure: Measure
    queries: pd.DataFrame
    n: int
    left_out: Mapping[str, int]
    baseline: float
    challenger: float
    ceiling: float
    perfect: float
    retriever: float
    to_win: float
    won: float
    recall_ceiling: float | None
    beyond: int

    @property
    def share_won(self) -> float | None:
        """won / (ceiling - baseline): 1 for the best possible reranker, below 0 where reranking
        did harm; None where the baseline left nothing to win."""
        room = self.ceiling - self.baseline
        return self.won / room if room > _ROUNDING else None


def headroom(
    baseline: Evaluation,
    challenger: Evaluation,
    candidates: Judged,
    spec: str | Measure,
    *,
    depth: int | None = None,
) -> Headroom:
    """How the perfect value of each query splits.

    candidates: the labels joined with the first-stage ranking that the challenger reranked.
    depth: how many candidates of each query it was given; None for all. Those below keep their
        place in the ceiling too.

    The perfect value is that of all labelled documents in the order of their labels, found or
    not: 1 for NDCG, but below 1 for a metric such as precision@10 where fewer than ten documents
    are relevant.

    Raises SpecError for a metric that measures no quality, one that was not evaluated, or
    evaluations under other conventions.
    """
    measure = parse_measure(spec) if isinstance(spec, str) else spec
    if not measure.metric.measures_quality:
        raise SpecError(
            "{metric} says nothing of quality, so it has no headroom.",
            remedy="Choose a metric such as ndcg@10.",
            metric=measure.title,
        )
    frame = paired(baseline, challenger, measure)
    frame = frame.rename(columns={"before": "baseline", "after": "challenger", "delta": "won"})
    ceiling, perfect, recall = _limits(candidates, measure, baseline.conventions, depth)
    out = frame["won"].isna()
    index = pd.Index(candidates.query_ids, dtype=object)
    limits = pd.DataFrame({"ceiling": ceiling, "perfect": perfect, "recall": recall}, index=index)
    limits = limits.reindex(frame["query_id"]).reset_index(drop=True)
    frame[["ceiling", "perfect"]] = limits[["ceiling", "perfect"]]
    frame.loc[out, ["baseline", "challenger", "ceiling", "perfect"]] = np.nan
    frame["retriever"] = frame["perfect"] - frame["ceiling"]
    frame["to_win"] = frame["ceiling"] - frame["challenger"]
    means = frame[["baseline", "challenger", "ceiling", "perfect", "retriever", "to_win", "won"]]
    recalls = limits.loc[~out, "recall"].dropna()
    return Headroom(
        measure=measure,
        queries=frame[["query_id", *means.columns, "state"]],
        n=int((~out).sum()),
        left_out=left_out(frame),
        recall_ceiling=float(recalls.mean()) if len(recalls) else None,
        beyond=int((frame["to_win"] < -_ROUNDING).sum()),
        **{str(name): float(mean) for name, mean in means.mean().items()},
    )


def _limits(
    candidates: Judged, measure: Measure, conventions: Conventions, depth: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(Q,) ceiling, perfect value and recall among the candidates of each labelled query."""
    # A query whose candidates hold nothing relevant has a ceiling of 0, whatever its systems are
    # given for finding nothing.
    rules = replace(conventions, missing="zero", mrr_none="zero", queries="qrels")
    best = evaluate(best_order(candidates, depth), [measure, "recall"], rules)
    relevant = Relevance(candidates, rules).relevant_count.astype(np.int64)
    own = Relevance(candidates, rules).lengths
    rules = replace(rules, judged_only=False)
    perfect = evaluate(perfect_order(candidates, np.maximum(own, relevant)), [measure], rules)
    return best.values[:, 0], perfect.values[:, 0], best.values[:, 1]


def best_order(judged: Judged, depth: int | None = None) -> Judged:
    """The lists as the best possible reranker leaves them: the first `depth` documents of each by
    label, highest first, the others in their place. None: the whole lists."""
    inside = np.ones(len(judged.rank), dtype=bool) if depth is None else judged.rank <= depth
    offsets = offsets_from(np.bincount(judged.query[inside], minlength=len(judged.query_ids)))
    label, rank = judged.label.copy(), judged.rank.copy()
    judged_rank = judged.judged_rank.copy()
    label[inside] = sort_descending(judged.label[inside], offsets)
    rank[inside] = judged_rank[inside] = places(offsets)
    return replace(judged, label=label, rank=rank, judged_rank=judged_rank)


def perfect_order(judged: Judged, lengths: Integers) -> Judged:
    """Lists of (Q,) `lengths` that start with all documents labelled above 0, highest first."""
    ranks = places(judged.pool_offsets)
    return replace(
        judged,
        present=np.ones(len(judged.query_ids), dtype=bool),
        lengths=lengths,
        query=owners(judged.pool_offsets),
        rank=ranks,
        judged_rank=ranks,
        label=judged.pool_label,
    )
