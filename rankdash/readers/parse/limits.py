"""How large an upload may be. Every limit has its own message in the place that keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class ReadLimits:
    """What is accepted; a LimitError names the file, the limit and the remedy.

    file_bytes:     one file as it was given, in bytes.
    unpacked_bytes: all that comes out of the archives of one call together, in bytes; counted
                    while unpacking, never believed from a header.
    files:          files of one call, those inside archives included.
    rows:           rows of one file.
    columns:        columns of one file.
    field_chars:    characters of one field (one text, one id).
    watch:          called with a file's name and how many of its rows are read, now and then.
    joining:        called once the rows of all files are read, and are joined next.
    """

    file_bytes: int = 500 * MEGABYTE
    unpacked_bytes: int = 1_000 * MEGABYTE
    files: int = 1_000
    rows: int = 5_000_000
    columns: int = 1_000
    field_chars: int = 1_000_000
    watch: Callable[[str, int], object] = lambda _file, _rows: None
    joining: Callable[[], object] = lambda: None
