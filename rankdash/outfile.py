"""Files that people asked for: written beside their place and renamed, so that what was there stays
until the new one is whole."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rankdash.errors import DataError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What the system says where there is no room."""


def write(target: Path, content: bytes) -> None:
    """Write a whole file. Raises what `replacing` raises."""
    with replacing(target, len(content)) as stream:
        stream.write(content)


@contextmanager
def replacing(target: Path, needed: int = 0) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of `target` when the block ends without an error.

    needed: how many bytes will be written; 0 where that is not known. A pipe or a device is written
    to as it is, and so is a file in a folder that takes no new one.

    Raises DataError where the disk is full, OSError where nothing can be written.
    """
    # The file that a link leads to, and not the link.
    place = target.resolve()
    part = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}")
    beside = place.is_file() or not place.exists()
    beside = beside and os.access(place.parent, os.W_OK | os.X_OK)
    written = 0
    try:
        with (part if beside else place).open("wb") as stream:
            yield stream
            written = stream.tell() if stream.seekable() else 0
        if beside:
            if place.exists():
                shutil.copymode(place, part)
            part.replace(place)
    except OSError as problem:
        if problem.errno in FULL:
            raise _no_room(target, max(needed, written)) from problem
        if problem.filename == str(part):
            problem.filename = str(target)
        raise
    finally:
        if beside:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _no_room(target: Path, needed: int) -> DataError:
    free = shutil.disk_usage(target.resolve().parent).free
    return DataError(
        "There is no room left on the disk to write it: {needed} MB are needed, {free} MB are free."
        if needed
        else "There is no room left on the disk to write it: {free} MB are free.",
        remedy="Free some space, or write it to another disk.",
        file=str(target),
        needed=f"{needed / 1e6:,.1f}",
        free=f"{free / 1e6:,.1f}",
    )
