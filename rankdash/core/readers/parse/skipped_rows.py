"""Rows that are left out: by reason, with their lines, and when there are too many of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import Finding, FormatError, LimitError, Phrase, RankdashError
from rankdash.core.base.files import said_by
from rankdash.core.readers.parse.limits import variable

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
            kept = self._examples.setdefault(code, [])
            kept.extend(text[:_EXAMPLE_CHARS] for text in examples[: _EXAMPLES - len(kept)])

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

FILE = "The {format} file is damaged or cut short ({problem}). Nothing of it was kept."
ARCHIVE = "The {kind} archive is damaged or cut short ({problem}). Nothing of it was kept."
COLUMN = "The column {column!r} holds a value that cannot be read ({problem})."
CONTENT = "The file holds something that no reader expects ({problem})."
_AGAIN = "Copy or download the file again."


@contextmanager
def told(file: str, template: str = CONTENT, remedy: str = _AGAIN, **params: Any) -> Iterator[None]:
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
