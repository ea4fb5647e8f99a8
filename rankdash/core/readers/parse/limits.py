"""How large an upload may be, and which of its rows are refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import (
    DataError,
    Finding,
    FormatError,
    LimitError,
    Phrase,
    RankdashError,
    Severity,
)
from rankdash.core.base.files import said_by

MEGABYTE = 1_000_000


def variable(limit: str) -> str:
    """The environment variable that sets a limit of `ReadLimits`."""
    return f"RANKDASH_MAX_{limit.upper()}"


def limit_set(limit: str, usual: int) -> int:
    """What whoever started rankdash set a limit to, else what is usual.

    Raises DataError where it is set to anything but a whole number from 1.
    """
    text = os.environ.get(variable(limit), "").strip()
    if not text:
        return usual
    plain = text.replace("_", "")
    if not (plain.isascii() and plain.isdecimal() and len(plain) < 19 and int(plain)):
        raise DataError(
            "{variable} must be a whole number from 1, not {text!r}.",
            remedy="Change the environment variable, or remove it: without it the limit is "
            "{usual:,}.",
            variable=variable(limit),
            text=text,
            usual=usual,
        )
    return int(plain)


def _limit(name: str, usual: int) -> Any:
    return field(default_factory=lambda: limit_set(name, usual))


@dataclass(frozen=True)
class ReadLimits:
    """What is accepted; a LimitError names the file, the limit and the remedy. Each number is what
    its environment variable says, such as RANKDASH_MAX_ROWS, where it is set.

    file_bytes:     one file as it was given, in bytes.
    unpacked_bytes: all that comes out of the archives of one call together, in bytes; counted
                    while unpacking, never believed from a header.
    unpacked_ratio: how many times its own size an archive may unpack to.
    files:          files of one call, those inside archives included.
    rows:           rows of one file.
    columns:        columns of one file.
    field_chars:    characters of one field (one text, one id).
    line_bytes:     one line of text that is not JSON, in bytes.
    json_values:    entries, lists and values of one JSON file, or of lists in Parquet or Arrow;
                    each takes up to 200 bytes of memory.
    json_depth:     how deep lists and objects may stand inside each other.
    memory_bytes:   what the process may take that reads an upload for the dashboard, in bytes.
    watch:          called with a file's name and how many of its rows are read, now and then.
    joining:        called once the rows of all files are read, and are joined next.
    """

    file_bytes: int = _limit("file_bytes", 500 * MEGABYTE)
    unpacked_bytes: int = _limit("unpacked_bytes", 1_000 * MEGABYTE)
    unpacked_ratio: int = _limit("unpacked_ratio", 200)
    files: int = _limit("files", 1_000)
    rows: int = _limit("rows", 20_000_000)
    columns: int = _limit("columns", 1_000)
    field_chars: int = _limit("field_chars", 1_000_000)
    line_bytes: int = _limit("line_bytes", 20 * MEGABYTE)
    json_values: int = _limit("json_values", 10_000_000)
    json_depth: int = _limit("json_depth", 100)
    memory_bytes: int = _limit("memory_bytes", 8_000 * MEGABYTE)
    watch: Callable[[str, int], object] = lambda _file, _rows: None
    joining: Callable[[], object] = lambda: None

    def over(
        self,
        name: str,
        template: str,
        remedy: str,
        file: str,
        line: int | None = None,
        **params: object,
    ) -> LimitError:
        """Return the error of more than the limit `name` allows, which its message calls {limit}
        (in megabytes if it is one of bytes) and its remedy {variable}."""
        limit = getattr(self, name)
        return LimitError(
            template,
            remedy=remedy,
            file=file,
            line=line,
            limit=limit / MEGABYTE if name.endswith("_bytes") else limit,
            variable=variable(name),
            **params,
        )


# Rows that are left out: by reason, with their lines, and when there are too many of them.

LINES_NAMED = 20
_EXAMPLES = 5
_EXAMPLE_CHARS = 160
# A file of which more than this share is refused was not understood, or is broken.
_MOST_REFUSED = 0.5
_AT_LINE, _AT_LINES = "(line {lines})", "(lines {lines})"


@dataclass(frozen=True)
class Reason:
    what: str
    remedy: str

    def template(self, lines: int) -> str:
        """The message of rows on so many lines, with their `count` and the `lines`."""
        return f"{self.what}: {{count}} {_AT_LINE if lines == 1 else _AT_LINES}."


REASONS = {
    "field_count": Reason(
        "Rows excluded because they have another number of fields than the rest",
        "Look for a missing separator, or for an unquoted one inside a text.",
    ),
    "no_query": Reason(
        "Rows excluded because the query is empty",
        "Fill in the query, or remove the row.",
    ),
    "no_document": Reason(
        "Rows excluded because the document is empty",
        "Fill in the document, or remove the row.",
    ),
    "no_number": Reason(
        "Documents or topics excluded because they have no number",
        'Write the number as <DOCNO>…</DOCNO>, <num>… or number="…".',
    ),
    "no_documents": Reason(
        "Entries excluded because they list no documents",
        "List the documents that were judged for the query, or remove the entry.",
    ),
    "no_text": Reason(
        "Entries excluded because a document is a list, or an object without a text under a known "
        "name",
        "Write each document as a text, or name its text text, contents, segment or document.",
    ),
    "no_label": Reason(
        "Rows excluded because the label is empty",
        "Label the row. A row without a label is kept only where it has a first-stage score "
        "or rank.",
    ),
    "bad_label": Reason(
        "Rows excluded because the label is neither a number nor a known word",
        "Write labels as numbers, higher is better.",
    ),
    "bad_score": Reason(
        "Rows excluded because the score is not a finite number",
        "Give the row a number with a decimal point, or remove it.",
    ),
    "bad_rank": Reason(
        "Rows excluded because the rank is not a whole number",
        "Count the ranks of a query 1, 2, 3 …",
    ),
    "ranked_twice": Reason(
        "Rows excluded because the list of the query holds the document already",
        "Give one row for each query and document.",
    ),
    "not_paired": Reason(
        "Entries excluded because their lists of documents, labels and scores differ in length",
        "Write one label and one score for each document.",
    ),
    "bad_line": Reason(
        "Lines excluded because they are not a label, a query and numbered features",
        "Write each like this line: 2 qid:10 1:0.5 2:3 # docid.",
    ),
    "repeated_id": Reason(
        "Rows excluded because their id came before with another text",
        "Give every query and every document an id of its own.",
    ),
}
OTHER_REASONS = Reason("For other reasons", "")


@dataclass(eq=False)
class Refusals:
    """What was refused in one file. `file` is its name; `cause` is what else explains it."""

    file: str
    cause: Phrase | None = None
    _lines: dict[str, list[int]] = field(default_factory=dict)
    _examples: dict[str, list[str]] = field(default_factory=dict)
    _rows: int = 0

    def add(
        self,
        code: str,
        lines: Sequence[int] | npt.NDArray[np.integer[Any]],
        examples: Sequence[str] = (),
    ) -> None:
        """Refuse rows for the reason `code`; `examples` are raw rows, the first few are kept."""
        if len(lines):
            self._lines.setdefault(code, []).extend(int(line) for line in lines)
            stored = self._examples.setdefault(code, [])
            stored.extend(text[:_EXAMPLE_CHARS] for text in examples[: _EXAMPLES - len(stored)])

    @property
    def count(self) -> int:
        return sum(map(len, self._lines.values()))

    def stop_if_most(self, rows: int) -> None:
        """Raises FormatError where more than half of `rows` are refused, with the first of them."""
        self._rows = rows
        if not rows or self.count <= _MOST_REFUSED * rows:
            return
        code = max(self._lines, key=lambda code: len(self._lines[code]))
        reason = REASONS[code]
        others = [line for other, lines in self._lines.items() if other != code for line in lines]
        more = self.cause or (_message(OTHER_REASONS, others) if others else "")
        if code == "not_paired":
            more = Phrase("First: {example}.", example=self._examples[code][0])
        raise FormatError(
            "Rows that cannot be used: {refused:,} of {rows:,}, so nothing was read. {why}"
            + (" {others}" if more else ""),
            remedy=reason.remedy,
            file=self.file,
            line=min(self._lines[code]),
            refused=self.count,
            rows=rows,
            why=_message(reason, self._lines[code]),
            others=more,
        )

    def findings(self) -> list[Finding]:
        """Return a warning for each reason, with its lines, the first rows and the number of all
        rows."""
        messages = {code: _message(REASONS[code], lines) for code, lines in self._lines.items()}
        return [
            Finding(
                "warning",
                code,
                messages[code].template,
                {**messages[code].params, "rows": self._rows},
                REASONS[code].remedy,
                self.file,
                min(lines),
                len(lines),
                tuple(self._examples[code]),
            )
            for code, lines in self._lines.items()
        ]


def counted(
    severity: Severity,
    code: str,
    template: str,
    count: int,
    remedy: str = "",
    file: str = "",
    line: int | None = None,
    examples: Sequence[str] = (),
    **params: Any,
) -> Finding:
    """Return a finding on `count` things, which its message names, with the first examples."""
    params = {"count": count, **params}
    shown = tuple(examples[:_EXAMPLES])
    return Finding(severity, code, template, params, remedy, file, line, count, shown)


def named_lines(lines: Iterable[int]) -> str:
    """The first of the lines, each once and in order: `3, 17, 20 …`"""
    # Entries of JSON may share a line, and the rows of one entry do.
    ordered = sorted(set(lines))
    text = ", ".join(str(line) for line in ordered[:LINES_NAMED])
    return f"{text} …" if len(ordered) > LINES_NAMED else text


def _message(reason: Reason, lines: Sequence[int]) -> Phrase:
    """How many rows, and the first of their lines."""
    return Phrase(reason.template(len(set(lines))), count=len(lines), lines=named_lines(lines))


# Whatever a library raises on the bytes of a file, as an error with the file and the reason.

DAMAGED_FILE = "The {format} file is damaged or cut short ({problem}). Nothing of it was kept."
DAMAGED_ARCHIVE = "The {kind} archive is damaged or cut short ({problem}). Nothing of it was kept."
BAD_COLUMN = "The column {column!r} holds a value that cannot be read ({problem})."
_CONTENT = "The file holds something that no reader expects ({problem})."
_AGAIN = "Copy or download the file again."


@contextmanager
def reading(
    file: str, template: str = _CONTENT, remedy: str = _AGAIN, **params: Any
) -> Iterator[None]:
    """Around everything that reads content which anyone may have written.

    template, remedy, params: the message of a FormatError, with {problem} for what was raised.

    Raises LimitError where memory does not suffice, else FormatError; what rankdash raises itself
    passes as it is.
    """
    try:
        yield
    except RankdashError:
        raise
    except MemoryError as problem:
        raise LimitError(
            "Reading the file takes more memory than there is.",
            remedy="Free memory, or load a sample of the queries with all their rows. In the "
            "dashboard {variable} allows more.",
            file=file,
            variable=variable("memory_bytes"),
        ) from problem
    except Exception as problem:
        raise FormatError(
            template, remedy=remedy, file=file, problem=said_by(problem), **params
        ) from problem
