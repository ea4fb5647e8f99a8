"""Reranker that scores in Ray actors, each with a separate copy of the model.

Each actor has two batches: the current and the next one. If an actor dies, its current batch is
scored again by another actor, query by query, so that a query that kills actors does not fail other
queries.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

from rankdash import __version__
from rankdash.core.base import allowed
from rankdash.core.base.errors import RankdashError, ScoringError, UnavailableError
from rankdash.core.rerankers import (
    Corpus,
    Request,
    Reranker,
    RerankerKind,
    Scored,
    SettingValue,
    add_plugins,
    create,
    plugin_files,
)
from rankdash.core.rerankers.base import Detailed, Literate
from rankdash.core.runs import scoring
from rankdash.core.runs.concurrency import machine
from rankdash.core.runs.on_ray import cluster
from rankdash.core.runs.on_ray.cluster import (
    Actors,
    gone,
    not_started,
    not_there,
    reaching,
    refuse_elsewhere,
    refuse_other,
)
from rankdash.core.runs.results import with_runtime
from rankdash.core.runs.scoring import AnsweredRequests


@dataclass(frozen=True)
class Loaded:
    """Reranker loaded in an actor. details: as in `Detailed`."""

    fingerprint: str
    details: Mapping[str, object]


class Scorer:
    """Ray actor that scores requests, on a node of the cluster."""

    def __init__(self, name: str, plugins: Sequence[str], environment: Mapping[str, str]) -> None:
        """Set the environment and load the plugins. environment: from `allowed.environment`,
        because the node may have to download a model."""
        os.environ.update(environment)
        self._name = name
        known = plugin_files()
        add_plugins([file for file in plugins if file not in known])

    def place(self) -> tuple[str, str]:
        """Return the name of this machine, and its version of rankdash."""
        return platform.node(), __version__

    def load(self, settings: Mapping[str, SettingValue], corpus: Corpus) -> Loaded | RankdashError:
        """Load the reranker, or return the error."""
        try:
            self._reranker = create(self._name, settings)
            self._reranker.prepare(corpus)
            return Loaded(self._reranker.fingerprint(), self.details())
        except RankdashError as error:
            return error

    def score(
        self, requests: Sequence[Request]
    ) -> tuple[list[Scored], float, float] | UnavailableError:
        """Return the answers, and the wall and CPU seconds that they took on this machine."""
        try:
            response = scoring.ask(
                self._reranker, requests, time.perf_counter_ns, time.process_time_ns
            )
        except UnavailableError as error:
            return error
        return response.answers, response.seconds, response.cpu_seconds

    def details(self) -> dict[str, object]:
        """Return the description of the machine and the reranker's details."""
        reported = self._reranker.details() if isinstance(self._reranker, Detailed) else {}
        return {**machine(), **reported, "node": platform.node()}

    def unknown_share(self, texts: Sequence[str]) -> float:
        """Implement `Literate`; NaN for a reranker that reads no tokens."""
        if not isinstance(self._reranker, Literate):
            return float("nan")
        return self._reranker.unknown_share(texts)


# Time limits for the cluster to place an actor, and to replace its last machine.
PLACE_SECONDS = 60.0
_LOST_SECONDS = 5.0

DEATHS = 3
"""A query fails after this number of actor deaths; the run fails after as many while loading."""

_IN_FLIGHT = 2
_LOOK_SECONDS = 1.0


@contextmanager
def on_ray(made: Reranker, kind: RerankerKind, address: str, actors: Actors) -> Iterator[Reranker]:
    """Run the reranker `made`, of that kind, on the cluster at an address; its actors end with the
    block.

    Raises SettingError for a kind that calls a service or has no settings, and for an invalid
    address.
    """
    refuse_elsewhere(kind.name, kind.able(made.settings))
    reranker = OnRay(made, kind, address, actors)
    # Ray prints the deaths of actors to stdout, which may contain the output of a command.
    with redirect_stdout(sys.stderr):
        try:
            yield reranker
        finally:
            reranker.close()


@dataclass
class _Batch:
    """Batch of requests. deaths: number of actors that died on it."""

    requests: Sequence[Request]
    deaths: int = 0


@dataclass
class _Member:
    """Actor of the cluster. tasks: its batches in order, with the reference of each answer."""

    handle: Any
    placed: Any
    loaded: Any
    ready: bool = False
    node: str = ""
    tasks: deque[tuple[Any, _Batch]] = field(default_factory=deque)


class OnRay:
    """Reranker that scores in the actors of a cluster."""

    # Scoring uses no threads of this process.
    threads = 0

    def __init__(self, made: Reranker, kind: RerankerKind, address: str, actors: Actors) -> None:
        self.name = made.name
        self.settings = made.settings
        self._kind = kind
        self._address = address
        self._actors = actors
        self._told: Mapping[str, SettingValue] = made.settings
        self._room = cluster.Room(1, 1, 0.0)
        self._members: list[_Member] = []
        self._again: deque[_Batch] = deque()
        self._first: Loaded | None = None
        self._corpus: Any = None
        self._connected = False
        self._failed_loads = 0
        self._without_since = time.monotonic()

    def prepare(self, corpus: Corpus) -> None:
        """Connect to the cluster and load the reranker in every actor. The first actor determines
        measured settings, such as the runtime, for all.

        Raises UnavailableError if the cluster, room on it, or the model on its machines is missing.
        """
        cluster.connect(self._address)
        self._connected = True
        with reaching(self._address):
            self._load(corpus)

    def _load(self, corpus: Corpus) -> None:
        import ray

        self._room = cluster.room(self._actors, str(self.settings.get("device", "")))
        # A model reads nothing but the pair.
        self._corpus = ray.put(Corpus([], []) if self._kind.models else corpus)
        self._start()
        first = self._await_loaded()
        self._told = with_runtime(self.settings, first.details)
        for _ in range(self._room.number - 1):
            self._start()
        self._await_loaded()

    def close(self) -> None:
        """End the actors, and a cluster on this machine."""
        self._members = []
        if self._connected:
            self._connected = False
            cluster.disconnect()

    def fingerprint(self) -> str:
        return "" if self._first is None else self._first.fingerprint

    def details(self) -> dict[str, object]:
        """Return the details of the first actor's machine, where latencies are measured, and the
        number of actors."""
        import ray

        if self._first is None:
            return {}
        reported: Mapping[str, object] = {}
        for member in self._ready():
            try:
                reported = ray.get(member.handle.details.remote())
                break
            except (ray.exceptions.RayError, ConnectionError):
                continue
        # If the first actor has died, this one may be on another machine.
        ray_details = {"ray": ray.__version__, "ray_actors": self._room.number}
        return {**reported, **self._first.details, **ray_details}

    def unknown_share(self, texts: Sequence[str]) -> float:
        import ray

        for member in self._ready():
            try:
                return float(ray.get(member.handle.unknown_share.remote(texts)))
            except (ray.exceptions.RayError, ConnectionError):
                continue
        return float("nan")

    @property
    def at_once(self) -> int:
        return self._room.number * _IN_FLIGHT

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        answers = {
            id(request): answer
            for response in self.stream([requests])
            for request, answer in zip(response.requests, response.answers, strict=True)
        }
        return [answers[id(request)] for request in requests]

    def stream(self, batches: Iterable[Sequence[Request]]) -> Iterator[AnsweredRequests]:
        """Implement `Spread`. A batch on which an actor died is answered query by query.

        Raises UnavailableError if the cluster or the model on it is lost.
        """
        with reaching(self._address):
            yield from self._stream(batches)

    def _stream(self, batches: Iterable[Sequence[Request]]) -> Iterator[AnsweredRequests]:
        import ray

        source = (_Batch(requests) for requests in batches)
        more = True
        while True:
            more = self._give(source) and more
            waiting = [member.tasks[0][0] for member in self._members if member.tasks]
            if not (waiting or self._again or more):
                return
            loading = [member.loaded for member in self._members if not member.ready]
            ray.wait([*waiting, *loading], num_returns=1, timeout=_LOOK_SECONDS)
            self._take_in()
            for member in list(self._members):
                yield from self._answers(member)
            self._refuse_to_wait_for_ever()

    def _give(self, source: Iterator[_Batch]) -> bool:
        """Send a first batch to every ready actor, then a second one. Return whether the source may
        have more."""
        for most in range(1, _IN_FLIGHT + 1):
            for member in self._ready():
                if len(member.tasks) >= most:
                    continue
                batch = self._again.popleft() if self._again else next(source, None)
                if batch is None:
                    return False
                member.tasks.append((member.handle.score.remote(batch.requests), batch))
        return True

    def _answers(self, member: _Member) -> Iterator[AnsweredRequests]:
        """Yield the finished answers of an actor; start another one if it died."""
        import ray

        while member.tasks:
            reference, batch = member.tasks[0]
            if not ray.wait([reference], timeout=0)[0]:
                return
            try:
                answer = ray.get(reference)
            except ray.exceptions.RayError:
                member.tasks.popleft()
                # Batches that it had not started are unchanged.
                self._again.extendleft(batch for _, batch in reversed(member.tasks))
                member.tasks.clear()
                self._replace(member)
                yield from self._died(batch, member.node)
                return
            if isinstance(answer, UnavailableError):
                raise answer
            member.tasks.popleft()
            yield AnsweredRequests(batch.requests, *answer)

    def _died(self, batch: _Batch, node: str) -> Iterator[AnsweredRequests]:
        """Queue a batch on which an actor died again, or yield its failure."""
        deaths = batch.deaths + 1
        if len(batch.requests) > 1:
            again = [_Batch([request], deaths) for request in batch.requests]
            self._again.extendleft(reversed(again))
        elif deaths < DEATHS:
            self._again.appendleft(_Batch(batch.requests, deaths))
        else:
            error = ScoringError(
                "Actors that died while scoring the query: {count}, the last on {node}.",
                count=deaths,
                node=node,
            )
            failed = [Scored.failed(len(each.doc_ids), str(error)) for each in batch.requests]
            yield AnsweredRequests(batch.requests, failed, 0.0, 0.0)

    def _start(self) -> None:
        import ray

        size = {"num_cpus": self._room.cpus, "num_gpus": self._room.gpus}
        actor_class = ray.remote(Scorer).options(**size)
        handle = actor_class.remote(self.name, plugin_files(), allowed.environment())
        placed = handle.place.remote()
        self._members.append(_Member(handle, placed, handle.load.remote(self._told, self._corpus)))

    def _replace(self, member: _Member) -> None:
        import ray

        self._members.remove(member)
        if not self._members:
            self._without_since = time.monotonic()
        # A failed actor may still run; its resources are needed for the next one.
        ray.kill(member.handle)
        self._start()

    def _ready(self) -> list[_Member]:
        return [member for member in self._members if member.ready]

    def _await_loaded(self) -> Loaded:
        """Return the first actor's `Loaded`, after loading in all actors that the cluster has
        placed."""
        import ray

        self._without_since = time.monotonic()
        while True:
            pending = [member for member in self._members if not member.ready]
            waited = time.monotonic() - self._without_since
            if self._first is not None and all(
                waited > PLACE_SECONDS and not _done(member.placed) for member in pending
            ):
                return self._first
            ray.wait([member.loaded for member in pending], num_returns=1, timeout=_LOOK_SECONDS)
            self._take_in()
            self._refuse_to_wait_for_ever()

    def _take_in(self) -> None:
        """Mark loaded actors as ready; replace actors that died while loading."""
        import ray

        for member in [each for each in self._members if not each.ready]:
            if not _done(member.loaded):
                continue
            try:
                member.node, version = ray.get(member.placed)
                refuse_other(version, member.node)
                loaded = ray.get(member.loaded)
            except ray.exceptions.RayError as error:
                self._failed_loads += 1
                if self._failed_loads >= DEATHS or "No module named" in str(error):
                    raise not_started(error, DEATHS) from error
                self._replace(member)
                continue
            if isinstance(loaded, RankdashError):
                raise not_there(loaded, member.node)
            if self._first is None:
                self._first = loaded
            elif loaded.fingerprint != self._first.fingerprint:
                raise UnavailableError(
                    "The machines {node} and {first} have different models.",
                    remedy="Put the same files on all machines of the cluster.",
                    node=member.node,
                    first=str(self._first.details["node"]),
                )
            member.ready = True
            self._failed_loads = 0

    def _refuse_to_wait_for_ever(self) -> None:
        """Raise UnavailableError if no actor is ready and none was placed within the time limit."""
        if any(member.ready or _done(member.placed) for member in self._members):
            self._without_since = time.monotonic()
            return
        waited = time.monotonic() - self._without_since
        if waited > _LOST_SECONDS and not cluster.alive():
            raise gone(self._address)
        if waited > PLACE_SECONDS:
            raise UnavailableError(
                "The Ray cluster could not schedule an actor within {seconds} s (resources in "
                "use).",
                remedy="Try again later, or request smaller actors.",
                seconds=f"{PLACE_SECONDS:.0f}",
            )


def _done(reference: Any) -> bool:
    import ray

    return bool(ray.wait([reference], timeout=0)[0])
