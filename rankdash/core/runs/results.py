"""Results of queries, the `Run` they form, and stored results that a run resumes from."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base import files
from rankdash.core.base.errors import DataError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import QueryState, Ranking, Reading, Run, digest, frozen
from rankdash.core.rerankers import Call, Reranker, SettingValue
from rankdash.core.rerankers.base import Detailed, call_table
from rankdash.core.rerankers.kinds.cascade import STAGES, nested_settings
from rankdash.core.rerankers.neural.tokenizer import default_tokens
from rankdash.core.runs.concurrency import machine
from rankdash.core.runs.plan import Plan
from rankdash.core.value.prices import Load, Searches

Counts = npt.NDArray[np.int32]
_NO_COUNTS: Counts = frozen(np.zeros(0, dtype=np.int32))

_MEASURED = ("latency_ms", "index_ms", "tokens", "truncated")


@dataclass(frozen=True, eq=False)
class QueryResult:
    """Result of one query.

    reason: why it failed or was skipped.
    scores: (n,) float64 in the order of the candidates, n = number of reranked candidates; empty
        unless the query is done.
    latency_ms, index_ms: as in the table of a `Run`.
    read, full: (n,) int32, tokens read and tokens before truncation, as in a `Reading`; empty if
        unknown.
    cached: number of scores from the cache.
    calls: the requests to other machines made for it.
    repeated_ms: (r,) the latency of each repeat; empty if it was timed at most once.
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
        """Tokens read in all pairs; NaN if unknown."""
        return float(self.read.sum()) if len(self.read) and self.read.min() >= 0 else math.nan

    @property
    def truncated(self) -> float:
        """Number of truncated pairs; NaN if unknown."""
        counted = len(self.full) and self.full.min() >= 0 and self.tokens >= 0
        return float((self.full > self.read).sum()) if counted else math.nan


def to_row(result: QueryResult) -> dict[str, Any]:
    """Return a result as a row of a `Workspace` part."""
    calls = [asdict(call) | {"billed": dict(call.billed)} for call in result.calls]
    return {**vars(result), "calls": json.dumps(calls)}


def results_from(rows: pd.DataFrame) -> list[QueryResult]:
    """Return results from a frame with a column for each field, as read from `Workspace` parts."""
    columns = {name: list(rows[name]) for name in QueryResult.__dataclass_fields__}
    # Jobs of older versions have fewer columns.
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


@dataclass(frozen=True, eq=False)
class Ranked:
    """The list of one query. scored: the query, its documents and their scores. order: (n,) indices
    of the reranked candidates. below: number of candidates below them."""

    scored: tuple[str, list[str], list[float]]
    order: npt.NDArray[np.intp]
    below: int


def ranked(dataset: Dataset, planned: Plan, result: QueryResult) -> Ranked:
    """Return the list of a done query: documents by score, equal scores in first-stage order; the
    candidates below follow in first-stage order without a score."""
    query, docs = result.query_id, planned.documents[result.query_id]
    order = np.argsort(-result.scores, kind="stable")
    scored, candidates = set(docs), dataset.candidates.documents_of(query)[0]
    below = [doc for doc in candidates if doc not in scored]
    scores = [*result.scores[order].tolist(), *[math.nan] * len(below)]
    return Ranked((query, [docs[place] for place in order] + below, scores), order, len(below))


def assemble(
    dataset: Dataset,
    reranker: Reranker,
    depth: int | None,
    planned: Plan,
    results: Mapping[str, QueryResult],
    load_ms: float,
    measured: Measured,
) -> Run:
    """Return the run of a plan from the results of all its queries.

    The run has the name of the reranker, and its id
    depends only on the request.
    """

    read: list[Counts] = []
    full: list[Counts] = []

    def lists() -> Iterator[tuple[str, list[str], list[float]]]:
        for query in planned.documents:
            result = results[query]
            if result.state == "done":
                one = ranked(dataset, planned, result)
                read.append(_ranked(result.read, one.order, one.below))
                full.append(_ranked(result.full, one.order, one.below))
                yield one.scored

    skipped = {query: QueryResult(query, "skipped", why) for query, why in planned.skipped.items()}
    every = {**skipped, **results}
    wish = [dataset.id, reranker.name, repr(sorted(reranker.settings.items())), str(depth)]
    if planned.without_text != "exclude":
        # Not for the default rule, so that the ids of older versions stay valid.
        wish.append(planned.without_text)
    ranking = Ranking.from_lists(lists())
    return Run(
        id=digest(part.encode("utf-8", "surrogatepass") for part in (*wish, *planned.documents)),
        name=reranker.name,
        dataset_id=dataset.id,
        ranking=ranking,
        reranker=reranker.name,
        queries=_frame([every[query] for query in dataset.queries["query_id"]], planned),
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
            textless_pairs=planned.textless,
            without_text=planned.without_text,
        ),
        calls=call_table(
            (result.query_id, call) for result in every.values() for call in result.calls
        ),
    )


def _counted(measured: Measured, results: Collection[QueryResult]) -> Measured:
    """Return the measurements of a run with counts from all its query results, including those from
    earlier attempts."""
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


def _ranked(counts: Counts, order: npt.NDArray[np.intp], below: int) -> Counts:
    """Return the token counts of one query's documents in ranked order.

    order, below: as in `Ranked`. A count is -1 if it is unknown or the document was not reranked.
    """
    in_order = counts[order] if len(counts) else np.full(len(order), -1, dtype=np.int32)
    return np.concatenate([in_order, np.full(below, -1, dtype=np.int32)])


def _reading(read: list[Counts], full: list[Counts]) -> Reading | None:
    if not any((counts >= 0).any() for counts in read):
        return None
    return Reading(np.concatenate(read), np.concatenate(full))


def _frame(results: list[QueryResult], planned: Plan) -> pd.DataFrame:
    texts = {
        name: pd.Series([getattr(result, name) for result in results], dtype="str")
        for name in ("query_id", "state", "reason")
    }
    numbers = {
        name: np.array([getattr(result, name) for result in results], dtype=np.float64)
        for name in _MEASURED
    }
    numbers["pairs"] = np.array([_pairs(result, planned) for result in results], dtype=np.float64)
    order = ["query_id", "state", "reason", "latency_ms", "index_ms", "pairs", "tokens"]
    return pd.DataFrame({**texts, **numbers})[[*order, "truncated"]]


def _pairs(result: QueryResult, planned: Plan) -> float:
    if result.state == "failed":
        return math.nan
    return float(len(planned.documents.get(result.query_id, ())))


# Usage: payload per search, billed units and repaired answers of a run, from its calls.

# Limits of distinct documents and of pairs, so that a page opens quickly.
_COUNTED, _MOST_PAIRS = 3_000, 50_000


@dataclass(frozen=True)
class MeasuredLoad:
    """Mean number of documents and tokens that one search sends to a reranker.

    load: tokens are NaN if neither the texts nor the run contain them. estimated: whether tokens
    are estimated (by the packaged tokenizer, or from characters without it) because the run has no
    counts.
    """

    load: Load
    estimated: bool


@dataclass(frozen=True)
class Usage:
    """Total number of requests to a service, with failures and billed units.

    calls: requests; a retried request counts once. failed: requests without an answer.
    billed: unit, by the service's own name, → amount; "dollars" at the prices in the settings.
    noted: answers that were repaired or could not be read.
    estimated: calls with tokens that the service did not count, or with an answer lost by a crash;
        if above 0, `billed` is a lower bound.
    """

    calls: int = 0
    failed: int = 0
    billed: Mapping[str, float] = field(default_factory=dict)
    noted: int = 0
    estimated: int = 0

    @classmethod
    def of(cls, calls: Iterable[Call]) -> Usage:
        """Return the total of calls."""
        every = list(calls)
        usage = _summed(
            (call.billed for call in every),
            (call.error for call in every),
            (call.note for call in every),
        )
        return replace(usage, estimated=sum(call.estimated for call in every))

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.failed + other.failed,
            _sum((self.billed, other.billed)),
            self.noted + other.noted,
            self.estimated + other.estimated,
        )


def usage(run: Run) -> Usage | None:
    """Return the usage of a run; None if it called no other machine. Scores from the cache are free
    and not included."""
    if run.calls is None:
        return None
    return _summed(map(json.loads, run.calls["billed"]), run.calls["error"], run.calls["note"])


def _summed(
    billed: Iterable[Mapping[str, float]], errors: Iterable[str], notes: Iterable[str]
) -> Usage:
    failed = [error != "" for error in errors]
    return Usage(len(failed), sum(failed), _sum(billed), sum(note != "" for note in notes))


def _sum(billed: Iterable[Mapping[str, float]]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for each in billed:
        for unit, amount in each.items():
            if math.isfinite(amount):
                totals[unit] = totals.get(unit, 0.0) + amount
    return totals


def load_of(ranking: Ranking, run: Run | None, searches: Searches | None) -> MeasuredLoad:
    """Return the mean number of documents and tokens per search that a system reranks.

    run: None if the ranking is not from a run. searches: the tokens estimated from the texts, used
    if the run has no counts; None if there are no texts.
    """
    counts = np.diff(ranking.offsets)
    documents = float(counts.mean()) if len(counts) else 0.0
    done = None if run is None else run.queries[run.queries["state"] == "done"]
    if done is not None and done["pairs"].mean() > 0:
        documents = float(done["pairs"].mean())
    estimated = (
        Load(math.nan, documents, math.nan) if searches is None else searches.load(documents)
    )
    if done is None:
        return MeasuredLoad(estimated, estimated=True)
    # Queries without token counts are excluded, because they would add only pairs.
    counted = done.loc[done["tokens"].notna(), ["pairs", "tokens"]].sum()
    if not (counted > 0).all():
        return MeasuredLoad(estimated, estimated=True)
    each = float(counted["tokens"] / counted["pairs"])
    if searches is None:
        return MeasuredLoad(Load(0.0, documents, each), estimated=False)
    query, document = float(estimated.query_tokens), float(estimated.document_tokens)
    factors = min(each / query, 1.0), max(each - query, 0.0) / document
    return MeasuredLoad(searches.scaled(*factors).load(documents), estimated=False)


def estimated_searches(
    data: Dataset, ranking: Ranking, run: Run | None, counted: dict[str, float]
) -> Searches | None:
    """Return the estimated tokens of the documents that each search of a ranking sends, by the
    packaged tokenizer; None if no text of them is available.

    If `run` is not None, only its scored documents, the first ones of each list, are counted. For
    many documents, a random sample of the queries is used. A missing text counts as the mean of the
    others. counted: document id → tokens; filled by this function.
    """
    sizes, starts = np.diff(ranking.offsets), ranking.offsets[:-1]
    if run is not None:
        pairs = run.queries.set_index("query_id")["pairs"].reindex(ranking.query_ids)
        sizes = np.minimum(sizes, pairs.fillna(math.inf).to_numpy()).astype(np.int64)
    order = np.random.default_rng(0).permutation(np.flatnonzero(sizes > 0))
    order = order[: max(int((np.cumsum(sizes[order]) <= _MOST_PAIRS).sum()), 1)]
    if not len(order):
        return None
    docs = np.concatenate([ranking.docs[starts[q] : starts[q] + sizes[q]] for q in order.tolist()])
    new = np.sort(np.unique(docs, return_index=True)[1])
    if len(new) > _COUNTED:
        order = order[: max(int((np.cumsum(sizes[order]) <= new[_COUNTED]).sum()), 1)]
        docs = docs[: sizes[order].sum()]
    places, alike = np.unique(docs, return_inverse=True)
    ids = ranking.doc_ids[places]
    unknown = [doc for doc in ids if doc not in counted and doc in data.document_places]
    texts = data.document_text(np.array([data.document_places[doc] for doc in unknown], np.intp))
    counted.update(zip(unknown, default_tokens(list(texts)), strict=True))
    # A ranking may contain documents and queries that are not in the data set.
    documents = np.array([counted.get(doc, 0.0) for doc in ids])[alike]
    query_texts = data.query_text().reindex(ranking.query_ids[order], fill_value="")
    queries = np.array(default_tokens(list(query_texts)))
    if not documents.any() or not queries.any():
        return None
    return Searches(_filled(queries), _filled(documents), sizes[order])


def _filled(tokens: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(tokens > 0, tokens, tokens[tokens > 0].mean())


# Resuming a stopped run: the valid results of earlier attempts, and a file of results for a
# command.

_MARK = "rankdash results "
_NO_RESULTS = "This is not a resume file, or it was modified."
_REMEDY = "Use a new file, or the file of the previous --resume."
_COMPUTED = ("runtime", "device")
_ARRAYS = {"scores": np.float64, "read": np.int32, "full": np.int32, "repeated_ms": np.float64}


def still_good(results: Iterable[QueryResult], planned: Plan) -> dict[str, QueryResult]:
    """Return query → result for the results that a resumed run can reuse: done, with the requested
    number of documents."""
    return {
        result.query_id: result
        for result in results
        if result.state == "done"
        and len(result.scores) == len(planned.documents.get(result.query_id, ()))
    }


def computed_by(details: Mapping[str, object]) -> dict[str, str]:
    """Return the runtime and the device from the details of a reranker; for a cascade, of each
    stage."""
    return {
        name: str(value) for name, value in details.items() if name.rpartition("_")[2] in _COMPUTED
    }


def with_runtime(
    settings: Mapping[str, SettingValue], details: Mapping[str, object]
) -> dict[str, SettingValue]:
    """Return the settings with the runtime and device from a reranker's details."""
    resolved = {
        name: str(details[name]) if name in _COMPUTED and name in details else value
        for name, value in settings.items()
    }
    for stage in STAGES:
        name = f"{stage}_settings"
        chosen = {
            each: details[f"{stage}_{each}"] for each in _COMPUTED if f"{stage}_{each}" in details
        }
        if name in resolved and chosen:
            resolved[name] = json.dumps({**nested_settings(str(resolved[name]), name), **chosen})
    return resolved


class ResultsFile:
    """Resume file with one result per line. After a crash, its complete lines are still valid.

    wish: all inputs that affect the results, as JSON values. results: results of earlier attempts.
        computed: runtime and device, as in the details of a reranker; empty if unknown.

    Raises DataError if the file is not a resume file, or of another run, and the errors of
    `files.append`; so do its methods.
    """

    def __init__(self, path: Path, wish: Mapping[str, object]) -> None:
        self._path = path
        self.results: list[QueryResult] = []
        self.computed: Mapping[str, object] = {}
        head = f"{_MARK}{json.dumps(wish)}\n".encode()
        content = path.read_bytes() if path.exists() else b""
        if content and not content.startswith(_MARK.encode()):
            raise _no_results(path)
        if content and not content.startswith(head):
            raise DataError(
                "These results belong to another run ({what} differ).",
                remedy="Use the same data and options, or a new file.",
                file=str(path),
                what=_difference(content, wish),
            )
        whole = content[: content.rfind(b"\n") + 1]
        if whole:
            self.computed, self.results = _parsed(whole[len(head) :].splitlines(), str(path))
        files.append(path, [] if whole else [head])

    def begin(self, details: Mapping[str, object]) -> None:
        """Store the runtime and device of the first attempt, which later attempts use too."""
        computed = computed_by(details)
        if computed and not self.computed:
            self.computed = computed
            files.append(self._path, [json.dumps({"computed": computed}).encode() + b"\n"])

    def add(self, results: Iterable[QueryResult]) -> None:
        """Append the results that are done; failed queries are retried on resume."""
        rows = (
            {
                name: value.tolist() if isinstance(value, np.ndarray) else value
                for name, value in to_row(result).items()
            }
            for result in results
            if result.state == "done"
        )
        files.append(self._path, [json.dumps(row).encode() + b"\n" for row in rows])

    def remove(self) -> None:
        """Delete the file after a complete run."""
        self._path.unlink()


def _no_results(path: Path) -> DataError:
    return DataError(_NO_RESULTS, remedy=_REMEDY, file=str(path))


def _parsed(lines: Iterable[bytes], file: str) -> tuple[Mapping[str, object], list[QueryResult]]:
    """Parse the lines below the first one."""
    computed: Mapping[str, object] = {}
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 2):
        with files.guarded(file, _NO_RESULTS, _REMEDY, line=number):
            row = json.loads(line)
            if not rows and "computed" in row:
                computed = dict(row["computed"])
                continue
            row |= {name: np.array(row[name], dtype=kind) for name, kind in _ARRAYS.items()}
            rows.append(row)
    with files.guarded(file, _NO_RESULTS, _REMEDY):
        return computed, results_from(pd.DataFrame(rows)) if rows else []


def _difference(content: bytes, wish: Mapping[str, object]) -> str:
    """Return the names of the inputs that differ from those in the file."""
    try:
        stored = json.loads(content.splitlines()[0][len(_MARK) :])
        return ", ".join(name for name in wish if stored.get(name) != wish[name]) or "settings"
    except (ValueError, AttributeError):
        return ", ".join(wish)
