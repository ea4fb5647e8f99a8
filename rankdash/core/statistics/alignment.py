"""Evaluations of several systems on one list of queries, joined by query id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import SpecError
from rankdash.core.base.rules import TIE_BAND
from rankdash.core.data.arrays import Flags, Floats
from rankdash.core.data.weights import Weights
from rankdash.core.metrics import STATES, Conventions, Evaluation, Measure, parse_measure

Codes = npt.NDArray[np.int8]

ABSENT = "absent"
# A query excluded for two reasons is reported with the first one in this order.
REASONS = ("failed", "skipped", "no_relevant", "missing", "undefined", ABSENT)
HAS_VALUE = len(REASONS)

_NOT_EVALUATED = len(STATES)
_REASON_OF_STATE = np.array(
    [REASONS.index(state) if state in REASONS else HAS_VALUE for state in (*STATES, ABSENT)],
    dtype=np.int8,
)
_UNANSWERED = np.array([STATES.index("missing"), _NOT_EVALUATED], dtype=np.int8)


@dataclass(frozen=True, eq=False)
class Aligned:
    """S systems, the baseline first, by Q queries, the baseline's first, by M measures.

    values: (S, Q, M); NaN if a system has no value for a query.
    states: (S, Q, M) index into `metrics.STATES`, or one past its end if a system did not evaluate
        the query.
    stopped: (S,) whether the run was stopped by its result.
    tuned: (S,) whether its values are in-sample.
    weights: of the Q queries, for means per search; None for means per query.
    """

    systems: tuple[str, ...]
    query_ids: npt.NDArray[np.object_]
    measures: tuple[Measure, ...]
    conventions: Conventions
    values: Floats
    states: Codes
    stopped: Flags
    tuned: Flags
    weights: Weights | None = None

    @cached_property
    def known(self) -> Flags:
        """Flag of each existing value, shape (S, Q, M)."""
        return ~np.isnan(self.values)

    @cached_property
    def answered(self) -> Flags:
        """Flag, shape (S, Q, M), of each value that comes from documents that the system returned:
        a labelled query without a ranking may also count 0."""
        return self.known & ~np.isin(self.states, _UNANSWERED)

    def highest(self, best: Evaluation | None) -> Floats:
        """Return the highest values that a system can have, (Q, M): from `best`, or else the top of
        the metric; at least the values of the systems."""
        tops = np.array([measure.metric.range[1] for measure in self.measures])
        most: Floats = np.tile(tops, (len(self.query_ids), 1))
        if best is None:
            return most
        places = places_of(best.query_ids, self.query_ids)
        for m, measure in enumerate(self.measures):
            if measure.metric.measures_quality:
                ideal = np.where(places >= 0, best.column(measure)[places], np.nan)
                most[:, m] = np.where(np.isnan(ideal), most[:, m], ideal)
        reached: Floats = np.fmax(most, np.fmax.reduce(self.values, axis=0))
        return reached

    def weights_of(self, rows: Flags) -> Weights | None:
        """Return the weights of a part of the queries. rows: (Q,)."""
        return None if self.weights is None else self.weights.taken(rows)

    def reasons(self) -> Codes:
        """Return the reason why a query is excluded from the pair of a system and the baseline, (S,
        Q, M): an index into `REASONS`, or `HAS_VALUE` if both have a value."""
        codes = np.where(self.known, np.int8(HAS_VALUE), _REASON_OF_STATE[self.states])
        weightiest: Codes = np.minimum(codes, codes[:1])
        return weightiest


def reason_counts(reasons: Codes) -> dict[str, int]:
    """Return reason → count, for the reasons of a pair that occur."""
    counts = np.bincount(reasons, minlength=HAS_VALUE)
    return {name: int(n) for name, n in zip(REASONS, counts, strict=False) if n}


def places_of(
    ids: npt.NDArray[np.object_], targets: npt.NDArray[np.object_]
) -> npt.NDArray[np.intp]:
    """Return the index of each target among the ids; -1 without a match."""
    if _same(ids, targets):
        return np.arange(len(ids))
    return pd.Index(ids, dtype=object).get_indexer(pd.Index(targets, dtype=object))


def _same(one: npt.NDArray[np.object_], other: npt.NDArray[np.object_]) -> bool:
    return one is other or np.array_equal(one, other)


def align(
    evaluations: Mapping[str, Evaluation],
    baseline: str,
    measures: Sequence[Measure] | None = None,
) -> Aligned:
    """Join evaluations by query id. measures: by default the baseline's.

    Raises SpecError if the baseline is not among the systems, a system lacks a measure, or the
    systems were evaluated under different conventions.
    """
    if baseline not in evaluations:
        raise SpecError(
            "{baseline!r} is not among the systems: {systems}.",
            baseline=baseline,
            systems=", ".join(evaluations),
        )
    reference = evaluations[baseline]
    systems = (baseline, *(name for name in evaluations if name != baseline))
    if any(evaluations[name].conventions != reference.conventions for name in systems):
        raise SpecError(
            "The systems were evaluated under different conventions and cannot be compared.",
            remedy="Evaluate all with the same settings.",
        )
    chosen = tuple(measures) if measures is not None else reference.measures
    queries = reference.query_ids
    for name in systems[1:]:
        others = evaluations[name].query_ids
        if not _same(others, queries):
            index = pd.Index(queries, dtype=object)
            new = pd.Index(others, dtype=object).difference(index, sort=False)
            queries = index.append(new).to_numpy(dtype=object)
    shape = (len(systems), len(queries), len(chosen))
    values = np.full(shape, np.nan)
    states = np.full(shape, _NOT_EVALUATED, dtype=np.int8)
    for place, name in enumerate(systems):
        evaluation = evaluations[name]
        ids = evaluation.query_ids
        rows = slice(None) if _same(ids, queries) else places_of(queries, ids)
        columns = [evaluation.place(measure) for measure in chosen]
        values[place, rows] = evaluation.values[:, columns]
        states[place, rows] = evaluation.cell_states[:, columns]
    return Aligned(
        systems=systems,
        query_ids=queries,
        measures=chosen,
        conventions=reference.conventions,
        values=values,
        states=states,
        stopped=np.array([evaluations[name].stopped for name in systems]),
        tuned=np.array([evaluations[name].tuned for name in systems]),
        weights=_weights([evaluations[name] for name in systems], queries),
    )


def _weights(evaluations: Sequence[Evaluation], queries: npt.NDArray[np.object_]) -> Weights | None:
    """Return the weights of the joined queries. Raises SpecError if an evaluation needs weights and
    has none."""
    for each in evaluations:
        each.require_weights()
    weights = evaluations[0].weights
    if weights is None or _same(evaluations[0].query_ids, queries):
        return weights
    searches, strata = np.zeros(len(queries)), np.zeros(len(queries), dtype=np.int64)
    for each in evaluations:
        if each.weights is not None:
            rows = places_of(queries, each.query_ids)
            searches[rows], strata[rows] = each.weights.searches, each.weights.strata
    return Weights(searches, strata)


# Paired comparison of systems: every comparison is a join by query id.


PAIRED = "paired"
_WEIGHTS = ("searches", "search_stratum")

_ROUNDING = 1e-12


@cache
def reason_names() -> pd.api.extensions.ExtensionArray:
    """Return `REASONS` and `PAIRED` as a pandas array; built on demand, so that commands without a
    table do not load pandas."""
    return pd.array((*REASONS, PAIRED), dtype="str")


def paired(baseline: Evaluation, challenger: Evaluation, spec: str | Measure) -> pd.DataFrame:
    """Return one row per query that either system evaluated, in the baseline's order first.

    Columns: query_id; before and after, the values of the two systems (NaN without one); delta =
    after - before, NaN if a value is missing, so that a query is used for both systems or none;
    state: "paired", or the reason of the exclusion, one of `REASONS` ("absent": not among the
    queries that the other system evaluated). If means are per search, also searches and
    search_stratum, for `weights_in`.

    Raises SpecError if `spec` was not evaluated, or the two evaluations have different conventions.
    """
    measure = parse_measure(spec) if isinstance(spec, str) else spec
    aligned = align({"before": baseline, "after": challenger}, "before", [measure])
    before, after = aligned.values[:, :, 0]
    weights = aligned.weights
    weighted = (
        {}
        if weights is None
        else dict(zip(_WEIGHTS, (weights.searches, weights.strata), strict=True))
    )
    return pd.DataFrame(
        {
            "query_id": aligned.query_ids,
            "before": before,
            "after": after,
            "delta": after - before,
            "state": reason_names().take(aligned.reasons()[1, :, 0]),
            **weighted,
        }
    )


def weights_in(pairs: pd.DataFrame) -> Weights | None:
    """Return the weights of the queries of a frame of `paired`; None if means are per query."""
    if _WEIGHTS[0] not in pairs:
        return None
    searches, strata = (pairs[each].to_numpy() for each in _WEIGHTS)
    return Weights(searches, strata)


@dataclass(frozen=True)
class Tally:
    """Numbers of paired queries that improved, stayed within the tie band, or got worse."""

    helped: int
    same: int
    hurt: int

    @property
    def queries(self) -> int:
        return self.helped + self.same + self.hurt


def direction(delta: Floats, tie_band: float = TIE_BAND) -> npt.NDArray[np.int8]:
    """Return 1 for a change above the tie band, -1 for one below, 0 within it (NaN included)."""
    least = tie_band + _ROUNDING
    return (delta > least).astype(np.int8) - (delta < -least).astype(np.int8)


def counts(frame: pd.DataFrame, tie_band: float = TIE_BAND) -> Tally:
    """Count helped, same and hurt over the paired queries of a `paired` frame."""
    delta = frame["delta"].dropna().to_numpy()
    sign = direction(delta, tie_band)
    return Tally(
        helped=int((sign > 0).sum()), same=int((sign == 0).sum()), hurt=int((sign < 0).sum())
    )
