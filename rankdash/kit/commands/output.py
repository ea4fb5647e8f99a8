"""What a command writes: text for a terminal, in which nothing from the data can move the cursor or
break columns, and files, which are none of those that are read."""

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
# As a target: standard output.
STANDARD = "-"


def printable(text: str) -> str:
    """The text with control characters written out, as "\\x1b"."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def one_line(text: str) -> str:
    """Printable, with line breaks and runs of blanks as one blank."""
    return printable(" ".join(text.split()))


def or_null(value: object) -> object:
    """The value for JSON, which has no NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def columns(text: str) -> int:
    """How many columns of a terminal the text takes; a Chinese character takes two."""
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )


def aligned(rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Lines with their cells in columns; the first `left` columns start at the left, the others
    end at the right."""
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
    """The finding, where it is, what to do, and an example."""
    parts = [f"{finding.where}:" if finding.where else "", finding.text]
    parts.append(finding.remedy.format(**finding.params))
    if finding.examples:
        parts.append(f"(such as {', '.join(finding.examples[:3])})")
    return one_line(" ".join(parts))


def warn(findings: Iterable[Finding]) -> None:
    """Errors and warnings on standard error, each once, a line each."""
    serious = (finding for finding in findings if finding.severity != "note")
    for line in dict.fromkeys(finding_line(finding) for finding in serious):
        sys.stderr.write(f"warning: {line}\n")


def csv_line(cells: Iterable[str]) -> str:
    """A line of CSV, in which no cell runs as a formula."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(map(defused, cells))
    return line.getvalue()


def exact(value: float) -> str:
    """Every digit; nothing where there is no value."""
    return "" if math.isnan(value) else repr(value)


def write(content: bytes, target: Path) -> None:
    """To a file, or to standard output where the target is "-". Raises what `replacing` raises."""
    if str(target) == STANDARD:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        base_files.write(target, content)


@contextmanager
def writing(target: Path) -> Iterator[BinaryIO]:
    """A file to write that stands in the target's place once all is written, or the target is
    standard output. Raises what `replacing` raises."""
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
    """A ranking as a TREC run, to a file or to standard output. Raises what `write_run` raises."""
    from rankdash.kit.html.tables import run_bytes, write_run

    if str(target) == STANDARD:
        write(run_bytes(ranking, tag), target)
    else:
        write_run(ranking, target, tag)


def place_name(target: Path) -> str:
    """What a message calls the target of `write`."""
    return "standard output" if str(target) == STANDARD else printable(str(target))


def target_of(out: str) -> Path:
    """The file to write; "-" is standard output. Raises DataError where its folder is missing."""
    target = Path(out)
    if not target.parent.is_dir():
        raise DataError(
            "There is no folder {folder}.",
            remedy="Create it first, or write elsewhere.",
            file=out,
            folder=str(target.parent),
        )
    return target


def spare_the_input(target: Path, data: Sequence[str]) -> None:
    """Raises DataError where `target` is one of the input files, or a file inside an input
    folder."""
    if not target.exists():
        return
    for path in map(Path, data):
        files = path.rglob("*") if path.is_dir() else [path]
        if any(file.exists() and file.samefile(target) for file in files):
            raise DataError(
                "This file belongs to the data set; writing the run would destroy it.",
                remedy="Give --out another name.",
                file=str(target),
            )


def used_lines(used: Usage) -> Iterator[str]:
    """How many calls there were, and what they cost."""
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
