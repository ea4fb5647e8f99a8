"""What became of each query of a run and how long it took: told, to and from a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError, ScoringError
from rankdash.core.base.spreadsheet import csv_bytes, restored
from rankdash.core.data.ranking import Run
from rankdash.core.readers import Source
from rankdash.core.readers.timings import LATENCY_COLUMN, read_timings
from rankdash.core.words.queries import query_count
from rankdash.kit.commands.output import or_null, place_name, printable, warn, write

_COLUMNS = ["query_id", "state", "reason", "latency_ms", "pairs"]


def write_timings(run: Run, target: Path) -> None:
    """As `write_table`, of a run."""
    write_table(run.queries, {} if run.measured is None else run.measured.repeated_ms, target)


def write_table(
    queries: pd.DataFrame, repeated: Mapping[str, Sequence[float]], target: Path
) -> None:
    """A row for each query: CSV for a spreadsheet where the name ends in .csv, JSON else. Where
    queries were timed several times, a column for each time. A latency that was not measured is
    empty, or null.

    queries: as those of a `Run`. repeated: query id → the latency of each of its repeats, in
    milliseconds; none where it was timed once.

    Raises OSError where nothing can be written.
    """
    frame = queries[_COLUMNS]
    if any(repeated.values()):
        own = [repeated.get(query, ()) for query in frame["query_id"]]
        frame = frame.assign(
            **{
                f"repeat_{place + 1}_ms": [
                    each[place] if place < len(each) else np.nan for each in own
                ]
                for place in range(max(map(len, own)))
            }
        )
    if target.suffix.lower() == ".csv":
        write(csv_bytes(frame), target)
        return
    rows = [
        {name: or_null(value) for name, value in row.items()} for row in frame.to_dict("records")
    ]
    write(f"{json.dumps(rows, indent=1, allow_nan=False)}\n".encode(), target)


@dataclass(frozen=True, eq=False)
class Timings:
    """A file of timings, and its table as from `readers.timings.read_timings`."""

    file: str
    table: pd.DataFrame

    @classmethod
    def read(cls, file: str, column: str = LATENCY_COLUMN) -> Timings:
        """What is odd about the file goes to standard error. Raises DataError where it cannot be
        used."""
        table, noticed = read_timings(Source.from_path(Path(file)), column)
        warn(noticed)
        return cls(file, table)

    @property
    def named(self) -> bool:
        """Whether it says of which queries it speaks."""
        return bool((self.table["query_id"] != "").any())

    @property
    def lost(self) -> frozenset[str]:
        """The queries that failed or were skipped, as they are spelled and as a spreadsheet may
        have them."""
        ids = self.table.loc[self.table["state"] != "done", "query_id"].tolist()
        return frozenset([*ids, *map(restored, ids)]) - {""}


def timed(run: Run, timings: Timings, labelled: Collection[str]) -> Run:
    """The run with its latencies, and with what failed or was skipped, so that it counts as left
    out and not as ranked nothing. labelled: the queries with labels.

    Raises DataError where none of the queries that were timed is ranked or labelled.
    """
    known = {*run.queries["query_id"], *labelled}
    # A CSV for a spreadsheet may spell an id with an apostrophe in front.
    ids = [query if query in known else restored(query) for query in timings.table["query_id"]]
    table = timings.table.assign(query_id=ids).drop_duplicates("query_id", keep="last")
    if known.isdisjoint(ids):
        raise DataError(
            "None of the queries that were timed is in the ranking {name}.",
            remedy="Give the timings of each challenger on this data set, in their order.",
            file=timings.file,
            name=run.name,
        )
    lost = table[(table["state"] != "done") & (table["query_id"] != "")]
    done = run.queries[~run.queries["query_id"].isin(lost["query_id"])]
    times = dict(zip(table["query_id"], table["latency_ms"], strict=True))
    done = done.assign(latency_ms=[times.get(query, np.nan) for query in done["query_id"]])
    unknown = dict.fromkeys(("latency_ms", "index_ms", "pairs", "tokens", "truncated"), np.nan)
    without_result = lost[["query_id", "state", "reason"]].assign(**unknown)
    return replace(
        run,
        ranking=run.ranking.without(lost["query_id"]),
        queries=pd.concat([done, without_result], ignore_index=True),
    )


def no_result(queries: pd.DataFrame) -> ScoringError:
    """What to raise where none of the queries of a run has a result."""
    failed = queries["reason"][queries["state"] == "failed"]
    reason = failed.iloc[0] if len(failed) else "no query has candidates"
    return ScoringError(
        "No query could be reranked, so nothing was written. The first reason: {reason}.",
        reason=str(reason).rstrip("."),
    )


def tell_queries(queries: pd.DataFrame, target: Path) -> bool:
    """Name on standard error the queries that failed, and say how many did not; whether all did
    not."""
    states = queries["state"]
    failed = queries[states == "failed"]
    done, skipped = int((states == "done").sum()), int((states == "skipped").sum())
    for query, reason in zip(failed["query_id"], failed["reason"], strict=True):
        sys.stderr.write(f"failed: query {printable(query)}: {printable(reason)}\n")
    sys.stderr.write(
        f"{query_count(done)} reranked, {len(failed):,} failed, {skipped:,} without candidates. "
        f"Written: {place_name(target)}\n"
    )
    return bool(failed.empty)
