"""What the page on the history of a data set asks for, cached by id (see `services`).

Every run of the data set is looked at, which may be many large ones: what is kept of each is its
join with the labels, a small part of it, and never the run itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from rankdash.analysis.statistics.comparison import Comparison, compare
from rankdash.analysis.statistics.history import Trend
from rankdash.analysis.statistics.history import trend as trend_of
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.i18n import gettext as _
from rankdash.i18n import number
from rankdash.metrics import Conventions, Evaluation, Judged, evaluate, judge, parse_measure
from rankdash.ui.state import services
from rankdash.ui.state.server import workspace

_MOST_RUNS = 2 * services.SYSTEM_LIMIT
# Sooner than this a bar of progress only flickers.
_UNNOTICED_SECONDS = 0.5


@dataclass(frozen=True, eq=False)
class _Joined:
    """left_out: query id → "failed" or "skipped"."""

    judged: Judged
    left_out: Mapping[str, str]


def evaluations(
    dataset_id: str, system_ids: Sequence[str], spec: str, conventions: Conventions
) -> dict[str, Evaluation]:
    """system id → evaluation of one metric, in the order given; with a bar of progress where that
    takes its time."""
    found, place, started = {}, st.empty(), time.monotonic()
    for done, system_id in enumerate(system_ids):
        if time.monotonic() - started > _UNNOTICED_SECONDS:
            place.progress(
                done / len(system_ids),
                _(
                    "Evaluating run {n} of {all}; the next time this is kept",
                    n=number(done + 1, 0),
                    all=number(len(system_ids), 0),
                ),
            )
        found[system_id] = evaluation(dataset_id, system_id, spec, conventions)
    place.empty()
    return found


@st.cache_resource(
    max_entries=8 * services.SYSTEM_LIMIT, show_spinner=False, hash_funcs=services.BY_VALUE
)
def evaluation(dataset_id: str, system_id: str, spec: str, conventions: Conventions) -> Evaluation:
    """Per-query values of one metric for one system."""
    if system_id == services.FIRST_STAGE:
        return services.evaluation(dataset_id, system_id, (spec,), conventions)
    joined = _joined(dataset_id, system_id, conventions, joining=conventions.joining)
    return evaluate(joined.judged, [parse_measure(spec)], conventions, joined.left_out)


@st.cache_resource(max_entries=_MOST_RUNS, show_spinner=False)
def _joined(
    dataset_id: str, run_id: str, _conventions: Conventions, joining: tuple[str, ...]
) -> _Joined:
    # As in `services`: of the conventions only what shapes the join is in the key.
    run = workspace().run(run_id)
    labels = services.dataset(dataset_id).qrels
    return _Joined(judge(run.ranking, labels, _conventions), run.left_out)


@st.cache_resource(
    max_entries=services.SYSTEM_LIMIT, show_spinner=False, hash_funcs=services.BY_VALUE
)
def trend(
    dataset_id: str,
    system_ids: tuple[str, ...],
    baseline: str,
    spec: str,
    conventions: Conventions,
    settings: StatisticsSettings,
    every: bool,
) -> Trend:
    """Every system against the baseline; ask for `evaluations` first, which tells its progress."""
    found = {
        system_id: evaluation(dataset_id, system_id, spec, conventions) for system_id in system_ids
    }
    return trend_of(found, baseline, spec, settings, every=every)


@st.cache_resource(
    max_entries=services.SYSTEM_LIMIT, show_spinner=False, hash_funcs=services.BY_VALUE
)
def pair(
    dataset_id: str,
    system_ids: tuple[str, str],
    spec: str,
    conventions: Conventions,
    settings: StatisticsSettings,
) -> Comparison:
    """The first system against the second on one metric."""
    found = {
        system_id: evaluation(dataset_id, system_id, spec, conventions) for system_id in system_ids
    }
    return compare(found, system_ids[0], settings)
