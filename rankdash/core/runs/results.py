"""What came of each query, and the `Run` they make together."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import QueryState, Ranking, Reading, Run, digest, frozen
from rankdash.core.rerankers import Call, Reranker
from rankdash.core.rerankers.base import Detailed
from rankdash.core.runs.machine import machine
from rankdash.core.runs.plan import Plan

Counts = npt.NDArray[np.int32]
_NO_COUNTS: Counts = frozen(np.zeros(0, dtype=np.int32))

_MEASURED = ("latency_ms", "index_ms", "tokens", "truncated")


@dataclass(frozen=True, eq=False)
class QueryResult:
    """What came of one query.

    reason: why it failed or was skipped.
    scores: (n,) float64 in the order of the candidates, n = how many were reranked; empty unless
        the query is done.
    latency_ms, index_ms: as in the table of a `Run`.
    read, full: (n,) int32, tokens read and tokens before texts were cut, as in a `Reading`; empty
        where unknown.
    cached: how many of the scores were kept from an earlier run.
    calls: the requests to other machines that were made for it.
    repeated_ms: (r,) the latency of each of its repeats; empty where it was timed once at most.
    """

    query_id: str
    state: QueryState
    reason: str = ""
    scores: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    latency_ms: float = math.nan
    index_ms: float = math.nan
    read: Counts = field(default_factory=lambda: _NO_COUNTS)
    full: Counts = field(default_factory=lambda: _NO_COUNTS)
    cached: int = 0
    calls: tuple[Call, ...] = ()
    repeated_ms: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def tokens(self) -> float:
        """Tokens read in all pairs; NaN where unknown."""
        return float(self.read.sum()) if len(self.read) and self.read.min() >= 0 else math.nan

    @property
    def truncated(self) -> float:
        """How many pairs were cut; NaN where unknown."""
        known = len(self.full) and self.full.min() >= 0 and self.tokens >= 0
        return float((self.full > self.read).sum()) if known else math.nan


def to_row(result: QueryResult) -> dict[str, Any]:
    """A result as a row of a `Workspace` part."""
    calls = [asdict(call) | {"billed": dict(call.billed)} for call in result.calls]
    return {**vars(result), "calls": json.dumps(calls)}


def results_from(rows: pd.DataFrame) -> list[QueryResult]:
    """Results from a frame with a column for each field, as `Workspace` parts are read."""
    columns = {name: list(rows[name]) for name in QueryResult.__dataclass_fields__}
    # A job that an older version began kept less.
    for name in ("read", "full"):
        columns[name] = [_NO_COUNTS if value is None else value for value in columns[name]]
    columns["repeated_ms"] = [
        np.zeros(0) if value is None else value for value in columns["repeated_ms"]
    ]
    columns["cached"] = [0 if pd.isna(value) else int(value) for value in columns["cached"]]
    columns["calls"] = [_calls(value) for value in columns["calls"]]
    return [QueryResult(*values) for values in zip(*columns.values(), strict=True)]


def _calls(text: object) -> tuple[Call, ...]:
    return tuple(Call(**call) for call in json.loads(text)) if isinstance(text, str) else ()


def assemble(
    dataset: Dataset,
    reranker: Reranker,
    depth: int | None,
    asked: Plan,
    results: Mapping[str, QueryResult],
    load_ms: float,
    measured: Measured,
) -> Run:
    """The run of a plan all of whose queries have a result.

    Reranked documents come by score, equal scores in first-stage order; the candidates below keep
    their first-stage order and have no score. The run is named after the reranker, and its id
    depends only on what was asked.
    """

    read: list[Counts] = []
    full: list[Counts] = []

    def lists() -> Iterator[tuple[str, list[str], list[float]]]:
        for query, docs in asked.documents.items():
            result = results[query]
            if result.state == "done":
                order = np.argsort(-result.scores, kind="stable")
                scored, candidates = set(docs), dataset.candidates.documents_of(query)[0]
                below = [doc for doc in candidates if doc not in scored]
                ranked = [docs[place] for place in order] + below
                read.append(_ranked(result.read, order, len(below)))
                full.append(_ranked(result.full, order, len(below)))
                yield query, ranked, [*result.scores[order].tolist(), *[math.nan] * len(below)]

    skipped = {query: QueryResult(query, "skipped", why) for query, why in asked.skipped.items()}
    every = {**skipped, **results}
    wish = [dataset.id, reranker.name, repr(sorted(reranker.settings.items())), str(depth)]
    if asked.without_text != "exclude":
        # Not with the usual rule: ids are what they were before there was another.
        wish.append(asked.without_text)
    ranking = Ranking.from_lists(lists())
    return Run(
        id=digest(part.encode("utf-8", "surrogatepass") for part in (*wish, *asked.documents)),
        name=reranker.name,
        dataset_id=dataset.id,
        ranking=ranking,
        reranker=reranker.name,
        queries=_frame([every[query] for query in dataset.queries["query_id"]], asked),
        settings=dict(reranker.settings),
        machine={
            **machine(),
            **(reranker.details() if isinstance(reranker, Detailed) else {}),
        },
        depth=depth,
        load_ms=load_ms,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        reading=_reading(read, full),
        measured=replace(
            _counted(measured, list(every.values())),
            textless_pairs=asked.textless,
            without_text=asked.without_text,
        ),
        calls=_call_table(every.values()),
    )


def _counted(measured: Measured, results: Collection[QueryResult]) -> Measured:
    """With the counts over all results, those of earlier attempts included."""
    done = [result for result in results if result.state == "done"]
    calls = [call for result in results for call in result.calls]
    cached = sum(result.cached for result in done)
    return replace(
        measured,
        cached_pairs=cached,
        scored_pairs=sum(len(result.scores) for result in done) - cached,
        requests=sum(call.attempts for call in calls),
        refused=sum(call.refused for call in calls),
        serial_queries=sum(not math.isnan(result.latency_ms) for result in done),
        repeated_ms={
            result.query_id: tuple(map(float, result.repeated_ms))
            for result in done
            if len(result.repeated_ms)
        },
    )


def _call_table(results: Iterable[QueryResult]) -> pd.DataFrame | None:
    rows = [
        {
            "query_id": result.query_id,
            "start_s": call.start,
            "ms": (call.end - call.start) * 1e3,
            "attempts": call.attempts,
            "refused": call.refused,
            "retry_wait_ms": call.retry_wait_s * 1e3,
            "status": call.status,
            "server_ms": call.server_ms,
            "queue_ms": call.queue_ms,
            "billed": json.dumps(dict(call.billed)),
            "error": call.error,
            "note": call.note,
        }
        for result in results
        for call in result.calls
    ]
    texts = {"query_id": "str", "billed": "str", "error": "str", "note": "str"}
    return pd.DataFrame(rows).astype(texts) if rows else None


def _ranked(counts: Counts, order: npt.NDArray[np.intp], below: int) -> Counts:
    """Token counts in the order of the ranking; -1 where unknown and for documents below."""
    known = counts[order] if len(counts) else np.full(len(order), -1, dtype=np.int32)
    return np.concatenate([known, np.full(below, -1, dtype=np.int32)])


def _reading(read: list[Counts], full: list[Counts]) -> Reading | None:
    if not any((counts >= 0).any() for counts in read):
        return None
    return Reading(np.concatenate(read), np.concatenate(full))


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
