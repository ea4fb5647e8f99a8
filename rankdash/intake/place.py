"""Where files that are given to a server lie until they are read: a folder of its own, which goes
when the server ends, or with the next start where it was killed."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_PREFIX = "rankdash-"
# Nothing else writes a file of this name. Whoever made the folder holds it locked.
_MARK = "rankdash-uploads"

_lock = threading.Lock()
_own: list[Path] = []


def folder() -> Path:
    """The folder of this process. Raises OSError where it cannot be made."""
    with _lock:
        # Temporary folders are emptied now and then.
        if not _own or not _own[-1].is_dir():
            made = Path(tempfile.mkdtemp(prefix=_PREFIX))
            atexit.register(shutil.rmtree, made, ignore_errors=True)
            _hold(made)
            _own.append(made)
        return _own[-1]


def sweep() -> None:
    """Remove the folders of processes that were killed, where the system can tell."""
    if sys.platform == "win32":
        return
    for mark in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_MARK}"):
        with suppress(OSError):
            if mark.parent.is_symlink() or mark.parent.stat().st_uid != os.getuid():
                continue
            with mark.open("r+b") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(mark.parent, ignore_errors=True)


def _hold(made: Path) -> None:
    """Lock the mark of a folder for as long as this process lives."""
    if sys.platform == "win32":
        return
    # It has its name once it is locked, so that nobody takes it for one that was left.
    part = made / f"{_MARK}.new"
    held = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    part.rename(made / _MARK)
