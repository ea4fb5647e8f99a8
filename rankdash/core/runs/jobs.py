"""Jobs as a server sees them: add, list, cancel, resume, delete. Loads no model library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from rankdash.core.base.errors import SettingError, StoreError
from rankdash.core.data.measured import WithoutText
from rankdash.core.rerankers import Reranker, create, get
from rankdash.core.runs.on_ray.settings import Actors, allowed_address, refuse_elsewhere
from rankdash.core.runs.plan import Timing
from rankdash.core.runs.process import WorkerProcess
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.explanations import Explanations
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.jobs.leases import State as JobState
from rankdash.core.workspace.jobs.queue import LIVE, JobRow, Queue, Stage, has_parts, new_id

__all__ = [
    "LIVE",
    "JobRequest",
    "JobRow",
    "JobState",
    "Stage",
    "Timing",
    "WorkerProcess",
    "any_waits",
    "cancel",
    "check",
    "delete",
    "list",
    "new_id",
    "resume",
    "retry",
    "retryable",
    "submit",
    "unreadable",
]


@dataclass(frozen=True)
class JobRequest:
    """A wish for a run.

    depth: how many candidates of a query are reranked; None for all.
    sample: how many queries, drawn with `seed`; None for all.
    timing: what is measured beside the scores.
    without_text: what becomes of candidates without a text, as `rankdash.core.runs.plan.plan` says.
    grid: an id from `new_id` that the variants of one wish share; None for a run of its own.
    actors: of a run on the Ray cluster that the server allows; None for one of this machine.
    fused: the name of a second run, the reciprocal rank fusion of this run with the first stage;
        None without one.
    """

    dataset_id: str
    reranker: str
    settings: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    name: str = ""
    depth: int | None = None
    sample: int | None = None
    seed: int = 0
    timing: Timing = field(default_factory=Timing)
    without_text: WithoutText = "exclude"
    grid: str | None = None
    actors: Actors | None = None
    fused: str | None = None


def check(reranker: str, settings: Mapping[str, str | int | float | bool]) -> Reranker:
    """The reranker that a job would score with, not loaded: whether it is worth queueing.

    Raises SettingError or UnavailableError for one that cannot be made from these settings, or
    whose model or package is plainly not on this machine. A model of the hub is not looked for.
    """
    made = create(reranker, settings)
    kind = get(reranker)
    if kind.check is not None:
        kind.check(made.settings)
    return made


def submit(workspace: Workspace, request: JobRequest, job_id: str | None = None) -> str:
    """Queue a job and return its id; its run will have the same. Nothing is loaded here.

    job_id: from `new_id`, where the worker was given keys for it before; None for a new one.

    Raises SettingError or UnavailableError as `check` does, SettingError for a depth or sample
    under 1, StoreError for an unknown data set.
    """
    reranker = check(request.reranker, request.settings)
    for name, value in (("depth", request.depth), ("sample", request.sample)):
        if value is not None and value < 1:
            raise SettingError(
                "The {name} must be at least 1, not {value}.",
                remedy="Leave it empty to take all.",
                name=name,
                value=value,
            )
    if request.actors is not None:
        allowed_address()
        kind = get(request.reranker)
        refuse_elsewhere(kind.name, kind.able(reranker.settings))
    return Queue(workspace).submit(
        dataset_id=request.dataset_id,
        name=request.name or reranker.name,
        reranker=reranker.name,
        settings=reranker.settings,
        depth=request.depth,
        sample=request.sample,
        seed=request.seed,
        timing=asdict(request.timing),
        without_text=request.without_text,
        grid=request.grid,
        actors=None if request.actors is None else request.actors.as_dict(),
        fused=request.fused,
        job_id=job_id,
    )


def list(workspace: Workspace, dataset_id: str | None = None) -> tuple[JobRow, ...]:
    """The jobs of a data set, or all, oldest first, those that are done included.

    A running job whose worker is gone shows as interrupted.
    """
    return tuple(Queue(workspace).rows(dataset_id))


def any_waits(workspace: Workspace) -> bool:
    """Whether there is work for a worker: a job, a judge or an explanation."""
    return any(table(workspace).any_waits() for table in (Queue, StoredJudges, Explanations))


def unreadable(workspace: Workspace, dataset_id: str) -> dict[str, tuple[str, StoreError]]:
    """id → name, and what is wrong with it, of each job of a data set that `list` is without."""
    return Queue(workspace).unreadable(dataset_id)


def cancel(workspace: Workspace, job_id: str) -> None:
    """Stop a job. One that waits is cancelled at once, one that runs after its current query; what
    is scored by then is kept, and `resume` goes on from there."""
    Queue(workspace).cancel(job_id)


def resume(workspace: Workspace, job_id: str) -> None:
    """Queue a failed, cancelled or interrupted job again; scored queries are not scored again."""
    Queue(workspace).resume(job_id)


def retryable(workspace: Workspace, run_id: str) -> JobRow | None:
    """Return the job that made a run if `retry` can score its failed queries; else None."""
    done = {row.id: row for row in list(workspace) if row.state == "done" and row.failed}
    return done.get(run_id) if has_parts(workspace, run_id) else None


def retry(workspace: Workspace, run_id: str, name: str, job_id: str | None = None) -> str:
    """Queue a job that scores only the queries that failed in a run, and return its id. Its run has
    the results of all queries; the run that it started from stays.

    job_id: as in `submit`. Raises StoreError if the run was not made by a job, or its results are
    not kept.
    """
    job_id = job_id or new_id()
    Queue(workspace).retry(run_id, name, job_id)
    return job_id


def delete(workspace: Workspace, job_id: str) -> None:
    """Forget a job and what it has scored so far; a run that it has finished stays."""
    Queue(workspace).delete(job_id)
