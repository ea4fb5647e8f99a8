"""Files that people asked for: written beside their place and renamed, so that what was there stays
until the new one is whole."""

from __future__ import annotations

import errno
import io
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from rankdash.errors import DataError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What the system says where there is no room."""


class _Counted(io.FileIO):
    """A file that goes on where the disk is full, and only counts what there is no room for.

    full: what the system said then.
    """

    full: OSError | None = None

    def write(self, content: Any) -> int:
        if self.full is None:
            try:
                return super().write(content)
            except OSError as problem:
                if problem.errno not in FULL:
                    raise
                self.full, self._size = problem, os.fstat(self.fileno()).st_size
        self.seek(memoryview(content).nbytes, os.SEEK_CUR)
        self._size = max(self._size, self.tell())
        return memoryview(content).nbytes

    def refuse_full(self, target: Path) -> None:
        """Raises DataError where there was no room for all of it."""
        if self.full is not None:
            raise _no_room(target, self._size) from self.full


def write(target: Path, content: bytes) -> None:
    """Write a whole file. Raises what `replacing` raises."""
    with replacing(target) as stream:
        stream.write(content)


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of `target` when the block ends without an error. A
    pipe or a device is written to as it is, and so is a file in a folder that takes no new one.

    Raises DataError where the disk is full, with the room that all of it needs, OSError where
    nothing can be written.
    """
    # The file that a link leads to, and not the link.
    place = target.resolve()
    part = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}")
    beside = place.is_file() or not place.exists()
    beside = beside and os.access(place.parent, os.W_OK | os.X_OK)
    try:
        if not beside:
            with place.open("wb") as stream:
                yield stream
            return
        counted = _Counted(part, "wb")
        with io.BufferedWriter(counted) as stream:
            yield stream
        counted.refuse_full(target)
        if place.exists():
            shutil.copymode(place, part)
        part.replace(place)
    except OSError as problem:
        if problem.errno in FULL:
            raise _no_room(target) from problem
        if problem.filename == str(part):
            problem.filename = str(target)
        raise
    finally:
        if beside:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _no_room(target: Path, needed: int = 0) -> DataError:
    free = shutil.disk_usage(target.resolve().parent).free
    return DataError(
        "There is no room left on the disk to write it: {needed} MB are needed, {free} MB are free."
        if needed
        else "There is no room left on the disk to write it: {free} MB are free.",
        remedy="Free some space, or write it to another disk.",
        file=str(target),
        # Not less than it is.
        needed=f"{-(-needed // 100_000) / 10:,.1f}",
        free=f"{free / 1e6:,.1f}",
    )
