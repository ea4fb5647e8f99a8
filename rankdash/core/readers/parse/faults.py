"""Whatever a library raises on the bytes of a file, as an error with the file and the reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankdash.core.base.errors import FormatError, LimitError, RankdashError
from rankdash.core.base.infile import said_by
from rankdash.core.readers.parse.limits import variable

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
