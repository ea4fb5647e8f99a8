"""Systems side by side: every comparison is a join by query id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.analysis.alignment import REASONS, align
from rankdash.metrics import (
    Evaluation,
    Measure,
    parse_measure,
)
from rankdash.ranking import Ranking

FloatArray = npt.NDArray[np.float64]

TIE_BAND = 0.005
"""Changes up to this size, either way, count as "same"."""

PAIRED = "paired"
_REASON_NAMES = np.array((*REASONS, PAIRED), dtype=object)

_ROUNDING = 1e-12


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
