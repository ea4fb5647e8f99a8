"""Worker process: runs jobs one after the other, and other work that features add.

`python -m rankdash.app.worker --workspace FOLDER` works until SIGTERM; a worker of a server also
ends with the server (`--end-with-stdin`).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rankdash.core.base.errors import RankdashError, RerankerError, StoreError
from rankdash.core.base.text import redact
from rankdash.core.data.ranking import RETRIEVAL, Run, source_id, unique_documents
from rankdash.core.rerankers import Reranker, create, get
from rankdash.core.rerankers.base import Detailed
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.rerankers.remote import connection
from rankdash.core.runs import retrieving
from rankdash.core.runs.combining import FIRST_STAGE, CombinedRun, fuse
from rankdash.core.runs.fetch_job import Fetch, fetched_run
from rankdash.core.runs.jobs import KEY_SECONDS, NICENESS, Handover
from rankdash.core.runs.on_ray.cluster import Actors, allowed_address
from rankdash.core.runs.on_ray.reranker import on_ray
from rankdash.core.runs.plan import Timing, plan, sample_queries
from rankdash.core.runs.results import (
    QueryResult,
    computed_by,
    results_from,
    still_good,
    to_row,
    with_runtime,
)
from rankdash.core.runs.runner import Cancelled, rerank
from rankdash.core.runs.scoring import OptionalCache
from rankdash.core.runs.stopping import StopRule, Watch
from rankdash.core.search.fetching import Answer
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.failures import in_words
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.jobs.leases import Ending, Explanations
from rankdash.core.workspace.jobs.queue import (
    JobRow,
    Owner,
    Progress,
    Queue,
    read_parts,
    write_part,
)

IDLE_SECONDS = 0.5

# A worker that must stop ends after this time even if a query is not finished.
GRACE_SECONDS = 2.0

_log = logging.getLogger(__name__)


class Attempt:
    """One worker's attempt at one job. `stopping` is set when the worker must end; `between` is
    called between two batches and is not part of any measured time."""

    def __init__(
        self,
        workspace: Workspace,
        owner: Owner,
        job: JobRow,
        stopping: threading.Event,
        handover: Handover | None = None,
        between: Callable[[], object] = lambda: None,
    ) -> None:
        self._workspace = workspace
        self._between = between
        self._handover = handover or Handover()
        self._queue = Queue(workspace)
        self._owner = owner
        self._job = job
        self._settings = retrieving.without_source(job.settings)
        self._claimed = Claimed(self._queue, job.id, owner, stopping)
        self._pace = Pace()
        self._pairs: dict[str, int] = {}
        self._computed = "{}"
        self._watch: Watch | None = None
        self._progress = Progress(stage="loading", load_ms=job.load_ms)

    def run(self) -> None:
        """Run the job and record its final state."""
        self._claimed.carry_out(self._work)

    def _work(self) -> dict[str, str]:
        if self._job.reranker == RETRIEVAL:
            request = Fetch.of(self._settings)
            run = self._retrieve() if request is None else self._fetch(request)
        else:
            place = get(self._job.reranker).key
            with connection.given_keys(
                self._handover.take_for(self._job.id, place and place(self._settings))
            ):
                run = self._score()
        if self._claimed.lost:
            raise Cancelled
        self._workspace.save_run(run)
        for run_id, name in self._job.runs.items():
            if run_id != run.id:
                self._workspace.save_run(self._fused(run, run_id, name))
        return {}

    def _fused(self, run: Run, run_id: str, name: str) -> Run:
        dataset = self._workspace.dataset(self._job.dataset_id)
        source = self._source()
        # Equal sums are in the order of the candidates.
        first = (
            CombinedRun(dataset.candidates_name or FIRST_STAGE, dataset.candidates)
            if source is None
            else CombinedRun(source.name, source.ranking, source)
        )
        parts = [first, CombinedRun(run.name, run.ranking, run)]
        return replace(fuse(dataset, parts, Fusion(), name), id=run_id)

    def _source(self) -> Run | None:
        """Return the run with the candidates; None for the first stage."""
        source = source_id(self._job.settings)
        return None if source is None else self._workspace.run(source)

    def _retrieve(self) -> Run:
        dataset = self._workspace.dataset(self._job.dataset_id)
        settings = self._job.settings
        how = retrieving.Retrieval(str(settings["how"]), int(settings["depth"]))
        run = retrieving.retrieved(dataset, how, self._job.name)
        counts = run.queries["state"].value_counts()
        done, failed = int(counts.get("done", 0)), int(counts.get("failed", 0))
        self._report(done=done, failed=failed, total=len(run.queries))
        workspace, dataset_id = self._workspace, self._job.dataset_id
        fetched = workspace.documents_of(workspace.runs_with_documents(dataset_id))
        if fetched is not None:
            # They are needed if the run that fetched them is deleted.
            ranked = unique_documents(fetched[fetched["doc_id"].isin(run.ranking.doc_ids)])
            run = replace(run, documents=ranked if len(ranked) else None)
        return replace(run, id=self._job.id)

    def _fetch(self, request: Fetch) -> Run:
        dataset, job_id = self._workspace.saved_dataset(self._job.dataset_id), self._job.id
        self._report(stage="scoring", total=len(dataset.queries))
        missing = any(not place.in_environment for place in request.endpoint.places)
        folder = self._workspace.root / "jobs" / job_id
        with in_words(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with connection.given_keys(self._handover.take(job_id, KEY_SECONDS * missing)):
            run = fetched_run(
                dataset,
                request,
                self._job.name,
                folder,
                self._answered,
                self._claimed.has_to_stop,
            )
        _refuse_all_failed(run)
        counts = run.queries["state"].value_counts()
        done, failed = int(counts.get("done", 0)), int(counts.get("failed", 0))
        self._report(done=done, failed=failed, total=len(run.queries))
        return replace(run, id=job_id)

    def _answered(self, number: int, answers: Sequence[Answer]) -> None:
        """Report answers to the requests of this number. Repeats only measure the churn: they
        complete no query, and their failures do not count, as in the run."""
        before = self._progress
        calls = [each.call for each in answers if each.call is not None]
        states = [each.state for each in answers] if number == 1 else []
        self._report(
            stage="scoring" if number == 1 else "timing",
            done=before.done + states.count("done"),
            failed=before.failed + states.count("failed"),
            requests=before.requests + sum(call.attempts for call in calls),
            refused=before.refused + sum(call.refused for call in calls),
        )
        self._between()

    def _score(self) -> Run:
        job, workspace = self._job, self._workspace
        dataset = workspace.dataset(job.dataset_id)
        # All runs of a sample have the same queries.
        sample = None if job.sample is None else sample_queries(dataset, job.sample, job.seed)
        source = self._source()
        if source is not None:
            dataset = dataset.with_candidates(source.ranking, source.name)
        capabilities = get(job.reranker).able(self._settings)
        planned = plan(
            dataset,
            job.depth,
            sample,
            needs_text=capabilities.needs_text,
            without_text=job.without_text,
        )
        timing = Timing.from_mapping(job.timing)
        if job.stop is not None:
            rule = StopRule.from_mapping(job.stop)
            self._watch = Watch(dataset, planned, rule, timing.seed)
        self._pairs = {query: len(docs) for query, docs in planned.documents.items()}
        self._progress = replace(
            self._progress, total=len(planned.documents), pairs_total=planned.pairs
        )
        parts = read_parts(workspace, job.id)
        completed = list(still_good(results_from(parts), planned).values())
        self._count(completed)
        self._computed = next(iter(parts["computed"].dropna()), "{}")
        configured = create(job.reranker, self._settings)
        settings = configured.settings
        if computed := json.loads(self._computed):
            configured = create(job.reranker, with_runtime(settings, computed))

        with self._ready(configured) as reranker:

            def prepared() -> None:
                if not computed and isinstance(reranker, Detailed):
                    self._computed = json.dumps(computed_by(reranker.details()))

            run = rerank(
                dataset,
                reranker,
                depth=job.depth,
                query_ids=sample,
                without_text=job.without_text,
                done=completed,
                capabilities=capabilities,
                timing=timing,
                cache=OptionalCache(workspace),
                watch=self._watch,
                on_step=lambda step: self._report(stage=step),
                on_prepared=prepared,
                on_loaded=self._loaded,
                on_batch=self._keep,
                on_timing=lambda: self._report(
                    stage="timing", rate_pairs_s=None, seconds_left=None
                ),
                cancelled=self._claimed.has_to_stop,
            )
        _refuse_all_failed(run)
        load_ms = self._progress.load_ms
        return replace(
            run,
            id=job.id,
            name=job.name,
            settings=settings if source is None else retrieving.with_source(settings, source),
            load_ms=float("nan") if load_ms is None else load_ms,
            documents=None if source is None else source.documents,
        )

    def _ready(self, made: Reranker) -> AbstractContextManager[Reranker]:
        """Return the job's reranker, on this machine or on the cluster that this server may use."""
        job = self._job
        if job.actors is None:
            return nullcontext(made)
        return on_ray(made, get(job.reranker), allowed_address(), Actors(**job.actors))

    def _report(self, **changes: Any) -> None:
        if self._watch is not None:
            changes["look"] = self._watch.look.as_dict()
            # A user may have decided to stop, or deleted the job.
            with suppress(StoreError):
                self._watch.rule = StopRule.from_mapping(self._queue.row(self._job.id).stop or {})
        self._progress = replace(self._progress, **changes)
        self._queue.progress(self._job.id, self._owner, self._progress)

    def _loaded(self, load_ms: float) -> None:
        self._pace.mark(time.monotonic(), self._progress.pairs_done)
        self._report(stage="scoring", load_ms=load_ms)

    def _keep(self, results: list[QueryResult]) -> None:
        if self._claimed.lost:
            return
        rows = [{**to_row(result), "computed": self._computed} for result in results]
        write_part(self._workspace, self._job.id, rows)
        self._count(results)
        started = time.monotonic()
        self._between()
        self._pace.skip(time.monotonic() - started)

    def _count(self, results: list[QueryResult]) -> None:
        before = self._progress
        calls = [call for row in results for call in row.calls]
        pairs = before.pairs_done + sum(self._pairs.get(row.query_id, 0) for row in results)
        if before.stage == "scoring":
            self._pace.mark(time.monotonic(), pairs)
        self._report(
            done=before.done + sum(row.state == "done" for row in results),
            failed=before.failed + sum(row.state == "failed" for row in results),
            pairs_done=pairs,
            requests=before.requests + sum(call.attempts for call in calls),
            refused=before.refused + sum(call.refused for call in calls),
            rate_pairs_s=self._pace.rate,
            seconds_left=self._pace.seconds_left(before.pairs_total - pairs),
        )


def _refuse_all_failed(run: Run) -> None:
    """Raise RerankerError for a run without a scored query: its job failed."""
    failed = run.queries[run.queries["state"] == "failed"]
    if len(failed) and not (run.queries["state"] == "done").any():
        raise RerankerError(
            "None of the {count} queries could be fetched. First failure: {reason}."
            if run.reranker == RETRIEVAL
            else "None of the {count} queries could be scored. First failure: {reason}.",
            remedy="Select Resume to retry them.",
            count=len(failed),
            reason=str(failed["reason"].iloc[0]).rstrip("."),
        )


Around = tuple[Workspace, Owner, threading.Event, Handover]
"""Environment of a worker: the event is set when it must end, the handover receives keys."""

Between = Callable[[], object]


@dataclass(frozen=True)
class Services:
    """Additional work of features. Each factory is called once per worker and returns a function
    that does one piece of waiting work and returns whether there was any.

    quick: takes seconds while a user waits: runs first, and between the batches of a job.
    idle: runs if no job waits; its argument must be called between its batches.
    """

    quick: Sequence[Callable[[Around], Callable[[], bool]]] = ()
    idle: Sequence[Callable[[Around], Callable[[Between], bool]]] = ()


def work(around: Around, services: Services) -> None:
    """Claim and run jobs until the worker must end."""
    workspace, owner, stopping, handover = around
    queue = Queue(workspace)
    quick = [make(around) for make in services.quick]
    idle = [make(around) for make in services.idle]

    def first() -> None:
        try:
            for serve in quick:
                while not stopping.is_set() and serve():
                    pass
        except StoreError as error:
            # The current job continues.
            _log.error("%s", error)

    while not stopping.is_set():
        try:
            first()
            job = queue.claim(owner)
            if job is not None:
                Attempt(workspace, owner, job, stopping, handover, first).run()
                continue
            if any(serve(first) for serve in idle):
                continue
        except StoreError as error:
            _log.error("%s", error)
        stopping.wait(IDLE_SECONDS)


def _stop_with_parent(stopping: threading.Event, handover: Handover) -> None:
    """Read keys from the pipe on standard input, and stop when it closes, because the parent has
    ended."""
    # Not sys.stdin: a lock that this thread has on it while Python ends is a fatal error.
    while data := os.read(0, 4096):
        handover.feed(data)
    stopping.set()


def _end_after_grace(workspace: Workspace, owner: Owner, stopping: threading.Event) -> None:
    """Exit after a grace period: a model that loads or a slow query cannot be interrupted."""
    stopping.wait()
    time.sleep(GRACE_SECONDS)
    try:
        Queue(workspace).interrupt(owner.token)
    finally:
        os._exit(1)


def main(services: Services, arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m rankdash.app.worker", description=__doc__)
    parser.add_argument("--workspace", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--token", default="", help="the name under which jobs are claimed")
    parser.add_argument(
        "--end-with-stdin", action="store_true", help="end when standard input is closed"
    )
    options = parser.parse_args(arguments)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    # The worker of a server has its niceness from the server.
    if hasattr(os, "nice") and not options.end_with_stdin:
        os.nice(NICENESS)
    stopping, handover = threading.Event(), Handover()
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())
    owner = Owner(options.token) if options.token else Owner()
    try:
        workspace = Workspace.open(options.workspace)
        workspace.database.refuse_read_only()
    except StoreError as error:
        print(error, file=sys.stderr)
        return 1
    if options.end_with_stdin:
        # Ctrl-C in a terminal reaches the whole process group; the parent decides when the worker
        # ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_stop_with_parent, args=(stopping, handover), daemon=True).start()
    threading.Thread(
        target=_end_after_grace, args=(workspace, owner, stopping), daemon=True
    ).start()
    work((workspace, owner, stopping, handover), services)
    return 0


# Work that a worker has claimed: heartbeat, cancellation, and final state.

BEAT_SECONDS = 1.0


class Claimed:
    """Claimed job, explanation or judge. stopping: set when the worker must end. lost: whether it
    was cancelled, deleted or claimed by another worker."""

    def __init__(
        self,
        rows: Queue | Explanations | StoredJudges,
        row_id: str,
        owner: Owner,
        stopping: threading.Event,
    ) -> None:
        self._rows, self._id, self._owner = rows, row_id, owner
        self._stopping, self._lost, self._ended = stopping, threading.Event(), threading.Event()

    @property
    def lost(self) -> bool:
        return self._lost.is_set()

    def has_to_stop(self) -> bool:
        return self.lost or self._stopping.is_set()

    def carry_out(self, work: Callable[[], Mapping[str, str]]) -> None:
        """Do the work and record its final state; errors end the work, not the worker. work:
        returns values to store with it."""
        beating = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        beating.start()
        try:
            outcome = work()
        except Cancelled:
            self._finish("interrupted" if self._stopping.is_set() else "cancelled")
        except RankdashError as error:
            _log.error("%s %s failed: %s", self._rows.table, self._id, error)
            self._finish("failed", error)
        except Exception as error:  # noqa: BLE001 - an error must not stop the other jobs
            _log.exception("%s %s failed", self._rows.table, self._id)
            self._finish("failed", self._unexpected(error))
        else:
            self._finish("done", None, **outcome)
        finally:
            self._ended.set()
            beating.join()

    def _finish(self, state: Ending, error: RankdashError | None = None, **outcome: object) -> None:
        self._rows.finish(self._id, self._owner, state, error, **outcome)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            try:
                if not self._rows.beat(self._id, self._owner):
                    self._lost.set()
            except StoreError as error:
                # The next beat may succeed; if none does, readers see that the worker is silent.
                _log.warning("No heartbeat: %s", error)

    def _unexpected(self, error: Exception) -> RerankerError:
        return RerankerError(
            "The explanation stopped at an unexpected error ({kind}: {text})."
            if isinstance(self._rows, Explanations)
            else "The run stopped at an unexpected error ({kind}: {text}).",
            remedy="The worker's log in the workspace has the details.",
            kind=type(error).__name__,
            text=redact(str(error))[:300],
        )


# Rate and remaining time of a long piece of work.

_RATE_BATCHES = 15

# Pairs that appear within this time are from the cache, or were reported by an earlier call.
_AT_ONCE_SECONDS = 0.05


class Pace:
    """Pairs per second over the latest batches, and the remaining time at that rate."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque(maxlen=_RATE_BATCHES)

    def mark(self, seconds: float, pairs: int) -> None:
        """Record that `pairs` pairs were done at `seconds` (any origin).

        Pairs that appear immediately do not count for the rate.
        """
        if self._marks and seconds - self._marks[-1][0] < _AT_ONCE_SECONDS:
            gained = pairs - self._marks[-1][1]
            self._marks = deque(
                ((at, before + gained) for at, before in self._marks), _RATE_BATCHES
            )
        else:
            self._marks.append((seconds, pairs))

    def skip(self, seconds: float) -> None:
        """Exclude `seconds` of other work since the latest mark."""
        self._marks = deque(((at + seconds, pairs) for at, pairs in self._marks), _RATE_BATCHES)

    @property
    def rate(self) -> float | None:
        if len(self._marks) < 2:
            return None
        (start, before), (end, after) = self._marks[0], self._marks[-1]
        return (after - before) / (end - start) if end > start and after > before else None

    def seconds_left(self, pairs: int) -> float | None:
        return pairs / self.rate if self.rate else None
