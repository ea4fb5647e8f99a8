"""Where documents went, whether systems agree, which queries could do without reranking, and which
documents are ranked above relevant ones."""

from __future__ import annotations

from itertools import combinations

import pandas as pd

from rankdash.core.study.cache import part
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.rank_shifts.agreement import agreement, pairwise
from rankdash.features.rank_shifts.shifts import Flow, Moves, Pairing, pair, settled
from rankdash.features.rank_shifts.shifts import flow as flow_of
from rankdash.features.rank_shifts.shifts import move_sizes as move_sizes_of
from rankdash.features.rank_shifts.shifts import moves as moves_of
from rankdash.features.rank_shifts.shifts import transitions as transitions_of
from rankdash.features.rank_shifts.skipping import Margin, RuleCosts, Skipping, by_margin, rules_on
from rankdash.features.rank_shifts.skipping import margins as margins_of
from rankdash.features.rank_shifts.skipping import skipping as skipping_of


@part("labels", "baseline", "order", "threshold", limit="pairs")
def moves(study: Study, challenger: str) -> Moves:
    """Where every document went from the baseline to the challenger."""
    sides = study.judged(study.baseline), study.judged(challenger)
    pairing = _paired(study, study.baseline, challenger)
    return moves_of(pairing, *sides, study.conventions.threshold)


@part("labels", "baseline", "order", "threshold")
def transitions(study: Study, challenger: str, *, relevant_only: bool) -> pd.DataFrame:
    """How many documents went from each bin of ranks to each."""
    return transitions_of(moves(study, challenger), relevant_only=relevant_only)


@part("labels", "baseline", "order", "threshold")
def flow(study: Study, challenger: str, k: int) -> Flow:
    """Relevant documents into and out of the first k ranks."""
    return flow_of(moves(study, challenger), k)


@part("labels", "baseline", "order", "threshold")
def move_sizes(study: Study, challenger: str) -> pd.DataFrame:
    """How far the documents moved."""
    return move_sizes_of(moves(study, challenger))


@part("texts", "order", limit="pairs")
def _paired(study: Study, one: str, other: str) -> Pairing:
    """The documents of two systems beside each other, in the order that the metrics read them."""
    return pair(*(settled(study.ranking(each), study.conventions) for each in (one, other)))


# A threshold changes no order: of the conventions only what settles it is depended on.
@part("texts", "order")
def agreements(study: Study, one: str, other: str) -> pd.DataFrame:
    """query_id, tau, rbo, common of every query of two systems."""
    return agreement(_paired(study, one, other))


@part("texts", "chosen", "order", "statistics")
def agreement_table(study: Study) -> pd.DataFrame:
    """The mean agreement of each two systems."""
    by_pair = {pair: agreements(study, *pair) for pair in combinations(study.chosen, 2)}
    return pairwise(by_pair, study.statistics)


@part("texts")
def margins(study: Study, system: str, k: int) -> pd.DataFrame:
    """first and edge (as from `skipping.margins`), the index being the query id."""
    return margins_of(study.ranking(system), k).set_index("query_id")


def against_first_stage(study: Study, challenger: str) -> pd.DataFrame:
    """As `Study.pairs`, with the first stage in place of the baseline."""
    return study.pairs_of(FIRST_STAGE, challenger, study.spec)


@part("labels", "metric", "conventions")
def change_by_margin(study: Study, challenger: str, margin: Margin, k: int) -> pd.DataFrame:
    """The mean change of queries with about the same margin of the first stage, as from
    `skipping.by_margin`. k: of the margin."""
    gaps = margins(study, FIRST_STAGE, k)[margin]
    return by_margin(against_first_stage(study, challenger), gaps)


@part("labels", "metric", "conventions", "statistics")
def skipping(study: Study, challenger: str, margin: Margin, k: int, tolerance: float) -> Skipping:
    """What skipping the challenger costs where the first stage was sure of itself. k: of the
    margin. tolerance: as a share of the mean."""
    return skipping_of(_rules(study, challenger, margin, k), tolerance)


@part("labels", "metric", "conventions", "statistics")
def _rules(study: Study, challenger: str, margin: Margin, k: int) -> RuleCosts:
    pairs = against_first_stage(study, challenger)
    gaps = margins(study, FIRST_STAGE, k)[margin]
    return rules_on(pairs, gaps, study.statistics, possible=study.measure.changes)
