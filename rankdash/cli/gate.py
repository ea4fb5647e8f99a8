"""`gate`: conditions checked on files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rankdash.analysis.labels.labelling import restored
from rankdash.analysis.statistics.comparison import Comparison, StatisticsSettings, compare
from rankdash.analysis.statistics.gate import Condition, Outcome, decide, measures_of
from rankdash.cli.evaluate import evaluate_files
from rankdash.cli.rankings import names_of
from rankdash.cli.target import spare_the_input, target_of
from rankdash.cli.writing import warn
from rankdash.errors import DataError
from rankdash.metrics import Conventions
from rankdash.readers import Conflict, Source
from rankdash.readers.timings import read_timings


@dataclass(frozen=True, eq=False)
class Checked:
    """What became of every condition. untimed: queries that are done and have no latency."""

    outcomes: tuple[Outcome, ...]
    comparison: Comparison
    challenger: str
    untimed: int

    @property
    def passed(self) -> bool:
        return all(outcome.passed for outcome in self.outcomes)


def check_files(
    qrels: str,
    baseline: str,
    challenger: str,
    conditions: Sequence[Condition],
    conventions: Conventions,
    settings: StatisticsSettings,
    *,
    conflict: Conflict,
    timings: str | None,
    column: str,
    out: Sequence[str] = (),
) -> Checked:
    """Read, score, compare and decide. What the readers find odd goes to standard error.

    out: the files that will be written.

    Raises DataError where a file cannot be used, or one to write is among those to read, and
    SpecError where a condition needs timings and there are none.
    """
    read = [qrels, baseline, challenger, *([] if timings is None else [timings])]
    for file in out:
        spare_the_input(target_of(file), read)
    timed: pd.DataFrame | None = None
    lost: dict[str, str] = {}
    if timings is not None:
        timed, noticed = read_timings(Source.from_path(Path(timings)), column)
        warn(noticed)
        lost = _lost(timed)
    first, second = names_of([baseline, challenger])
    results = evaluate_files(
        qrels,
        [baseline, challenger],
        measures_of(conditions),
        conventions,
        conflict=conflict,
        left_out={Path(challenger): lost},
    )
    if timings is not None and timed is not None:
        _refuse_others(timed, results.systems[second].query_ids, timings)
    # A file may hold more rankings than its own.
    sides = {name: results.systems[name] for name in (first, second)}
    comparison = compare(sides, first, settings)
    outcomes = decide(conditions, comparison, second, timed)
    untimed = 0
    if timed is not None:
        untimed = int(((timed["state"] == "done") & timed["latency_ms"].isna()).sum())
    return Checked(outcomes, comparison, second, untimed)


def _lost(timed: pd.DataFrame) -> dict[str, str]:
    """query id → "failed" or "skipped". A CSV for a spreadsheet may spell an id with an apostrophe
    in front, so both spellings are in it."""
    rows = timed[timed["state"] != "done"]
    pairs = zip(rows["query_id"], rows["state"], strict=True)
    return {
        spelling: state for query, state in pairs for spelling in {query, restored(query)} if query
    }


def _refuse_others(timed: pd.DataFrame, labelled: Iterable[str], file: str) -> None:
    """Raises DataError where the timings name queries, and none that is labelled."""
    named = [query for query in timed["query_id"] if query]
    if named and {*named, *map(restored, named)}.isdisjoint(labelled):
        raise DataError(
            "None of the queries that were timed is labelled, such as {query!r}.",
            remedy="Give the timings of the challenger on this data set.",
            file=file,
            query=named[0],
        )
