"""A run that was stopped goes on: which results of the attempts before still count, and a file of
them for a command."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base import files
from rankdash.core.base.errors import DataError
from rankdash.core.base.files import guarded
from rankdash.core.rerankers import SettingValue
from rankdash.core.rerankers.kinds.cascade import STAGES, nested_settings
from rankdash.core.runs.plan import Plan
from rankdash.core.runs.results import QueryResult, results_from, to_row

_MARK = "rankdash results "
_NO_RESULTS = "This is no file of results that a run goes on from, or it was changed."
_REMEDY = "Name a new file, or the one that --resume named before."
_COMPUTED = ("runtime", "device")
_ARRAYS = {"scores": np.float64, "read": np.int32, "full": np.int32, "repeated_ms": np.float64}


def still_good(results: Iterable[QueryResult], asked: Plan) -> dict[str, QueryResult]:
    """Query → its result, for queries that are done for as many documents as are asked for now;
    all others are scored, those that failed tried again."""
    return {
        result.query_id: result
        for result in results
        if result.state == "done"
        and len(result.scores) == len(asked.documents.get(result.query_id, ()))
    }


def computed_by(details: Mapping[str, object]) -> dict[str, str]:
    """By which runtime and on which device, of what a reranker tells; of each stage too."""
    return {
        name: str(value) for name, value in details.items() if name.rpartition("_")[2] in _COMPUTED
    }


def settled(
    settings: Mapping[str, SettingValue], details: Mapping[str, object]
) -> dict[str, SettingValue]:
    """The settings with the runtime and the device that a reranker took, as its details say."""
    found = {
        name: str(details[name]) if name in _COMPUTED and name in details else value
        for name, value in settings.items()
    }
    for stage in STAGES:
        name = f"{stage}_settings"
        taken = {
            each: details[f"{stage}_{each}"] for each in _COMPUTED if f"{stage}_{each}" in details
        }
        if name in found and taken:
            found[name] = json.dumps({**nested_settings(str(found[name]), name), **taken})
    return found


class ResultsFile:
    """A file of results, a line each, that stays whole however a process ends.

    wish: all that the results depend on, fit for JSON. results: what was done before. computed: by
        which runtime and on which device, as the details of a reranker; empty where unknown.

    Raises DataError where the file is no such file, or of another wish, and what `outfile.append`
    raises, as do its methods.
    """

    def __init__(self, path: Path, wish: Mapping[str, object]) -> None:
        self._path = path
        self.results: list[QueryResult] = []
        self.computed: Mapping[str, object] = {}
        head = f"{_MARK}{json.dumps(wish)}\n".encode()
        content = path.read_bytes() if path.exists() else b""
        if content and not content.startswith(_MARK.encode()):
            raise _no_results(path)
        if content and not content.startswith(head):
            raise DataError(
                "The results are those of another run: {what} differ.",
                remedy="Give the same data and options as before, or name a new file.",
                file=str(path),
                what=_difference(content, wish),
            )
        whole = content[: content.rfind(b"\n") + 1]
        if whole:
            self.computed, self.results = _parsed(whole[len(head) :].splitlines(), str(path))
        files.append(path, [] if whole else [head])

    def begin(self, details: Mapping[str, object]) -> None:
        """Keep how all results are computed, which the first attempt settles for the others."""
        computed = computed_by(details)
        if computed and not self.computed:
            self.computed = computed
            files.append(self._path, [json.dumps({"computed": computed}).encode() + b"\n"])

    def add(self, results: Iterable[QueryResult]) -> None:
        """Those that are done; what failed is tried again."""
        rows = (
            {
                name: value.tolist() if isinstance(value, np.ndarray) else value
                for name, value in to_row(result).items()
            }
            for result in results
            if result.state == "done"
        )
        files.append(self._path, [json.dumps(row).encode() + b"\n" for row in rows])

    def remove(self) -> None:
        """Where nothing is left to be done."""
        self._path.unlink()


def _no_results(path: Path) -> DataError:
    return DataError(_NO_RESULTS, remedy=_REMEDY, file=str(path))


def _parsed(lines: Iterable[bytes], file: str) -> tuple[Mapping[str, object], list[QueryResult]]:
    """lines: below the first of the file."""
    computed: Mapping[str, object] = {}
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 2):
        with guarded(file, _NO_RESULTS, _REMEDY, line=number):
            row = json.loads(line)
            if not rows and "computed" in row:
                computed = dict(row["computed"])
                continue
            row |= {name: np.array(row[name], dtype=kind) for name, kind in _ARRAYS.items()}
            rows.append(row)
    with guarded(file, _NO_RESULTS, _REMEDY):
        return computed, results_from(pd.DataFrame(rows)) if rows else []


def _difference(content: bytes, wish: Mapping[str, object]) -> str:
    """What of the wish is another one in the file."""
    try:
        known = json.loads(content.splitlines()[0][len(_MARK) :])
        return ", ".join(name for name in wish if known.get(name) != wish[name]) or "settings"
    except (ValueError, AttributeError):
        return ", ".join(wish)
