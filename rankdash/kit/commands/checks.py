"""Checks of a command for CI as text, Markdown or JUnit XML, and the reason if it could not run."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from rankdash.core.base.errors import DataError, RankdashError
from rankdash.kit.commands.output import aligned, one_line, spare_the_input, write
from rankdash.kit.html.tables import markdown_safe, piped

_ENDINGS = {".md": "markdown", ".xml": "junit", ".txt": "text", ".json": "json"}
_MARKS = {"pass": "✅ pass", "FAIL": "❌ **fail**", "skip": "➖ skipped"}
Formats = Mapping[str, Callable[[], str]]
"""Format → a function that returns the output in it."""


@dataclass(frozen=True)
class Check:
    """One row of the output. cells: its other cells in the table. kind: the short reason of a
    failure, and message: the reason as a sentence; both "" if the check passes."""

    title: str
    result: Literal["pass", "FAIL", "skip"]
    cells: Sequence[str]
    kind: str = ""
    message: str = ""


@dataclass(frozen=True)
class Checks:
    """The checks of one run of a command. suite: the compared systems. head: the titles of the
    columns after the result."""

    command: str
    headline: str
    suite: str
    head: Sequence[str]
    rows: Sequence[Check]
    notes: Sequence[str]

    def text(self) -> str:
        """Return the checks for a terminal."""
        rows = [[each.result, each.title, *each.cells] for each in self.rows]
        lines = [f"{one_line(self.headline)}\n", "\n"]
        lines += [aligned([("result", *self.head), *rows], left=2), "\n"]
        lines += [f"- {one_line(reason)}\n" for reason in self._reasons()]
        lines += [f"{one_line(note)}\n" for note in self.notes]
        return "".join(lines)

    def markdown(self) -> str:
        """Return Markdown for a pull request or a CI summary. Names are escaped."""
        rows = [
            [_MARKS[each.result], *map(markdown_safe, (each.title, *each.cells))]
            for each in self.rows
        ]
        lines = [f"## {markdown_safe(self.headline)}\n\n"]
        lines += [*piped([("result", *self.head), *rows], left=(0, 1)), "\n"]
        lines += [f"- {markdown_safe(reason)}\n" for reason in self._reasons()]
        lines += [f"\n{markdown_safe(note)}\n" for note in self.notes]
        return "".join(lines)

    def junit(self) -> str:
        """Return a test case for each check, in the JUnit XML that CI systems read."""
        results = [each.result for each in self.rows]
        counts = {"tests": str(len(results)), "failures": str(results.count("FAIL")), "errors": "0"}
        counts["skipped"] = str(results.count("skip"))
        root, suite = _suite(self.command, self.suite, counts)
        for each in self.rows:
            case = _case(suite, self.command, each.title)
            message = one_line(each.message)
            if each.result == "FAIL":
                failure = ElementTree.SubElement(
                    case, "failure", {"type": each.kind, "message": message}
                )
                failure.text = message
            elif each.result == "skip":
                ElementTree.SubElement(case, "skipped", {"message": message})
            output = ElementTree.SubElement(case, "system-out")
            pairs = zip(self.head[1:], each.cells, strict=True)
            listed = ", ".join(f"{name} {cell}" for name, cell in pairs)
            output.text = f"{listed[0].upper()}{listed[1:]}"
        notes = ElementTree.SubElement(suite, "system-out")
        notes.text = "\n".join(map(one_line, self.notes))
        return _document(root)

    def _reasons(self) -> Iterator[str]:
        for each in self.rows:
            if each.message:
                yield f"{each.title}: {each.message[0].lower()}{each.message[1:]}"


def as_json(content: Mapping[str, object]) -> str:
    """Return the text of a JSON file. Raises ValueError for NaN."""
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def write_files(formats: Formats, files: Sequence[str], form: str) -> None:
    """Write each file in the format of its extension, or else as `form`. Raises OSError."""
    for file in files:
        target = Path(file)
        written = formats[_ENDINGS.get(target.suffix.lower(), form)]()
        write(written.encode("utf-8", "replace"), target)


def write_refusal(
    command: str, error: RankdashError, files: Sequence[str], form: str, read: Sequence[str]
) -> None:
    """Write the reason why a command could not run to each file, so that a CI job shows it.

    Files in `read` are not overwritten. Files that cannot be written are skipped: the caller still
    reports the error.
    """
    why = one_line(str(error))
    title = f"The {command} could not run"
    formats: Formats = {
        "text": lambda: f"{title}: {why}\n",
        "json": lambda: as_json({"passed": False, "error": why}),
        "markdown": lambda: f"## {title}\n\n{markdown_safe(str(error))}\n",
        "junit": lambda: _refused_in_junit(command, why),
    }
    for file in files:
        with contextlib.suppress(DataError, OSError):
            spare_the_input(Path(file), read)
            write_files(formats, [file], form)


def _refused_in_junit(command: str, why: str) -> str:
    counts = {"tests": "1", "failures": "0", "errors": "1"}
    root, suite = _suite(command, f"rankdash {command}", counts)
    case = _case(suite, command, f"the {command} runs")
    ElementTree.SubElement(case, "error", {"type": "refused", "message": why})
    return _document(root)


def _suite(
    command: str, name: str, counts: Mapping[str, str]
) -> tuple[ElementTree.Element, ElementTree.Element]:
    root = ElementTree.Element("testsuites", {"name": f"rankdash {command}", **counts})
    return root, ElementTree.SubElement(root, "testsuite", {"name": one_line(name), **counts})


def _case(suite: ElementTree.Element, command: str, name: str) -> ElementTree.Element:
    named = {"classname": f"rankdash.{command}", "name": one_line(name)}
    return ElementTree.SubElement(suite, "testcase", named)


def _document(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    written = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{written}\n'
