"""What came of each query, and the `Run` they make together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.dataset import Dataset
from rankdash.ranking import QueryState, Ranking, Run, digest
from rankdash.rerankers import Reranker
from rankdash.runs.plan import Plan
from rankdash.runs.timing import machine

_MEASURED = ("latency_ms", "index_ms", "tokens", "truncated")


@dataclass(frozen=True, eq=False)
class QueryResult:
    """What came of one query.

    reason: why it failed or was skipped.
    scores: (n,) float64 in the order of the candidates, n = how many were reranked; empty unless
        the query is done.
    latency_ms, index_ms, tokens, truncated: as in the table of a `Run`.
    """

    query_id: str
    state: QueryState
    reason: str = ""
    scores: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    latency_ms: float = math.nan
    index_ms: float = math.nan
    tokens: float = math.nan
    truncated: float = math.nan


def results_from(rows: pd.DataFrame) -> list[QueryResult]:
    """Results from a frame with a column for each field, as `Workspace` parts are read."""
    columns = [rows[name] for name in QueryResult.__dataclass_fields__]
    return [QueryResult(*values) for values in zip(*columns, strict=True)]


def assemble(
    dataset: Dataset,
    reranker: Reranker,
    depth: int | None,
    asked: Plan,
    results: Mapping[str, QueryResult],
    load_ms: float,
) -> Run:
    """The run of a plan all of whose queries have a result.

    Reranked documents come by score, equal scores in first-stage order; the candidates below keep
    their first-stage order and have no score. The run is named after the reranker, and its id
    depends only on what was asked.
    """

    def lists() -> Iterator[tuple[str, list[str], list[float]]]:
        for query, docs in asked.documents.items():
            if results[query].state == "done":
                scores = results[query].scores
                order = np.argsort(-scores, kind="stable")
                below = dataset.candidates.documents_of(query)[0][len(docs) :]
                ranked = [docs[place] for place in order] + below
                yield query, ranked, [*scores[order].tolist(), *[math.nan] * len(below)]

    skipped = {query: QueryResult(query, "skipped", why) for query, why in asked.skipped.items()}
    every = {**skipped, **results}
    wish = (dataset.id, reranker.name, repr(sorted(reranker.settings.items())), str(depth))
    return Run(
        id=digest(part.encode("utf-8", "surrogatepass") for part in (*wish, *asked.documents)),
        name=reranker.name,
        dataset_id=dataset.id,
        ranking=Ranking.from_lists(lists()),
        reranker=reranker.name,
        queries=_frame([every[query] for query in dataset.queries["query_id"]], asked),
        settings=dict(reranker.settings),
        machine=machine(),
        depth=depth,
        load_ms=load_ms,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def _frame(results: list[QueryResult], asked: Plan) -> pd.DataFrame:
    texts = {
        name: pd.Series([getattr(result, name) for result in results], dtype="str")
        for name in ("query_id", "state", "reason")
    }
    numbers = {
        name: np.array([getattr(result, name) for result in results], dtype=np.float64)
        for name in _MEASURED
    }
    numbers["pairs"] = np.array([_pairs(result, asked) for result in results], dtype=np.float64)
    order = ["query_id", "state", "reason", "latency_ms", "index_ms", "pairs", "tokens"]
    return pd.DataFrame({**texts, **numbers})[[*order, "truncated"]]


def _pairs(result: QueryResult, asked: Plan) -> float:
    if result.state == "failed":
        return math.nan
    return float(len(asked.documents.get(result.query_id, ())))
