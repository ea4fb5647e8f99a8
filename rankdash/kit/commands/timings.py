"""The outcome and latency of each query of a run: printed, written to a file, and read from one."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError, ScoringError, SpecError
from rankdash.core.base.text import csv_bytes, restored
from rankdash.core.data.measured import STOPPED, Measured, Stopped
from rankdash.core.data.ranking import Run
from rankdash.core.readers import Parsed, Source, name_of, stem_of
from rankdash.core.readers.rated import LATENCY_COLUMN, read_timings
from rankdash.core.words.queries import query_count
from rankdash.kit.commands.output import or_null, place_name, printable, warn, write

_COLUMNS = ["query_id", "state", "reason", "latency_ms", "pairs"]
_BESIDE = (".timings.json", ".timings.csv")


def write_timings(run: Run, target: Path) -> None:
    """Write the table of a run, as `write_table` does."""
    write_table(run.queries, {} if run.measured is None else run.measured.repeated_ms, target)


def write_table(
    queries: pd.DataFrame, repeated: Mapping[str, Sequence[float]], target: Path
) -> None:
    """Write a row for each query: CSV for a spreadsheet if the name ends in .csv, otherwise JSON.
    If queries were timed several times, there is a column for each repeat. A latency that was not
    measured is empty, or null.

    queries: as for a `Run`. repeated: query id → the latencies of its repeats, in milliseconds;
        empty if it was timed once.

    Raises OSError if nothing can be written.
    """
    frame = queries[_COLUMNS]
    if any(repeated.values()):
        repeats = [repeated.get(query, ()) for query in frame["query_id"]]
        frame = frame.assign(
            **{
                f"repeat_{place + 1}_ms": [
                    each[place] if place < len(each) else np.nan for each in repeats
                ]
                for place in range(max(map(len, repeats)))
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
    """A file of timings, and its table as from `readers.rated.read_timings`."""

    file: str
    table: pd.DataFrame

    @classmethod
    def read(cls, file: str, column: str = LATENCY_COLUMN) -> Timings:
        """Return the timings in a file; its warnings go to standard error. Raises DataError if it
        cannot be used."""
        table, noticed = read_timings(Source.from_path(Path(file)), column)
        warn(noticed)
        return cls(file, table)

    @classmethod
    def beside(cls, ranking: Path) -> Timings | None:
        """Return the states of the queries from the timings next to a ranking, `a.timings.json` or
        `a.timings.csv` for `a.trec`; None without such a file. Latencies are not used. Raises
        DataError as `read` does."""
        for ending in _BESIDE:
            file = ranking.with_name(stem_of(name_of(ranking)) + ending)
            if file.is_file():
                timings = cls.read(str(file))
                return replace(timings, table=timings.table.assign(latency_ms=np.nan))
        return None

    @property
    def named(self) -> bool:
        """True if the file has query ids."""
        return bool((self.table["query_id"] != "").any())

    @property
    def stopped(self) -> bool:
        """True if they are of a run that was stopped by its result."""
        return bool((self.table["reason"] == STOPPED).any())

    @property
    def lost(self) -> dict[str, str]:
        """Query id → "failed" or "skipped", with ids as they are spelled and as a spreadsheet may
        spell them."""
        table = self.table.drop_duplicates("query_id", keep="last")
        rows = table[(table["state"] != "done") & (table["query_id"] != "")]
        states = dict(zip(rows["query_id"], rows["state"], strict=True))
        return {restored(query): state for query, state in states.items()} | states


def with_beside(
    paths: Mapping[str, Path], given: Mapping[str, Timings | None] | None = None
) -> dict[str, Timings]:
    """Return system → timings: `given`, or else the file of `Timings.beside`, if it exists."""
    found = {name: (given or {}).get(name) or Timings.beside(path) for name, path in paths.items()}
    return {name: each for name, each in found.items() if each is not None}


def timings_in(data: Sequence[str], parsed: Parsed) -> dict[str, Timings]:
    """Return ranking ("" for the first stage) → the timings next to its file, for the rankings in
    the files of a data set."""
    found: dict[str, Timings] = {}
    for path in map(Path, data):
        folder = path.is_dir()
        for ranking in [each for each in path.rglob("*") if each.is_file()] if folder else [path]:
            timings = Timings.beside(ranking)
            if timings is not None:
                found[stem_of(name_of(ranking))] = timings
    named = {name: found.pop(name) for name in parsed.rankings if name in found}
    # A file whose name only means first stage does not name the ranking.
    first = parsed.candidates_name or (next(iter(found)) if len(found) == 1 else "")
    if parsed.candidates is not None and first in found:
        named[""] = found[first]
    return named


def timings_of(files: Sequence[str], challengers: Sequence[str]) -> list[Timings]:
    """Return the timings of each challenger, or none. Raises SpecError for another number of
    files."""
    if files and len(files) != len(challengers):
        raise SpecError(
            "There are {timings} --timings for {challengers} --challenger.",
            remedy="Pass one --timings for each --challenger, in the same order.",
            timings=len(files),
            challengers=len(challengers),
        )
    return [Timings.read(file) for file in files]


def timed(run: Run, timings: Timings, labelled: Collection[str]) -> Run:
    """Return the run with its latencies, without queries that failed or were skipped, so that they
    count as excluded and not as empty rankings, and with the record that it was stopped by its
    result, if it was. labelled: the queries with labels.

    Raises DataError if none of the timed queries is ranked or labelled.
    """
    query_ids = {*run.queries["query_id"], *labelled}
    # In a CSV for a spreadsheet, an id may have an apostrophe in front.
    ids = [query if query in query_ids else restored(query) for query in timings.table["query_id"]]
    table = timings.table.assign(query_id=ids).drop_duplicates("query_id", keep="last")
    if query_ids.isdisjoint(ids):
        raise DataError(
            "None of the timed queries are in the ranking {name}.",
            remedy="Provide the timings of each challenger on this data set, in the order of "
            "the challengers.",
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
        measured=Measured(stopped=Stopped(len(done), len(table))) if timings.stopped else None,
    )


def no_result(queries: pd.DataFrame) -> ScoringError:
    """Return the error for a run without any result."""
    failed = queries["reason"][queries["state"] == "failed"]
    reason = failed.iloc[0] if len(failed) else "no query has candidates"
    return ScoringError(
        "No query could be reranked, so nothing was written. The first reason: {reason}.",
        reason=str(reason).rstrip("."),
    )


def tell_queries(queries: pd.DataFrame, target: Path) -> bool:
    """Print the failed queries to standard error, with the counts. Return whether none failed."""
    states = queries["state"]
    failed = queries[states == "failed"]
    done = int((states == "done").sum())
    skipped = int(((states == "skipped") & (queries["reason"] != STOPPED)).sum())
    for query, reason in zip(failed["query_id"], failed["reason"], strict=True):
        sys.stderr.write(f"failed: query {printable(query)}: {printable(reason)}\n")
    sys.stderr.write(
        f"{query_count(done)} reranked, {len(failed):,} failed, {skipped:,} without candidates. "
        f"Written: {place_name(target)}\n"
    )
    return bool(failed.empty)
