"""Estimates of runs before they start: queries, pairs, time, calls, tokens, dollars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import duration, ngettext, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import SHIPPED_WITH
from rankdash.core.rerankers import Request, RerankerKind, defaults
from rankdash.core.rerankers.neural import packaged
from rankdash.core.rerankers.remote.connection import Estimate
from rankdash.core.runs.plan import Variant, sample_queries
from rankdash.core.workspace import RunRow
from rankdash.kit.widgets import run_records, scenario, stored
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.stored import workspace

# The number of queries from which the cost of all is estimated.
_LOOKED_AT = 40
_SEED = 7
_FEWEST_MEASURED = 30
# If one of these settings differs, the speed of another run is not comparable.
_SAME_SPEED = ("model", "dialect", "base_url", "window", "stride")

Settings = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class FormPlan:
    """The size of a run. depth None: all candidates. sample None: all queries. source: the id of
    the retrieval with the candidates; None for the first stage."""

    depth: int | None
    sample: int | None
    queries: int
    pairs: int
    source: str | None = None


@dataclass(frozen=True)
class Wish:
    """A requested run. keys: of its service, by environment variable."""

    kind: RerankerKind
    variant: Variant
    keys: Mapping[str, str]
    plan: FormPlan


def with_source(dataset_id: str, source: str | None) -> Dataset:
    """Return the data set with the candidates of a retrieval; None for the first stage."""
    data = stored.dataset(dataset_id)
    if source is None:
        return data
    run = stored.run(source)
    return data.with_candidates(run.ranking, run.name)


def say(
    dataset_id: str,
    kind: RerankerKind,
    runs: Sequence[tuple[Settings, int | None]],
    plan: FormPlan,
) -> None:
    """Draw the estimate of calls and cost, if this kind calls a service and the settings are valid.

    runs: settings and depth of each run of that kind.
    """
    if kind.key is None:
        return
    try:
        places = [kind.key(settings) for settings, _depth in runs]
        if not places or places[0] is None:
            return
        host = urlsplit(places[0].base_url).netloc
    except RankdashError:
        # The form shows what is wrong with the settings.
        return
    plans = [(settings, replace(plan, depth=depth)) for settings, depth in runs]
    each = [cost(dataset_id, kind, settings, run) for settings, run in plans]
    known = [estimate for estimate in each if estimate is not None]
    if not known or len(known) < len(each):
        return
    total = sum(known, Estimate(0, 0.0, 0.0, 0.0))
    st.caption(" · ".join([_p("reranker", kind.title), *scenario.parts(total, host)]))


def cost(
    dataset_id: str, kind: RerankerKind, settings: Settings, plan: FormPlan
) -> Estimate | None:
    """Return the estimate of a run; None if its kind calls no service, or for invalid settings."""
    if kind.estimate is None:
        return None
    try:
        return cache(
            ("estimate", dataset_id, kind.name, tuple(settings.items()), plan),
            partial(_estimate, dataset_id, kind, settings, plan),
        )
    except RankdashError:
        return None


def _estimate(dataset_id: str, kind: RerankerKind, settings: Settings, plan: FormPlan) -> Estimate:
    data, queries = with_source(dataset_id, plan.source), plan.queries
    sampled = sample_queries(data, min(_LOOKED_AT, max(queries, 1)), _SEED)
    texts, query_texts = data.document_text(), data.query_text()
    requests = []
    for query in sampled:
        docs = data.candidates.documents_of(query)[0][: plan.depth]
        requests.append(Request(query, query_texts[query], docs, list(texts.loc[docs])))
    if kind.estimate is None or not requests:
        return Estimate(0, 0.0)
    return kind.estimate(dict(settings), requests).scaled(queries / len(requests))


def say_total(dataset_id: str, wishes: Sequence[Wish]) -> None:
    """Draw the totals of all runs: queries, pairs, time and, without a service, that they are
    free."""
    if not wishes:
        return
    pairs = [wish.plan.pairs for wish in wishes]
    parts = [
        _queries_in_words(dataset_id, wishes[0].plan),
        ngettext("about {n} pair for each reranker", "about {n} pairs for each reranker", pairs[0])
        if len(set(pairs)) == 1
        else ngettext("about {n} pair in all", "about {n} pairs in all", sum(pairs)),
    ]
    seconds = [
        measured_seconds(wish.kind.name, wish.variant.settings, wish.plan) for wish in wishes
    ]
    measured = sum(value for value in seconds if value is not None)
    if all(value is not None for value in seconds):
        parts.append(_("about {time} on this machine", time=_in_all(measured, wishes)))
    elif expected := _expected_seconds(dataset_id, wishes):
        parts.append(
            _(
                "about {time} on two processor cores; not measured on this machine yet",
                time=_in_all(expected, wishes),
            )
        )
    elif measured:
        parts.append(
            _(
                "about {time} on this machine, plus rerankers that have not run here",
                time=duration(measured),
            )
        )
    elif any(_like(wish.kind.name, wish.variant.settings) for wish in wishes):
        parts.append(_("time unknown: too few queries have run here for an estimate"))
    else:
        parts.append(_("time unknown: no reranker of this kind has run here"))
    if not any(calls_out(wish.kind, wish.variant.settings) for wish in wishes):
        parts.append(_("$0: everything runs on this machine"))
    st.caption(" · ".join(parts))


def _in_all(seconds: float, wishes: Sequence[Wish]) -> str:
    """Return the time of all runs together, in words."""
    if len(wishes) == 1:
        return duration(seconds)
    return _("{time} for the {n} runs together", time=duration(seconds), n=number(len(wishes), 0))


def _queries_in_words(dataset_id: str, plan: FormPlan) -> str:
    if plan.sample is None:
        return ngettext("{n} query", "{n} queries", plan.queries)
    return ngettext(
        "on {chosen} of {n} query",
        "on {chosen} of {n} queries",
        len(stored.dataset(dataset_id).candidates.query_ids),
        chosen=number(plan.queries, 0),
    )


def _expected_seconds(dataset_id: str, wishes: Sequence[Wish]) -> float | None:
    """Return the expected time of packaged models, from the lengths of the texts; None if another
    model is chosen."""
    work = _workload(dataset_id, wishes[0].plan.source)
    estimates = [
        work.seconds(wish.kind.name, wish.plan.queries, wish.plan.depth, wish.variant.settings)
        if packaged.in_use(str(wish.variant.settings.get("model", "")))
        else None
        for wish in wishes
    ]
    values = [each for each in estimates if each is not None]
    # Rounded up to 10 s: a rate of another machine is not more precise.
    return 10.0 * math.ceil(sum(values) / 10.0) if len(values) == len(estimates) else None


def _workload(dataset_id: str, source: str | None) -> defaults.Workload:
    base = stored.stored(dataset_id)
    data = partial(with_source, base, source)
    return cache(("workload", base, source), lambda: defaults.Workload.of(data()))


def calls_out(kind: RerankerKind, settings: Settings) -> bool:
    """Return True if the reranker runs on another machine, or if its settings are invalid."""
    try:
        return kind.able(settings).needs_network
    except RankdashError:
        return True


def _like(kind: str, settings: Settings) -> list[RunRow]:
    """Return the stored runs of the same kind and model that ran on this machine."""
    return [
        row
        for row in workspace().runs()
        if row.reranker == kind
        and SHIPPED_WITH not in run_records.record(row.id).machine
        # Runs of earlier versions lack some settings.
        and all((row.settings.get(name) or 0) == (settings.get(name) or 0) for name in _SAME_SPEED)
    ]


def latency_seconds(chosen: list[str], settings: Mapping[str, Settings]) -> float | None:
    """Return the latency of the slowest chosen reranker; None if one of them was never timed
    here."""
    latencies = [
        max((row.p50_ms for row in _like(name, settings[name]) if row.p50_ms > 0), default=None)
        for name in chosen
    ]
    values = [latency / 1000 for latency in latencies if latency is not None]
    return max(values) if len(values) == len(chosen) else None


def measured_seconds(kind: str, settings: Settings, plan: FormPlan) -> float | None:
    """Return the time of a run by the longest run of that kind and model in this workspace: its
    start, and its pairs per second."""
    measured = [row for row in _like(kind, settings) if row.pairs_per_second]
    # A run of a few queries is mostly start: the longest run has the most reliable rate.
    longest = max(measured, key=lambda row: row.queries_done, default=None)
    if longest is None or longest.queries_done < min(_FEWEST_MEASURED, plan.queries):
        return None
    start = longest.load_ms / 1000 if math.isfinite(longest.load_ms) else 0.0
    return start + plan.pairs / float(longest.pairs_per_second or 1.0)
