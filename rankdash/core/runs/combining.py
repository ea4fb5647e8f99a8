"""A run made of stored runs, at once and without scoring anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import QueryState, Ranking, Run, digest
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.rerankers.fusion import fuse as fuse_rankings

KIND = "fusion"
FIRST_STAGE = "first stage"


@dataclass(frozen=True)
class CombinedRun:
    """A ranking to combine. run: where it comes from one; None for the first stage."""

    name: str
    ranking: Ranking
    run: Run | None = None


def fuse(dataset: Dataset, parts: Sequence[CombinedRun], how: Fusion, name: str) -> Run:
    """The combination of `parts` as a run of the data set, equal sums in the order of the first.

    A query that failed in one part fails, with the part's reason; one that a part was not asked for
    is skipped: half of a combination is never passed off as the whole. No latency is stored, since
    none was measured: it follows from the parts (`with_times_of`).

    Raises SettingError for fewer than two parts or wrong weights, and DataError where no query is
    in every part.
    """
    ranking = fuse_rankings([part.ranking for part in parts], how)
    if not len(ranking.query_ids):
        raise DataError(
            "The rankings have no query in common.",
            remedy="Fuse runs over the same queries.",
        )
    weights = how.weights or (1.0,) * len(parts)
    settings = {
        "method": how.method,
        **({"k": how.k} if how.method == "rrf" else {}),
        "parts": " + ".join(part.name for part in parts),
        "weights": ", ".join(f"{weight:g}" for weight in weights),
        "part_ids": ", ".join(part.run.id if part.run else FIRST_STAGE for part in parts),
    }
    wish = (dataset.id, KIND, name, repr(sorted(settings.items())))
    return Run(
        id=digest(text.encode("utf-8", "surrogatepass") for text in wish),
        name=name,
        dataset_id=dataset.id,
        ranking=ranking,
        reranker=KIND,
        queries=_queries(dataset, parts, set(ranking.query_ids)),
        settings=settings,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def part_ids(run: Run) -> tuple[str, ...]:
    """The ids of the runs that a run was made of, the first stage left out; empty for one that was
    made of none."""
    if run.reranker != KIND:
        return ()
    ids = str(run.settings.get("part_ids", "")).split(", ")
    return tuple(each for each in ids if each and each != FIRST_STAGE)


def with_times_of(run: Run, parts: Sequence[Run]) -> Run:
    """The run with the latencies, pairs and tokens of its parts in sum, as where one is asked after
    the other. A query that one of them was not timed on has no latency."""
    own = run.queries.set_index("query_id")
    tables = [part.queries.set_index("query_id") for part in parts]
    taken = {
        name: sum(each[name].astype(np.float64).reindex(own.index).to_numpy() for each in tables)
        for name in ("latency_ms", "pairs", "tokens")
    }
    done = (run.queries["state"] == "done").to_numpy()
    known = {name: np.where(done, total, np.nan) for name, total in taken.items()}
    return replace(run, queries=run.queries.assign(**known))


def unknown_tokens(run: Run, part: Callable[[str], Run | None]) -> float:
    """The share of tokens in [0, 1] that the model of a run does not know; of a run that was made
    of others, that of the part that knows least. NaN where no tokens were read.

    part: id → the run, None where it is not here.
    """
    parts = [found for each in part_ids(run) if (found := part(each)) is not None]
    own = math.nan if run.measured is None else run.measured.unknown_tokens
    shares = [own, *(unknown_tokens(each, part) for each in parts)]
    return max((each for each in shares if not math.isnan(each)), default=math.nan)


def _queries(dataset: Dataset, parts: Sequence[CombinedRun], done: set[str]) -> pd.DataFrame:
    told = [_states(part) for part in parts]
    rows = [_state(query, query in done, parts, told) for query in dataset.queries["query_id"]]
    table = pd.DataFrame(rows, columns=["query_id", "state", "reason"]).astype("str")
    for column in ("latency_ms", "index_ms", "tokens", "truncated"):
        table[column] = np.full(len(table), math.nan)
    # Nothing was scored for it.
    table.insert(5, "pairs", np.where(table["state"] == "done", 0.0, math.nan))
    return table


def _states(part: CombinedRun) -> dict[str, tuple[str, str]]:
    """query id → state and reason, as far as the part tells."""
    if part.run is None:
        return {}
    table = part.run.queries
    found = zip(table["state"], table["reason"], strict=True)
    return dict(zip(table["query_id"], found, strict=True))


def _state(
    query: str, done: bool, parts: Sequence[CombinedRun], told: Sequence[dict[str, tuple[str, str]]]
) -> tuple[str, QueryState, str]:
    if done:
        return query, "done", ""
    for wanted in ("failed", "skipped"):
        for part, states in zip(parts, told, strict=True):
            state, reason = states.get(query, ("", ""))
            if state == wanted:
                return query, wanted, f"{part.name}: {reason}"
    lacking = [part.name for part in parts if query not in part.ranking.positions]
    return query, "skipped", f"not in {', '.join(lacking)}"
