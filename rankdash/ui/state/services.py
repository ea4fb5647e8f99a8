"""What the pages ask for: data sets, systems and evaluations, cached by id.

A system is the first stage of a data set (`FIRST_STAGE`) or a run. Everything cached here is an
immutable value keyed by content ids, so nothing is ever stale; a deleted run is just never asked
for again.

With corrected labels a data set is another one, whose id is that of the stored one and the revision
of its corrections: "<id>+<revision>", from `with_corrections`. Every function here takes either.
What does not depend on labels (texts, runs) is kept under the id of the stored one, from `stored`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from rankdash.analysis.labels.query_groups import by_segment, derive
from rankdash.analysis.reasons.headroom import Headroom, Limits, limits
from rankdash.analysis.reasons.headroom import headroom as split_headroom
from rankdash.analysis.statistics.comparison import (
    Comparison,
    StatisticsSettings,
    compare,
    mean_intervals,
)
from rankdash.analysis.statistics.pairs import paired
from rankdash.analysis.unjudged.unjudged import Comparison as UnjudgedComparison
from rankdash.analysis.unjudged.unjudged import System as RankedLabels
from rankdash.analysis.unjudged.unjudged import bounds_table
from rankdash.dataset import Dataset
from rankdash.i18n import gettext as _
from rankdash.metrics import Conventions, Evaluation, Judged, evaluate, judge, parse_measure
from rankdash.ranking.ranking import Ranking, Run
from rankdash.store import RunRow
from rankdash.store.notes.corrections import Corrections
from rankdash.study.systems import FIRST_STAGE as FIRST_STAGE
from rankdash.ui.state.server import workspace
from rankdash.words.names import distinct

_REVISION = "+"
_OPENING = 80
SYSTEM_LIMIT = 24
# Streamlit takes a dataclass of settings apart, field by field, each time one is a key.
BY_VALUE: dict[str | type[Any], Callable[[Any], str]] = {
    Conventions: repr,
    StatisticsSettings: repr,
}


@dataclass(frozen=True)
class System:
    """One ranking that can be compared. `id` is `FIRST_STAGE` or a run's id."""

    id: str
    name: str
    run: RunRow | None = None


def stored(dataset_id: str) -> str:
    """The id under which the workspace keeps the data set, its notes and its corrections."""
    return dataset_id.partition(_REVISION)[0]


def with_corrections(dataset_id: str, revision: int) -> str:
    """The id of a stored data set with the labels of a revision of its corrections."""
    return f"{stored(dataset_id)}{_REVISION}{revision}"


def dataset(dataset_id: str) -> Dataset:
    base, _at, revision = dataset_id.partition(_REVISION)
    return _corrected(base, int(revision)) if revision else _stored(base)


@st.cache_resource(max_entries=6, show_spinner=False)
def _stored(dataset_id: str) -> Dataset:
    return workspace().dataset(dataset_id)


@st.cache_resource(max_entries=6, show_spinner=False)
def _corrected(dataset_id: str, revision: int) -> Dataset:
    # Tables and candidates are shared with the stored one: an entry costs its labels only.
    return _stored(dataset_id).relabelled(
        pd.DataFrame(
            [
                (*each.pair, math.nan if each.label is None else each.label)
                for each in Corrections(workspace()).all(dataset_id, revision)
            ],
            columns=["query_id", "doc_id", "label"],
        )
    )


@st.cache_resource(max_entries=SYSTEM_LIMIT, show_spinner=False)
def run(run_id: str) -> Run:
    return workspace().run(run_id)


def systems(dataset_id: str) -> dict[str, System]:
    """id → system, the first stage first, then the finished runs, oldest first."""
    first = (
        _("First stage (BM25)") if dataset(dataset_id).first_stage == "bm25" else _("First stage")
    )
    found = {FIRST_STAGE: System(FIRST_STAGE, first)}
    for row in sorted(workspace().runs(stored(dataset_id)), key=lambda row: row.created):
        found[row.id] = System(row.id, row.name, row)
    names = distinct({system.id: system.name for system in found.values()})
    return {name: replace(system, name=names[name]) for name, system in found.items()}


def has_texts(dataset_id: str) -> bool:
    """Whether any query and any document has a text."""
    return _has_texts(stored(dataset_id))


@st.cache_resource(max_entries=6, show_spinner=False)
def _has_texts(dataset_id: str) -> bool:
    data = dataset(dataset_id)
    return bool((data.query_text() != "").any() and (data.document_text() != "").any())


@st.cache_resource(max_entries=6, show_spinner=False)
def positive_labels(dataset_id: str) -> tuple[float, ...]:
    """The labels above 0 that the data set uses, ascending."""
    labels = dataset(dataset_id).qrels["label"]
    return tuple(float(label) for label in sorted(labels[labels > 0].unique()))


def label_scale(dataset_id: str) -> tuple[float, ...]:
    """Every label that the upload uses, ascending."""
    return _label_scale(stored(dataset_id))


@st.cache_resource(max_entries=6, show_spinner=False)
def _label_scale(dataset_id: str) -> tuple[float, ...]:
    return tuple(float(label) for label in sorted(dataset(dataset_id).qrels["label"].unique()))


def uploaded_labels(dataset_id: str, query_id: str) -> dict[str, float]:
    """Document id → label for one query, as they were uploaded, whatever was corrected."""
    base = stored(dataset_id)
    rows = dataset(base).qrels.take(_rows_of_queries(base).get(query_id, []))
    return dict(zip(rows["doc_id"], rows["label"].astype(float), strict=True))


@st.cache_resource(max_entries=6, show_spinner=False)
def _rows_of_queries(dataset_id: str) -> dict[str, npt.NDArray[np.intp]]:
    groups = dataset(dataset_id).qrels.groupby("query_id", sort=False).indices
    return {str(query_id): np.asarray(rows, dtype=np.intp) for query_id, rows in groups.items()}


@st.cache_resource(max_entries=6, show_spinner=False)
def ids_with_blanks(dataset_id: str) -> bool:
    """Whether an id of a query or a document cannot stand in a TREC file."""
    data = dataset(dataset_id)
    ids = (data.queries["query_id"], data.documents["doc_id"])
    return any(bool(each.str.contains(r"[ \t\n\r\v\f]", regex=True).any()) for each in ids)


def query_texts(dataset_id: str) -> dict[str, str]:
    """Query id → its text, or the id where there is none."""
    return _query_texts(stored(dataset_id))


@st.cache_resource(max_entries=6, show_spinner=False)
def _query_texts(dataset_id: str) -> dict[str, str]:
    queries = dataset(dataset_id).queries
    rows = zip(queries["query_id"], queries["text"].fillna(""), strict=True)
    return {query_id: text or query_id for query_id, text in rows}


def titles(dataset_id: str) -> tuple[dict[str, str], dict[str, str]]:
    """Document id → its title, and document id → how its text begins: what a person knows it by.

    What is missing is replaced by the other, and both by the id.
    """
    return _titles(stored(dataset_id))


@st.cache_resource(max_entries=6, show_spinner=False)
def _titles(dataset_id: str) -> tuple[dict[str, str], dict[str, str]]:
    documents = dataset(dataset_id).documents
    ids = list(documents["doc_id"])
    texts = documents["text"].fillna("").str
    cut = np.where(texts.len() > _OPENING, "…", "")
    starts: list[str] = list(texts[:_OPENING].str.rstrip() + cut)
    rows = list(zip(ids, documents["title"], starts, strict=True))
    return (
        {doc_id: title or start or doc_id for doc_id, title, start in rows},
        {doc_id: start or title or doc_id for doc_id, title, start in rows},
    )


def ranking(dataset_id: str, system_id: str) -> Ranking:
    if system_id == FIRST_STAGE:
        return dataset(dataset_id).candidates
    return run(system_id).ranking


def left_out(system_id: str) -> Mapping[str, str]:
    """query id → "failed" or "skipped", where the system has no result."""
    return {} if system_id == FIRST_STAGE else run(system_id).left_out


def judged(dataset_id: str, system_id: str, conventions: Conventions) -> Judged:
    """The join of a ranking with the labels: the costly part, shared by every metric, cutoff and
    threshold."""
    return _judged(dataset_id, system_id, conventions, joining=conventions.joining)


@st.cache_resource(max_entries=SYSTEM_LIMIT, show_spinner=False)
def _judged(
    dataset_id: str, system_id: str, _conventions: Conventions, joining: tuple[str, ...]
) -> Judged:
    # Streamlit leaves an argument with a leading underscore out of the key; `joining` stands in.
    return judge(ranking(dataset_id, system_id), dataset(dataset_id).qrels, _conventions)


@st.cache_resource(max_entries=4 * SYSTEM_LIMIT, show_spinner=False, hash_funcs=BY_VALUE)
def evaluation(
    dataset_id: str, system_id: str, specs: tuple[str, ...], conventions: Conventions
) -> Evaluation:
    """Per-query values of the metrics `specs` for one system."""
    return evaluate(
        judged(dataset_id, system_id, conventions),
        [parse_measure(spec) for spec in specs],
        conventions,
        left_out(system_id),
    )


@st.cache_resource(max_entries=SYSTEM_LIMIT, show_spinner=False, hash_funcs=BY_VALUE)
def comparison(
    dataset_id: str,
    system_ids: tuple[str, ...],
    specs: tuple[str, ...],
    conventions: Conventions,
    settings: StatisticsSettings,
) -> Comparison:
    """The first system against the others on every metric, with intervals, tests and verdicts."""
    found = evaluations(dataset_id, system_ids, specs, conventions)
    return compare(found, system_ids[0], settings)


@st.cache_resource(max_entries=SYSTEM_LIMIT, show_spinner=False, hash_funcs=BY_VALUE)
def pairs(
    dataset_id: str,
    pair: tuple[str, str],
    specs: tuple[str, ...],
    spec: str,
    conventions: Conventions,
) -> pd.DataFrame:
    """Both values and the change of every query; pair and specs as for `headroom`."""
    before, after = (evaluation(dataset_id, each, specs, conventions) for each in pair)
    return paired(before, after, spec)


@st.cache_resource(max_entries=SYSTEM_LIMIT, show_spinner=False, hash_funcs=BY_VALUE)
def headroom(
    dataset_id: str,
    pair: tuple[str, str],
    specs: tuple[str, ...],
    spec: str,
    conventions: Conventions,
    depth: int | None,
) -> Headroom:
    """How the perfect value splits into lost by the retriever, still to win, and won.

    pair: baseline and challenger. specs: what the page evaluates anyway, `spec` among them.
    """
    before, after = (evaluation(dataset_id, each, specs, conventions) for each in pair)
    return split_headroom(before, after, _limits(dataset_id, spec, conventions, depth))


@st.cache_resource(max_entries=SYSTEM_LIMIT, show_spinner=False, hash_funcs=BY_VALUE)
def _limits(dataset_id: str, spec: str, conventions: Conventions, depth: int | None) -> Limits:
    """The same for every system that reranked the candidates to one depth."""
    return limits(judged(dataset_id, FIRST_STAGE, conventions), spec, conventions, depth)


@st.cache_resource(max_entries=SYSTEM_LIMIT, show_spinner=False, hash_funcs=BY_VALUE)
def curves(
    dataset_id: str,
    system_ids: tuple[str, ...],
    metric: str,
    cutoffs: tuple[int, ...],
    conventions: Conventions,
    settings: StatisticsSettings,
) -> pd.DataFrame:
    """system, k, mean, low, high, n: a metric against its cutoff with the interval of each mean."""
    specs = tuple(f"{metric}@{k}" for k in cutoffs)
    found = {system: evaluation(dataset_id, system, specs, conventions) for system in system_ids}
    frame = mean_intervals(found, system_ids[0], settings)
    frame["k"] = [int(spec.rpartition("@")[2]) for spec in frame["metric"]]
    return frame[["system", "k", "mean", "low", "high", "n"]]


@st.cache_resource(max_entries=SYSTEM_LIMIT, show_spinner=False, hash_funcs=BY_VALUE)
def segments(
    dataset_id: str,
    pair: tuple[str, str],
    segment: str,
    specs: tuple[str, ...],
    spec: str,
    conventions: Conventions,
    settings: StatisticsSettings,
) -> pd.DataFrame:
    """segment, value, n, delta, low, high, p_corrected, small: the change in each group.

    pair and specs: as for `headroom`.
    """
    data = dataset(dataset_id)
    before, after = (evaluation(dataset_id, each, specs, conventions) for each in pair)
    columns = data.queries if segment in data.segments else derive(data, before, spec)
    values = pd.Series(columns[segment].to_numpy(dtype=object), index=columns["query_id"])
    table = by_segment(
        paired(before, after, spec),
        values,
        tie_band=settings.tie_band,
        level=settings.level,
        seed=settings.seed,
        correction=settings.correction,
    )
    table = table.rename(columns={"segment": "value"})
    return table.assign(segment=segment, small=table["size"] != "enough")


def _unjudged_system(dataset_id: str, system_id: str, conventions: Conventions) -> RankedLabels:
    return RankedLabels(
        ranking(dataset_id, system_id),
        judged(dataset_id, system_id, conventions),
        left_out(system_id),
    )


@st.cache_resource(max_entries=SYSTEM_LIMIT, show_spinner=False, hash_funcs=BY_VALUE)
def unjudged_bounds(
    dataset_id: str, system_ids: tuple[str, ...], spec: str, conventions: Conventions
) -> pd.DataFrame:
    """What unjudged documents leave open for each system."""
    systems = {name: _unjudged_system(dataset_id, name, conventions) for name in system_ids}
    return bounds_table(systems, [spec], conventions)


@st.cache_resource(max_entries=SYSTEM_LIMIT, show_spinner=False, hash_funcs=BY_VALUE)
def unjudged_comparison(
    dataset_id: str, baseline: str, challenger: str, spec: str, conventions: Conventions
) -> UnjudgedComparison:
    """What they leave open between two systems."""
    return UnjudgedComparison(
        _unjudged_system(dataset_id, baseline, conventions),
        _unjudged_system(dataset_id, challenger, conventions),
        spec,
        conventions,
    )


def evaluations(
    dataset_id: str, system_ids: Sequence[str], specs: Sequence[str], conventions: Conventions
) -> dict[str, Evaluation]:
    """system id → evaluation, in the order given."""
    return {
        system_id: evaluation(dataset_id, system_id, tuple(specs), conventions)
        for system_id in system_ids
    }
