"""Fetching rankings from a search engine: test calls, journals, runs, and churn."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pandas as pd

from rankdash.core.base import files
from rankdash.core.base.errors import DataError, RankdashError, UnavailableError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import RETRIEVAL, Ranking, Run, digest
from rankdash.core.rerankers.base import Call, call_table
from rankdash.core.rerankers.remote.connection import Clock, Place, Policy
from rankdash.core.rerankers.retrieval import embedded
from rankdash.core.search.endpoint import SHORTEST_KEY, Endpoint, Hit, UnreadableError, key_of

if TYPE_CHECKING:
    from rankdash.core.rerankers.remote.client import Reply

HOW = "search"
"""The value of the setting `how` of fetched runs."""

_SHOWN = 4_000
# Requests that the engine may refuse before its first answer.
_MOST_REFUSED = 5
# Queries that are requested again after a time-out, or a tenth of all queries.
_FEW_LATE = 5
# The engine refuses all requests with these statuses, except after an answer.
_REFUSE_ALL = (401, 403, 404)


@dataclass(frozen=True)
class Answer:
    """The engine's answer to a query.

    state: "done" or "failed"; a done query may have no hits. reason: why it failed, else "".
    hits: best first. latency_ms: without waits before retries and without opening connections; NaN
        if it failed.
    call: the request; None if there was none. repeats: hits with the document of an earlier one,
        which are not used.
    """

    query_id: str
    state: Literal["done", "failed"]
    reason: str = ""
    hits: tuple[Hit, ...] = ()
    latency_ms: float = math.nan
    call: Call | None = None
    repeats: int = 0


@dataclass(frozen=True)
class Trial:
    """A test call.

    request: as sent, without keys. status: HTTP status; 0 without an answer. answer: the start of
    the response. hits: the hits in it. reason: why it failed, else "". error: the error of which
    `reason` is the text, for a host or key that is refused or a service that is not reachable.
    """

    request: str
    status: int = 0
    answer: str = ""
    hits: tuple[Hit, ...] = ()
    repeats: int = 0
    reason: str = ""
    latency_ms: float = math.nan
    error: RankdashError | None = None


class _Engine(Protocol):
    """A connection to a search engine. Thread-safe."""

    def ask(self, query: str, depth: int, vector: list[float] | None) -> Reply:
        """Return the answer, in which `Endpoint.read` finds the hits. Raises GoneError."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...

    def redact(self, text: str) -> str:
        """Return a text without complete keys, except keys that may be words."""
        ...

    def shown(self, body: bytes, limit: int) -> str:
        """Return the start of a response without keys."""
        ...


class _Http:
    """A search engine with an HTTP API."""

    def __init__(self, endpoint: Endpoint, policy: Policy, clock: Clock) -> None:
        """Open the client. Raises the errors of `Client`."""
        # Its HTTP library is loaded when it is needed.
        from rankdash.core.rerankers.remote.client import Client

        origin = endpoint.origin
        keys = {
            name: (secret.prefix, key_of(secret, origin))
            for name, secret in endpoint.secrets.items()
        }
        plain = {name: value for name, value in endpoint.headers.items() if isinstance(value, str)}
        self._endpoint = endpoint
        self._client = Client(Place("", origin), policy, clock, {**plain, **keys})

    def ask(self, query: str, depth: int, vector: list[float] | None) -> Reply:
        client, request = self._client, self._endpoint.request(query, depth, vector)
        return client.send(*request, client.budget(), self._endpoint.incomplete)

    def close(self) -> None:
        self._client.close()

    def redact(self, text: str) -> str:
        return self._client.redact_whole(text, SHORTEST_KEY)

    def shown(self, body: bytes, limit: int) -> str:
        return self._client.shown(body, limit)


@contextmanager
def _engine(endpoint: Endpoint, policy: Policy, clock: Clock | None) -> Iterator[_Engine]:
    kind: Callable[[Endpoint, Policy, Clock], _Engine] = _Http
    if endpoint.kind == "postgres":
        from rankdash.core.search.postgres import Postgres

        kind = Postgres
    engine = kind(endpoint, policy, clock or Clock())
    try:
        yield engine
    finally:
        engine.close()


def trial(
    endpoint: Endpoint, text: str, depth: int, policy: Policy, clock: Clock | None = None
) -> Trial:
    """Send one request for a query, without retries; store nothing."""
    shown = shown_request(endpoint, text, depth)
    try:
        with _engine(endpoint, replace(policy, retries=0), clock) as engine:
            reply = engine.ask(text, depth, _vectors(endpoint, [text])[0])
            answer = _read(endpoint, engine, "", depth, reply)
            start = engine.shown(reply.body, _SHOWN)
    except RankdashError as error:
        if "resume" in error.remedy:
            # A test has nothing to resume.
            error = UnavailableError(
                error.template,
                remedy="Check the URL, and that the search engine is running.",
                **error.params,
            )
        return Trial(shown, reason=str(error), error=error)
    return Trial(
        shown,
        reply.call.status,
        start,
        answer.hits,
        answer.repeats,
        answer.reason,
        answer.latency_ms,
    )


def shown_request(endpoint: Endpoint, text: str, depth: int) -> str:
    """Return the request for a query as text, with the names of variables instead of keys, and the
    vector abbreviated."""
    vector = [0.0] if endpoint.vector else None
    keys = [f"{name}: {each.prefix}${each.variable}" for name, each in endpoint.secrets.items()]
    if endpoint.kind == "postgres":
        values = json.dumps({"query": text, "k": depth}, ensure_ascii=False)
        return "\n".join([endpoint.url, *keys, "", endpoint.sql, "", values])
    method, target, body = endpoint.request(text, depth, vector)
    plain = [f"{name}: {each}" for name, each in endpoint.headers.items() if isinstance(each, str)]
    sent = [] if body is None else ["", json.dumps(body, ensure_ascii=False, indent=2)]
    return "\n".join([f"{method} {endpoint.origin}{target}", *plain, *keys, *sent])


def fetch(
    endpoint: Endpoint,
    queries: Mapping[str, str],
    depth: int,
    policy: Policy,
    *,
    journal: Path | None = None,
    on_answers: Callable[[Sequence[Answer]], object] = lambda answers: None,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Clock | None = None,
) -> tuple[Answer, ...]:
    """Send a request for each query; return the answers in the order of the queries.

    queries: id → text. journal: a file that gets each answer at once; queries that are done in it
        are not requested again. on_answers: called by this thread, first with the answers in the
        journal, then with new ones. cancelled: after it returns True, no more requests are sent;
        queries without an answer are absent.

    A query that timed out is requested once more after all others, if few timed out.

    Raises SettingError for a host or key that is not allowed, DataError for a journal of another
    fetch, and UnavailableError if no further query can succeed. All answers before the error are in
    the journal.
    """
    done = {} if journal is None else journalled(journal, endpoint, depth, queries)
    pending = {query: text for query, text in queries.items() if query not in done}
    answers = dict(done)
    if done:
        on_answers(list(done.values()))
    with_text = {query: text for query, text in pending.items() if text.strip()}
    lock = threading.Lock()

    def record(query: str, answer: Answer) -> Answer:
        if journal is not None:
            line = _line(endpoint, depth, queries[query], answer)
            with lock:
                files.append(journal, [line])
        return answer

    textless = [query for query in pending if query not in with_text]
    without = [
        record(query, Answer(query, "failed", "the query has no text")) for query in textless
    ]
    if without:
        on_answers(without)
    answers.update((each.query_id, each) for each in without)
    if not with_text or cancelled():
        return tuple(answers[query] for query in queries if query in answers)
    refused = _Refused(endpoint)
    with _engine(endpoint, policy, clock) as engine:
        vectors = dict(zip(with_text, _vectors(endpoint, [*with_text.values()]), strict=True))

        late: dict[str, Answer] = {}

        def ask(query: str) -> Answer:
            reply = engine.ask(queries[query], depth, vectors[query])
            answer = _read(endpoint, engine, query, depth, reply)
            if query in late:
                answer = _with_attempts_of(answer, late[query])
            elif _timed_out(answer):
                return answer
            record(query, answer)
            refused.count(reply)
            return answer

        def add(finished: Sequence[Answer]) -> None:
            if finished:
                on_answers(finished)
                answers.update((each.query_id, each) for each in finished)

        for finished in _concurrently(ask, [*with_text], policy.concurrency, cancelled):
            late.update((each.query_id, each) for each in finished if _timed_out(each))
            add([each for each in finished if each.query_id not in late])
        if len(late) <= max(_FEW_LATE, len(with_text) // 10):
            for finished in _concurrently(ask, [*late], policy.concurrency, cancelled):
                add(finished)
        if not cancelled():
            add([record(query, each) for query, each in late.items() if query not in answers])
    return tuple(answers[query] for query in queries if query in answers)


def _timed_out(answer: Answer) -> bool:
    return answer.reason.startswith("time-out")


def _with_attempts_of(answer: Answer, first: Answer) -> Answer:
    """Return the answer to a second request, with the attempts of both."""
    if answer.call is None or first.call is None:
        return answer
    attempts = answer.call.attempts + first.call.attempts
    return replace(answer, call=replace(answer.call, attempts=attempts))


def _concurrently(
    ask: Callable[[str], Answer],
    queries: Sequence[str],
    concurrency: int,
    cancelled: Callable[[], bool],
) -> Iterator[list[Answer]]:
    """Yield new answers. After an error, yield the answers of the requests in progress, and raise
    the error."""
    todo = iter(queries)
    waiting: set[Future[Answer]] = set()
    error: BaseException | None = None
    with ThreadPoolExecutor(concurrency, thread_name_prefix="fetch") as pool:
        while True:
            while error is None and len(waiting) < concurrency and not cancelled():
                query = next(todo, None)
                if query is None:
                    break
                waiting.add(pool.submit(ask, query))
            if not waiting:
                break
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            error = next(filter(None, (each.exception() for each in finished)), error)
            good = [each.result() for each in finished if each.exception() is None]
            if good:
                yield good
    if error is not None:
        raise error


class _Refused:
    """Count of the requests that the engine refused before its first answer."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._host, self._answered, self._refused = endpoint.host, False, 0

    def count(self, reply: Reply) -> None:
        """Raise UnavailableError if the engine seems to refuse every request."""
        status = reply.call.status
        self._answered |= reply.answer is not None
        self._refused += reply.refused
        if self._answered or not reply.refused:
            return
        if self._refused >= _MOST_REFUSED or status in _REFUSE_ALL or 300 <= status < 400:
            raise UnavailableError(
                "The search engine at {host} refuses the requests: {reason}.",
                remedy="Check the URL, the headers and the key of the endpoint. Answers received "
                "before are stored; resume continues from there.",
                host=self._host,
                reason=reply.error.rstrip("."),
            )


def _read(endpoint: Endpoint, engine: _Engine, query: str, depth: int, reply: Reply) -> Answer:
    call = reply.call
    if reply.error:
        return Answer(query, "failed", reply.error, call=call)
    try:
        hits, repeats = endpoint.read(reply.answer, depth)
    except UnreadableError as problem:
        return Answer(query, "failed", engine.redact(str(problem)), call=call)
    # A service that echoes the headers of the request must not get the key into a file.
    safe = tuple(
        Hit(
            engine.redact(hit.doc_id),
            engine.redact(hit.title),
            None if hit.text is None else engine.redact(hit.text),
            hit.score,
        )
        for hit in hits
    )
    latency = (call.end - call.start - call.retry_wait_s - call.connect_s) * 1e3
    return Answer(query, "done", "", safe, latency, call, repeats)


def _vectors(endpoint: Endpoint, texts: Sequence[str]) -> list[list[float] | None]:
    """Return the embedding of each query, by the model of the endpoint; None without a model."""
    if not endpoint.vector:
        return [None] * len(texts)
    return [[float(value) for value in row] for row in embedded(texts, endpoint.vector)]


# The journal: one JSON line for each answer.


def _line(endpoint: Endpoint, depth: int, text: str, answer: Answer) -> bytes:
    call = answer.call and asdict(answer.call)
    row = {"request": endpoint.request_hash, "depth": depth, "query": text}
    row |= {**vars(answer), "call": call}
    return json.dumps(_without_nan(row), ensure_ascii=True).encode() + b"\n"


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nan(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_OTHER_DEPTH = "The journal contains answers to another request: depth {before}, now {now}."
_OTHER_REQUEST = (
    "The journal contains answers to another request: the endpoint has changed. The hash of its "
    "fields except the name was {before} and is now {now}."
)
_OTHER_TEXT = (
    "The journal contains answers to another request: the text of query {query} was {before!r} "
    "and is now {now!r}."
)


def requests_in(journal: Path) -> int:
    """Return the number of requests of all answers in a journal, with failed ones and retries."""
    lines = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
    calls = [json.loads(line)["call"] for line in lines]
    return sum(call["attempts"] for call in calls if call is not None)


def journalled(
    journal: Path, endpoint: Endpoint, depth: int, queries: Mapping[str, str]
) -> dict[str, Answer]:
    """Return the done queries in a journal. An incomplete last line is ignored.

    Raises DataError if a done query is of another request or depth, or has another text.
    """
    if not journal.exists():
        return {}
    done: dict[str, Answer] = {}
    lines = journal.read_bytes().split(b"\n")[:-1]
    for number, line in enumerate(lines, 1):
        with files.guarded(
            journal.name,
            "The journal of a fetch is not readable: {reason}.",
            "Delete the file, or use another folder.",
            line=number,
        ):
            row = json.loads(line)
            query, text = row["query_id"], row["query"]
            if row["state"] != "done":
                continue
            for template, before, now in (
                (_OTHER_DEPTH, row["depth"], depth),
                (_OTHER_REQUEST, row["request"], endpoint.request_hash),
                (_OTHER_TEXT, text, queries.get(query, text)),
            ):
                if before != now:
                    raise DataError(
                        template,
                        remedy="Restore the endpoint, the depth and the queries, or use another "
                        "folder.",
                        file=journal.name,
                        line=number,
                        before=before,
                        now=now,
                        query=query,
                    )
            if query in queries:
                done[query] = _answer(row)
    return done


def _answer(row: Mapping[str, Any]) -> Answer:
    hits = tuple(Hit(doc, title, text, _nan(score)) for doc, title, text, score in row["hits"])
    times = ("server_ms", "queue_ms")
    call = None
    if row["call"] is not None:
        call = Call(**{**row["call"], **{name: _nan(row["call"][name]) for name in times}})
    return Answer(
        row["query_id"], "done", "", hits, _nan(row["latency_ms"]), call, int(row["repeats"])
    )


def _nan(value: float | None) -> float:
    return math.nan if value is None else float(value)


# Fetched answers as a run.


def fetched(
    dataset: Dataset, endpoint: Endpoint, answers: Sequence[Answer], depth: int, name: str
) -> Run:
    """Return the run of the answers, with the documents that the data set lacks or has without a
    text.

    The order is the engine's; its scores are used for a query unless one is missing or rises.
    Queries of the data set without an answer are skipped. A query that is done may have no rows in
    the ranking.
    """
    by_query = {each.query_id: each for each in answers}
    ids = list(dataset.queries["query_id"])
    lists = [
        (query, [hit.doc_id for hit in hits], _scores(hits))
        for query in ids
        if query in by_query and (hits := by_query[query].hits)
    ]
    created = datetime.now(UTC).isoformat(timespec="milliseconds")
    wish = (dataset.id, RETRIEVAL, HOW, name, endpoint.request_hash, str(depth), created)
    documents = _new_documents(set(dataset.documents.dropna(subset="text")["doc_id"]), answers)
    return Run(
        id=digest(text.encode("utf-8", "surrogatepass") for text in wish),
        name=name,
        dataset_id=dataset.id,
        ranking=Ranking.from_lists(lists),
        reranker=RETRIEVAL,
        queries=_table([by_query.get(query, query) for query in ids]),
        settings={
            "how": HOW,
            "endpoint": json.dumps(endpoint.as_dict(), ensure_ascii=False),
            "request": endpoint.request_hash,
            "depth": depth,
        },
        created=created,
        calls=call_table((each.query_id, each.call) for each in answers if each.call is not None),
        documents=documents if len(documents) else None,
    )


def _scores(hits: Sequence[Hit]) -> list[float]:
    scores = [hit.score for hit in hits]
    falling = all(first >= second for first, second in pairwise(scores))
    # A comparison with NaN is False, but one hit has no comparison.
    if falling and not math.isnan(scores[0]):
        return scores
    return [-float(rank) for rank in range(1, len(hits) + 1)]


def _table(answers: Sequence[Answer | str]) -> pd.DataFrame:
    """Return `Run.queries`. answers: the id of a query without an answer."""
    rows = [
        (each, "skipped", "", math.nan, math.nan)
        if isinstance(each, str)
        else (
            each.query_id,
            each.state,
            each.reason,
            each.latency_ms,
            0.0 if each.state == "done" else math.nan,
        )
        for each in answers
    ]
    table = pd.DataFrame(rows, columns=["query_id", "state", "reason", "latency_ms", "pairs"])
    unknown = np.full(len(table), math.nan)
    table = table.astype({"query_id": "str", "state": "str", "reason": "str"})
    table = table.assign(index_ms=unknown, tokens=unknown, truncated=unknown)
    order = ["query_id", "state", "reason", "latency_ms", "index_ms", "pairs", "tokens"]
    return table[[*order, "truncated"]]


def _new_documents(known: Collection[str], answers: Sequence[Answer]) -> pd.DataFrame:
    new: dict[str, Hit] = {}
    for hit in (hit for answer in answers for hit in answer.hits if hit.doc_id not in known):
        # The first hit with a text, because an engine may return excerpts or no text.
        if hit.doc_id not in new or (new[hit.doc_id].text is None and hit.text is not None):
            new[hit.doc_id] = hit
    rows = [(hit.doc_id, hit.title, hit.text) for hit in new.values()]
    return pd.DataFrame(rows, columns=["doc_id", "title", "text"]).astype("str")


# Stability.


@dataclass(frozen=True)
class Churn:
    """Difference between two rankings of the same engine.

    per_query: query id → share of the top k that left, in [0, 1]. mean: its mean; NaN without
    queries. changed: share of the queries with another top k, or another order in it.
    """

    per_query: Mapping[str, float]
    mean: float
    changed: float


def churn(
    first: Ranking, second: Ranking, k: int = 10, queries: Collection[str] | None = None
) -> Churn:
    """Return how much the top k changes between two rankings.

    queries: the queries done in both; by default the queries that both contain. The share of a
        query is 1 - |common documents| / max(|first|, |second|), and 0 if both lists are empty.
    """
    if queries is None:
        queries = [query for query in first.query_ids if query in second.positions]
    shares: dict[str, float] = {}
    changed = 0
    for query in queries:
        one, other = (each.documents_of(query)[0][:k] for each in (first, second))
        longest = max(len(one), len(other))
        shares[query] = 1 - len(set(one) & set(other)) / longest if longest else 0.0
        changed += one != other
    count = len(shares)
    if not count:
        return Churn(shares, math.nan, math.nan)
    return Churn(shares, sum(shares.values()) / count, changed / count)


def churns(fetches: Sequence[Sequence[Answer]], k: int = 10) -> list[Churn]:
    """Return the churn from each fetch to the next, over the queries that both answered."""
    found = []
    for pair in pairwise(fetches):
        first, second = ({each.query_id for each in one if each.state == "done"} for one in pair)
        one, other = (Ranking.from_lists(_lists(answers)) for answers in pair)
        found.append(churn(one, other, k, sorted(first & second)))
    return found


def _lists(answers: Sequence[Answer]) -> Iterator[tuple[str, list[str], list[float]]]:
    for each in answers:
        if each.hits:
            docs = [hit.doc_id for hit in each.hits]
            yield each.query_id, docs, [-float(place) for place in range(len(docs))]
