"""The output of commands: text for a terminal, in which no data can move the cursor or break
columns, and files, which never overwrite input files."""

from __future__ import annotations

import csv
import io
import math
import shutil
import sys
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rankdash.core.base import files as base_files
from rankdash.core.base.errors import DataError, Finding
from rankdash.core.base.i18n import quantity
from rankdash.core.base.text import defused

if TYPE_CHECKING:
    from rankdash.core.data.ranking import Ranking
    from rankdash.core.runs.results import Usage

_GAP = "  "
# The target that means standard output.
STANDARD = "-"


def printable(text: str) -> str:
    """Return the text with control characters escaped, as "\\x1b"."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def one_line(text: str) -> str:
    """Return the printable text with line breaks and runs of blanks as one blank."""
    return printable(" ".join(text.split()))


def or_null(value: object) -> object:
    """Return the value for JSON, which has no NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def columns(text: str) -> int:
    """Return the width of the text in columns of a terminal; a Chinese character takes two."""
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )


def aligned(rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Return lines with aligned cells; the first `left` columns are left-aligned, the others
    right-aligned."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(columns, column)) for column in zip(*shown, strict=True)]
    lines = []
    for row in shown:
        cells = [
            cell + " " * (width - columns(cell))
            if place < left
            else " " * (width - columns(cell)) + cell
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(_GAP.join(cells).rstrip() + "\n")
    return "".join(lines)


def finding_line(finding: Finding) -> str:
    """Return the finding with its location, remedy and an example, in one line."""
    parts = [f"{finding.where}:" if finding.where else "", finding.text]
    parts.append(finding.remedy.format(**finding.params))
    if finding.examples:
        parts.append(f"(such as {', '.join(finding.examples[:3])})")
    return one_line(" ".join(parts))


def warn(findings: Iterable[Finding]) -> None:
    """Write errors and warnings to standard error, each once and on one line."""
    serious = (finding for finding in findings if finding.severity != "note")
    for line in dict.fromkeys(finding_line(finding) for finding in serious):
        sys.stderr.write(f"warning: {line}\n")


def csv_line(cells: Iterable[str]) -> str:
    """Return a line of CSV, in which no cell runs as a formula."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(map(defused, cells))
    return line.getvalue()


def exact(value: float) -> str:
    """Return all digits of a value; "" for NaN."""
    return "" if math.isnan(value) else repr(value)


def write(content: bytes, target: Path) -> None:
    """Write to a file, or to standard output if the target is "-". Raises the errors of
    `replacing`."""
    if str(target) == STANDARD:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        base_files.write(target, content)


@contextmanager
def writing(target: Path) -> Iterator[BinaryIO]:
    """Yield a stream whose content replaces the target, or goes to standard output, once all is
    written. Raises the errors of `replacing`."""
    if str(target) != STANDARD:
        with base_files.replacing(target) as stream:
            yield stream
        return
    with tempfile.TemporaryFile() as stream:
        yield stream
        stream.seek(0)
        sys.stdout.flush()
        shutil.copyfileobj(stream, sys.stdout.buffer)


def write_ranking(ranking: Ranking, target: Path, tag: str) -> None:
    """Write a ranking as a TREC run, to a file or to standard output. Raises the errors of
    `write_run`."""
    from rankdash.kit.html.tables import run_bytes, write_run

    if str(target) == STANDARD:
        write(run_bytes(ranking, tag), target)
    else:
        write_run(ranking, target, tag)


def place_name(target: Path) -> str:
    """Return the name of the target of `write` in messages."""
    return "standard output" if str(target) == STANDARD else printable(str(target))


def target_of(out: str) -> Path:
    """Return the file to write; "-" is standard output. Raises DataError if its folder is
    missing."""
    target = Path(out)
    if not target.parent.is_dir():
        raise DataError(
            "The folder {folder} does not exist.",
            remedy="Create it first, or choose another folder.",
            file=out,
            folder=str(target.parent),
        )
    return target


def spare_the_input(target: Path, data: Sequence[str]) -> None:
    """Raise DataError if `target` is one of the input files, or a file inside an input folder."""
    if not target.exists():
        return
    for path in map(Path, data):
        files = path.rglob("*") if path.is_dir() else [path]
        if any(file.exists() and file.samefile(target) for file in files):
            raise DataError(
                "This file belongs to the data set; writing the run would overwrite it.",
                remedy="Use another name for --out.",
                file=str(target),
            )


def used_lines(used: Usage) -> Iterator[str]:
    """Yield the number of calls and their cost."""
    amounts = [f"{quantity(amount)} {printable(unit)}" for unit, amount in used.billed.items()]
    failed = f", {used.failed:,} without an answer" if used.failed else ""
    least = "at least " if used.estimated and amounts else ""
    yield f"Calls: {used.calls:,}{failed}. Billed: {least}{', '.join(amounts) or 'not known'}"
    if used.estimated:
        yield (
            "Calls whose tokens are estimated, because the service did not count them or the "
            f"program ended before the answer: {used.estimated:,}"
        )
    if used.noted:
        yield f"Answers corrected or not readable: {used.noted:,}"
