"""Where documents went, whether systems agree, and which queries could do without reranking."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pandas as pd

from rankdash.analysis.ranks.agreement import agreement, pairwise
from rankdash.analysis.ranks.margins import Margin
from rankdash.analysis.ranks.margins import margins as margins_of
from rankdash.analysis.ranks.shifts import Moves, settled
from rankdash.analysis.ranks.shifts import moves as moves_of
from rankdash.analysis.ranks.skipping import Skipping
from rankdash.analysis.ranks.skipping import skipping as skipping_of
from rankdash.analysis.statistics.pairs import paired
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE


def moves(study: Study, challenger: str) -> Moves:
    """Where every document went from the baseline to the challenger."""

    def make() -> Moves:
        before, after = (
            (study.ranking(system), study.judged(system)) for system in (study.baseline, challenger)
        )
        return moves_of(before, after, study.conventions)

    return study.once(
        ("moves", study.dataset_id, study.baseline, challenger, study.conventions), make
    )


def agreements(study: Study, one: str, other: str) -> pd.DataFrame:
    """query_id, tau, rbo, common of every query of two systems."""
    return study.once(
        # A threshold changes no order: of the conventions only what settles it is in the key.
        ("agreement", study.stored_id, one, other, *study.conventions.joining),
        lambda: agreement(
            *(settled(study.ranking(each), study.conventions) for each in (one, other))
        ),
    )


def agreement_table(study: Study) -> pd.DataFrame:
    """The mean agreement of each two systems."""
    return study.once(
        (
            *("agreement table", study.stored_id, study.chosen),
            *(*study.conventions.joining, study.statistics),
        ),
        lambda: pairwise(
            {pair: agreements(study, *pair) for pair in combinations(study.chosen, 2)},
            study.statistics,
        ),
    )


def margins(study: Study, system: str, k: int) -> pd.DataFrame:
    """first and edge (as from `analysis.ranks.margins.margins`), the index being the query id."""
    return study.once(
        ("margins", study.stored_id, system, k),
        lambda: margins_of(study.ranking(system), k).set_index("query_id"),
    )


def against_first_stage(study: Study, challenger: str) -> pd.DataFrame:
    """As `Study.pairs`, with the first stage in place of the baseline."""
    return study.once(
        ("pairs", study.dataset_id, FIRST_STAGE, challenger, study.spec, study.conventions),
        lambda: paired(
            study.evaluate(FIRST_STAGE, study.specs),
            study.evaluate(challenger, study.specs),
            study.spec,
        ),
    )


def first_stage_kind(study: Study, challenger: str) -> str:
    """The kind of verdict on a challenger against the first stage, among all systems chosen: the
    study's own where that is its baseline."""
    others = tuple(system for system in study.chosen if system != FIRST_STAGE)
    based = replace(study, baseline=FIRST_STAGE, challengers=others)
    comparison = study.comparison if based.chosen == study.chosen else based.comparison
    return str(comparison.row(challenger, study.spec)["verdict"])


def skipping(study: Study, challenger: str, margin: Margin, k: int, tolerance: float) -> Skipping:
    """What skipping the challenger costs where the first stage was sure of itself. k: of the
    margin. tolerance: as a share of the mean."""
    key = (study.dataset_id, challenger, margin, k, study.spec, study.conventions, study.statistics)
    return study.once(
        ("skipping", *key, tolerance),
        lambda: skipping_of(
            against_first_stage(study, challenger),
            margins(study, FIRST_STAGE, k)[margin],
            study.statistics,
            tolerance=tolerance,
        ),
    )
