"""Folders of processes: a process holds its folders as long as it lives, and what killed processes
left is removed."""

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
    """Lock a new file `mark` in a folder that this process made. Returns its descriptor, which
    holds the lock until it is closed or the process ends; None if the system has no such locks.

    mark: a name that nothing else gives to a file. Raises OSError if the file cannot be written.
    """
    if sys.platform == "win32":
        return None
    # It has its name once it is locked, so that nobody takes it for one that was left.
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
    """Remove those folders that processes of this user held and that no process holds any more."""
    if sys.platform == "win32":
        return
    for folder in folders:
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / mark).open("r+b") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
