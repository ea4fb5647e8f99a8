"""Deadline: a query whose reranking takes longer than a limit has the first stage's order.

Only queries with a measured latency count: an untimed query is neither within a deadline nor over
it. A latency is of one query at a time, as in `rankdash.core.study.latency`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.arrays import Floats
from rankdash.core.metrics import Measure
from rankdash.core.statistics.inference import intervals
from rankdash.core.study.cache import Key, part
from rankdash.core.study.latency import timed_by
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE

_STEPS = 40


@dataclass(frozen=True, eq=False)
class Deadline:
    """Quality with a deadline, for all queries of the first stage and a reranker.

    table: one row for each deadline, ascending, from 0 (no query is reranked) to the longest
        latency (all are): ms; fallback (share of the timed queries over it); mean, low, high; and
        change, change_low, change_high, compared with no deadline. Ends are NaN for too few
        queries.
    query_ids: (n,), as in `Study.pairs_of`.
    latency: (n,) milliseconds; NaN for a query without a latency, or without a value in one of the
        two systems. before, after: (n,) the values of the first stage and of the reranker, NaN for
        the same queries.
    untimed: number of queries with a value in both systems, but without a latency.
    settings, measure: of the intervals.
    """

    table: pd.DataFrame
    query_ids: npt.NDArray[np.object_]
    latency: Floats
    before: Floats
    after: Floats
    untimed: int
    settings: StatisticsSettings
    measure: Measure

    @property
    def timed(self) -> int:
        return int(np.isfinite(self.latency).sum())

    @property
    def values(self) -> Floats:
        """Values of the queries at each deadline of the table, (n, deadlines)."""
        return self.at(self.table["ms"].to_numpy()[:, None]).T

    def at(self, ms: float | Floats) -> Floats:
        """Return the values of the queries with a deadline, (n,), NaN without one."""
        return np.where(self.latency <= ms, self.after, self.before)

    def rows(self, ms: Floats) -> pd.DataFrame:
        """Return rows as in `table` for any (T,) deadlines."""
        values = self.at(ms[:, None]).T
        changes = values - self.after[:, None]
        low, high = intervals(values, self.settings, possible=self.measure.metric.range)
        change_low, change_high = intervals(changes, self.settings, possible=self.measure.changes)
        return pd.DataFrame(
            {
                "ms": ms,
                "fallback": (self.latency > ms[:, None]).sum(axis=1) / self.timed,
                "mean": np.nanmean(values, axis=0),
                "low": low,
                "high": high,
                "change": np.nanmean(changes, axis=0),
                "change_low": change_low,
                "change_high": change_high,
            }
        )


def deadline(study: Study, challenger: str) -> Deadline | None:
    """Return the quality of a system with each deadline; None if no query was timed."""
    return (
        None if study.systems[challenger].load is None else _of(study, timed_by(study, challenger))
    )


@part("labels", "metric", "conventions", "statistics")
def _of(study: Study, timed: Key) -> Deadline | None:
    system = str(timed[0])
    run = study.run(system)
    if run is None:
        return None
    pairs = study.pairs_of(FIRST_STAGE, system, study.spec)
    latency = run.queries.set_index("query_id")["latency_ms"].reindex(pairs["query_id"])
    known = pairs["delta"].notna().to_numpy()
    ms = np.where(known & np.isfinite(latency), latency, np.nan)
    timed_rows = np.isfinite(ms)
    if not timed_rows.any():
        return None
    found = Deadline(
        table=pd.DataFrame(),
        query_ids=pairs["query_id"].to_numpy(dtype=object),
        latency=ms,
        before=np.where(timed_rows, pairs["before"], np.nan),
        after=np.where(timed_rows, pairs["after"], np.nan),
        untimed=int((known & ~timed_rows).sum()),
        settings=study.rules(system),
        measure=study.measure,
    )
    ordered = np.unique(ms[timed_rows])
    places = np.linspace(0, len(ordered) - 1, min(_STEPS, len(ordered))).round().astype(np.intp)
    return replace(found, table=found.rows(np.append(0.0, ordered[np.unique(places)])))
