"""Data sets and rankings in a workspace, as after an upload."""

import functools
import json
from collections.abc import Iterable, Sequence

from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.readers import Source, sources_from_path
from rankdash.core.readers.loading import Loaded, load
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.workspace import Workspace
from tests.sets import SAMPLE


def keep_rows(workspace: Workspace, rows: str | Sequence[dict[str, object]], name: str) -> str:
    """Store a data set and return its id. rows: CSV with its header, or rows for JSON lines."""
    if isinstance(rows, str):
        loaded = _loaded("rows.csv", rows, name)
    else:
        loaded = _loaded("rows.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows), name)
    return workspace.save_dataset(
        loaded.dataset, source="upload", report_json=loaded.report.to_json()
    )


@functools.cache
def _loaded(file: str, content: str, name: str) -> Loaded:
    return load([Source(file, content.encode())], name=name)


def keep_sample(workspace: Workspace) -> str:
    """Store the sample without its runs, and return its id."""
    loaded = _sample()
    return workspace.save_dataset(
        loaded.dataset, source="sample", report_json=loaded.report.to_json()
    )


@functools.cache
def _sample() -> Loaded:
    return load(sources_from_path(SAMPLE), name="Help centre")


def keep_lists(
    workspace: Workspace,
    dataset_id: str,
    lists: Iterable[tuple[str, Sequence[str], Sequence[float]]],
    name: str,
    run_id: str = "",
) -> Run:
    """Store a run of precomputed lists: (query, its documents, their scores)."""
    run = run_from_ranking(run_id or name, dataset_id, Ranking.from_lists(lists), name)
    workspace.save_run(run)
    return run
