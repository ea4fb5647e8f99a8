"""The fetch of a ranking from a search engine as a job: its settings, its journal and its run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from rankdash.core.base.rules import SettingValue
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import CHURN, Run
from rankdash.core.rerankers.remote.connection import Policy
from rankdash.core.runs.runner import Cancelled
from rankdash.core.search.endpoint import Endpoint
from rankdash.core.search.fetching import Answer, churns, fetch, fetched
from rankdash.core.workspace.jobs.queue import JOURNAL

HOW = "search"

MOST_REPEATS = 20
"""The largest number of requests per query."""


def is_fetch(settings: Mapping[str, object]) -> bool:
    """Return whether a job or a run with these settings is a fetch."""
    return settings.get("how") == HOW and "endpoint" in settings


@dataclass(frozen=True)
class Fetch:
    """Request for a fetch.

    depth: documents per query. repeats: how many times each query is sent; the run has the first
        answers, and the others measure how much the results change between two calls.
    """

    endpoint: Endpoint
    depth: int = 100
    repeats: int = 1
    policy: Policy = field(default_factory=Policy)

    @property
    def settings(self) -> dict[str, SettingValue]:
        """The settings of its job, without a secret."""
        return {
            "how": HOW,
            "endpoint": json.dumps(self.endpoint.as_dict(), ensure_ascii=False),
            "depth": self.depth,
            "repeats": self.repeats,
            **self.policy.as_dict(),
        }

    @classmethod
    def of(cls, settings: Mapping[str, SettingValue]) -> Fetch | None:
        """Return the fetch in the settings of a job; None for another kind of job. Raises DataError
        if its endpoint was stored by another version and is not valid."""
        if not is_fetch(settings):
            return None
        return cls(
            Endpoint.of(str(settings["endpoint"])),
            int(settings["depth"]),
            int(settings["repeats"]),
            Policy.of(settings),
        )


def fetched_run(
    dataset: Dataset,
    request: Fetch,
    name: str,
    folder: Path,
    on_answers: Callable[[int, Sequence[Answer]], object],
    cancelled: Callable[[], bool],
) -> Run:
    """Fetch all queries; return the run. A query that was answered in an earlier
    attempt is not sent again.

    dataset: without the documents of other runs. folder: for the journals of the answers.
        on_answers: as in `fetch`; its first argument is the number of the request, from 1.

    Raises Cancelled, and the errors of `fetch`.
    """
    queries = {str(query): text for query, text in dataset.query_text().items()}
    fetches = []
    for number in range(1, request.repeats + 1):
        answers = fetch(
            request.endpoint,
            queries,
            request.depth,
            request.policy,
            journal=folder / (JOURNAL if number == 1 else f"repeat-{number}.jsonl"),
            on_answers=partial(on_answers, number),
            cancelled=cancelled,
        )
        if cancelled():
            raise Cancelled
        fetches.append(answers)
    run = fetched(dataset, request.endpoint, fetches[0], request.depth, name)
    changes = [each for each in churns(fetches) if each.per_query]
    if not changes:
        return run
    measured = {
        "repeats": request.repeats,
        CHURN: float(np.mean([each.mean for each in changes])),
        "changed_queries": float(np.mean([each.changed for each in changes])),
    }
    return replace(run, machine={**run.machine, **measured})
