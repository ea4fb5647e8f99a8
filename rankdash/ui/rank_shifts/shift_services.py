"""What the page on rank shifts asks for, cached by id (see `services`)."""

from __future__ import annotations

from itertools import combinations

import pandas as pd
import streamlit as st

from rankdash.analysis.ranks.agreement import agreement, pairwise
from rankdash.analysis.ranks.margins import Margin
from rankdash.analysis.ranks.margins import margins as margins_of
from rankdash.analysis.ranks.shifts import Moves, settled
from rankdash.analysis.ranks.shifts import moves as moves_of
from rankdash.analysis.ranks.skipping import Skipping
from rankdash.analysis.ranks.skipping import skipping as skipping_of
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.metrics import Conventions
from rankdash.ui.state import services


@st.cache_resource(max_entries=6, show_spinner=False)
def moves(dataset_id: str, pair: tuple[str, str], conventions: Conventions) -> Moves:
    """Where every document went. pair: baseline and challenger."""
    before, after = (
        (
            services.ranking(dataset_id, system),
            services.judged(dataset_id, system, conventions),
        )
        for system in pair
    )
    return moves_of(before, after, conventions)


def agreements(dataset_id: str, pair: tuple[str, str], conventions: Conventions) -> pd.DataFrame:
    """query_id, tau, rbo, common of every query of two systems."""
    return _agreements(dataset_id, pair, conventions, joining=conventions.joining)


@st.cache_resource(max_entries=4 * services.SYSTEM_LIMIT, show_spinner=False)
def _agreements(
    dataset_id: str,
    pair: tuple[str, str],
    _conventions: Conventions,
    joining: tuple[str, ...],
) -> pd.DataFrame:
    # A threshold changes no order: of the conventions only what settles it is in the key.
    one, other = (settled(services.ranking(dataset_id, each), _conventions) for each in pair)
    return agreement(one, other)


@st.cache_resource(max_entries=services.SYSTEM_LIMIT, show_spinner=False)
def agreement_table(
    dataset_id: str,
    system_ids: tuple[str, ...],
    conventions: Conventions,
    settings: StatisticsSettings,
) -> pd.DataFrame:
    """The mean agreement of each two systems."""
    pairs = combinations(system_ids, 2)
    return pairwise({pair: agreements(dataset_id, pair, conventions) for pair in pairs}, settings)


@st.cache_resource(max_entries=services.SYSTEM_LIMIT, show_spinner=False)
def margins(dataset_id: str, system_id: str, k: int) -> pd.DataFrame:
    """first and edge (as from `analysis.margins.margins`), the index being the query id."""
    return margins_of(services.ranking(dataset_id, system_id), k).set_index("query_id")


@st.cache_resource(max_entries=services.SYSTEM_LIMIT, show_spinner=False)
def skipping(
    dataset_id: str,
    challenger: str,
    margin: Margin,
    k: int,
    specs: tuple[str, ...],
    spec: str,
    conventions: Conventions,
    settings: StatisticsSettings,
    tolerance: float,
) -> Skipping:
    """What skipping the challenger costs. k: of the margin. specs: what the page evaluates anyway,
    `spec` among them. tolerance: as a share of the mean."""
    pairs = services.pairs(dataset_id, (services.FIRST_STAGE, challenger), specs, spec, conventions)
    gaps = margins(dataset_id, services.FIRST_STAGE, k)[margin]
    return skipping_of(pairs, gaps, settings, tolerance=tolerance)
