"""How large an upload may be. Every limit has its own message in the place that keeps it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rankdash.core.base.errors import DataError

MEGABYTE = 1_000_000
_VARIABLE = "RANKDASH_MAX_{}"


def variable(limit: str) -> str:
    """The environment variable that sets a limit of `ReadLimits`."""
    return _VARIABLE.format(limit.upper())


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
