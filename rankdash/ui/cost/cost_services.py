"""What the Cost page asks for: the gain with its draws, the load of a search, curves of depth."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from rankdash.analysis.ranks.depth import Cuts, DepthCurve, depth_curve, depths_for, latency_at
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.metrics import Conventions
from rankdash.rerankers import kinds
from rankdash.runs import combining
from rankdash.study import cost_options
from rankdash.study.cost_options import MeasuredLoad, Waiting
from rankdash.ui.state import services
from rankdash.value.outcome import Gain

_KEPT = services.SYSTEM_LIMIT


@st.cache_resource(max_entries=_KEPT, show_spinner=False, hash_funcs=services.BY_VALUE)
def gain(
    dataset_id: str,
    pair: tuple[str, str],
    spec: str,
    hit: str,
    conventions: Conventions,
    settings: StatisticsSettings,
) -> Gain | None:
    """The relative change of a metric and the change of hit@k, drawn together; None where the
    baseline's mean is 0 or no query can be compared.

    pair: baseline and challenger. hit: the spec of the hit rate.
    """
    asked = (spec, hit)
    quality, hits = (services.pairs(dataset_id, pair, asked, each, conventions) for each in asked)
    return cost_options.gain_of(quality, hits, settings)


@st.cache_resource(max_entries=_KEPT, show_spinner=False)
def load(dataset_id: str, system_id: str) -> MeasuredLoad:
    """What a search of this run sends; of the first stage, what reranking all of it would."""
    run = None if system_id == services.FIRST_STAGE else services.run(system_id)
    lengths = _text_lengths(services.stored(dataset_id))
    return cost_options.load_of(services.ranking(dataset_id, system_id), run, lengths)


@st.cache_resource(max_entries=6, show_spinner=False)
def _text_lengths(dataset_id: str) -> tuple[float, float]:
    return cost_options.text_lengths(services.dataset(dataset_id))


def waiting(system_id: str) -> Waiting:
    """Latency and throughput of a system; the first stage adds none."""
    first = system_id == services.FIRST_STAGE
    return cost_options.waiting_of(None if first else services.run(system_id))


def listwise(run_id: str) -> bool:
    """Whether the scores of a run depend on which documents were scored together."""
    kind = services.run(run_id).reranker
    if kind == combining.KIND:
        return True
    return any(each.name == kind and each.capabilities.scope == "listwise" for each in kinds())


@st.cache_resource(max_entries=_KEPT, show_spinner=False, hash_funcs=services.BY_VALUE)
def equal_recall(
    dataset_id: str,
    pair: tuple[str, str],
    passages: int,
    conventions: Conventions,
    settings: StatisticsSettings,
) -> int | None:
    """The fewest reranked passages whose recall is, to the lower confidence limit, at least that of
    the first `passages` of the baseline; None where none is."""
    specs = cost_options.recall_specs(passages)
    before, after = (services.evaluation(dataset_id, each, specs, conventions) for each in pair)
    return cost_options.equal_recall(before, after, settings)


@dataclass(frozen=True, eq=False)
class Depths:
    """A depth curve with the p95 latency in ms at each of its depths (NaN where unknown)."""

    curve: DepthCurve
    p95: tuple[float, ...]


@st.cache_resource(max_entries=_KEPT, show_spinner=False, hash_funcs=services.BY_VALUE)
def depths(
    dataset_id: str,
    system_id: str,
    spec: str,
    conventions: Conventions,
    settings: StatisticsSettings,
) -> Depths:
    """Raises DataError where the run does not rank the candidates of the data set."""
    run, data = services.run(system_id), services.dataset(dataset_id)
    cuts = Cuts(run.ranking, data.candidates)
    curve = depth_curve(
        cuts,
        data.candidates,
        data.qrels,
        spec,
        conventions,
        depths_for(cuts.deepest, run.depth),
        services.left_out(system_id),
        level=settings.level,
        resamples=settings.resamples,
        seed=settings.seed,
    )
    at = (latency_at(run.queries, int(each)) if each else 0.0 for each in curve.table["depth"])
    return Depths(curve, tuple(at))
