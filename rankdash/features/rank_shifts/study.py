"""Rank shifts of a study: movements of documents, agreement of systems, and skipping of queries."""

from __future__ import annotations

from itertools import combinations

import pandas as pd

from rankdash.core.study.cache import part
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.rank_shifts.agreement import agreement, pairwise
from rankdash.features.rank_shifts.shifts import Flow, Moves, Pairing, pair, with_ties
from rankdash.features.rank_shifts.shifts import flow as flow_of
from rankdash.features.rank_shifts.shifts import move_sizes as move_sizes_of
from rankdash.features.rank_shifts.shifts import moves as moves_of
from rankdash.features.rank_shifts.shifts import transitions as transitions_of
from rankdash.features.rank_shifts.skipping import Margin, RuleCosts, Skipping, by_margin, rules_on
from rankdash.features.rank_shifts.skipping import margins as margins_of
from rankdash.features.rank_shifts.skipping import skipping as skipping_of


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


@part("texts")
def margins(study: Study, system: str, k: int) -> pd.DataFrame:
    """Return first and edge as from `skipping.margins`; the index is the query id."""
    return margins_of(study.ranking(system), k).set_index("query_id")


def against_first_stage(study: Study, challenger: str) -> pd.DataFrame:
    """Return `Study.pairs` with the first stage in place of the baseline."""
    return study.pairs_of(FIRST_STAGE, challenger, study.spec)


@part("labels", "metric", "conventions")
def change_by_margin(study: Study, challenger: str, margin: Margin, k: int) -> pd.DataFrame:
    """Return the mean change of queries with about the same margin of the first stage, as from
    `skipping.by_margin`. k: of the margin."""
    gaps = margins(study, FIRST_STAGE, k)[margin]
    return by_margin(against_first_stage(study, challenger), gaps)


@part("labels", "metric", "conventions", "statistics")
def skipping(study: Study, challenger: str, margin: Margin, k: int, tolerance: float) -> Skipping:
    """Return the cost of skipping the challenger for queries with a large margin of the first
    stage. k: of the margin. tolerance: as a share of the mean."""
    return skipping_of(_rules(study, challenger, margin, k), tolerance)


@part("labels", "metric", "conventions", "statistics")
def _rules(study: Study, challenger: str, margin: Margin, k: int) -> RuleCosts:
    pairs = against_first_stage(study, challenger)
    gaps = margins(study, FIRST_STAGE, k)[margin]
    return rules_on(pairs, gaps, study.rules(challenger), possible=study.measure.changes)
