"""A new data set from queries and a search engine: the fetch of its first stage in a thread of the
server.

The answers are in a journal in the workspace, so that a fetch of the same queries with the same
request continues from an earlier one, even after the server was restarted.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base import files
from rankdash.core.base.errors import (
    DataError,
    Finding,
    FormatError,
    RankdashError,
    StoreError,
)
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, Run, digest
from rankdash.core.intake.reading import StoreOutcome, store_loaded, tried
from rankdash.core.readers.checks.check import check
from rankdash.core.readers.loading import Loaded
from rankdash.core.readers.parse.source import Source
from rankdash.core.readers.queries import queries_in
from rankdash.core.rerankers.remote.connection import Policy, given_keys
from rankdash.core.search.endpoint import Endpoint
from rankdash.core.search.fetching import Answer, fetch, fetched, journalled
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.failures import in_words
from rankdash.core.workspace.folders import FETCHES, fetch_journal

MOST_QUERIES = 50_000
# Request → its fetch in this process.
IN_THIS_PROCESS: dict[Path, Fetching] = {}


def queries_of_file(source: Source) -> pd.DataFrame:
    """Return the queries in an uploaded file, as `queries_in` does, after a harmful file was
    refused in another process. Raises the errors of `queries_in`."""
    # A list of queries is not a data set.
    with suppress(FormatError):
        tried([source])
    return queries_in(source)


class Fetching:
    """The fetch of the first stage of a new data set.

    If all queries are answered, the data set is stored, even if no browser is open.

    done, failed, total: numbers of queries. error: why it stopped; None without an error.
    outcome: the stored data set; None without one. cancelled: whether it was cancelled.
    """

    def __init__(
        self,
        workspace: Workspace,
        endpoint: Endpoint,
        queries: pd.DataFrame,
        depth: int,
        policy: Policy,
        name: str,
        keys: Mapping[str, str],
        *,
        start: bool = True,
    ) -> None:
        """Start the fetch. queries: as in `Dataset`. name: of the data set. keys: variable → key.
        start: False for a fetch of an earlier server, which `again` continues.

        Raises DataError without queries, or with more than `MOST_QUERIES`, and StoreError if the
        workspace cannot be written.
        """
        if not 0 < len(queries) <= MOST_QUERIES:
            raise DataError(
                "A data set from a search engine needs 1 to {most:,} queries, not {n:,}.",
                remedy="Provide another list of queries.",
                most=MOST_QUERIES,
                n=len(queries),
            )
        workspace.database.refuse_read_only()
        self.endpoint, self.depth, self.name, self.queries = endpoint, depth, name, queries
        self._workspace, self._policy, self._keys = workspace, policy, dict(keys)
        self._journal = _journal(workspace.root, endpoint, depth, queries)
        self._cancel = threading.Event()
        self._started = time.monotonic()
        self._answers: tuple[Answer, ...] = ()
        self.total, self.done, self.failed = len(queries), 0, 0
        self.error: RankdashError | None = None
        self.outcome: StoreOutcome | None = None
        self._thread = threading.Thread(target=self._fetch, name="first-stage", daemon=True)
        if start:
            self._store_request()
            self._thread.start()
        else:
            texts = self._texts()
            self.done = len(journalled(self._journal, endpoint, depth, texts))

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    @property
    def started(self) -> bool:
        """True if this server started it."""
        return self._thread.ident is not None

    @property
    def cancelled(self) -> bool:
        return self._cancel.is_set()

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self._started

    @property
    def failures(self) -> list[Answer]:
        """The failed queries, after the end."""
        return [each for each in self._answers if each.state == "failed"]

    def again(self, keys: Mapping[str, str]) -> Fetching:
        """Return a new fetch that continues this one: answered queries are not sent again."""
        return Fetching(
            self._workspace,
            self.endpoint,
            self.queries,
            self.depth,
            self._policy,
            self.name,
            keys,
        )

    def cancel(self) -> None:
        """Stop after the current requests. The answers stay in the journal."""
        self._cancel.set()

    def discard(self) -> None:
        """Delete the answers. Raises StoreError."""
        IN_THIS_PROCESS.pop(self._request, None)
        with in_words(self._journal):
            self._request.unlink(missing_ok=True)
            self._journal.unlink(missing_ok=True)
            _lock_of(self._request).unlink(missing_ok=True)

    @property
    def _request(self) -> Path:
        """The file from which `unfinished` reads the fetch; it contains no key."""
        return self._journal.with_suffix(".json")

    def _store_request(self) -> None:
        cells = self.queries.astype(object).where(self.queries.notna(), None)
        request = {
            "endpoint": self.endpoint.as_dict(),
            "queries": cells.to_dict("list"),
            "depth": self.depth,
            "policy": vars(self._policy),
            "name": self.name,
        }
        with in_words(self._request):
            files.write(self._request, json.dumps(request).encode())

    def _texts(self) -> dict[str, str]:
        texts = self.queries["text"].fillna("")
        return dict(zip(self.queries["query_id"], texts, strict=True))

    def store(self) -> StoreOutcome:
        """Store the data set without the failed queries, and delete the journal.

        Raises DataError if no document was fetched, and StoreError.
        """
        done = {each.query_id for each in self._answers if each.state == "done"}
        answered = self.queries[self.queries["query_id"].isin(done)]
        run = fetched(_without_documents(self.name, answered), self.endpoint, self._answers,
                      self.depth, self.name)  # fmt: skip
        if not len(run.ranking) or run.documents is None:
            raise DataError(
                "The search engine returned no documents for these queries.",
                remedy="Test the request, and check the path to the hits.",
            )
        dataset = Dataset(
            self.name,
            answered,
            run.documents,
            pd.DataFrame(columns=["query_id", "doc_id", "label"]),
            run.ranking,
            candidates_name=(self.endpoint.name.strip() or self.endpoint.host)[:60],
        )
        dataset.timings = run.queries
        report = check(dataset, self._findings(run), {})
        outcome = store_loaded(self._workspace, Loaded(dataset, {}, report))
        self.discard()
        return outcome

    def _findings(self, run: Run) -> list[Finding]:
        times = run.queries["latency_ms"].dropna().to_numpy(dtype=np.float64)
        p50, p95 = np.quantile(times, [0.5, 0.95]).round().astype(int).tolist()
        findings = [
            Finding(
                "note",
                "fetched",
                "The first stage was fetched from {host} (date: {date}, request: {request}, depth: "
                "{depth}). Latency: {p50:,} ms (p50), {p95:,} ms (p95).",
                {
                    "host": self.endpoint.host,
                    "date": run.created[:10],
                    "request": self.endpoint.request_hash,
                    "depth": self.depth,
                    "p50": p50,
                    "p95": p95,
                },
            )
        ]
        if failures := self.failures:
            findings.append(
                Finding(
                    "warning",
                    "fetch_failed",
                    "Queries that failed at the search engine and are not in the data set: "
                    "{failed}.",
                    {"failed": len(failures)},
                    "To include them, fetch the data set again.",
                    count=len(failures),
                    examples=tuple(f"{each.query_id}: {each.reason}" for each in failures[:5]),
                )
            )
        return findings

    def _fetch(self) -> None:
        try:
            with files.locked(_lock_of(self._request)) as free:
                if free:
                    IN_THIS_PROCESS[self._request] = self
                    self._fetch_and_store()
                else:
                    self.error = DataError(
                        "The same request is being fetched at this moment.",
                        remedy="Wait until that fetch ends.",
                    )
        except RankdashError as error:
            self.error = error
        except OSError as error:
            self.error = StoreError(
                "The answers cannot be written: {reason}.",
                remedy="Free disk space and fetch again.",
                reason=error.strerror or type(error).__name__,
            )
        finally:
            self._keys = {}

    def _fetch_and_store(self) -> None:
        with given_keys(self._keys):
            self._answers = fetch(
                self.endpoint,
                self._texts(),
                self.depth,
                self._policy,
                journal=self._journal,
                on_answers=self._count,
                cancelled=self._cancel.is_set,
            )
        if not self.cancelled and not self.failures:
            self.outcome = self.store()

    def _count(self, answers: Sequence[Answer]) -> None:
        self.done += sum(each.state == "done" for each in answers)
        self.failed += sum(each.state == "failed" for each in answers)


def unfinished(workspace: Workspace) -> list[Fetching]:
    """Return the fetches that made no data set yet, the latest first, including running ones. Files
    that are not readable are omitted."""
    if workspace.read_only:
        return []
    found = []
    with suppress(OSError):
        requests = (workspace.root / FETCHES).glob("*.json")
        for file in sorted(requests, key=lambda each: each.stat().st_mtime, reverse=True):
            with suppress(RankdashError, LookupError, TypeError, ValueError):
                if file not in IN_THIS_PROCESS:
                    with files.locked(_lock_of(file)) as free:
                        # Another process fetches it.
                        if not free:
                            continue
                    IN_THIS_PROCESS[file] = _earlier(workspace, json.loads(file.read_bytes()))
                found.append(IN_THIS_PROCESS[file])
    return found


def _lock_of(request: Path) -> Path:
    """Return the file that a process locks while it fetches."""
    return request.with_suffix(".lock")


def _earlier(workspace: Workspace, request: Mapping[str, Any]) -> Fetching:
    endpoint, queries = Endpoint.of(request["endpoint"]), pd.DataFrame(request["queries"])
    policy, depth = Policy.of(request["policy"]), int(request["depth"])
    name = str(request["name"])
    return Fetching(
        workspace, endpoint, queries.astype("str"), depth, policy, name, {}, start=False
    )


def _without_documents(name: str, queries: pd.DataFrame) -> Dataset:
    documents = pd.DataFrame(columns=["doc_id", "title", "text"])
    labels = pd.DataFrame(columns=["query_id", "doc_id", "label"])
    return Dataset(name, queries, documents, labels, Ranking.from_lists([]))


def _journal(root: Path, endpoint: Endpoint, depth: int, queries: pd.DataFrame) -> Path:
    """Return the file of the answers to this request."""
    rows = queries[["query_id", "text"]].fillna("").itertuples(index=False)
    parts = [endpoint.request_hash, str(depth), *(cell for row in rows for cell in row)]
    name = digest(str(each).encode("utf-8", "surrogatepass") for each in parts)
    return fetch_journal(root, name)
