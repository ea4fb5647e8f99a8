"""Systems side by side: every comparison is a join by query id."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.metrics import Evaluation, Measure, parse_measure
from rankdash.core.statistics.alignment import REASONS, align

FloatArray = npt.NDArray[np.float64]

TIE_BAND = 0.005
"""Changes up to this size, either way, count as "same"."""

PAIRED = "paired"

_ROUNDING = 1e-12


@cache
def reason_names() -> pd.api.extensions.ExtensionArray:
    """`REASONS` and `PAIRED` as a column takes them; made when asked for, as a command that makes
    no table goes without pandas."""
    return pd.array((*REASONS, PAIRED), dtype="str")


def paired(baseline: Evaluation, challenger: Evaluation, spec: str | Measure) -> pd.DataFrame:
    """One row for each query that either side evaluated, the baseline's order first.

    Columns: query_id; before and after, the values of the two sides (NaN where a side has none);
    delta = after - before, NaN where a side has none, so that a query left out of one side leaves
    both; state: "paired", or why it was left out, one of `REASONS` ("absent": not among the
    queries that the other side evaluated).

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
            "state": reason_names().take(aligned.reasons()[1, :, 0]),
        }
    )


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
    least = tie_band + _ROUNDING
    return (delta > least).astype(np.int8) - (delta < -least).astype(np.int8)


def counts(frame: pd.DataFrame, tie_band: float = TIE_BAND) -> Tally:
    """Helped, same and hurt over the paired queries of a `paired` frame."""
    delta = frame["delta"].dropna().to_numpy()
    sign = direction(delta, tie_band)
    return Tally(
        helped=int((sign > 0).sum()), same=int((sign == 0).sum()), hurt=int((sign < 0).sum())
    )
