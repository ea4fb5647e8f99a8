"""Temporary folders of a process: locked until it ends, then removed by the next process."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl


def hold(folder: Path, mark: str) -> int | None:
    """Lock a new file `mark` in a folder that this process made. Return its descriptor, which
    holds the lock until it is closed or the process ends; None on Windows.

    mark: the name of a file that only rankdash writes. Raises OSError if it cannot be written.
    """
    if sys.platform == "win32":
        return None
    # Renamed after it is locked: a sweep at this moment must not find it unlocked.
    part = folder / f"{mark}.new"
    held = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        part.rename(folder / mark)
    except OSError:
        os.close(held)
        raise
    return held


def sweep(folders: Iterable[Path], mark: str) -> None:
    """Remove the folders of this user whose file `mark` is not locked. Do nothing on Windows."""
    if sys.platform == "win32":
        return
    for folder in folders:
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / mark).open("r+b") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
