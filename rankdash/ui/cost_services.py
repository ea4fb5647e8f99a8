"""What the Cost page asks for: the gain with its draws, the load of a search, curves of depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.analysis.depth import Cuts, DepthCurve, depth_curve, depths_for, latency_at
from rankdash.analysis.resampling import bootstrap_means, percentile_interval
from rankdash.analysis.statistics_settings import StatisticsSettings
from rankdash.measured import Level
from rankdash.metrics import Conventions
from rankdash.rerankers import kinds
from rankdash.rerankers.default_tokens import default_tokens
from rankdash.runs import combining
from rankdash.runs.timing import summarize
from rankdash.ui import services
from rankdash.value.benefit import equal_recall_depth
from rankdash.value.billing import Load
from rankdash.value.outcome import Gain

_KEPT = services.SYSTEM_LIMIT
# Enough texts for a mean within a few percent, and few enough to count while a page opens.
_COUNTED = 400


@dataclass(frozen=True)
class MeasuredLoad:
    """load: of the mean search. estimated: whether its tokens were counted by the packaged
    tokenizer, because the run has no counts of its own."""

    load: Load
    estimated: bool


@dataclass(frozen=True)
class Waiting:
    """Latency of a run in ms, None where it was not measured, and its measured throughput."""

    p50: float | None
    p95: float | None
    levels: tuple[Level, ...] = ()


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
    before, after = (quality[side].to_numpy(dtype=np.float64) for side in ("before", "after"))
    found = np.nan_to_num(hits["delta"].to_numpy(dtype=np.float64))
    known = ~np.isnan(before) & ~np.isnan(after)
    # The change is a column of its own: as a difference of two means, a draw of nothing is not 0.
    columns = np.column_stack([before, after - before, found])[known]
    means = columns.mean(axis=0) if len(columns) else np.zeros(3)
    if means[0] <= 0:
        return None
    draws = bootstrap_means(columns, resamples=settings.resamples, seed=settings.seed)
    # A resample in which the baseline finds nothing has no relative change.
    usable = draws[draws[:, 0] > 0]
    return Gain(
        relative=float(means[1] / means[0]),
        draws=usable[:, 1] / usable[:, 0],
        hit=float(means[2]),
        hit_draws=usable[:, 2],
        queries=len(columns),
    )


@st.cache_resource(max_entries=_KEPT, show_spinner=False)
def load(dataset_id: str, system_id: str) -> MeasuredLoad:
    """What a search of this run sends; of the first stage, what reranking all of it would."""
    query, document = _text_lengths(services.stored(dataset_id))
    counts = np.diff(services.ranking(dataset_id, system_id).offsets)
    documents = float(counts.mean()) if len(counts) else 0.0
    if system_id == services.FIRST_STAGE:
        return MeasuredLoad(Load(query, documents, document), estimated=True)
    run = services.run(system_id)
    done = run.queries[run.queries["state"] == "done"]
    pairs, tokens = done["pairs"].mean(), done["tokens"].mean()
    if pairs > 0:
        documents = float(pairs)
    if not (tokens > 0 and pairs > 0):
        return MeasuredLoad(Load(query, documents, document), estimated=True)
    each = float(tokens / pairs)
    return MeasuredLoad(Load(min(query, each), documents, max(each - query, 0.0)), estimated=False)


@st.cache_resource(max_entries=6, show_spinner=False)
def _text_lengths(dataset_id: str) -> tuple[float, float]:
    """Mean tokens of a query and of a document, counted on a sample where there are many."""
    data = services.dataset(dataset_id)
    return _mean_tokens(data.query_text()), _mean_tokens(data.document_text())


def _mean_tokens(texts: pd.Series) -> float:
    if len(texts) > _COUNTED:
        texts = texts.sample(_COUNTED, random_state=0)
    counts = default_tokens([str(text) for text in texts])
    return float(np.mean(counts)) if counts else 0.0


def waiting(system_id: str) -> Waiting:
    """Latency and throughput of a system; the first stage adds none."""
    if system_id == services.FIRST_STAGE:
        return Waiting(0.0, 0.0)
    run = services.run(system_id)
    found = summarize(run.queries)
    levels = run.measured.throughput if run.measured is not None else ()
    if not found.n:
        return Waiting(None, None, levels)
    return Waiting(found.p50, found.p95, levels)


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
    specs = tuple(f"recall@{k}" for k in range(1, passages + 1))
    before, after = (services.evaluation(dataset_id, each, specs, conventions) for each in pair)
    values = after.values
    if not len(values) or np.isnan(values).all():
        return None
    draws = bootstrap_means(values, resamples=settings.resamples, seed=settings.seed)
    low, _ = percentile_interval(draws, settings.level)
    limits = {k: float(low[k - 1]) for k in range(1, passages + 1)}
    return equal_recall_depth(limits, before.mean(specs[-1]))


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
