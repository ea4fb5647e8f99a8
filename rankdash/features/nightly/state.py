"""The state of a nightly comparison: a file with one JSON line for each night, and the rankings
that the next night needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rankdash.core.base.errors import DataError
from rankdash.core.base.files import append, from_json, guarded, locked, text_of
from rankdash.core.data.ranking import Ranking
from rankdash.core.statistics.nights import Night
from rankdash.core.workspace.tables import ranking_parts, read_ranking, write_ranking

ENDING = ".jsonl"
"""The ending of the name of a state file."""

_RANKING, _JOURNAL = "run", ".journal"
_FOLDER = re.compile(r"\d{5,}-\d+")
_JOURNAL_NAME = re.compile(r"\d{4}-\d\d-\d\d-\d+\.journal")
_BROKEN = "The state of the nights cannot be read: {reason}."
_REMEDY = "Restore the file from a copy, or name a new one as state to start again."


class MetricNight(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One metric of one night.

    night: the comparison. mean, pinned: the means over the compared queries. evidence: after this
    night. noise: the standard deviation of a night's mean. margin: the drop above which a night is
    evidence. p: the highest chance of this much evidence in a year without a drop. alarm: the first
    night of the alarm in force; None without one. ended: whether an alarm ended this night, because
    the drop is gone.
    """

    night: Night
    mean: float
    pinned: float
    evidence: tuple[float, ...]
    noise: float
    margin: float
    p: float
    alarm: int | None = None
    ended: bool = False


class Fetched(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fetch of a night: the folder of its ranking, and the queries that failed."""

    folder: str
    failed: tuple[str, ...] = ()


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One night.

    night: its number, from 1. date: ISO 8601, of the day. made: the time of the line, in UTC.
    configured: identifies the pinned run in the configuration; "" for none. reference: identifies
        the runs that the night is compared with, which is the night itself if it is pinned; "" if
        too many queries failed before a night was pinned.
    run_id: of the run in the workspace; "" for none. queries: of a fetch.
    churn, unlabelled, unlabelled_pinned: shares of the first ten documents; None if not known.
    p95_ms: None if not known. metrics: by spec; empty if too many queries failed, or if there is
        nothing to compare with.
    """

    night: int
    date: str
    made: str
    configured: str
    reference: str
    fetches: tuple[Fetched, ...]
    run_id: str
    queries: int
    churn: float | None
    unlabelled: float | None
    unlabelled_pinned: float | None
    p95_ms: float | None
    metrics: dict[str, MetricNight]

    @property
    def name(self) -> str:
        return f"night {self.night}"

    @property
    def failed(self) -> int:
        """The number of failed queries, in the fetch with the most."""
        return max(len(each.failed) for each in self.fetches)


class _Accepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The decision that a night is the pinned run of later nights."""

    accepted: int
    made: str


@dataclass(frozen=True)
class Nights:
    """All nights, oldest first. accepted: the night that was accepted last; None without one."""

    lines: tuple[Line, ...] = ()
    accepted: Line | None = None

    @property
    def last(self) -> Line | None:
        return self.lines[-1] if self.lines else None

    @property
    def first(self) -> Line | None:
        """The night that is pinned if no run is configured; None before it."""
        pinned = (each for each in self.lines if each.reference == each.name)
        return next(pinned, None)


def _folders(nights: Iterable[Line]) -> set[str]:
    """Return the folders with rankings of nights. A state file may contain other names."""
    named = {each.folder for night in nights for each in night.fetches}
    return {each for each in named if _FOLDER.fullmatch(each)}


def _remove_ranking(folder: Path) -> None:
    """Remove a ranking, and its folder if it contains no other file."""
    with suppress(OSError):
        for part in ranking_parts(_RANKING):
            (folder / f"{part}.parquet").unlink(missing_ok=True)
        folder.rmdir()


class State:
    """A state file, and the folder of its rankings, whose name lacks the ending of the file,
    `ENDING`."""

    def __init__(self, file: Path) -> None:
        self.file, self.folder = file, file.with_suffix("")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude other processes. Raises DataError if another one has the lock, and OSError."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.file.with_name(f"{self.file.name}.lock")) as free:
            if not free:
                raise DataError(
                    "Another process works on these nights.",
                    remedy="Wait until it ends, or end it.",
                    file=str(self.file),
                )
            yield

    def read(self) -> Nights:
        """Return the nights. Raises DataError, with the line, for a file that is not usable."""
        if not self.file.exists():
            return Nights()
        lines: list[Line] = []
        accepted = None
        # An incomplete last line is from a program that died.
        for number, text in enumerate(self.file.read_bytes().split(b"\n")[:-1], 1):
            with guarded(str(self.file), _BROKEN, _REMEDY, line=number):
                row = from_json(text_of(text))
                if "accepted" in row:
                    night = msgspec.convert(row, _Accepted).accepted
                    accepted = next(each for each in lines if each.night == night)
                else:
                    lines.append(msgspec.convert(row, Line))
        return Nights(tuple(lines), accepted)

    def add(self, line: Line, rankings: Sequence[Ranking], nights: Nights) -> None:
        """Write the rankings of a night and its line. Remove the journals, and the rankings of
        earlier nights that no later night needs. Raises the errors of `append`."""
        for fetched, ranking in zip(line.fetches, rankings, strict=True):
            folder = self.folder / fetched.folder
            folder.mkdir(parents=True, exist_ok=True)
            write_ranking(folder, _RANKING, ranking)
        self._append(line)
        needed = _folders(filter(None, (line, nights.accepted, nights.first)))
        for name in _folders(nights.lines) - needed:
            _remove_ranking(self.folder / name)
        # The folder may also contain files of the user.
        for stored in self.folder.iterdir():
            if _JOURNAL_NAME.fullmatch(stored.name):
                stored.unlink(missing_ok=True)

    def accept(self, line: Line, made: str) -> None:
        """Make a night the pinned run. Raises the errors of `append`."""
        self._append(_Accepted(line.night, made))

    def stores(self, line: Line) -> bool:
        """Return whether the rankings of a night exist."""
        return all((self.folder / each.folder).is_dir() for each in line.fetches)

    def journal(self, date: str, number: int) -> Path:
        """Return the file of the answers to a fetch, which `add` removes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{date}-{number}{_JOURNAL}"

    def rankings(self, line: Line) -> list[Ranking]:
        """Return the rankings of a night's fetches. Raises StoreError if one is not usable."""
        return [read_ranking(self.folder / each.folder, _RANKING) for each in line.fetches]

    def _append(self, row: msgspec.Struct) -> None:
        # JSON escapes lone surrogates, which ids may contain.
        text = json.dumps(msgspec.to_builtins(row), allow_nan=False)
        append(self.file, [f"{text}\n".encode()])
