"""Rank shifts of a study: movements of documents, and agreement of systems."""

from __future__ import annotations

from itertools import combinations

import pandas as pd

from rankdash.core.study.cache import part
from rankdash.core.study.study import Study
from rankdash.features.rank_shifts.agreement import agreement, pairwise
from rankdash.features.rank_shifts.shifts import Flow, Moves, Pairing, pair, with_ties
from rankdash.features.rank_shifts.shifts import flow as flow_of
from rankdash.features.rank_shifts.shifts import move_sizes as move_sizes_of
from rankdash.features.rank_shifts.shifts import moves as moves_of
from rankdash.features.rank_shifts.shifts import transitions as transitions_of


@part("labels", "baseline", "order", "threshold", limit="pairs")
def moves(study: Study, challenger: str) -> Moves:
    """Return the moves of every document from the baseline to the challenger."""
    sides = study.judged(study.baseline), study.judged(challenger)
    pairing = _paired(study, study.baseline, challenger)
    return moves_of(pairing, *sides, study.conventions.threshold)


@part("labels", "baseline", "order", "threshold")
def transitions(study: Study, challenger: str, *, relevant_only: bool) -> pd.DataFrame:
    """Return how many documents moved from each bin of ranks to each."""
    return transitions_of(moves(study, challenger), relevant_only=relevant_only)


@part("labels", "baseline", "order", "threshold")
def flow(study: Study, challenger: str, k: int) -> Flow:
    """Return how many relevant documents moved into and out of the first k ranks."""
    return flow_of(moves(study, challenger), k)


@part("labels", "baseline", "order", "threshold")
def move_sizes(study: Study, challenger: str) -> pd.DataFrame:
    """Return how far the documents moved."""
    return move_sizes_of(moves(study, challenger))


@part("texts", "order", limit="pairs")
def _paired(study: Study, one: str, other: str) -> Pairing:
    """Return the paired documents of two systems, in the order of the metrics."""
    return pair(*(with_ties(study.ranking(each), study.conventions) for each in (one, other)))


# A threshold changes no order: of the conventions, only the rule for ties matters.
@part("texts", "order")
def agreements(study: Study, one: str, other: str) -> pd.DataFrame:
    """Return query_id, tau, rbo and common of every query of two systems."""
    return agreement(_paired(study, one, other))


@part("texts", "chosen", "order", "statistics")
def agreement_table(study: Study) -> pd.DataFrame:
    """Return the mean agreement of each two systems."""
    by_pair = {pair: agreements(study, *pair) for pair in combinations(study.chosen, 2)}
    return pairwise(by_pair, study.statistics)
