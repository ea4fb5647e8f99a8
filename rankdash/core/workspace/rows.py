"""What a workspace lists without opening a table."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from msgspec import convert

from rankdash.core.base.errors import StoreError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import FEWEST_TIMED
from rankdash.core.data.ranking import Run
from rankdash.core.workspace.failures import no_dataset, no_run, unreadable

_Scalar = str | int | float | bool | None
Settings = dict[str, str | int | float | bool]
"""Settings as a reranker or a judge takes them."""

Record = dict[str, _Scalar | list[_Scalar] | dict[str, _Scalar]]
"""Names and values, as the settings and the machine of a run are stored."""


@dataclass(frozen=True)
class DatasetRow:
    """A stored data set. `created` is ISO 8601 in UTC; the counts are of table rows."""

    id: str
    name: str
    created: str
    queries: int
    documents: int
    labels: int
    source: str
    first_stage: str
    candidates_name: str


@dataclass(frozen=True)
class RunRow:
    """A stored run. `created` is ISO 8601 in UTC.

    load_ms, p50_ms, p95_ms: the cold start, and quantiles of the latency of a query in
        milliseconds; NaN where not measured.
    pairs_per_second: of the scoring itself, index work included; None where not measured.
    """

    id: str
    name: str
    dataset_id: str
    reranker: str
    settings: Mapping[str, object]
    depth: int | None
    created: str
    queries_done: int
    queries_failed: int
    queries_skipped: int
    load_ms: float
    p50_ms: float
    p95_ms: float
    pairs_per_second: float | None


def dataset_row(row: sqlite3.Row) -> DatasetRow:
    return DatasetRow(**{name: row[name] for name in DatasetRow.__dataclass_fields__})


def run_row(row: sqlite3.Row) -> RunRow:
    """What is listed of a run; without settings if `refuse_run` refuses them."""
    values = {name: row[name] for name in RunRow.__dataclass_fields__}
    try:
        values["settings"] = read_json(row, "settings", Record)
    except StoreError:
        values["settings"] = {}
    for name in ("load_ms", "p50_ms", "p95_ms"):
        values[name] = math.nan if row[name] is None else row[name]
    return RunRow(**values)


def dataset_values(dataset: Dataset, source: str, report_json: str) -> dict[str, object]:
    """The columns of a data set's row, without its folder; it is added now."""
    return {
        "id": dataset.id,
        "name": dataset.name,
        "created": now(),
        "source": source,
        "first_stage": dataset.first_stage,
        **({"candidates_name": dataset.candidates_name} if dataset.candidates_name else {}),
        "queries": len(dataset.queries),
        "documents": len(dataset.documents),
        "labels": len(dataset.qrels),
        "report": report_json,
    }


def run_values(run: Run) -> dict[str, object]:
    """The columns of a run's row, without its folder."""
    states = run.queries["state"].value_counts()
    done = run.queries[run.queries["state"] == "done"]
    latency = done["latency_ms"].to_numpy(dtype=np.float64)
    latency = latency[np.isfinite(latency)]
    p50 = np.quantile(latency, 0.5) if len(latency) else math.nan
    p95 = np.quantile(latency, 0.95) if len(latency) >= FEWEST_TIMED else math.nan
    rate = math.nan if run.measured is None else run.measured.pairs_per_second
    return {
        "id": run.id,
        "dataset_id": run.dataset_id,
        "name": run.name,
        "reranker": run.reranker,
        "settings": json.dumps(dict(run.settings)),
        "machine": json.dumps(dict(run.machine)),
        "depth": run.depth,
        "created": run.created or now(),
        "queries_done": int(states.get("done", 0)),
        "queries_failed": int(states.get("failed", 0)),
        "queries_skipped": int(states.get("skipped", 0)),
        "load_ms": _known(run.load_ms),
        "p50_ms": _known(p50),
        "p95_ms": _known(p95),
        "pairs_per_second": _known(rate),
    }


def refuse_run(row: sqlite3.Row) -> None:
    """Raise StoreError if the settings or the machine of a run cannot be read."""
    for column in ("settings", "machine"):
        read_json(row, column, Record)


def read_json(row: sqlite3.Row | Mapping[str, Any], column: str, kind: Any) -> Any:
    """Return the JSON of a column as the type `kind`. Raises StoreError for any other value."""
    try:
        return convert(json.loads(row[column]), kind)
    except (ValueError, TypeError, RecursionError) as error:
        raise unreadable(column, str(error)) from error


def find(db: sqlite3.Connection, table: str, key: str, columns: str = "*") -> sqlite3.Row:
    """The row of a data set or run. Raises StoreError where there is none. table: "datasets" or
    "runs"."""
    row: sqlite3.Row | None = db.execute(
        f"SELECT {columns} FROM {table} WHERE id = ?",  # noqa: S608 - both are named by us
        (key,),
    ).fetchone()
    if row is None:
        raise no_dataset(key) if table == "datasets" else no_run(key)
    return row


def insert(
    db: sqlite3.Connection, table: str, values: Mapping[str, object], where_there: str = "OR IGNORE"
) -> bool:
    """Add a row; whether it was added. table and the columns are named by us. where_there: what
    SQLite does where the row is there already."""
    names = ", ".join(values)
    places = ", ".join(f":{name}" for name in values)
    statement = f"INSERT {where_there} INTO {table} ({names}) VALUES ({places})"  # noqa: S608
    return bool(db.execute(statement, values).rowcount)


def now() -> str:
    """The time in UTC, ISO 8601; the milliseconds keep quick successions in order."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
