"""`Evaluation`: values of queries × measures, with the settings that produced them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import SpecError
from rankdash.core.base.rules import Conventions
from rankdash.core.data import arrays
from rankdash.core.data.arrays import Flags, Floats, Integers, alike, arrow_text
from rankdash.core.data.ranking import Ranking
from rankdash.core.data.weights import Weights
from rankdash.core.metrics.engine import Measure, Relevance
from rankdash.core.metrics.judged import Judged, judge
from rankdash.core.metrics.specs import parse_measure

STATES = ("scored", "missing", "no_relevant", "failed", "skipped", "undefined")
_SCORED, _MISSING, _NO_RELEVANT, _FAILED, _SKIPPED, _UNDEFINED = range(len(STATES))
_STATE_NAMES = np.array(STATES, dtype=object)
_NONE_LEFT_OUT: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Q evaluated queries × M measures.

    query_ids: (Q,) object array of str. Join on it to compare two evaluations.
    values: (Q, M) float64; NaN for a query excluded from the mean, never an invented 0.
    states: (Q,) object array: "scored"; "missing" (labelled, but not in the ranking); "no_relevant"
        (no label reaches the threshold); "failed" and "skipped" from the run.
    cell_states: (Q, M) int8 index into `STATES`. It differs from `states` if a query has no
        relevant document at the threshold but its grades still count in NDCG ("scored"), and if a
        measure has no value for a query ("undefined").
    counts: queries (all rows), one count for each state, tied (queries with equal scores),
        unlabelled (ranked queries without labels, which are not evaluated).
    stopped: whether its run was stopped by its result.
    tuned: whether settings of the ranking were chosen on these labels, so that its values are
        in-sample.
    weights: of the queries, for means per search; None for means per query.
    """

    query_ids: npt.NDArray[np.object_]
    values: Floats
    states: npt.NDArray[np.object_]
    cell_states: npt.NDArray[np.int8]
    measures: tuple[Measure, ...]
    conventions: Conventions
    counts: Mapping[str, int]
    stopped: bool = False
    tuned: bool = False
    weights: Weights | None = None

    def column(self, spec: str | Measure) -> Floats:
        """Return the (Q,) values of one measure.

        Raises SpecError if the spec does not exist or was not evaluated.
        """
        return self.values[:, self.place(spec)]

    def place(self, spec: str | Measure) -> int:
        """Return the index of a measure. Raises SpecError as `column` does."""
        threshold = self.conventions.threshold
        measure = parse_measure(spec, threshold) if isinstance(spec, str) else spec
        if measure not in self.measures:
            raise SpecError(
                "{spec!r} was not evaluated.",
                remedy="Evaluated: {specs}.",
                spec=measure.spec,
                specs=", ".join(each.spec for each in self.measures),
            )
        return self.measures.index(measure)

    def in_order(self, specs: Sequence[str]) -> Evaluation:
        """Return only these measures, in the order of `specs`.

        Raises SpecError as `column` does.
        """
        places = [self.place(spec) for spec in specs]
        return replace(
            self,
            values=self.values.take(places, axis=1),
            cell_states=self.cell_states.take(places, axis=1),
            measures=tuple(self.measures[place] for place in places),
        )

    def mean(self, spec: str | Measure) -> float:
        """Return the mean over the queries with a value, per query or per search as the
        conventions require; NaN without any. Raises SpecError as `column` does, and if means are
        per search and the queries have no weights."""
        self.require_weights()
        return mean_of_known(self.column(spec), self.weights)

    def means(self) -> dict[str, float]:
        """Return spec → mean, in the order of the measures."""
        return {measure.spec: self.mean(measure) for measure in self.measures}

    def require_weights(self) -> None:
        """Raise SpecError if means are per search and the queries have no weights."""
        if self.conventions.weighted and self.weights is None:
            raise SpecError(
                "These values have no frequencies of queries, so they have no mean per search.",
                remedy="Use the weights “per query”.",
            )

    def _repr_html_(self) -> str:
        """Show the means and their numbers of queries in a notebook."""
        counts = (~np.isnan(self.values)).sum(axis=0)
        means = pd.DataFrame(
            {"mean": self.means(), "queries": dict(zip(self.means(), counts, strict=True))}
        )
        return means.to_html(na_rep="–", float_format="{:.4f}".format)

    def frame(self) -> pd.DataFrame:
        """Return one row per query and measure: query_id, metric (the spec), value, state."""
        queries, measures = self.values.shape
        specs = np.array([measure.spec for measure in self.measures], dtype=object)
        return pd.DataFrame(
            {
                "query_id": np.repeat(self.query_ids, measures),
                "metric": np.tile(specs, queries),
                "value": self.values.reshape(-1),
                "state": _STATE_NAMES[self.cell_states.reshape(-1)],
            }
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows of `frame` as an Arrow stream, for polars, DuckDB and others."""
        return self.frame().__arrow_c_stream__(requested_schema)

    def wide(self) -> pd.DataFrame:
        """Return one row per query (index query_id): a column for each spec, then state."""
        specs = [measure.spec for measure in self.measures]
        index = pd.Index(self.query_ids, name="query_id", dtype="str")
        wide = pd.DataFrame(self.values, index=index, columns=specs)
        wide["state"] = self.states
        return wide


def evaluate(
    judged: Judged,
    measures: Sequence[Measure | str],
    conventions: Conventions | None = None,
    left_out: Mapping[str, str] = _NONE_LEFT_OUT,
) -> Evaluation:
    """Score every labelled query.

    measures: at least one, as measures or specs.
    conventions: must join rankings and labels like the conventions of `judged`.
    left_out: query id → "failed" or "skipped", for queries without a result: they get NaN and that
        state, regardless of `conventions.missing`.

    Raises SpecError for an unknown spec, or conventions that differ from `judged`.
    """
    conventions = conventions or Conventions()
    if conventions.joining != judged.joining:
        raise SpecError(
            "The labels were joined under other conventions: {made}, not {asked}.",
            remedy="Join ranking and labels again.",
            made=judged.joining,
            asked=conventions.joining,
        )
    parsed = tuple(parse_measure(each) if isinstance(each, str) else each for each in measures)
    relevance = Relevance(judged, conventions)
    base = _absent_states(judged, left_out)
    chosen = (base != _MISSING) | (conventions.queries != "both")
    # Column-major: measures are computed and compared one after the other.
    values = np.empty((len(judged.query_ids), len(parsed)), order="F")
    cells = np.empty(values.shape, dtype=np.int8, order="F")
    for column, measure in enumerate(parsed):
        values[:, column], cells[:, column] = _score(measure, relevance, base)
    states = _with_no_relevant(base, relevance.relevant_count == 0)
    query_ids = judged.query_ids
    # Sharing one array between systems, if possible, makes joins free.
    if not chosen.all():
        query_ids, states = query_ids[chosen], states[chosen]
        values, cells = values[chosen], cells[chosen]
    return Evaluation(
        query_ids=query_ids,
        values=values,
        states=_STATE_NAMES[states],
        cell_states=cells,
        measures=parsed,
        conventions=conventions,
        counts=_counts(judged, states, chosen),
    )


def _absent_states(judged: Judged, left_out: Mapping[str, str]) -> npt.NDArray[np.int8]:
    """Return scored, missing, failed or skipped per query, shape (Q,)."""
    states = np.where(judged.present, _SCORED, _MISSING).astype(np.int8)
    if left_out:
        for position, query in enumerate(judged.query_ids):
            if query in left_out:
                states[position] = STATES.index(left_out[query])
    return states


def _with_no_relevant(states: npt.NDArray[np.int8], nothing: Flags) -> npt.NDArray[np.int8]:
    """Return the states with `no_relevant` for queries without a relevant label, except failed and
    skipped queries."""
    here = nothing & ((states == _SCORED) | (states == _MISSING))
    return np.where(here, np.int8(_NO_RELEVANT), states)


def _score(
    measure: Measure, relevance: Relevance, base: npt.NDArray[np.int8]
) -> tuple[Floats, npt.NDArray[np.int8]]:
    """Return the (Q,) values of one measure, with the rule of each state applied, and the (Q,)
    states."""
    metric, conventions = measure.metric, relevance.conventions
    states = base.copy()
    missing = 0.0 if conventions.missing == "zero" else np.nan
    if metric.measures_quality:
        count = relevance.relevant_count if metric.binary else relevance.positive_count
        states = _with_no_relevant(base, count == 0)
    else:
        missing = np.nan
    values = metric.compute(relevance, measure.k, measure.parameter)
    values[(states == _FAILED) | (states == _SKIPPED)] = np.nan
    values[states == _NO_RELEVANT] = 0.0 if conventions.no_relevant == "count" else np.nan
    values[states == _MISSING] = missing
    states[(states == _SCORED) & np.isnan(values)] = _UNDEFINED
    return values, states


def _counts(judged: Judged, states: npt.NDArray[np.int8], chosen: Flags) -> dict[str, int]:
    per_state = np.bincount(states, minlength=len(STATES)).tolist()
    return {
        "queries": len(states),
        **dict(zip(STATES[:_UNDEFINED], per_state, strict=False)),
        "tied": int(judged.tied[chosen].sum()),
        "unlabelled": len(judged.unlabelled),
    }


def mean_of_known(values: Floats, weights: Weights | None = None) -> float:
    """Return the mean without NaN, weighted if there are weights; NaN without any value."""
    if weights is not None:
        return weights.mean(values)
    finite = values[~np.isnan(values)]
    return float(finite.mean()) if len(finite) else float("nan")


# The join of a ranking with labels, some of which changed.

_Rows = tuple[Integers, tuple[npt.NDArray[Any], ...]]


def judge_again(
    before: Judged,
    ranking: Ranking,
    labels: Mapping[str, Any],
    queries: Collection[str],
    conventions: Conventions,
) -> Judged:
    """Return the same as `judge` after the labels of some queries changed, but join only these
    queries again.

    before: the join with the previous labels, of the same ranking, under the same conventions.
    labels: query_id and doc_id as `Coded`, label. queries: the queries with changed labels. Raises
        as `judge`.
    """
    texts = labels["query_id"].texts
    if not alike(texts).equals(arrow_text(before.query_ids)):
        # A query has its first label, or lost its last one.
        return judge(ranking, labels, conventions)
    changed = np.array([query in queries for query in before.query_ids], dtype=bool)
    rows = np.flatnonzero(changed[labels["query_id"].codes])
    rejudged = judge(
        ranking.only(queries),
        {
            "query_id": labels["query_id"].taken(rows),
            "doc_id": labels["doc_id"].taken(rows),
            "label": np.asarray(labels["label"])[rows],
        },
        conventions,
    )
    at = np.flatnonzero(changed)
    labelled, relabelled = _labelled(before), _labelled(rejudged)
    for place, row in enumerate(at.tolist()):
        start, length = int(before.starts[row]), int(before.lengths[row])
        there = int(rejudged.starts[place])
        labelled[start : start + length] = relabelled[there : there + length]
    size = before.pool_size.copy()
    size[at] = rejudged.pool_size
    query, (rank, judged_rank, label) = _spliced(
        _positions(before), _positions(rejudged), at, len(size)
    )
    owner, (pool_label,) = _spliced(_pool(before), _pool(rejudged), at, len(size))
    return replace(
        before,
        query=query,
        rank=rank,
        judged_rank=judged_rank,
        label=label,
        judged_rows=np.flatnonzero(labelled),
        pool_label=pool_label,
        pool_offsets=arrays.offsets_from(np.bincount(owner, minlength=len(size))),
        pool_size=size,
    )


def _labelled(judged: Judged) -> Flags:
    """Return whether each ranked row has a label, shape (N,)."""
    labelled = np.zeros(judged.ranked, dtype=bool)
    labelled[judged.judged_rows] = True
    return labelled


def _positions(judged: Judged) -> _Rows:
    return judged.query, (judged.rank, judged.judged_rank, judged.label)


def _pool(judged: Judged) -> _Rows:
    return arrays.owners(judged.pool_offsets), (judged.pool_label,)


def _spliced(before: _Rows, replacement: _Rows, at: Integers, size: int) -> _Rows:
    """Return `before` with the rows of some queries replaced, sorted by query.

    before, replacement: (R,) the query of each row, and columns (R,). at: the indices in `before`
        of the queries of `replacement`. size: the number of queries.
    """
    unchanged = np.ones(size, dtype=bool)
    unchanged[at] = False
    rows = unchanged[before[0]]
    query = np.append(before[0][rows], at[replacement[0]])
    order = arrays.sort_codes(query, size)
    columns = zip(before[1], replacement[1], strict=True)
    return query[order], tuple(np.append(one[rows], other)[order] for one, other in columns)
