"""Loss analysis: quality lost by the retriever, potential gain left, potential gain realised.

For every query the perfect value splits exactly into:

    perfect = baseline + won + to_win + retriever

`won` is challenger - baseline, `to_win` is ceiling - challenger, `retriever` is perfect - ceiling.
The ceiling is the value of the challenger's documents in the order of their labels. For a reranker
these are the first stage's candidates, for any other system the documents of its list. No order of
these documents exceeds the ceiling, so `to_win` and `retriever` are never negative for a query. A
baseline that ranks other documents may exceed it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import SpecError
from rankdash.core.data.arrays import (
    Flags,
    Floats,
    Integers,
    offsets_from,
    owners,
    places,
    sort_descending,
)
from rankdash.core.data.overlap import pooled
from rankdash.core.data.ranking import RETRIEVAL, source_id
from rankdash.core.metrics import (
    Conventions,
    Evaluation,
    Judged,
    Measure,
    evaluate,
    judge,
    parse_measure,
)
from rankdash.core.metrics.engine import Relevance
from rankdash.core.statistics.alignment import (
    HAS_VALUE,
    Codes,
    align,
    places_of,
    reason_counts,
    reason_names,
)
from rankdash.core.study.cache import part
from rankdash.core.study.systems import FIRST_STAGE

SHARES = ("baseline", "won", "to_win", "retriever")
"""The summands of the perfect value: the baseline's value, the gain of reranking, its remaining
potential, and the loss by the retriever."""

_BEST_ORDERS: WeakKeyDictionary[Judged, dict[int | None, Judged]] = WeakKeyDictionary()

# A challenger's sums may differ from the ceiling's in their last digits.
_ROUNDING = 1e-9


_VALUES = ("baseline", "challenger", "ceiling", "perfect", "retriever", "to_win", "won")


@dataclass(frozen=True, eq=False)
class Ceilings:
    """The highest values that a system can reach by reordering, for each labelled query.

    query_ids: (Q,). ceiling: the value of the best order of the documents. perfect: the value of
    all labelled documents, retrieved or not, in the order of their labels: 1 for NDCG, but below 1
    for a metric such as precision@10 if fewer than ten documents are relevant. recall: the share
    of the relevant documents that may be reordered, NaN if none is relevant. own: whether the
    documents are the system's own list, not the first stage's candidates. depth: how many documents
    of each query may be reordered; None for all.
    """

    measure: Measure
    own: bool
    depth: int | None
    query_ids: npt.NDArray[np.object_]
    ceiling: Floats
    perfect: Floats
    recall: Floats


@dataclass(frozen=True, eq=False)
class Headroom:
    """The split of one metric between two systems.

    n: paired queries. left_out: reason → number of excluded queries.
    baseline … won: means over the paired queries; NaN only if n is 0.
    recall_ceiling: the mean share of the relevant documents that may be reordered; None if no
        paired query has a relevant document.
    own, depth: the documents of the ceiling, as in `Ceilings`.
    values: name → (Q,) values of every query of either system, NaN if excluded; in the order of
        query_ids (Q,) and reasons (Q,).
    """

    measure: Measure
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
    own: bool
    depth: int | None
    query_ids: npt.NDArray[np.object_]
    values: Mapping[str, Floats]
    reasons: Codes

    @property
    def share_won(self) -> float | None:
        """won / (ceiling - baseline): 1 for the best possible reranker, below 0 if reranking did
        harm; None if the baseline reaches the ceiling."""
        room = self.ceiling - self.baseline
        return self.won / room if room > _ROUNDING else None

    @cached_property
    def queries(self) -> pd.DataFrame:
        """One row per query of either system: query_id, baseline, challenger, ceiling, perfect,
        retriever, to_win, won; state, "paired" or the reason of exclusion (then all values are
        NaN)."""
        state = reason_names().take(self.reasons)
        return pd.DataFrame({"query_id": self.query_ids, **self.values, "state": state})


def headroom(baseline: Evaluation, challenger: Evaluation, limits: Ceilings) -> Headroom:
    """Split the perfect value of each query.

    limits: of documents that include all documents of the challenger.

    Raises SpecError for a metric that was not evaluated, or evaluations under other conventions.
    """
    aligned = align({"before": baseline, "after": challenger}, "before", [limits.measure])
    before, after = aligned.values[:, :, 0]
    reasons = aligned.reasons()[1, :, 0]
    paired = reasons == HAS_VALUE
    at = places_of(limits.query_ids, aligned.query_ids)
    ceiling, perfect, recall = (
        np.where(paired & (at >= 0), each[at], np.nan)
        for each in (limits.ceiling, limits.perfect, limits.recall)
    )
    before, after = np.where(paired, before, np.nan), np.where(paired, after, np.nan)
    if limits.measure.k is None:
        # Precision of a whole list also rises if the list is shorter: a reached value is possible.
        ceiling = np.maximum(ceiling, after)
        perfect = np.maximum(perfect, np.maximum(ceiling, before))
    values = {
        "baseline": before,
        "challenger": after,
        "ceiling": ceiling,
        "perfect": perfect,
        "retriever": perfect - ceiling,
        "to_win": ceiling - after,
        "won": after - before,
    }
    weights = aligned.weights
    recall_ceiling = None if np.isnan(recall).all() else float(np.nanmean(recall))
    means = {
        name: float(values[name][paired].mean()) if paired.any() else np.nan for name in _VALUES
    }
    if weights is not None:
        recall_ceiling = None if recall_ceiling is None else weights.mean(recall)
        means = {name: weights.mean(values[name]) for name in _VALUES}
    return Headroom(
        measure=limits.measure,
        n=int(paired.sum()),
        left_out=reason_counts(reasons),
        recall_ceiling=recall_ceiling,
        own=limits.own,
        depth=limits.depth,
        **means,
        query_ids=aligned.query_ids,
        values=values,
        reasons=reasons,
    )


def shares(headrooms: Mapping[str, Headroom | None]) -> pd.DataFrame:
    """Return a row for each system with paired queries, in their order: system, `SHARES`, own."""
    return pd.DataFrame(
        [
            {
                "system": system,
                **{share: getattr(split, share) for share in SHARES},
                "own": split.own,
            }
            for system, split in headrooms.items()
            if split is not None and split.n
        ],
        columns=["system", *SHARES, "own"],
    )


def limits(
    documents: Judged,
    spec: str | Measure,
    conventions: Conventions,
    depth: int | None = None,
    *,
    own_list: bool = False,
) -> Ceilings:
    """Return ceiling, perfect value and recall of each query.

    documents: the labels joined with the first stage's candidates, or with the system's own list if
        `own_list`. depth: as for `best_order`.

    Raises SpecError for a metric that does not measure quality.
    """
    measure = parse_measure(spec) if isinstance(spec, str) else spec
    if not measure.metric.measures_quality:
        raise SpecError(
            "{metric} does not measure ranking quality, so it has no potential gain.",
            remedy="Choose a metric such as ndcg@10.",
            metric=measure.title,
        )
    best = best_values(documents, [measure], conventions, depth)
    rules = best.conventions
    relevance = Relevance(documents, rules)
    lengths = np.maximum(relevance.lengths, relevance.relevant_count.astype(np.int64))
    rules = replace(rules, judged_only=False)
    perfect = evaluate(perfect_order(documents, lengths), [measure], rules)
    if depth is not None and depth >= documents.lengths.max(initial=0):
        depth = None
    recall = evaluate(documents, ["recall" if depth is None else f"recall@{depth}"], rules)
    return Ceilings(
        measure=measure,
        own=own_list,
        depth=depth,
        query_ids=documents.query_ids,
        ceiling=best.values[:, 0],
        perfect=perfect.values[:, 0],
        recall=np.where(relevance.relevant_count > 0, recall.values[:, 0], np.nan),
    )


def best_values(
    documents: Judged,
    measures: Sequence[str | Measure],
    conventions: Conventions,
    depth: int | None = None,
) -> Evaluation:
    """Return the values of the best order of the documents. documents, depth: as for `limits`.

    A query without a relevant document among them gets 0, whatever the conventions give a system
    that finds nothing.
    """
    rules = replace(conventions, missing="zero", mrr_none="zero", queries="qrels")
    return evaluate(best_order(documents, depth), measures, rules)


def best_order(judged: Judged, depth: int | None = None) -> Judged:
    """Return the lists in the order of the best possible reranker: the first `depth` documents of
    each by label, descending; the others stay in place. depth: how many candidates of each
    query a challenger reranked; None for all.

    Cached as long as `judged` exists: the order is the same for every metric and cutoff.
    """
    cached = _BEST_ORDERS.setdefault(judged, {})
    if depth not in cached:
        cached[depth] = _best_order(judged, depth)
    return cached[depth]


def _best_order(judged: Judged, depth: int | None) -> Judged:
    return best_order_of(
        judged, np.ones(len(judged.rank), dtype=bool) if depth is None else judged.rank <= depth
    )


def best_order_of(judged: Judged, inside: Flags) -> Judged:
    """Return the lists with some of their labelled documents first, by label, descending; the
    ranks of the others stay the same. inside: (J,) mask of the positions with a label above 0."""
    offsets = offsets_from(np.bincount(judged.query[inside], minlength=len(judged.query_ids)))
    label, rank = judged.label.copy(), judged.rank.copy()
    judged_rank = judged.judged_rank.copy()
    label[inside] = sort_descending(judged.label[inside], offsets)
    rank[inside] = judged_rank[inside] = places(offsets)
    return replace(judged, label=label, rank=rank, judged_rank=judged_rank)


def positions_of(judged: Judged, queries: Flags) -> Judged:
    """Return the lists with labelled documents of some queries only. queries: (Q,) mask."""
    selected = queries[judged.query]
    names = ("query", "rank", "judged_rank", "label")
    return replace(judged, **{name: getattr(judged, name)[selected] for name in names})


def perfect_order(judged: Judged, lengths: Integers) -> Judged:
    """Return lists of (Q,) `lengths` that start with all documents labelled above 0, by label,
    descending."""
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


# The limits of systems: the best order of the documents that they rank.

if TYPE_CHECKING:
    from rankdash.core.study.study import Study

# Kinds of runs with their own lists: read from a file, fused from several rankings, or retrieved.
_LISTS = ("precomputed", "fusion", RETRIEVAL)


def limits_of(study: Study, system: str) -> Ceilings:
    """Return the limits of a system. They are computed from the first stage's candidates, down to
    the depth of a reranker, or, for any other system, from its list if its documents differ from
    the candidates. The list of a run over the candidates of a retrieval contains the same documents
    as the retrieval, down to the depth too."""
    run = study.run(system)
    depth = None if run is None else run.depth
    sourced = run is not None and source_id(run.settings) is not None
    own_list = sourced or (run is not None and run.reranker in _LISTS)
    if own_list and not (sourced and depth is not None):
        own_list = study.adds_documents(system) or study.lacks_documents(system)
    documents = system if own_list else FIRST_STAGE
    return _limits(study, documents, depth, own_list)


@part("labels", "metric", "conventions")
def _limits(study: Study, documents: str, depth: int | None, own_list: bool) -> Ceilings:
    return study.of_judged(
        documents,
        lambda judged: limits(judged, study.measure, study.conventions, depth, own_list=own_list),
    )


def best_of_all(study: Study, specs: tuple[str, ...]) -> Evaluation:
    """Return the values of the best order of all documents that the chosen systems rank, including
    the first stage's candidates: the maximum for each query and metric."""
    adding = any(map(study.adds_documents, study.chosen))
    return _best(study, specs, study.chosen if adding else ())


@part("labels", "conventions")
def _best(study: Study, specs: tuple[str, ...], pool: tuple[str, ...]) -> Evaluation:
    """Return the values of the best order. pool: the systems whose documents count; empty for the
    first stage's candidates only."""

    def best(judged: Judged) -> Evaluation:
        return best_values(judged, specs, study.conventions)

    return study.of_pool(best) if pool else study.of_judged(FIRST_STAGE, best)


@part("labels", "chosen", "order")
def pool_of(study: Study) -> Judged:
    """Return every document that a chosen system ranks, with its label."""
    rankings = [study.ranking(system) for system in study.chosen]
    return judge(pooled(rankings), study.dataset.qrels, study.conventions)
