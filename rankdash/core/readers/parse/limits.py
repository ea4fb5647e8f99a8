"""`ReadLimits` for the size of files, and `Refusals` for their invalid rows."""

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
    """Return the environment variable that sets a limit of `ReadLimits`."""
    return f"RANKDASH_MAX_{limit.upper()}"


def limit_set(limit: str, usual: int) -> int:
    """Return the limit set by the environment variable, else the default `usual`.

    Raises DataError if the variable is not a whole number of at least 1.
    """
    text = os.environ.get(variable(limit), "").strip()
    if not text:
        return usual
    plain = text.replace("_", "")
    if not (plain.isascii() and plain.isdecimal() and len(plain) < 19 and int(plain)):
        raise DataError(
            "{variable} must be a whole number of at least 1, not {text!r}.",
            remedy="Change the environment variable, or remove it to use the default limit of "
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
    """Limits for the content of files. Environment variables such as RANKDASH_MAX_ROWS override the
    defaults. A LimitError names the file, the limit and the remedy.

    file_bytes:     one file before unpacking, in bytes.
    unpacked_bytes: the unpacked content of all archives of one call, in bytes; measured while
                    unpacking, not read from a header.
    unpacked_ratio: unpacked size of an archive divided by its size.
    files:          files of one call, including those inside archives.
    rows:           rows of one file.
    columns:        columns of one file.
    field_chars:    characters of one field (one text, one id).
    line_bytes:     one line of text that is not JSON, in bytes.
    json_values:    entries, lists and values of one JSON file, or of lists in Parquet or Arrow;
                    each takes up to 200 bytes of memory.
    json_depth:     nesting levels of lists and objects.
    memory_bytes:   memory of the process that reads an upload for the dashboard, in bytes.
    watch:          called regularly with a file's name and the number of its rows already read.
    joining:        called when the rows of all files are read, before they are joined.
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
        """Return the error for an exceeded limit `name`. The fields {limit} (limits in bytes are
        converted to megabytes) and {variable} of `template` and `remedy` are filled in."""
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


# Refused rows: reasons, line numbers, and an error if there are too many.

LINES_NAMED = 20
_EXAMPLES = 5
_EXAMPLE_CHARS = 160
# If more than this share of rows is refused, the whole file is refused.
_MOST_REFUSED = 0.5
_AT_LINE, _AT_LINES = "(line {lines})", "(lines {lines})"


@dataclass(frozen=True)
class Reason:
    """A reason to refuse rows. what: the beginning of its message."""

    what: str
    remedy: str

    def template(self, lines: int) -> str:
        """Return the message for refused rows, with the fields `count` (of rows) and `lines` to
        fill in.

        lines: the number of lines that the message lists, 1 for the singular.
        """
        return f"{self.what}: {{count}} {_AT_LINE if lines == 1 else _AT_LINES}."


REASONS = {
    "field_count": Reason(
        "Rows excluded because of a wrong number of fields",
        "Check for missing separators, or separators inside unquoted text.",
    ),
    "no_query": Reason(
        "Rows excluded because the query is empty",
        "Fill in the query, or remove the row.",
    ),
    "bad_query": Reason(
        "Entries excluded because the query is not a text",
        "Write the query as a text.",
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
    "bad_ids": Reason(
        "Entries excluded because a document id is neither a text nor a number",
        "Write a list of ids for each query, such as d1, d2.",
    ),
    "no_text": Reason(
        "Entries excluded because a document or a query is a list, or an object without a text "
        "under a known name",
        "Write each document as a text, or name its text text, contents, segment or document; name "
        "the text of a query text or query.",
    ),
    "no_label": Reason(
        "Rows excluded because the label is empty",
        "Label the row. Rows without a label are used only if they have a first-stage score or "
        "rank.",
    ),
    "bad_label": Reason(
        "Rows excluded because the label is neither a number nor a known word",
        "Write labels as numbers, higher is better.",
    ),
    "bad_score": Reason(
        "Rows excluded because the score is not a finite number",
        "Use digits and a decimal point, or remove the row.",
    ),
    "bad_rank": Reason(
        "Rows excluded because the rank is not a whole number",
        "Number the ranks of each query 1, 2, 3 …",
    ),
    "ranked_twice": Reason(
        "Rows excluded because the query already lists the document",
        "Keep one row per query and document.",
    ),
    "not_paired": Reason(
        "Entries excluded because their lists of documents, labels and scores differ in length",
        "Write one label and one score for each document.",
    ),
    "bad_line": Reason(
        "Lines excluded because they are not a label, a query and numbered features",
        "Use this format for each line: 2 qid:10 1:0.5 2:3 # docid.",
    ),
    "repeated_id": Reason(
        "Rows excluded because their id already has a different text",
        "Use a unique id for each query and each document.",
    ),
}
OTHER_REASONS = Reason("For other reasons", "")


@dataclass(eq=False)
class Refusals:
    """The refused rows of one file. file: its name. cause: a further explanation."""

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
        """Refuse rows for the reason `code`. examples: raw rows; the first few are stored."""
        if len(lines):
            self._lines.setdefault(code, []).extend(int(line) for line in lines)
            stored = self._examples.setdefault(code, [])
            stored.extend(text[:_EXAMPLE_CHARS] for text in examples[: _EXAMPLES - len(stored)])

    @property
    def count(self) -> int:
        return sum(map(len, self._lines.values()))

    def stop_if_most(self, rows: int) -> None:
        """Raise FormatError with the first refused row if more than half of `rows` are refused."""
        self._rows = rows
        if not rows or self.count <= _MOST_REFUSED * rows:
            return
        code = max(self._lines, key=lambda code: len(self._lines[code]))
        reason = REASONS[code]
        others = [line for other, lines in self._lines.items() if other != code for line in lines]
        more = self.cause or (_message(OTHER_REASONS, others) if others else "")
        if code in ("not_paired", "no_text"):
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
        """Return one warning per reason, with line numbers, example rows and the total number of
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
    """Return a finding with `count` as a field of its message, and the first examples."""
    params = {"count": count, **params}
    shown = tuple(examples[:_EXAMPLES])
    return Finding(severity, code, template, params, remedy, file, line, count, shown)


def named_lines(lines: Iterable[int]) -> str:
    """Return the first distinct lines in order: `3, 17, 20 …`"""
    # Entries of JSON may share a line, and the rows of one entry do.
    ordered = sorted(set(lines))
    text = ", ".join(str(line) for line in ordered[:LINES_NAMED])
    return f"{text} …" if len(ordered) > LINES_NAMED else text


def _message(reason: Reason, lines: Sequence[int]) -> Phrase:
    """Return the message of a reason with the number of rows and their first lines."""
    return Phrase(reason.template(len(set(lines))), count=len(lines), lines=named_lines(lines))


# Conversion of any library error while reading a file to an error with file and reason.

DAMAGED_FILE = "The {format} file is damaged or truncated ({problem}). Nothing was imported."
DAMAGED_ARCHIVE = "The {kind} archive is damaged or truncated ({problem}). Nothing was imported."
BAD_COLUMN = "The column {column!r} contains a value that cannot be read ({problem})."
_CONTENT = "The file contains something unexpected ({problem})."
_AGAIN = "Copy or download the file again."


@contextmanager
def reading(
    file: str, template: str = _CONTENT, remedy: str = _AGAIN, **params: Any
) -> Iterator[None]:
    """Convert errors in the `with` block, which reads untrusted content, to FormatError.

    template, remedy, params: the message of the FormatError; {problem} is the original error.

    Raises LimitError if there is not enough memory. Errors of rankdash are not converted.
    """
    try:
        yield
    except RankdashError:
        raise
    except MemoryError as problem:
        raise LimitError(
            "There is not enough memory to read the file.",
            remedy="Free memory, or load a sample of the queries with all their rows. In the "
            "dashboard, {variable} sets the limit.",
            file=file,
            variable=variable("memory_bytes"),
        ) from problem
    except Exception as problem:
        raise FormatError(
            template, remedy=remedy, file=file, problem=said_by(problem), **params
        ) from problem
