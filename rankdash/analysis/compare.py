"""Systems side by side: every comparison is a join by query id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.analysis.alignment import REASONS, align
from rankdash.errors import SpecError
from rankdash.metrics import (
    Conventions,
    Evaluation,
    Judged,
    Measure,
    evaluate,
    parse_measure,
)
from rankdash.ranking import Ranking

FloatArray = npt.NDArray[np.float64]

TIE_BAND = 0.005
"""Changes up to this size, either way, count as "same"."""

PAIRED = "paired"
_REASON_NAMES = np.array((*REASONS, PAIRED), dtype=object)

_ROUNDING = 1e-12
_NONE_LEFT_OUT: Mapping[str, Mapping[str, str]] = MappingProxyType({})


def paired(baseline: Evaluation, challenger: Evaluation, spec: str | Measure) -> pd.DataFrame:
    """One row for each query that either side evaluated, the baseline's order first.

    Columns: query_id; before and after, the values of the two sides (NaN where a side has none);
    delta = after - before, NaN where a side has none, so that a query left out of one side leaves
    both; state: "paired", or why it was left out, one of `REASONS` ("absent": not among the
    queries that the other side evaluated). Count the reasons with `left_out`.

    Raises SpecError where `spec` was not evaluated, or the two sides follow other conventions.
    """
    measure = parse_measure(spec) if isinstance(spec, str) else spec
    aligned = align({"before": baseline, "after": challenger}, "before", [measure])
    before, after = aligned.values[:, :, 0]
    return pd.DataFrame(
        {
            "query_id": aligned.query_ids,
            "before": before,
            "after": after,
            "delta": after - before,
            "state": _REASON_NAMES[aligned.reasons()[1, :, 0]],
        }
    )


def left_out(frame: pd.DataFrame) -> dict[str, int]:
    """reason → how many queries of a `paired` frame it kept out; reasons that occur only."""
    reasons = frame.loc[frame["state"] != PAIRED, "state"].value_counts()
    return {reason: int(reasons[reason]) for reason in REASONS if reason in reasons}


@dataclass(frozen=True)
class Tally:
    """How many paired queries got better, stayed within the tie band, or got worse."""

    helped: int
    same: int
    hurt: int

    @property
    def queries(self) -> int:
        return self.helped + self.same + self.hurt


def direction(delta: FloatArray, tie_band: float = TIE_BAND) -> npt.NDArray[np.int8]:
    """1 where a change is above the tie band, -1 where below, 0 within it (NaN included)."""
    moved = np.abs(delta) > tie_band + _ROUNDING
    return np.where(moved, np.sign(np.nan_to_num(delta)), 0).astype(np.int8)


def counts(frame: pd.DataFrame, tie_band: float = TIE_BAND) -> Tally:
    """Helped, same and hurt over the paired queries of a `paired` frame."""
    delta = frame["delta"].dropna().to_numpy()
    sign = direction(delta, tie_band)
    return Tally(
        helped=int((sign > 0).sum()), same=int((sign == 0).sum()), hurt=int((sign < 0).sum())
    )


def systems_table(evaluations: Mapping[str, Evaluation], baseline: str) -> pd.DataFrame:
    """One row for each metric and system, the baseline first, then in the order given.

    Columns: system; metric (the spec); mean and n, over all queries that the system has a value
    for; paired, how many queries both it and the baseline have; before and after, the means of
    baseline and system over those; delta = after - before; relative_delta = delta / before, NaN
    where that is 0. The baseline's own delta is 0.

    evaluations: system → its evaluation; all with the baseline's metrics and conventions.

    Raises SpecError where the baseline is not among them, or they do not match.
    """
    aligned = align(evaluations, baseline)
    rows: list[dict[str, object]] = []
    for column, measure in enumerate(aligned.measures):
        reference = aligned.values[0, :, column]
        for name, values in zip(aligned.systems, aligned.values[:, :, column], strict=True):
            both = ~np.isnan(values - reference)
            before, after = _mean(reference[both]), _mean(values[both])
            delta = after - before
            rows.append(
                {
                    "system": name,
                    "metric": measure.spec,
                    "mean": _mean(values[~np.isnan(values)]),
                    "n": int((~np.isnan(values)).sum()),
                    "paired": int(both.sum()),
                    "before": before,
                    "after": after,
                    "delta": delta,
                    "relative_delta": delta / before if before else np.nan,
                }
            )
    return pd.DataFrame(rows)


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def by_cutoff(
    judged: Mapping[str, Judged],
    metric: str | Measure,
    cutoffs: Sequence[int],
    conventions: Conventions,
    left_out: Mapping[str, Mapping[str, str]] = _NONE_LEFT_OUT,
) -> pd.DataFrame:
    """A metric against its cutoff: one row for each system and cutoff.

    Columns: system, k, mean, n. The mean is over the n queries that every system has a value for
    at that cutoff, so that the curves can be compared.

    judged: at least one system → its joined labels. metric: a spec, of which the cutoff is
        ignored. left_out: system → query id → "failed" or "skipped".

    Raises SpecError for a metric without a cutoff.
    """
    measure = parse_measure(metric) if isinstance(metric, str) else metric
    if not measure.metric.has_cutoff:
        raise SpecError("{metric} has no cutoff.", metric=measure.metric.title)
    ascending = sorted(set(cutoffs))
    measures = [replace(measure, k=k) for k in ascending]
    evaluations = {
        name: evaluate(each, measures, conventions, left_out.get(name, {}))
        for name, each in judged.items()
    }
    common = align(evaluations, next(iter(evaluations))).values
    known = np.logical_not(np.isnan(common).any(axis=0))
    n = known.sum(axis=0)
    with np.errstate(invalid="ignore"):
        means = np.where(known, common, 0.0).sum(axis=1) / n
    return pd.DataFrame(
        {
            "system": np.repeat(np.array(list(evaluations), dtype=object), len(ascending)),
            "k": np.tile(ascending, len(evaluations)),
            "mean": means.reshape(-1),
            "n": np.tile(n, len(evaluations)),
        }
    )


def ladder(
    baseline: Ranking,
    challenger: Ranking,
    qrels: pd.DataFrame,
    query_id: str,
    k: int,
    threshold: float = 1.0,
) -> pd.DataFrame:
    """Where each document of one query stood and stands, by rank after, then by rank before.

    Columns: doc_id; rank_before and rank_after (float, from 1; NaN where a ranking lacks it);
    label (NaN where there is none); relevant (label ≥ threshold); enters and leaves, whether it
    came into or dropped out of the first k. Empty where neither ranking has the query.

    qrels: query_id, doc_id, label.
    """
    sides = [
        pd.Series(np.arange(1.0, len(docs) + 1), index=pd.Index(docs, dtype=object), name=name)
        for name, (docs, _) in (
            ("rank_before", baseline.documents_of(query_id)),
            ("rank_after", challenger.documents_of(query_id)),
        )
    ]
    moves = pd.concat(sides, axis="columns").sort_values(
        ["rank_after", "rank_before"], na_position="last"
    )
    own = qrels[qrels["query_id"] == query_id]
    labels = pd.Series(own["label"].to_numpy(dtype=np.float64), index=own["doc_id"].astype(object))
    label = labels.reindex(moves.index).to_numpy()
    was_in = (moves["rank_before"] <= k).to_numpy()
    is_in = (moves["rank_after"] <= k).to_numpy()
    return pd.DataFrame(
        {
            "doc_id": moves.index.to_numpy(dtype=object),
            "rank_before": moves["rank_before"].to_numpy(),
            "rank_after": moves["rank_after"].to_numpy(),
            "label": label,
            "relevant": label >= threshold,
            "enters": is_in & ~was_in,
            "leaves": was_in & ~is_in,
        }
    )
