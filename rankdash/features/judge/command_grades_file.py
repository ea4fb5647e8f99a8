"""A judge's grades as a file that grows while the judge is asked, and that later runs go on with.

Rows are appended batch by batch; a later row of a pair replaces an earlier one. At the end the file
is written anew with one row for each pair.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rankdash.core.base import outfile
from rankdash.core.base.errors import DataError
from rankdash.core.base.infile import from_json, guarded
from rankdash.core.base.spreadsheet import restored
from rankdash.core.runs.usage import Usage
from rankdash.core.workspace.rows import now
from rankdash.features.judge.asking import JudgedPair
from rankdash.features.judge.judge import Judge
from rankdash.kit.commands.output import csv_line

COLUMNS = (
    *("query_id", "doc_id", "grade", "error", "kind", "reason", "grades"),
    *("judge", "model", "template", "top", "time", "calls", "billed"),
)
# A pair that is asked about, and one whose answer is lost with the program that asked.
_BEGUN, _LOST = "begun", "lost"
_IDENTITY = ("model", "template", "top")

Row = dict[str, Any]
Pair = tuple[str, str]


@dataclass
class GradesFile:
    """The grades of one judge, in memory and in the file.

    rows: pair → its row. used: what all calls came to, those of earlier attempts included.
    """

    path: Path
    name: str
    judge: Judge
    rows: dict[Pair, Row] = field(default_factory=dict)
    _begun: dict[Pair, Row] = field(default_factory=dict, init=False)
    used: Usage = field(default_factory=Usage)

    @classmethod
    def open(cls, path: Path, name: str, judge: Judge) -> GradesFile:
        """The file with what is in it already.

        Raises DataError for an ending that is not known, for a file of something else, and for one
        of another judge: another model, prompt or scale.
        """
        if path.suffix not in (".csv", ".jsonl"):
            raise DataError(
                "The name of the file must end in .csv or .jsonl.",
                remedy="For example: --out grades.csv",
                file=str(path),
            )
        found = cls(path, name, judge)
        if not path.exists() or not path.stat().st_size:
            found._write([])
            return found
        own = found._identity
        for line, row in _rows(path):
            with _guarded(path, line):
                if any(str(row[each]) != str(own[each]) for each in _IDENTITY):
                    raise DataError(
                        "This file has the grades of another judge: model {model}, prompt "
                        "{prompt}.",
                        remedy="Give --out another name, or ask that judge: it has the same model, "
                        "prompt, guidelines and scale.",
                        line=line,
                        model=str(row["model"]),
                        prompt=str(row["template"]),
                    )
                found._take(row)
        # What was asked when a program died was paid for, too.
        for row in list(found._begun.values()):
            found._take(row | {"kind": _LOST})
        # What a program that died left unfinished is not in it any more.
        found._write(found.rows.values())
        return found

    def pending(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Those of the pairs that no answer came for yet, or, where all have one, those without a
        grade: so many failures in a row would look like an outage."""
        none = {"kind": _LOST, "grade": None}
        rows = [(pair, self.rows.get(pair, none)) for pair in pairs]
        failed = [pair for pair, row in rows if row["grade"] is None]
        return [pair for pair, row in rows if row["kind"] == _LOST] or failed

    @property
    def unread(self) -> set[Pair]:
        """The pairs with an answer that could not be read."""
        return {pair for pair, row in self.rows.items() if row["kind"] == "unreadable"}

    def begin(self, begun: Mapping[Pair, Usage]) -> None:
        """Append what is asked about now, with what it costs at least, in case no answer is kept.
        Raises what `outfile.append` raises."""
        self._append(
            {
                "query_id": pair[0],
                "doc_id": pair[1],
                "grade": None,
                "error": "The program ended before the answer was stored.",
                "kind": _BEGUN,
                "reason": "",
                "grades": [],
                "judge": self.name,
                **self._identity,
                "time": now(),
                "calls": usage.calls,
                "billed": asdict(usage),
            }
            for pair, usage in begun.items()
        )

    def add(self, batch: Sequence[JudgedPair]) -> None:
        """Append a batch. Raises what `outfile.append` raises."""
        rows = [self._row(pair) for pair in batch]
        self._append(rows)
        for row in rows:
            self._take(row)

    def close(self, order: Iterable[Pair]) -> None:
        """Write one row for each pair, those of `order` first and in that order."""
        places = dict.fromkeys([pair for pair in order if pair in self.rows])
        self._write(self.rows[pair] for pair in places | dict.fromkeys(self.rows))

    @property
    def _identity(self) -> Row:
        return {
            "model": self.judge.model, "template": self.judge.template_hash, "top": self.judge.top
        }  # fmt: skip

    def _append(self, rows: Iterable[Row]) -> None:
        outfile.append(self.path, [self._line(row).encode("utf-8", "replace") for row in rows])

    def _take(self, row: Row) -> None:
        pair, usage = (row["query_id"], row["doc_id"]), Usage(**row["billed"])
        if row["kind"] == _BEGUN:
            self._begun[pair] = row
            return
        self._begun.pop(pair, None)
        self.used += usage
        before = self.rows.get(pair)
        if before is not None:
            # It was asked before: what that cost stays in the sum.
            total = Usage(**before["billed"]) + usage
            row = {**row, "billed": asdict(total), "calls": total.calls}
        self.rows[pair] = row

    def _row(self, pair: JudgedPair) -> Row:
        usage = Usage.of(pair.calls)
        answer = pair.answer
        return {
            "query_id": pair.query_id,
            "doc_id": pair.doc_id,
            "grade": answer.grade if answer.graded else None,
            "error": answer.error,
            "kind": answer.kind,
            "reason": answer.reason,
            "grades": [each.grade if each.graded else None for each in pair.answers],
            "judge": self.name,
            **self._identity,
            "time": now(),
            "calls": usage.calls,
            "billed": asdict(usage),
        }

    def _line(self, row: Mapping[str, Any]) -> str:
        if self.path.suffix == ".jsonl":
            return json.dumps({name: row[name] for name in COLUMNS}) + "\n"
        cells = dict(row) | {name: json.dumps(row[name]) for name in ("grades", "billed")}
        cells["grade"] = "" if row["grade"] is None else f"{row['grade']:g}"
        return csv_line(str(cells[name]) for name in COLUMNS)

    def _write(self, rows: Iterable[Row]) -> None:
        """The whole file, or the one before where this program dies."""
        heading = [csv_line(COLUMNS)] if self.path.suffix == ".csv" else []
        text = "".join([*heading, *map(self._line, rows)])
        outfile.write(self.path, text.encode("utf-8", "replace"))


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """(line, row). Raises DataError for a file of something else."""
    text = path.read_bytes().decode("utf-8", "replace")
    whole = text[: text.rfind("\n") + 1]
    if path.suffix == ".jsonl":
        for number, line in enumerate(whole.split("\n")[:-1], 1):
            with _guarded(path, number):
                row = _checked(from_json(line))
            yield number, row
        return
    with _guarded(path, 1):
        table = list(enumerate(csv.reader(io.StringIO(whole)), 1))
        if not table or tuple(table[0][1]) != COLUMNS:
            raise ValueError
    for number, cells in table[1:]:
        # A row that was being written when the program died lacks cells.
        if len(cells) == len(COLUMNS):
            with _guarded(path, number):
                row = _checked(_from_cells(cells))
            yield number, row


def _guarded(path: Path, line: int) -> AbstractContextManager[None]:
    return guarded(
        str(path),
        "This is no file of grades that `rankdash judge run` wrote.",
        "Give --out another name.",
        line=line,
    )


def _from_cells(cells: Sequence[str]) -> Row:
    row: Row = dict(zip(COLUMNS, map(restored, cells), strict=True))
    row["grade"] = float(row["grade"]) if row["grade"] else None
    return row | {name: from_json(row[name]) for name in ("grades", "billed")}


def _checked(row: Row) -> Row:
    Usage(**row["billed"])
    if row["grade"] is None and not row["error"]:
        raise ValueError
    return {name: row[name] for name in COLUMNS}
