"""What the page on latency asks for, cached by the id of the run (see `services`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.analysis import latency
from rankdash.analysis.latency import Apart, Fit, Ratio, TokenLengths
from rankdash.analysis.statistics.bootstrap import FloatArray
from rankdash.ranking.ranking import Run
from rankdash.runs.timing import LatencySummary, summarize
from rankdash.ui.state import services

Against = Literal["documents", "tokens"]
_COLUMN: dict[Against, str] = {"documents": "pairs", "tokens": "tokens"}


@dataclass(frozen=True, eq=False)
class Times:
    """The latencies of a run, ascending, and what comes of them. steps: as from
    `analysis.latency.ecdf`. documents: the fewest and the most of a timed query."""

    run: Run
    ordered: FloatArray
    summary: LatencySummary
    steps: pd.DataFrame
    apart: Apart
    documents: tuple[int, int]


@st.cache_resource(max_entries=services.SYSTEM_LIMIT, show_spinner=False)
def times(run_id: str) -> Times:
    run = services.run(run_id)
    ordered = latency.latencies(run.queries)
    timed = run.queries.loc[np.isfinite(run.queries["latency_ms"]), "pairs"].dropna()
    return Times(
        run=run,
        ordered=ordered,
        summary=summarize(run.queries),
        steps=latency.ecdf(ordered),
        apart=latency.apart(run),
        documents=(int(timed.min()), int(timed.max())) if len(timed) else (0, 0),
    )


@st.cache_resource(max_entries=2 * services.SYSTEM_LIMIT, show_spinner=False)
def cloud(run_id: str, against: Against) -> tuple[pd.DataFrame, Fit | None]:
    """x and ms of every timed query whose x is known, and the line through them."""
    rows = services.run(run_id).queries[[_COLUMN[against], "latency_ms"]]
    points = rows.set_axis(["x", "ms"], axis="columns").dropna().reset_index(drop=True)
    return points, latency.fit(points["x"].to_numpy(), points["ms"].to_numpy())


@st.cache_resource(max_entries=2 * services.SYSTEM_LIMIT, show_spinner=False)
def ratio(before: str, after: str, level: float, resamples: int, seed: int) -> Ratio | None:
    """How many times as long the second run takes, on the queries timed in both."""
    one, other = (services.run(each).queries for each in (before, after))
    return latency.paired_ratio(one, other, level=level, resamples=resamples, seed=seed)


@st.cache_resource(max_entries=services.SYSTEM_LIMIT, show_spinner=False)
def token_lengths(run_id: str) -> TokenLengths | None:
    """None where the reranker reads no tokens."""
    reading = services.run(run_id).reading
    return None if reading is None else latency.token_lengths(reading)
