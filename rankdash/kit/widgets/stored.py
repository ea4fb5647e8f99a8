"""The server's workspace and worker, and the content of the workspace, read once for all sessions:
data sets, runs, and systems by name.

A data set with corrected labels has a different id, made of the stored id, the revision of its
corrections, and a hash of the runs with documents that it lacks: "<id>+<revision>", from
`with_corrections`. The functions here accept either.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from rankdash.core.base.errors import Finding, RankdashError, StoreError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.judgements import Judgements
from rankdash.core.data.ranking import Ranking, Run, digest
from rankdash.core.readers.checks import check as reports
from rankdash.core.readers.checks.check import CheckReport, check, relabelled
from rankdash.core.rerankers.kinds.precomputed import Precomputed
from rankdash.core.runs import jobs
from rankdash.core.runs.jobs import PIPE_VARIABLE, RelayedWorker, WorkerProcess
from rankdash.core.study.systems import System, first_stage_of, numbered
from rankdash.core.workspace import RunRow, Workspace
from rankdash.core.workspace.jobs.judges import JudgeRow, StoredJudges
from rankdash.core.workspace.notes import Corrections
from rankdash.kit.widgets import address
from rankdash.kit.widgets.cache import cache, forget_all

_REVISION = "+"
_UNREAD = Finding(
    "warning",
    "unread_report",
    "The check report that was stored with this data set cannot be read. This report was made from "
    "the stored tables.",
    remedy="To see which rows were excluded, delete the data set and add its files again.",
)


def stored(dataset_id: str) -> str:
    """Return the id under which the workspace stores the data set, its notes and its
    corrections."""
    return dataset_id.partition(_REVISION)[0]


def with_corrections(dataset_id: str, revision: int) -> str:
    """Return the id of a stored data set with the labels of a revision of its corrections."""
    base = stored(dataset_id)
    # Labels of documents that only a deleted run contained do not count.
    runs = workspace().runs_with_documents(base)
    of_runs = f"{_REVISION}{digest(each.encode() for each in runs)}" if runs else ""
    return f"{base}{_REVISION}{revision}{of_runs}"


def dataset(dataset_id: str) -> Dataset:
    base, *revision = dataset_id.split(_REVISION)
    # A name is not content: renaming does not change the data set.
    name = workspace().name("datasets", base)
    if revision:
        return cache(("dataset", dataset_id, name), lambda: _corrected(base, int(revision[0])))
    runs = workspace().runs_with_documents(base)
    return cache(("dataset", base, name, *runs), lambda: workspace().dataset(base))


def _corrected(dataset_id: str, revision: int) -> Dataset:
    # Tables and candidates are shared with the stored data set: an entry needs memory only for its
    # labels.
    data = dataset(dataset_id)
    changes = Corrections(workspace()).labels(dataset_id, revision)
    return data.relabelled(changes[changes["doc_id"].isin(data.documents["doc_id"])])


def in_force(dataset_id: str) -> str:
    """Return the id of a stored data set with its current corrections; the same id if it has
    none."""
    layer = Corrections(workspace()).layer(stored(dataset_id))
    return with_corrections(dataset_id, layer.revision) if layer.count else dataset_id


def check_report(dataset_id: str) -> CheckReport | None:
    """Return the check report of the stored data set, with the label counts of its revision; None
    without one."""
    return cache(("check report", dataset_id), lambda: _check_report(dataset_id))


def _check_report(dataset_id: str) -> CheckReport | None:
    base = stored(dataset_id)
    text = workspace().check_report(base)
    if text in ("", "{}"):
        return None
    try:
        report = reports.check_report(text)
    except (RankdashError, LookupError, TypeError, ValueError, RecursionError):
        return check(dataset(dataset_id), [_UNREAD], {})
    if dataset_id == base:
        return report
    came = {
        row.name: run(row.id).ranking
        for row in rows(base).values()
        if row.reranker == Precomputed.name
    }
    return relabelled(report, dataset(dataset_id), came)


def run(run_id: str) -> Run:
    # A study caches it under the same key; the name is not content, and may have changed.
    cached = cache(("run", run_id), lambda: workspace().run(run_id))
    return replace(cached, name=workspace().name("runs", run_id))


def rows(dataset_id: str) -> dict[str, RunRow]:
    """Return id → the list entry of each finished run, oldest first, without runs with damaged
    files."""
    listed = sorted(workspace().runs(stored(dataset_id)), key=lambda row: row.created)
    apart = workspace().damaged_runs(stored(dataset_id))
    return {row.id: row for row in listed if row.id not in apart}


def damage(dataset_id: str) -> StoreError | None:
    """Return the problem of the files of a data set; None if there is none."""
    return workspace().damage("datasets", stored(dataset_id))


def damaged(dataset_id: str) -> dict[str, tuple[str, StoreError]]:
    """Return id → name and problem of its files, for each run that `rows` omits."""
    apart = workspace().damaged_runs(stored(dataset_id))
    names = {row.id: row.name for row in workspace().runs(stored(dataset_id))} if apart else {}
    return {each: (names[each], error) for each, error in apart.items() if each in names}


def systems(dataset_id: str) -> dict[str, System]:
    """Return id → system, the first stage first, then the finished runs, oldest first."""
    listed = [first_stage_of(dataset(dataset_id))]
    listed += [
        System(row.id, row.name, load=partial(workspace().run, row.id))
        for row in rows(dataset_id).values()
    ]
    return numbered(listed)


def rankings(dataset_id: str, chosen: Sequence[str]) -> dict[str, Ranking]:
    """Return id → ranking of these systems."""
    every, by_system = systems(dataset_id), {}
    for each in chosen:
        ranking, load = every[each].ranking, every[each].load
        if load is not None:
            by_system[each] = load().ranking
        else:
            by_system[each] = dataset(dataset_id).candidates if ranking is None else ranking
    return by_system


def uploaded_labels(dataset_id: str, query_id: str) -> dict[str, float]:
    """Return document id → label for one query as uploaded, without corrections."""
    base = stored(dataset_id)
    places = cache(("uploaded rows", base), lambda: _rows_of_queries(base))
    uploaded = dataset(base).qrels.take(places.get(query_id, []))
    return dict(zip(uploaded["doc_id"], uploaded["label"].astype(float), strict=True))


def _rows_of_queries(dataset_id: str) -> dict[str, npt.NDArray[np.intp]]:
    groups = dataset(dataset_id).qrels.groupby("query_id", sort=False).indices
    return {str(query_id): np.asarray(places, dtype=np.intp) for query_id, places in groups.items()}


# The judges in the workspace, and their grades, read once for all sessions.


def judge_rows(dataset_id: str) -> dict[str, JudgeRow]:
    """Return id → judge, oldest first, including waiting and running judges."""
    listed = StoredJudges(workspace()).rows(stored(dataset_id))
    return {row.id: row for row in listed}


def grades(row: JudgeRow) -> pd.DataFrame:
    """Return one row for each pair, as `StoredJudges.grades` does."""
    # The grades change only with these.
    key = ("judge grades", row.id, row.graded, row.failed, row.started or "", row.finished or "")
    return cache(key, lambda: StoredJudges(workspace()).grades(row.id))


def from_fewer_answers(row: JudgeRow) -> int:
    """Return the number of pairs whose grade comes from fewer answers than requested."""
    repeats, judged = int(row.settings.get("repeats", 1)), grades(row)
    graded = judged["answers"][judged["grade"].notna()]
    return sum(
        sum(answer["grade"] is not None for answer in answers) < repeats for answers in graded
    )


def judgements(row: JudgeRow) -> Judgements:
    """Return the grades of a stored LLM judge as `Judgements`, the type that the statistics use."""
    return Judgements(row.name, (0.0, float(row.top)), grades(row), row.model)


# Open items that another window deleted: they are named, never replaced silently.

# Id → name of every data set and run that this session offered.
_SEEN = "deleted.seen"
# The data set, and the names of its compared runs that were deleted, until they are dismissed.
_RUNS = "deleted.runs"


def deleted_dataset(names: Mapping[str, str]) -> str | None:
    """Return the name of the chosen data set if it was deleted. names: id → name of existing data
    sets."""
    chosen = address.one("data")
    deleted = _seen().get(chosen or "") if chosen not in names else None
    _seen().update(names)
    return deleted


def note_runs(dataset_id: str, names: Mapping[str, str]) -> None:
    """Record which of the compared systems were deleted. names: id → name of existing systems."""
    before, deleted = st.session_state.get(_RUNS, (dataset_id, []))
    if before != dataset_id:
        deleted = []
    chosen = (address.one("base") or "", *address.several("system"))
    missing = [_seen()[each] for each in chosen if each in _seen() and each not in names]
    st.session_state[_RUNS] = (dataset_id, list(dict.fromkeys([*deleted, *missing])))
    _seen().update(names)


def runs() -> list[str]:
    """Return the names of the compared runs that were deleted."""
    names: list[str] = st.session_state.get(_RUNS, ("", []))[1]
    return names


def dismiss() -> None:
    """Clear the list of deleted runs."""
    st.session_state.pop(_RUNS, None)


def by_this_session(ids: Iterable[str]) -> None:
    """Exclude items that this session deleted itself."""
    for each in ids:
        _seen().pop(each, None)


def _seen() -> dict[str, str]:
    seen: dict[str, str] = st.session_state.setdefault(_SEEN, {})
    return seen


# The workspace and the worker process, which live as long as the server.


@functools.cache
def workspace() -> Workspace:
    return Workspace.open()


def read_only() -> bool:
    """Return whether the workspace is read-only."""
    return workspace().read_only


@functools.cache
def worker() -> WorkerProcess | RelayedWorker:
    """Return the worker. Raises StoreError if the workspace is read-only: no work is done then."""
    workspace().database.refuse_read_only()
    pipe = os.environ.get(PIPE_VARIABLE)
    return RelayedWorker(int(pipe)) if pipe else WorkerProcess(workspace())


def reopen() -> None:
    """Open the workspace again after a repair, and resume its work."""
    workspace.cache_clear()
    # Clear what was read from the temporary database.
    forget_all()
    if not read_only():
        work_on()


def work_on() -> None:
    """Start the worker if work is waiting. New work starts it too: a server that only shows pages
    needs no second process."""
    # Created here, because otherwise two sessions could each create one at first use.
    hand = worker()
    if jobs.any_waits(workspace()):
        hand.ensure()
